# SPDX-License-Identifier: GPL-2.0-only
"""Caches of dm-setcache on this machine: made and looked at, by way of dmsetup. live.py has what is
done to one that is in use. kernel/cache/README.md is the target's contract.

Nothing is kept beside what device-mapper and the SSD know. A cache that was attached to a
device-mapper device in use has that device's name, and the former table is that of NAME-origin.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from isoblk.caches.base import SECTOR
from isoblk.caches.setcache import NUMBERS, TARGET, Line, Personality, parse_status, read_line
from isoblk.errors import RunError, UserError
from isoblk.machine.mapper import Mapper
from isoblk.run.options import OptionError
from isoblk.run.spec import Options

# What device-mapper and file systems both take.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,100}", re.ASCII)
ORIGIN_SUFFIX = "-origin"
"""Of the device that has the former table of one that a cache was attached to."""
_TRY_CHECK = ": run isoblk cache check"
THROUGH = "writethrough"
"""A mode in which a cache keeps nothing dirty."""
DIRTYING = ("writeback", "writeonly")
"""Modes in which it does."""


@dataclass(frozen=True)
class Volume:
    """A block device, found fit for what is asked: its path, its size in bytes, and its number,
    MAJOR:MINOR, by which the kernel is told of it."""

    path: str
    size: int
    number: str

    @property
    def sectors(self) -> int:
        """Its length in sectors of 512 bytes."""
        return self.size // SECTOR


@dataclass(frozen=True)
class State:
    """A cache as it is. origin, ssd: MAJOR:MINOR. counts: the status, by its names. origin_id: the
    table's word for the origin, or ""."""

    name: str
    sectors: int
    origin: str
    ssd: str
    mode: str
    policy: str
    counts: Mapping[str, int]
    lost: bool
    origin_id: str = ""

    @property
    def dirty(self) -> int:
        """Blocks that the origin does not have yet."""
        return self.counts["dirty"]


def table(origin: str, ssd: str, sectors: int, line: Line) -> str:
    """The table of a cache; devices by path or number."""
    return " ".join([f"0 {sectors} {TARGET} {origin} {ssd}", *line.words()])


def line_of(personality: Personality, options: Options) -> Line:
    """The options that a user gave, over the personality's defaults.

    Raises:
        UserError: one is unknown or wrong.
    """
    try:
        return read_line(options, personality)
    except OptionError as error:
        raise UserError(error.cause, where=error.option, next=error.next) from None


def names(mapper: Mapper) -> list[str]:
    """Of all device-mapper devices."""
    lines = mapper("info", "-c", "--noheadings", "-o", "name").splitlines()
    return [line.strip() for line in lines if line.strip() and line != "No devices found"]


def caches(mapper: Mapper) -> list[State]:
    """All caches."""
    listed = mapper("status", "--noflush", "--target", TARGET).splitlines()
    return [find(line.partition(":")[0], mapper) for line in listed if f" {TARGET} " in line]


def find(name: str, mapper: Mapper) -> State:
    """A cache by its name.

    Raises:
        UserError: there is none of that name.
    """
    if name not in names(mapper):
        known = ", ".join(state.name for state in caches(mapper)) or "there is none"
        raise UserError(f"no cache is called {name!r}", next=f"caches: {known}")
    words = mapper("status", "--noflush", name).split()
    made_of = mapper("table", name).split()
    try:
        found = parse_status(words[2:])
    except ValueError:
        kind = words[2] if len(words) > 2 else "no table"
        raise UserError(f"is not a cache of {TARGET} ({kind})", where=name) from None
    return State(
        name=name,
        sectors=int(words[1]),
        origin=made_of[3],
        ssd=made_of[4],
        mode=found["mode"],
        policy=found["policy"],
        counts={key: int(value) for key, value in found.items() if value.isdigit()},
        lost=found["state"] == "lost",
        origin_id=_options(made_of).get("origin_id", ""),
    )


def refuse_name(name: str, mapper: Mapper) -> None:
    """Check that a new device can be called so.

    Raises:
        UserError: it cannot.
    """
    if not _NAME.fullmatch(name) or name.endswith(ORIGIN_SUFFIX):
        raise UserError(
            f"{name!r} is not a name for a cache",
            next=f"allowed: letters, digits, '_', '.', '+', '-', not ending in {ORIGIN_SUFFIX}",
        )
    if name in names(mapper):
        raise UserError(f"there is a device-mapper device {name!r}", next="choose another name")


def refuse_without_target(mapper: Mapper, load: Callable[[], None]) -> None:
    """Check that the kernel has dm-setcache, loading it if need be.

    Raises:
        UserError: it has not.
    """
    if _has_target(mapper):
        return
    load()
    if not _has_target(mapper):
        raise UserError(
            "the kernel has no dm-setcache",
            next="build it: isoblk kernel modules",
        )


def _has_target(mapper: Mapper) -> bool:
    return any(line.split()[:1] == [TARGET] for line in mapper("targets").splitlines())


def create(name: str, origin: Volume, ssd: Volume, line: Line, mapper: Mapper) -> State:
    """Make a cache of two devices that were found fit.

    Raises:
        RunError: the kernel refuses.
    """
    made = table(origin.number, ssd.number, origin.sectors, line)
    try:
        mapper("create", name, table=made)
    except BaseException as error:
        # dmsetup takes back what it began, unless it is ended itself.
        with suppress(RunError):
            if name in names(mapper) and not mapper("table", name).strip():
                mapper("remove", name)
        if isinstance(error, RunError):
            raise refused(error, name, ssd) from None
        raise
    return find(name, mapper)


def refused(error: RunError, name: str, ssd: Volume) -> RunError:
    """The kernel's reason why there is no cache, for a person."""
    cause, check, _ = error.cause.partition(_TRY_CHECK)
    return RunError(
        f"the kernel refuses: {cause}",
        where=name,
        next=f"isoblk cache check {ssd.path}" if check else error.next,
    )


def limits(name: str, mapper: Mapper) -> dict[str, int]:
    """The target's numbers as they are: a table names those that are not at their defaults."""
    given = _options(mapper("table", name).split())
    return {option: int(given.get(option, number)) for option, (number, _, _) in NUMBERS.items()}


def _options(words: Sequence[str]) -> dict[str, str]:
    """Those that a table names."""
    return dict(zip(words[10::2], words[11::2], strict=True))


def describe(state: State, identity: str) -> Sequence[tuple[str, str]]:
    """What a person wants to know of a cache: names and values. identity: of the origin, or ""."""
    counts = state.counts
    block = counts["block"] * SECTOR
    moved = (
        (
            "reads",
            "read",
            (("hit", "read_hit"), ("missed", "read_miss"), ("of these not cached", "read_bypass")),
        ),
        (
            "writes",
            "write",
            (("hit", "write_hit"), ("new", "write_new"), ("not cached", "write_bypass")),
        ),
    )
    return [
        ("state", "the SSD is lost" if state.lost else "ok"),
        ("origin, SSD", f"{state.origin} ({identity or 'without an identity'}), {state.ssd}"),
        ("mode, policy", f"{state.mode}, {state.policy}"),
        (
            "size",
            f"{counts['slots'] * block / 2**20:.0f} MiB: {counts['sets']} sets of"
            f" {counts['assoc']} blocks of {block} bytes",
        ),
        (
            "used, dirty",
            f"{_percent(counts['used'], counts['slots'])},"
            f" {_percent(counts['dirty'], counts['slots'])} ({counts['dirty']} blocks)",
        ),
        *(
            (
                label,
                f"{counts[whole] * SECTOR / 2**20:.1f} MiB: "
                + ", ".join(f"{_percent(counts[part], counts[whole])} {how}" for how, part in of),
            )
            for label, whole, of in moved
        ),
        *(
            [("retired", f"{retired} blocks, whose places on the SSD are bad")]
            if (retired := counts.get("retired", 0))
            else []
        ),
        ("cleaned", f"{counts['cleaned']} blocks, {counts['clean_errors']} errors"),
        (
            "errors",
            f"{counts['ssd_errors']} of the SSD, {counts['origin_errors']} of the origin,"
            f" {counts['lost_errors']} requests failed",
        ),
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"

# SPDX-License-Identifier: GPL-2.0-only
"""Create and inspect caches of dm-setcache on this machine, through dmsetup.

live.py has the operations on a cache in use; kernel/cache/README.md is the target's contract. All
state is in device-mapper and on the SSD. A cache that was attached to a device-mapper device has
that device's name, and NAME-origin has the former table.
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

# Characters that device-mapper and file systems both accept.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,100}", re.ASCII)
ORIGIN_SUFFIX = "-origin"
"""Suffix of the device with the former table of a device that a cache was attached to."""
_TRY_CHECK = ": run isoblk cache check"
THROUGH = "writethrough"
"""A mode without dirty blocks."""
DIRTYING = ("writeback", "writeonly")
"""Modes with dirty blocks."""


@dataclass(frozen=True)
class Volume:
    """A block device that was checked: its path, its size in bytes, and its number MAJOR:MINOR, by
    which the kernel gets it."""

    path: str
    size: int
    number: str

    @property
    def sectors(self) -> int:
        """Return its length in sectors of 512 bytes."""
        return self.size // SECTOR


@dataclass(frozen=True)
class State:
    """State of a cache. origin, ssd: MAJOR:MINOR. counts: fields of the status. origin_id: the
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
        """Return the number of blocks that are newer than the origin."""
        return self.counts["dirty"]


def table(origin: str, ssd: str, sectors: int, line: Line) -> str:
    """Return the table of a cache, with devices by path or number."""
    return " ".join([f"0 {sectors} {TARGET} {origin} {ssd}", *line.words()])


def line_of(personality: Personality, options: Options) -> Line:
    """Return the user's options over the personality's defaults.

    Raises:
        UserError: an option is unknown or wrong.
    """
    try:
        return read_line(options, personality)
    except OptionError as error:
        raise UserError(error.cause, where=error.option, next=error.next) from None


def names(mapper: Mapper) -> list[str]:
    """Return the names of all device-mapper devices."""
    lines = mapper("info", "-c", "--noheadings", "-o", "name").splitlines()
    return [line.strip() for line in lines if line.strip() and line != "No devices found"]


def caches(mapper: Mapper) -> list[State]:
    """Return all caches."""
    listed = mapper("status", "--noflush", "--target", TARGET).splitlines()
    return [find(line.partition(":")[0], mapper) for line in listed if f" {TARGET} " in line]


def find(name: str, mapper: Mapper) -> State:
    """Return a cache by its name.

    Raises:
        UserError: there is no cache of that name.
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
    """Check that a new device can have the name.

    Raises:
        UserError: it cannot.
    """
    if not _NAME.fullmatch(name) or name.endswith(ORIGIN_SUFFIX):
        raise UserError(
            f"{name!r} is not a name for a cache",
            next=f"allowed: letters, digits, '_', '.', '+', '-', not ending in {ORIGIN_SUFFIX}",
        )
    if name in names(mapper):
        raise UserError(f"the device-mapper device {name!r} exists", next="choose another name")


def refuse_without_target(mapper: Mapper, load: Callable[[], None]) -> None:
    """Check that the kernel has dm-setcache, and load the module if it is not loaded.

    Raises:
        UserError: the kernel has no dm-setcache.
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
    """Create a cache of two devices that were checked.

    Raises:
        RunError: the kernel refuses.
    """
    made = table(origin.number, ssd.number, origin.sectors, line)
    try:
        mapper("create", name, table=made)
    except BaseException as error:
        # dmsetup cleans up after itself, unless it is killed.
        with suppress(RunError):
            if name in names(mapper) and not mapper("table", name).strip():
                mapper("remove", name)
        if isinstance(error, RunError):
            raise refused(error, name, ssd) from None
        raise
    return find(name, mapper)


def refused(error: RunError, name: str, ssd: Volume) -> RunError:
    """Return an error with the kernel's reason."""
    cause, check, _ = error.cause.partition(_TRY_CHECK)
    return RunError(
        f"the kernel refuses: {cause}",
        where=name,
        next=f"isoblk cache check {ssd.path}" if check else error.next,
    )


def limits(name: str, mapper: Mapper) -> dict[str, int]:
    """Return the target's numbers; its table has only those that differ from the defaults."""
    given = _options(mapper("table", name).split())
    return {option: int(given.get(option, number)) for option, (number, _, _) in NUMBERS.items()}


def _options(words: Sequence[str]) -> dict[str, str]:
    """Return the options in a table."""
    return dict(zip(words[10::2], words[11::2], strict=True))


def describe(state: State, identity: str) -> Sequence[tuple[str, str]]:
    """Return names and values of a cache's properties, for a table. identity: of the origin, or
    ""."""
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

# SPDX-License-Identifier: GPL-2.0-only
"""Caches of dm-setcache on this machine: made and looked at, by way of dmsetup. live.py has what is
done to one that is in use. kernel/cache/README.md is the target's contract.

Nothing is kept beside what device-mapper and the SSD know. A cache that was attached to a
device-mapper device in use has that device's name, and the former table is that of NAME-origin.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from isoblk.cache.base import SECTOR
from isoblk.cache.setcache import (
    NUMBERS,
    TARGET,
    Line,
    Personality,
    parse_status,
    read_line,
)
from isoblk.errors import RunError, UserError
from isoblk.kernel.tools import install_command
from isoblk.machine.process import PATH
from isoblk.study.model import Options
from isoblk.workload.program import OptionError

# What device-mapper and file systems both take.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,100}", re.ASCII)
ORIGIN_SUFFIX = "-origin"
"""Of the device that has the former table of one that a cache was attached to."""
_LOG = "/dev/kmsg"
_LOG_LINE = 8192
# Of the target, with an error's number; of device-mapper, with its name. That a start failed is no
# reason, and comes after it.
_REASON = re.compile(
    rf"device-mapper: .*?{TARGET}: (?:\d+:\d+: )?(?!preresume failed)(.+?)(?:: -\d+| \(-\w+\))?$"
)
_TRY_CHECK = ": run isoblk cache check"
THROUGH = "writethrough"
"""A mode in which a cache keeps nothing dirty."""
DIRTYING = ("writeback", "writeonly")
"""Modes in which it does."""


class Mapper(Protocol):
    """Runs dmsetup."""

    def __call__(self, *words: str, table: str = "") -> str:
        """What dmsetup printed.

        Args:
            words: its arguments, which everybody on this machine can read while it runs.
            table: it reads on its standard input. It may hold keys.

        Raises:
            UserError: it is missing, or may not be run. RunError: it failed.
        """


def dmsetup(*words: str, table: str = "") -> str:
    """A Mapper: the real one."""
    with _kernel_log() as log:
        try:
            ended = subprocess.run(
                ["dmsetup", *words],
                input=table,
                capture_output=True,
                text=True,
                check=False,
                # DM_DISABLE_UDEV and its like are the user's affair.
                env={**os.environ, "PATH": PATH, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise UserError("dmsetup is missing", next=install_command(["dmsetup"])) from None
        if not ended.returncode:
            return ended.stdout
        reason = next(filter(None, map(reason_of, reversed(list(log)))), "")
    if "ermission denied" in ended.stderr:
        raise UserError("no right to use device-mapper", next="run as root")
    if "kernel device-mapper driver" in ended.stderr:
        raise UserError("the kernel has no device-mapper", next="modprobe dm-mod")
    said = " ".join(ended.stderr.split("\n")[0].split()) or f"status {ended.returncode}"
    raise RunError(
        reason or said,
        where=f"dmsetup {words[0]}",
        next="" if reason else "dmesg may have the reason",
    )


@contextmanager
def _kernel_log() -> Iterator[Iterator[str]]:
    """Lines of the kernel's log from now on; none if this process may not read it."""
    try:
        file = os.open(_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield iter(())
        return
    try:
        os.lseek(file, 0, os.SEEK_END)
        yield _lines(file)
    finally:
        os.close(file)


def _lines(log: int) -> Iterator[str]:
    # A read gives one entry, and fails when there are no more.
    with suppress(OSError):
        while True:
            yield os.read(log, _LOG_LINE).decode(errors="replace").split("\n")[0]


def reason_of(line: str) -> str:
    """What the target says in a line of the kernel's log; "" if it is not the target's.

    >>> reason_of("3,42,1,-;device-mapper: setcache: 254:0: the SSD holds another cache: -22")
    'the SSD holds another cache'
    """
    found = _REASON.search(line)
    return found[1] if found else ""


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
            next="isoblk kernel modules builds it, and says how to install it",
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

# SPDX-License-Identifier: GPL-2.0-only
"""Caches of dm-setcache on this machine: made, looked at, cleaned, changed and taken away, by way
of dmsetup. kernel/cache/README.md is the target's contract.

Nothing is kept beside what device-mapper and the SSD know. A cache that was attached to a
device-mapper device in use has that device's name, and the former table is that of NAME-origin.
"""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
_POLL_S = 0.2
_LOG = "/dev/kmsg"
_LOG_LINE = 8192
# Of the target, with an error's number; of device-mapper, with its name. That a start failed is no
# reason, and comes after it.
_REASON = re.compile(
    rf"device-mapper: .*?{TARGET}: (?:\d+:\d+: )?(?!preresume failed)(.+?)(?:: -\d+| \(-\w+\))?$"
)
_TRY_CHECK = ": run isoblk cache check"
# A mode in which a cache keeps nothing dirty.
_THROUGH = "writethrough"
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
    with contextlib.suppress(OSError):
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
    """A cache as it is. origin, ssd: MAJOR:MINOR. counts: the status, by its names."""

    name: str
    sectors: int
    origin: str
    ssd: str
    mode: str
    policy: str
    counts: Mapping[str, int]
    lost: bool

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
    except RunError as error:
        raise _refused(error, name, ssd) from None
    return find(name, mapper)


def attach(name: str, ssd: Volume, line: Line, mapper: Mapper) -> State:
    """Put a cache in the place of a device-mapper device's table, while it is in use.

    Until the swap nothing changes for its users, and if it fails the device is as it was.

    Raises:
        UserError: it is no such device, or is a cache. RunError: the kernel refuses.
    """
    if name not in names(mapper):
        raise UserError(
            f"no device-mapper device is called {name!r}",
            next="isoblk cache create, for a device that nobody uses",
        )
    below = f"{name}{ORIGIN_SUFFIX}"
    if below in names(mapper):
        raise UserError(f"there is a device-mapper device {below!r}", next="remove or rename it")
    # Without the keys dm-crypt would get another one.
    former = mapper("table", "--showkeys", name)
    rows = [row.split() for row in former.splitlines() if row.strip()]
    if any(row[2] == TARGET for row in rows):
        raise UserError("is a cache already", where=name)
    if not rows:
        raise UserError("has no table", where=name)
    sectors = int(rows[-1][0]) + int(rows[-1][1])
    mapper("create", below, table=former.rstrip("\n"))
    try:
        mapper("load", name, table=table(f"/dev/mapper/{below}", ssd.number, sectors, line))
    except RunError as error:
        mapper("remove", below)
        raise _refused(error, name, ssd) from None
    try:
        _swap(name, mapper)
    except RunError as error:
        # Whichever table is live now: a resume suspends first if it has a table to put there.
        mapper("load", name, table=former.rstrip("\n"))
        mapper("resume", name)
        mapper("remove", below)
        raise _refused(error, name, ssd) from None
    return find(name, mapper)


def _swap(name: str, mapper: Mapper) -> None:
    """The loaded table takes the place of the live one. A file system is frozen meanwhile."""
    mapper("suspend", name)
    mapper("resume", name)


def _refused(error: RunError, name: str, ssd: Volume) -> RunError:
    cause, check, _ = error.cause.partition(_TRY_CHECK)
    return RunError(
        f"the kernel refuses: {cause}",
        where=name,
        next=f"isoblk cache check {ssd.path}" if check else error.next,
    )


def edit(name: str, options: Options, personality: Personality, mapper: Mapper) -> State:
    """Change a live cache.

    Args:
        name: the cache.
        options: mode, policy, and numbers of the target's.
        personality: whose words for modes and policies are understood.
        mapper: dmsetup.

    Raises:
        UserError: an option is wrong, or cannot change while the cache lives.
        RunError: the change did not take effect.
    """
    find(name, mapper)
    for fixed in ("block", "assoc"):
        if fixed in options:
            raise UserError(
                f"{fixed} cannot change while the cache lives", next="delete it, and create another"
            )
    wanted: dict[str, str] = {}
    line = line_of(personality, {**_limits(name, mapper), **options})
    for option in options:
        text = getattr(line, option) if option in ("mode", "policy") else line.numbers[option]
        wanted[option] = str(text)
    for option, text in sorted(wanted.items(), key=lambda pair: _low_first(pair, name, mapper)):
        mapper("message", name, "0", option, text)
    after = find(name, mapper)
    for option, text in wanted.items():
        got = getattr(after, option) if option in ("mode", "policy") else None
        if got is None:
            got = str(_limits(name, mapper)[option])
        if got != text:
            raise RunError(f"{option}: asked for {text}, the cache has {got}", where=name)
    return after


def _limits(name: str, mapper: Mapper) -> dict[str, int]:
    """The target's numbers as they are: a table names those that are not at their defaults."""
    words = mapper("table", name).split()[9:]
    found = {option: default for option, (default, _, _) in NUMBERS.items()}
    return found | {key: int(value) for key, value in zip(words[1::2], words[2::2], strict=True)}


def _low_first(pair: tuple[str, str], name: str, mapper: Mapper) -> tuple[bool, str]:
    """An order in which no low mark is above its high one, if the new ones are not: what falls
    begins with the low mark, what rises with the high one."""
    option, text = pair
    falls = text.isdigit() and int(text) < _limits(name, mapper).get(option, 0)
    return option.endswith("_high") == falls, option


def clean(
    name: str,
    mapper: Mapper,
    told: Callable[[int, int], None] = lambda done, total: None,
    sleep: Callable[[float], None] = time.sleep,
) -> State:
    """Write all dirty blocks to the origin, and wait for it.

    Args:
        name: the cache.
        mapper: dmsetup.
        told: is called with blocks cleaned, and all that are to be.
        sleep: waits.

    Raises:
        RunError: the SSD is lost, or blocks cannot be cleaned.
    """
    state = find(name, mapper)
    total = state.dirty
    errors = state.counts.get("clean_errors", 0)
    if total:
        mapper("message", name, "0", "clean")
    while state.dirty:
        if state.lost:
            raise RunError(f"the SSD is lost; {state.dirty} dirty blocks are on it", where=name)
        # Others are still being cleaned while only some are stuck.
        failed = state.counts.get("clean_errors", 0) > errors
        if failed and state.counts.get("stuck", 0) in (0, state.dirty):
            raise RunError(
                f"{state.dirty} blocks cannot be cleaned: errors of a disk; see dmesg", where=name
            )
        sleep(_POLL_S)
        state = find(name, mapper)
        total = max(total, state.dirty)
        told(total - state.dirty, total)
    return state


def delete(
    name: str,
    mapper: Mapper,
    told: Callable[[int, int], None] = lambda done, total: None,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Take a cache away, once the origin has all that was written; MAJOR:MINOR of its SSD.

    An attached one gives the device its former table back, in use or not.

    Raises:
        UserError: it is in use, and was not attached. RunError: see clean().
    """
    state = find(name, mapper)
    attached = f"{name}{ORIGIN_SUFFIX}" in names(mapper)
    if not attached and _open_count(name, mapper):
        raise UserError("is in use", where=name, next="unmount it")
    if state.mode in DIRTYING:
        # Whatever comes now is written to the origin, too.
        mapper("message", name, "0", "mode", _THROUGH)
    try:
        clean(name, mapper, told, sleep)
    except RunError:
        if state.mode in DIRTYING and not state.lost:
            mapper("message", name, "0", "mode", state.mode)
        raise
    if attached:
        former = mapper("table", "--showkeys", f"{name}{ORIGIN_SUFFIX}").rstrip("\n")
        mapper("load", name, table=former)
        _swap(name, mapper)
        mapper("remove", f"{name}{ORIGIN_SUFFIX}")
    else:
        mapper("remove", name)
    return state.ssd


def _open_count(name: str, mapper: Mapper) -> int:
    return int(mapper("info", "-c", "--noheadings", "-o", "open", name).strip() or 0)


def describe(state: State) -> Sequence[tuple[str, str]]:
    """What a person wants to know of a cache: names and values."""
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
        ("origin, SSD", f"{state.origin}, {state.ssd}"),
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
        ("cleaned", f"{counts['cleaned']} blocks, {counts['clean_errors']} errors"),
        (
            "errors",
            f"{counts['ssd_errors']} of the SSD, {counts['origin_errors']} of the origin,"
            f" {counts['lost_errors']} requests failed",
        ),
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"

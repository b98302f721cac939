# SPDX-License-Identifier: GPL-2.0-only
"""What the host machine and a capture change of this machine, written down before, and how it is
changed back: at the end of a run, after Ctrl-C, and by `isoblk host restore` after a crash.

A journal is a file of JSON lines: the first says which boot of the machine it is of, every other
is a change. While its process lives it is locked. Undoing goes backwards, and may be repeated:
whatever is as it was is left alone. After a reboot only files are left to undo.

Undoing is done by root, so a journal is believed only if nobody else can have written it, and only
where it tells what a run changes (isoblk.machine.trusted, bounds). Values are written, never run.
"""

import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from isoblk.errors import RunError, UserError
from isoblk.machine import blocktrace, bounds, system
from isoblk.machine.trusted import make_directory, opened, refuse_shared
from isoblk.run.limits import DEFAULT_WEIGHT
from isoblk.schedulers.isoblk import COST_MODEL, to_write

# A killed process leaves its cgroup once the disk has answered it.
_LEAVE_S = 30.0
_POLL_S = 0.02
_AS_ROOT = "run as root, or set ISOBLK_STATE elsewhere"
# By which a user ends a program.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class LoopFile(msgspec.Struct, frozen=True, tag="loop"):
    """A file was made, and a loop device of it."""

    file: str


class Queue(msgspec.Struct, frozen=True, tag="queue"):
    """The disk's request queue was set up. values: file below directory -> what it read, in the
    order in which they are to be written."""

    directory: str
    values: dict[str, str]


class IoCost(msgspec.Struct, frozen=True, tag="io.cost"):
    """io.cost was switched on for a device. lines: file -> its line in it, "" if it had none."""

    device: str
    lines: dict[str, str]


class SubtreeControl(msgspec.Struct, frozen=True, tag="subtree_control"):
    """Controllers were switched on for the children of a cgroup."""

    file: str
    controllers: tuple[str, ...] = ("io",)


class Mounted(msgspec.Struct, frozen=True, tag="mounted"):
    """A partition of a disk was made, the first, and mounted. partition: the kernel's name."""

    disk: str
    partition: str
    directory: str


class Weights(msgspec.Struct, frozen=True, tag="weights"):
    """Cgroups that were there got weights, and their I/O on a device was counted. weights: file ->
    what it read, "" if the file was not there. limits: files in which the device got a line."""

    device: str
    weights: dict[str, str]
    limits: list[str]


class Cgroups(msgspec.Struct, frozen=True, tag="cgroups"):
    """A cgroup was made, others in it, and processes were started in those."""

    directory: str


class BlockTrace(msgspec.Struct, frozen=True, tag="blktrace"):
    """The kernel's block tracer was switched on for a device. number: MAJ:MIN."""

    device: str
    number: str


class BlockTraceCgroups(msgspec.Struct, frozen=True, tag="blk_cgroup"):
    """The block tracer was told to record cgroups."""


Change = (
    LoopFile
    | Queue
    | IoCost
    | SubtreeControl
    | Mounted
    | Weights
    | Cgroups
    | BlockTrace
    | BlockTraceCgroups
)


class _Head(msgspec.Struct, frozen=True):
    """boot: the kernel's id of this boot. pid: whose journal this is."""

    boot: str
    pid: int


class Journal:
    """The journal of this process."""

    def __init__(self, file: IO[bytes]) -> None:
        self._lock = threading.Lock()
        self._file = file  # under _lock
        self._changes: list[Change] = []  # under _lock; not undone yet

    @property
    def empty(self) -> bool:
        """Whether all that was recorded has been undone."""
        return not self._changes

    def record(self, change: Change) -> None:
        """Write a change down. When this returns it is on the disk, and may be made.

        Raises:
            UserError: it is about a file whose name no journal can hold.
        """
        with self._lock, _in_utf_8():
            _append(self._file, change)
            self._changes.append(change)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What is recorded inside is undone at the end, whoever interrupts.

        Raises:
            RunError: something could not be undone; the journal keeps it.
        """
        before = len(self._changes)
        try:
            yield
        finally:
            with undisturbed(), self._lock:
                failures = []
                for change in reversed(self._changes[before:]):
                    failures += _undo(change)
                if failures:
                    raise _not_undone(failures)
                del self._changes[before:]


@contextmanager
def undisturbed() -> Iterator[None]:
    """A user who presses Ctrl-C once more is not heard. (Other threads hear no signal.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def journal(directory: Path) -> Iterator[Journal]:
    """A new journal in `directory`. It is removed at the end, when all in it has been undone.

    Raises:
        UserError: it cannot be written, an earlier one has not been undone, or another isoblk
            is at it.
    """
    try:
        make_directory(directory)
        with _locked(directory):
            _refuse_others(directory)
            file, path = _begin(directory)
    except OSError as error:
        raise UserError(
            f"no right to write the journal of changes: {error.strerror}",
            where=str(directory),
            next=_AS_ROOT,
        ) from None
    with file:
        book = Journal(file)
        try:
            with book.undone():
                yield book
        finally:
            if book.empty:
                path.unlink()


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Of two that begin at the same time the second sees the first one's journal."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _refuse_others(directory: Path) -> None:
    for path in _journals(directory):
        with opened(path) as file:
            if not _is_free(file):
                # Its load would be in our figures, and ours in its.
                raise UserError(
                    "another isoblk is running on this machine", where=str(path), next="let it end"
                )
        raise UserError(
            "an earlier run was killed and left its changes",
            where=str(path),
            next="run: isoblk host restore",
        )


def _begin(directory: Path) -> tuple[IO[bytes], Path]:
    path = directory / f"{os.getpid()}.journal"
    # Locked before it has a name that `restore` looks for.
    unnamed = path.with_suffix(".new")
    unnamed.unlink(missing_ok=True)
    way = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.fdopen(os.open(unnamed, way, 0o600), "wb")
    fcntl.flock(file, fcntl.LOCK_EX)
    _append(file, _Head(boot=system.boot_id(), pid=os.getpid()))
    unnamed.rename(path)
    _sync(directory)
    return file, path


def restore(directory: Path) -> list[str]:
    """Undo what killed processes left, journal by journal.

    Returns:
        What was undone, a line each.

    Raises:
        RunError: something could not be undone; its journal is kept.
        UserError: a journal is in use, or there is no right to read them.
    """
    told: list[str] = []
    failures: list[str] = []
    used = []
    try:
        refuse_shared(directory)
        journals = _journals(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(directory, error) from None
    for path in journals:
        try:
            with opened(path) as file:
                if not _is_free(file):
                    used.append(path)
                elif os.fstat(file.fileno()).st_nlink:
                    failures += _restore(file, path, told)
        except FileNotFoundError:
            continue  # restored by another one
        except OSError as error:
            failures.append(str(_unreadable(path, error)))
        except UserError as error:
            failures.append(str(error))
    if failures:
        raise _not_undone(failures)
    if used and not told:
        raise UserError(
            "belongs to an isoblk that is running", where=str(used[0]), next="let it end, or end it"
        )
    return list(dict.fromkeys(told))


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(
        f"no right to read the journals of changes: {error.strerror}",
        where=str(path),
        next=_AS_ROOT,
    )


def _restore(file: IO[bytes], path: Path, told: list[str]) -> list[str]:
    """Undo one that is locked; why not all could be undone. told: gets what was."""
    data = file.read()
    if b"\n" not in data:
        # Its first line was never whole: no change was made.
        path.unlink()
        told.append(f"{path}: removed; nothing was changed yet")
        return []
    head, changes = _parse(data, path)
    if head.boot != system.boot_id():
        changes = [change for change in changes if isinstance(change, LoopFile)]
    for change in changes:
        if not _is_believed(change):
            raise UserError(
                f"tells of what no run changes: {_describe(change).partition(': ')[0]}",
                where=str(path),
                next="if you do not know who wrote it, remove it",
            )
    failed = []
    for change in reversed(changes):
        failed += _undo(change)
        told.append(_describe(change))
    if not failed:
        path.unlink()
    return failed


def _is_believed(change: Change) -> bool:
    """Whether a run can have made it."""
    match change:
        case LoopFile(file):
            believed = bounds.is_loop_file(file)
        case Queue(directory, values):
            believed = bounds.is_queue(directory, values)
        case IoCost(device, lines):
            believed = bounds.is_io_cost(device, lines)
        case SubtreeControl(file, controllers):
            believed = bounds.is_subtree_control(file, controllers)
        case Mounted(disk, partition, directory):
            believed = bounds.is_mount(disk, partition, directory)
        case Weights(device, weights, limits):
            believed = bounds.is_weights(device, weights, limits)
        case Cgroups(directory):
            believed = bounds.is_own_cgroup(directory)
        case BlockTrace(_, number):
            believed = bounds.is_number(number)
        case BlockTraceCgroups():
            believed = True
    return believed


def _journals(directory: Path) -> list[Path]:
    # Not glob(), to which a directory that may not be read is an empty one.
    return sorted(path for path in directory.iterdir() if path.suffix == ".journal")


def _append(file: IO[bytes], line: msgspec.Struct) -> None:
    file.write(msgspec.json.encode(line) + b"\n")
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _in_utf_8() -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError as error:
        raise UserError(
            "the name is not UTF-8", where=error.object, next="choose another"
        ) from None


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_free(file: IO[bytes]) -> bool:
    """Whether no process has it; ours then, until it is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parse(data: bytes, path: Path) -> tuple[_Head, list[Change]]:
    """What a journal tells. path: its own."""
    # A last line that is not whole was being written: its change was not made.
    first, *rest = data.split(b"\n")[:-1] or [b""]
    try:
        head = msgspec.json.decode(first, type=_Head)
        return head, [msgspec.json.decode(line, type=Change) for line in rest]
    except (ValueError, RecursionError) as error:  # msgspec's are ValueErrors
        raise UserError(
            f"damaged journal: {error}",
            where=str(path),
            next="change back by hand what its lines tell, and remove it",
        ) from None


def _not_undone(failures: list[str]) -> RunError:
    return RunError(
        f"not everything could be changed back: {failures[0]}", next="then: isoblk host restore"
    )


def _describe(change: Change) -> str:
    match change:
        case LoopFile(file):
            text = f"{file}: loop device detached, file removed"
        case Queue(directory):
            text = f"{directory}: as it was"
        case IoCost(device):
            text = f"io.cost of {device}: as it was"
        case SubtreeControl(file, controllers):
            text = f"{file}: {' and '.join(controllers)} switched off"
        case Mounted(_, partition, directory):
            text = f"{directory}: unmounted, partition {partition} removed"
        case Weights():
            text = "weights of cgroups: as they were"
        case Cgroups(directory):
            text = f"{directory}: processes ended, cgroups removed"
        case BlockTrace(device):
            text = f"{device}: traced no longer"
        case BlockTraceCgroups():
            text = "blk_cgroup: off, unless a capture needs it"
    return text


def _undo(change: Change) -> list[str]:
    """Why it could not be undone, if so."""
    try:
        match change:
            case LoopFile(file):
                _remove_loop(Path(file))
            case Queue(directory, values):
                return _set_back(Path(directory), values)
            case IoCost(device, lines):
                _set_back_io_cost(device, lines)
            case SubtreeControl(file, controllers):
                on = Path(file).read_text().split() if Path(file).exists() else []
                if off := [f"-{name}" for name in controllers if name in on]:
                    Path(file).write_text(" ".join(off))
            case Mounted(disk, partition, directory):
                system.unmount(disk, partition, Path(directory))
                system.remove_partition(disk, partition)
            case Weights(device, weights, limits):
                _set_back_weights(device, weights, limits)
            case Cgroups(directory):
                _empty(Path(directory))
            case BlockTrace(device, number):
                blocktrace.tear_down(device, number)
            case BlockTraceCgroups():
                blocktrace.switch_off_cgroups()
    except OSError as error:
        return [f"{_where(error, change)}: {error.strerror}"]
    except (RunError, UserError) as error:
        return [str(error)]
    return []


def _remove_loop(file: Path) -> None:
    system.detach(file)
    with suppress(FileNotFoundError, NotADirectoryError):
        # In a directory of others there may be something else by now.
        if bounds.is_own_file(file):
            file.unlink()


def _where(error: OSError, change: Change) -> str:
    return str(error.filename or _describe(change).partition(": ")[0])


def read_queue(directory: Path) -> Queue:
    """All of a request queue that can be written, and what it reads: the scheduler first, whose
    change resets much of the rest, then its tunables."""
    files = [path for path in sorted(directory.iterdir()) if path.is_file()]
    files += [path for path in sorted(directory.glob("iosched/*")) if path.is_file()]
    values = {}
    for path in sorted(
        files, key=lambda path: (path.name != "scheduler", path.parent == directory)
    ):
        if not path.stat().st_mode & 0o200:
            continue
        try:
            values[str(path.relative_to(directory))] = system.chosen(path.read_text().strip())
        except OSError:
            # What cannot be read was not there to be changed.
            continue
    return Queue(str(directory), values)


def _set_back(directory: Path, values: dict[str, str]) -> list[str]:
    failures = []
    for name, value in values.items():
        path = directory / name
        try:
            if not path.exists() or system.chosen(path.read_text().strip()) == value:
                continue
            # The one tunable that is not written as it reads.
            path.write_text(to_write(value) if name == f"iosched/{COST_MODEL}" else value)
        except OSError as error:
            failures.append(f"{path}: {error.strerror}")
    return failures


def _set_back_io_cost(device: str, lines: dict[str, str]) -> None:
    for file, line in lines.items():
        path = Path(file)
        if system.line_of(device, path) == line:
            continue
        # Figures written beside "ctrl=auto" would be taken for the user's.
        words = [w for w in line.split()[1:] if "ctrl=auto" not in line or w.startswith("enable=")]
        own = " ".join(words) if words else "enable=0" if path.name.endswith("qos") else ""
        auto = "" if "ctrl=user" in line else " ctrl=auto"
        path.write_text(f"{device} {own}{auto}")


def _set_back_weights(device: str, weights: dict[str, str], limits: list[str]) -> None:
    for file, value in weights.items():
        # Without the scheduler there was no file, and the weight is the default. A cgroup may be
        # gone.
        wanted = value or str(DEFAULT_WEIGHT)
        path = Path(file)
        with suppress(FileNotFoundError):
            if system.default_weight(path) != wanted:
                path.write_text(wanted)
    for file in limits:
        with suppress(FileNotFoundError):
            if system.line_of(device, Path(file)):
                Path(file).write_text(f"{device} 0")


def _empty(top: Path) -> None:
    """End the processes in a cgroup and those in it, and remove them all."""
    if not top.exists():
        return
    groups = [top, *(path for path in top.rglob("*") if path.is_dir())]
    deadline = time.monotonic() + _LEAVE_S
    while pids := [pid for group in groups for pid in _processes(group)]:
        if time.monotonic() > deadline:
            raise RunError(f"process {pids[0]} does not end", where=str(top))
        for pid in pids:
            # 0: a process that is none of ours to see. To kill() it means our own group.
            if pid <= 0:
                raise RunError("holds a process of another namespace", where=str(top))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_POLL_S)
    for group in reversed(groups):
        with suppress(FileNotFoundError):
            group.rmdir()


def _processes(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []

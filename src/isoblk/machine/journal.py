# SPDX-License-Identifier: GPL-2.0-only
"""The journal of the changes that the host machine and a capture make to this machine.

Changes are recorded before they are made, and undone at the end of a run, after Ctrl-C, and by
`isoblk host restore` after a crash.

A journal is a file of JSON lines: the first has the id of the machine's boot, every other is a
change. It is locked while its process lives. Undoing goes backwards and may be repeated: unchanged
values are skipped. After a reboot only files remain to be undone.

root undoes the changes, so a journal is valid only if no other user can have written it, and only
changes that a run makes are accepted (isoblk.machine.trusted, bounds). Values are written, never
executed.
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

# A killed process leaves its cgroup only after its requests have completed.
_LEAVE_S = 30.0
_POLL_S = 0.02
_AS_ROOT = "run as root, or set ISOBLK_STATE elsewhere"
# Signals by which a user ends a program.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class LoopFile(msgspec.Struct, frozen=True, tag="loop"):
    """A file was made, and a loop device of it."""

    file: str


class Queue(msgspec.Struct, frozen=True, tag="queue"):
    """The disk's request queue was set up. values: file below directory -> former value, in the
    order of writing."""

    directory: str
    values: dict[str, str]


class IoCost(msgspec.Struct, frozen=True, tag="io.cost"):
    """io.cost was enabled for a device. lines: file -> its former line, "" without one."""

    device: str
    lines: dict[str, str]


class SubtreeControl(msgspec.Struct, frozen=True, tag="subtree_control"):
    """Controllers were enabled for the children of a cgroup."""

    file: str
    controllers: tuple[str, ...] = ("io",)


class Mounted(msgspec.Struct, frozen=True, tag="mounted"):
    """The first partition of a disk was made and mounted. partition: the kernel's name."""

    disk: str
    partition: str
    directory: str


class Weights(msgspec.Struct, frozen=True, tag="weights"):
    """Existing cgroups got weights, and their I/O on a device was counted. weights: file -> former
    value, "" if the file did not exist. limits: files in which the device got a line."""

    device: str
    weights: dict[str, str]
    limits: list[str]


class Cgroups(msgspec.Struct, frozen=True, tag="cgroups"):
    """A cgroup was made, with children in which processes were started."""

    directory: str


class BlockTrace(msgspec.Struct, frozen=True, tag="blktrace"):
    """The kernel's block tracer was started for a device. number: MAJ:MIN."""

    device: str
    number: str


class BlockTraceCgroups(msgspec.Struct, frozen=True, tag="blk_cgroup"):
    """The block tracer's recording of cgroups was enabled."""


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
    """boot: the kernel's id of this boot. pid: the journal's process."""

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
        """Return whether all recorded changes have been undone."""
        return not self._changes

    def record(self, change: Change) -> None:
        """Record a change. When this returns, the record is on the disk, and the change may be
        made.

        Raises:
            UserError: the change concerns a file whose name cannot be recorded.
        """
        with self._lock, _in_utf_8():
            _append(self._file, change)
            self._changes.append(change)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo at the end all changes recorded inside, even after an interrupt.

        Raises:
            RunError: a change could not be undone; it stays in the journal.
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
    """Ignore further interrupts. (Other threads receive no signals.)"""
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
    """Make a journal in `directory`. It is removed at the end when all changes have been undone.

    Raises:
        UserError: it cannot be written, an earlier one has not been undone, or another isoblk is
            running.
    """
    try:
        make_directory(directory)
        with _locked(directory):
            _refuse_others(directory)
            file, path = _begin(directory)
    except OSError as error:
        raise UserError(
            f"no permission to write the journal of changes: {error.strerror}",
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
    """Lock the directory, so that the second of two concurrent starts sees the first one's
    journal."""
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
                # The loads of the two would disturb each other's figures.
                raise UserError(
                    "another isoblk is running on this machine",
                    where=str(path),
                    next="wait for its end",
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
    """Undo the changes of killed processes, journal by journal.

    Returns:
        The undone changes, a line each.

    Raises:
        RunError: a change could not be undone; its journal is kept.
        UserError: a journal is in use, or may not be read.
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
            continue  # another process restored it
        except OSError as error:
            failures.append(str(_unreadable(path, error)))
        except UserError as error:
            failures.append(str(error))
    if failures:
        raise _not_undone(failures)
    if used and not told:
        raise UserError(
            "is of a running isoblk", where=str(used[0]), next="wait for its end, or stop it"
        )
    return list(dict.fromkeys(told))


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(
        f"no permission to read the journals of changes: {error.strerror}",
        where=str(path),
        next=_AS_ROOT,
    )


def _restore(file: IO[bytes], path: Path, told: list[str]) -> list[str]:
    """Undo a locked journal. Returns the failures. told: gets the undone changes."""
    data = file.read()
    if b"\n" not in data:
        # Its first line is incomplete: no change was made.
        path.unlink()
        told.append(f"{path}: removed; nothing was changed yet")
        return []
    head, changes = _parse(data, path)
    if head.boot != system.boot_id():
        changes = [change for change in changes if isinstance(change, LoopFile)]
    for change in changes:
        if not _is_believed(change):
            raise UserError(
                f"has a change that no run makes: {_describe(change).partition(': ')[0]}",
                where=str(path),
                next="remove the journal if you do not know its origin",
            )
    failed = []
    for change in reversed(changes):
        failed += _undo(change)
        told.append(_describe(change))
    if not failed:
        path.unlink()
    return failed


def _is_believed(change: Change) -> bool:
    """Return whether a run can have made the change."""
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
    # Not glob(), for which an unreadable directory is empty.
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
    """Lock a journal. Returns False if another process has the lock; else it is held until the file
    is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parse(data: bytes, path: Path) -> tuple[_Head, list[Change]]:
    """Parse a journal. path: its own."""
    # An incomplete last line was being written: its change was not made.
    first, *rest = data.split(b"\n")[:-1] or [b""]
    try:
        head = msgspec.json.decode(first, type=_Head)
        return head, [msgspec.json.decode(line, type=Change) for line in rest]
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise UserError(
            f"damaged journal: {error}",
            where=str(path),
            next="undo the changes in its lines manually, and remove it",
        ) from None


def _not_undone(failures: list[str]) -> RunError:
    return RunError(
        f"some changes could not be undone: {failures[0]}",
        next="fix the cause, then run: isoblk host restore",
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
    """Undo a change. Returns the failures."""
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
        # In another user's directory the name may be of another file by now.
        if bounds.is_own_file(file):
            file.unlink()


def _where(error: OSError, change: Change) -> str:
    return str(error.filename or _describe(change).partition(": ")[0])


def read_queue(directory: Path) -> Queue:
    """Read all writable files of a request queue: the scheduler first, whose change resets many
    tunables, then the tunables."""
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
            # An unreadable file was not changed either.
            continue
    return Queue(str(directory), values)


def _set_back(directory: Path, values: dict[str, str]) -> list[str]:
    failures = []
    for name, value in values.items():
        path = directory / name
        try:
            if not path.exists() or system.chosen(path.read_text().strip()) == value:
                continue
            # The only tunable whose format for writing differs.
            path.write_text(to_write(value) if name == f"iosched/{COST_MODEL}" else value)
        except OSError as error:
            failures.append(f"{path}: {error.strerror}")
    return failures


def _set_back_io_cost(device: str, lines: dict[str, str]) -> None:
    for file, line in lines.items():
        path = Path(file)
        if system.line_of(device, path) == line:
            continue
        # Figures written together with "ctrl=auto" would become the user's.
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
    """Kill the processes in a cgroup and its descendants, and remove these cgroups."""
    if not top.exists():
        return
    groups = [top, *(path for path in top.rglob("*") if path.is_dir())]
    deadline = time.monotonic() + _LEAVE_S
    while pids := [pid for group in groups for pid in _processes(group)]:
        if time.monotonic() > deadline:
            raise RunError(f"process {pids[0]} does not end", where=str(top))
        for pid in pids:
            # 0: a process of another PID namespace. To kill(), 0 means our own group.
            if pid <= 0:
                raise RunError("the cgroup has a process of another PID namespace", where=str(top))
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

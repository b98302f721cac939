# SPDX-License-Identifier: GPL-2.0-only
"""Run a capture, from the first event to the files."""

import datetime
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

import numpy as np

from isoblk.capture.cgroups import Cgroups
from isoblk.capture.convert import Tally, convert, processes
from isoblk.capture.target import SECTOR, Target, lies_on
from isoblk.capture.tracepoint import Source
from isoblk.errors import UserError
from isoblk.files import check_new, new_files
from isoblk.machine import system
from isoblk.run.spec import CgroupVersion
from isoblk.trace.compact import Header, scratch, writing
from isoblk.trace.names import VERSION, Names, StreamName, names_file, write_names

# Interval between reads; the kernel's buffer must hold the events of that time.
_POLL_S = 0.01
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Wanted:
    """A capture to make. force: replace existing files. seconds: duration; None until the command
    or a signal ends it. command: to run during the capture, if not empty."""

    target: Target
    output: Path
    force: bool
    seconds: float | None
    command: tuple[str, ...]


@dataclass(frozen=True)
class Captured:
    """Result of a capture. output: path of the trace. status: the command's, None without a
    command. interrupted: whether a signal ended it."""

    output: Path
    header: Header
    names: Names
    status: int | None
    interrupted: bool


def refuse_output(output: Path, target: Target, *, force: bool) -> None:
    """Check that the files may be written.

    Raises:
        UserError: they exist, the directory does not, or it is on the captured device.
    """
    check_new([output, names_file(output)], force=force)
    directory = Path(os.path.realpath(output)).parent
    if not directory.is_dir():
        raise UserError("no such directory", where=str(directory), next="create it")
    if lies_on(directory, target):
        raise UserError(
            f"the directory is on {target.path}: the capture would record its own writes",
            where=str(directory),
            next=f"write to another disk, or to memory: -o /dev/shm/{output.name}",
        )


@contextmanager
def alone(target: Target) -> Iterator[None]:
    """Lock the device against other captures.

    Raises:
        UserError: another capture has the lock.
    """
    # A lock on its directory in sysfs: it is released when the process ends in any way.
    lock = os.open(target.sys, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                "the device is already being captured",
                where=target.path,
                next="wait for that capture to end",
            ) from None
        yield
    finally:
        os.close(lock)


def capture(wanted: Wanted, source: Source, on_begin: Callable[[Wanted], None]) -> Captured:
    """Record until the capture ends, and write the files.

    Args:
        wanted: the capture.
        source: has begun; its events are kept in the kernel until they are read.
        on_begin: called when requests are recorded, and the command, if any, runs.

    Raises:
        UserError: the command cannot be started, or a file cannot be written.
        RunError: there was no request.
    """
    root, version = _hierarchy()
    cgroups = Cgroups(root, (wanted.target.disk / "dev").read_text().strip())
    begun = datetime.datetime.now(datetime.UTC)
    start = time.monotonic_ns()
    with scratch(wanted.output) as raw:
        with writing(wanted.output), _signals() as signals:
            status = _record(wanted, source, raw, cgroups, signals, on_begin)
        seconds = (time.monotonic_ns() - start) / 1e9
        lost = source.lost()
        # The recording cannot be repeated, so it must not be lost to an existing file.
        output = wanted.output if wanted.force else _free(wanted.output)
        with new_files([output, names_file(output)], force=wanted.force) as (new, _):
            header, tally, streams = convert(
                raw,
                source.decode,
                new,
                base=wanted.target.first,
                path_of=cgroups.path,
            )
            names = Names(
                version=VERSION,
                device=wanted.target.path,
                size=wanted.target.sectors * SECTOR,
                logical_block_size=wanted.target.logical_block_size,
                scheduler=wanted.target.scheduler,
                kernel=os.uname().release,
                backend=source.name,
                begun=begun.isoformat(timespec="milliseconds"),
                seconds=round(seconds, 3),
                first_ns=max(0, tally.first_ns - start),
                lost=lost,
                left_out=tally.left_out,
                cgroups=version,
                streams=_streams(tally, streams, cgroups),
                parents=_parents(streams, cgroups),
            )
            write_names(new, names)
    return Captured(output, header, names, status, signals.came > 0)


def _free(output: Path) -> Path:
    """Return the path, or the first variant of it whose file and names file do not exist."""
    free, number = output, 1
    while any(os.path.lexists(path) for path in (free, names_file(free))):
        number += 1
        free = output.with_name(f"{output.stem}-{number}{output.suffix}")
    return free


def _hierarchy() -> tuple[Path, CgroupVersion]:
    """Return the mount point of the cgroups with names; without an io controller all requests are
    the root's."""
    try:
        return system.io_hierarchy()
    except UserError:
        return Path("/sys/fs/cgroup"), "v2"


def _streams(tally: Tally, streams: dict[str, int], cgroups: Cgroups) -> tuple[StreamName, ...]:
    found = []
    for path, stream in streams.items():
        numbers = [number for number in tally.processes if cgroups.path(number) == path]
        found.append(
            StreamName(
                stream=stream,
                cgroup=path,
                requests=sum(tally.requests(number) for number in numbers),
                weights=cgroups.weights(path),
                processes=processes(tally, numbers),
            )
        )
    return tuple(found)


def _parents(streams: dict[str, int], cgroups: Cgroups) -> dict[str, dict[str, int]]:
    above = {str(parent) for path in streams for parent in Path(path).parents}
    return {path: cgroups.weights(path) for path in sorted(above - streams.keys() - {"/"})}


class _Signals:
    """Count the user's interrupts, so that none tears a write."""

    def __init__(self) -> None:
        self.came = 0

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.came += 1


@contextmanager
def _signals() -> Iterator[_Signals]:
    signals = _Signals()
    before = {one: signal.signal(one, signals.on_signal) for one in _STOPPING}
    try:
        yield signals
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _record(
    wanted: Wanted,
    source: Source,
    raw: IO[bytes],
    cgroups: Cgroups,
    signals: _Signals,
    on_begin: Callable[[Wanted], None],
) -> int | None:
    """Read events until the capture ends. Returns the command's status, if it ended by itself."""
    command = _start(wanted.command)
    on_begin(wanted)
    deadline = None if wanted.seconds is None else time.monotonic() + wanted.seconds
    asked: int | None = None  # signals received when the command was asked to end
    try:
        while command is None or command.poll() is None:
            _take(source, raw, cgroups)
            if asked is not None:
                if command is not None and signals.came > asked:
                    command.kill()
            elif signals.came or (deadline is not None and time.monotonic() >= deadline):
                if command is None:
                    break
                # Requests of the command's shutdown are captured as well.
                command.terminate()
                asked = signals.came
            time.sleep(_POLL_S)
    except BaseException:
        if command is not None:
            command.kill()
            command.wait()
        raise
    source.stop()
    _take(source, raw, cgroups)
    return command.returncode if command is not None and asked is None else None


def _take(source: Source, raw: IO[bytes], cgroups: Cgroups) -> None:
    for events in source.take():
        events.tofile(raw)
        cgroups.learn(np.unique(events["cgroup"]))


def _start(words: Sequence[str]) -> "subprocess.Popen[bytes] | None":
    if not words:
        return None
    try:
        return subprocess.Popen(words)
    except OSError as error:
        raise UserError(
            f"cannot run the command: {error.strerror}",
            where=words[0],
            next="name a program after --",
        ) from None

# SPDX-License-Identifier: GPL-2.0-only
"""Capture by the kernel's block tracer, through its relay files, one per CPU.

For kernels without BPF or type information. Its settings would survive if this process were killed,
so they are written to the journal first. It also records merges, allocations and unplugs: four or
five records per request.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from isoblk import paths
from isoblk.capture.convert import NOTHING
from isoblk.capture.events import EVENT
from isoblk.capture.target import Target
from isoblk.errors import UserError
from isoblk.machine import blocktrace
from isoblk.machine.blockdev import Disk
from isoblk.machine.blocktrace import CgroupOption, mounted
from isoblk.machine.claim import WATCH, claim
from isoblk.machine.journal import BlockTrace, BlockTraceCgroups, Journal, journal
from isoblk.trace.formats.blktrace import CGROUP, NOTIFY, QUEUE, decode, records_of
from isoblk.trace.record import FLUSH, Array, Records

_BUFFERS = 8  # buffers of each CPU; the smallest size is 64 KiB
_LEAST_BUFFER = 1 << 16
_READ = 1 << 20
_COMM = 16


def _decode(action: Array, size: Array) -> tuple[Array, Array]:
    op, flags = decode(action, size)
    return np.where((size == 0) & (op != FLUSH), NOTHING, op), flags


class BlktraceSource:
    """Events of a device whose tracing has begun. files: of the CPUs. device: its file
    descriptor."""

    name = "blktrace"

    def __init__(self, directory: Path, device: int, files: dict[int, int]) -> None:
        self._directory = directory
        self._device = device
        self._files = files
        self._rest = dict.fromkeys(files, b"")
        self._names: dict[int, bytes] = {}
        self.decode = _decode
        self._running = True

    def take(self) -> Iterator[Records]:
        """See Source."""
        allowed = os.sched_getaffinity(0)
        try:
            for cpu, file in self._files.items():
                # A record is written with the CPU's interrupts off, so a thread on that CPU sees no
                # partial record. The program blktrace does the same.
                # If the CPU is not in our cpuset, accept partial records.
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(0, {cpu})
                while data := os.read(file, _READ):
                    yield self._events(cpu, data)
        finally:
            os.sched_setaffinity(0, allowed)

    def stop(self) -> None:
        """See Source."""
        if self._running:
            blocktrace.stop(self._device)
            self._running = False

    def lost(self) -> int:
        """See Source."""
        return int((self._directory / "dropped").read_text())

    def _events(self, cpu: int, data: bytes) -> Records:
        held = self._rest[cpu] + data
        records, places, self._rest[cpu] = records_of(held)
        action = records["action"]
        for i in np.flatnonzero((action & NOTIFY != 0) & (action & 0xFF == 0)).tolist():
            at = places[i]
            self._names[int(records["pid"][i])] = held[at : at + min(_COMM, records["pdu"][i])]
        queued = (action & NOTIFY == 0) & (action & 0xFF == QUEUE)
        records, places = records[queued], places[queued]
        events = np.zeros(len(records), EVENT)
        events["t"] = records["time"]
        events["sector"] = records["sector"]
        events["bytes"] = records["bytes"]
        events["opf"] = records["action"]
        events["tgid"] = records["pid"]
        from_cgroup = (records["action"] & CGROUP != 0) & (records["pdu"] >= 8)
        if from_cgroup.any():
            raw = np.frombuffer(held, np.uint8)
            eight = raw[places[from_cgroup][:, None] + np.arange(8)]
            events["cgroup"][from_cgroup] = eight.view("<u8")[:, 0]
        for pid in np.unique(events["tgid"]).tolist():
            events["comm"][events["tgid"] == pid] = self._names.get(pid, b"").rstrip(b"\0")
        return events


@contextmanager
def blktrace_source(target: Target, buffer: int) -> Iterator[BlktraceSource]:
    """Capture by the block tracer.

    Args:
        target: the device.
        buffer: bytes for pending events, of all CPUs together.

    Raises:
        UserError: a right is missing, the kernel has no block tracer, or the device is being
            traced.
        RunError: the tracing could not be ended.
    """
    with ExitStack() as stack:
        debugfs = stack.enter_context(mounted("debugfs"))
        tracefs = stack.enter_context(mounted("tracefs"))
        disk = Disk(target.path, target.name, target.number, target.sys)
        device = stack.enter_context(claim(disk, WATCH)).descriptor
        book = stack.enter_context(journal(paths.state_dir()))
        _record_cgroups(tracefs, book, stack)
        cpus = sorted(os.sched_getaffinity(0))
        each = max(_LEAST_BUFFER, buffer // (len(cpus) * _BUFFERS))
        directory = debugfs / "block" / target.name
        if (directory / "trace0").exists():
            raise _traced(target)
        try:
            book.record(BlockTrace(target.path, target.number))
            blocktrace.set_up(device, each, _BUFFERS)
            files = {}
            for path in sorted(directory.glob("trace[0-9]*")):
                cpu = int(path.name.removeprefix("trace"))
                files[cpu] = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                stack.callback(os.close, files[cpu])
            source = BlktraceSource(directory, device, files)
            blocktrace.start(device)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise _traced(target) from None
            raise UserError(
                f"the kernel cannot trace the device: {error.strerror}",
                where=target.path,
                next="use a kernel with CONFIG_BLK_DEV_IO_TRACE, without lockdown",
            ) from None
        yield source


def _record_cgroups(tracefs: Path, book: Journal, stack: ExitStack) -> None:
    """Switch on the recording of cgroups, as long as any capture needs it."""
    option = CgroupOption(tracefs)
    try:
        # Restored after the lock is released, by the last capture.
        if option.claim():
            book.record(BlockTraceCgroups())
            stack.callback(option.release)
            option.switch_on()
    except OSError as error:
        option.release()
        raise UserError(
            f"the kernel's tracer cannot record cgroups: {error.strerror}",
            next="run as root on a kernel with CONFIG_BLK_DEV_IO_TRACE and CONFIG_BLK_CGROUP",
        ) from None


def _traced(target: Target) -> UserError:
    return UserError(
        "the device is already being traced",
        where=target.path,
        next=f"stop that trace; if no tracer is running: blktrace -k {target.path}",
    )

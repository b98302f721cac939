# SPDX-License-Identifier: GPL-2.0-only
"""Control of the kernel's block tracer, which the program blktrace uses. The journal undoes all
changes.

Its files are in debugfs and tracefs. They are reached through detached mounts that end with this
process, so that the machine's mounts do not change.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isoblk.errors import UserError
from isoblk.machine import node

# include/uapi/linux/fs.h and blktrace_api.h: _IOWR(0x12, 115, struct blk_user_trace_setup), _IO.
_SETUP_STRUCT = struct.Struct("@32sHIIQQI4x")
_SETUP = 3 << 30 | _SETUP_STRUCT.size << 16 | 0x12 << 8 | 115
_START, _STOP, _TEARDOWN = (0x12 << 8 | number for number in (116, 117, 118))
_QUEUE = 1 << 4  # BLK_TC_QUEUE

# fsopen, fsconfig, fsmount: the same numbers on all architectures.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CLOEXEC, _CMD_CREATE = 1, 6

_OPTION = "options/blk_cgroup"


@contextmanager
def mounted(kind: str) -> Iterator[Path]:
    """Mount a file system of that kind for this process only.

    Raises:
        UserError: a right is missing, or the kernel has no such file system.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def call(*arguments: object) -> int:
        result = libc.syscall(*arguments)
        if result < 0:
            number = ctypes.get_errno()
            if number in (errno.EPERM, errno.EACCES):
                raise UserError(
                    f"no permission to mount {kind}, which needs CAP_SYS_ADMIN",
                    next="run as root; in a container with --privileged",
                )
            raise UserError(
                f"the kernel cannot mount {kind}: {os.strerror(number)}",
                next="use a kernel with CONFIG_BLK_DEV_IO_TRACE",
            )
        return int(result)

    context = call(_FSOPEN, kind.encode(), _CLOEXEC)
    try:
        call(_FSCONFIG, context, _CMD_CREATE, None, None, 0)
        mount = call(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)
    try:
        yield Path(f"/proc/self/fd/{mount}")
    finally:
        os.close(mount)


def set_up(descriptor: int, buffer: int, count: int) -> str:
    """Allocate the tracer's buffers for queued requests of a device. Returns its directory below
    block/.

    Args:
        descriptor: of the device.
        buffer, count: bytes of a buffer, and buffers per CPU.

    Raises:
        OSError: EBUSY: the device is being traced.
    """
    asked = bytearray(_SETUP_STRUCT.pack(b"", _QUEUE, buffer, count, 0, 0, 0))
    fcntl.ioctl(descriptor, _SETUP, asked)
    name: bytes = _SETUP_STRUCT.unpack(asked)[0]
    return name.partition(b"\0")[0].decode()


def start(descriptor: int) -> None:
    """Start recording. Raises OSError."""
    fcntl.ioctl(descriptor, _START)


def stop(descriptor: int) -> None:
    """Stop recording; the buffers can still be read. Raises OSError."""
    fcntl.ioctl(descriptor, _STOP)


def tear_down(device: str, number: str) -> None:
    """End the tracing of a device, if it is traced and still exists.

    Args:
        device: its path.
        number: MAJ:MIN that it had.

    Raises:
        OSError: it could not be ended.
    """
    with contextlib.ExitStack() as stack:
        try:
            place = node.locate(device, number)
        except (FileNotFoundError, node.ChangedError):
            return
        stack.callback(os.close, place)
        descriptor = node.reopen(place, os.O_RDONLY | os.O_NONBLOCK)
        stack.callback(os.close, descriptor)
        for request in (_STOP, _TEARDOWN):
            try:
                fcntl.ioctl(descriptor, request)
            except OSError as error:
                # EINVAL: it is not traced, or was never started.
                if error.errno != errno.EINVAL:
                    raise


class CgroupOption:
    """The tracer's option blk_cgroup, which adds the cgroup to events.

    It applies to all devices, so it stays on while any capture needs it. Each capture holds a lock
    on the option's file, which the kernel releases when the process ends in any way.
    """

    def __init__(self, tracefs: Path) -> None:
        self._path = tracefs / _OPTION
        self._file: int | None = None

    def claim(self) -> bool:
        """Lock the option. Returns whether it must be switched off at the end: it was off, or on
        for another capture. Raises OSError."""
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._file, fcntl.LOCK_SH)
            return True
        if self._path.read_text().strip() == "1":
            self.release()
            return False
        return True

    def switch_on(self) -> None:
        """Switch the option on, if claim() returned True. Raises OSError."""
        self._path.write_text("1")
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def switch_off_cgroups() -> None:
    """Switch the option off, unless another capture needs it. Raises OSError, UserError."""
    with mounted("tracefs") as tracefs:
        descriptor = os.open(tracefs / _OPTION, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (tracefs / _OPTION).write_text("0")
        finally:
            os.close(descriptor)

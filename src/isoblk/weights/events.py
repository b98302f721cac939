# SPDX-License-Identifier: GPL-2.0-only
"""Events of writes to files of cgroups, by fanotify(7).

One mark covers all cgroups of the hierarchy, however many there are and come; inotify would need a
watch for each. An event names the directory by a handle and the file by its name.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# include/uapi/linux/fanotify.h
_CLOEXEC, _NONBLOCK = 0x1, 0x2
_REPORT_DFID_NAME: Final = 0xC00
_MARK_ADD, _MARK_FILESYSTEM = 0x1, 0x100
_MODIFY, _Q_OVERFLOW = 0x2, 0x4000
_AT_FDCWD: Final = -100
_EVENT = struct.Struct("=IBBHQii")
_INFO = struct.Struct("=BBH8x")  # followed by a file handle
_HANDLE = struct.Struct("=Ii")
_INFO_DFID_NAME: Final = 2
_SCHEDULER: Final = "queue/scheduler"
_BUFFER: Final = 1 << 18
# Each event of Schedulers is an open file: read fewer at a time than a process may open.
_FILES: Final = 256
_NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fanotify_init.argtypes = (ctypes.c_uint, ctypes.c_uint)
_libc.fanotify_mark.argtypes = (
    ctypes.c_int,
    ctypes.c_uint,
    ctypes.c_uint64,
    ctypes.c_int,
    ctypes.c_char_p,
)
_libc.open_by_handle_at.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int)


@dataclass(frozen=True)
class Written:
    """A write to a file.

    Attributes:
        directory: a handle for Watch.open().
        name: the file's name.
        pid: the process that wrote.
    """

    directory: bytes
    name: bytes
    pid: int


class LostError(Exception):
    """Events were lost: the caller must examine everything."""


class Watch:
    """Writes below a mount point by other processes."""

    def __init__(self, root: Path) -> None:
        """Start to watch. Raises OSError: no permission, or the kernel lacks fanotify."""
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self.fd = -1
        try:
            self.fd = _checked(
                _libc.fanotify_init(_CLOEXEC | _NONBLOCK | _REPORT_DFID_NAME, os.O_RDONLY)
            )
            _mark(self.fd, root)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Stop to watch."""
        for fd in (self.fd, self._root):
            if fd >= 0:
                os.close(fd)
        self.fd = self._root = -1

    def read(self) -> list[Written]:
        """Return the events since the last call, without duplicates. Raises LostError."""
        try:
            data = os.read(self.fd, _BUFFER)
        except BlockingIOError:
            return []
        own = os.getpid()
        return list(dict.fromkeys(written for written in decode(data) if written.pid != own))

    def open(self, directory: bytes) -> int:
        """Open the directory with O_PATH. Raises OSError: it is gone."""
        return _checked(_libc.open_by_handle_at(self._root, directory, os.O_RDONLY | os.O_CLOEXEC))


class Schedulers:
    """Writes to the files of sysfs that choose disks' schedulers.

    The kernel has no other event for these. sysfs has no handles of directories, so each event
    carries the opened file.
    """

    def __init__(self, root: Path) -> None:
        """Start to watch. Raises OSError."""
        self.fd = _checked(_libc.fanotify_init(_CLOEXEC | _NONBLOCK, os.O_RDONLY | os.O_CLOEXEC))
        try:
            _mark(self.fd, root)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Stop to watch."""
        os.close(self.fd)

    def chosen(self) -> bool:
        """Return whether a scheduler was chosen since the last call. Raises LostError."""
        try:
            data = os.read(self.fd, _FILES * _EVENT.size)
        except BlockingIOError:
            return False
        except OSError as error:
            # The kernel could not open the file for us, and has dropped the event.
            if error.errno in _NO_ROOM:
                raise LostError from None
            # It is a write-only file of sysfs, such as a bus's rescan.
            return False
        found = False
        lost = False
        for at in range(0, len(data), _EVENT.size):
            *_, mask, file, _ = _EVENT.unpack_from(data, at)
            lost |= bool(mask & _Q_OVERFLOW)
            if file < 0:
                continue
            try:
                found |= Path(f"/proc/self/fd/{file}").readlink().match(_SCHEDULER)
            finally:
                os.close(file)
        if lost:
            raise LostError
        return found


def decode(data: bytes) -> Iterator[Written]:
    """Decode the events of a read(). Raises LostError."""
    at = 0
    while at < len(data):
        length, _, _, head, mask, _, pid = _EVENT.unpack_from(data, at)
        if mask & _Q_OVERFLOW:
            raise LostError
        info = at + head
        while info < at + length:
            kind, _, size = _INFO.unpack_from(data, info)
            if kind == _INFO_DFID_NAME:
                handle = info + _INFO.size
                bytes_, _ = _HANDLE.unpack_from(data, handle)
                end = handle + _HANDLE.size + bytes_
                name = data[end : info + size].split(b"\0", 1)[0]
                yield Written(data[handle:end], name, pid)
            info += size
        at += length


def _mark(fd: int, root: Path) -> None:
    _checked(
        _libc.fanotify_mark(fd, _MARK_ADD | _MARK_FILESYSTEM, _MODIFY, _AT_FDCWD, os.fsencode(root))
    )


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

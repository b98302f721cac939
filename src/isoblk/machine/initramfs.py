# SPDX-License-Identifier: GPL-2.0-only
"""Build a guest's initramfs: an archive in cpio's format "newc", which Linux unpacks.

The format is described in the kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
"""

import stat
from collections.abc import Iterable
from dataclasses import dataclass

_LAST = "TRAILER!!!"
_ALIGNMENT = 4


@dataclass(frozen=True)
class Entry:
    """A file. path: without a leading slash. mode: type and permissions. data: a file's content, a
    symbolic link's target."""

    path: str
    mode: int
    data: bytes = b""


def directory(path: str) -> Entry:
    """Return an empty directory."""
    return Entry(path, stat.S_IFDIR | 0o755)


def program(path: str, data: bytes) -> Entry:
    """Return an executable file."""
    return Entry(path, stat.S_IFREG | 0o755, data)


def link(path: str, target: str) -> Entry:
    """Return a symbolic link."""
    return Entry(path, stat.S_IFLNK | 0o777, target.encode())


def archive(entries: Iterable[Entry]) -> bytes:
    """Return an archive of the entries in this order, owned by root, at time 0. A directory must
    precede its files."""
    parts = [_record(inode, entry) for inode, entry in enumerate(entries, 1)]
    return b"".join([*parts, _record(0, Entry(_LAST, 0))])


def _record(inode: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    # inode, mode, uid, gid, links, mtime, size, device (2), device it is (2), name's size, check
    fields = (inode, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)

# SPDX-License-Identifier: GPL-2.0-only
"""A run's directory as bytes, and back. What comes back is from another machine: nothing in it
decides where it is written, or how much of the disk it takes."""

import io
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from isoblk.errors import RunError

LARGEST = 1 << 28
"""Bytes that a run's files may have together; one is some twenty thousand."""

_MOST_FILES = 1 << 12
# Fast; what a higher level would save is little beside what Dask says of a task.
_LEVEL = 1
# What an archive raises that is none, or in which one name is used twice.
_DAMAGED = (
    *(tarfile.TarError, zlib.error, EOFError, ValueError),
    *(FileExistsError, NotADirectoryError, IsADirectoryError),
)


def pack(directory: Path) -> bytes:
    """The files of a directory, compressed.

    Raises:
        RunError: they are too large.
        OSError: one cannot be read.
    """
    size = sum(path.lstat().st_size for path in directory.rglob("*"))
    if size > LARGEST:
        raise RunError(f"left {size >> 20} MiB of files, more than {LARGEST >> 20} MiB")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=_LEVEL) as archive:
        for path in sorted(directory.rglob("*")):
            # A guest may leave links and the like; no result is one.
            if path.is_file() and not path.is_symlink():
                archive.add(path, path.relative_to(directory).as_posix(), filter=_nobodys)
    return packed.getvalue()


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(packed: bytes, directory: Path) -> None:
    """Write what pack() has packed into a new directory.

    Stricter than tarfile's own filters, which Python 3.11.0 does not have: ordinary files alone, in
    directories that are made for them.

    Raises:
        RunError: it is not what pack() makes.
        OSError: it cannot be written.
    """
    directory.mkdir(parents=True)
    left, count = LARGEST, 0
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r|gz") as archive:
            for member in archive:
                left -= member.size
                count += 1
                source = archive.extractfile(member) if member.isreg() else None
                if source is None or left < 0 or count > _MOST_FILES or not _inside(member.name):
                    raise RunError(f"a worker sent what is no run: {member.name!r}")
                target = directory / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    while piece := source.read(1 << 20):
                        file.write(piece)
                target.chmod(0o755 if member.mode & 0o100 else 0o644)
    except _DAMAGED as error:
        raise RunError(f"a worker sent what is no run: {error}") from None


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts

# SPDX-License-Identifier: GPL-2.0-only
"""Pack a run's directory into bytes, and unpack it.

Packed data come from another machine: they determine neither the path that is written nor the space
that is used.
"""

import io
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from isoblk.errors import RunError

LARGEST = 1 << 28
"""Largest size of a run's files together; a usual one has some twenty thousand bytes."""

_MOST_FILES = 1 << 12
# Fast; a higher level saves little compared with Dask's overhead per task.
_LEVEL = 1
# Errors of tarfile for data that are not an archive, or with a duplicate name.
_DAMAGED = (
    *(tarfile.TarError, zlib.error, EOFError, ValueError),
    *(FileExistsError, NotADirectoryError, IsADirectoryError),
)


def pack(directory: Path) -> bytes:
    """Compress the files of a directory.

    Raises:
        RunError: they are too large.
        OSError: a file cannot be read.
    """
    size = sum(path.lstat().st_size for path in directory.rglob("*"))
    if size > LARGEST:
        raise RunError(f"the run left {size >> 20} MiB of files, more than {LARGEST >> 20} MiB")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=_LEVEL) as archive:
        for path in sorted(directory.rglob("*")):
            # A guest may leave links or special files; results are regular files.
            if path.is_file() and not path.is_symlink():
                archive.add(path, path.relative_to(directory).as_posix(), filter=_nobodys)
    return packed.getvalue()


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(packed: bytes, directory: Path) -> None:
    """Write a packed directory into a new directory.

    Stricter than tarfile's filters, which Python 3.11.0 lacks: regular files only, in directories
    that are made for them.

    Raises:
        RunError: the data were not made by pack().
        OSError: a file cannot be written.
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
                    raise RunError(f"invalid run from worker: {member.name!r}")
                target = directory / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    while piece := source.read(1 << 20):
                        file.write(piece)
                target.chmod(0o755 if member.mode & 0o100 else 0o644)
    except _DAMAGED as error:
        raise RunError(f"invalid run from worker: {error}") from None


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts

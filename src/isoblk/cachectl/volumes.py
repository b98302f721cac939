# SPDX-License-Identifier: GPL-2.0-only
"""Open and check the block devices of a cache."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from isoblk.cachectl.manage import Volume
from isoblk.caches.ondisk import contents
from isoblk.caches.ondisk.ssd import Ssd
from isoblk.errors import UserError
from isoblk.machine import blockdev, system
from isoblk.machine.blockdev import Disk
from isoblk.machine.claim import CHECK, REPAIR, Claim, claim
from isoblk.machine.ground import Ground


def path_of(number: str, sys: Path = system.SYS) -> str:
    """Return the path of the device MAJOR:MINOR."""
    return blockdev.node_of((sys / "dev/block" / number).resolve())


def volume(held: Claim) -> Volume:
    """Return a claimed device for a cache, by its number, so that no path is opened again."""
    return Volume(held.disk.path, held.disk.size, held.disk.number)


def refuse_overlap(one: Disk, other: Disk) -> None:
    """Check that two devices share no sectors, at any layer.

    Raises:
        UserError: they are the same, one is a part of the other, or they share sectors.
    """
    if one.number == other.number:
        raise UserError(
            "origin and SSD are the same device", where=one.path, next="name another device"
        )
    for whole, part in ((one, other), (other, one)):
        if whole.sys in part.sys.parents:
            raise UserError(f"the device is a part of {whole.path}", where=part.path)
    if other.sys in Ground().sharing(one.sys):
        raise UserError(
            f"shares sectors with {other.path}",
            where=one.path,
            next="name another device",
        )


def erase(number: str) -> None:
    """Make the kernel treat an SSD as a new one.

    Args:
        number: its MAJOR:MINOR.

    Raises:
        UserError: it is in use, or gone.
        RunError: it cannot be written.
    """
    disk = blockdev.disk_numbered(number, path_of(number))
    with claim(disk, REPAIR) as held, held.bytes(os.O_RDWR) as ssd:
        contents.erase(ssd)


@contextmanager
def open_ssd(path: str, *, write: bool) -> Iterator[Ssd]:
    """Open an unused device or image; a device is claimed exclusively.

    Raises:
        UserError: it does not exist, may not be opened, or is in use.
    """
    way = os.O_RDWR if write else os.O_RDONLY
    try:
        kind = Path(path).stat().st_mode
    except OSError as error:
        raise UserError(f"cannot open it: {error.strerror}", where=path) from None
    except ValueError:
        raise UserError("the path contains a NUL", where=repr(path)) from None
    if stat.S_ISBLK(kind):
        disk = blockdev.find_volume(path)
        with claim(disk, REPAIR if write else CHECK) as held, held.bytes(way) as ssd:
            yield ssd
        return
    if not stat.S_ISREG(kind):
        raise UserError("is neither a device nor a file", where=path)
    try:
        # O_NONBLOCK: the path may have become a FIFO.
        descriptor = os.open(path, way | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"cannot open it: {error.strerror}", where=path) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UserError("the path was replaced while it was opened", where=path)
        _refuse_loop(path, found)
        yield Ssd(path, descriptor, found.st_size)
    finally:
        os.close(descriptor)


def _refuse_loop(path: str, found: os.stat_result, sys: Path = system.SYS) -> None:
    for loop in sorted((sys / "block").glob("loop*/loop/backing_file")):
        # Also under another name.
        with suppress(OSError):
            if os.path.samestat(Path(loop.read_text().strip()).stat(), found):
                name = loop.parents[1].name
                raise UserError(f"{name} is made of it", where=path, next=f"name /dev/{name}")

# SPDX-License-Identifier: GPL-2.0-only
"""Block devices that are to become a cache, or have been one."""

import os
import stat
from pathlib import Path

from isoblk.cache.base import SECTOR
from isoblk.cache.manage import Volume
from isoblk.errors import UserError
from isoblk.machine import blockdev, system
from isoblk.machine.blockdev import Disk

MAGIC = b"isoblk setcache\0"
# Two copies of the superblock, each at the beginning of its 4 KiB (kernel/cache/README.md).
_COPIES = (0, 4096)
_HEAD = 8192


def any_volume(path: str, sys: Path = system.SYS) -> Disk:
    """A block device, whole or not.

    Raises:
        UserError: it is none.
    """
    try:
        found = Path(path).stat()
    except OSError as error:
        raise UserError(f"no such device: {error.strerror}", where=path) from None
    if not stat.S_ISBLK(found.st_mode):
        raise UserError("is not a block device", where=path, next="name one, such as /dev/sdb1")
    number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    place = (sys / "dev/block" / number).resolve()
    return Disk(path, place.name, number, place)


def path_of(number: str, sys: Path = system.SYS) -> str:
    """Path of the device with a number, MAJOR:MINOR."""
    # The kernel writes / as !.
    return "/dev/" + (sys / "dev/block" / number).resolve().name.replace("!", "/")


def volume(disk: Disk) -> Volume:
    """The device as a cache is made of it."""
    return Volume(disk.path, int((disk.sys / "size").read_text()) * SECTOR)


def refuse_overlap(one: Disk, other: Disk) -> None:
    """Check that two devices have nothing in common.

    Raises:
        UserError: they are the same, or one is a part of the other.
    """
    if one.number == other.number:
        raise UserError("is named twice", where=one.path, next="name the SSD, another device")
    for whole, part in ((one, other), (other, one)):
        if whole.sys in part.sys.parents:
            raise UserError(f"is a part of {whole.path}", where=part.path)


def refuse_in_use(disk: Disk) -> None:
    """Check that nobody uses a device, or a part of it.

    Raises:
        UserError: somebody does.
    """
    blockdev.refuse_in_use(disk)
    with blockdev.hold(disk):
        pass


def holds_cache(path: str) -> bool:
    """Whether a device has a superblock of dm-setcache.

    Raises:
        UserError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as device:
            head = device.read(_HEAD)
    except OSError as error:
        raise UserError(f"cannot read it: {error.strerror}", where=path) from None
    return any(head[at : at + len(MAGIC)] == MAGIC for at in _COPIES)


def refuse_signed(disk: Disk, wipe: str | None) -> None:
    """Check that an SSD may be overwritten.

    Raises:
        UserError: it bears a signature, and `wipe` does not name it.
    """
    if wipe not in (None, disk.path):
        raise UserError(
            f"--wipe names {wipe}, and the SSD is {disk.path}",
            next="name the same, or leave --wipe",
        )
    if wipe is None and (what := blockdev.signatures(disk)):
        raise UserError(
            f"bears a signature: {', '.join(what)}",
            where=disk.path,
            next=f"if all on it may be lost: --wipe {disk.path}",
        )


def erase(path: str) -> None:
    """Make the target take an SSD for a new one.

    Raises:
        UserError: it cannot be written.
    """
    try:
        with Path(path).open("r+b", buffering=0) as device:
            device.write(bytes(_HEAD))
            os.fsync(device.fileno())
    except OSError as error:
        raise UserError(f"cannot write to it: {error.strerror}", where=path) from None

# SPDX-License-Identifier: GPL-2.0-only
"""What is captured: a block device of this machine, whole or a partition."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from isoblk.capture.events import Range
from isoblk.errors import UserError
from isoblk.machine import system

SECTOR = 512


@dataclass(frozen=True)
class Target:
    """A block device. path: as it was named. name: the kernel's. number: MAJ:MIN. sys: its
    directory. disk: that of the disk that it is, or is a part of. first: its first sector there.
    sectors: how many."""

    path: str
    name: str
    number: str
    sys: Path
    disk: Path
    first: int
    sectors: int

    @property
    def range(self) -> Range:
        """Whose requests are its."""
        major, minor = (self.disk / "dev").read_text().strip().split(":")
        if self.disk == self.sys:
            return Range(int(major), int(minor))
        return Range(int(major), int(minor), self.first, self.first + self.sectors)

    @property
    def scheduler(self) -> str:
        """The scheduler in use; "none" for a device that has no requests."""
        try:
            return system.chosen((self.disk / "queue/scheduler").read_text().strip())
        except OSError:
            return "none"

    @property
    def logical_block_size(self) -> int:
        """Bytes."""
        return int((self.disk / "queue/logical_block_size").read_text())


def find_target(path: str, sys: Path = system.SYS) -> Target:
    """The device that a path names.

    Raises:
        UserError: it names no block device.
    """
    try:
        found = Path(path).stat()
    except OSError as error:
        raise UserError(
            f"no such device: {error.strerror}", where=path, next="see: lsblk"
        ) from None
    if not stat.S_ISBLK(found.st_mode):
        raise UserError("not a block device", where=path, next="name a disk, such as /dev/sdb")
    number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    place = (sys / "dev/block" / number).resolve()
    if not (place / "size").exists():
        raise UserError("the kernel has no such device", where=path, next="see: lsblk")
    part = (place / "partition").exists()
    return Target(
        path=path,
        name=place.name,
        number=number,
        sys=place,
        disk=place.parent if part else place,
        first=int((place / "start").read_text()) if part else 0,
        sectors=int((place / "size").read_text()),
    )


def lies_on(directory: Path, target: Target, sys: Path = system.SYS) -> bool:
    """Whether files in `directory` are on the target: what writes them would be captured too."""
    number = directory.stat().st_dev
    place = (sys / "dev/block" / f"{os.major(number)}:{os.minor(number)}").resolve()
    above = [place] if place.exists() else []
    while above:
        one = above.pop()
        if target.sys in (one, one.parent) or (target.disk != target.sys and target.disk == one):
            return True
        above += [link.resolve() for link in (one / "slaves").glob("*")]
        if (one / "partition").exists():
            above.append(one.parent)
    return False

# SPDX-License-Identifier: GPL-2.0-only
"""The target of a capture: a block device of this machine, whole or a partition."""

import os
from dataclasses import dataclass
from pathlib import Path

from isoblk.capture.events import Range
from isoblk.machine import system
from isoblk.machine.blockdev import find_volume

SECTOR = 512


@dataclass(frozen=True)
class Target:
    """A block device. path: as given. name: the kernel's. number: MAJ:MIN. sys: its directory in
    sysfs. disk: that of the whole disk. first: its first sector on the disk. sectors: its
    length."""

    path: str
    name: str
    number: str
    sys: Path
    disk: Path
    first: int
    sectors: int

    @property
    def range(self) -> Range:
        """Return the sectors of its requests."""
        major, minor = (self.disk / "dev").read_text().strip().split(":")
        if self.disk == self.sys:
            return Range(int(major), int(minor))
        return Range(int(major), int(minor), self.first, self.first + self.sectors)

    @property
    def scheduler(self) -> str:
        """Return the scheduler in use; "none" for a device without requests."""
        try:
            return system.chosen((self.disk / "queue/scheduler").read_text().strip())
        except OSError:
            return "none"

    @property
    def logical_block_size(self) -> int:
        """Return the size of a logical block, bytes."""
        return int((self.disk / "queue/logical_block_size").read_text())


def find_target(path: str, sys: Path = system.SYS) -> Target:
    """Return the block device that a path names.

    Raises:
        UserError: it does not name a block device.
    """
    volume = find_volume(path, sys)
    part = volume.whole != volume.sys
    return Target(
        path=path,
        name=volume.name,
        number=volume.number,
        sys=volume.sys,
        disk=volume.whole,
        first=int((volume.sys / "start").read_text()) if part else 0,
        sectors=int((volume.sys / "size").read_text()),
    )


def lies_on(directory: Path, target: Target, sys: Path = system.SYS) -> bool:
    """Return whether files in `directory` are on the target, so that writes to them would be
    captured."""
    number = directory.stat().st_dev
    place = (sys / "dev/block" / f"{os.major(number)}:{os.minor(number)}").resolve()
    above = [place] if place.exists() else []
    while above:
        device = above.pop()
        if target.sys in (device, device.parent) or (
            target.disk != target.sys and target.disk == device
        ):
            return True
        above += [link.resolve() for link in (device / "slaves").glob("*")]
        if (device / "partition").exists():
            above.append(device.parent)
    return False

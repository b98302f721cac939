# SPDX-License-Identifier: GPL-2.0-only
"""Software RAID of md, set up through sysfs (the kernel's Documentation/admin-guide/md.rst) without
a superblock: an array of whole disks that is in sync from the start."""

from collections.abc import Mapping, Sequence

from isoblk.layers.base import Layer
from isoblk.run.shell import Statement, To, run, write

_NAME = "md0"
_MD = f"/sys/block/{_NAME}/md"

# mdadm's default.
_CHUNK = 512 << 10
# Parity moves from the last disk to the first, data follow it: mdadm's default.
_LEFT_SYMMETRIC = 2


class Raid(Layer):
    """An array.

    Args:
        name: its level, in the words of md and studies.
        disks: number of disks.
        data: number of disks' worth of data.
    """

    block = _NAME
    device = f"/dev/{_NAME}"

    def __init__(self, name: str, disks: int, data: int) -> None:
        self.name = name
        self.disks = disks
        self._data = data

    def needs(self) -> Mapping[str, str]:  # noqa: D102
        return {}

    def size(self, below: int) -> int:  # noqa: D102
        return below // _CHUNK * _CHUNK * self._data

    def make(self, below: Sequence[str], size: int) -> list[Statement]:  # noqa: D102
        kib = size // _CHUNK * _CHUNK >> 10
        return [
            write(_NAME, "/sys/module/md_mod/parameters/new_array"),
            write(self.name, f"{_MD}/level"),
            write(self.disks, f"{_MD}/raid_disks"),
            *([] if self.name == "raid1" else [write(_CHUNK, f"{_MD}/chunk_size")]),
            *([write(_LEFT_SYMMETRIC, f"{_MD}/layout")] if self.name == "raid5" else []),
            *(line for slot, disk in enumerate(below) for line in _join(disk, slot, kib)),
            write(kib, f"{_MD}/component_size"),
            write("none", f"{_MD}/resync_start"),
            write("active", f"{_MD}/array_state"),
        ]


def _join(disk: str, slot: int, kib: int) -> list[Statement]:
    """Return the commands that make `kib` KiB of a disk a member."""
    member = f"{_MD}/dev-{disk}"
    return [
        run("cat", f"/sys/block/{disk}/dev", To(f"{_MD}/new_dev")),
        write(kib, f"{member}/size"),
        write(slot, f"{member}/slot"),
    ]

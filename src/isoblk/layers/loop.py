# SPDX-License-Identifier: GPL-2.0-only
"""An image file, as of virtual machines and containers: a loop device with direct I/O."""

from collections.abc import Mapping, Sequence

from isoblk.layers.base import MIB, Layer
from isoblk.run.shell import Statement, run

_DIRECTORY = "/run/images"
_IMAGE = f"{_DIRECTORY}/image"


class Loop(Layer):
    """A file that fills an ext4 on the disk."""

    name = "loop"
    keeps = True
    block = "loop0"
    device = "/dev/loop0"

    def needs(self) -> Mapping[str, str]:  # noqa: D102
        return {"mkfs.ext4": "e2fsprogs", "losetup": "util-linux", "fallocate": "util-linux"}

    def size(self, below: int) -> int:
        """Return seven eighths: ext4 with its journal takes less than an eighth."""
        return (below - below // 8) // MIB * MIB

    def make(self, below: Sequence[str], size: int) -> list[Statement]:  # noqa: D102
        disk = f"/dev/{below[0]}"
        eager = "lazy_itable_init=0,lazy_journal_init=0"
        return [
            run("mkfs.ext4", "-q", "-F", "-m", 0, "-T", "largefile", "-E", eager, disk),
            run("mkdir", _DIRECTORY),
            run("mount", disk, _DIRECTORY),
            run("fallocate", "-l", self.size(size), _IMAGE),
            run("losetup", "--direct-io=on", self.device, _IMAGE),
        ]

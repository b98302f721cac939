# SPDX-License-Identifier: GPL-2.0-only
"""What a block layer must tell of itself so that a study's stack can have it.

A layer makes one device of those below it; the tenants use the uppermost. docs/reference/studies.md
is about stacks.
"""

from collections.abc import Mapping, Sequence

from isoblk.run.shell import DM_MAJOR, Command, Statement, Syntax, run

SECTOR = 512
MIB = 1 << 20


class Layer:
    """One kind of layer; `name` is what a study calls it.

    Attributes:
        name: in a study, and of its device-mapper device if it is one.
        disks: of the run, that it is made of. A layer of several is the lowest.
        keeps: it has metadata of its own on the disk, and reads find no data before a write.
        block: the kernel's name of the device that it makes.
        device: the path of that device.
    """

    name: str
    disks = 1
    keeps = False
    block: str
    device: str

    def needs(self) -> Mapping[str, str]:
        """Executables that its commands call, and the Debian packages that hold them."""
        raise NotImplementedError

    def size(self, below: int) -> int:
        """Bytes of its device, at least.

        Args:
            below: bytes of each device below; too few give 0 or less.
        """
        return below

    def make(self, below: Sequence[str], size: int) -> list[Statement]:
        """Commands that make its device.

        Args:
            below: the kernel's names of the devices that it is made of.
            size: bytes of each.
        """
        raise NotImplementedError


def zeros(path: str, mib: int) -> Command:
    """Command that writes so many MiB of zeros to the start of a device."""
    how = ("bs=1M", f"count={mib}", "oflag=direct", Syntax.QUIET)
    return run("dd", "if=/dev/zero", f"of={path}", *how)


def dm_device(name: str, minor: int, size: int, target: str) -> Command:
    """Command that makes a device-mapper device of one target. target: its line, from the name."""
    number = ("--major", DM_MAJOR, "--minor", minor)
    return run("dmsetup", "create", name, *number, "--table", f"0 {size // SECTOR} {target}")

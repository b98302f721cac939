# SPDX-License-Identifier: GPL-2.0-only
"""The interface of a block layer in a study's stack.

A layer makes one device from those below it; the tenants use the uppermost.
docs/reference/studies.md is about stacks.
"""

from collections.abc import Mapping, Sequence

from isoblk.run.shell import DM_MAJOR, Command, Statement, Syntax, run

SECTOR = 512
MIB = 1 << 20


class Layer:
    """A kind of layer. `name` is its name in studies.

    Attributes:
        name: in a study, and of its device-mapper device if it has one.
        disks: number of the run's disks that it needs. A layer of several is the lowest.
        keeps: whether it has metadata on the disk, so that reads before any write return no data.
        block: the kernel's name of its device.
        device: the path of that device.
    """

    name: str
    disks = 1
    keeps = False
    block: str
    device: str

    def needs(self) -> Mapping[str, str]:
        """Return executables that its commands call, and the Debian packages that contain them."""
        raise NotImplementedError

    def size(self, below: int) -> int:
        """Return the least size of its device, bytes.

        Args:
            below: bytes of each device below; the result is 0 or less if they are too few.
        """
        return below

    def make(self, below: Sequence[str], size: int) -> list[Statement]:
        """Return the commands that make its device.

        Args:
            below: the kernel's names of the devices below.
            size: bytes of each.
        """
        raise NotImplementedError


def zeros(path: str, mib: int) -> Command:
    """Return the command that writes `mib` MiB of zeros to the start of a device."""
    how = ("bs=1M", f"count={mib}", "oflag=direct", Syntax.QUIET)
    return run("dd", "if=/dev/zero", f"of={path}", *how)


def dm_device(name: str, minor: int, size: int, target: str) -> Command:
    """Return the command that makes a device-mapper device of one target. target: its line, from
    the name."""
    number = ("--major", DM_MAJOR, "--minor", minor)
    return run("dmsetup", "create", name, *number, "--table", f"0 {size // SECTOR} {target}")

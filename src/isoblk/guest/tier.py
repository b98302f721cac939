# SPDX-License-Identifier: GPL-2.0-only
"""The tiers: what a script, and a result, must know of the machine it belongs to."""

from dataclasses import dataclass
from typing import Literal

TierName = Literal["uml", "qemu", "host"]


@dataclass(frozen=True)
class Tier:
    """One kind of machine.

    Attributes:
        name: as results and reports call it.
        path: directories of programs, in the order of the search.
        end_to: redirection of the line that tells how the script ended.
        mount_run: command that mounts the run's directory; the mount point is appended.
        cpus: processors, and hardware queues of a null_blk disk.
        virtual_time: time passes only while nobody computes.
    """

    name: TierName
    path: str
    end_to: str
    mount_run: str
    cpus: int
    virtual_time: bool


UML = Tier(
    "uml",
    # The order decides how often a program is searched in vain, which reads the clock.
    "/usr/sbin:/usr/bin:/sbin:/bin",
    "",
    'mount -t hostfs -o "$RUN" host',
    cpus=1,
    virtual_time=True,
)
# By way of the kernel's log, where no other line of the kernel's gets between its letters.
# msize: the largest message, which QEMU recommends to raise from 128 KiB for big files.
QEMU = Tier(
    "qemu",
    # BusyBox first: in memory, while the host's programs come over 9p.
    "/bin:/sbin:/usr/bin:/usr/sbin",
    " > /dev/kmsg",
    "mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 run",
    cpus=4,
    virtual_time=False,
)

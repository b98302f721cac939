# SPDX-License-Identifier: GPL-2.0-only
"""The tiers: what a script, and a result, must know of the machine it belongs to."""

import os
from dataclasses import dataclass
from typing import Literal

TierName = Literal["uml", "qemu", "host"]


@dataclass(frozen=True)
class Place:
    """Where a script finds what it works on.

    Attributes:
        disk: the kernel's name of the disk.
        run: the run's directory.
        hierarchy: the root of the cgroups that have io.
        group: the cgroup below it that the tenants' are made in; "" for the root itself.
    """

    disk: str
    run: str
    hierarchy: str
    group: str

    @property
    def cgroup(self) -> str:
        """Directory that the tenants' cgroups are in."""
        return f"{self.hierarchy}/{self.group}" if self.group else self.hierarchy

    def cgroup_of(self, path: str) -> str:
        """Directory of a tenant's cgroup, or of one that such cgroups are in. A path with a slash
        in front is that of a cgroup that was there before, from the root of the hierarchy."""
        return f"{self.hierarchy if path.startswith('/') else self.cgroup + '/'}{path}"

    @property
    def queue(self) -> str:
        """Directory of the disk's request queue."""
        return f"/sys/block/{self.disk}/queue"


_IN_GUEST = Place("disk0", "/run/isoblk", "/sys/fs/cgroup", "")


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
        place: where a script finds the disk and the cgroups.
        anywhere: the place that a run is named by, wherever it is made.
    """

    name: TierName
    path: str
    end_to: str
    mount_run: str
    cpus: int
    virtual_time: bool
    place: Place = _IN_GUEST
    anywhere: Place = _IN_GUEST


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

_ON_HOST = Place("disk", ".", "/sys/fs/cgroup", "isoblk")
# The script changes the machine that isoblk itself runs on. How it ends goes to the console.
HOST = Tier(
    "host",
    "/usr/sbin:/usr/bin:/sbin:/bin",
    "",
    "",
    cpus=os.cpu_count() or 1,
    virtual_time=False,
    place=_ON_HOST,
    anywhere=_ON_HOST,
)

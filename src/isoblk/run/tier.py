# SPDX-License-Identifier: GPL-2.0-only
"""The tiers: what a script, and a result, must know of the machine it belongs to."""

import os
from dataclasses import dataclass
from typing import Literal

from isoblk.run.shell import Form

TierName = Literal["uml", "smp", "qemu", "icount", "host"]

EXACT: frozenset[TierName] = frozenset({"uml", "icount"})
"""Tiers on which two runs of one spec are equal to the byte."""
ICOUNT_CPUS_MAX = 8


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
        at_end: what the script does at its end, whatever the reason: it tells how it ended.
        mount_run: command that mounts the run's directory, if that is to be done.
        cpus: processors, and hardware queues of a null_blk disk.
        chosen_cpus: the user chooses their number.
        virtual_time: time passes only while nobody computes.
        place: where a script finds the disk and the cgroups.
        anywhere: the place that a run is named by, wherever it is made.
    """

    name: TierName
    path: str
    at_end: Form
    mount_run: Form | None
    cpus: int
    virtual_time: bool
    chosen_cpus: bool = False
    place: Place = _IN_GUEST
    anywhere: Place = _IN_GUEST


class _Line(Form):
    TELL = "trap 'echo \"plan: exit status $?\"' EXIT"
    TELL_AND_STOP = (
        "trap 'echo \"plan: exit status $?\"; echo o > /proc/sysrq-trigger; sleep 9' EXIT"
    )
    # By way of the kernel's log, where no other line of the kernel's gets between its letters.
    LOG_AND_STOP = (
        "trap 'echo \"plan: exit status $?\" > /dev/kmsg; echo o > /proc/sysrq-trigger; sleep 9'"
        " EXIT"
    )
    LOG = "trap 'echo \"plan: exit status $?\" > /dev/kmsg' EXIT"
    # By the older of the kernel's two ways to mount, which alone takes a path for hostfs' options;
    # util-linux 2.41 goes the newer way, 2.39.3 does not yet.
    MOUNT_HOSTFS = 'LIBMOUNT_FORCE_MOUNT2=always mount -t hostfs -o "$RUN" host {directory}'
    # msize: the largest message, which QEMU recommends to raise from 128 KiB for big files.
    MOUNT_9P = "mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 run {directory}"
    MOUNT_INITRAMFS = "mount -o bind /isoblk {directory}"


UML = Tier(
    "uml",
    # The order decides how often a program is searched in vain, which reads the clock.
    "/usr/sbin:/usr/bin:/sbin:/bin",
    _Line.TELL_AND_STOP,
    _Line.MOUNT_HOSTFS,
    cpus=1,
    virtual_time=True,
)
SMP = Tier(
    "smp",
    UML.path,
    _Line.TELL_AND_STOP,
    _Line.MOUNT_HOSTFS,
    cpus=4,
    virtual_time=False,
)
QEMU = Tier(
    "qemu",
    # BusyBox first: in memory, while the host's programs come over 9p.
    "/bin:/sbin:/usr/bin:/usr/sbin",
    _Line.LOG_AND_STOP,
    _Line.MOUNT_9P,
    cpus=4,
    virtual_time=False,
)
ICOUNT = Tier(
    "icount",
    QEMU.path,
    # The machine's init copies the results to the host before it powers off.
    _Line.LOG,
    _Line.MOUNT_INITRAMFS,
    cpus=4,
    virtual_time=False,
    chosen_cpus=True,
)

_ON_HOST = Place("disk", ".", "/sys/fs/cgroup", "isoblk")
# The script changes the machine that isoblk itself runs on. How it ends goes to the console.
HOST = Tier(
    "host",
    "/usr/sbin:/usr/bin:/sbin:/bin",
    _Line.TELL,
    None,
    cpus=os.cpu_count() or 1,
    virtual_time=False,
    place=_ON_HOST,
    anywhere=_ON_HOST,
)

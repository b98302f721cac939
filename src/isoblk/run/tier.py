# SPDX-License-Identifier: GPL-2.0-only
"""Tiers: the properties of a machine that a script, and a result, depend on."""

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
    """The paths that a script works on.

    Attributes:
        disk: the kernel's name of the disk.
        run: the run's directory.
        hierarchy: root of the cgroups with the io controller.
        group: parent of the tenants' cgroups below it; "" for the root itself.
    """

    disk: str
    run: str
    hierarchy: str
    group: str

    @property
    def cgroup(self) -> str:
        """Return the directory of the tenants' cgroups."""
        return f"{self.hierarchy}/{self.group}" if self.group else self.hierarchy

    def cgroup_of(self, path: str) -> str:
        """Return the directory of a tenant's cgroup, or of an inner one. A path with a leading
        slash is that of an existing cgroup, from the root of the hierarchy."""
        return f"{self.hierarchy if path.startswith('/') else self.cgroup + '/'}{path}"

    @property
    def queue(self) -> str:
        """Return the directory of the disk's request queue."""
        return f"/sys/block/{self.disk}/queue"


_IN_GUEST = Place("disk0", "/run/isoblk", "/sys/fs/cgroup", "")


@dataclass(frozen=True)
class Tier:
    """A kind of machine.

    Attributes:
        name: in results and reports.
        path: directories of programs, in the order of the search.
        at_end: statements at the end of the script, after success or failure: they report how it
            ended.
        mount_run: command that mounts the run's directory, if it must be mounted.
        cpus: processors, and hardware queues of a null_blk disk.
        chosen_cpus: whether the user chooses their number.
        virtual_time: whether computation takes no time.
        place: paths of the disk and the cgroups.
        anywhere: the place in a run's id, wherever the run is made.
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
    # Through the kernel's log, which does not mix a line with the kernel's own.
    LOG_AND_STOP = (
        "trap 'echo \"plan: exit status $?\" > /dev/kmsg; echo o > /proc/sysrq-trigger; sleep 9'"
        " EXIT"
    )
    LOG = "trap 'echo \"plan: exit status $?\" > /dev/kmsg' EXIT"
    # LIBMOUNT_FORCE_MOUNT2: hostfs takes a path as option only from mount(2), and util-linux 2.41
    # uses the newer API (2.39.3 does not yet).
    MOUNT_HOSTFS = 'LIBMOUNT_FORCE_MOUNT2=always mount -t hostfs -o "$RUN" host {directory}'
    # msize: the largest message, which QEMU recommends to raise from 128 KiB for big files.
    MOUNT_9P = "mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 run {directory}"
    MOUNT_INITRAMFS = "mount -o bind /isoblk {directory}"


UML = Tier(
    "uml",
    # The order determines the failed look-ups of a program, and each reads the clock.
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
    # BusyBox first: it is in memory, while the host's programs come over 9p.
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
# The script changes the machine that isoblk itself runs on, and reports its end on the console.
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

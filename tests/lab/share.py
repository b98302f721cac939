# SPDX-License-Identifier: GPL-2.0-only
"""Script lines for the schedulers of kernel/sched, and a guest that must not complain."""

from dataclasses import dataclass

from isoblk.run.spec import CgroupVersion
from tests.lab.guest import Guest, Left
from tests.lab.load import CGROUP, script

# Those that divide by budgets, those that divide by weight exactly, and all of ours.
ELEVATORS = ("kyber-fair", "feedbac")
EXACT = ("isoblk", *ELEVATORS)
ALL = (*EXACT, "cfq")
SCHEDULERS = ("isoblk_share", *(f"{name}-iosched" for name in ALL))
MODULES = ("isoblk_vdisk", "null_blk", "blkload", *SCHEDULERS)
UNLOAD = "rmmod " + " ".join(name.replace("-", "_") for name in reversed(SCHEDULERS))
WEIGHT = {"v1": "blkio.isoblk.weight", "v2": "io.isoblk.weight"}
# The keys of a group in io.stat, in addition to its charge.
LEFT = {
    "kyber-fair": ("isoblk.budget", "isoblk.wait_us"),
    "feedbac": ("isoblk.credit", "isoblk.wait_us"),
    "isoblk": ("isoblk.wait_us",),
}

_COMPLAINTS = ("WARNING", "BUG", "UBSAN", "INFO:", "Call Trace", "stack-trace")


@dataclass(frozen=True)
class Quiet:
    """A guest with our schedulers, whose console must be clean."""

    guest: Guest

    def run(
        self,
        *parts: str,
        cgroup: CgroupVersion = "v2",
        memory_mib: int = 512,
        more: tuple[str, ...] = (),
    ) -> Left:
        """Run the script; it has put and try. more: further modules."""
        left = self.guest.run(
            script(*parts), modules=(*MODULES, *more), cgroup=cgroup, memory_mib=memory_mib
        )
        complaints = [
            line for line in left.console.splitlines() if any(word in line for word in _COMPLAINTS)
        ]
        assert complaints == [], left.console
        return left


def use(elevator: str, disk: str = "disk0") -> str:
    """Choose a disk's scheduler."""
    return f"echo {elevator} > /sys/block/{disk}/queue/scheduler"


def number(disk: str = "disk0") -> str:
    """A disk's MAJ:MIN, for a double-quoted word of the script."""
    return f"$(cat /sys/block/{disk}/dev)"


def sched(disk: str = "disk0") -> str:
    """Where a disk's scheduler shows its state."""
    return f"/sys/kernel/debug/block/{disk}/sched"


def group(path: str, version: CgroupVersion = "v2") -> str:
    """Make a cgroup with io counted in it."""
    if version == "v1":
        return f"mkdir {CGROUP}{path}"
    parent = (CGROUP + path).rpartition("/")[0]
    return f"echo +io > {parent}/cgroup.subtree_control; mkdir {CGROUP}{path}"


def keep(file: str, label: str) -> str:
    """Append a file's contents to what the guest leaves as `label`."""
    return f"cat {file} >> /run/isoblk/{label}"


def io_stats(content: str) -> dict[str, dict[str, int]]:
    """io.stat of a cgroup: MAJ:MIN to its figures; devices without any are left out."""
    parts = (line.split() for line in content.splitlines())
    return {
        device: {name: int(value) for name, value in (word.split("=") for word in words)}
        for device, *words in parts
        if words
    }

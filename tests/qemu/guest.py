# SPDX-License-Identifier: GPL-2.0-only
"""Run a few lines of shell in a guest with four processors, and read what they left."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isoblk.campaign.execute import Bench
from isoblk.kernel import Kernel, host_library
from isoblk.machine.qemu import Qemu
from isoblk.machine.smp import Smp
from isoblk.plan.plan import prologue
from isoblk.run.shell import render
from isoblk.run.spec import CgroupVersion
from isoblk.run.tier import QEMU, SMP
from tests.lab.guest import Left, console_noted

# A guest that takes longer has hung. On an idle machine the longest takes two minutes; a loaded or
# slow one may take several times as long, and is no reason to fail.
TIME_LIMIT_S = 1200.0

# `make storm` and `make test-night` set it.
_WHOLE_STORMS = "WHOLE_STORMS" in os.environ


# The kernel's message when isoblk's tick finds a disk idle while requests wait.
_IDLE = "no request was in flight while some waited"


def part_of(whole: int) -> int:
    """Seconds, or rounds, that only lengthen a storm: all of them in `make storm`, else a sixth."""
    return whole if _WHOLE_STORMS else whole // 6


@dataclass(frozen=True)
class Guest:
    """A kernel with modules, and where the runs of this guest are kept. A PC's kernel is run in
    QEMU, one of User Mode Linux by itself, with `cpus` processors and room for `absent` more."""

    bench: Bench
    tmp: Path
    cpus: int = SMP.cpus
    absent: int = 0

    @property
    def kernel(self) -> Kernel:
        """The kernel under test."""
        return self.bench.kernel

    def run(
        self,
        script: str,
        *,
        modules: Sequence[str] = ("isoblk_vdisk", "blkload"),
        load: bool = True,
        cgroup: CgroupVersion = "v2",
        timeout: float = TIME_LIMIT_S,
        memory_mib: int = 512,
        more: Sequence[str] = (),
    ) -> Left:
        """Run `script` after the usual prologue, with `set -eu` in force.

        In QEMU the shell and its tools are BusyBox's; the host's programs are found behind them.

        Args:
            script: writes what shall be read to /run/isoblk.
            modules: names without .ko, in the order in which they load.
            load: whether the prologue loads them; else they only lie in /run/isoblk/modules.
            timeout: wall-clock seconds until it counts as hung.
            more: further arguments for QEMU, with which a PC has more than its four processors.

        Raises:
            RunError: a line failed; the kernel said BUG, WARNING or the like; or it hung.
            AssertionError: on processors of the host an elevator left a disk idle while requests
                waited. An emulated processor may stand still for longer than that takes to tell.
        """
        directory = self.tmp / "guest"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        emulated = self.kernel.arch == "x86_64"
        tier = QEMU if emulated else SMP
        lines = [render(prologue(tuple(modules) if load else (), cgroup, tier)), script]
        (directory / "plan.sh").write_text("\n".join(lines) + "\n")
        machine = (
            Qemu(self.kernel, time_limit_s=timeout, more=more)
            if emulated
            else Smp(
                self.kernel,
                host_library(self.kernel),
                time_limit_s=timeout,
                cpus=self.cpus,
                absent=self.absent,
            )
        )
        with console_noted(directory):
            machine.run(
                directory,
                [self.bench.modules[name] for name in modules],
                seed=1,
                memory_mib=memory_mib,
            )
        left = Left(directory)
        assert emulated or _IDLE not in left.console
        return left

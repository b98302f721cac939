# SPDX-License-Identifier: GPL-2.0-only
"""The smp machine: the kernel as an ordinary process with several processors, in real time.

Tier "smp": the cost of a request and contended locks, on the processors of the host. No two runs
are equal, and machines differ: compare runs that alternate, in one boot.

Each processor of the guest is a thread, so the host may preempt one that holds a lock, as the host
of a virtual machine does. More processors than the host has cores make that frequent.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from isoblk.kernel import Kernel
from isoblk.machine import Ran
from isoblk.machine.process import DIE_WITH_PARENT, Processes
from isoblk.machine.trouble import trouble
from isoblk.machine.uml import guest_command, preloaded, staged
from isoblk.run.tier import SMP


class Smp:
    """Run scripts in User Mode Linux on several processors; concurrently, from any threads.

    Args:
        kernel: the kernel to boot, of architecture um-smp.
        library: gives its processors their stacks: isoblk.kernel.host_library().
        time_limit_s: wall-clock seconds after which a run counts as hung.
        cpus: processors of the guest; by default the tier's.
        absent: further possible processors. They never run; a disk may have a hardware queue for
            each.
    """

    def __init__(
        self,
        kernel: Kernel,
        library: Path,
        *,
        time_limit_s: float,
        cpus: int = SMP.cpus,
        absent: int = 0,
    ) -> None:
        self.tier = replace(SMP, cpus=cpus)
        self._absent = absent
        self._kernel = kernel
        self._library = library
        self._processes = Processes(time_limit_s, trouble)

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        """Boot, run `directory`/plan.sh as init, and wait for the power-off.

        The guest sees `directory` as /run/isoblk, with the modules in modules/, and the host's
        files, read-only. The console goes to console.log.

        Args:
            directory: of the run.
            modules: of the run.
            seed: unused: two runs are never equal.
            memory_mib: memory of the guest.

        Raises:
            RunError: the kernel or a step of the script failed, or it hung.
            UserError: UML cannot be started, or does not run on this machine.
        """
        with (
            staged(directory, modules, memory_mib) as place,
            self._library.open("rb") as library,
        ):
            how = (
                f"ncpus={self.tier.cpus + self._absent}",
                f"maxcpus={self.tier.cpus}",
                # seccomp: with ptrace, only one processor can run the guest's programs.
                "seccomp=on",
                # A processor stops whenever the host preempts its thread.
                "rcupdate.rcu_cpu_stall_timeout=120",
            )
            return self._processes.run(
                [*DIE_WITH_PARENT, *guest_command(self._kernel, memory_mib, how)],
                directory,
                {"TMPDIR": str(place), "LD_PRELOAD": preloaded(library.fileno())},
                keep=(library.fileno(),),
            )

    def stop(self) -> None:
        """Stop all machines, and refuse new ones. Their run() raises."""
        self._processes.stop()

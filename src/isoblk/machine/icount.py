# SPDX-License-Identifier: GPL-2.0-only
"""The icount machine: an emulated PC whose clock counts instructions.

Tier "icount": the processor time of a request, undisturbed by the host. QEMU executes one
instruction per nanosecond of the guest's time, and skips the time in which all processors are idle.
The guest's clocks (TSC, timers, RTC) all follow this one count.

Two runs of one script and seed are equal to the byte, by three rules:
- The guest reads nothing from the host while it runs. BusyBox, the modules, the script and its
  traces are in the initramfs; the results leave over 9p after the script has ended.
- No clock is the host's: the RTC begins at a fixed date and follows the count.
- No random number is the host's. The kernel mixes its command line, which has the run's seed, into
  its pool; QEMU draws its own numbers from the same seed.

Limits:
- All processors share the one count. QEMU executes them in turn in one thread, so four processors
  together have the speed of one. A processor's turn ends where it halts, pauses or is interrupted,
  or when a timer is due: races that need another interleaving do not occur.
- Every instruction costs the same. There are no caches, no memory stalls, no branch mispredictions
  and no contended cache lines: the figures are counts of instructions, not times of a processor.
- A processor is one of 1 GHz that executes one instruction in each cycle.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from isoblk.errors import UserError
from isoblk.kernel import Kernel
from isoblk.kernel.tools import install_command
from isoblk.machine import Ran, initramfs, qemu
from isoblk.machine.process import DIE_WITH_PARENT, Processes
from isoblk.run.tier import ICOUNT

# The guest's /isoblk, with the contents of the run's directory on the host.
_RUN = "isoblk"

_INIT = """\
#!/bin/busybox sh
# The guest's first program. /inputs names what lies in /isoblk before the script runs.
export PATH=/bin
/bin/busybox --install -s /bin
for module in /modules/*.ko; do
    [ ! -e "$module" ] || insmod "$module"
done
sh /isoblk/plan.sh
# From here on the host takes part: nothing is measured any more.
cd /isoblk
rm -r $(cat /inputs)
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 run /mnt && cp -r . /mnt ||
    echo "plan: exit status 1" > /dev/kmsg
umount /mnt
poweroff -f
"""


class Icount:
    """Run scripts in an emulated PC that counts instructions; concurrently, from any threads.

    Args:
        kernel: the kernel to boot, of architecture x86_64.
        time_limit_s: wall-clock seconds after which a run counts as hung.
        cpus: processors, 1 to ICOUNT_CPUS_MAX.
        possible: processors for which the kernel has room; `cpus` by default. A disk may have as
            many hardware queues.
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        time_limit_s: float,
        cpus: int = ICOUNT.cpus,
        possible: int | None = None,
    ) -> None:
        self.tier = replace(ICOUNT, cpus=cpus)
        self._kernel = kernel
        self._possible = possible or cpus
        self._processes = Processes(time_limit_s)

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        """Boot, run `directory`/plan.sh, copy its results to `directory`, and power off.

        The guest has a copy of `directory` as /run/isoblk, with the modules in modules/; the
        console goes to console.log. The guest does not see the host's files.

        Args:
            directory: of the run.
            modules: of the run.
            seed: of all random numbers of the guest.
            memory_mib: memory of the guest.

        Raises:
            RunError: the kernel or a step of the script failed, or it hung.
            UserError: QEMU or BusyBox is missing.
        """
        emulator = qemu.program()
        if emulator is None:
            raise UserError("QEMU is missing", next=install_command(["qemu-system-x86"]))
        base = sorted(self._kernel.base_modules.glob("*.ko")) if self._kernel.stock else []
        archive = initramfs.archive(contents(directory, modules, base))
        own_files = directory / qemu.OWN_FILES
        own_files.mkdir()
        try:
            (own_files / "initramfs").write_bytes(archive)
            words = arguments(self._kernel, memory_mib, self.tier.cpus, self._possible, seed)
            return self._processes.run([*DIE_WITH_PARENT, emulator, *words], directory, {})
        finally:
            shutil.rmtree(own_files, ignore_errors=True)

    def stop(self) -> None:
        """Stop all machines, and refuse new ones. Their run() raises."""
        self._processes.stop()


def contents(
    directory: Path, modules: Sequence[Path], base: Sequence[Path]
) -> list[initramfs.Entry]:
    """Return the guest's file system.

    Args:
        directory: of the run, with plan.sh and traces.
        modules: of the run.
        base: modules that are loaded before the script, in this order.
    """
    inputs = sorted(directory.rglob("*"))
    top = [path.name for path in inputs if path.parent == directory]
    return [
        *map(initramfs.directory, ("bin", "dev", "mnt", "modules", "proc", "run", "sys", "tmp")),
        initramfs.program("init", _INIT.encode()),
        initramfs.program("bin/busybox", qemu.busybox()),
        initramfs.program("inputs", " ".join([*top, "modules"]).encode()),
        *(
            initramfs.program(f"modules/{place:02}-{path.name}", path.read_bytes())
            for place, path in enumerate(base)
        ),
        initramfs.directory(_RUN),
        *(
            initramfs.directory(f"{_RUN}/{path.relative_to(directory)}")
            if path.is_dir()
            else initramfs.program(f"{_RUN}/{path.relative_to(directory)}", path.read_bytes())
            for path in inputs
        ),
        initramfs.directory(f"{_RUN}/modules"),
        *(initramfs.program(f"{_RUN}/modules/{path.name}", path.read_bytes()) for path in modules),
    ]


def arguments(kernel: Kernel, memory_mib: int, cpus: int, possible: int, seed: int) -> list[str]:
    """Return QEMU's arguments. It runs in the run's directory, whose path they do not contain."""
    parameters = (*qemu.KERNEL_PARAMETERS, f"maxcpus={cpus}", f"isoblk.seed={seed}")
    return [
        # One thread: QEMU counts instructions only without parallel ones. shift: 2^0 ns per
        # instruction. sleep: idle time is skipped.
        *("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off,align=off"),
        *("-rtc", "base=2026-01-01,clock=vm", "-seed", str(seed)),
        *("-smp", str(possible)),
        *qemu.pc(kernel, memory_mib, parameters),
        *qemu.share("run", "."),
    ]

# SPDX-License-Identifier: GPL-2.0-only
"""The qemu machine: an emulated PC with four processors, in real time.

Tier "qemu": real concurrency, for races, sanitizers and distributions' kernels. QEMU emulates each
processor by a thread (no KVM), so its speed has no meaning for hardware, and no two runs are equal.

The guest runs from memory: BusyBox, its modules, and the script. Over 9p it has the run's
directory, and the host's files, read-only, for programs that BusyBox lacks.
"""

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from isoblk.errors import UserError
from isoblk.kernel import Kernel
from isoblk.kernel.tools import install_command
from isoblk.machine import Ran, initramfs
from isoblk.machine.process import DIE_WITH_PARENT, PATH, Processes
from isoblk.run.tier import QEMU

_PROGRAM = "qemu-system-x86_64"
# Memory of the kernel itself on a PC, with KASAN's shadow and the initramfs, in addition to that of
# a guest of the uml machine.
_MEMORY_MIB = 768
_PT_INTERP = 3
# Next to the other files of the run, while it runs.
OWN_FILES = "qemu"

KERNEL_PARAMETERS = (
    "console=ttyS0",
    # Lines of the console are compared with the kernel's messages, so they have no time.
    "printk.time=0",
    # During boot only warnings: the emulated serial line is slow.
    "loglevel=5",
    # Without these, a failed guest would run until its time limit.
    *("panic=-1", "oops=panic", "hung_task_panic=1"),
    # An emulated processor stops whenever the host preempts its thread.
    *("watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=120"),
    # QEMU's TSC is the host's counter, and the other clocks are slow to read.
    "tsc=reliable",
    # Mitigations cost time, and protect nothing in a guest.
    "mitigations=off",
    # Only debug kernels know it: report every bad access, not just the first.
    "kasan_multi_shot",
)

# QEMU before 8.1 may keep the translation of code that another processor is changing. A
# distribution's kernel changes its code when a static key is switched, mostly during boot, so it
# boots on one processor. The lab's kernels have no such keys (JUMP_LABEL). nohz=off: with a stopped
# tick, each further processor would take three seconds to start.
_ONE_PROCESSOR = ("maxcpus=1", "nohz=off")

_INIT = """\
#!/bin/busybox sh
# The guest's first program: what the plan takes for granted.
set -e
export PATH=/bin
/bin/busybox --install -s /bin
for module in /modules/*.ko; do
    [ ! -e "$module" ] || insmod "$module"
done
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 host /host
mount -t proc proc /proc
mount -t sysfs sysfs /sys
# Where only one processor is up, the first cgroup switches its static keys now.
mount -t cgroup2 cgroup /sys/fs/cgroup
echo +io > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/first
rmdir /sys/fs/cgroup/first
echo -io > /sys/fs/cgroup/cgroup.subtree_control
umount /sys/fs/cgroup
for cpu in /sys/devices/system/cpu/cpu*/online; do
    echo 1 > $cpu
done
echo 8 > /proc/sys/kernel/printk
umount /sys
umount /proc
exec sh /plan.sh
"""


class Qemu:
    """Run scripts in an emulated PC; concurrently, from any threads.

    Args:
        kernel: the kernel to boot, of architecture x86_64.
        time_limit_s: wall-clock seconds after which a run counts as hung.
        more: further arguments for QEMU, such as disks.
    """

    tier = QEMU

    def __init__(self, kernel: Kernel, *, time_limit_s: float, more: Sequence[str] = ()) -> None:
        self._kernel = kernel
        self._more = more
        self._processes = Processes(time_limit_s)

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        """Boot, run `directory`/plan.sh, and wait for the power-off.

        The guest sees `directory` as /run/isoblk, with the modules in modules/, and the host's
        files in /host, read-only. The console goes to console.log.

        Args:
            directory: of the run.
            modules: of the run.
            seed: unused: two runs are never equal.
            memory_mib: memory of the guest.

        Raises:
            RunError: the kernel or a step of the script failed, or it hung.
            UserError: QEMU or BusyBox is missing.
        """
        emulator = program()
        if emulator is None:
            raise UserError("QEMU is missing", next=install_command(["qemu-system-x86"]))
        with_modules = directory / "modules"
        own_files = directory / OWN_FILES
        with_modules.mkdir()
        own_files.mkdir()
        try:
            for module in modules:
                shutil.copy(module, with_modules)
            plan = (directory / "plan.sh").read_bytes()
            base = sorted(self._kernel.base_modules.glob("*.ko")) if self._kernel.stock else []
            (own_files / "initramfs").write_bytes(initramfs.archive(contents(plan, base)))
            return self._processes.run(
                [*DIE_WITH_PARENT, emulator, *arguments(self._kernel, memory_mib), *self._more],
                directory,
                {},
            )
        finally:
            shutil.rmtree(with_modules, ignore_errors=True)
            shutil.rmtree(own_files, ignore_errors=True)

    def stop(self) -> None:
        """Stop all machines, and refuse new ones. Their run() raises."""
        self._processes.stop()


def program() -> str | None:
    """Return the path of the emulator; None if it is not installed."""
    return shutil.which(_PROGRAM, path=PATH)


def busybox() -> bytes:
    """Return the statically linked BusyBox.

    Raises:
        UserError: it is not installed.
    """
    path = shutil.which("busybox", path=PATH)
    data = Path(path).read_bytes() if path else b""
    if not data or _has_interpreter(data):
        raise UserError(
            "a statically linked BusyBox is missing", next=install_command(["busybox-static"])
        )
    return data


def _has_interpreter(program: bytes) -> bool:
    """Return whether a 64-bit ELF program has a segment PT_INTERP (elf(5)): a dynamic loader."""
    (offset,) = struct.unpack_from("<Q", program, 0x20)
    size, count = struct.unpack_from("<HH", program, 0x36)
    return any(
        struct.unpack_from("<I", program, offset + i * size)[0] == _PT_INTERP for i in range(count)
    )


def contents(plan: bytes, modules: Sequence[Path]) -> list[initramfs.Entry]:
    """Return the guest's initramfs. modules: loaded before the plan, in this order."""
    return [
        *map(initramfs.directory, ("bin", "dev", "host", "modules", "proc", "run", "sys", "tmp")),
        # Directories for the host's programs; /bin is BusyBox's.
        *(initramfs.link(name, f"host/{name}") for name in ("etc", "lib", "lib64", "sbin", "usr")),
        initramfs.program("init", _INIT.encode()),
        initramfs.program("bin/busybox", busybox()),
        initramfs.program("plan.sh", plan),
        *(
            initramfs.program(f"modules/{place:02}-{path.name}", path.read_bytes())
            for place, path in enumerate(modules)
        ),
    ]


def arguments(kernel: Kernel, memory_mib: int) -> list[str]:
    """Return QEMU's arguments. It runs in the run's directory, whose path they do not contain."""
    parameters = [*KERNEL_PARAMETERS, *(_ONE_PROCESSOR if kernel.stock else ())]
    return [
        *("-accel", "tcg,thread=multi", "-smp", str(QEMU.cpus)),
        *pc(kernel, memory_mib, parameters),
        *share("host", "/,readonly=on,multidevs=remap"),
        *share("run", "."),
    ]


def pc(kernel: Kernel, memory_mib: int, parameters: Sequence[str]) -> list[str]:
    """Return the arguments of a PC without disks: memory, console, kernel and initramfs."""
    return [
        *("-machine", "q35", "-m", f"{_MEMORY_MIB + memory_mib}M"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
        *("-kernel", str(kernel.linux), "-initrd", f"{OWN_FILES}/initramfs"),
        *("-append", " ".join(parameters)),
    ]


def share(tag: str, path: str) -> list[str]:
    """Return the arguments that give the guest a directory of the host over 9p."""
    # "none": files belong to the user of the QEMU process, which need not run as root.
    return [
        *("-fsdev", f"local,id={tag},security_model=none,path={path}"),
        *("-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"),
    ]

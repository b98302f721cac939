# SPDX-License-Identifier: GPL-2.0-only
"""The uml machine: the kernel as an ordinary process, in virtual time.

Tier "uml": exact policy, one CPU, CPU time costs nothing.
"""

import mmap
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from isoblk.kernel import Kernel
from isoblk.machine import Ran
from isoblk.machine.process import DIE_WITH_PARENT, Processes
from isoblk.machine.trouble import trouble
from isoblk.run.tier import UML

# Memory of the guest itself, without each tenant's kthread, buckets and windows.
_MEMORY_MIB = 512
_MEMORY_MIB_PER_64_TENANTS = 64
SHARED_MEMORY = Path("/dev/shm")
# In the run's directory, while it runs.
_OWN_FILES = "uml"
# The run's directory, as the guest names it to the host. The kernel mixes its command line into its
# random numbers, so the line must not contain a path that differs between machines.
_RUN_DIR = "/proc/self/cwd"
_IN_VIRTUAL_TIME = ("time-travel=inf-cpu", "time-travel-start=0")
NO_ASLR = ("setarch", "--addr-no-randomize")
# Its path by the ABI of x86-64.
LOADER = "/lib64/ld-linux-x86-64.so.2"


def memory_mib(tenants: int, device_bytes: int = 0) -> int:
    """Return the memory of a machine for a number of tenants, and a device of at most
    `device_bytes`. Untouched memory costs the host nothing."""
    own = _MEMORY_MIB + _MEMORY_MIB_PER_64_TENANTS * (tenants // 64)
    return own + -(-device_bytes // (1 << 20))


class Uml:
    """Run scripts in User Mode Linux; concurrently, from any threads.

    Args:
        kernel: the kernel to boot.
        library: replaces host functions: isoblk.kernel.host_library().
        time_limit_s: wall-clock seconds after which a run counts as hung.
    """

    tier = UML

    def __init__(self, kernel: Kernel, library: Path, *, time_limit_s: float) -> None:
        self._kernel = kernel
        self._library = library
        self._launcher = _launcher()
        self._processes = Processes(time_limit_s, trouble)

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        """Boot, run `directory`/plan.sh as init, and wait for the power-off.

        The guest sees `directory` as /run/isoblk, with the modules in modules/, and the host's
        files, read-only. The console goes to console.log.

        Args:
            directory: of the run.
            modules: of the run.
            seed: of the kernel's random numbers.
            memory_mib: memory of the guest.

        Raises:
            RunError: the kernel or a step of the script failed, or it hung.
            UserError: UML cannot be started, or does not run on this machine.
        """
        with (
            staged(directory, modules, memory_mib) as place,
            self._library.open("rb") as library,
        ):
            return self._processes.run(
                [
                    *DIE_WITH_PARENT,
                    *self._launcher,
                    *guest_command(self._kernel, memory_mib, _IN_VIRTUAL_TIME),
                ],
                directory,
                {
                    "TMPDIR": str(place),
                    "LD_PRELOAD": preloaded(library.fileno()),
                    "ISOBLK_SEED": str(seed),
                },
                keep=(library.fileno(),),
            )

    def stop(self) -> None:
        """Stop all machines, and refuse new ones. Their run() raises."""
        self._processes.stop()


@contextmanager
def staged(directory: Path, modules: Sequence[Path], memory_mib: int) -> Iterator[Path]:
    """Lay out a run's directory for a guest: the modules and the script. Yields the directory for
    the guest's memory; at the end, files of the guest alone are removed."""
    with_modules = directory / "modules"
    own_files = directory / _OWN_FILES
    with_modules.mkdir()
    own_files.mkdir()
    try:
        for module in modules:
            shutil.copy(module, with_modules)
        (directory / "plan.sh").chmod(0o755)
        in_memory = not shared_memory_problem(memory_mib)
        yield SHARED_MEMORY if in_memory else own_files
    finally:
        shutil.rmtree(with_modules, ignore_errors=True)
        shutil.rmtree(own_files, ignore_errors=True)


def preloaded(library: int) -> str:
    """Return LD_PRELOAD's value for an open library, whose path may contain a blank or a colon,
    which would end its name."""
    return f"/proc/self/fd/{library}"


def guest_command(kernel: Kernel, memory_mib: int, how: Sequence[str]) -> list[str]:
    """Return the command that starts a guest. how: the kernel's parameters for its time."""
    return [
        str(kernel.linux),
        f"mem={memory_mib}M",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        f"init={_RUN_DIR}/plan.sh",
        *how,
        *("con=null", "con0=fd:0,fd:1", f"uml_dir={_OWN_FILES}/", "umid=guest"),
        # A task that is blocked for 120 seconds of the guest ends the run.
        "hung_task_panic=1",
        # Only debug kernels know it: report every bad access, not just the first.
        *(("kasan_multi_shot",) if kernel.debug else ()),
        f"RUN={_RUN_DIR}",
    ]


def _launcher() -> list[str]:
    """Return the command that starts the kernel so that its memory has the same size in every run.

    UML adds to its memory the gap between itself and its heap, which address randomisation varies.
    Containers may not switch that off: there the dynamic loader starts the kernel, and the
    preloaded library handles the layout.
    """
    try:
        allowed = subprocess.run([*NO_ASLR, "true"], capture_output=True, check=False)
    except OSError:
        return [LOADER]
    return [*NO_ASLR] if allowed.returncode == 0 else [LOADER]


def shared_memory_problem(needed_mib: int) -> str:
    """Return why a guest's memory cannot be in SHARED_MEMORY; "" if it can.

    User Mode Linux keeps its memory in an unlinked file, and executes from it.
    """
    try:
        if shutil.disk_usage(SHARED_MEMORY).free < needed_mib << 20:
            return f"less than {needed_mib} MiB free"
        with TemporaryFile(dir=SHARED_MEMORY) as file:
            file.truncate(mmap.PAGESIZE)
            mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError as error:
        return error.strerror or "unusable"
    return ""

# SPDX-License-Identifier: GPL-2.0-only
"""The uml machine: the kernel as an ordinary process, in virtual time.

Tier "uml": exact policy, one CPU, CPU time costs nothing.
"""

import contextlib
import mmap
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from isoblk.errors import RunError, UserError
from isoblk.kernel import Kernel
from isoblk.machine import Ran, StoppedError

# What the guest needs for itself; each tenant's kthread, buckets and windows come on top.
_MEMORY_MIB = 512
_MEMORY_MIB_PER_64_TENANTS = 64
SHARED_MEMORY = Path("/dev/shm")
_CONSOLE_LINES_IN_ERROR = 3
# How the kernel, lockdep and KASAN begin what should not have happened.
_COMPLAINTS = ("BUG:", "WARNING:", "Oops", "INFO: task")
# The run's directory, as the guest names it to the host. The kernel mixes its command line into
# its random numbers: the line must not hold a path that differs from machine to machine.
_RUN_DIR = "/proc/self/cwd"


def memory_mib(tenants: int) -> int:
    """Memory of a machine for that many tenants. Untouched memory costs the host nothing."""
    return _MEMORY_MIB + _MEMORY_MIB_PER_64_TENANTS * (tenants // 64)


class Uml:
    """Runs scripts in User Mode Linux; any number at once, from any threads.

    Args:
        kernel: the kernel to boot.
        time_limit_s: wall-clock seconds after which a run counts as hung.
    """

    def __init__(self, kernel: Kernel, *, time_limit_s: float) -> None:
        self._kernel = kernel
        self._time_limit_s = time_limit_s
        # The size of UML's memory depends on where the host maps its stack.
        self._launcher = _without_aslr()
        self._lock = threading.Lock()
        self._alive: set[subprocess.Popen[bytes]] = set()  # under _lock
        self._stopped = False  # under _lock

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        """Boot, run `directory`/plan.sh as init, and wait for the power-off.

        The guest sees `directory` as /run/isoblk, with the modules in modules/; the console
        goes to console.log. Besides, the guest sees the host's files, but may not write them.

        Args:
            seed: of the kernel's random numbers.

        Raises:
            RunError: the kernel or a step of the script failed, or it hung.
            UserError: UML cannot be started.
        """
        with_modules = directory / "modules"
        own_files = directory / "uml"
        with_modules.mkdir()
        own_files.mkdir()
        for module in modules:
            shutil.copy(module, with_modules)
        (directory / "plan.sh").chmod(0o755)
        try:
            return self._boot(directory, own_files, seed, memory_mib)
        finally:
            shutil.rmtree(with_modules, ignore_errors=True)
            shutil.rmtree(own_files, ignore_errors=True)

    def stop(self) -> None:
        """End all machines, and let none begin. Their run() raises."""
        with self._lock:
            self._stopped = True
            for process in self._alive:
                _kill(process)

    def _boot(self, directory: Path, own_files: Path, seed: int, memory_mib: int) -> Ran:
        console = directory / "console.log"
        in_memory = not shared_memory_problem(memory_mib)
        began = time.monotonic()
        with console.open("wb") as output, self._lock:
            if self._stopped:
                raise StoppedError("stopped")
            try:
                process = subprocess.Popen(
                    self._command(own_files.name, memory_mib),
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={
                        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                        "TMPDIR": str(SHARED_MEMORY if in_memory else own_files),
                        "LD_PRELOAD": str(self._kernel.seed_shim),
                        "ISOBLK_SEED": str(seed),
                    },
                )
            except OSError as error:
                raise UserError(
                    f"cannot start: {error.strerror}",
                    where=str(error.filename),
                    next="run: isoblk doctor",
                ) from None
            self._alive.add(process)
        hung = threading.Event()

        def on_time_limit() -> None:
            hung.set()
            _kill(process)

        timer = threading.Timer(self._time_limit_s, on_time_limit)
        timer.start()
        try:
            # wait4 and not wait: it tells the CPU time of this process and no other.
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
            with self._lock:
                self._alive.discard(process)
                stopped = self._stopped
        process.returncode = os.waitstatus_to_exitcode(status)
        # Its helper processes have nothing to do without it.
        _kill(process)
        if hung.is_set():
            raise RunError(
                f"hung: no end after {self._time_limit_s:g} s; " + _last_lines(console),
            )
        if stopped:
            raise StoppedError("stopped")
        if failure := _failure(console, process.returncode):
            raise RunError(failure)
        return Ran(time.monotonic() - began, usage.ru_utime + usage.ru_stime)

    def _command(self, own_files: str, memory_mib: int) -> list[str]:
        return [
            # If this process dies, so does the machine.
            *("setpriv", "--pdeathsig", "KILL"),
            *self._launcher,
            str(self._kernel.linux),
            f"mem={memory_mib}M",
            *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
            f"init={_RUN_DIR}/plan.sh",
            *("time-travel=inf-cpu", "time-travel-start=0"),
            *("con=null", "con0=fd:0,fd:1", f"uml_dir={own_files}/", "umid=guest"),
            # A task that waits in vain for 120 virtual seconds ends the run.
            "hung_task_panic=1",
            # Known to debug kernels only: report every bad access, not just the first.
            *(("kasan_multi_shot",) if self._kernel.debug else ()),
            f"RUN={_RUN_DIR}",
        ]


def _without_aslr() -> list[str]:
    command = ["setarch", "--addr-no-randomize"]
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True, check=False)
    except OSError:
        return []
    return command if allowed.returncode == 0 else []


def shared_memory_problem(needed_mib: int) -> str:
    """Why a guest's memory cannot be in SHARED_MEMORY; "" if it can.

    User Mode Linux keeps it in an unlinked file, and executes from it.
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


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _failure(console: Path, exit_code: int) -> str:
    """Why the run failed, from its console and exit code; "" if it did not."""
    lines = console.read_text(errors="replace").splitlines()
    for line in lines:
        if "Kernel panic" in line or line.startswith(_COMPLAINTS):
            return f"the kernel failed: {line.strip()}; {_last_lines(console)}"
    ends = [line for line in lines if line.startswith("plan: exit status ")]
    if not ends:
        return f"ended early (exit {exit_code}); {_last_lines(console)}"
    if ends[-1] != "plan: exit status 0":
        return f"a step of the plan failed{_failed_step(console)}; {_last_lines(console)}"
    return ""


def _failed_step(console: Path) -> str:
    """The plan's line that the shell complained of last, if it did."""
    complaints = re.findall(r"plan\.sh: (\d+): ", console.read_text(errors="replace"))
    if not complaints:
        return ""
    number = int(complaints[-1])
    lines = (console.parent / "plan.sh").read_text().splitlines()
    return f": plan.sh:{number}: {lines[number - 1].strip()}"


def _last_lines(console: Path) -> str:
    lines = [
        line.strip()
        for line in console.read_text(errors="replace").splitlines()
        if line.strip() and not line.startswith(("plan: exit status", "sysrq:", "reboot:"))
    ]
    return "console: " + " | ".join(lines[-_CONSOLE_LINES_IN_ERROR:])

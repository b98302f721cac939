# SPDX-License-Identifier: GPL-2.0-only
"""Run guests as processes: start them, limit their time, and check their consoles."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from isoblk.errors import IsoblkError, RunError, UserError
from isoblk.machine import Ran, StoppedError

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# The machine is killed if this process dies.
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")

_CONSOLE_LINES_IN_ERROR = 3
# First words of an error report of the kernel, lockdep, KASAN, SLUB or UBSAN. Output of a program
# may precede them on the same line.
_COMPLAINT = re.compile(
    r"(?<!DE)BUG: |BUG \S+ \((?:Not tainted|Tainted)|WARNING: |Oops: |INFO: task |INFO: rcu"
    r"|UBSAN: |general protection fault|Kernel panic"
)
# Function and, in brackets, module of the first register dump.
_CODE = re.compile(r"^.*\bRIP: \S+?:(?P<code>[A-Za-z_]\S*\+0x\S+(?: \[\w+\])?)", re.MULTILINE)
# End of a plan. On qemu the kernel writes it, possibly in the middle of a line of the shell.
_END = re.compile(r"plan: exit status (\d+)$", re.MULTILINE)
# Format of dash: "plan.sh: 7: "; of BusyBox: "plan.sh: line 7: ".
_FAILED_LINE = re.compile(r"plan\.sh: (?:line )?(\d+): |^line (\d+): ", re.MULTILINE)
# After this line no code of a module runs: the kernel stops the other processors. One of them may
# still wake a processor that is gone, of which a PC's kernel warns (native_smp_send_reschedule).
_POWERED_DOWN = "reboot: Power down"
# Interval between checks of a guest. A process that still exists one interval after the line above
# has hung: User Mode Linux with several processors rarely hangs in the host's exit().
_LOOK_S = 10
_TAIL_BYTES = 4096
# Lines at the end of every console, without information.
_EPILOGUE = ("plan: exit status", "sysrq:", "reboot:", "ACPI: PM:")


class Processes:
    """The processes of one machine; concurrently, from any threads.

    Args:
        time_limit_s: wall-clock seconds after which a run counts as hung.
        explain: returns an error of the machine, if any, from the console, the exit code, and
            whether the run failed.
    """

    def __init__(
        self,
        time_limit_s: float,
        explain: Callable[[str, int, bool], IsoblkError | None] | None = None,
    ) -> None:
        self._time_limit_s = time_limit_s
        self._explain = explain
        self._lock = threading.Lock()
        self._alive: set[subprocess.Popen[bytes]] = set()  # under _lock
        self._stopped = False  # under _lock

    def run(
        self,
        command: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        *,
        keep: Sequence[int] = (),
    ) -> Ran:
        """Run a guest in `directory` to its end; its console goes to console.log there.

        Args:
            command: program and arguments.
            directory: of the run.
            environment: of the process.
            keep: file descriptors that it inherits.

        Raises:
            RunError: the kernel or a step of the script failed, or it hung.
            UserError: the command cannot be started.
        """
        console = directory / "console.log"
        began = time.monotonic()
        with console.open("wb") as output, self._lock:
            if self._stopped:
                raise StoppedError("stopped")
            try:
                with _deaf_to_interrupts():
                    process = subprocess.Popen(
                        command,
                        cwd=directory,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        pass_fds=keep,
                        env={"PATH": PATH, **environment},
                    )
            except OSError as error:
                raise UserError(
                    f"cannot start: {error.strerror}",
                    where=str(error.filename),
                    next="run: isoblk doctor",
                ) from None
            self._alive.add(process)
        hung = threading.Event()
        ended = threading.Event()
        watcher = threading.Thread(
            target=_watch,
            args=(process, console, began + self._time_limit_s, ended, hung),
            daemon=True,
        )
        watcher.start()
        try:
            # wait4() returns the CPU time of this process only.
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            ended.set()
            with self._lock:
                self._alive.discard(process)
                stopped = self._stopped
        process.returncode = os.waitstatus_to_exitcode(status)
        # Its helper processes may survive it.
        _kill(process)
        if stopped and not hung.is_set():
            raise StoppedError("stopped")
        if hung.is_set():
            why = hang(console, self._time_limit_s)
        else:
            why = failure(console, process.returncode)
        said = console.read_text(errors="replace")
        if self._explain and (known := self._explain(said, process.returncode, bool(why))):
            raise known
        if why:
            raise RunError(why)
        return Ran(time.monotonic() - began, usage.ru_utime + usage.ru_stime)

    def stop(self) -> None:
        """Stop all machines, and refuse new ones. Their run() raises."""
        with self._lock:
            self._stopped = True
            for process in self._alive:
                _kill(process)


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ignore SIGINT in this thread and in processes started inside.

    An interrupt before the new process has its own session would kill it, and look like a failure.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _watch(
    process: subprocess.Popen[bytes],
    console: Path,
    deadline: float,
    ended: threading.Event,
    hung: threading.Event,
) -> None:
    """Kill a guest at `deadline`, and then set `hung`, or once it has powered down."""
    is_over = False
    while not ended.wait(min(_LOOK_S, max(deadline - time.monotonic(), 0))):
        if not is_over and time.monotonic() >= deadline:
            hung.set()
        if is_over or hung.is_set():
            _kill(process)
            break
        is_over = _has_powered_down(console)


def _has_powered_down(console: Path) -> bool:
    """Return whether the guest's kernel has powered down: the results are written by then."""
    try:
        with console.open("rb") as said:
            said.seek(max(said.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            return _POWERED_DOWN.encode() in said.read()
    except OSError:  # run() reports a removed directory
        return False


def failure(console: Path, exit_code: int) -> str:
    """Return why the run failed, from its console and exit code; "" if it did not."""
    lines = console.read_text(errors="replace").splitlines()
    if complaint := _complaint(lines):
        return f"the kernel failed: {complaint}{_in_code(lines)}; {_last_lines(console)}"
    ends = _END.findall("\n".join(lines))
    if not ends:
        return f"ended early (exit {exit_code}); {_last_lines(console)}"
    if ends[-1] != "0":
        return f"a step of the plan failed{_failed_step(console)}; {_last_lines(console)}"
    return ""


def hang(console: Path, time_limit_s: float) -> str:
    """Return what a guest's console shows about a hang: the kernel's first error report, else its
    end."""
    said = _complaint(console.read_text(errors="replace").splitlines())
    return "; ".join(
        [
            f"hung: no end after {time_limit_s:g} s",
            *([f"the kernel reported: {said}"] if said else []),
            _last_lines(console),
        ]
    )


def _complaint(lines: Sequence[str]) -> str:
    """Return the first error report of the kernel; "" without one."""
    before = itertools.takewhile(lambda line: not line.startswith(_POWERED_DOWN), lines)
    return next((line.strip() for line in before if _COMPLAINT.search(line)), "")


def _in_code(lines: Sequence[str]) -> str:
    """Return where the kernel failed, if the console shows it."""
    found = _CODE.search("\n".join(lines))
    return f" in {found['code']}" if found else ""


def _failed_step(console: Path) -> str:
    """Return the plan's line of the shell's last error message, if there is one."""
    complaints = _FAILED_LINE.findall(console.read_text(errors="replace"))
    if not complaints:
        return ""
    number = int("".join(complaints[-1]))
    lines = (console.parent / "plan.sh").read_text().splitlines()
    # The message may come from another program.
    if not 1 <= number <= len(lines):
        return ""
    return f": plan.sh:{number}: {lines[number - 1].strip()}"


def _last_lines(console: Path) -> str:
    lines = [
        line.strip()
        for line in console.read_text(errors="replace").splitlines()
        if line.strip() and not line.startswith(_EPILOGUE)
    ]
    return "console: " + " | ".join(lines[-_CONSOLE_LINES_IN_ERROR:])

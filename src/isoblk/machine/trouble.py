# SPDX-License-Identifier: GPL-2.0-only
"""Find on a console why the machine does not run User Mode Linux."""

import re
import signal

from isoblk.errors import UserError

_CONTAINERS = "containers: --cap-add SYS_PTRACE --security-opt seccomp=unconfined"
_NO_EXECUTION = "set ISOBLK_CACHE to a directory that is not mounted noexec"

# Causes before the script begins: pattern, cause, next step. The first match counts.
_BEFORE = (
    (r"from LD_PRELOAD cannot be preloaded \(cannot open", "/proc is not mounted", "mount /proc"),
    (
        r"from LD_PRELOAD cannot be preloaded",
        "the library that answers the guest's kernel cannot be loaded, so no run would repeat",
        _NO_EXECUTION,
    ),
    (
        r"failed to execute .*: (?:Permission denied|Operation not permitted)",
        "the guest's kernel may not be executed where the cache is",
        _NO_EXECUTION,
    ),
    (
        r"isoblk: replace: (.*)",
        r"\1: its clock and random numbers would not be virtual",
        "run: isoblk kernel build",
    ),
    (
        r"setup_physmem - mapping \d+ bytes of memory .* errno = -12",
        "the guest's memory is larger than the address space of a process may be",
        "raise the limit: ulimit -v unlimited",
    ),
    (
        r"fork failed|clone failed|Resource temporarily unavailable",
        "no more processes may be started",
        "raise the limit: ulimit -u (containers: --pids-limit)",
    ),
    (
        r"PROT_EXEC mmap in .*(?:Operation not permitted|Permission denied)",
        "the guest's memory has to be executed from, and neither /dev/shm nor the result directory"
        " allows it",
        "mount one of them without noexec",
    ),
    (
        r"ptrace: Operation not permitted|check_ptrace ?:|check_sysemu ?:|_ptraced_child ?:",
        "ptrace is forbidden here, and User Mode Linux runs its processes by it",
        f"allow it ({_CONTAINERS}; sysctl kernel.yama.ptrace_scope below 3)",
    ),
)

# Causes of a failed run, at any time: messages of the kernel that no program writes.
_LATER = (
    (
        r"ptrace set fp regs failed, errno = 14\b",
        "the processor's register area is larger than this kernel knows (AMX), and the preloaded"
        " library does not make up for it",
        "try a newer kernel: isoblk kernel build --version newest",
    ),
    (
        r"host /dev/shm or /tmp mount likely just ran out of space",
        "no space for the guest's memory",
        "free some in /dev/shm (containers: --shm-size=2g for each of --jobs), or where -o is",
    ),
    (
        r"Requested init \S+ failed \(error -2\)",
        "the guest finds no script by /proc/self/cwd",
        "mount /proc",
    ),
    (
        r"Requested init \S+ failed \(error -13\)",
        "the guest may not enter the result directory",
        "choose -o below directories that you may enter",
    ),
)

_BY_SIGNAL = {
    signal.SIGXFSZ: (
        "the guest's memory is larger than a file may be",
        "raise the limit: ulimit -f unlimited",
    ),
    signal.SIGSYS: ("a system call that User Mode Linux needs is forbidden", _CONTAINERS),
}

# From here on programs write to the console.
_SCRIPT = re.compile(r"^Run \S+ as init process$", re.MULTILINE)


def trouble(console: str, exit_code: int, failed: bool) -> UserError | None:
    """Return why no guest can run on this machine, None if no cause is known.

    Args:
        console: the guest's.
        exit_code: of its process; negative for a signal.
        failed: whether the run failed.
    """
    begun = _SCRIPT.search(console)
    known = [(pattern, console[: begun.start()] if begun else console) for pattern in _BEFORE]
    known += [(pattern, console) for pattern in _LATER if failed]
    for (pattern, cause, todo), text in known:
        if found := re.search(pattern, text):
            return UserError(found.expand(cause), next=todo)
    if not begun and -exit_code in _BY_SIGNAL:
        cause, todo = _BY_SIGNAL[signal.Signals(-exit_code)]
        return UserError(cause, next=todo)
    return None

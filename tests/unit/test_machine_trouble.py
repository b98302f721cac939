# SPDX-License-Identifier: GPL-2.0-only
"""The console of a guest shows refusals of the machine; output of its programs is not a refusal."""

import signal

import pytest

from isoblk.machine.trouble import trouble

_CHECKS = """\
Core dump limits :
\tsoft - 0
\thard - NONE
Checking that ptrace can change system call numbers...OK
Checking syscall emulation for ptrace...OK
Checking environment variables for a tempdir.../dev/shm
Checking if /dev/shm is on tmpfs...OK
"""
_BOOTED = _CHECKS + "Checking PROT_EXEC mmap in /dev/shm...OK\nLinux version 6.12.117\n"
_BEGUN = _BOOTED + "Run /proc/self/cwd/plan.sh as init process\n"
_NO_PTRACE = "Checking that ptrace can change system call numbers..."
_NO_LIBRARY = "ERROR: ld.so: object '/proc/self/fd/3' from LD_PRELOAD cannot be preloaded"


@pytest.mark.parametrize(
    ("console", "cause", "todo"),
    [
        (
            _BEGUN + "userspace - ptrace set fp regs failed, errno = 14\nKernel panic",
            "register area",
            "--version newest",
        ),
        (_NO_PTRACE + "ptrace: Operation not permitted\n", "ptrace", "--cap-add SYS_PTRACE"),
        (_NO_PTRACE + "ptrace: Function not implemented\ncheck_ptrace : x", "ptrace", "seccomp"),
        (_NO_PTRACE + "check_ptrace : expected SIGSTOP, got status = 31", "ptrace", "SYS_PTRACE"),
        (
            _NO_PTRACE + "start_ptraced_child : fork failed: Resource temporarily unavailable",
            "processes",
            "ulimit -u",
        ),
        (
            _CHECKS + "Checking PROT_EXEC mmap in /a b/uml...Operation not permitted\n",
            "executed from",
            "without noexec",
        ),
        (
            _CHECKS + "setup_physmem - mapping 3128950784 bytes of memory at 0x0 failed - "
            "errno = -12",
            "address space",
            "ulimit -v",
        ),
        (
            "Bus error - the host /dev/shm or /tmp mount likely just ran out of space",
            "no space",
            "--shm-size",
        ),
        (
            _NO_LIBRARY + " (failed to map segment from shared object): ignored.",
            "library",
            "noexec",
        ),
        (_NO_LIBRARY + " (cannot open shared object file): ignored.", "/proc", "mount /proc"),
        ("setarch: failed to execute /a/linux: Permission denied", "executed", "ISOBLK_CACHE"),
        (_BOOTED + "Kernel panic: Requested init /x failed (error -13).", "directory", "-o"),
    ],
)
def test_each_refusal_is_reported_with_a_remedy(console: str, cause: str, todo: str) -> None:
    told = trouble(console, 1, True)
    assert told is not None
    assert cause in told.cause
    assert todo in told.next
    assert told.exit_status == 2


def test_an_end_by_a_limit_is_told() -> None:
    told = trouble(_CHECKS, -signal.SIGXFSZ, True)
    assert told is not None
    assert "ulimit -f" in told.next
    # Of the script's own programs.
    assert trouble(_BEGUN, -signal.SIGXFSZ, True) is None


def test_a_library_that_is_not_loaded_is_no_success() -> None:
    console = f"{_NO_LIBRARY} (invalid ELF header): ignored.\n{_BEGUN}plan: exit status 0\n"
    assert trouble(console, 0, False) is not None


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "strace: ptrace: Operation not permitted",
        _NO_LIBRARY,
        "sh: fork failed",
        "Checking PROT_EXEC mmap in x...Operation not permitted",
    ],
)
def test_output_of_a_program_of_the_guest_is_not_a_refusal(line: str, failed: bool) -> None:
    assert trouble(f"{_BEGUN}{line}\n", 0, failed) is None


def test_a_run_that_went_well_is_not_doubted() -> None:
    quoted = "ptrace set fp regs failed, errno = 14\n"
    assert trouble(f"{_BEGUN}{quoted}plan: exit status 0\n", 0, False) is None
    assert trouble("", -signal.SIGKILL, True) is None

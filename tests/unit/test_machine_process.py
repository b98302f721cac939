# SPDX-License-Identifier: GPL-2.0-only
"""Only its machine ends a guest, and no signal that was meant for other processes."""

import signal
from pathlib import Path

import pytest

from isoblk.errors import RunError
from isoblk.machine import process
from isoblk.machine.process import Processes

# A shell that gets the signal itself, as from a terminal before it has its own session, and says
# how its plan ended only if it lives on.
_HEARS = "kill -INT $$; echo 'plan: exit status 0'"


def test_an_interrupt_while_a_guest_starts_does_not_end_it(tmp_path: Path) -> None:
    Processes(time_limit_s=60).run(["sh", "-c", _HEARS], tmp_path, {})
    assert (tmp_path / "console.log").read_text() == "plan: exit status 0\n"


def test_signals_are_unblocked_again_after_a_guest_is_started(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    Processes(time_limit_s=60).run(["sh", "-c", "echo 'plan: exit status 0'"], tmp_path, {})
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


# As Linux 6.12 on a PC says it while a processor is stopped that another just wakes.
_WARNING = "WARNING: CPU: 2 PID: 1 at arch/x86/kernel/apic/ipi.c:70 native_smp_send_reschedule"


def test_a_kernel_warning_before_power_down_fails_the_run(tmp_path: Path) -> None:
    lines = ["plan: exit status 0", _WARNING, "reboot: Power down"]
    with pytest.raises(RunError, match="the kernel failed: WARNING: CPU: 2"):
        _console(tmp_path, lines)
    _console(tmp_path, [lines[0], *reversed(lines[1:])])


def test_a_crash_names_the_function(tmp_path: Path) -> None:
    place = "fifo_dispatch_request+0xf/0x50 [fifo_iosched]"
    panic = "Kernel panic - not syncing: Segfault with no mm"
    with pytest.raises(RunError) as caught:
        _console(tmp_path, [f"RIP: 0033:{place}", panic, " [<60062977>] ? kthread+0x107/0x160"])
    assert str(caught.value).startswith(f"the kernel failed: {panic} in {place}; console: ")


def test_a_guest_that_has_powered_down_but_is_still_there_is_no_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LOOK_S", 0.05)
    said = "plan: exit status %d\\nreboot: Power down\\n"
    Processes(time_limit_s=60).run(["sh", "-c", f"printf '{said % 0}'; sleep 60"], tmp_path, {})
    with pytest.raises(RunError, match="a step of the plan failed"):
        Processes(time_limit_s=60).run(["sh", "-c", f"printf '{said % 1}'; sleep 60"], tmp_path, {})


def test_a_guest_that_never_powers_down_is_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LOOK_S", 0.05)
    with pytest.raises(RunError, match=r"hung: no end after 0\.5 s"):
        Processes(time_limit_s=0.5).run(["sleep", "60"], tmp_path, {})


def _console(directory: Path, lines: list[str]) -> None:
    """Run what prints these lines as a guest."""
    (directory / "lines").write_text("\n".join(lines) + "\n")
    Processes(time_limit_s=60).run(["cat", "lines"], directory, {})

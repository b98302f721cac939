# SPDX-License-Identifier: GPL-2.0-only
"""Ctrl-C ends a command at any moment."""

import subprocess
import sys

# The interrupt comes in a finalizer, where Python drops it; then the process waits for ever.
_DROPPED = """
import os, signal, threading
from isoblk.cli import interrupts

class Dying:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

signal.signal(signal.SIGINT, signal.default_int_handler)
interrupts.hear()
try:
    Dying()
    threading.Event().wait(60)
except KeyboardInterrupt:
    print("heard")
"""
_OTHERS = """
import signal
from isoblk.cli import interrupts

class Dying:
    def __del__(self):
        raise ValueError("of another")

signal.signal(signal.SIGINT, signal.default_int_handler)
interrupts.hear()
Dying()
"""


def test_an_interrupt_in_a_finalizer_is_not_lost() -> None:
    done = _python(_DROPPED)
    assert (done.stdout, done.stderr) == ("heard\n", "")


def test_another_exception_of_a_finalizer_is_still_reported() -> None:
    assert "ValueError: of another" in _python(_OTHERS).stderr


def _python(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)

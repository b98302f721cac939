# SPDX-License-Identifier: GPL-2.0-only
"""Deliver Ctrl-C as KeyboardInterrupt in the main thread."""

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# Seconds after which the main thread has left the code that cannot be interrupted.
_AGAIN_S = 0.05


def hear() -> None:
    """Turn Ctrl-C into KeyboardInterrupt from now on, unless the parent process ignores SIGINT."""
    # Polars installs a handler that restarts system calls: a wait for a run would be interrupted
    # only at the run's end.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _again


def _again(unraisable: "UnraisableHookArgs") -> None:
    """Repeat an interrupt that Python dropped.

    Python drops exceptions raised during garbage collection, which Dask runs for some time.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        # Any thread may receive the signal; only the main thread handles it.
        threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)

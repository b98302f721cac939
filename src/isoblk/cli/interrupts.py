# SPDX-License-Identifier: GPL-2.0-only
"""Ctrl-C as KeyboardInterrupt in the main thread, wherever that is."""

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# By then the main thread has left the place where it could not be raised.
_AGAIN_S = 0.05


def hear() -> None:
    """From now on Ctrl-C is KeyboardInterrupt, unless whoever started this process ignores it."""
    # Polars puts a handler of its own before Python's, after which a system call goes on: who
    # waits for a run would notice Ctrl-C at the run's end.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _again


def _again(unraisable: "UnraisableHookArgs") -> None:
    """Python drops what is raised while it collects garbage, as Dask has it do for a while: then an
    interrupt comes once more."""
    if unraisable.exc_type is KeyboardInterrupt:
        # Any thread may take it; only the main one acts on it.
        threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)

# SPDX-License-Identifier: GPL-2.0-only
"""isoblk: divide one fast disk among containers by weight, and prove it.

Lab, Results and load are the lab as a library: see isoblk.lab.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_OF_THE_LAB = ("Lab", "Results", "load")


def __getattr__(name: str) -> Any:
    """Import the lab on first use: the commands of the host start without it."""
    if name in _OF_THE_LAB:
        return getattr(import_module("isoblk.lab"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

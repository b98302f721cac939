# SPDX-License-Identifier: GPL-2.0-only
"""Build and store the kernels of the lab, and the modules for them."""

from isoblk.kernel import stock
from isoblk.kernel.builder import Request, build, find, ready_kernels
from isoblk.kernel.modules import build_modules, build_schedulers, host_library, ready_modules
from isoblk.kernel.progress import Progress, Silent
from isoblk.kernel.source import named as source_named
from isoblk.kernel.store import DEFAULT_VERSION, Arch, Cleaned, Kernel, clean, hold, list_kernels

__all__ = [
    "DEFAULT_VERSION",
    "Arch",
    "Cleaned",
    "Kernel",
    "Progress",
    "Request",
    "Silent",
    "build",
    "build_modules",
    "build_schedulers",
    "clean",
    "find",
    "hold",
    "host_library",
    "list_kernels",
    "ready_kernels",
    "ready_modules",
    "source_named",
    "stock",
]

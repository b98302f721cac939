# SPDX-License-Identifier: GPL-2.0-only
"""Where isoblk keeps and finds files."""

import os
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[2]


def cache_dir() -> Path:
    """Directory of built kernels: $ISOBLK_CACHE, else isoblk/ in the user's cache directory."""
    if explicit := os.environ.get("ISOBLK_CACHE"):
        return Path(explicit).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "isoblk"


def state_dir() -> Path:
    """Directory of the host machine's journals: $ISOBLK_STATE, else /var/lib/isoblk."""
    return Path(os.environ.get("ISOBLK_STATE") or "/var/lib/isoblk").absolute()


def kernel_tree() -> Path:
    """The repository's kernel/ directory: module sources and configuration fragments."""
    return _REPOSITORY / "kernel"


def presets_dir() -> Path:
    """The repository's studies/devices/ directory: device presets."""
    return _REPOSITORY / "studies" / "devices"


def stand_ins_dir() -> Path:
    """The repository's studies/traces/ directory: recipes of the traces' stand-ins."""
    return _REPOSITORY / "studies" / "traces"


def java_dir() -> Path:
    """The repository's java/ directory: YCSB's binding to RocksDB."""
    return _REPOSITORY / "java"

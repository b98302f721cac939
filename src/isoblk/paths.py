# SPDX-License-Identifier: GPL-2.0-only
"""Paths of isoblk's files."""

import os
from pathlib import Path

from isoblk.errors import UserError

_PACKAGE = Path(__file__).resolve().parent


def data_dir(package: Path = _PACKAGE) -> Path:
    """Return the directory of isoblk's data: data/ of a wheel, or the repository of a checkout.

    It is never written to. package: the directory of isoblk's own code.
    """
    installed = package / "data"
    return installed if installed.is_dir() else package.parents[1]


def cache_dir() -> Path:
    """Return the directory of built kernels: $ISOBLK_CACHE, else isoblk/ in the user's cache
    directory.

    Raises:
        UserError: neither is known: there is no $HOME, and no such user.
    """
    if explicit := os.environ.get("ISOBLK_CACHE"):
        return Path(explicit).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "isoblk"
    try:
        return Path.home() / ".cache" / "isoblk"
    except RuntimeError:
        raise UserError(
            "no directory for kernels: HOME is not set",
            next="set ISOBLK_CACHE to a directory of yours",
        ) from None


def state_dir() -> Path:
    """Return the directory of the host machine's journals: $ISOBLK_STATE, else /var/lib/isoblk."""
    return Path(os.environ.get("ISOBLK_STATE") or "/var/lib/isoblk").absolute()


def kernel_tree() -> Path:
    """Return the directory kernel/: module sources and configuration fragments."""
    return data_dir() / "kernel"


def studies_dir() -> Path:
    """Return the directory studies/: the studies that come with isoblk."""
    return data_dir() / "studies"


def presets_dir() -> Path:
    """Return the directory studies/devices/: device presets."""
    return studies_dir() / "devices"


def hunts_dir() -> Path:
    """Return the directory studies/hunts/: the hunts that come with isoblk."""
    return studies_dir() / "hunts"


def stand_ins_dir() -> Path:
    """Return the directory studies/traces/: recipes of the traces' stand-ins."""
    return studies_dir() / "traces"


def java_dir() -> Path:
    """Return the directory java/: YCSB's binding to RocksDB."""
    return data_dir() / "java"

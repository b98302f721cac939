# SPDX-License-Identifier: GPL-2.0-only
"""Errors where isoblk was installed without the lab: the package of host tools."""

from typing import Final

from isoblk.errors import UserError
from isoblk.paths import kernel_tree

# Commands of the package of host tools that need numpy, which apt installs.
_WITH_NUMPY: Final = ("cache",)


def has_lab() -> bool:
    """Return whether the lab is installed."""
    return (kernel_tree() / "config").is_dir()


def require_lab() -> None:
    """Raise UserError unless the lab is installed."""
    if not has_lab():
        raise _no_lab()


def missing(command: str, module: str) -> UserError:
    """Return the error of a command that could not be loaded because a module is missing."""
    if module == "numpy" and command in _WITH_NUMPY:
        return UserError(f"isoblk {command} needs numpy", next="run: apt install python3-numpy")
    if module.partition(".")[0] == "isoblk" or not has_lab():
        return _no_lab()
    return UserError(
        f"the Python package {module} is missing", next="reinstall isoblk's wheel with pip"
    )


def _no_lab() -> UserError:
    return UserError(
        "this package does not contain the lab",
        next="get isoblk's sources and run there: make wheel",
    )

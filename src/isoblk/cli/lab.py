# SPDX-License-Identifier: GPL-2.0-only
"""What is said where isoblk was installed without the lab: the package for a machine."""

from typing import Final

from isoblk.errors import UserError
from isoblk.paths import kernel_tree

# In the package for a machine, which leaves numpy to apt.
_WITH_NUMPY: Final = ("cache",)


def has_lab() -> bool:
    """Whether the lab is here."""
    return (kernel_tree() / "config").is_dir()


def require_lab() -> None:
    """Raises UserError: the lab is not here."""
    if not has_lab():
        raise _no_lab()


def missing(command: str, module: str) -> UserError:
    """What to say of a command that could not be loaded for want of a module."""
    if module == "numpy" and command in _WITH_NUMPY:
        return UserError(f"isoblk {command} needs numpy", next="run: apt install python3-numpy")
    if module.partition(".")[0] == "isoblk" or not has_lab():
        return _no_lab()
    return UserError(
        f"the Python package {module} is missing", next="install isoblk's wheel again, with pip"
    )


def _no_lab() -> UserError:
    return UserError(
        "the lab is not in this package",
        next="get isoblk's sources, and run there: make wheel",
    )

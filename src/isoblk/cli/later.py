# SPDX-License-Identifier: GPL-2.0-only
"""Commands that are loaded when they are used: the help of all of them needs none."""

import signal
from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

from isoblk.errors import UserError
from isoblk.paths import kernel_tree

_ANY_LENGTH = 1000
# These are in the package for a machine, which leaves it to apt.
_WITH_NUMPY = ("cache",)


class Later(TyperCommand):
    """Stands for a command, or a group of commands, until it is called."""

    def __init__(self, name: str, module: str, summary: str) -> None:
        """Remember where the command is.

        Args:
            name: what a user types.
            module: it has the command's Typer instance as `app`.
            summary: the first sentence of the command's own help.
        """
        super().__init__(name=name, short_help=summary, rich_markup_mode=None)
        self._module = module

    def loaded(self) -> TyperCommand | TyperGroup:
        """The command itself."""
        try:
            app = import_module(self._module).app
        except ModuleNotFoundError as error:
            raise _missing(self.name or "", error.name or "") from None
        # Help is plain: boxes take twice the time, break lines where the source does, and leave
        # out what is in brackets.
        app.rich_markup_mode = None
        group = typer.main.get_group(app)
        # Polars puts a handler of its own before Python's, after which a system call goes on: who
        # waits for a run would notice Ctrl-C at the run's end. Until here there was nothing to
        # undo, and Ctrl-C ended the process at once.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        only = list(group.commands) == [self.name]
        found = next(iter(group.commands.values())) if only else group
        assert isinstance(found, TyperCommand | TyperGroup)
        found.name = self.name
        if isinstance(found, TyperGroup):
            for one in found.commands.values():
                # The list of commands has whole sentences.
                one.short_help = one.short_help or one.get_short_help_str(_ANY_LENGTH)
        return found

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """The context of the command itself, which all that follows is asked of."""
        return self.loaded().make_context(*args, **extra)


def require_lab() -> None:
    """Raises UserError: this is the package for a machine, which has no lab."""
    if not (kernel_tree() / "config").is_dir():
        raise _no_lab()


def _no_lab() -> UserError:
    return UserError(
        "the lab is not in this package", next="run: pip install isoblk, or use its container image"
    )


def _missing(command: str, module: str) -> UserError:
    """What is not there, where isoblk was installed without all that it can use."""
    if module.partition(".")[0] == "isoblk" or not (kernel_tree() / "config").is_dir():
        if module == "numpy" and command in _WITH_NUMPY:
            return UserError(f"isoblk {command} needs numpy", next="run: apt install python3-numpy")
        return _no_lab()
    return UserError(f"the Python package {module} is missing", next="run: pip install isoblk")

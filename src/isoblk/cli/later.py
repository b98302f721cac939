# SPDX-License-Identifier: GPL-2.0-only
"""Commands that are loaded when they are used: the help of all of them needs none."""

from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

_ANY_LENGTH = 1000


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
            from isoblk.cli.lab import missing  # noqa: PLC0415

            raise missing(self.name or "", error.name or "") from None
        # Help is plain: boxes take twice the time, break lines where the source does, and leave
        # out what is in brackets.
        app.rich_markup_mode = None
        group = typer.main.get_group(app)
        from isoblk.cli import interrupts  # noqa: PLC0415

        # Until here there was nothing to undo, and Ctrl-C ended the process at once.
        interrupts.hear()
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

# SPDX-License-Identifier: GPL-2.0-only
"""Commands that are loaded when they are called; the list of commands loads none."""

from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

_ANY_LENGTH = 1000


class Later(TyperCommand):
    """Placeholder of a command, or of a group of commands, until it is called."""

    def __init__(self, name: str, module: str, summary: str) -> None:
        """Store where the command is defined.

        Args:
            name: the word on the command line.
            module: the module that has the command's Typer instance as `app`.
            summary: the first sentence of the command's own help.
        """
        super().__init__(name=name, short_help=summary, rich_markup_mode=None)
        self._module = module

    def loaded(self) -> TyperCommand | TyperGroup:
        """Import the module and return the command."""
        try:
            app = import_module(self._module).app
        except ModuleNotFoundError as error:
            from isoblk.cli.lab import missing  # noqa: PLC0415

            raise missing(self.name or "", error.name or "") from None
        # Plain help: boxes take twice the time, break lines where the source does, and drop text
        # in brackets.
        app.rich_markup_mode = None
        group = typer.main.get_group(app)
        from isoblk.cli import interrupts  # noqa: PLC0415

        # Up to here Ctrl-C ended the process immediately, as there was nothing to undo.
        interrupts.hear()
        only = list(group.commands) == [self.name]
        found = next(iter(group.commands.values())) if only else group
        assert isinstance(found, TyperCommand | TyperGroup)
        found.name = self.name
        if isinstance(found, TyperGroup):
            for one in found.commands.values():
                # Show whole sentences in the list of commands.
                one.short_help = one.short_help or one.get_short_help_str(_ANY_LENGTH)
        return found

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Return the context of the loaded command, which runs everything that follows."""
        return self.loaded().make_context(*args, **extra)

# SPDX-License-Identifier: GPL-2.0-only
"""The console on which commands print.

Names of files, cgroups and disks, and other external text, are printed literally: brackets are not
markup, colons are not emoji, and control characters are escaped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from isoblk.errors import printable


class _Plain(Console):
    """Prints every text literally, also in tables."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(
            _shown(text), **{**how, "markup": False, "emoji": False, "highlight": False}
        )


def _shown(text: str) -> str:
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def new_console(
    *, stderr: bool = False, soft_wrap: bool = False, width: int | None = None, color: bool = True
) -> Console:
    """Return a console.

    Args:
        stderr: on standard error.
        soft_wrap: do not wrap lines.
        width: columns; None for the terminal's.
        color: with colours, if the terminal has them.
    """
    return _Plain(
        stderr=stderr, soft_wrap=soft_wrap, width=width, no_color=not color or None,
        markup=False, emoji=False, highlight=False,
    )  # fmt: skip


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show a line on standard error during a long operation, if it is a terminal. Yields a function
    that replaces the text."""
    drawn = new_console(stderr=True)
    if not drawn.is_terminal:
        yield lambda _: None
        return
    with drawn.status(Text(_shown(text))) as status:
        yield lambda text: status.update(Text(_shown(text)))

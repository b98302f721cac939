# SPDX-License-Identifier: GPL-2.0-only
"""The one console that commands print on.

A name of a file, a cgroup or a disk, and whatever else comes from outside, is text: brackets in it
are no markup, colons no emoji, and a terminal obeys nothing in it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from isoblk.errors import printable


class _Plain(Console):
    """Draws every text as it is, also those of tables."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(
            _shown(text), **{**how, "markup": False, "emoji": False, "highlight": False}
        )


def _shown(text: str) -> str:
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def new_console(
    *, stderr: bool = False, soft_wrap: bool = False, width: int | None = None, color: bool = True
) -> Console:
    """A console.

    Args:
        stderr: on standard error.
        soft_wrap: lines are as long as they are.
        width: columns; None: as the terminal has it.
        color: with colours, where they can be shown.
    """
    return _Plain(
        stderr=stderr, soft_wrap=soft_wrap, width=width, no_color=not color or None,
        markup=False, emoji=False, highlight=False,
    )  # fmt: skip


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what takes long, on a terminal; it goes when all is done.
    What this gives replaces the text."""
    drawn = new_console(stderr=True)
    if not drawn.is_terminal:
        yield lambda _: None
        return
    with drawn.status(Text(_shown(text))) as status:
        yield lambda text: status.update(Text(_shown(text)))

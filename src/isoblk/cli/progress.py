# SPDX-License-Identifier: GPL-2.0-only
"""The bar that shows how far a command is."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)


def progress_bar(
    console: Console, *, counted: bool = True, transient: bool = False, disable: bool = False
) -> Progress:
    """A bar with a description and the time so far.

    Args:
        console: where it is drawn.
        counted: it says how many of how many are done; if not, what part.
        transient: nothing stays of it when it ends.
        disable: draw nothing.
    """
    done: ProgressColumn = (
        MofNCompleteColumn() if counted else TextColumn("{task.percentage:>3.0f}%")
    )
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        done,
        TimeElapsedColumn(),
        console=console,
        transient=transient,
        disable=disable,
    )

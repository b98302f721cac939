# SPDX-License-Identifier: GPL-2.0-only
"""Progress bars of commands."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from isoblk.console import new_console


def progress_bar(
    console: Console, *, counted: bool = True, transient: bool = False, disable: bool = False
) -> Progress:
    """Return a bar with a description and the elapsed time.

    Args:
        console: the console to draw on.
        counted: show "done of total"; False: a percentage.
        transient: erase the bar when it ends.
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


class BuildBar:
    """A build's progress on the terminal: a line for each stage; the last line moves."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def stage(self, text: str, total: int | None = None) -> None:
        """End the previous stage and begin this one."""
        self.finish()
        self._task = self._progress.add_task(text, total=total)
        if not self._progress.console.is_terminal:
            self._progress.console.print(text)

    def step(self) -> None:
        """Advance by one step. The total is an estimate, so the bar stays below it."""
        if self._task is None:
            return
        task = self._progress.tasks[-1]
        if task.total is not None and task.completed + 1 < task.total:
            self._progress.advance(self._task)

    def note(self, text: str) -> None:
        """Print a message above the bars."""
        self._progress.console.print(text)

    def finish(self) -> None:
        """End the stage."""
        if self._task is not None:
            total = self._progress.tasks[-1].total or 1
            self._progress.update(self._task, total=total, completed=total)
            self._progress.stop_task(self._task)


@contextmanager
def building() -> Iterator[BuildBar]:
    """Show a build's bar on standard error."""
    console = new_console(stderr=True)
    with progress_bar(console, counted=False, disable=not console.is_terminal) as progress:
        yield BuildBar(progress)

# SPDX-License-Identifier: GPL-2.0-only
"""Report the progress of a long operation to a listener."""

from typing import Protocol


class Progress(Protocol):
    """Listener of a build, such as a progress bar."""

    def stage(self, text: str, total: int | None = None) -> None:
        """Begin a stage. total: expected number of steps, None if unknown."""

    def step(self) -> None:
        """Count a finished step. The count may exceed the total, which is an estimate."""

    def note(self, text: str) -> None:
        """Show a message, of one or more lines, that stays on the screen."""


class Silent:
    """Listener that discards everything."""

    def stage(self, text: str, total: int | None = None) -> None:
        """Discard the stage."""

    def step(self) -> None:
        """Discard the step."""

    def note(self, text: str) -> None:
        """Discard the message."""

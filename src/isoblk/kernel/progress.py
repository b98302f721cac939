# SPDX-License-Identifier: GPL-2.0-only
"""How long work tells what it is doing, without knowing who listens."""

from typing import Protocol


class Progress(Protocol):
    """Listener of a build: a progress bar, or a list in a test."""

    def stage(self, text: str, total: int | None = None) -> None:
        """A new stage begins; total is its expected number of steps, None if unknown."""

    def step(self) -> None:
        """One step of the stage is done. May exceed the total, which is an estimate."""

    def note(self, text: str) -> None:
        """A message that stays on the screen; may have several lines."""


class Silent:
    """Says nothing."""

    def stage(self, text: str, total: int | None = None) -> None:
        """Ignored."""

    def step(self) -> None:
        """Ignored."""

    def note(self, text: str) -> None:
        """Ignored."""

# SPDX-License-Identifier: GPL-2.0-only
"""The errors that users see: their mistakes, and runs that failed. Any other exception is a defect
of isoblk."""

import unicodedata
from collections.abc import Sequence

INTERRUPTED = 130
"""The shell's status of a program that an interrupt ended."""


class IsoblkError(Exception):
    """One line: cause, place, next step.

    Args:
        cause: the cause, in the user's terms.
        where: file, line, field or directory; may be empty.
        next: the allowed values, or the command to run; may be empty.
    """

    exit_status = 1

    def __init__(self, cause: str, *, where: str = "", next: str = "") -> None:
        self.cause = cause
        self.where = where
        self.next = next
        super().__init__(str(self))

    @property
    def lines(self) -> tuple[str, ...]:
        """Return what the user sees: a line for each mistake."""
        return (str(self),)

    def __str__(self) -> str:
        text = f"{self.where}: {self.cause}" if self.where else self.cause
        if self.next:
            text += f"; {self.next}"
        return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Escape each character that a terminal interprets instead of printing."""
    return "".join(
        character if is_printed(character) else repr(character)[1:-1] for character in text
    )


def is_printed(character: str) -> bool:
    """Return whether a terminal shows the character, without another effect."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


class UserError(IsoblkError):
    """A mistake of the user, or a missing part of the machine: exit status 2."""

    exit_status = 2


class SeveralError(UserError):
    """Several mistakes in one file. As a single error it is the first of them."""

    def __init__(self, errors: Sequence[UserError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        super().__init__(first.cause, where=first.where, next=first.next)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return a line for each mistake."""
        return tuple(str(error) for error in self.errors)


class RunError(IsoblkError):
    """A valid request failed: exit status 1."""

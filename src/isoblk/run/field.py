# SPDX-License-Identifier: GPL-2.0-only
"""The place of a field in a study file, and the error that names it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from isoblk.errors import UserError
from isoblk.run.limits import Range

Field = tuple[str | int, ...]
"""A place in a study: ("tenant", 0, "iodepth") is the first tenant's iodepth."""

ERRORS_MAX = 100
"""Errors of a document after which no more are looked for."""

_FEW = 12  # names that fit one line


def dotted(field: Field) -> str:
    """Format ("tenant", 0, "iodepth") as "tenant[0].iodepth"."""
    text = ""
    for part in field:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class FieldError(UserError):
    """A field of a study is wrong. Without a file, the field's name is the place.

    Args:
        field: the field.
        cause: the cause.
        next: the allowed values.
    """

    def __init__(self, field: Field, cause: str, *, next: str = "") -> None:
        self.field = field
        super().__init__(cause, where=dotted(field), next=next)


class FieldErrors:
    """Wrong fields of a document, in the order in which they are found."""

    def __init__(self) -> None:
        self._found: dict[tuple[Field, str], FieldError] = {}

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the error that ends the block, instead of passing it on."""
        try:
            yield
        except FieldError as error:
            self.add(error)

    def add(self, error: FieldError) -> None:
        """Keep an error, unless it is there already."""
        self._found.setdefault((error.field, error.cause), error)

    def add_all(self, errors: Iterable[FieldError]) -> None:
        """Keep several errors."""
        for error in errors:
            self.add(error)

    @property
    def full(self) -> bool:
        """Return whether there are so many that looking for more is not worth its time."""
        return len(self) >= ERRORS_MAX

    def inside(self, field: Field) -> bool:
        """Return whether an error is at the field or inside it."""
        return any(one.field[: len(field)] == field for one in self)

    def __iter__(self) -> Iterator[FieldError]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the name of `known` that `word` resembles most; "" if it resembles none."""
    return next(iter(get_close_matches(word, list(known), n=1)), "")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a replacement for `word`: the nearest of `known`, and all of them if they are few."""
    names = sorted(known)
    allowed = "allowed: " + ", ".join(names)
    near = nearest(word, names)
    if not near:
        return allowed
    question = f"did you mean {near!r}?"
    return f"{question} {allowed}" if len(names) <= _FEW else question


def within(field: Field, value: int | float, allowed: Range) -> None:
    """Check that a number is in its range.

    Raises:
        FieldError: it is out of range.
    """
    if value not in allowed:
        raise FieldError(field, f"{value} is out of range", next=f"allowed: {allowed}")

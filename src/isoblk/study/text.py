# SPDX-License-Identifier: GPL-2.0-only
"""Find the line of a field in the text of a study file."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from isoblk.errors import SeveralError, UserError
from isoblk.run.field import ERRORS_MAX, Field, FieldError, dotted

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'",
    re.DOTALL,
)
_SHOWN = 20  # errors of a file
_SCALAR = re.compile(r"[^,\]}#\n]+")


@dataclass(frozen=True)
class Source:
    """A study file's name, and the line of each of its fields."""

    name: str
    lines: Mapping[Field, int]

    @classmethod
    def of(cls, name: str, text: str) -> "Source":
        """Scan `text`, which must be valid TOML."""
        lines = _Scanner(text).lines
        # A dotted key of [matrix], `where` or `than` may be written without its quotes.
        for field, line in list(lines.items()):
            for at, part in enumerate(field):
                if part in ("matrix", "where", "than") and len(field) > at + 2:
                    key = ".".join(str(rest) for rest in field[at + 1 :])
                    lines.setdefault((*field[: at + 1], key), line)
        return cls(name, lines)

    def where(self, field: Field) -> str:
        """Return FILE:LINE of `field`, or of the nearest enclosing table; FILE if there is none."""
        line = self._line(field)
        return f"{self.name}:{line}" if line else self.name

    def _line(self, field: Field) -> int:
        return next(
            (
                self.lines[field[:end]]
                for end in range(len(field), 0, -1)
                if field[:end] in self.lines
            ),
            0,
        )

    def locate(self, error: FieldError) -> UserError:
        """Return the error with FILE:LINE."""
        cause = f"{dotted(error.field)}: {error.cause}" if error.field else error.cause
        return UserError(cause, where=self.where(error.field), next=error.next)

    def locate_all(self, errors: Iterable[FieldError]) -> UserError:
        """Return errors with FILE:LINE, in the order of their lines, as one."""
        found = [self.locate(one) for one in sorted(errors, key=lambda one: self._line(one.field))]
        if len(found) == 1:
            return found[0]
        if len(found) > _SHOWN:
            least = "at least " if len(found) >= ERRORS_MAX else ""
            more = f"{least}{len(found) - _SHOWN} more errors"
            found[_SHOWN:] = [UserError(more, where=self.name, next="correct these first")]
        return SeveralError(found)


class _Scanner:
    """Find the line of every key in valid TOML."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._arrays: dict[Field, int] = {}
        self.lines: dict[Field, int] = {}
        table: Field = ()
        while self._skip(_BLANK):
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        """Skip `pattern`. Returns whether text remains."""
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at + 1
        return self._at < len(self._text)

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _note(self, field: Field) -> None:
        line = bisect_right(self._newlines, self._at - 1) + 1
        for end in range(1, len(field) + 1):
            self.lines.setdefault(field[:end], line)

    def _key(self) -> list[str]:
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            start = self._at
            if self._peek('"') or self._peek("'"):
                self._skip(_STRING)
                parts.append(self._text[start + 1 : self._at - 1])
            else:
                self._skip(_BARE_KEY)
                parts.append(self._text[start : self._at])
            self._skip(_SPACE)
            if not self._peek("."):
                return parts
            self._at += 1

    def _header(self) -> Field:
        array = self._peek("[[")
        self._at += 2 if array else 1
        field: Field = ()
        *outer, last = self._key()
        for part in outer:
            field = (*field, part)
            if field in self._arrays:
                field = (*field, self._arrays[field])
        field = (*field, last)
        if array:
            self._arrays[field] = self._arrays.get(field, -1) + 1
            field = (*field, self._arrays[field])
        self._note(field)
        self._at += 2 if array else 1
        return field

    def _pair(self, table: Field) -> None:
        field = (*table, *self._key())
        self._note(field)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(field)

    def _value(self, field: Field) -> None:
        if self._peek('"') or self._peek("'"):
            self._skip(_STRING)
        elif self._peek("["):
            self._items("]", field)
        elif self._peek("{"):
            self._items("}", field)
        else:
            self._skip(_SCALAR)

    def _items(self, end: str, field: Field) -> None:
        """Scan an array or an inline table."""
        self._at += 1
        index = 0
        while self._skip(_BLANK) and not self._peek(end):
            if self._peek(","):
                self._at += 1
            elif end == "]":
                self._note((*field, index))
                self._value((*field, index))
                index += 1
            else:
                self._pair(field)
        self._at += 1

# SPDX-License-Identifier: GPL-2.0-only
"""Formats of lines: Polars parses whole blocks of lines.

A parser accepts a block or refuses it as a whole. A refused block is halved until the damaged lines
are alone, so that one parser serves both speed and exact messages.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isoblk.trace.batch import Bad, Batch, DamagedError, ticks
from isoblk.trace.record import READ, SECOND, WRITE, Array

# A parser may keep state between blocks, but must not change it for a refused block.
Parser = Callable[[bytes], Batch]
Columns = Mapping[str, pl.DataType | type[pl.DataType]]  # a line's fields, in order

LONGEST_LINE = 1 << 20
_HEAD_LINES = 200
_SHOWN = 40  # characters of wrong text that a message shows
_SPACES = b" \t\r"
# Text that is only inspected need not be UTF-8; control characters are no separators.
_PLAIN = bytes(c if 32 <= c < 127 or c == 10 else 32 if c in (9, 13) else 63 for c in range(256))


@dataclass(frozen=True)
class Lines:
    """A format of lines.

    shape: of a line, for messages. pattern: of a whole line, for the detection. parser: makes a
    parser. header: prefix of a first line that names the fields.
    """

    shape: str
    pattern: re.Pattern[bytes]
    parser: Callable[[], Parser]
    header: bytes = b""

    def matches(self, head: bytes) -> float:
        """Return the fraction of the first lines in this format."""
        found = first_lines(head)
        if self.header and found and found[0].startswith(self.header):
            found = found[1:] or found
        hits = sum(1 for line in found if self.pattern.fullmatch(line.strip()))
        return hits / len(found) if found else 0.0

    def batches(self, blocks: Iterable[bytes], bad: Bad) -> Iterator[Batch]:
        """Yield the requests of a file. Raises UserError: more damaged lines than allowed."""
        parse = self.parser()
        number = 1
        for lines in _whole_lines(blocks):
            skip = 0
            if number == 1 and self.header and lines.startswith(self.header):
                skip = lines.index(b"\n") + 1
            yield from self._parse(parse, lines[skip:], number + bool(skip), bad)
            number += lines.count(b"\n")

    def _parse(self, parse: Parser, lines: bytes, number: int, bad: Bad) -> Iterator[Batch]:
        todo = [(lines, number)]
        while todo:
            part, at = todo.pop()
            if not part or part.isspace():
                continue
            try:
                batch = parse(part)
            except DamagedError as error:
                middle = part.rfind(b"\n", 0, len(part) // 2) + 1
                middle = middle or part.find(b"\n", len(part) // 2) + 1
                if middle < len(part):
                    first, second = part[:middle], part[middle:]
                    todo += [(second, at + first.count(b"\n")), (first, at)]
                else:
                    bad.line(at, str(error) or f"not a record: {self.shape}")
                continue
            yield batch


def first_lines(head: bytes) -> list[bytes]:
    """Return the first complete, non-blank lines of a file's first bytes."""
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines.pop()
    return [line for line in lines[:_HEAD_LINES] if line.strip()]


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in blocks that end with a line."""
    rest = b""
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block
        if len(rest) > LONGEST_LINE:  # not text
            yield rest + b"\n"
            rest = b""
    if rest:
        yield rest + b"\n"


def table(
    lines: bytes,
    columns: Columns,
    wanted: Sequence[str],
    *,
    may_be_empty: Sequence[str] = (),
    more: bool = False,
) -> pl.DataFrame:
    """Return the wanted columns of comma-separated lines.

    Args:
        lines: the text.
        columns: all columns.
        wanted: the columns to return.
        may_be_empty: of the wanted ones, those that may be empty (null).
        more: whether further fields may follow.

    Raises:
        DamagedError: a line has other fields; blank lines are skipped.
    """
    if any(space in lines for space in _SPACES):
        lines = lines.translate(None, _SPACES)
    frame = _read(lines, columns, wanted, more)
    needed = [name for name in wanted if name not in may_be_empty]
    if frame is None or any(frame[name].null_count() for name in needed):
        kept = [line for line in lines.split(b"\n") if line.strip()]
        if len(kept) < lines.count(b"\n"):
            frame = _read(b"\n".join([*kept, b""]), columns, wanted, more)
    if frame is None or any(frame[name].null_count() for name in needed):
        raise DamagedError
    return frame


def _read(
    lines: bytes,
    columns: Columns,
    wanted: Sequence[str],
    more: bool,
) -> pl.DataFrame | None:
    try:
        return pl.read_csv(
            lines,
            has_header=False,
            schema=dict(columns),
            columns=[list(columns).index(name) for name in wanted],
            quote_char=None,
            truncate_ragged_lines=more,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None


def plain(lines: bytes) -> pl.Series:
    """Return the lines as printable ASCII without surrounding spaces; other characters become
    '?'."""
    text = pl.read_csv(
        lines.translate(_PLAIN),
        has_header=False,
        schema={"line": pl.String},
        separator="\x01",
        quote_char=None,
    )
    return text["line"].fill_null("").str.strip_chars(" ")


def groups(lines: pl.Series, pattern: str, names: Sequence[str]) -> pl.DataFrame:
    """Return the pattern's groups as text; null where a line or a group does not match."""
    found = lines.str.extract_groups(pattern)
    return found.struct.rename_fields(list(names)).struct.unnest()


def number(series: pl.Series, base: int = 10) -> Array:
    """Parse integers from text without nulls. Raises DamagedError: above 2^63 - 1."""
    try:
        if base == 10:
            return series.cast(pl.Int64).to_numpy()
        return series.str.to_integer(base=base, dtype=pl.Int64).to_numpy()
    except pl.exceptions.PolarsError:
        raise DamagedError("a number is out of range") from None


def decimal_times(series: pl.Series, ns: int) -> Array:
    """Parse decimal numbers in units of `ns` as nanoseconds (int64): exact to nine decimals, unlike
    a float. Raises DamagedError: malformed or out of range."""
    found = groups(series, r"^(\d+|\d*\.\d+|\d+\.)$", ["number"])["number"]
    if found.has_nulls():
        raise DamagedError(f"the time is {shown(series, found.is_null())}: not a decimal number")
    parts = groups(found, r"^(\d*)\.?(\d*)$", ["whole", "part"])
    whole = ticks(number(parts["whole"].replace("", "0")), ns)
    billionths = number(parts["part"].str.slice(0, 9).str.pad_end(9, "0"))
    exact: Array = whole + (billionths * ns + SECOND // 2) // SECOND
    return exact


def shown(series: pl.Series, where: pl.Series) -> str:
    """Return the first text for which `where` is true, shortened for a message."""
    text = str(series.filter(where)[0])
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def exact_seconds(series: pl.Series) -> Array:
    """Convert seconds as Decimal with nine digits to nanoseconds (int64)."""
    return series.to_physical().cast(pl.Int64).to_numpy()


def read_or_write(series: pl.Series, read: Sequence[str], write: Sequence[str]) -> Array:
    """Convert words to operations (uint8). Raises DamagedError: another word."""
    is_read = _is_one(series, read)
    is_write = _is_one(series, write)
    if not np.all(is_read | is_write):
        raise DamagedError
    return np.where(is_read, np.uint8(READ), np.uint8(WRITE))


def _is_one(series: pl.Series, words: Sequence[str]) -> Array:
    found = series == words[0]
    for word in words[1:]:
        found |= series == word
    return found.to_numpy()

# SPDX-License-Identifier: GPL-2.0-only
"""Tables of requests with columns that the user names, and the table that isoblk exports.

A line is a request; a separator is between its fields, which may be in double quotes. The first
line may name the columns. Ambiguous tables are errors.
"""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from isoblk.errors import UserError
from isoblk.run.units import parse_size
from isoblk.trace.batch import TIME_UNITS, Bad, Batch, DamagedError, Format, make_batch, sectors
from isoblk.trace.lines import Lines, decimal_times, number, shown
from isoblk.trace.record import ASYNC, FLUSH, FUA, OPS, PREFLUSH, READ, SECTOR, TRIM, WRITE, Array

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "space": " "}
# Roles of columns. A volume has its own address space, a stream has not.
_NEEDED = ("time", "op", "offset", "size")
_ROLES = (*_NEEDED, "volume", "stream", "flags")
_UNUSED = "-"
_MOST_COLUMNS = 1000
_SPELLINGS = {
    **dict.fromkeys(("r", "read"), READ),
    **dict.fromkeys(("w", "write"), WRITE),
    **dict.fromkeys(("d", "t", "trim", "discard", "unmap"), TRIM),
    **dict.fromkeys(("f", "flush", "sync", "fsync"), FLUSH),
}
_FLAGS = {"fua": FUA, "preflush": PREFLUSH, "async": ASYNC}
FLAG_WORDS = {
    bits: "+".join(word for word, bit in _FLAGS.items() if bits & bit)
    for bits in range((FUA | PREFLUSH | ASYNC) + 1)
}
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+", re.ASCII)
_BOM = codecs.BOM_UTF8
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    places: role to the name or the position (from 1) of its column.
    in_order: the roles in the order of the columns, if only that is known; a header with all of
    these names takes precedence.
    time_ns, offset_bytes, size_bytes: units of the values.
    separator: None to detect it from the first line.
    ops: further spellings of operations, in lower case.
    only: a column and its required value; other lines are left out.
    """

    places: Mapping[str, str]
    in_order: tuple[str, ...] = ()
    time_ns: int = 1
    offset_bytes: int = 1
    size_bytes: int = 1
    separator: str | None = None
    ops: Mapping[str, int] = field(default_factory=dict)
    only: tuple[str, str] | None = None


def parse_columns(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Parse --columns into `places` and `in_order` of Columns: "time,op,offset,size", with "-" for
    an unused column, or "time=ts,op=4,offset=lba,size=5".

    Raises:
        UserError: a role is unknown, named twice or missing.
    """
    items = [item.strip() for item in text.split(",")]
    pairs = [item.partition("=") for item in items]
    in_order = () if any(equals for _, equals, _ in pairs) else tuple(items)
    places: dict[str, str] = {}
    for role, equals, place in pairs:
        if role == _UNUSED and in_order:
            continue
        if role not in _ROLES or (equals and not place.strip()):
            raise _wrong(text, f"{role or 'nothing'} is not a column of a request")
        if role in places:
            raise _wrong(text, f"{role} is named twice")
        places[role] = place.strip() or role
    missing = [role for role in _NEEDED if role not in places]
    if missing:
        raise _wrong(text, f"{missing[0]} is missing")
    if "volume" in places and "stream" in places:
        raise _wrong(text, "a request is of a volume or of a stream")
    return places, in_order


def _wrong(text: str, cause: str) -> UserError:
    return UserError(
        f"--columns {text}: {cause}",
        next=f"name {', '.join(_NEEDED)}, and volume, stream or flags if they are there",
    )


def parse_ops(text: str) -> dict[str, int]:
    """Parse spellings of operations: "0=read,1=write". Raises UserError: malformed."""
    found: dict[str, int] = {}
    for item in text.split(","):
        word, _, op = item.rpartition("=")
        word = word.strip().lower()
        if not word or op.strip() not in OPS or word in found:
            raise UserError(
                f"--ops {text}: malformed spellings of operations",
                next=f"write them as 0=read,1=write, with {', '.join(OPS)}",
            )
        found[word] = OPS.index(op.strip())
    return found


@dataclass(frozen=True)
class _Layout:
    """A file's layout. at: index of each role's column. only: that of Columns.only. header: the
    first line if it names the columns, else empty."""

    separator: str
    width: int
    at: Mapping[str, int]
    only: int | None
    header: bytes


def _layout(columns: Columns, line: bytes, path: Path) -> _Layout:
    """Return the layout from the first line. Raises UserError: it is ambiguous."""
    where = f"{path}:1"
    text = line.decode("utf-8", "replace").strip(" \r")
    if not text.strip():
        raise UserError("the first line is blank", where=where, next="remove blank lines above")
    separator = columns.separator or _separator(text, where)
    try:
        fields = _split(text, separator)
    except csv.Error as error:
        raise UserError(
            f"malformed first line of a table: {error}",
            where=where,
            next="is each request a line that ends in a newline?",
        ) from None
    width = len(fields)
    if not len(_NEEDED) <= width <= _MOST_COLUMNS:
        raise UserError(
            f"columns: {width}, where {len(_NEEDED)} are needed",
            where=where,
            next="name the --separator",
        )
    header = _Header([name.lower() for name in fields], where)
    in_order = columns.in_order
    if in_order and not header.has_all(in_order):
        at = {role: i for i, role in enumerate(in_order) if role != _UNUSED}
        if not any(map(_is_number, fields)):  # names, but not all that are needed
            for place in columns.places.values():
                header.find(place)
        if width != len(in_order):
            raise UserError(
                f"{width} columns, of which --columns names {len(in_order)}",
                where=where,
                next=f'write "{_UNUSED}" for each that is not used, or time=NAME,...',
            )
        named = False
        if not all(_is_number(fields[at[role]]) for role in ("time", "offset")):
            raise UserError(
                f"neither a request nor the names of --columns: {_few(fields)}",
                where=where,
                next="name each column: --columns time=NAME,op=NAME,...",
            )
    else:
        at = {role: header.find(place) for role, place in columns.places.items()}
        named = not all(map(_is_position, columns.places.values())) or not any(
            _is_number(fields[at[role]]) for role in ("time", "offset")
        )
    only = None if columns.only is None else header.find(columns.only[0])
    named = named or (columns.only is not None and not _is_position(columns.only[0]))
    if len(set(at.values())) < len(at):
        raise UserError("two roles of --columns have the same column", where=where)
    return _Layout(separator, width, at, only, line if named else b"")


@dataclass(frozen=True)
class _Header:
    """The first line's fields, in lower case."""

    fields: list[str]
    where: str

    def has_all(self, names: Iterable[str]) -> bool:
        return all(name in self.fields for name in names if name != _UNUSED)

    def find(self, place: str) -> int:
        """Return the index of the column with that name or position. Raises UserError: it does not
        exist or is ambiguous."""
        if _is_position(place):
            if len(place) > len(str(_MOST_COLUMNS)) or not 1 <= int(place) <= len(self.fields):
                raise UserError(
                    f"no column {place}: the table has {len(self.fields)}", where=self.where
                )
            return int(place) - 1
        count = self.fields.count(place.lower())
        if count != 1:
            cause = f"{count} columns are called" if count else "no column is called"
            raise UserError(
                f"{cause} {place}; the first line is {_few(self.fields)}",
                where=self.where,
                next="name a column, or its position from 1",
            )
        return self.fields.index(place.lower())


def _few(fields: list[str]) -> str:
    return ", ".join(field[:20] for field in fields[:12]) + ", ..." * (len(fields) > 12)


def _separator(line: str, where: str) -> str:
    found = [name for name, char in SEPARATORS.items() if char != " " and char in line]
    if len(found) > 1:
        raise UserError(
            f"{' or '.join(found)} may be the separator", where=where, next="name the --separator"
        )
    return SEPARATORS[found[0] if found else "space"]


def _is_position(place: str) -> bool:
    return place.isascii() and place.isdecimal()


def _is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text))


def _split(line: str, separator: str) -> list[str]:
    """Split a first line, which may be a comment, into fields."""
    line = line.lstrip("#").strip(" ")
    if separator == " ":
        return line.replace('"', "").split()
    return [field.strip() for field in next(csv.reader([line], delimiter=separator), [])]


def _fields(lines: bytes, layout: _Layout) -> pl.DataFrame:
    """Return the fields of all lines as text, in columns "0", "1", ... Raises DamagedError."""
    separator = layout.separator
    text = pl.Series(lines.decode("utf-8", "replace").split("\n"), dtype=pl.String)
    text = text.str.strip_chars(" \r" if separator == "\t" else None)
    text = text.filter(text != "")
    if separator == " ":
        text = text.str.replace_all('"', "", literal=True).str.replace_all(r"[ \t]+", " ")
    names = [str(i) for i in range(layout.width)]
    if b'"' in lines and separator != " ":
        rows = _quoted(text.to_list(), layout)
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    counts = text.str.count_matches(separator, literal=True) + 1
    if (counts != layout.width).any():
        wrong = int(counts.filter(counts != layout.width)[0])
        raise DamagedError(f"{wrong} columns, not {layout.width}")
    found = text.str.split_exact(separator, layout.width - 1)
    return found.struct.rename_fields(names).struct.unnest()


def _quoted(lines: list[str], layout: _Layout) -> list[list[str]]:
    """Split as _fields(), line by line, for separators within quotes."""
    rows = []
    for line in lines:
        try:
            rows.append(next(csv.reader([line], delimiter=layout.separator, strict=True)))
        except csv.Error as error:
            raise DamagedError(f"not a line of a table: {error}") from None
        if len(rows[-1]) != layout.width:
            raise DamagedError(f"{len(rows[-1])} columns, not {layout.width}")
    return rows


def _parse(lines: bytes, columns: Columns, layout: _Layout) -> Batch:
    found = _fields(lines, layout)
    left_out = 0
    if layout.only is not None and columns.only is not None:
        kept = found.filter(found[str(layout.only)].str.strip_chars() == columns.only[1])
        left_out = found.height - kept.height
        found = kept

    def column(role: str) -> pl.Series:
        return found[str(layout.at[role])].str.strip_chars()

    op = _operations(column("op"), columns.ops)
    is_flush = pl.Series(op == FLUSH)
    volume: Array | int = 0
    for role in ("volume", "stream"):
        if role in layout.at:
            volume = _whole(column(role), role)
    return make_batch(
        decimal_times(column("time"), columns.time_ns),
        sectors(_whole(_or_zero(column("offset"), is_flush), "offset"), columns.offset_bytes),
        sectors(_whole(_or_zero(column("size"), is_flush), "size"), columns.size_bytes),
        op,
        volume=volume,
        flags=np.where(op == WRITE, _flags(column("flags")), 0) if "flags" in layout.at else 0,
        left_out=left_out,
    )


def _or_zero(series: pl.Series, is_flush: pl.Series) -> pl.Series:
    """Fill the empty address of a flush with zero."""
    empty = is_flush & (series == "")
    return pl.select(pl.when(empty).then(pl.lit("0")).otherwise(series)).to_series()


def _whole(series: pl.Series, role: str) -> Array:
    wrong = ~series.str.contains(r"^[0-9]+$")
    if wrong.any():
        raise DamagedError(f"the {role} is {shown(series, wrong)}: not a whole number")
    return number(series)


def _operations(series: pl.Series, more: Mapping[str, int]) -> Array:
    words = series.str.to_lowercase()
    found = words.replace_strict({**_SPELLINGS, **more}, default=None, return_dtype=pl.UInt8)
    unknown = found.is_null()
    if unknown.any():
        raise DamagedError(
            f"unknown operation {shown(series, unknown)}; define it with --ops, as 0=read,1=write"
        )
    return found.to_numpy()


def _flags(series: pl.Series) -> Array:
    bits = {words: bits for bits, words in FLAG_WORDS.items()}
    found = series.replace_strict(bits, default=None, return_dtype=pl.UInt8)
    if found.has_nulls():
        raise DamagedError(
            f"the flags are {shown(series, found.is_null())}, not some of {', '.join(_FLAGS)}"
        )
    return found.to_numpy()


def _batches(columns: Columns, blocks: Iterable[bytes], bad: Bad) -> Iterator[Batch]:
    rest = iter(blocks)
    first = next(rest, b"").removeprefix(_BOM)
    if first.startswith(_UTF_16):
        raise UserError("UTF-16 text", where=f"{bad.path}:1", next="save it as UTF-8")
    layout = _layout(columns, first.partition(b"\n")[0], bad.path)
    lines = Lines(
        shape="the columns of the first line",
        pattern=re.compile(b""),
        parser=lambda: lambda lines: _parse(lines, columns, layout),
        header=layout.header,
    )
    return lines.batches(chain([first], rest), bad)


def table(columns: Columns) -> Format:
    """Return the format of tables with these columns."""
    return Format(
        FORMAT.name,
        FORMAT.title,
        lambda _: 0.0,
        partial(_batches, columns),
        one_space="stream" in columns.places,
    )


# The header of isoblk's exports, for their detection.
HEADER = "time_ns,op,offset,size,stream,flags"
_OWN = Columns(
    {"time": "time_ns", **{name: name for name in ("op", "offset", "size", "stream", "flags")}},
    time_ns=TIME_UNITS["ns"],
    separator=",",
)


def _own(blocks: Iterable[bytes], bad: Bad) -> Iterator[Batch]:
    rest = iter(blocks)
    first = next(rest, b"")
    if not _matches(first):
        raise UserError(
            "the columns differ from those of isoblk's exports",
            where=f"{bad.path}:1",
            next="name them: --columns time,op,offset,size --time-unit us",
        )
    return _batches(_OWN, chain([first], rest), bad)


def _matches(head: bytes) -> float:
    return float(head.removeprefix(_BOM).partition(b"\n")[0].rstrip() == HEADER.encode())


FORMAT = Format("csv", "isoblk's CSV, or columns that are named", _matches, _own, one_space=True)


def unit_bytes(option: str, text: str) -> int:
    """Parse a unit of addresses or sizes: "byte", "sector" or a size. Raises UserError."""
    named = {"byte": 1, "sector": SECTOR}
    try:
        size = named[text] if text in named else parse_size(text)
    except ValueError:
        size = 0
    if not 1 <= size <= 1 << 30:
        raise UserError(
            f"{option} {text}: unknown unit", next="write byte, sector, or a size as 4k"
        )
    return size

# SPDX-License-Identifier: GPL-2.0-only
"""Export a compact trace as text for other tools, and report what their format cannot express."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from isoblk.errors import UserError
from isoblk.trace.compact import read_blocks
from isoblk.trace.formats.columns import FLAG_WORDS, HEADER
from isoblk.trace.record import (
    ASYNC,
    FLUSH,
    FUA,
    OPS,
    PREFLUSH,
    READ,
    SECTOR,
    TRIM,
    WRITE,
    Array,
    Records,
)

_ALL = (READ, WRITE, TRIM, FLUSH)
_FIELDS = ("t", "op", "offset", "bytes", "stream", "flags")
_FLAGS = {FUA: "FUA", PREFLUSH: "flush first", ASYNC: "asynchronous"}


@dataclass(frozen=True)
class Target:
    """A format to write.

    line: of a record, from its fields and its number n, from 1. begin: text before the first. ops,
    flags and streams: what the format can express. tick: ns, granularity of times. unit: bytes,
    granularity of addresses and sizes.
    """

    name: str
    line: pl.Expr
    begin: str = ""
    ops: Collection[int] = _ALL
    flags: int = 0
    streams: bool = False
    tick: int = 1
    unit: int = 1


@dataclass
class Exported:
    """Losses of an export. left_out: requests, by operation. flags: writes that lost a flag, by
    flag. streams: whose requests are no longer distinguished."""

    records: int = 0
    left_out: dict[int, int] = field(default_factory=dict)
    flags: dict[int, int] = field(default_factory=dict)
    widened: int = 0
    rounded: int = 0
    streams: set[int] = field(default_factory=set)

    def losses(self, target: Target) -> list[str]:
        """Return what the format could not express of this trace, a phrase each; empty without
        losses."""
        found = [f"left out, {OPS[op]}: {count:,}" for op, count in self.left_out.items()]
        found += [f"no longer {_FLAGS[flag]}: {count:,}" for flag, count in self.flags.items()]
        if self.widened:
            found.append(f"widened to whole sectors: {self.widened:,}")
        if self.rounded:
            found.append(f"times rounded down to {target.tick / 1000:g} µs: {self.rounded:,}")
        if not target.streams and self.streams - {0}:
            found.append(f"streams no longer distinguished: {len(self.streams):,}")
        return found


def export(source: Path, target: Target, write: Callable[[str], object]) -> Exported:
    """Write the text in pieces.

    Raises:
        UserError: not a compact trace, or the format can express none of its requests.
    """
    done = Exported()
    for records in read_blocks(source):
        kept = _kept(records, target, done)
        if not len(kept):
            continue
        frame = pl.DataFrame({name: np.ascontiguousarray(kept[name]) for name in _FIELDS})
        frame = frame.with_row_index("n", done.records + 1)
        text = frame.select(target.line).write_csv(include_header=False, quote_style="never")
        begin = "" if done.records else target.begin
        done.records += len(kept)
        write(begin + text)
    if not done.records:
        raise UserError(f"has no request that {target.name} can express", where=str(source))
    return done


def _kept(records: Records, target: Target, done: Exported) -> Records:
    """Return the records that the format can express."""
    ops = records["op"]
    for op in set(_ALL) - set(target.ops):
        if count := int(np.count_nonzero(ops == op)):
            done.left_out[op] = done.left_out.get(op, 0) + count
    kept: Records = records[np.isin(ops, list(target.ops))].copy()
    for flag in _FLAGS:
        if not flag & target.flags and (count := int(np.count_nonzero(kept["flags"] & flag))):
            done.flags[flag] = done.flags.get(flag, 0) + count
    kept["flags"] &= target.flags
    done.streams.update(np.unique(kept["stream"]).tolist())
    time = kept["t"] // np.uint64(target.tick) * np.uint64(target.tick)
    done.rounded += int(np.count_nonzero(time != kept["t"]))
    kept["t"] = time
    _widen(kept, target.unit, done)
    return kept


def _widen(records: Records, unit: int, done: Exported) -> None:
    """Round requests outwards to multiples of `unit`."""
    begin: Array = records["offset"] // np.uint64(unit) * np.uint64(unit)
    end = records["offset"] + records["bytes"]
    size = -(-(end - begin).astype(np.int64) // unit) * unit
    # A request's size is below 4 GiB.
    size = np.minimum(size, (1 << 32) - unit)
    done.widened += int(np.count_nonzero(size != records["bytes"]))
    records["offset"] = begin
    records["bytes"] = size


def _seconds(digits: int, ns: int) -> pl.Expr:
    """Format a time in units of `ns` nanoseconds, with `digits` decimals."""
    whole = (pl.col("t") // ns).cast(pl.String)
    return pl.concat_str(whole, pl.lit("."), (pl.col("t") % ns).cast(pl.String).str.zfill(digits))


def _words(column: str, words: dict[int, str]) -> pl.Expr:
    return pl.col(column).replace_strict(words, return_dtype=pl.String)


def _csv() -> pl.Expr:
    return pl.concat_str(
        pl.col("t"),
        _words("op", dict(enumerate(OPS))),
        pl.col("offset"),
        pl.col("bytes"),
        pl.col("stream"),
        _words("flags", FLAG_WORDS),
        separator=",",
    )


# fio looks for a file of that name unless --replay_redirect names a device, so it must not be a
# disk.
_FIO_FILE = "isoblk-trace"


def _iolog() -> pl.Expr:
    words = {READ: "read", WRITE: "write", TRIM: "trim", FLUSH: "sync"}
    return pl.concat_str(
        pl.col("t") // 1000,
        pl.lit(_FIO_FILE),
        _words("op", words),
        pl.col("offset"),
        pl.col("bytes"),
        separator=" ",
    )


def _disksim() -> pl.Expr:
    return pl.concat_str(
        _seconds(6, 1_000_000),
        pl.lit("0"),
        pl.col("offset") // SECTOR,
        pl.col("bytes") // SECTOR,
        (pl.col("op") == READ).cast(pl.UInt8),
        separator=" ",
    )


def _blkparse() -> pl.Expr:
    """Return device, CPU, sequence, time, PID, action and operation as blkparse aligns them. The
    PID and the process's name are the stream."""
    flush = pl.col("op") == FLUSH
    flags = pl.col("flags")
    rwbs = pl.concat_str(
        pl.when(flush | (flags & PREFLUSH > 0)).then(pl.lit("F")).otherwise(pl.lit("")),
        _words("op", {READ: "R", WRITE: "W", TRIM: "D", FLUSH: "W"}),
        pl.when(flags & FUA > 0).then(pl.lit("F")).otherwise(pl.lit("")),
        pl.when((pl.col("op") != READ) & (flags & ASYNC == 0))
        .then(pl.lit("S"))
        .otherwise(pl.lit("")),
    )
    where = pl.concat_str(
        (pl.col("offset") // SECTOR), pl.lit(" + "), (pl.col("bytes") // SECTOR), pl.lit(" ")
    )
    return pl.concat_str(
        pl.lit("  8,0    0 "),
        pl.col("n").cast(pl.String).str.pad_start(8),
        pl.lit(" "),
        _seconds(9, 1_000_000_000).str.pad_start(15),
        pl.lit(" "),
        pl.col("stream").cast(pl.String).str.pad_start(5),
        pl.lit("  Q "),
        rwbs.str.pad_start(3),
        pl.lit(" "),
        pl.when(flush).then(pl.lit("")).otherwise(where),
        pl.lit("[stream"),
        pl.col("stream"),
        pl.lit("]"),
    )


TARGETS = {
    target.name: target
    for target in (
        Target(
            "iolog",
            _iolog(),
            begin=f"fio version 3 iolog\n0 {_FIO_FILE} add\n0 {_FIO_FILE} open\n",
            tick=1000,
        ),
        Target("blkparse", _blkparse(), flags=FUA | PREFLUSH | ASYNC, unit=SECTOR),
        Target("disksim", _disksim(), ops=(READ, WRITE), unit=SECTOR),
        Target("csv", _csv(), begin=f"{HEADER}\n", flags=FUA | PREFLUSH | ASYNC, streams=True),
    )
}

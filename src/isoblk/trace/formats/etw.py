# SPDX-License-Identifier: GPL-2.0-only
"""Microsoft production servers (SNIA IOTTA: Exchange, MSN and others): ETW as text.

A block from BeginHeader to EndHeader names the fields of every event; then a line per event:

    DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize,
        ElapsedTime, DiskNum, IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName

DiskWrite has the same fields; DiskFlush has neither ByteOffset nor IOSize. Times are in
microseconds since the trace began. Events are written at the end of a request, which started at
TimeStamp - ElapsedTime. ByteOffset and IOSize are hexadecimal, in bytes. Other events (file
operations, threads, ...) are skipped. Source: the headers of the traces; Kavalanekar et al., IISWC
2008.
"""

import re

import numpy as np
import polars as pl

from isoblk.trace.batch import Batch, DamagedError, Format, make_batch, no_requests, ticks
from isoblk.trace.lines import Lines, first_lines, groups, number, plain
from isoblk.trace.record import FLUSH, READ, WRITE, Array

_KIND = r"^(DiskRead|DiskWrite|DiskFlush) *,"
_NAMES = ("op", "time", "offset", "size", "elapsed", "disk")
_PATTERN = (
    r"^(DiskRead|DiskWrite|DiskFlush) *, *(\d+) *,[^,]*,[^,]*,[^,]*"
    r"(?:, *(?:0x)?([0-9a-fA-F]+) *, *(?:0x)?([0-9a-fA-F]+) *)?"
    r", *(\d+) *, *(\d+) *,"
)


def _parse(lines: bytes) -> Batch:
    events = plain(lines)
    ours = events.str.contains(_KIND) & ~events.str.contains(r"^[A-Za-z]+ *, *TimeStamp *,")
    left_out = len(events) - int(ours.sum())
    if left_out == len(events):
        return no_requests(_events(events))
    found = groups(events.filter(ours), _PATTERN, _NAMES)
    flush = (found["op"] == "DiskFlush").fill_null(False)
    if found["disk"].has_nulls() or (found["offset"].is_null() & ~flush).any():
        raise DamagedError
    end = ticks(number(found["time"]), 1000)
    elapsed = ticks(number(found["elapsed"]), 1000)
    op = np.where((found["op"] == "DiskRead").to_numpy(), READ, WRITE)
    return make_batch(
        end - elapsed,
        _hexadecimal(found["offset"], flush),
        _hexadecimal(found["size"], flush),
        np.where(flush.to_numpy(), FLUSH, op),
        volume=number(found["disk"]),
        left_out=_events(events.filter(~ours)),
    )


def _events(lines: pl.Series) -> int:
    """Return the number of events, which have a time; lines of the header have none."""
    return int(lines.str.contains(r"^[A-Za-z]+ *, *\d+ *,").sum())


def _hexadecimal(series: pl.Series, flush: pl.Series) -> Array:
    """Parse hexadecimal numbers; a flush has no address, whatever its fields look like."""
    return number(pl.select(pl.when(~flush).then(series).otherwise(pl.lit("0"))).to_series(), 16)


def _matches(head: bytes) -> float:
    lines = [line.strip() for line in first_lines(head)]
    event = re.compile(_KIND.encode())
    return float(b"BeginHeader" in lines or any(event.match(line) for line in lines))


_LINES = Lines(
    shape="DiskRead|DiskWrite, TimeStamp, Process, ThreadID, IrpPtr, ByteOffset, IOSize,"
    " ElapsedTime, DiskNum, ...",
    pattern=re.compile(_PATTERN.encode()),
    parser=lambda: _parse,
)
FORMAT = Format("etw", "Microsoft ETW text", _matches, _LINES.batches)

# SPDX-License-Identifier: GPL-2.0-only
"""Tencent Cloud Block Storage (SNIA IOTTA), 2018.

    Timestamp,Offset,Size,IOType,VolumeID

Timestamp: Unix time in whole seconds, so all requests of a second are issued at its start. Offset,
Size: in 512 bytes. IOType: 0 read, 1 write. Source: the README of the trace set.
"""

import re

import polars as pl

from isoblk.trace.batch import Batch, DamagedError, Format, make_batch, sectors, ticks
from isoblk.trace.lines import Lines, table
from isoblk.trace.record import SECOND

_COLUMNS = {
    "time": pl.Int64,
    "offset": pl.UInt64,
    "size": pl.UInt64,
    "op": pl.UInt8,
    "volume": pl.Int64,
}


def _parse(lines: bytes, ns: int) -> Batch:
    found = table(lines, _COLUMNS, list(_COLUMNS))
    op = found["op"].to_numpy()  # numbered as in a record
    if len(op) and op.max() > 1:
        raise DamagedError
    return make_batch(
        ticks(found["time"].to_numpy(), ns),
        sectors(found["offset"].to_numpy()),
        sectors(found["size"].to_numpy()),
        op,
        volume=found["volume"].to_numpy(),
    )


def _lines(ns: int) -> Lines:
    return Lines(
        shape="Timestamp,Offset,Size,0|1,VolumeID",
        pattern=re.compile(rb"\d{9,},\d+,\d+,[01],\d+"),
        parser=lambda: lambda lines: _parse(lines, ns),
        header=b"Timestamp,Offset",
    )


_LINES = _lines(SECOND)
FORMAT = Format(
    "tencent", "Tencent block trace", _LINES.matches, _LINES.batches, lambda ns: _lines(ns).batches
)

# SPDX-License-Identifier: GPL-2.0-only
"""Alibaba Cloud block traces, 2020.

    device_id,opcode,offset,length,timestamp

Opcode: R or W. Offset, length: bytes. Timestamp: Unix time in microseconds.
Source: github.com/alibaba/block-traces.
"""

import re

import polars as pl

from isoblk.trace.batch import Batch, Format, make_batch, ticks
from isoblk.trace.lines import Lines, read_or_write, table

_COLUMNS = {
    "device": pl.Int64,
    "op": pl.String,
    "offset": pl.UInt64,
    "size": pl.UInt64,
    "time": pl.Int64,
}


def _parse(lines: bytes, ns: int) -> Batch:
    found = table(lines, _COLUMNS, list(_COLUMNS))
    return make_batch(
        ticks(found["time"].to_numpy(), ns),
        found["offset"].to_numpy(),
        found["size"].to_numpy(),
        read_or_write(found["op"], ("R",), ("W",)),
        volume=found["device"].to_numpy(),
    )


def _lines(ns: int) -> Lines:
    return Lines(
        shape="device_id,R|W,offset,length,timestamp",
        pattern=re.compile(rb"\d+,[RW],\d+,\d+,\d+"),
        parser=lambda: lambda lines: _parse(lines, ns),
        header=b"device_id,",
    )


_LINES = _lines(1000)
FORMAT = Format(
    "alibaba", "Alibaba block trace", _LINES.matches, _LINES.batches, lambda ns: _lines(ns).batches
)

# SPDX-License-Identifier: GPL-2.0-only
"""MSR Cambridge (SNIA IOTTA): one week of 13 servers, 2007.

    Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime

Timestamp: time of issue, as Windows file time (100 ns since 1601). Type: Read or Write. Offset,
Size: bytes. A file is one disk of one host; the host's name is ignored. Source: the README of the
trace set.
"""

import re

import polars as pl

from isoblk.trace.batch import Batch, Format, make_batch, ticks
from isoblk.trace.lines import Lines, read_or_write, table

_COLUMNS = {
    "time": pl.Int64,
    "host": pl.String,
    "disk": pl.Int64,
    "op": pl.String,
    "offset": pl.UInt64,
    "size": pl.UInt64,
    "response": pl.UInt64,
}
_UNIX_EPOCH = 116_444_736_000_000_000  # 1970, in 100 ns since 1601


def _parse(lines: bytes) -> Batch:
    found = table(lines, _COLUMNS, [name for name in _COLUMNS if name != "host"])
    return make_batch(
        ticks(found["time"].to_numpy(), 100, epoch=_UNIX_EPOCH),
        found["offset"].to_numpy(),
        found["size"].to_numpy(),
        read_or_write(found["op"], ("Read",), ("Write",)),
        volume=found["disk"].to_numpy(),
    )


_LINES = Lines(
    shape="Timestamp,Hostname,DiskNumber,Read|Write,Offset,Size,ResponseTime",
    pattern=re.compile(rb"\d+,[^,]*,\d+,(Read|Write),\d+,\d+,\d+"),
    parser=lambda: _parse,
    header=b"Timestamp,Hostname",
)
FORMAT = Format("msr", "MSR Cambridge", _LINES.matches, _LINES.batches)

# SPDX-License-Identifier: GPL-2.0-only
"""SPC, of the Storage Performance Council: the UMass traces (Financial, WebSearch).

    ASU,LBA,size,opcode,timestamp[,...]

ASU: the application's storage unit, a volume. LBA: in 512 bytes, as in the UMass files. Size:
bytes. Opcode: R or W, either case. Timestamp: seconds since the trace began. Source: "SPC Trace
File Format Specification", revision 1.0.1, UMass Trace Repository.
"""

import re

import polars as pl

from isoblk.trace.batch import Batch, Format, decimals, make_batch, sectors
from isoblk.trace.lines import Lines, read_or_write, table
from isoblk.trace.record import SECOND

_COLUMNS = {
    "asu": pl.Int64,
    "lba": pl.UInt64,
    "size": pl.UInt64,
    "op": pl.String,
    "time": pl.Float64,
}


def _parse(lines: bytes, ns: int) -> Batch:
    found = table(lines, _COLUMNS, list(_COLUMNS), more=True)
    return make_batch(
        decimals(found["time"].to_numpy(), ns),
        sectors(found["lba"].to_numpy()),
        found["size"].to_numpy(),
        read_or_write(found["op"], ("R", "r"), ("W", "w")),
        volume=found["asu"].to_numpy(),
    )


def _lines(ns: int) -> Lines:
    return Lines(
        shape="ASU,LBA,size,R|W,seconds",
        pattern=re.compile(rb"\d+, *\d+, *\d+, *[rRwW], *[\d.]+(e[-+]?\d+)?(,.*)?"),
        parser=lambda: lambda lines: _parse(lines, ns),
    )


_LINES = _lines(SECOND)
FORMAT = Format("spc", "SPC (UMass)", _LINES.matches, _LINES.batches, lambda ns: _lines(ns).batches)

# SPDX-License-Identifier: GPL-2.0-only
"""SNIA Systor '17 (IOTTA): virtual desktops, 2016.

    Timestamp,Response,IOType,LUN,Offset,Size

Timestamp: time of issue, Unix time in seconds with nine decimals. Response: seconds, may be blank.
IOType: R, W, or blank without a response: such a line is not a request and is left out. Offset,
Size: bytes. Source: the README of the trace set.
"""

import re

import numpy as np
import polars as pl

from isoblk.trace.batch import Batch, Format, make_batch
from isoblk.trace.lines import Columns, Lines, exact_seconds, read_or_write, table

_COLUMNS: Columns = {
    "time": pl.Decimal(19, 9),
    "response": pl.Float64,
    "op": pl.String,
    "lun": pl.Int64,
    "offset": pl.UInt64,
    "size": pl.UInt64,
}


def _parse(lines: bytes) -> Batch:
    found = table(lines, _COLUMNS, list(_COLUMNS), may_be_empty=("response", "op"))
    answered = (found["op"].is_not_null() & (found["op"] != "").fill_null(False)).to_numpy()
    return make_batch(
        exact_seconds(found["time"]),
        found["offset"].to_numpy(),
        np.where(answered, found["size"].to_numpy(), 0),
        read_or_write(found["op"].replace("", None).fill_null("R"), ("R",), ("W",)),
        volume=found["lun"].to_numpy(),
    )


_LINES = Lines(
    shape="Timestamp,Response,R|W,LUN,Offset,Size",
    pattern=re.compile(rb"\d+\.\d+,[\d.]*,[RW]?,\d+,\d+,\d+"),
    parser=lambda: _parse,
    header=b"Timestamp,Response",
)
FORMAT = Format("systor", "SNIA Systor '17", _LINES.matches, _LINES.batches)

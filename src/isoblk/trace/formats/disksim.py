# SPDX-License-Identifier: GPL-2.0-only
"""DiskSim ASCII, DiskSim's default trace format; also MQSim's.

    arrival_ms device block blocks flags

Arrival: milliseconds since the start. Block and blocks: in 512 bytes. Flags: hexadecimal, bit
0 set for a read.
Source: "The DiskSim Simulation Environment Version 4.0 Reference Manual", section on traces.
"""

import re

import numpy as np
import polars as pl

from isoblk.trace.batch import Batch, DamagedError, Format, decimals, make_batch, sectors
from isoblk.trace.lines import Lines, groups, number, plain
from isoblk.trace.record import READ, WRITE

_PATTERN = r"^(\d+(?:\.\d*)?|\.\d+) +(\d+) +(\d+) +(\d+) +(?:0x)?([0-9a-fA-F]+)$"
_NAMES = ("time", "device", "block", "blocks", "flags")


def _parse(lines: bytes) -> Batch:
    text = plain(lines)
    found = groups(text.filter(text != ""), _PATTERN, _NAMES)
    if found["flags"].has_nulls():
        raise DamagedError
    return make_batch(
        decimals(found["time"].cast(pl.Float64).to_numpy(), 1_000_000),
        sectors(number(found["block"])),
        sectors(number(found["blocks"])),
        np.where(number(found["flags"], 16) & 1, READ, WRITE),
        volume=number(found["device"]),
    )


_LINES = Lines(
    shape="arrival_ms device block blocks flags",
    pattern=re.compile(rb"[\d.]+\s+\d+\s+\d+\s+\d+\s+(0x)?[0-9a-fA-F]+"),
    parser=lambda: _parse,
)
FORMAT = Format("disksim", "DiskSim ASCII", _LINES.matches, _LINES.batches)

# SPDX-License-Identifier: GPL-2.0-only
"""DiskSim ASCII, DiskSim's default trace format.

    arrival_ms device block blocks flags

Arrival: milliseconds since the start. Block and blocks: in 512 bytes. Flags: hexadecimal, bit
0 set for a read.
Source: "The DiskSim Simulation Environment Version 4.0 Reference Manual", section on traces.
"""

import re

import numpy as np

from isoblk.trace.batch import Batch, Batches, DamagedError, Format, make_batch, sectors
from isoblk.trace.lines import Lines, decimal_times, first_lines, groups, number, plain
from isoblk.trace.record import READ, WRITE

_PATTERN = r"^(\d+(?:\.\d*)?|\.\d+) +(\d+) +(\d+) +(\d+) +(?:0x)?([0-9a-fA-F]+)$"
_NAMES = ("time", "device", "block", "blocks", "flags")


def _parse(lines: bytes, ns: int) -> Batch:
    text = plain(lines)
    found = groups(text.filter(text != ""), _PATTERN, _NAMES)
    if found["flags"].has_nulls():
        raise DamagedError
    return make_batch(
        decimal_times(found["time"], ns),
        sectors(number(found["block"])),
        sectors(number(found["blocks"])),
        np.where(number(found["flags"], 16) & 1, READ, WRITE),
        volume=number(found["device"]),
    )


def _lines(ns: int) -> Lines:
    return Lines(
        shape="arrival device block blocks flags",
        pattern=re.compile(rb"[\d.]+\s+\d+\s+\d+\s+\d+\s+(0x)?[0-9a-fA-F]+"),
        parser=lambda: lambda lines: _parse(lines, ns),
    )


def batches(ns: int) -> Batches:
    """Return the function that reads a file whose times are in units of `ns`."""
    return _lines(ns).batches


def matches(head: bytes) -> float:
    """Return the fraction of the first lines with these fields."""
    return _lines(1).matches(head)


def whole_times(head: bytes) -> bool:
    """Return whether all times of the first lines are integers."""
    lines = first_lines(head)
    return bool(lines) and all(b"." not in (line.split() or [b"."])[0] for line in lines)


FORMAT = Format(
    "disksim",
    "DiskSim ASCII",
    # Without fractions it is rather MQSim's.
    lambda head: matches(head) * (0.9 if whole_times(head) else 1),
    batches(1_000_000),
    batches,
)

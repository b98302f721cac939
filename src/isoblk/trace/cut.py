# SPDX-License-Identifier: GPL-2.0-only
"""Extract a part of a compact trace as a compact trace."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isoblk.errors import UserError
from isoblk.trace.compact import Header, Writer, read_blocks
from isoblk.trace.record import FLUSH, Records, ends


@dataclass(frozen=True)
class Part:
    """The part to keep; all conditions must hold. Ranges exclude their end; None: no limit.

    records: counted from 0. times: ns since the first record. streams: empty for all. addresses:
    bytes; a request is kept if all of it is inside, and a flush always.
    move: shift the lowest address to 0. keep_times: keep times relative to the whole trace.
    """

    records: tuple[int | None, int | None] = (None, None)
    times: tuple[int | None, int | None] = (None, None)
    streams: tuple[int, ...] = ()
    addresses: tuple[int | None, int | None] = (None, None)
    move: bool = False
    keep_times: bool = False


def cut(source: Path, output: Path, part: Part) -> Header:
    """Write the part; its first record is at time 0, unless times are kept.

    Raises:
        UserError: `source` is not a compact trace, no request remains, or `output` cannot be
            written.
    """
    begin = lowest = None
    for records in _kept(source, part):
        if begin is None:
            begin = 0 if part.keep_times else int(records["t"][0])
        moves = records[records["op"] != FLUSH]
        if part.move and len(moves):
            low = int(moves["offset"].min())
            lowest = low if lowest is None else min(lowest, low)
        elif not part.move:
            break
    if begin is None:
        raise UserError("no request is in that part", where=str(source))
    with Writer(output) as writer:
        for records in _kept(source, part):
            records["t"] -= begin
            records["offset"][records["op"] != FLUSH] -= np.uint64(lowest or 0)
            writer.write(records)
    return writer.header


def _kept(source: Path, part: Part) -> Iterator[Records]:
    first, stop = part.records
    start, end = part.times
    low, high = part.addresses
    for records in read_blocks(source, first or 0, stop):
        time = records["t"]
        if end is not None and time[0] >= end:
            return
        keep = np.ones(len(records), bool)
        if start is not None:
            keep &= time >= np.uint64(start)
        if end is not None:
            keep &= time < np.uint64(end)
        if part.streams:
            keep &= np.isin(records["stream"], part.streams)
        inside = np.ones(len(records), bool)
        if low is not None:
            inside &= records["offset"] >= np.uint64(low)
        if high is not None:
            inside &= ends(records) <= np.uint64(high)
        keep &= inside | (records["op"] == FLUSH)
        if keep.any():
            yield records[keep]

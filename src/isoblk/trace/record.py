# SPDX-License-Identifier: GPL-2.0-only
"""The record of a trace: a request as it is stored and replayed.

A record has 24 bytes, little endian; `compact` describes the file.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

RECORD = np.dtype(
    [
        ("t", "<u8"),  # ns since the first record
        ("offset", "<u8"),  # bytes
        ("bytes", "<u4"),
        ("op", "u1"),
        ("flags", "u1"),
        ("stream", "<u2"),  # a volume's number, or 0
    ]
)
Records = npt.NDArray[np.void]  # of RECORD
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

OPS = ("read", "write", "trim", "flush")
READ, WRITE, TRIM, FLUSH = range(len(OPS))
# Flags, of writes.
FUA = 1  # durable when it completes
PREFLUSH = 2  # earlier completed writes are made durable first
ASYNC = 4  # no task waits for it, as for writeback of the page cache

SECTOR = 512
SECOND = 1_000_000_000
LARGEST = (1 << 63) - 1  # the kernel's byte addresses are signed
LARGEST_REQUEST = (1 << 32) - 1
MOST_STREAMS = 1 << 16


def empty() -> Records:
    """Return no records."""
    return np.empty(0, RECORD)


def ends(records: Records) -> Array:
    """Return the byte after each request's last."""
    end: Array = records["offset"] + records["bytes"]
    return end


def write_flags(op: Array, fua: Array, preflush: Array, sync: Array) -> Array:
    """Return a record's flags, which only writes have."""
    flags = fua * np.uint8(FUA) + preflush * np.uint8(PREFLUSH) + ~sync * np.uint8(ASYNC)
    found: Array = np.where(op == WRITE, flags, 0).astype(np.uint8)
    return found

# SPDX-License-Identifier: GPL-2.0-only
"""What a trace is made of: requests, in the form in which they are stored and replayed.

A request is one record of 24 bytes, little endian; `compact` says what a file of them is.
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
        ("stream", "<u2"),  # whose: a volume's number, or 0
    ]
)
Records = npt.NDArray[np.void]  # of RECORD
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

OPS = ("read", "write", "trim", "flush")
READ, WRITE, TRIM, FLUSH = range(len(OPS))
# Flags, of writes.
FUA = 1  # it is to be stable when it ends
PREFLUSH = 2  # what ended before it is to be stable first
ASYNC = 4  # nobody waits for it, as for what the page cache writes back

SECTOR = 512
SECOND = 1_000_000_000
LARGEST = (1 << 63) - 1  # the kernel's byte addresses are signed
LARGEST_REQUEST = (1 << 32) - 1
MOST_STREAMS = 1 << 16


def empty() -> Records:
    """No records."""
    return np.empty(0, RECORD)


def ends(records: Records) -> Array:
    """The byte after each request's last."""
    end: Array = records["offset"] + records["bytes"]
    return end


def write_flags(op: Array, fua: Array, preflush: Array, sync: Array) -> Array:
    """A record's flags, which only writes have, from what each request is."""
    flags = fua * np.uint8(FUA) + preflush * np.uint8(PREFLUSH) + ~sync * np.uint8(ASYNC)
    found: Array = np.where(op == WRITE, flags, 0).astype(np.uint8)
    return found

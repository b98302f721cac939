# SPDX-License-Identifier: GPL-2.0-only
"""Compact traces, written by hand: kernel/README.md has the format."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

READ, WRITE, TRIM, FLUSH = range(4)
OPS = ("read", "write", "trim", "flush")
FUA, PREFLUSH, ASYNC = 1, 2, 4


class Rec(NamedTuple):
    """One record; t in ns."""

    t: int
    op: int = READ
    offset: int = 0
    bytes: int = 4096
    flags: int = 0
    stream: int = 0


def packed(
    records: Sequence[Rec], *, magic: bytes = b"ISOTRACE", version: int = 1, end: int | None = None
) -> bytes:
    """A whole file. end: what the header says of the last byte, if not the truth."""
    if end is None:
        end = max((r.offset + r.bytes for r in records if r.op != FLUSH), default=0)
    span = records[-1].t if records else 0
    header = struct.pack("<8sIIQQQ24x", magic, version, 24, len(records), span, end)
    return header + b"".join(
        struct.pack("<QQIBBH", r.t, r.offset, r.bytes, r.op, r.flags, r.stream) for r in records
    )


def write_trace(path: Path, records: Sequence[Rec]) -> Path:
    """Write a compact trace."""
    path.write_bytes(packed(records))
    return path

# SPDX-License-Identifier: GPL-2.0-only
"""CloudPhysics VSCSI, versions 1 and 2: SCSI commands of virtual disks, in binary.

Version 1, 32 bytes: u32 number, length, segments; u16 command, version; u64 block, time. Version 2,
40 bytes: u16 command, version; u32 number, length, segments; u64 block, time, response time. Little
endian. The version is in the upper byte of its field. Length: bytes. Block: of 512 bytes. Time:
microseconds. Commands are SCSI's operation codes; those without data, except SYNCHRONIZE CACHE, are
left out. Source: the readers of libCacheSim (github.com/1a1a11a/libCacheSim); SCSI: SBC-4.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from isoblk.trace.batch import Bad, Batch, DamagedError, Format, make_batch, sectors, ticks
from isoblk.trace.formats import fixed
from isoblk.trace.record import FLUSH, READ, WRITE, Array

_V1 = np.dtype(
    [
        ("sn", "<u4"),
        ("size", "<u4"),
        ("segments", "<u4"),
        ("command", "<u2"),
        ("version", "<u2"),
        ("block", "<u8"),
        ("time", "<u8"),
    ]
)
_V2 = np.dtype(
    [
        ("command", "<u2"),
        ("version", "<u2"),
        ("sn", "<u4"),
        ("size", "<u4"),
        ("segments", "<u4"),
        ("block", "<u8"),
        ("time", "<u8"),
        ("response", "<u8"),
    ]
)
_VERSIONS = ((1, _V1), (2, _V2))
_READS = (0x08, 0x28, 0x88, 0xA8)  # READ (6), (10), (16), (12)
# WRITE (6), (10), (16), (12), and those AND VERIFY
_WRITES = (0x0A, 0x2A, 0x8A, 0xAA, 0x2E, 0x8E, 0xAE)
_FLUSHES = (0x35, 0x91)


def _parse(records: Array, version: int) -> Batch:
    if np.any(records["version"] >> 8 != version):
        raise DamagedError(f"not a VSCSI record of version {version}")
    command = records["command"] & 0xFF
    is_read = np.isin(command, _READS)
    is_flush = np.isin(command, _FLUSHES)
    known = is_read | is_flush | np.isin(command, _WRITES)
    return make_batch(
        ticks(records["time"], 1000),
        sectors(np.where(known, records["block"], 0)),
        np.where(known, records["size"], 0),
        np.where(is_read, READ, np.where(is_flush, FLUSH, WRITE)),
    )


def _version(head: bytes) -> int:
    """Return the version; 0 for another format."""
    for version, record in _VERSIONS:
        records = fixed.head_records(head, record)
        if len(records) and np.all(records["version"] >> 8 == version):
            return version
    return 0


def _batches(blocks: Iterable[bytes], bad: Bad) -> Iterator[Batch]:
    rest = iter(blocks)
    first = next(rest, b"")
    version = _version(first[: 2 * _V2.itemsize]) or 2
    record = dict(_VERSIONS)[version]
    return fixed.batches(
        chain([first], rest), bad, record, lambda records: _parse(records, version)
    )


FORMAT = Format("vscsi", "CloudPhysics VSCSI", lambda head: float(bool(_version(head))), _batches)

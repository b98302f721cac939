# SPDX-License-Identifier: GPL-2.0-only
"""libCacheSim's oracleGeneral, a cache trace of 24 binary bytes per record, little endian.

u32 time in seconds, u64 object, u32 size in bytes, i64 number of the next request for the object
(-1 or the largest number: none). The format has no operation: all are reads. In traces made from
block traces the object is the sector. It is taken as one, modulo 2^54, which keeps sectors and
spreads hashed names over the address space. Source: github.com/1a1a11a/libCacheSim,
oracleGeneralBin.h.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from isoblk.trace.batch import Bad, Batch, DamagedError, Format, make_batch, sectors, ticks
from isoblk.trace.formats import fixed
from isoblk.trace.record import LARGEST, READ, SECOND, Array

_RECORD = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
_OBJECTS = np.uint64((1 << 54) - 1)
_LONGEST = 10**12  # bound of the records in a trace


def _damaged(records: Array) -> bool:
    following = records["next"]
    return bool(np.any((following < -1) | ((following > _LONGEST) & (following != LARGEST))))


def _parse(records: Array) -> Batch:
    if _damaged(records):
        raise DamagedError("not an oracleGeneral record: the next request's number is impossible")
    return make_batch(
        ticks(records["time"], SECOND),
        sectors(records["object"] & _OBJECTS),
        records["size"],
        READ,
    )


def _matches(head: bytes) -> float:
    records = fixed.head_records(head, _RECORD)
    times = records["time"].astype(np.int64)
    # Any bytes could be such records; those of a trace advance in time, and refer forward.
    fits = (
        len(records) > 0
        and len(set(head)) > 1
        and not _damaged(records)
        and bool(np.all(np.diff(times) >= 0))
        and bool(np.all((records["next"] == -1) | (records["next"] > np.arange(len(records)))))
    )
    return 0.9 * fits  # a magic number is a better sign


def _batches(blocks: Iterable[bytes], bad: Bad) -> Iterator[Batch]:
    return fixed.batches(blocks, bad, _RECORD, _parse)


FORMAT = Format("oracle", "libCacheSim oracleGeneral", _matches, _batches)

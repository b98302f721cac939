# SPDX-License-Identifier: GPL-2.0-only
"""blktrace's binary files, one a CPU: import them all together.

Records of 48 bytes, in the byte order of the traced machine, each followed by data of its
own length (the cgroup's id, for one): u32 magic and version, sequence; u64 ns, sector; u32
bytes, action, PID, device, CPU; u16 error, length of the data. The requests are the queued
ones, as applications send them; a trace whose first block has none (blktrace -a issue) gives
the issued ones.
Source: linux/blktrace_api.h.
"""

import struct
from collections.abc import Iterable, Iterator

import numpy as np

from isoblk.trace.batch import (
    Bad,
    Batch,
    DamagedError,
    Format,
    make_batch,
    no_requests,
    sectors,
    ticks,
)
from isoblk.trace.record import FLUSH, FUA, READ, TRIM, WRITE, Array

_FIELDS = [
    ("magic", "u4"),
    ("sequence", "u4"),
    ("time", "u8"),
    ("sector", "u8"),
    ("bytes", "u4"),
    ("action", "u4"),
    ("pid", "u4"),
    ("device", "u4"),
    ("cpu", "u4"),
    ("error", "u2"),
    ("pdu", "u2"),
]
_SIZE = 48
_MAGIC = 0x65617407  # with the version, 7
_ORDERS = {struct.pack(order + "I", _MAGIC): order for order in "<>"}

_QUEUE, _ISSUE = 1, 7  # actions, in the low byte
_WRITE, _FLUSH, _NOTIFY, _DISCARD, _FUA = (1 << (16 + bit) for bit in (1, 2, 10, 13, 15))


def _parse(records: Array, event: int) -> Batch:
    action = records["action"]
    picked = ((action & 0xFF) == event) & ((action & _NOTIFY) == 0)
    left_out = len(records) - int(np.count_nonzero(picked))
    if not picked.any():
        return no_requests(left_out)
    records, action = records[picked], action[picked]
    size = records["bytes"]
    return make_batch(
        ticks(records["time"], 1),
        sectors(records["sector"]),
        size,
        np.select(
            [(action & _FLUSH != 0) & (size == 0), action & _DISCARD != 0, action & _WRITE != 0],
            [FLUSH, TRIM, WRITE],
            READ,
        ),
        volume=records["device"],
        flags=np.where(action & _FUA, FUA, 0),
        left_out=left_out,
    )


def _batches(blocks: Iterable[bytes], bad: Bad) -> Iterator[Batch]:
    order = ""
    event = 0
    at = number = 0  # of the first byte, and record, not yet parsed
    data = b""
    for block in blocks:
        data += block
        order = order or _ORDERS.get(data[:4], "<")
        done = 0
        for start, records, bytes_used in _spans(data, order):
            if records is None:
                bad.record(number + 1, at + start, "not a blktrace record")
            else:
                if not event:
                    event = _event(records)
                try:
                    yield _parse(records, event or _QUEUE)
                except DamagedError:
                    yield from _one_by_one(records, event or _QUEUE, number, at + start, bad)
                number += len(records)
            done = start + bytes_used
        at += done
        data = data[done:]
    if data:
        bad.record(number + 1, at, "is not complete")


def _event(records: Array) -> int:
    """What to take for a request; 0 if these records do not tell."""
    actions = set(np.unique(records["action"] & 0xFF).tolist())
    return _QUEUE if _QUEUE in actions else _ISSUE if _ISSUE in actions else 0


def _one_by_one(records: Array, event: int, number: int, at: int, bad: Bad) -> Iterator[Batch]:
    for i in range(len(records)):
        try:
            yield _parse(records[i : i + 1], event)
        except DamagedError as error:
            bad.record(number + i + 1, at + i * records.itemsize, str(error))


def _spans(data: bytes, order: str) -> Iterator[tuple[int, Array | None, int]]:
    """(first byte, records, bytes) of runs of records with data of one length; None where
    none begins, up to the next that does. What is left at the end is not complete."""
    at = 0
    magic = struct.pack(order + "I", _MAGIC)
    while at + _SIZE <= len(data):
        if not data.startswith(magic, at):
            after = data.find(magic, at + 1)
            if after < 0:
                after = len(data) - len(magic) + 1  # a magic number may begin there
            yield at, None, after - at
            at = after
            continue
        pdu = int.from_bytes(data[at + 46 : at + 48], "little" if order == "<" else "big")
        records = _run(data, at, order, pdu)
        if not len(records):
            return
        yield at, records, len(records) * records.itemsize
        at += len(records) * records.itemsize


def _run(data: bytes, at: int, order: str, pdu: int) -> Array:
    """As many records with `pdu` bytes of data as follow each other from `at`."""
    record = np.dtype(
        {
            "names": [name for name, _ in _FIELDS],
            "formats": [order + kind for _, kind in _FIELDS],
            "itemsize": _SIZE + pdu,
        }
    )
    whole = (len(data) - at) // record.itemsize
    look = min(whole, 64)
    while True:
        records = np.frombuffer(data, record, look, at)
        other = (records["magic"] != _MAGIC) | (records["pdu"] != pdu)
        if other.any():
            return records[: int(np.argmax(other))]
        if look == whole:
            return records
        look = min(whole, look * 8)


def _matches(head: bytes) -> float:
    return float(head[:4] in _ORDERS)


FORMAT = Format("blktrace", "blktrace binary", _matches, _batches)

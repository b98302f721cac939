# SPDX-License-Identifier: GPL-2.0-only
"""blktrace's binary files, one per CPU: import them all together.

Records of 48 bytes, in the byte order of the traced machine, each followed by data of its own
length (such as the cgroup's id): u32 magic and version, sequence; u64 ns, sector; u32 bytes,
action, PID, device, CPU; u16 error, length of the data. The requests are the queued ones, as
applications send them; if the first block has none (blktrace -a issue), the issued ones. Source:
linux/blktrace_api.h.
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
from isoblk.trace.record import FLUSH, READ, TRIM, WRITE, Array, write_flags

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

QUEUE, _ISSUE = 1, 7  # actions, in the low byte
CGROUP = 1 << 8  # the data begin with the cgroup's id
WRITE_BIT, FLUSH_BIT, SYNC_BIT, NOTIFY, DISCARD, FUA_BIT = (
    1 << (16 + bit) for bit in (1, 2, 3, 10, 13, 15)
)


def _parse(records: Array, event: int) -> Batch:
    action = records["action"]
    picked = ((action & 0xFF) == event) & ((action & NOTIFY) == 0)
    left_out = len(records) - int(np.count_nonzero(picked))
    if not picked.any():
        return no_requests(left_out)
    records, action = records[picked], action[picked]
    size = records["bytes"]
    op, flags = decode(action, size)
    return make_batch(
        ticks(records["time"], 1),
        sectors(records["sector"]),
        size,
        op,
        volume=records["device"],
        flags=flags,
        left_out=left_out,
    )


def decode(action: Array, size: Array) -> tuple[Array, Array]:
    """Return (operation, flags) as in a record, of actions and their bytes."""
    flush = action & FLUSH_BIT != 0
    op = np.select(
        [flush & (size == 0), action & DISCARD != 0, action & WRITE_BIT != 0],
        [FLUSH, TRIM, WRITE],
        READ,
    ).astype(np.uint8)
    return op, write_flags(op, action & FUA_BIT != 0, flush, action & SYNC_BIT != 0)


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
                    yield _parse(records, event or QUEUE)
                except DamagedError:
                    yield from _one_by_one(records, event or QUEUE, number, at + start, bad)
                number += len(records)
            done = start + bytes_used
        at += done
        data = data[done:]
    if data:
        bad.record(number + 1, at, "is not complete")


def _event(records: Array) -> int:
    """Return the action that counts as a request; 0 if these records have neither."""
    actions = set(np.unique(records["action"] & 0xFF).tolist())
    return QUEUE if QUEUE in actions else _ISSUE if _ISSUE in actions else 0


def _one_by_one(records: Array, event: int, number: int, at: int, bad: Bad) -> Iterator[Batch]:
    for i in range(len(records)):
        try:
            yield _parse(records[i : i + 1], event)
        except DamagedError as error:
            bad.record(number + i + 1, at + i * records.itemsize, str(error))


def _spans(data: bytes, order: str) -> Iterator[tuple[int, Array | None, int]]:
    """Yield (first byte, records, bytes) of runs of records with data of one length. records is
    None for bytes without a record, up to the next one. Bytes left at the end are incomplete."""
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
    """Return the consecutive records with `pdu` bytes of data from `at`."""
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


def records_of(data: bytes) -> tuple[Array, Array, bytes]:
    """Return the complete records of a piece of a file, little endian, the offset of each one's
    data, and the incomplete rest."""
    words = np.frombuffer(data, "<u8", len(data) // 8)
    # Records of requests, and of names, have multiples of 8 bytes.
    at = np.flatnonzero(words & np.uint64(0xFFFFFFFF) == _MAGIC) * 8
    at = at[at + _SIZE <= len(data)]
    after = at + _SIZE + _lengths(data, at)
    # Each must begin at the end of the one before, and after the last no complete one can follow.
    begins, ends = np.append(at, len(data)), np.append(0, after)
    whole = len(at) if not len(at) or after[-1] <= len(data) else len(at) - 1
    if (begins[:whole] != ends[:whole]).any() or begins[whole] - ends[whole] >= _SIZE:
        at = _walk(data)
        whole = len(at)
        after = at + _SIZE + _lengths(data, at)
    at, after = at[:whole], after[:whole]
    record = np.dtype([(name, f"<{kind}") for name, kind in _FIELDS])
    raw = np.frombuffer(data, np.uint8)
    records = raw[at[:, None] + np.arange(_SIZE)].view(record)[:, 0]
    return records, at + _SIZE, data[int(after[-1]) if len(at) else 0 :]


def _lengths(data: bytes, at: Array) -> Array:
    raw = np.frombuffer(data, np.uint8)
    lengths: Array = raw[at + _SIZE - 2] + raw[at + _SIZE - 1].astype(np.int64) * 256
    return lengths


def _walk(data: bytes) -> Array:
    """Return the offsets of consecutive records; other bytes are skipped."""
    magic = struct.pack("<I", _MAGIC)
    found = []
    at = 0
    while 0 <= at <= len(data) - _SIZE:
        if data.startswith(magic, at):
            after = at + _SIZE + int.from_bytes(data[at + _SIZE - 2 : at + _SIZE], "little")
            if after > len(data):
                break
            found.append(at)
            at = after
        else:
            at = data.find(magic, at + 1)
    return np.array(found, np.int64)


def _matches(head: bytes) -> float:
    return float(head[:4] in _ORDERS)


FORMAT = Format("blktrace", "blktrace binary", _matches, _batches)

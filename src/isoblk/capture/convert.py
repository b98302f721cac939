# SPDX-License-Identifier: GPL-2.0-only
"""Convert the kernel's events to a compact trace whose streams are cgroups."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from isoblk.capture.btf import Types
from isoblk.capture.events import EVENT
from isoblk.errors import RunError
from isoblk.trace.compact import Header, Writer, scratch, writing
from isoblk.trace.names import Process
from isoblk.trace.record import (
    FLUSH,
    LARGEST,
    MOST_STREAMS,
    READ,
    RECORD,
    SECTOR,
    TRIM,
    WRITE,
    Array,
    Records,
    write_flags,
)
from isoblk.trace.sort import Sorter, merge

BLOCK = 1 << 17  # events per block: 8 MiB
NOTHING = 255  # an operation without data

# (operation, flags) of each event, from its `opf` and `bytes`; an operation as in a record, or
# NOTHING.
Decode = Callable[[Array, Array], tuple[Array, Array]]


def decoder(types: Types) -> Decode:
    """Return the decoder for this kernel's operations and flags. Raises BtfError."""
    table = np.full(256, NOTHING, np.uint8)
    for name, op in {
        "REQ_OP_READ": READ,
        "REQ_OP_WRITE": WRITE,
        "REQ_OP_FLUSH": FLUSH,
        "REQ_OP_DISCARD": TRIM,
        "REQ_OP_SECURE_ERASE": TRIM,
        "REQ_OP_ZONE_APPEND": WRITE,
        "REQ_OP_WRITE_ZEROES": TRIM,
    }.items():
        if name in types.enumerators:
            table[types.number(name) & 0xFF] = op
    sync, fua, preflush = (
        np.uint32(1 << types.number(name)) for name in ("__REQ_SYNC", "__REQ_FUA", "__REQ_PREFLUSH")
    )

    def decode(opf: Array, size: Array) -> tuple[Array, Array]:
        op = table[opf & 0xFF]
        op = np.where((op == WRITE) & (size == 0) & (opf & preflush != 0), FLUSH, op)
        return op, write_flags(op, opf & fua != 0, opf & preflush != 0, opf & sync != 0)

    return decode


@dataclass
class Tally:
    """Counts of the events. processes: for each cgroup id, (pid, name) -> requests."""

    processes: dict[int, dict[tuple[int, bytes], int]] = field(default_factory=dict)
    first_ns: int = 0
    left_out: int = 0

    def requests(self, cgroup: int) -> int:
        """Return the number of requests of a cgroup."""
        return sum(self.processes[cgroup].values())


def convert(
    events: IO[bytes],
    decode: Decode,
    output: Path,
    *,
    base: int,
    path_of: Callable[[int], str],
) -> tuple[Header, Tally, dict[str, int]]:
    """Write the events that are requests as a compact trace.

    Args:
        events: records of EVENT, approximately ordered by time.
        decode: this kernel's decoder.
        output: file of the trace.
        base: the device's first sector.
        path_of: returns the path of a cgroup.

    Returns:
        Header, tally, and path -> stream; streams are numbered from 1, in order of the paths.

    Raises:
        RunError: there is no request.
        UserError: `output` cannot be written.
    """
    tally = Tally()
    places: dict[int, int] = {}  # cgroup id -> index by first appearance
    with scratch(output) as raw:
        sorter = Sorter(raw)
        for block in _blocks(events):
            records = _records(block, decode, base, places, tally)
            with writing(output):
                sorter.add(records)
        with writing(output):
            runs = sorter.finish()
        if not runs:
            raise RunError(
                "no request reached the device while it was captured",
                next="put a load on it: isoblk capture DEVICE -o FILE -- COMMAND",
            )
        tally.first_ns = min(run.first for run in runs)
        paths = {number: path_of(number) for number in places}
        streams = {path: stream for stream, path in enumerate(sorted(set(paths.values())), 1)}
        table = np.array([streams[paths[number]] for number in places], np.uint16)
        with Writer(output) as writer:
            for records in merge(raw, runs):
                records["t"] -= np.uint64(tally.first_ns)
                records["stream"] = table[records["stream"]]
                writer.write(records)
    return writer.header, tally, streams


def _blocks(events: IO[bytes]) -> Iterator[Records]:
    events.seek(0)
    while len(block := np.fromfile(events, EVENT, BLOCK)):
        yield block


def _records(
    events: Records, decode: Decode, base: int, places: dict[int, int], tally: Tally
) -> Records:
    op, flags = decode(events["opf"], events["bytes"])
    sector = events["sector"]
    keep = (op != NOTHING) & ((events["bytes"] > 0) | (op == FLUSH))
    # Drop records that are damaged or of another device.
    there = (sector >= base) & (sector - np.uint64(base) <= LARGEST // SECTOR // 2)
    keep &= (op == FLUSH) | there
    if not keep.all():
        tally.left_out += len(keep) - int(np.count_nonzero(keep))
        events, op, flags = events[keep], op[keep], flags[keep]
    records = np.empty(len(events), RECORD)
    flush = op == FLUSH
    records["t"] = events["t"]
    records["offset"] = np.where(flush, 0, (events["sector"] - np.uint64(base)) * np.uint64(SECTOR))
    records["bytes"] = np.where(flush, 0, events["bytes"])
    records["op"] = op
    records["flags"] = flags
    records["stream"] = _count(events, places, tally)
    return records


def _count(events: Records, places: dict[int, int], tally: Tally) -> Array:
    """Count the requests of each process in each cgroup. Returns the cgroups' indices."""
    name = np.ascontiguousarray(events["comm"]).view(np.uint64).reshape(-1, 2)
    # Equal 64-bit hashes are taken for equal processes, of which there are some thousands.
    mixed = events["cgroup"] * np.uint64(0x9E3779B97F4A7C15)
    for part, factor in (
        (events["tgid"].astype(np.uint64), 0xC2B2AE3D27D4EB4F),
        (name[:, 0], 0x165667B19E3779F9),
        (name[:, 1], 0x27D4EB2F165667C5),
    ):
        mixed = (mixed ^ (mixed >> np.uint64(29))) + part * np.uint64(factor)
    _, first, inverse, counts = np.unique(
        mixed, return_index=True, return_inverse=True, return_counts=True
    )
    found = np.empty(len(first), np.uint16)
    for i, (at, count) in enumerate(zip(first.tolist(), counts.tolist(), strict=True)):
        event = events[at]
        cgroup = int(event["cgroup"])
        found[i] = places.setdefault(cgroup, len(places))
        if len(places) >= MOST_STREAMS:
            raise RunError(f"more than {MOST_STREAMS - 1} cgroups")
        held = tally.processes.setdefault(cgroup, {})
        key = (int(event["tgid"]), bytes(event["comm"]))
        held[key] = held.get(key, 0) + count
    place: Array = found[inverse]
    return place


def processes(tally: Tally, numbers: list[int]) -> tuple[Process, ...]:
    """Return the processes of some cgroups, the busiest first."""
    held: dict[tuple[int, bytes], int] = {}
    for number in numbers:
        for key, count in tally.processes[number].items():
            held[key] = held.get(key, 0) + count
    ordered = sorted(held.items(), key=lambda one: (-one[1], one[0]))
    return tuple(
        Process(pid=pid, name=name.decode(errors="replace"), requests=count)
        for (pid, name), count in ordered
    )

# SPDX-License-Identifier: GPL-2.0-only
"""Describe a compact trace, in one pass and bounded memory (at most about 400 MiB)."""

from pathlib import Path

import msgspec
import numpy as np

from isoblk.errors import UserError
from isoblk.trace.compact import read_blocks, read_header
from isoblk.trace.names import read_names
from isoblk.trace.record import FLUSH, FUA, OPS, SECOND, WRITE, Array, Floats, Records, ends

BLOCK = 4096  # bytes; the unit of the footprint, or a larger power of two
MOST_BLOCKS = 1 << 25
SLICES = 1 << 20  # slices of the trace's time for counts, at least SLICE_NS long
SLICE_NS = 1_000_000
SCALES_NS = (10_000_000, 100_000_000, SECOND, 10 * SECOND)
HOTTEST = (0.01, 0.05, 0.1, 0.2, 0.5)
PERCENTILES = (1, 10, 50, 90, 99, 99.9)
MAP_COLUMNS, MAP_ROWS = 120, 60  # of the figure of addresses over time
_GAP_STEPS = 16  # bins of inter-arrival times per doubling
_GAP_BINS = 64 * _GAP_STEPS
_MOST_SLICED = 1 << 16  # blocks of a request that are counted individually


class OpInfo(msgspec.Struct, frozen=True):
    """An operation. share: of all records. sizes: (bytes, requests), by size. percentiles:
    (percent, bytes)."""

    op: str
    records: int
    share: float
    bytes: int
    mean_bytes: float
    percentiles: list[tuple[float, int]]
    sizes: list[tuple[int, int]]


class StreamInfo(msgspec.Struct, frozen=True):
    """A stream. lowest: first byte touched; end: last + 1. name: of a captured one."""

    stream: int
    records: int
    bytes: int
    lowest: int
    end: int
    name: str = ""


class Burst(msgspec.Struct, frozen=True):
    """Arrivals counted in windows: variance / mean (1 for a Poisson process at every scale), and
    the maximum of a window / mean."""

    window_ns: int
    dispersion: float
    peak: float


class TraceInfo(msgspec.Struct, frozen=True):
    """Statistics of a trace.

    read_write: reads / writes; None without writes.
    sequential: fraction of requests that start at the end of the preceding one of their stream.
    footprint: bytes touched, in blocks of block_bytes; written: bytes of them that were written.
    hot: (fraction of the blocks, fraction of the accesses to the hottest of them).
    gaps: inter-arrival times, (percent, ns), to a sixteenth of a doubling.
    rate: records per second in equal slices of the time.
    """

    records: int
    span_ns: int
    max_end: int
    iops: float
    bytes_a_second: float
    read_write: float | None
    fua: int
    ops: list[OpInfo]
    streams: list[StreamInfo]
    sequential: float
    mean_run_bytes: float
    block_bytes: int
    footprint: int
    written: int
    hot: list[tuple[float, float]]
    gap_mean_ns: float
    gap_cv: float
    gaps: list[tuple[float, float]]
    bursts: list[Burst]
    slice_ns: int
    reads_by_slice: list[int]
    writes_by_slice: list[int]
    map: list[list[int]]


def describe(path: Path) -> TraceInfo:
    """Return the statistics. Raises UserError: not a compact trace, or it or the names of its
    streams are damaged."""
    header = read_header(path)
    if not header.records:
        raise UserError("the trace has no requests", where=str(path))
    captured = read_names(path)
    names = {stream.stream: stream.cgroup for stream in captured.streams} if captured else {}
    count = _Count(header.span_ns, header.max_end)
    for records in read_blocks(path):
        count.add(records)
    return count.info(header.records, names)


class _Count:
    def __init__(self, span_ns: int, max_end: int) -> None:
        self.span_ns, self.max_end = span_ns, max_end
        self.sizes: list[dict[int, int]] = [{} for _ in OPS]
        self.fua = 0
        self.streams: dict[int, StreamInfo] = {}
        self.last_end: dict[int, int] = {}
        self.last_time: int | None = None
        self.sequential = self.runs = 0
        self.block = BLOCK
        while max_end > self.block * MOST_BLOCKS:
            self.block *= 2
        # Only touched pages of these arrays take memory.
        self.touched = np.zeros(max_end // self.block + 2, np.uint32)
        self.written = np.zeros(len(self.touched), bool)
        self.gap_sum = self.gap_squares = 0.0
        self.gap_bins = np.zeros(_GAP_BINS, np.int64)
        self.slice_ns = max(SLICE_NS, -(-(span_ns + 1) // SLICES))
        slices = span_ns // self.slice_ns + 1
        self.reads = np.zeros(slices, np.int64)
        self.writes = np.zeros(slices, np.int64)  # and all other operations
        self.map = np.zeros((MAP_ROWS, MAP_COLUMNS), np.int64)

    def add(self, records: Records) -> None:
        for op in range(len(OPS)):
            sizes, counts = np.unique(records["bytes"][records["op"] == op], return_counts=True)
            held = self.sizes[op]
            for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
                held[size] = held.get(size, 0) + count
        self.fua += int(np.count_nonzero(records["flags"] & FUA))
        self._times(records)
        moves = records[records["op"] != FLUSH]
        if len(moves):
            self._by_stream(moves)
            self._space(moves)

    def _times(self, records: Records) -> None:
        time = records["t"].astype(np.int64)
        gaps = np.diff(time, prepend=time[0] if self.last_time is None else self.last_time)
        if self.last_time is None:
            gaps = gaps[1:]
        self.last_time = int(time[-1])
        self.gap_sum += float(gaps.sum())
        self.gap_squares += float(np.square(gaps, dtype=np.float64).sum())
        bins = np.ceil(np.log2(np.maximum(gaps, 1)) * _GAP_STEPS).astype(np.int64)
        self.gap_bins += np.bincount(bins + (gaps > 0), minlength=_GAP_BINS)[:_GAP_BINS]
        slices = time // self.slice_ns
        is_read = records["op"] == 0
        self.reads += np.bincount(slices[is_read], minlength=len(self.reads))
        self.writes += np.bincount(slices[~is_read], minlength=len(self.writes))

    def _by_stream(self, moves: Records) -> None:
        ordered = moves[np.argsort(moves["stream"], kind="stable")]
        end = ends(ordered)
        before = np.empty_like(end)
        before[1:] = end[:-1]
        streams, starts, counts = np.unique(
            ordered["stream"], return_index=True, return_counts=True
        )
        nowhere = np.iinfo(np.uint64).max
        for stream, start, count in zip(
            streams.tolist(), starts.tolist(), counts.tolist(), strict=True
        ):
            before[start] = self.last_end.get(stream, nowhere)
            self.last_end[stream] = int(end[start + count - 1])
            part = ordered[start : start + count]
            held = self.streams.get(stream) or StreamInfo(stream, 0, 0, int(nowhere), 0)
            self.streams[stream] = StreamInfo(
                stream,
                held.records + count,
                held.bytes + int(part["bytes"].sum(dtype=np.int64)),
                min(held.lowest, int(part["offset"].min())),
                max(held.end, int(end[start : start + count].max())),
            )
        follows = int(np.count_nonzero(ordered["offset"] == before))
        self.sequential += follows
        self.runs += len(ordered) - follows

    def _space(self, moves: Records) -> None:
        first = (moves["offset"] // np.uint64(self.block)).astype(np.int64)
        last = ((ends(moves) - np.uint64(1)) // np.uint64(self.block)).astype(np.int64)
        length = last - first + 1
        is_write = moves["op"] == WRITE
        long = length > _MOST_SLICED
        for start, stop, write in zip(
            first[long].tolist(), last[long].tolist(), is_write[long].tolist(), strict=True
        ):
            self.touched[start : stop + 1] += 1
            self.written[start : stop + 1] |= write
        step = 1 << 15  # requests per step, for those that span many blocks
        short = ~long
        first, length, is_write = first[short], length[short], is_write[short]
        for at in range(0, len(first), step):
            part = length[at : at + step]
            blocks = np.repeat(first[at : at + step] - np.cumsum(part) + part, part)
            blocks += np.arange(len(blocks))
            np.add.at(self.touched, blocks, np.uint32(1))
            self.written[blocks[np.repeat(is_write[at : at + step], part)]] = True
        column = _cells(moves["t"], self.span_ns, MAP_COLUMNS)
        row = _cells(moves["offset"], self.max_end, MAP_ROWS)
        np.add.at(self.map, (row, column), 1)

    def info(self, records: int, names: dict[int, str]) -> TraceInfo:
        seconds = max(self.span_ns, 1) / SECOND
        ops = [_op(name, sizes, records) for name, sizes in zip(OPS, self.sizes, strict=True)]
        ops = [op for op in ops if op.records]
        counts = {op.op: op.records for op in ops}
        moved = sum(op.bytes for op in ops if op.op in ("read", "write"))
        gaps = max(1, records - 1)
        mean = self.gap_sum / gaps
        variance = max(0.0, self.gap_squares / gaps - mean**2)
        hits = self.touched[self.touched > 0]
        hits.sort()  # in place: it may be large
        return TraceInfo(
            records=records,
            span_ns=self.span_ns,
            max_end=self.max_end,
            iops=records / seconds,
            bytes_a_second=moved / seconds,
            read_write=counts.get("read", 0) / counts["write"] if "write" in counts else None,
            fua=self.fua,
            ops=ops,
            streams=[
                msgspec.structs.replace(self.streams[stream], name=names.get(stream, ""))
                for stream in sorted(self.streams)
            ],
            sequential=self.sequential / max(1, self.sequential + self.runs),
            mean_run_bytes=sum(op.bytes for op in ops) / max(1, self.runs),
            block_bytes=self.block,
            footprint=len(hits) * self.block,
            written=int(np.count_nonzero(self.written)) * self.block,
            hot=_hot(hits),
            gap_mean_ns=mean,
            gap_cv=variance**0.5 / mean if mean else 0.0,
            gaps=self._gap_percentiles(),
            bursts=self._bursts(),
            slice_ns=self.slice_ns,
            reads_by_slice=self.reads.tolist(),
            writes_by_slice=self.writes.tolist(),
            map=self.map.tolist(),
        )

    def _gap_percentiles(self) -> list[tuple[float, float]]:
        above = np.cumsum(self.gap_bins)
        if not above[-1]:
            return []
        found = []
        for percent in PERCENTILES:
            bin_ = int(np.searchsorted(above, above[-1] * percent / 100))
            # Bin 0 has gaps of 0, bin 1 of 1 ns.
            found.append((percent, 2 ** ((bin_ - 1) / _GAP_STEPS) if bin_ else 0.0))
        return found

    def _bursts(self) -> list[Burst]:
        arrivals = (self.reads + self.writes).astype(np.float64)
        found = []
        for scale in SCALES_NS:
            width = round(scale / self.slice_ns)
            # The last window may be incomplete, and is not counted.
            whole = len(arrivals) // width if width else 0
            if whole < 2:
                continue
            counts: Floats = arrivals[: whole * width].reshape(whole, width).sum(axis=1)
            mean = float(counts.mean())
            if mean:
                dispersion = float(counts.var()) / mean
                found.append(Burst(width * self.slice_ns, dispersion, float(counts.max()) / mean))
        return found


def _cells(values: Array, most: int, count: int) -> Array:
    """Return which of `count` equal parts of 0..most each value is in."""
    cells = (values.astype(np.float64) * (count / (most + 1))).astype(np.int64)
    # Beyond 2^53 the last value may be rounded up to the end.
    inside: Array = np.minimum(cells, count - 1)
    return inside


def _op(name: str, sizes: dict[int, int], records: int) -> OpInfo:
    ordered = sorted(sizes.items())
    count = sum(sizes.values())
    moved = sum(size * number for size, number in ordered)
    percentiles: list[tuple[float, int]] = []
    if count:
        values = np.array([size for size, _ in ordered])
        above = np.cumsum([number for _, number in ordered])
        percentiles = [
            (percent, int(values[np.searchsorted(above, count * percent / 100)]))
            for percent in PERCENTILES
        ]
    return OpInfo(
        name, count, count / records, moved, moved / count if count else 0.0, percentiles, ordered
    )


def _hot(hits: Array) -> list[tuple[float, float]]:
    """Return the hot curve. hits: requests of each touched block, fewest first."""
    total = int(hits.sum(dtype=np.int64))
    if not total:
        return []
    return [
        (part, int(hits[-max(1, round(part * len(hits))) :].sum(dtype=np.int64)) / total)
        for part in HOTTEST
    ]

# SPDX-License-Identifier: GPL-2.0-only
"""Batches of parsed requests, and the handling of damaged records."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from isoblk.errors import UserError
from isoblk.trace.record import FLUSH, LARGEST, LARGEST_REQUEST, Array

# Bound of times relative to a format's epoch, 146 years, so that differences do not overflow.
FURTHEST = 1 << 62


class DamagedError(Exception):
    """The bytes do not match the format; the text, if any, has the reason."""


@dataclass(frozen=True)
class Batch:
    """Requests in the format's own terms, in the file's order.

    time: ns since the format's epoch. offset: bytes in the volume. volume: the format's number of
    it, any 64 bits. left_out: events that are not requests, or have no data.
    """

    time: Array  # int64
    offset: Array  # uint64
    size: Array  # uint32
    op: Array  # uint8
    flags: Array  # uint8
    volume: Array  # int64
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.time)


Batches = Callable[[Iterable[bytes], "Bad"], Iterator[Batch]]
# The units of times that a user may select, in ns.
TIME_UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True)
class Format:
    """A trace format.

    name: for --format.
    matches: how well the first bytes of a file fit, 0 to 1.
    batches: the requests of a file, given as blocks of any size; raises UserError through `bad`.
    in_unit: as batches, with times in units of so many ns, for formats whose files have several
    units; None: the format fixes the unit.
    one_space: whether its volumes are streams of one address space, which are not concatenated.
    """

    name: str
    title: str
    matches: Callable[[bytes], float]
    batches: Batches
    in_unit: Callable[[int], Batches] | None = None
    one_space: bool = False

    def with_unit(self, unit: str | None, path: Path) -> Batches:
        """Return `batches` for a file whose times have that unit. Raises UserError: the format
        fixes the unit."""
        if unit is None:
            return self.batches
        if self.in_unit is None:
            raise UserError(
                f"the format {self.name} fixes the unit of times",
                where=str(path),
                next="remove --time-unit",
            )
        return self.in_unit(TIME_UNITS[unit])


@dataclass
class Bad:
    """Count the damaged records of a file, and abort the import when there are too many."""

    path: Path
    allowed: int
    places: list[str] = field(default_factory=list)

    def line(self, number: int, what: str) -> None:
        """Count line `number` as damaged. Raises UserError: more than allowed."""
        self._add(f"{self.path}:{number}", what)

    def record(self, number: int, at: int, what: str) -> None:
        """Count record `number`, at byte `at`, as damaged. Raises as line()."""
        self._add(str(self.path), f"record {number} at byte {at}: {what}")

    def _add(self, where: str, what: str) -> None:
        if len(self.places) >= self.allowed:
            if self.allowed:
                what = f"the {_ordinal(self.allowed + 1)} damaged record: {what}"
            raise UserError(what, where=where, next="to skip N damaged records: --skip-bad N")
        self.places.append(where)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{ending or 'th'}"


def make_batch(
    time: Array,
    offset: Array,
    size: Array,
    op: Array | int,
    *,
    volume: Array | int = 0,
    flags: Array | int = 0,
    left_out: int = 0,
) -> Batch:
    """Return a batch of checked requests. Reads, writes and trims without data are left out.

    Args:
        time: ns, int64.
        offset, size: bytes, any integer type.
        op: operation of each, or of all.
        volume, flags: of each, or of all.
        left_out: events that are already omitted.

    Raises:
        DamagedError: an address or a size is impossible.
    """
    count = len(time)
    ops = np.broadcast_to(np.asarray(op, np.uint8), count)
    if count:
        if size.dtype.kind == "i" and size.min() < 0:
            raise DamagedError("the size is negative")
        if size.max() > LARGEST_REQUEST:
            raise DamagedError(f"the size is above {LARGEST_REQUEST} bytes")
        if offset.dtype.kind == "i" and offset.min() < 0:
            raise DamagedError("the address is negative")
        if offset.max() > LARGEST - LARGEST_REQUEST:
            raise DamagedError("the address is above 2^63")
    batch = Batch(
        time=time.astype(np.int64, copy=False),
        offset=offset.astype(np.uint64, copy=False),
        size=size.astype(np.uint32, copy=False),
        op=ops,
        flags=np.broadcast_to(np.asarray(flags, np.uint8), count),
        volume=np.broadcast_to(np.asarray(volume, np.int64), count),
        left_out=left_out,
    )
    flush = ops == FLUSH
    keep = flush | (size > 0)
    if not keep.all():
        batch = select(batch, keep)
        flush = flush[keep]
    if flush.any():  # a flush concerns the whole volume
        batch.offset[flush] = 0
        batch.size[flush] = 0
    return batch


def select(batch: Batch, keep: Array) -> Batch:
    """Return the requests for which `keep` is true; all others count as left out."""
    return Batch(
        time=batch.time[keep],
        offset=batch.offset[keep],
        size=batch.size[keep],
        op=batch.op[keep],
        flags=batch.flags[keep],
        volume=batch.volume[keep],
        left_out=batch.left_out + len(batch) - int(np.count_nonzero(keep)),
    )


def no_requests(left_out: int = 0) -> Batch:
    """Return an empty batch."""
    none = np.empty(0, np.int64)
    return make_batch(none, none, none, 0, left_out=left_out)


def ticks(values: Array, ns: int, *, epoch: int = 0) -> Array:
    """Convert integers in units of `ns` nanoseconds to nanoseconds since the epoch. Raises
    DamagedError: too far from the epoch.

    Args:
        values: the times.
        ns: their unit.
        epoch: the value of the epoch.
    """
    limit = FURTHEST // ns
    if len(values) and (values.max() > epoch + limit or values.min() < epoch - limit):
        raise DamagedError("the time is out of range")
    scaled: Array = (values.astype(np.int64) - epoch) * ns
    return scaled


def decimals(values: Array, ns: int) -> Array:
    """Convert fractional numbers as ticks() does, rounded to the nanosecond."""
    if len(values) and not np.all(np.abs(values) <= FURTHEST / ns):  # false for NaN too
        raise DamagedError("the time is out of range")
    rounded: Array = np.rint(values * ns).astype(np.int64)
    return rounded


def sectors(values: Array, size: int = 512) -> Array:
    """Convert sectors to bytes. Raises DamagedError: above 2^63 bytes, or negative."""
    if len(values) and (values.max() > LARGEST // size or values.min() < 0):
        raise DamagedError("the address or the size is out of range")
    return values.astype(np.uint64) * np.uint64(size)

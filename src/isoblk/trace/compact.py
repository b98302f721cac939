# SPDX-License-Identifier: GPL-2.0-only
"""The compact trace file, .isotrace, which import writes and blkload replays.

A header of 64 bytes, then the records, ordered by time from 0. Little endian: "ISOTRACE", u32
version, u32 record size, u64 records, u64 last time in ns, u64 highest byte + 1, zeros.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, BinaryIO

import numpy as np

from isoblk.errors import RunError, UserError
from isoblk.files import temporary_name
from isoblk.trace.record import FLUSH, LARGEST, OPS, RECORD, Records, ends

MAGIC = b"ISOTRACE"
VERSION = 1
HEADER_BYTES = 64
SUFFIX = ".isotrace"
BLOCK = 1 << 18  # records per read: 6 MiB

_HEADER = struct.Struct("<8sIIQQQ")
_DAMAGED = "the file is damaged: import the trace again"


@dataclass(frozen=True)
class Header:
    """records: their number. span_ns: time of the last. max_end: highest byte + 1."""

    records: int
    span_ns: int
    max_end: int

    def encode(self) -> bytes:
        """Return the header's 64 bytes."""
        packed = _HEADER.pack(
            MAGIC, VERSION, RECORD.itemsize, self.records, self.span_ns, self.max_end
        )
        return packed.ljust(HEADER_BYTES, b"\0")


def is_compact(path: Path) -> bool:
    """Return whether the file has the magic of a compact trace. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_header(path: Path) -> Header:
    """Read the header. Raises UserError: not a compact trace, of another version, or cut short;
    OSError."""
    with path.open("rb") as file:
        raw = file.read(HEADER_BYTES)
        size = os.fstat(file.fileno()).st_size
    if len(raw) < HEADER_BYTES or not raw.startswith(MAGIC):
        raise UserError("not a compact trace", where=str(path), next="see: isoblk trace import")
    _, version, itemsize, records, span_ns, max_end = _HEADER.unpack_from(raw)
    if (version, itemsize) != (VERSION, RECORD.itemsize):
        raise UserError(
            f"compact trace of version {version} with records of {itemsize} bytes, not"
            f" {VERSION} and {RECORD.itemsize}",
            where=str(path),
            next="import the trace again",
        )
    if size != HEADER_BYTES + records * itemsize:
        raise UserError(
            f"{size} bytes, but {records} records make {HEADER_BYTES + records * itemsize}",
            where=str(path),
            next=_DAMAGED,
        )
    if max(span_ns, max_end) > LARGEST:
        raise UserError("a time or an address above 2^63", where=str(path), next=_DAMAGED)
    return Header(records, span_ns, max_end)


def read_blocks(path: Path, start: int = 0, stop: int | None = None) -> Iterator[Records]:
    """Yield the records start..stop in blocks, after a check of each record.

    Raises:
        UserError: as read_header(), or an impossible record.
        RunError: the file became shorter while it was read.
    """
    header = read_header(path)
    stop = header.records if stop is None else min(stop, header.records)
    time = 0
    with path.open("rb") as file:
        file.seek(HEADER_BYTES + start * RECORD.itemsize)
        while start < stop:
            block = np.fromfile(file, RECORD, min(BLOCK, stop - start))
            if not len(block):
                raise RunError("became shorter during the read", where=str(path))
            if found := _damage(block, time, header):
                at, what = found
                raise UserError(f"record {start + at + 1} {what}", where=str(path), next=_DAMAGED)
            time = int(block["t"][-1])
            yield block
            start += len(block)


def _damage(records: Records, time: int, header: Header) -> tuple[int, str] | None:
    """Return the index and fault of the first record that breaks blkload's rules. time: of the
    preceding record."""
    moves = records["op"] != FLUSH
    # No overflow: a size has 32 bits, and an offset above LARGEST is itself a fault.
    beyond = (records["offset"] > LARGEST) | (ends(records) > header.max_end)
    rules = [
        (records["op"] >= len(OPS), "is of an unknown operation"),
        (np.diff(records["t"], prepend=np.uint64(time)) > LARGEST, "starts before the one before"),
        (records["t"] > header.span_ns, "starts after the end that the header gives"),
        (moves & beyond, "goes beyond the last byte that the header gives"),
        (moves & (records["bytes"] == 0), "moves nothing"),
    ]
    broken = [(int(np.argmax(wrong)), what) for wrong, what in rules if wrong.any()]
    return min(broken, default=None)


class Writer:
    """Write a compact trace under a temporary name; `with` renames it at its end, or removes it
    after an exception. Records must be ordered by time, from 0."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records = self._span = self._end = 0

    def __enter__(self) -> "Writer":
        self._temporary = temporary_name(self._path)
        with writing(self._path):
            self._file: BinaryIO = self._temporary.open("wb")
            self._file.write(bytes(HEADER_BYTES))
        return self

    def write(self, records: Records) -> None:
        """Append records."""
        if not len(records):
            return
        with writing(self._path):
            records.tofile(self._file)
        self._records += len(records)
        self._span = int(records["t"][-1])
        self._end = max(self._end, int(ends(records).max()))

    @property
    def header(self) -> Header:
        """Return the header so far."""
        return Header(self._records, self._span, self._end)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with writing(self._path), self._file:
                if kind is None:
                    self._file.seek(0)
                    self._file.write(self.header.encode())
            if kind is None:
                with writing(self._path):
                    self._temporary.replace(self._path)
        finally:
            self._temporary.unlink(missing_ok=True)


def scratch(output: Path) -> IO[bytes]:
    """Open an unnamed file in the directory of `output`. Raises UserError: it cannot be made."""
    with writing(output):
        return TemporaryFile(dir=output.parent)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError while `path` is written into a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write: {error.strerror or error}", where=str(path)) from None

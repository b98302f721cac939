# SPDX-License-Identifier: GPL-2.0-only
"""The bytes of an SSD, a device or an image of one, that nobody else uses."""

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoblk.cache import format as layout
from isoblk.cache import volumes
from isoblk.cache.base import SECTOR
from isoblk.errors import RunError, UserError
from isoblk.machine import blockdev, system

# Records that are looked at together: a set is never in two such pieces.
CHUNK = 1 << 16


@dataclass(frozen=True)
class Piece:
    """Records of slots from `first` on. readable: which of them could be read."""

    first: int
    records: layout.Records
    readable: NDArray[np.bool_]

    @property
    def slots(self) -> NDArray[np.uint64]:
        """Their numbers."""
        return np.arange(self.first, self.first + len(self.records), dtype=np.uint64)


class Ssd:
    """An SSD or an image: an open file of `size` bytes. Its place in errors is `path`."""

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor
        # Direct I/O wants memory that is aligned.
        self._buffer = mmap.mmap(-1, CHUNK * layout.RECORD.itemsize)

    @property
    def sectors(self) -> int:
        """Its length."""
        return self.size // SECTOR

    def read(self, at: int, count: int) -> bytes | None:
        """`count` bytes, no more than a page; None if they cannot be read, or are beyond the end.

        Args:
            at: multiple of 512.
            count: also one.
        """
        with memoryview(self._buffer)[:count] as room, suppress(OSError):
            if os.preadv(self._descriptor, [room], at) == count:
                return bytes(room)
        return None

    def pieces(self, slots: int) -> Iterator[Piece]:
        """The records of the first `slots` slots."""
        for first in range(0, slots, CHUNK):
            yield self._piece(first, min(CHUNK, slots - first))

    def page(self, number: int, slots: int) -> Piece:
        """Those of a block of records, of an SSD of so many slots."""
        first = number * layout.PER_PAGE
        return self._piece(first, min(layout.PER_PAGE, slots - first))

    def _piece(self, first: int, count: int) -> Piece:
        size = -(-count // layout.PER_PAGE) * layout.PAGE
        at = layout.RECORDS_AT + first * layout.RECORD.itemsize
        readable = np.ones(count, np.bool_)
        got = 0
        with memoryview(self._buffer)[:size] as room, suppress(OSError):
            got = os.preadv(self._descriptor, [room], at)
        if got == size:
            data = self._buffer[:size]
        else:
            data, bad = self._by_pieces(at, size)
            readable &= ~np.repeat(bad, SECTOR // layout.RECORD.itemsize)[:count]
        return Piece(first, np.frombuffer(data, layout.RECORD)[:count], readable)

    def _by_pieces(self, at: int, size: int) -> tuple[bytes, NDArray[np.bool_]]:
        """What can be read, and the sectors that cannot."""
        data = bytearray(size)
        bad = np.zeros(size // SECTOR, np.bool_)
        for page in range(0, size, layout.PAGE):
            whole = self.read(at + page, layout.PAGE)
            if whole is not None:
                data[page : page + layout.PAGE] = whole
                continue
            for here in range(page, page + layout.PAGE, SECTOR):
                sector = self.read(at + here, SECTOR)
                data[here : here + SECTOR] = sector or bytes(SECTOR)
                bad[here // SECTOR] = sector is None
        return bytes(data), bad

    def write(self, at: int, page: bytes) -> None:
        """Write a page, not yet durably.

        Raises:
            RunError: it failed.
        """
        with memoryview(self._buffer)[: len(page)] as room:
            room[:] = page
            try:
                if os.pwritev(self._descriptor, [room], at) != len(page):
                    raise RunError(f"cannot write to byte {at}: it ends there", where=self.path)
            except OSError as error:
                raise RunError(
                    f"cannot write to byte {at}: {error.strerror}", where=self.path
                ) from None

    def sync(self) -> None:
        """Make durable what was written.

        Raises:
            RunError: it failed.
        """
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise RunError(f"cannot flush it: {error.strerror}", where=self.path) from None


@contextmanager
def open_ssd(path: str, *, write: bool) -> Iterator[Ssd]:
    """A device or an image that nobody uses, kept from others meanwhile if it is a device.

    Raises:
        UserError: there is none, it may not be opened, or is in use.
    """
    way = os.O_RDWR if write else os.O_RDONLY
    try:
        kind = Path(path).stat().st_mode
    except OSError as error:
        raise UserError(f"no such device or file: {error.strerror}", where=path) from None
    if stat.S_ISBLK(kind):
        disk = volumes.any_volume(path)
        blockdev.refuse_in_use(disk, written=write)
        # The page cache may hold what was there before the kernel wrote.
        with blockdev.hold(disk, way | os.O_DIRECT) as descriptor:
            yield Ssd(path, descriptor, volumes.volume(disk).size)
        return
    if not stat.S_ISREG(kind):
        raise UserError("is neither a device nor a file", where=path)
    _refuse_loop(path)
    try:
        descriptor = os.open(path, way | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"cannot open it: {error.strerror}", where=path) from None
    try:
        yield Ssd(path, descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _refuse_loop(path: str, sys: Path = system.SYS) -> None:
    real = str(Path(path).resolve())
    for loop in sorted((sys / "block").glob("loop*/loop/backing_file")):
        if loop.read_text().strip() == real:
            name = loop.parents[1].name
            raise UserError(f"{name} is made of it", where=path, next=f"name /dev/{name}")

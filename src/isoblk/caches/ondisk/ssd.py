# SPDX-License-Identifier: GPL-2.0-only
"""Read and write an SSD, a device or an image of one."""

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoblk.caches.base import SECTOR
from isoblk.caches.ondisk import format as layout
from isoblk.caches.ondisk.format import Superblock
from isoblk.errors import RunError

# Records per read; a set is always in one piece.
CHUNK = 1 << 16


@dataclass(frozen=True)
class Piece:
    """Records of slots from `first` on. readable: which of them could be read."""

    first: int
    records: layout.Records
    readable: NDArray[np.bool_]

    @property
    def slots(self) -> NDArray[np.uint64]:
        """Return their numbers."""
        return np.arange(self.first, self.first + len(self.records), dtype=np.uint64)


class Ssd:
    """An SSD or an image: an open file of `size` bytes. `path` is its name in errors."""

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor
        # Direct I/O needs aligned memory.
        self._buffer = mmap.mmap(-1, CHUNK * layout.RECORD.itemsize)

    @property
    def sectors(self) -> int:
        """Return its length in sectors."""
        return self.size // SECTOR

    def read(self, at: int, count: int) -> bytes | None:
        """Return `count` bytes, at most the largest block; None if they cannot be read, or are
        beyond the end.

        Args:
            at: multiple of 512.
            count: multiple of 512.
        """
        with memoryview(self._buffer)[:count] as room, suppress(OSError):
            if os.preadv(self._descriptor, [room], at) == count:
                return bytes(room)
        return None

    def pieces(self, superblock: Superblock) -> Iterator[Piece]:
        """Yield all records of a cache with that superblock."""
        slots = superblock.geometry.slots
        for first in range(0, slots, CHUNK):
            yield self._piece(superblock, first, min(CHUNK, slots - first))

    def page(self, superblock: Superblock, number: int) -> Piece:
        """Return the records of a block of records."""
        first = number * layout.PER_PAGE
        count = min(layout.PER_PAGE, superblock.geometry.slots - first)
        return self._piece(superblock, first, count)

    def _piece(self, superblock: Superblock, first: int, count: int) -> Piece:
        size = -(-count // layout.PER_PAGE) * layout.PAGE
        at = layout.RECORDS_AT + first * layout.RECORD.itemsize
        bad = np.zeros(size // SECTOR, np.bool_)
        got = 0
        with memoryview(self._buffer)[:size] as room, suppress(OSError):
            got = os.preadv(self._descriptor, [room], at)
        if got == size:
            data = bytearray(self._buffer[:size])
        else:
            data, bad = self._by_pieces(at, size)
        for number, place in superblock.moved:
            here = number * layout.PAGE + layout.RECORDS_AT - at
            if 0 <= here < size:
                end = here + layout.PAGE
                data[here:end], bad[here // SECTOR : end // SECTOR] = self._by_pieces(
                    place * layout.PAGE, layout.PAGE
                )
        readable = ~np.repeat(bad, SECTOR // layout.RECORD.itemsize)[:count]
        return Piece(first, np.frombuffer(bytes(data), layout.RECORD)[:count], readable)

    def _by_pieces(self, at: int, size: int) -> tuple[bytearray, NDArray[np.bool_]]:
        """Return the readable data, and the sectors that cannot be read."""
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
        return data, bad

    def write(self, at: int, page: bytes) -> None:
        """Write a page or a block, not durably.

        Raises:
            RunError: it failed.
        """
        with memoryview(self._buffer)[: len(page)] as room:
            room[:] = page
            try:
                if os.pwritev(self._descriptor, [room], at) != len(page):
                    raise RunError(f"cannot write to byte {at}: beyond the end", where=self.path)
            except OSError as error:
                raise RunError(
                    f"cannot write to byte {at}: {error.strerror}", where=self.path
                ) from None

    def sync(self) -> None:
        """Make all writes durable.

        Raises:
            RunError: it failed.
        """
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise RunError(f"cannot flush it: {error.strerror}", where=self.path) from None

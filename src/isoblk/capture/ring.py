# SPDX-License-Identifier: GPL-2.0-only
"""Reader of a BPF ring buffer with records of the size of EVENT.

The kernel maps a page with the reader's position, one with the writers', and the data twice in a
row. A record that is being written is busy; a later record may be complete before it.
"""

import ctypes
import mmap
from collections.abc import Iterator

import numpy as np

from isoblk.capture.events import BUSY, EVENT
from isoblk.trace.record import Records


class Ring:
    """A mapped ring buffer. size: of its data, bytes, a power of two. Raises OSError."""

    def __init__(self, descriptor: int, size: int) -> None:
        page = mmap.PAGESIZE
        self._mask = size - 1
        self._consumer = mmap.mmap(descriptor, page, mmap.MAP_SHARED, offset=0)
        self._producer = mmap.mmap(
            descriptor, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page
        )
        self._position = ctypes.c_uint64.from_buffer(self._consumer)
        self._end = np.frombuffer(self._producer, np.uint64, 1)
        self._data = np.frombuffer(self._producer, np.uint8, offset=page)

    def take(self) -> Iterator[Records]:
        """Yield the pending events, at most once around. A block is valid, and its room occupied,
        until the next is requested."""
        until = int(self._end[0])
        while (begin := self._position.value) < until:
            at = begin & self._mask
            count = (until - begin) // EVENT.itemsize
            events = self._data[at : at + count * EVENT.itemsize].view(EVENT)
            busy = events["length"] & BUSY != 0
            if busy.any():
                events = events[: int(np.argmax(busy))]
            if not len(events):
                return
            yield events
            self._position.value = begin + len(events) * EVENT.itemsize

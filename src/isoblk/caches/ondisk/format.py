# SPDX-License-Identifier: GPL-2.0-only
"""The on-disk format of dm-setcache: read and write superblocks and records. kernel/cache/README.md
defines the format and the names.

A checksum is a CRC-32C without inversion at the end. That of a record begins with its seed, the
CRC-32C of the UUID, so a record of another cache is detected.
"""

import re
import struct
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoblk.caches.base import SECTOR

MAGIC: Final = b"isoblk setcache\0"
VERSION: Final = 2
TURNS: Final = 2
"""Number of superblock copies that are written alternately: numbers 0 and 1."""
THIRD: Final = 2
"""Number of the copy at the end, which is rarely written, and always has the state in use."""
COPIES: Final = 3
PAGE: Final = 4096
"""Bytes of a copy of the superblock, and of a block of records."""
RECORDS_AT: Final = TURNS * PAGE
"""Byte at which the records begin."""
RECORD: Final = np.dtype([("where", "<u8"), ("commit", "<u4"), ("sum", "<u4")])
PER_PAGE: Final = PAGE // RECORD.itemsize
FREE, CLEAN, DIRTY, RETIRED = range(4)
BLOCKS: Final = tuple(1 << shift for shift in range(8))
"""Sizes of a block, in sectors."""
ASSOCS: Final = tuple(1 << shift for shift in range(4, 13))
NOT_OURS: Final = ("it is all zeros", "there is something else")
"""Reasons why a copy is not a superblock."""

_SUPER: Final = struct.Struct("<16sIIQ16sIIQQQQIIQQ128s16sQQI")
_MOVE: Final = struct.Struct("<II")
_MOST_MOVED: Final = 450
_IDENTITY: Final = re.compile(rb"([!-~]{0,127})\0+")
_SUM_AT: Final = 20
_DATA_ALIGN: Final = 128  # sectors
_STATE_SHIFT: Final = 60
_POLYNOMIAL: Final = 0x82F63B78
_START: Final = 0xFFFFFFFF
# A record's checksum covers the number of its slot, and its first 12 bytes.
_SUMMED: Final = 20

UNSEEN: Final = (bytes(16), 0, 0)
"""State of an origin's disk that was never recorded."""
Records = NDArray[np.void]
"""Of dtype RECORD."""
Sums = NDArray[np.uint32]


class FormatError(ValueError):
    """The bytes are invalid. The text has the reason."""


class VersionError(FormatError):
    """A superblock is valid, and of an unknown version."""

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(f"it has version {version}, known here is {VERSION}")


@dataclass(frozen=True)
class Geometry:
    """Sizes that a superblock fixes, in sectors; sets is a number."""

    block: int
    assoc: int
    sets: int
    origin: int
    ssd: int
    data: int

    @property
    def slots(self) -> int:
        """Return the number of slots."""
        return self.sets * self.assoc

    @property
    def blocks(self) -> int:
        """Return the number of blocks of the origin that can be cached."""
        return self.origin // self.block

    def set_of(self, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the sets of blocks of the origin."""
        return blocks // np.uint64(self.assoc) % np.uint64(self.sets)

    @property
    def pages(self) -> int:
        """Return the number of blocks of records."""
        return -(-self.slots // PER_PAGE)

    def at(self, slot: int) -> int:
        """Return the byte of the SSD at which a slot's data begin."""
        return (self.data + slot * self.block) * SECTOR

    def under(self, place: int) -> range:
        """Return the slots whose data would overlap a block of records. place: a page of the
        SSD."""
        first = (place * PAGE // SECTOR - self.data) // self.block
        return range(first, first + max(1, PAGE // SECTOR // self.block))


@dataclass(frozen=True)
class Superblock:
    """A superblock.

    Attributes:
        stamp: of the origin. dirty: number of dirty blocks. stamp, dirty and seen are valid only if
            clean.
        identity: of the origin; "" without one.
        seen: state of the origin's disk, and the load of the module that recorded it.
        moved: blocks of records that are not in their default place, and the pages of the SSD with
            them; ascending.
    """

    sequence: int
    uuid: bytes
    geometry: Geometry
    clean: bool
    stamp: int
    commits: int
    dirty: int
    identity: str = ""
    seen: tuple[bytes, int, int] = UNSEEN
    moved: tuple[tuple[int, int], ...] = ()

    @property
    def copy(self) -> int:
        """Return the copy to which it is written."""
        return self.sequence % TURNS

    @property
    def seed(self) -> int:
        """Return the seed of its records' checksums."""
        return crc32c(self.uuid)

    def in_use(self, sequence: int) -> "Superblock":
        """Return the superblock that the kernel writes when a cache starts."""
        return replace(self, sequence=sequence, clean=False, stamp=0, dirty=0, seen=UNSEEN)

    def records_at(self, page: int) -> int:
        """Return the byte of the SSD with a block of records."""
        return dict(self.moved).get(page, RECORDS_AT // PAGE + page) * PAGE

    def pack(self) -> bytes:
        """Return the bytes of a copy."""
        geometry = self.geometry
        page = bytearray(PAGE)
        _SUPER.pack_into(
            page, 0, MAGIC, VERSION, 0, self.sequence, self.uuid,
            geometry.block, geometry.assoc, geometry.sets, geometry.origin, geometry.ssd,
            geometry.data, self.clean, self.stamp, self.commits, self.dirty,
            self.identity.encode("ascii"), *self.seen, len(self.moved),
        )  # fmt: skip
        for number, move in enumerate(self.moved):
            _MOVE.pack_into(page, _SUPER.size + number * _MOVE.size, *move)
        struct.pack_into("<I", page, _SUM_AT, crc32c(page))
        return bytes(page)


def copy_at(copy: int, size: int) -> int:
    """Return the byte of a copy of the superblock, on an SSD of `size` bytes."""
    return copy * PAGE if copy < TURNS else (size // PAGE - 1) * PAGE


def parse_super(page: bytes, copy: int) -> Superblock:
    """Parse a copy of the superblock.

    Args:
        page: its 4096 bytes.
        copy: its number.

    Raises:
        FormatError: it is damaged.
        VersionError: it is valid, but of another version.
    """
    if page[: len(MAGIC)] != MAGIC:
        raise FormatError(NOT_OURS[any(page)])
    found = _SUPER.unpack_from(page)
    _, version, checksum, sequence, uuid, block, assoc, sets, origin, ssd, data = found[:11]
    state, stamp, commits, dirty, raw, *seen, count = found[11:]
    if checksum != crc32c(page[:_SUM_AT] + bytes(4) + page[_SUM_AT + 4 :]):
        raise FormatError("its checksum is wrong")
    if version != VERSION:
        raise VersionError(version)
    geometry = Geometry(block, assoc, sets, origin, ssd, data)
    if block not in BLOCKS or assoc not in ASSOCS or fit(block, assoc, origin, ssd) != geometry:
        raise FormatError(
            f"its geometry is impossible: {sets} sets of {assoc} blocks of {block} sectors"
            f" behind sector {data} of {ssd}"
        )
    if state > 1 or (state and copy == THIRD):
        raise FormatError(f"it has state {state}, which means nothing there")
    if copy < TURNS and sequence % TURNS != copy:
        raise FormatError(f"it is the other copy's: its sequence number is {sequence}")
    identity = _IDENTITY.fullmatch(raw)
    if not identity:
        raise FormatError("its origin's identity is not printable")
    return Superblock(
        sequence=sequence, uuid=uuid, geometry=geometry, clean=state == 1, stamp=stamp,
        commits=commits, dirty=dirty, identity=identity[1].decode("ascii"),
        seen=(seen[0], seen[1], seen[2]), moved=_parse_moved(page, count, geometry),
    )  # fmt: skip


def _parse_moved(page: bytes, count: int, geometry: Geometry) -> tuple[tuple[int, int], ...]:
    if count > _MOST_MOVED:
        raise FormatError(f"it has {count} blocks of records elsewhere, possible are {_MOST_MOVED}")
    table = page[_SUPER.size : _SUPER.size + count * _MOVE.size]
    moved = tuple((int(block), int(place)) for block, place in _MOVE.iter_unpack(table))
    numbers = [block for block, _ in moved]
    places = {place for _, place in moved}
    fits = all(
        block < geometry.pages
        and place * PAGE >= geometry.at(0)
        and (place + 1) * PAGE <= geometry.at(geometry.slots)
        for block, place in moved
    )
    if not fits or numbers != sorted(set(numbers)) or len(places) < count:
        raise FormatError("it has impossible places of blocks of records")
    return moved


def fit(block: int, assoc: int, origin: int, ssd: int) -> Geometry | None:
    """Return the geometry with the most sets that fit the SSD; None if no set fits."""

    def data(sets: int) -> int:
        pages = -(-sets * assoc // PER_PAGE)
        return -(-(RECORDS_AT + pages * PAGE) // SECTOR // _DATA_ALIGN) * _DATA_ALIGN

    end = copy_at(THIRD, ssd * SECTOR) // SECTOR
    most = range(max(end, 0) // (assoc * block) + 2)
    sets = bisect_right(most, end, key=lambda sets: data(sets) + sets * assoc * block) - 1
    return Geometry(block, assoc, sets, origin, ssd, data(sets)) if sets > 0 else None


def records(
    states: NDArray[np.integer], blocks: NDArray[np.integer], commit: int, first: int, seed: int
) -> Records:
    """Return records of slots from `first` on. commit: the commit that writes them."""
    made = np.zeros(len(states), RECORD)
    made["where"] = states.astype(np.uint64) << np.uint64(_STATE_SHIFT) | blocks.astype(np.uint64)
    made["commit"] = commit & 0xFFFFFFFF
    made["sum"] = sums(made, first, seed)
    return made


def states(found: Records) -> NDArray[np.uint64]:
    """Return the states of records' slots: FREE, CLEAN, DIRTY, RETIRED; any other is invalid."""
    state: NDArray[np.uint64] = found["where"] >> np.uint64(_STATE_SHIFT)
    return state


def blocks(found: Records) -> NDArray[np.uint64]:
    """Return the blocks of the origin in records."""
    block: NDArray[np.uint64] = found["where"] & np.uint64((1 << _STATE_SHIFT) - 1)
    return block


def sums(found: Records, first: int, seed: int) -> Sums:
    """Return the correct checksums of records of slots from `first` on."""
    slots = np.arange(first, first + len(found), dtype=np.uint64)
    words = found.view("<u2").reshape(-1, RECORD.itemsize // 2)
    total = np.full(len(found), _after(np.uint32(seed), _SUMMED), np.uint32)
    for i, table in enumerate(_tables()):
        word = words[:, i - 4] if i >= 4 else slots >> np.uint64(16 * i) & np.uint64(0xFFFF)
        total ^= table[word]
    return total


# -- CRC-32C --


def crc32c(data: bytes | bytearray, start: int = _START) -> int:
    """Return the CRC-32C of some bytes, without inversion at the end."""
    table = _byte_list()
    for byte in data:
        start = table[(start ^ byte) & 0xFF] ^ start >> 8
    return start


@cache
def _bytes() -> Sums:
    """Return the table for single bytes."""
    found: Sums = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        found = found >> np.uint32(1) ^ (found & np.uint32(1)) * np.uint32(_POLYNOMIAL)
    return found


@cache
def _byte_list() -> list[int]:
    return [int(value) for value in _bytes()]


@cache
def _tables() -> list[Sums]:
    """Return the contribution of each 16-bit word of the summed bytes, by its value."""
    values = np.arange(1 << 16)
    found = []
    for at in range(0, _SUMMED, 2):
        low, high = (_after(_bytes(), _SUMMED - 1 - at - i) for i in range(2))
        found.append(np.asarray(low)[values & 0xFF] ^ np.asarray(high)[values >> 8])
    return found


def _after(value: Sums | np.uint32, count: int) -> Sums | np.uint32:
    """Return a checksum after `count` further zero bytes."""
    for _ in range(count):
        value = _bytes()[value & 0xFF] ^ value >> 8
    return value

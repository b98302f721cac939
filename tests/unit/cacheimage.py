# SPDX-License-Identifier: GPL-2.0-only
"""Images of SSDs of dm-setcache, made by the format alone."""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isoblk.caches.ondisk import format as layout
from isoblk.caches.ondisk.format import CLEAN, DIRTY, FREE, Geometry, Superblock, fit

UUID = bytes(range(16))
ORIGIN = 1 << 15  # sectors
COMMIT = 7


@dataclass
class Image:
    """An SSD. slots: (state, block) of each, of commit 7; newest: of the superblocks."""

    path: Path
    newest: Superblock
    slots: list[tuple[int, int]]

    @property
    def geometry(self) -> Geometry:
        return self.newest.geometry

    def write(self) -> None:
        geometry = self.geometry
        older = self.newest.in_use(self.newest.sequence - 1)
        states, blocks = (np.array(column) for column in zip(*self.slots, strict=True))
        records = layout.records(states, blocks, COMMIT, 0, self.newest.seed)
        with self.path.open("wb") as file:
            file.write(b"".join(one.pack() for one in (older, self.newest)))
            file.write(records.tobytes())
            file.truncate(geometry.ssd * 512)
            # Of a large one only a part has data.
            file.seek(geometry.data * 512)
            file.write(random.Random(1).randbytes(min(geometry.slots * 4096, 4 << 20)))
            file.truncate(geometry.ssd * 512)
            file.seek(self.copies[2])
            file.write(older.in_use(1).pack())

    @property
    def copies(self) -> list[int]:
        """Bytes where copies of the superblock are."""
        return [layout.copy_at(number, self.geometry.ssd * 512) for number in range(3)]

    def damage(self, at: int, data: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(at)
            file.write(data)

    def flip(self, at: int, bit: int = 0) -> None:
        byte = self.path.read_bytes()[at]
        self.damage(at, bytes([byte ^ 1 << bit]))

    def spoil(self, *slots: int) -> None:
        """Damage records."""
        for slot in slots:
            self.flip(8192 + 16 * slot + 3)

    def put(self, slot: int, state: int, block: int, commit: int = COMMIT) -> None:
        """Another record, whole, on an image that was written."""
        made = layout.records(np.array([state]), np.array([block]), commit, slot, self.newest.seed)
        self.damage(8192 + 16 * slot, made.tobytes())

    def say(self) -> list[tuple[int, int]]:
        """States and blocks that whole records say now; -1 for one that is not whole."""
        data = self.path.read_bytes()
        found = np.frombuffer(data, layout.RECORD, len(self.slots), 8192)
        whole = found["sum"] == layout.sums(found, 0, self.newest.seed)
        states = np.where(whole, layout.states(found).astype(np.int64), -1)
        return list(zip(states.tolist(), layout.blocks(found).tolist(), strict=True))


def make_image(
    path: Path,
    *,
    clean: bool = True,
    dirty: int = 40,
    kept: int = 30,
    block: int = 8,
    assoc: int = 64,
    ssd: int = 8192,
    origin: int = ORIGIN,
    seed: int = 1,
) -> Image:
    """A cache with some dirty and some clean blocks, each in its set, and nothing wrong."""
    geometry = fit(block, assoc, origin, ssd)
    assert geometry is not None
    rng = random.Random(seed)
    slots = [(FREE, 0)] * geometry.slots
    room = dict.fromkeys(range(geometry.sets), assoc)
    taken: set[int] = set()
    states = [DIRTY] * dirty + [CLEAN] * kept
    while states:
        number = rng.randrange(geometry.blocks)
        home = number // assoc % geometry.sets
        if room[home] and number not in taken:
            taken.add(number)
            room[home] -= 1
            slots[home * assoc + room[home]] = (states.pop(), number)
    newest = Superblock(9, UUID, geometry, clean, 4711 * clean, COMMIT, dirty * clean, "id:slow")
    image = Image(path, newest, slots)
    image.write()
    return image

# SPDX-License-Identifier: GPL-2.0-only
"""A superblock of dm-setcache when both copies are gone, from what the records prove.

Each whole record gives the seed of its checksum, and whole records of one cache all give the same.
So a record is known for one without any superblock; where they end tells how many there are, and
that, with the size of the SSD, the size of a block and where data begin. Associativities by which
every block is in its set may be several: any of them is right, for which slot holds which block is
in the records alone. Only the size of the origin is nowhere.
"""

import os
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from isoblk.cache import format as layout
from isoblk.cache.format import Geometry, Superblock
from isoblk.cache.ssd import Ssd

# Records that agree on a seed are looked for among so many: 64 MiB.
_SEARCHED: Final = 1 << 22
# What both personalities have by default.
_USUAL: Final = 512
# Seeds that are tried.
_TRIED: Final = 4


@dataclass(frozen=True)
class Known:
    """What the user knows of a cache. origin: sectors; block: sectors; assoc. None: not told."""

    origin: int | None = None
    block: int | None = None
    assoc: int | None = None


@dataclass(frozen=True)
class Proof:
    """What records prove.

    Attributes:
        seed: of their checksums.
        geometries: all that fit, the origin's size being the least that is possible if it is not
            known. The likeliest associativity comes first.
        exact: each of them has not one record that is damaged.
        clean, dirty: how many are recorded.
        commits: the last commit that wrote one of them.
    """

    seed: int
    geometries: list[Geometry]
    exact: bool
    clean: int
    dirty: int
    commits: int

    @property
    def geometry(self) -> Geometry | None:
        """The one that is proven, but for the associativity; None if none is."""
        places = {(one.block, one.data, one.slots) for one in self.geometries}
        return self.geometries[0] if self.exact and len(places) == 1 else None

    def superblock(self, geometry: Geometry) -> Superblock:
        """As after a crash: the records say what is dirty, and nothing else counts."""
        # Version 4, as the kernel makes them, but for the end, which gives the seed.
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        uuid = layout.uuid_of(self.seed, bytes(raw))
        # The first sequence number after formatting.
        return Superblock(3, uuid, geometry, False, 0, self.commits, 0)


def own_seeds(ssd: Ssd, slots: int) -> list[int]:
    """Seeds that records among so many agree on, the most frequent first.

    More than one: records of a former cache are left, or were damaged all in the same way.
    """
    for piece in ssd.pieces(min(slots, _SEARCHED)):
        seeds = layout.seeds(piece.records, piece.first)[piece.readable]
        values, votes = np.unique(seeds, return_counts=True)
        order = np.argsort(-votes, kind="stable")
        if agreed := [int(values[one]) for one in order if votes[one] > 1]:
            return agreed
    return []


def prove(ssd: Ssd, known: Known) -> Proof | None:
    """What the records of an SSD prove; None if there are none."""
    fitting = [
        found
        for block in layout.BLOCKS
        for assoc in layout.ASSOCS
        if known.block in (None, block)
        and known.assoc in (None, assoc)
        and (found := layout.fit(block, assoc, known.origin or 0, ssd.sectors))
    ]
    most = max((one.slots for one in fitting), default=0)
    proofs = [_prove(ssd, known, seed, fitting) for seed in own_seeds(ssd, most)[:_TRIED]]
    return next((one for one in proofs if one.exact), proofs[0] if proofs else None)


def _prove(ssd: Ssd, known: Known, seed: int, fitting: list[Geometry]) -> Proof:
    """The same, of records with a seed, for some geometries."""
    counts = np.zeros(3, np.int64)
    total, commits, highest = 0, 0, -1
    for piece in ssd.pieces(max(one.slots for one in fitting)):
        if piece.first >= max((one.slots for one in fitting), default=0):
            break
        whole = piece.readable & (
            piece.records["sum"] == layout.sums(piece.records, piece.first, seed)
        )
        found, slots = piece.records[whole], piece.slots[whole]
        if not len(slots):
            continue
        states, blocks = layout.states(found), layout.blocks(found)
        used = (states == layout.CLEAN) | (states == layout.DIRTY)
        counts += np.bincount(states[states < 3].astype(np.int64), minlength=3)
        total += len(slots)
        commits = max(commits, int(found["commit"].max()))
        if used.any():
            highest = max(highest, int(blocks[used].max()))
        fitting = [
            one
            for one in fitting
            if int(slots[-1]) < one.slots
            and bool(np.all(one.set_of(blocks[used]) == slots[used] // np.uint64(one.assoc)))
        ]
    # The least origin that has the highest block, if it is not known.
    fitting = [
        replace(one, origin=known.origin or (highest + 1) * one.block)
        for one in fitting
        if known.origin is None or highest < one.blocks
    ]
    fitting.sort(key=lambda one: (one.assoc != _USUAL, one.assoc))
    exact = [one for one in fitting if one.slots == total]
    clean, dirty = (int(counts[state]) for state in (layout.CLEAN, layout.DIRTY))
    return Proof(seed, exact or fitting, bool(exact), clean, dirty, commits)

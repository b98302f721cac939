# SPDX-License-Identifier: GPL-2.0-only
"""Superblocks and records of dm-setcache are read as they were made, and no damage goes unseen."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.cache import format as layout
from isoblk.cache.format import FormatError, Geometry, Superblock, VersionError, fit, parse_super

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
block_numbers = st.integers(0, 2**60 - 1)


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    block = draw(st.sampled_from(layout.BLOCKS))
    assoc = draw(st.sampled_from(layout.ASSOCS))
    least = block * assoc + 1024
    found = fit(block, assoc, draw(u64), draw(st.integers(least, 2**40)))
    assert found is not None
    return found


superblocks = st.builds(
    Superblock,
    sequence=st.integers(0, 2**64 - 3),
    uuid=st.binary(min_size=16, max_size=16),
    geometry=geometries(),
    clean=st.booleans(),
    stamp=u32,
    commits=u64,
    dirty=u64,
)


@given(superblocks)
def test_a_superblock_is_read_as_it_was_made(one: Superblock) -> None:
    assert parse_super(one.pack(), one.copy) == one


@given(superblocks, st.integers(0, 8 * layout.PAGE - 1))
def test_one_damaged_bit_of_a_superblock_is_seen(one: Superblock, bit: int) -> None:
    page = bytearray(one.pack())
    page[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FormatError):
        parse_super(bytes(page), one.copy)


@given(st.binary(max_size=200), st.integers(0, 1))
def test_whatever_bytes_there_are_a_superblock_is_refused_with_a_reason(
    data: bytes, copy: int
) -> None:
    for head in (b"", layout.MAGIC):
        page = (head + data).ljust(layout.PAGE, b"\0")
        with pytest.raises(FormatError, match=r"\w"):
            parse_super(page, copy)
        # Even one with a right checksum.
        summed = bytearray(page)
        summed[20:24] = bytes(4)
        summed[20:24] = struct.pack("<I", layout.crc32c(summed))
        with pytest.raises(FormatError, match=r"\w"):
            parse_super(bytes(summed), copy)


@given(superblocks)
def test_a_superblock_in_the_other_ones_place_is_refused(one: Superblock) -> None:
    with pytest.raises(FormatError, match="the other copy's"):
        parse_super(one.pack(), 1 - one.copy)


@given(superblocks, st.integers(2, 2**32 - 1))
def test_a_newer_version_is_told_from_damage(one: Superblock, version: int) -> None:
    page = bytearray(one.pack())
    struct.pack_into("<I", page, 16, version)
    struct.pack_into("<I", page, 20, 0)
    struct.pack_into("<I", page, 20, layout.crc32c(page))
    with pytest.raises(VersionError, match=f"version {version}"):
        parse_super(bytes(page), one.copy)


@given(geometries())
def test_a_geometry_fits_and_a_set_more_would_not(one: Geometry) -> None:
    def end(sets: int) -> int:
        records = -(-sets * one.assoc // 256) * 8
        return -(-(16 + records) // 128) * 128 + sets * one.assoc * one.block

    assert one.data >= 16 + -(-one.slots // 256) * 8
    assert end(one.sets) == one.data + one.slots * one.block <= one.ssd < end(one.sets + 1)


def test_no_geometry_fits_an_ssd_without_room_for_a_set() -> None:
    assert fit(8, 64, 1 << 20, 128 + 8 * 64 - 1) is None
    assert fit(8, 64, 1 << 20, 128 + 8 * 64) is not None
    assert fit(8, 64, 1 << 20, 0) is None


record_lists = st.lists(st.tuples(st.integers(0, 15), block_numbers), min_size=1, max_size=40)


def _made(said: list[tuple[int, int]], commit: int, first: int, seed: int) -> layout.Records:
    kinds, numbers = (np.array(column, np.uint64) for column in zip(*said, strict=True))
    return layout.records(kinds, numbers, commit, first, seed)


@given(record_lists, u32, st.integers(0, 2**63), u32)
def test_records_are_read_as_they_were_made(
    said: list[tuple[int, int]], commit: int, first: int, seed: int
) -> None:
    made = _made(said, commit, first, seed)
    assert list(zip(layout.states(made), layout.blocks(made), strict=True)) == said
    assert (made["commit"] == commit).all()
    assert (made["sum"] == layout.sums(made, first, seed)).all()
    # Bit by bit.
    for slot, record in enumerate(made, first):
        crc = seed
        for byte in struct.pack("<Q", slot) + record.tobytes()[:12]:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        assert record["sum"] == crc


@given(record_lists, u32, st.integers(0, 2**40), u32, st.data())
def test_one_damaged_bit_of_a_record_is_seen_and_so_is_another_slot_or_cache(
    said: list[tuple[int, int]], commit: int, first: int, seed: int, data: st.DataObject
) -> None:
    made = _made(said, commit, first, seed)
    raw = bytearray(made.tobytes())
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8
    bad = np.frombuffer(bytes(raw), layout.RECORD)
    wrong = np.flatnonzero(bad["sum"] != layout.sums(bad, first, seed))
    assert wrong.tolist() == [bit // 128]
    assert (made["sum"] != layout.sums(made, first + 1, seed)).all()
    assert (made["sum"] != layout.sums(made, first, seed ^ 1)).all()


@given(record_lists, u32, st.integers(0, 2**40), u32)
def test_each_record_gives_the_seed_of_all(
    said: list[tuple[int, int]], commit: int, first: int, seed: int
) -> None:
    made = _made(said, commit, first, seed)
    assert (layout.seeds(made, first) == seed).all()


@given(u32, st.binary(min_size=16, max_size=16))
def test_a_uuid_can_be_made_for_a_seed(seed: int, raw: bytes) -> None:
    uuid = layout.uuid_of(seed, raw)
    assert uuid[:12] == raw[:12]
    assert layout.crc32c(uuid) == seed


@given(superblocks)
def test_the_seed_is_that_of_the_uuid(one: Superblock) -> None:
    assert replace(one, uuid=layout.uuid_of(one.seed, one.uuid)).uuid == one.uuid

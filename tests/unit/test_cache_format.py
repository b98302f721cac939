# SPDX-License-Identifier: GPL-2.0-only
"""Superblocks and records of dm-setcache are read as they were made, and no damage goes unseen."""

import struct
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.caches.ondisk import format as layout
from isoblk.caches.ondisk.format import (
    FormatError,
    Geometry,
    Superblock,
    VersionError,
    fit,
    parse_super,
)

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
block_numbers = st.integers(0, 2**60 - 1)


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    block = draw(st.sampled_from(layout.BLOCKS))
    assoc = draw(st.sampled_from(layout.ASSOCS))
    least = block * assoc + 1040
    found = fit(block, assoc, draw(u64), draw(st.integers(least, 2**40)))
    assert found is not None
    return found


@st.composite
def superblocks(draw: st.DrawFn) -> Superblock:
    geometry = draw(geometries())
    first = geometry.at(0) // 4096
    end = min(geometry.at(geometry.slots) // 4096, 1 << 32)
    numbers = draw(st.sets(st.integers(0, min(geometry.pages, 1 << 32) - 1), max_size=5))
    room = st.integers(first, end - 1) if first < end else st.nothing()
    places = draw(st.sets(room, max_size=len(numbers))) if first < end else set()
    words = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=127)
    return Superblock(
        sequence=draw(u64),
        uuid=draw(st.binary(min_size=16, max_size=16)),
        geometry=geometry,
        clean=draw(st.booleans()),
        stamp=draw(u32),
        commits=draw(u64),
        dirty=draw(u64),
        identity=draw(words),
        seen=(draw(st.binary(min_size=16, max_size=16)), draw(u64), draw(u64)),
        moved=tuple(zip(sorted(numbers), places, strict=False)),
    )


@given(superblocks())
def test_a_superblock_is_read_as_it_was_made(one: Superblock) -> None:
    assert parse_super(one.pack(), one.copy) == one
    third = one.in_use(one.sequence)
    assert parse_super(third.pack(), layout.THIRD) == third


@given(superblocks())
def test_the_third_copy_never_says_clean(one: Superblock) -> None:
    with pytest.raises(FormatError, match="state 1, which means nothing there"):
        parse_super(replace(one, clean=True).pack(), layout.THIRD)


WHOLE = Superblock(2, bytes(16), cast(Geometry, fit(8, 64, 1 << 15, 8192)), False, 0, 7, 0)
FIRST, PAGES = WHOLE.geometry.at(0) // 4096, WHOLE.geometry.pages


@pytest.mark.parametrize(
    "moved",
    [
        ((PAGES, FIRST),),
        ((0, FIRST - 1),),
        ((0, WHOLE.geometry.at(WHOLE.geometry.slots) // 4096),),
        ((1, FIRST), (0, FIRST + 1)),
        ((0, FIRST), (0, FIRST + 1)),
        ((0, FIRST), (1, FIRST)),
    ],
)
def test_records_in_impossible_places_are_refused(moved: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(FormatError, match="impossible places"):
        parse_super(replace(WHOLE, moved=moved).pack(), 0)


def test_more_moved_blocks_than_there_is_room_for_are_refused() -> None:
    page = bytearray(WHOLE.pack())
    struct.pack_into("<I", page, 272, 451)
    struct.pack_into("<I", page, 20, 0)
    struct.pack_into("<I", page, 20, layout.crc32c(page))
    with pytest.raises(FormatError, match="451 blocks of records elsewhere"):
        parse_super(bytes(page), 0)


@pytest.mark.parametrize("raw", [b"a b", b"\x7f", b"\xe9", b"a\0b", b"x" * 128])
def test_an_identity_is_printable_and_ends(raw: bytes) -> None:
    page = bytearray(WHOLE.pack())
    page[112 : 112 + len(raw)] = raw
    struct.pack_into("<I", page, 20, 0)
    struct.pack_into("<I", page, 20, layout.crc32c(page))
    with pytest.raises(FormatError, match="identity is not printable"):
        parse_super(bytes(page), 0)


@given(superblocks(), st.integers(0, 8 * layout.PAGE - 1))
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


@given(superblocks())
def test_a_superblock_in_the_other_ones_place_is_refused(one: Superblock) -> None:
    with pytest.raises(FormatError, match="the other copy's"):
        parse_super(one.pack(), 1 - one.copy)


@given(superblocks(), st.integers(0, 2**32 - 1).filter(lambda version: version != 2))
def test_another_version_is_told_from_damage(one: Superblock, version: int) -> None:
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
    third = one.ssd // 8 * 8 - 8
    assert end(one.sets) == one.data + one.slots * one.block <= third < end(one.sets + 1)


def test_no_geometry_fits_an_ssd_without_room_for_a_set() -> None:
    assert fit(8, 64, 1 << 20, 128 + 8 * 64 + 7) is None
    assert fit(8, 64, 1 << 20, 128 + 8 * 64 + 8) is not None
    assert fit(8, 64, 1 << 20, 0) is None


@pytest.mark.parametrize(("block", "count"), [(1, 8), (4, 2), (8, 1), (16, 1), (128, 1)])
def test_slots_under_a_moved_block_of_records_are_those_whose_data_would_be_there(
    block: int, count: int
) -> None:
    geometry = fit(block, 64, 1 << 20, 1 << 16)
    assert geometry is not None
    for place in range(geometry.at(0) // 4096, geometry.at(geometry.slots) // 4096):
        under = geometry.under(place)
        assert len(under) == count
        assert geometry.at(under.start) <= place * 4096
        assert geometry.at(under.stop) >= (place + 1) * 4096


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

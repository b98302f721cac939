# SPDX-License-Identifier: GPL-2.0-only
"""`isoblk cache check`: every damage is seen and named, and no repair loses a dirty block that can
be read."""

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from isoblk.cachectl.volumes import open_ssd
from isoblk.caches.ondisk import format as layout
from isoblk.caches.ondisk.format import CLEAN, DIRTY, FREE, RETIRED
from isoblk.caches.ondisk.fsck import Cure, Damage, Report, examine, repair
from isoblk.caches.ondisk.ssd import Ssd
from isoblk.cli.cache import app
from isoblk.errors import RunError, UserError
from tests.examples import at_most
from tests.unit.cacheimage import ORIGIN, Image, make_image


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return make_image(tmp_path / "ssd")


def _check(image: Image) -> Report:
    before = image.path.read_bytes()
    with open_ssd(str(image.path), write=False) as ssd:
        found = examine(ssd).report
    assert image.path.read_bytes() == before
    return found


def _repair(image: Image, *, drop: bool = False) -> Report:
    with open_ssd(str(image.path), write=True) as ssd:
        return repair(ssd, drop=drop)


def _one(found: Report) -> Damage:
    assert len(found.damage) == 1, found.damage
    return found.damage[0]


def _slots(image: Image, state: int) -> list[int]:
    return [slot for slot, one in enumerate(image.slots) if one[0] == state]


@pytest.mark.parametrize("clean", [False, True])
def test_a_whole_cache_is_sound_and_its_repair_writes_nothing(tmp_path: Path, clean: bool) -> None:
    image = make_image(tmp_path / "ssd", clean=clean)
    before = image.path.read_bytes()
    found = _check(image)
    assert not found.damage
    assert (found.state, found.dirty, found.clean) == ("clean" if clean else "in use", 40, 30)
    assert (found.block, found.assoc, found.sets, found.origin) == (4096, 64, 15, ORIGIN * 512)
    assert found.uuid == image.newest.uuid.hex()
    assert not _repair(image).damage
    assert image.path.read_bytes() == before


@pytest.mark.parametrize("copy", [0, 1])
@pytest.mark.parametrize("clean", [False, True])
def test_a_damaged_superblock_is_restored_from_the_others_as_in_use(
    tmp_path: Path, copy: int, clean: bool
) -> None:
    image = make_image(tmp_path / "ssd", clean=clean)
    image.flip(image.copies[copy] + 2000)
    damage = _one(_check(image))
    assert damage.where == f"superblock copy {copy}"
    assert (damage.cause, damage.option) == ("its checksum is wrong", Cure.REPAIR)
    found = _repair(image)
    assert not found.damage
    assert [one.where for one in found.mended] == [f"superblock copy {copy}"]
    assert (found.state, found.dirty) == ("in use", 40)
    assert image.say() == image.slots


@pytest.mark.parametrize("clean", [False, True])
def test_a_damaged_third_copy_is_restored_and_the_state_stays(tmp_path: Path, clean: bool) -> None:
    image = make_image(tmp_path / "ssd", clean=clean)
    image.flip(image.copies[2] + 5)
    assert _one(_check(image)).where == "superblock copy 2"
    found = _repair(image)
    assert not found.damage
    assert (found.state, found.dirty) == ("clean" if clean else "in use", 40)
    page = image.path.read_bytes()[image.copies[2] :][:4096]
    assert layout.parse_super(page, 2).identity == "id:slow"


@pytest.mark.parametrize("fill", [b"\0", b"\xa5"])
@pytest.mark.parametrize("clean", [False, True])
def test_of_three_copies_the_third_alone_is_enough(
    tmp_path: Path, fill: bytes, clean: bool
) -> None:
    image = make_image(tmp_path / "ssd", clean=clean)
    image.damage(0, fill * 8192)
    assert [one.option for one in _check(image).damage] == [Cure.REPAIR] * 2
    found = _repair(image)
    assert not found.damage
    assert (found.state, found.dirty, found.identity) == ("in use", 40, "id:slow")
    assert image.say() == image.slots
    for copy in (0, 1, 2):
        page = image.path.read_bytes()[image.copies[copy] :][:4096]
        assert layout.parse_super(page, copy).uuid == image.newest.uuid


def test_a_copy_of_another_cache_is_told_by_the_records(image: Image) -> None:
    image.damage(0, replace(image.newest, sequence=100, uuid=bytes(16)).pack())
    damage = _one(_check(image))
    assert damage.where == "superblock copy 0"
    assert "it is another cache's" in damage.cause
    assert not _repair(image).damage
    assert _check(image).uuid == image.newest.uuid.hex()


@pytest.mark.parametrize("copy", [0, 1, 2])
def test_a_copy_that_disagrees_about_a_size_is_damage_as_to_the_kernel(
    image: Image, copy: int
) -> None:
    other = replace(image.geometry, origin=ORIGIN + 64)
    page = image.path.read_bytes()[image.copies[copy] :][:4096]
    wrong = replace(layout.parse_super(page, copy), geometry=other)
    image.damage(image.copies[copy], wrong.pack())
    damage = _one(_check(image))
    assert damage.where == f"superblock copy {copy}"
    assert "disagrees with the others about sizes" in damage.cause
    assert _repair(image).origin == ORIGIN * 512
    assert not _check(image).damage
    assert image.say() == image.slots


@pytest.mark.parametrize("state", [FREE, DIRTY])
def test_a_damaged_record_of_a_slot_that_holds_nothing_is_damage_as_to_the_kernel(
    tmp_path: Path, state: int
) -> None:
    image = make_image(tmp_path / "ssd")
    records = image.path.read_bytes()[8192:12288]
    slot = _slots(image, state)[0]
    place = image.geometry.at(slot) // 4096
    image.damage(place * 4096, records)
    for number, one in enumerate((image.newest.in_use(8), image.newest, image.newest.in_use(1))):
        moved = replace(one, moved=((0, place),), dirty=one.dirty - (state == DIRTY) * one.clean)
        image.damage(image.copies[number], moved.pack())
    assert not _check(image).damage
    where = place * 4096 if slot < 256 else 8192
    image.damage(where + 16 * slot + 9, b"x")
    assert "of a slot that holds nothing" in _one(_check(image)).cause
    assert not _repair(image).damage
    assert _kernel_takes(image.path.read_bytes(), image.geometry)


def test_of_two_copies_that_disagree_about_a_size_none_is_believed(image: Image) -> None:
    other = replace(image.newest.in_use(8), geometry=replace(image.geometry, origin=ORIGIN + 64))
    image.damage(image.copies[0], other.pack())
    image.damage(image.copies[2], bytes(4096))
    before = image.path.read_bytes()
    assert "which of them is right" in _one(_repair(image, drop=True)).cure
    assert image.path.read_bytes() == before


def test_more_dirty_blocks_than_were_counted_are_no_missing_ones(image: Image) -> None:
    image.newest = replace(image.newest, dirty=39)
    image.write()
    free = _slots(image, FREE)[0]
    image.spoil(free)
    said = [str(one) for one in _check(image).damage]
    assert not any("-1" in one for one in said), said
    assert any("dirty blocks more than were counted: 1" in one for one in said)
    assert not _repair(image, drop=True).damage


@pytest.mark.parametrize("last", [2**64 - 20, 2**64 - 8, 2**64 - 1])
def test_a_sequence_number_that_a_repair_cannot_follow_is_left_alone(
    image: Image, last: int
) -> None:
    image.damage(image.copies[last % 2], replace(image.newest, sequence=last).pack())
    for at in (image.copies[1 - last % 2], image.copies[2]):
        image.damage(at, bytes(4096))
    before = image.path.read_bytes()
    found = _repair(image)
    if last < 2**64 - 8:
        assert not found.damage
    else:
        assert _one(found).cause == f"its sequence number is {last}"
        assert image.path.read_bytes() == before


def _of_another(image: Image, *copies: int) -> None:
    for copy in copies:
        other = replace(image.newest.in_use(100 + copy), uuid=bytes(16))
        image.damage(image.copies[copy], other.pack())


def test_two_copies_of_another_cache_are_overruled_by_the_records(image: Image) -> None:
    _of_another(image, 0, 1)
    assert not _repair(image).damage
    found = _check(image)
    assert (found.uuid, found.dirty) == (image.newest.uuid.hex(), 40)


def test_superblocks_of_another_cache_free_no_record_unless_told(image: Image) -> None:
    _of_another(image, 0, 1, 2)
    # Even if it was stopped with nothing dirty.
    for sequence in (102, 103):
        clean = replace(image.newest, sequence=sequence, uuid=bytes(16), dirty=0)
        image.damage(image.copies[sequence % 2], clean.pack())
    before = image.path.read_bytes()
    damage = _one(_repair(image))
    assert damage.option == Cure.DROP
    assert "none is of this cache" in damage.cause
    assert image.path.read_bytes() == before


def test_copies_of_two_caches_and_records_of_neither_are_left_alone(image: Image) -> None:
    image.damage(0, replace(image.newest, sequence=100, uuid=bytes(16)).pack())
    image.damage(8192, bytes(16 * len(image.slots)))
    before = image.path.read_bytes()
    damage = _one(_repair(image, drop=True))
    assert (damage.where, damage.option) == ("superblock", Cure.NONE)
    assert image.path.read_bytes() == before


@pytest.mark.parametrize(
    ("version", "said"), [(1, "blkdiscard --zeroout"), (3, "use the isoblk that made it")]
)
def test_another_version_is_left_alone(image: Image, version: int, said: str) -> None:
    page = bytearray(image.newest.pack())
    struct.pack_into("<II", page, 16, version, 0)
    struct.pack_into("<I", page, 20, layout.crc32c(page))
    image.damage(image.copies[image.newest.copy], bytes(page))
    before = image.path.read_bytes()
    damage = _one(_repair(image, drop=True))
    assert f"version {version}" in damage.cause
    assert said in damage.cure
    assert damage.option == Cure.NONE
    assert image.path.read_bytes() == before


@pytest.mark.parametrize("change", [-4096, 4096])
def test_an_ssd_of_another_size_is_named_and_left_alone(image: Image, change: int) -> None:
    with image.path.open("r+b") as file:
        file.truncate(image.geometry.ssd * 512 + change)
    before = image.path.read_bytes()
    damage = _one(_repair(image, drop=True))
    assert f"made on 8192 sectors, now it has {8192 + change // 512}" in damage.cause
    assert image.path.read_bytes() == before


# -- records --


def test_records_that_were_not_dirty_are_freed(image: Image) -> None:
    """The stop has counted the dirty ones, and all of them can be read."""
    spoilt = [_slots(image, CLEAN)[0], *range(0, 3)]
    assert all(image.slots[slot][0] != DIRTY for slot in spoilt)
    image.spoil(*spoilt)
    assert {one.option for one in _check(image).damage} == {Cure.REPAIR}
    found = _repair(image)
    assert not found.damage
    assert (found.state, found.dirty, found.clean) == ("clean", 40, 29)
    for slot, (now, was) in enumerate(zip(image.say(), image.slots, strict=True)):
        assert now == ((FREE, 0) if slot in spoilt else was)


@pytest.mark.parametrize("clean", [False, True])
def test_a_record_that_may_be_dirty_is_freed_only_if_told(tmp_path: Path, clean: bool) -> None:
    image = make_image(tmp_path / "ssd", clean=clean)
    slot = _slots(image, DIRTY)[5]
    image.spoil(slot)
    before = image.path.read_bytes()
    damage = _one(_repair(image))
    assert image.path.read_bytes() == before
    assert (damage.where, damage.option) == (f"slot {slot}", Cure.DROP)
    assert f"byte {image.geometry.at(slot)}, 4096 bytes" in damage.cure
    found = _repair(image, drop=True)
    assert not found.damage
    assert (found.state, found.dirty) == ("clean" if clean else "in use", 39)
    assert image.say()[slot] == (FREE, 0)


def test_the_count_proves_nothing_if_a_dirty_record_should_not_be_there(image: Image) -> None:
    """One that was dirty is damaged; the count seems right, for another one is too many."""
    dirty = _slots(image, DIRTY)
    twin = _twin(image, dirty[0])
    image.put(twin, DIRTY, image.slots[dirty[0]][1], 6)
    image.spoil(dirty[-1])
    found = _repair(image)
    assert {(one.where, one.option) for one in found.damage} == {
        (f"slot {twin}", Cure.DROP),
        (f"slot {dirty[-1]}", Cure.DROP),
    }


def test_after_a_crash_any_damaged_record_may_be_dirty(tmp_path: Path) -> None:
    image = make_image(tmp_path / "ssd", clean=False)
    image.spoil(_slots(image, CLEAN)[0])
    assert _one(_repair(image)).option == Cure.DROP


def test_damaged_neighbours_are_one_line(tmp_path: Path) -> None:
    image = make_image(tmp_path / "ssd", ssd=70000 * 16 + 30000, block=8, assoc=4096)
    assert image.geometry.slots > 1 << 17
    image.damage(8192 + 16 * 100, bytes(16 * 100_000))
    found = _check(image)
    assert [one.slots for one in found.damage] == [(100, 100_099)]


@pytest.mark.parametrize(
    ("state", "cause", "option"),
    [
        (CLEAN, "beyond the origin, clean", Cure.REPAIR),
        (DIRTY, "beyond the origin, dirty", Cure.DROP),
    ],
)
def test_a_block_beyond_the_origin_is_impossible(
    image: Image, state: int, cause: str, option: Cure
) -> None:
    image.put(0, state, image.geometry.blocks)
    if state == DIRTY:
        # It was counted.
        image.damage(4096, replace(image.newest, dirty=41).pack())
    damage = _one(_check(image))
    assert cause in damage.cause
    assert damage.option == option
    assert not _repair(image, drop=True).damage
    assert image.say()[0] == (FREE, 0)


def test_a_block_of_another_set_is_impossible(image: Image) -> None:
    image.put(0, CLEAN, 64)
    damage = _one(_check(image))
    assert "a block of another set, clean" in damage.cause
    assert not _repair(image).damage


def test_a_state_that_means_nothing_is_not_guessed_at(image: Image) -> None:
    slot = _slots(image, DIRTY)[0]
    image.put(slot, 5, image.slots[slot][1])
    damage = _one(_repair(image))
    assert (damage.where, damage.option) == (f"slot {slot}", Cure.DROP)
    assert "state" in damage.cause


def test_a_count_that_the_records_do_not_bear_out_is_named(image: Image) -> None:
    slot = _slots(image, DIRTY)[0]
    image.put(slot, FREE, 0)
    damage = _one(_check(image))
    assert damage.cause == "it counts 40 dirty blocks, the records 39"
    found = _repair(image)
    assert not found.damage
    assert (found.state, found.dirty) == ("clean", 39)


# -- one block in two slots --


def _twin(image: Image, slot: int) -> int:
    """A free slot of the set."""
    assoc = image.geometry.assoc
    home = slot // assoc
    return next(s for s in range(home * assoc, slot) if image.slots[s][0] == FREE)


@pytest.mark.parametrize("commit", [6, 7])
def test_of_a_clean_and_a_dirty_one_the_dirty_one_stays(image: Image, commit: int) -> None:
    dirty = _slots(image, DIRTY)[0]
    twin = _twin(image, dirty)
    image.put(twin, CLEAN, image.slots[dirty][1], commit)
    damage = _one(_check(image))
    assert damage.where == f"slot {twin}"
    assert f"as slot {dirty} does" in damage.cause
    assert not _repair(image).damage
    assert image.say()[dirty] == image.slots[dirty]
    assert image.say()[twin] == (FREE, 0)


def test_a_dirty_one_is_outdated_if_a_later_commit_found_its_block_clean(image: Image) -> None:
    clean = _slots(image, CLEAN)[0]
    twin = _twin(image, clean)
    image.put(twin, DIRTY, image.slots[clean][1], 6)
    found = _check(image)
    assert f"slot {twin}" in [one.where for one in found.damage]
    assert not _repair(image).damage
    assert image.say()[twin] == (FREE, 0)


@pytest.mark.parametrize("clean", [False, True])
def test_of_two_dirty_ones_neither_goes_unless_told(tmp_path: Path, clean: bool) -> None:
    image = make_image(tmp_path / "ssd", clean=clean)
    dirty = _slots(image, DIRTY)[0]
    twin = _twin(image, dirty)
    image.put(twin, DIRTY, image.slots[dirty][1], 6)
    damage = [one for one in _repair(image).damage if one.slots]
    assert [(one.where, one.option) for one in damage] == [(f"slot {twin}", Cure.DROP)]
    assert f"as slot {dirty} does" in damage[0].cause
    assert image.say()[dirty] == image.say()[twin] == image.slots[dirty]
    assert not _repair(image, drop=True).damage
    assert image.say()[dirty] == image.slots[dirty]
    assert image.say()[twin] == (FREE, 0)


def test_of_two_dirty_ones_with_the_same_data_one_goes(tmp_path: Path) -> None:
    image = make_image(tmp_path / "ssd", clean=False)
    dirty = _slots(image, DIRTY)[0]
    twin = _twin(image, dirty)
    image.put(twin, DIRTY, image.slots[dirty][1], 6)
    at = image.geometry.at(dirty)
    image.damage(image.geometry.at(twin), image.path.read_bytes()[at : at + 4096])
    assert _one(_check(image)).option == Cure.REPAIR
    assert not _repair(image).damage
    assert image.say().count(image.slots[dirty]) == 1


def test_clean_ones_that_do_not_count_are_no_damage(tmp_path: Path) -> None:
    """After a crash an old clean record may stand beside the dirty one of the same block."""
    image = make_image(tmp_path / "ssd", clean=False)
    dirty = _slots(image, DIRTY)[0]
    image.put(_twin(image, dirty), CLEAN, image.slots[dirty][1], 6)
    assert not _check(image).damage


# -- without any superblock --


def _without(image: Image, fill: bytes) -> None:
    for at in image.copies:
        image.damage(at, fill * 4096)


def test_without_any_superblock_nothing_is_claimed_or_written(image: Image) -> None:
    for at in image.copies:
        image.flip(at + 100)
    before = image.path.read_bytes()
    damage = _one(_repair(image, drop=True))
    assert (damage.where, damage.option) == ("superblock, all three copies", Cure.NONE)
    assert "only a superblock has the origin" in damage.cure
    assert image.path.read_bytes() == before


def test_a_disk_without_a_cache_is_not_reported_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / "ssd"
    for content in (bytes(1 << 20), b"\x5a" * 100_000):
        path.write_bytes(content)
        with (
            open_ssd(str(path), write=False) as ssd,
            pytest.raises(UserError, match="holds no cache"),
        ):
            examine(ssd)


def test_a_deleted_cache_is_no_cache(tmp_path: Path) -> None:
    image = make_image(tmp_path / "ssd", dirty=0)
    _without(image, b"\0")
    with pytest.raises(UserError, match="holds no cache"):
        _check(image)


# -- slots that are not used, and records elsewhere --


def _moved(tmp_path: Path, *, clean: bool = False) -> tuple[Image, int]:
    """An SSD whose second block of records is in the place of the data of a free slot."""
    image = make_image(tmp_path / "ssd", clean=clean)
    slot = _slots(image, FREE)[0]
    place = image.geometry.at(slot) // 4096
    data = image.path.read_bytes()
    image.damage(place * 4096, data[8192 + 4096 : 8192 + 8192])
    image.damage(8192 + 4096, b"\xee" * 4096)
    for copy, at in enumerate(image.copies):
        old = layout.parse_super(data[at : at + 4096], copy)
        image.damage(at, replace(old, moved=((1, place),)).pack())
    return image, slot


@pytest.mark.parametrize("clean", [False, True])
def test_records_are_read_and_mended_where_they_are(tmp_path: Path, clean: bool) -> None:
    image, slot = _moved(tmp_path, clean=clean)
    found = _check(image)
    assert not found.damage
    assert (found.dirty, found.clean, found.retired, found.moved) == (40, 30, 1, 1)
    # Whatever the record of the slot says that is there.
    image.put(slot, DIRTY, image.slots[_slots(image, DIRTY)[0]][1])
    assert not _check(image).damage
    place = image.geometry.at(slot)
    image.flip(place + 16 * 3)
    damage = _one(_check(image))
    assert damage.where == f"slot {256 + 3}"
    own = image.path.read_bytes()[8192 + 4096 : 8192 + 8192]
    assert not _repair(image, drop=True).damage
    assert image.path.read_bytes()[8192 + 4096 : 8192 + 8192] == own
    # All copies still say where they are.
    image.damage(0, bytes(8192))
    assert not _repair(image).damage
    assert _check(image).moved == 1


def test_retired_slots_whose_places_work_again_are_revived(image: Image) -> None:
    free = _slots(image, FREE)[:3]
    for slot in free:
        image.put(slot, RETIRED, 0)
    found = _check(image)
    assert not found.damage
    assert found.retired == 3

    class Bad(Ssd):
        """Of three places one cannot be written, one reads as something else."""

        def write(self, at: int, page: bytes) -> None:
            if at == image.geometry.at(free[0]):
                raise RunError("cannot write")
            super().write(at, page)

        def read(self, at: int, count: int) -> bytes | None:
            found = super().read(at, count)
            return bytes(count) if at == image.geometry.at(free[1]) else found

    before = image.path.read_bytes()
    with image.path.open("r+b") as file:
        found = repair(Bad("ssd", file.fileno(), image.geometry.ssd * 512), drop=False)
    assert (found.revived, found.retired) == (1, 2)
    assert [image.say()[slot] for slot in free] == [(RETIRED, 0), (RETIRED, 0), (FREE, 0)]
    after = image.path.read_bytes()
    for slot, (state, _) in enumerate(image.slots):
        if state in (CLEAN, DIRTY):
            at = image.geometry.at(slot)
            assert after[at : at + 4096] == before[at : at + 4096]
    found = _repair(image)
    assert (found.revived, found.retired, found.dirty, found.state) == (2, 0, 40, "clean")


def test_a_slot_under_a_moved_block_of_records_is_never_tried(tmp_path: Path) -> None:
    image, slot = _moved(tmp_path)
    image.put(slot, RETIRED, 0)
    at = image.geometry.at(slot)
    before = image.path.read_bytes()[at : at + 4096]
    found = _repair(image)
    assert (found.revived, found.retired, found.dirty) == (0, 1, 40)
    assert image.path.read_bytes()[at : at + 4096] == before


# -- another origin --


def test_an_origin_is_forgotten_only_by_its_name(image: Image) -> None:
    before = image.path.read_bytes()
    with (
        open_ssd(str(image.path), write=True) as ssd,
        pytest.raises(UserError, match="its origin is id:slow, not id:fast"),
    ):
        repair(ssd, drop=False, was="id:fast")
    assert image.path.read_bytes() == before
    with open_ssd(str(image.path), write=True) as ssd:
        found = repair(ssd, drop=False, was="id:slow")
    # Clean blocks belong to that disk, and are not believed for another one.
    assert (found.identity, found.state, found.dirty) == ("", "in use", 40)
    assert image.say() == image.slots
    for copy, at in enumerate(image.copies):
        page = image.path.read_bytes()[at : at + 4096]
        assert layout.parse_super(page, copy).identity == ""


# -- no repair loses anything, whatever the damage, and wherever it is cut short --


damages = st.lists(
    st.tuples(
        st.one_of(
            st.integers(0, 8191),
            st.integers(8192, 8192 + 16 * 960 - 1),
            st.integers(8192 * 512 - 4096, 8192 * 512 - 601),
        ),
        st.integers(1, 600),
        st.sampled_from([b"\0", b"\xff", b"x", None]),
    ),
    min_size=1,
    max_size=4,
)


class _CutError(Exception):
    pass


def _hurt(image: Image, where: list[tuple[int, int, bytes | None]]) -> None:
    for at, count, fill in where:
        if fill is None:
            image.flip(at)
        else:
            image.damage(at, fill * count)


def _kept(image: Image, before: list[tuple[int, int]]) -> None:
    for slot, (was, now) in enumerate(zip(before, image.say(), strict=True)):
        if was[0] == DIRTY:
            assert now == was, f"slot {slot}"


@settings(max_examples=at_most(60))
@given(damages, st.booleans(), st.booleans(), st.integers(0, 4))
def test_no_repair_loses_a_readable_dirty_block_and_a_second_one_finds_nothing_to_do(
    tmp_path_factory: pytest.TempPathFactory,
    where: list[tuple[int, int, bytes | None]],
    clean: bool,
    drop: bool,
    cut: int,
) -> None:
    image = make_image(tmp_path_factory.getbasetemp() / "hurt", clean=clean)
    _hurt(image, where)
    whole = image.say()
    left = [cut]

    class Cut(Ssd):
        def write(self, at: int, page: bytes) -> None:
            if not left[0]:
                raise _CutError
            left[0] -= 1
            super().write(at, page)

    with image.path.open("r+b") as file:
        ssd = Cut(str(image.path), file.fileno(), image.geometry.ssd * 512)
        try:
            found = repair(ssd, drop=drop)
        except _CutError:
            found = None
        except UserError:
            return
        _kept(image, whole)
        left[0] = 1000
        again = repair(ssd, drop=drop)
        _kept(image, whole)
        if found is not None:
            assert again.damage == found.damage
            assert not again.mended
        assert not {one.option for one in again.damage} & {Cure.REPAIR}
        if drop:
            assert all(one.option == Cure.NONE for one in again.damage)
        third = examine(ssd).report
        assert third.damage == again.damage


# -- the command --


def _run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *words])
    said = result.output
    if isinstance(result.exception, UserError | RunError):
        return result.exception.exit_status, f"{said}{result.exception}"
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, said


def test_the_command_reports_the_damage_the_repair_and_its_status(image: Image) -> None:
    path = str(image.path)
    status, said = _run(path)
    assert status == 0
    assert "15 sets of 64 blocks of 4096 bytes" in said
    assert f"{path}: sound" in said
    slot = _slots(image, DIRTY)[0]
    image.spoil(slot)
    image.flip(100)
    status, said = _run(path)
    assert status == 1
    assert f"2 damages; isoblk cache check --repair {path}" in said
    status, said = _run("--repair", path)
    assert status == 1
    assert "repaired: superblock copy 0" in said
    assert f"slot {slot}: the record's checksum is wrong; it may be dirty" in said
    assert f"isoblk cache check --repair --drop-damaged {path}" in said
    status, said = _run("--repair", "--drop-damaged", path)
    assert status == 0
    assert "sound" in said


def test_the_command_prints_json(image: Image) -> None:
    image.flip(100)
    status, said = _run("--json", str(image.path))
    assert status == 1
    found = json.loads(said.splitlines()[0])
    assert (found["dirty"], found["state"]) == (40, "in use")
    assert found["damage"][0]["where"] == "superblock copy 0"
    assert found["damage"][0]["option"] == "--repair"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--drop-damaged"], "needs --repair"),
        (["--was", "id:slow"], "needs --repair"),
        (["--repair", "--was", "id:other"], "its origin is id:slow, not id:other"),
    ],
)
def test_a_wrong_option_is_the_users_mistake(image: Image, words: list[str], said: str) -> None:
    status, text = _run(*words, str(image.path))
    assert status == 2
    assert said in text


def test_an_ssd_that_is_not_there_or_none_is_the_users_mistake(tmp_path: Path) -> None:
    make: dict[str, Callable[[Path], object]] = {
        "none": lambda path: None,
        "dir": Path.mkdir,
        "empty": Path.touch,
    }
    for name, act in make.items():
        act(tmp_path / name)
        assert _run(str(tmp_path / name))[0] == 2


def test_half_a_write_is_reported(image: Image) -> None:
    image.flip(100)
    with (
        image.path.open("rb") as file,
        pytest.raises(RunError, match="cannot write"),
    ):
        repair(Ssd("ssd", file.fileno(), image.geometry.ssd * 512), drop=False)


# -- an SSD reported as sound is accepted by the kernel --


def _kernel_takes(data: bytes, geometry: layout.Geometry) -> bool:
    """The verdict of setcache-super.c and setcache-records.c on an SSD of that geometry."""
    copies = []
    for number, at in enumerate((0, 4096, len(data) - 4096)):
        page = data[at : at + 4096]
        summed = layout.crc32c(page[:20] + bytes(4) + page[24:])
        turn = number == 2 or int.from_bytes(page[24:32], "little") % 2 == number
        copies.append(
            page
            if page[:16] == layout.MAGIC
            and summed == int.from_bytes(page[20:24], "little")
            and turn
            else None
        )
    valid = [one for one in copies if one]
    if not valid:
        return False
    turns = [one for one in copies[:2] if one]
    chosen = max(turns or valid, key=lambda one: one[24:32][::-1])
    sizes = struct.pack(
        "<IIQQQQ", geometry.block, geometry.assoc, geometry.sets, geometry.origin, geometry.ssd,
        geometry.data,
    )  # fmt: skip
    if chosen[16:20] != struct.pack("<I", 2) or chosen[48:88] != sizes:
        return False
    if any(one[16:20] + one[32:88] != chosen[16:20] + chosen[32:88] for one in valid):
        return False
    return _records_are_taken(
        data, max(valid, key=lambda one: one[24:32][::-1]), geometry, chosen, both=len(turns) == 2
    )


def _records_are_taken(
    data: bytes, newest: bytes, geometry: layout.Geometry, chosen: bytes, *, both: bool
) -> bool:
    (count,) = struct.unpack_from("<I", newest, 272)
    if count > 450:
        return False
    moved = dict(struct.iter_unpack("<II", newest[276 : 276 + 8 * count]))
    seed = layout.crc32c(newest[32:48])
    # One copy alone may be older than another one that said in use.
    clean = both and chosen[88:92] == struct.pack("<I", 1)
    held: set[int] = set()
    covered = {(place * 8 - geometry.data) // geometry.block for place in moved.values()}
    for slot in range(geometry.slots):
        page = moved.get(slot // 256, 2 + slot // 256)
        raw = data[page * 4096 + slot % 256 * 16 :][:16]
        where, _, total = struct.unpack("<QII", raw)
        if layout.crc32c(struct.pack("<Q", slot) + raw[:12], seed) != total:
            return False
        state, block = where >> 60, where & (1 << 60) - 1
        if state > RETIRED:
            return False
        if state not in (CLEAN, DIRTY) or slot in covered:
            continue
        if block >= geometry.blocks or block // 64 % geometry.sets != slot // 64:
            return False
        if state == DIRTY or clean:
            if block in held:
                return False
            held.add(block)
    return True


changes = st.fixed_dictionaries(
    {},
    optional={
        "sequence": st.integers(0, 20),
        "uuid": st.sampled_from([bytes(16), bytes(range(16))]),
        "clean": st.booleans(),
        "dirty": st.integers(0, 60),
        "commits": st.integers(0, 99),
        "identity": st.sampled_from(["", "id:other"]),
        "origin": st.sampled_from([ORIGIN, ORIGIN + 64, ORIGIN - 64]),
        "block": st.sampled_from([8, 16]),
        "moved": st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1030)), max_size=2),
    },
)


@settings(max_examples=at_most(40))
@given(
    st.lists(st.tuples(st.integers(0, 2), changes), max_size=3),
    st.lists(st.tuples(st.integers(0, 959), st.integers(0, 4), st.integers(0, 5000)), max_size=3),
    damages.filter(lambda one: len(one) < 3),
    st.booleans(),
)
@example([(2, {"origin": ORIGIN + 64})], [], [(0, 1, None)], False)
@example([(0, {"dirty": 41}), (1, {"dirty": 41})], [(959, 4, 0)], [(0, 1, None)], False)
def test_an_ssd_reported_as_sound_is_accepted_by_the_kernel(
    tmp_path_factory: pytest.TempPathFactory,
    copies: list[tuple[int, dict[str, Any]]],
    records: list[tuple[int, int, int]],
    hurt: list[tuple[int, int, bytes | None]],
    hurts: bool,
) -> None:
    image = make_image(tmp_path_factory.getbasetemp() / "sound")
    for number, change in copies:
        page = image.path.read_bytes()[image.copies[number] :][:4096]
        sizes = (change.get("block", 8), 64, change.get("origin", ORIGIN), image.geometry.ssd)
        others = {key: one for key, one in change.items() if key not in ("block", "origin")}
        try:
            was = layout.parse_super(page, number)
            whole = replace(was, geometry=layout.fit(*sizes) or was.geometry, **others)
        except layout.FormatError:
            continue
        image.damage(image.copies[number], whole.pack())
    for slot, state, block in records:
        image.put(slot, state, block)
    if hurts:
        _hurt(image, hurt)
    for drop in (None, False, True):
        found = _check(image) if drop is None else _repair(image, drop=drop)
        if not found.damage:
            assert found.origin is not None and found.block is not None
            own = layout.fit(found.block // 512, 64, found.origin // 512, image.geometry.ssd)
            assert own and _kernel_takes(image.path.read_bytes(), own)

# SPDX-License-Identifier: GPL-2.0-only
"""Check an SSD of dm-setcache, and repair damage.

A repair never guesses, and frees no slot that may have the newest data of a block, unless it is
told to. It writes records first, then the superblock, each durably before the next. An interrupted
repair therefore leaves each damage either repaired or unchanged.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from isoblk.caches.base import SECTOR
from isoblk.caches.ondisk import format as layout
from isoblk.caches.ondisk.format import (
    CLEAN,
    COPIES,
    DIRTY,
    RETIRED,
    THIRD,
    TURNS,
    FormatError,
    Geometry,
    Superblock,
    VersionError,
)
from isoblk.caches.ondisk.ssd import Piece, Ssd
from isoblk.errors import RunError, UserError

Mask = NDArray[np.bool_]

SMALLEST: Final = layout.RECORDS_AT + 2 * layout.PAGE
"""Least size of a possible SSD, bytes."""

# Sequence numbers that a repair may need.
_AHEAD = 8


class Cure(StrEnum):
    """Options of `isoblk cache check` that repair a damage."""

    REPAIR = "--repair"
    DROP = "--repair --drop-damaged"
    NONE = ""


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """One damage.

    Attributes:
        where: its place, as text.
        cause: its description.
        cure: its repair.
        option: the options that enable the repair; empty if none is possible.
        slots: the first and the last slot, if it concerns slots.
    """

    where: str
    cause: str
    cure: str
    option: Cure
    slots: tuple[int, int] | None = None

    def __str__(self) -> str:
        mended = f"{self.option}: {self.cure}" if self.option else self.cure
        return f"{self.where}: {self.cause}; {mended}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an SSD. Sizes in bytes; None if no superblock has them.

    Attributes:
        state: "clean", or "in use": then only dirty blocks count.
        identity: the kernel's, of the origin; "" without one.
        clean, dirty: number of blocks by records with valid checksums.
        retired: slots that are not used, because their places are bad.
        moved: blocks of records that are not in their default places, because these are bad.
        commits: the last known commit.
        damage: present damage.
        mended: repaired damage.
        revived: retired slots whose places were good in a repair.
    """

    ssd: str
    uuid: str | None = None
    state: str | None = None
    block: int | None = None
    assoc: int | None = None
    sets: int | None = None
    slots: int | None = None
    origin: int | None = None
    identity: str | None = None
    clean: int | None = None
    dirty: int | None = None
    retired: int | None = None
    moved: int | None = None
    commits: int | None = None
    damage: list[Damage] = []
    mended: list[Damage] = []
    revived: int = 0


@dataclass(frozen=True)
class Fault:
    """Slots to free, from `start` up to `stop`. dirty: how many are recorded as dirty."""

    start: int
    stop: int
    cause: str
    cure: Cure
    dirty: int = 0
    why: str = ""


@dataclass(frozen=True)
class Examined:
    """An SSD before a repair.

    Attributes:
        report: for display.
        superblock: the valid one after `copies` are written; None: no repair is possible.
        copies: numbers of copies of the superblock, and their new contents, in order.
        faults: slots to free.
        dirty: number of dirty records.
        retired: slots with retired records.
    """

    report: Report
    superblock: Superblock | None = None
    copies: Sequence[tuple[int, Superblock]] = ()
    faults: Sequence[Fault] = ()
    dirty: int = 0
    retired: Sequence[int] = ()


def examine(ssd: Ssd) -> Examined:
    """Examine an SSD.

    Raises:
        UserError: it has no cache.
    """
    if ssd.size < SMALLEST:
        raise UserError(f"is too small for a cache: {ssd.size} bytes", where=ssd.path)
    found = [_copy(ssd, number) for number in range(COPIES)]
    others = [
        _of_another_version(ssd.path, number, one)
        for number, one in enumerate(found)
        if isinstance(one, VersionError)
    ]
    if others:
        return Examined(Report(ssd=ssd.path, damage=others))
    good = {number: one for number, one in enumerate(found) if isinstance(one, Superblock)}
    wrong = {number: str(one) for number, one in enumerate(found) if number not in good}
    if not good:
        return _without_superblock(ssd, wrong)
    own = _own(ssd, good)
    wrong |= {number: _foreign(own, good[number]) for number in good if number not in own}
    if not own:
        damage = Damage(
            where="superblock",
            cause="its copies are of different caches, or sizes, and the records match none",
            option=Cure.NONE,
            cure="nothing is done: which of them is right? If nothing on it matters:"
            f" blkdiscard --zeroout {ssd.path}",
        )  # fmt: skip
        return Examined(Report(ssd=ssd.path, damage=[damage]))
    superblock = _holding(own)
    if superblock.sequence >= (1 << 64) - _AHEAD:
        last = Damage(
            where="superblock", cause=f"its sequence number is {superblock.sequence}",
            option=Cure.NONE, cure="nothing is done: none comes after it",
        )  # fmt: skip
        return Examined(Report(ssd=ssd.path, damage=[last]))
    if superblock.geometry.ssd != ssd.sectors:
        # The third copy is elsewhere.
        wrong.pop(THIRD, None)
    damages = [
        Damage(
            where=f"superblock copy {number}", cause=cause, option=Cure.REPAIR,
            cure=f"restore it from copy {min(own)}" + ", as in use" * (number != THIRD),
        )
        for number, cause in sorted(wrong.items())
    ]  # fmt: skip
    return _look(ssd, superblock, _restored(superblock, wrong), damages)


def newest(ssd: Ssd) -> Superblock | None:
    """Return the newest valid superblock; None without one."""
    found = [_copy(ssd, number) for number in range(COPIES)]
    whole = [one for one in found if isinstance(one, Superblock)]
    return max(whole, key=lambda one: one.sequence, default=None)


def identity(ssd: Ssd) -> str:
    """Return the origin's identity in the newest superblock; "" without one."""
    found = newest(ssd)
    return found.identity if found else ""


def repair(ssd: Ssd, *, drop: bool, was: str | None = None) -> Report:
    """Repair all that is possible, test retired slots, and examine again.

    Args:
        ssd: the SSD.
        drop: see mend().
        was: identity of its origin to remove; the next origin is then adopted.

    Raises:
        UserError: see examine(); or the origin has another identity.
        RunError: it cannot be written.
    """
    before = examine(ssd)
    if was is not None:
        _refuse_other_origin(before, was)
    if before.report.damage:
        mend(ssd, before, drop=drop)
    now = examine(ssd)
    revived = _revive(ssd, now)
    if was is not None:
        _forget_origin(ssd, now)
    after = examine(ssd).report
    left = {(one.where, one.cause) for one in after.damage}
    mended = [one for one in before.report.damage if (one.where, one.cause) not in left]
    return msgspec.structs.replace(after, mended=mended, revived=revived)


def mend(ssd: Ssd, examined: Examined, *, drop: bool) -> None:
    """Repair all that is possible.

    Args:
        ssd: the SSD.
        examined: result of examine().
        drop: also free slots that may have been dirty.

    Raises:
        RunError: it cannot be written.
    """
    superblock = examined.superblock
    if superblock is None:
        return
    freed = [fault for fault in examined.faults if fault.cure == Cure.REPAIR or drop]
    whole = _free(ssd, superblock, freed)
    copies = list(examined.copies)
    dirty = examined.dirty - sum(one.dirty for one in freed)
    left = len(freed) < len(examined.faults)
    if superblock.clean and whole and not left and dirty != superblock.dirty:
        counted = replace(superblock, sequence=superblock.sequence + 1, dirty=dirty)
        copies.append((counted.copy, counted))
    _write_copies(ssd, copies)


def _write_copies(ssd: Ssd, copies: Sequence[tuple[int, Superblock]]) -> None:
    for number, one in copies:
        ssd.write(layout.copy_at(number, ssd.size), one.pack())
        ssd.sync()


def describe(report: Report) -> Sequence[tuple[str, str]]:
    """Return names and values of a report for a table, without the damage."""
    if report.block is None or report.origin is None or report.slots is None:
        return []
    size = report.slots * report.block / 2**20
    means = "stopped in order" if report.state == "clean" else "or cut short: clean blocks are lost"
    rows = [
        ("UUID", str(UUID(report.uuid))),
        ("state", f"{report.state}, {means}"),
        (
            "size",
            f"{size:.0f} MiB: {report.sets} sets of {report.assoc} blocks of {report.block} bytes",
        ),
        ("origin", f"{report.identity or 'without an identity'}, {report.origin} bytes"),
    ]
    if report.clean is not None:
        rows.append(("recorded", f"{report.dirty} dirty blocks, {report.clean} clean ones"))
    if report.retired:
        rows.append(("retired", f"{report.retired} slots, whose places are bad"))
    if report.moved:
        rows.append(("moved", f"{report.moved} blocks of records, whose places are bad"))
    rows.append(("commits", str(report.commits)))
    return rows


# -- superblocks --


def _copy(ssd: Ssd, number: int) -> Superblock | FormatError:
    page = ssd.read(layout.copy_at(number, ssd.size), layout.PAGE)
    if page is None:
        return FormatError("it cannot be read")
    try:
        return layout.parse_super(page, number)
    except FormatError as error:
        return error


def _of_another_version(path: str, number: int, error: VersionError) -> Damage:
    older = error.version < layout.VERSION
    return Damage(
        where=f"superblock copy {number}",
        cause=f"{error}" + ", an older one, that no release had" * older,
        option=Cure.NONE,
        cure="nothing is done; "
        + (
            f"if nothing on it matters: blkdiscard --zeroout {path}"
            if older
            else "use the isoblk that made it"
        ),
    )


def _own(ssd: Ssd, good: Mapping[int, Superblock]) -> dict[int, Superblock]:
    """Return the copies of one cache with equal sizes, which the kernel requires. Of several such
    groups, that with the most valid records, then with the most copies; empty if they tie or no
    record is valid."""
    groups: dict[tuple[bytes, Geometry], dict[int, Superblock]] = {}
    for number, one in good.items():
        groups.setdefault((one.uuid, one.geometry), {})[number] = one
    if len(groups) == 1:
        return dict(good)
    votes = [(_whole(ssd, next(iter(one.values()))), len(one)) for one in groups.values()]
    most = max(votes)
    best = [one for one, vote in zip(groups.values(), votes, strict=True) if vote == most]
    return best[0] if most[0] and len(best) == 1 else {}


def _foreign(own: Mapping[int, Superblock], other: Superblock) -> str:
    """Return why a copy is of another cache."""
    if any(one.uuid == other.uuid for one in own.values()):
        return "it disagrees with the others about sizes"
    return "it is another cache's"


def _whole(ssd: Ssd, superblock: Superblock) -> int:
    """Return how many of the first records are of its cache."""
    piece = next(ssd.pieces(superblock))
    right = piece.records["sum"] == layout.sums(piece.records, piece.first, superblock.seed)
    return int((piece.readable & right).sum())


def _holding(own: Mapping[int, Superblock]) -> Superblock:
    """Return the superblock that the kernel derives from valid copies of one cache. The newer copy
    is known to be the newest only if both alternating copies are valid."""
    turns = [own[number] for number in range(TURNS) if number in own]
    chosen = max(turns or own.values(), key=lambda one: one.sequence)
    newest = max(own.values(), key=lambda one: one.sequence)
    if len(turns) < TURNS:
        chosen = chosen.in_use(chosen.sequence)
    return replace(
        chosen,
        sequence=newest.sequence,
        identity=newest.identity,
        moved=newest.moved,
        commits=max(chosen.commits, newest.commits),
    )


def _restored(superblock: Superblock, wrong: Collection[int]) -> list[tuple[int, Superblock]]:
    """Return new contents of invalid copies. superblock: the valid one."""
    made = []
    sequence = superblock.sequence
    for number in sorted(wrong):
        if number != THIRD:
            sequence += 1 + (sequence + 1 + number) % TURNS
        made.append((number, superblock.in_use(sequence)))
    return made


def _refuse_other_origin(examined: Examined, was: str) -> None:
    report = examined.report
    if report.identity != was:
        raise UserError(
            f"its origin is {report.identity or 'without an identity'}, not {was}",
            where=report.ssd,
            next="name the identity that isoblk cache check shows",
        )


def _forget_origin(ssd: Ssd, examined: Examined) -> None:
    superblock = examined.superblock
    if superblock is not None:
        _write_copies(ssd, _restored(replace(superblock, identity=""), range(COPIES)))


def _without_superblock(ssd: Ssd, wrong: Mapping[int, str]) -> Examined:
    """Return the result without a valid copy: records alone determine neither their place nor their
    cache."""
    if all(cause in layout.NOT_OURS for cause in wrong.values()):
        raise UserError(
            "holds no cache of dm-setcache",
            where=ssd.path,
            next="isoblk cache create makes one"
            + f", with --wipe {ssd.path} if its data may be lost"
            * (set(wrong.values()) != {layout.NOT_OURS[0]}),
        )
    causes = ", ".join(f"copy {number}: {cause}" for number, cause in wrong.items())
    damage = Damage(
        where="superblock, all three copies", cause=causes, option=Cure.NONE,
        cure="not repairable: only a superblock has the origin and the places of blocks; if they"
        f" may be lost: blkdiscard --zeroout {ssd.path}",
    )  # fmt: skip
    return Examined(Report(ssd=ssd.path, damage=[damage]))


# -- records --


def _look(
    ssd: Ssd,
    superblock: Superblock,
    copies: Sequence[tuple[int, Superblock]],
    damage: list[Damage],
) -> Examined:
    """Examine everything except the superblocks. copies: those to write; damage: of the
    superblocks."""
    geometry = superblock.geometry
    report = Report(
        ssd=ssd.path,
        uuid=superblock.uuid.hex(),
        state="clean" if superblock.clean else "in use",
        block=geometry.block * SECTOR,
        assoc=geometry.assoc,
        sets=geometry.sets,
        slots=geometry.slots,
        origin=geometry.origin * SECTOR,
        identity=superblock.identity,
        moved=len(superblock.moved),
        commits=superblock.commits,
        damage=damage,
    )
    if geometry.ssd != ssd.sectors:
        size = Damage(
            where="SSD", option=Cure.NONE,
            cause=f"the cache was made on {geometry.ssd} sectors, now it has {ssd.sectors}",
            cure="give it its former size; nothing else was looked at",
        )  # fmt: skip
        return Examined(msgspec.structs.replace(report, damage=[*damage, size]))
    seen = _Seen()
    for piece in ssd.pieces(superblock):
        _look_at(ssd, superblock, piece, seen)
    faults, more = _judge(superblock, seen)
    return Examined(
        report=msgspec.structs.replace(
            report,
            clean=seen.clean,
            dirty=seen.dirty,
            retired=len(seen.retired) + len(_covered(superblock)),
            commits=max(superblock.commits, seen.commits),
            damage=[*damage, *more, *(_describe(fault, superblock) for fault in faults)],
        ),
        superblock=replace(superblock, commits=max(superblock.commits, seen.commits)),
        copies=copies,
        faults=faults,
        dirty=seen.dirty,
        retired=seen.retired,
    )


def _covered(superblock: Superblock) -> list[int]:
    """Return the slots without data, because blocks of records are in their place."""
    under = superblock.geometry.under
    return sorted({slot for _, place in superblock.moved for slot in under(place)})


class _Seen:
    """Results of the records so far. whole: number of valid ones; unclear: slots whose state is
    unknown."""

    def __init__(self) -> None:
        self.clean = self.dirty = self.commits = self.whole = 0
        self.retired: list[int] = []
        self.unclear: list[Fault] = []
        self.faults: list[Fault] = []


def _look_at(ssd: Ssd, superblock: Superblock, piece: Piece, seen: _Seen) -> None:
    geometry, found = superblock.geometry, piece.records
    used = ~np.isin(piece.slots, np.array(_covered(superblock), np.uint64))
    readable = piece.readable & used
    right = piece.readable & (found["sum"] == layout.sums(found, piece.first, superblock.seed))
    whole = right & used
    state, block = layout.states(found), layout.blocks(found)
    clean, dirty = whole & (state == CLEAN), whole & (state == DIRTY)
    far = block >= geometry.blocks
    stray = ~far & (geometry.set_of(block) != piece.slots // np.uint64(geometry.assoc))
    seen.clean += int(clean.sum())
    seen.dirty += int(dirty.sum())
    seen.whole += int(whole.sum())
    seen.retired += piece.slots[whole & (state == RETIRED)].tolist()
    if whole.any():
        seen.commits = max(seen.commits, int(found["commit"][whole].max()))
    for mask, cause in (
        (used & ~readable, "the record cannot be read"),
        (readable & ~whole, "the record's checksum is wrong"),
        (whole & (state > RETIRED), "the record has a state that means nothing"),
    ):
        seen.unclear = _runs(seen.unclear, mask, piece.first, Fault(0, 1, cause, Cure.DROP))
    for mask, cause in (
        (far, "the record names a block beyond the origin"),
        (stray, "the record names a block of another set"),
    ):
        for kind, cure in ((clean, Cure.REPAIR), (dirty, Cure.DROP)):
            mark = int(kind is dirty)
            fault = Fault(0, 1, f"{cause}, {'dirty' if mark else 'clean'}", cure, mark)
            seen.faults = _runs(seen.faults, mask & kind, piece.first, fault)
    # Slots below moved records have no data, but the kernel still reads their records.
    nothing = Fault(0, 1, "the record is damaged, of a slot that holds nothing", Cure.REPAIR)
    seen.faults = _runs(seen.faults, ~used & ~right, piece.first, nothing)
    # After a crash clean records are ignored, and may be outdated.
    counts = (dirty | clean if superblock.clean else dirty) & ~far & ~stray
    seen.faults += _twice(ssd, superblock, piece, counts)


def _runs(before: list[Fault], mask: Mask, first: int, like: Fault) -> list[Fault]:
    """Return the faults with those of a mask from slot `first` on, neighbours joined. like: of a
    single slot."""
    at = np.flatnonzero(mask)
    if not len(at):
        return before
    ends = np.flatnonzero(np.diff(at) > 1)
    starts = (at[np.concatenate(([0], ends + 1))] + first).tolist()
    stops = (at[np.concatenate((ends, [len(at) - 1]))] + first + 1).tolist()
    found = list(before)
    for one in before:
        if one.stop == starts[0] == first and one.cause == like.cause:
            found.remove(one)
            starts[0] = one.start
    for start, stop in zip(starts, stops, strict=True):
        found.append(replace(like, start=start, stop=stop, dirty=(stop - start) * like.dirty))
    return found


def _twice(ssd: Ssd, superblock: Superblock, piece: Piece, counts: Mask) -> Iterator[Fault]:
    """Yield slots with a block that another slot of the set also has. A set is in one piece."""
    at = np.flatnonzero(counts)
    blocks = layout.blocks(piece.records)[at]
    order = np.argsort(blocks, kind="stable")
    same = np.flatnonzero(np.diff(blocks[order]) == 0)
    for block in np.unique(blocks[order[same]]).tolist():
        slots = at[blocks == block].tolist()
        commits = {slot: int(piece.records["commit"][slot]) for slot in slots}
        states = {slot: int(layout.states(piece.records[slot : slot + 1])[0]) for slot in slots}
        clean = [slot for slot in slots if states[slot] == CLEAN]
        # A commit that found the block clean in one slot did not find it dirty in another.
        stale = [
            slot
            for slot in slots
            if states[slot] == DIRTY and any(_later(commits[c], commits[slot]) for c in clean)
        ]
        dirty = [slot for slot in slots if states[slot] == DIRTY and slot not in stale]
        kept = dirty[0] if dirty else None
        for slot in dirty[1:]:
            if kept is not None and _later(commits[slot], commits[kept]):
                kept = slot
        for slot in slots:
            if slot == kept:
                continue
            other = next(one for one in slots if one != slot) if kept is None else kept
            cure, why = Cure.REPAIR, ""
            if slot in dirty and not _alike(ssd, superblock, piece.first, slot, other):
                cure = Cure.DROP
                why = f"that one is of commit {commits[other]}, this of {commits[slot]}"
            elif slot in stale:
                why = "a later commit found the block clean"
            number = piece.first + slot
            yield Fault(
                number, number + 1,
                f"the record names block {block}, as slot {piece.first + other} does,"
                f" {'dirty' if states[slot] == DIRTY else 'clean'}",
                cure, int(states[slot] == DIRTY), why,
            )  # fmt: skip


def _later(one: int, other: int) -> bool:
    """Return whether a commit came after another, by 32-bit serial number arithmetic."""
    return 0 < (one - other) % (1 << 32) < 1 << 31


def _alike(ssd: Ssd, superblock: Superblock, first: int, one: int, other: int) -> bool:
    """Return whether two slots have the same data."""
    geometry = superblock.geometry
    size = geometry.block * SECTOR
    for at in range(0, size, layout.PAGE):
        count = min(layout.PAGE, size - at)
        data = [ssd.read(geometry.at(first + slot) + at, count) for slot in (one, other)]
        if data[0] is None or data[0] != data[1]:
            return False
    return True


def _judge(superblock: Superblock, seen: _Seen) -> tuple[list[Fault], list[Damage]]:
    """Decide on unclear records: a clean shutdown recorded the number of dirty ones."""
    unclear = sum(one.stop - one.start for one in seen.unclear)
    dirty = seen.dirty - sum(fault.dirty for fault in seen.faults if fault.cure == Cure.REPAIR)
    missing = superblock.dirty - dirty
    if not superblock.clean:
        faults = [replace(one, why="it may be dirty") for one in seen.unclear]
        return sorted([*faults, *seen.faults], key=lambda one: one.start), []
    cure, why = Cure.DROP, f"dirty blocks missing: {missing}"
    if missing < 0:
        why = f"dirty blocks more than were counted: {-missing}"
    # Unexpected dirty records may or may not be included in the count.
    doubtful = any(fault.dirty for fault in seen.faults if fault.cure == Cure.DROP)
    if not seen.whole:
        why = "none is of this cache"
    elif doubtful:
        why = "it may be dirty"
    elif missing == 0:
        cure, why = Cure.REPAIR, "no dirty block is missing"
    faults = [replace(one, cure=cure, why=why) for one in seen.unclear]
    damage = []
    if not 0 <= missing <= unclear:
        damage.append(
            Damage(
                where="superblock", option=Cure.REPAIR,
                cause=f"it counts {superblock.dirty} dirty blocks, the records {dirty}",
                cure="believe the records",
            )
        )  # fmt: skip
    return sorted([*faults, *seen.faults], key=lambda one: one.start), damage


def _describe(fault: Fault, superblock: Superblock) -> Damage:
    last = fault.stop - 1
    several = last > fault.start
    cure = "free them" if several else "free it"
    if fault.cure == Cure.DROP:
        geometry = superblock.geometry
        size = (fault.stop - fault.start) * geometry.block * SECTOR
        cure += f", and lose the data at byte {geometry.at(fault.start)}, {size} bytes"
    return Damage(
        where=f"slots {fault.start} to {last}" if several else f"slot {last}",
        cause=f"{fault.cause}; {fault.why}" if fault.why else fault.cause,
        cure=cure,
        option=fault.cure,
        slots=(fault.start, last),
    )


def _free(ssd: Ssd, superblock: Superblock, faults: Sequence[Fault]) -> bool:
    """Free slots durably. Returns whether all could be freed."""
    marked: dict[int, Mask] = {}
    for fault in faults:
        for page in range(fault.start // layout.PER_PAGE, (fault.stop - 1) // layout.PER_PAGE + 1):
            first = page * layout.PER_PAGE
            mask = marked.setdefault(page, np.zeros(layout.PER_PAGE, np.bool_))
            mask[max(fault.start - first, 0) : fault.stop - first] = True
    whole = True
    for page, mask in sorted(marked.items()):
        piece = ssd.page(superblock, page)
        chosen = mask[: len(piece.records)]
        if (~piece.readable & ~chosen).any():
            # An unreadable slot that must not be freed would be overwritten.
            whole = False
            continue
        nothing = np.zeros(len(chosen), np.uint64)
        free = layout.records(nothing, nothing, superblock.commits, piece.first, superblock.seed)
        data = np.where(chosen, free, piece.records).tobytes()
        ssd.write(superblock.records_at(page), data.ljust(layout.PAGE, b"\0"))
    if marked:
        ssd.sync()
    return whole


# -- retired slots --


def _revive(ssd: Ssd, examined: Examined) -> int:
    """Free the retired slots whose places can be written and read. Returns their number."""
    superblock = examined.superblock
    if superblock is None:
        return 0
    good = [slot for slot in examined.retired if _works(ssd, superblock.geometry, slot)]
    _free(ssd, superblock, [Fault(slot, slot + 1, "", Cure.REPAIR) for slot in good])
    return len(good)


def _works(ssd: Ssd, geometry: Geometry, slot: int) -> bool:
    """Return whether data written to a slot's place can be read again."""
    data = os.urandom(geometry.block * SECTOR)
    try:
        ssd.write(geometry.at(slot), data)
        ssd.sync()
    except RunError:
        return False
    return ssd.read(geometry.at(slot), len(data)) == data

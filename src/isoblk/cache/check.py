# SPDX-License-Identifier: GPL-2.0-only
"""What an SSD of dm-setcache holds, what is damaged there, and its repair.

A repair never guesses, and frees no slot that may hold the newest data of a block, unless it is
told to. It writes records first, then the superblock, each durably before the next; so one that is
cut short leaves what it has mended mended, and what it has not as it was.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from isoblk.cache import format as layout
from isoblk.cache.base import SECTOR
from isoblk.cache.format import CLEAN, COPIES, DIRTY, FormatError, Superblock, VersionError
from isoblk.cache.rebuild import Known, own_seeds, prove
from isoblk.cache.ssd import Piece, Ssd
from isoblk.errors import UserError

Mask = NDArray[np.bool_]


class Cure(StrEnum):
    """With which options `isoblk cache check` mends a damage."""

    REPAIR = "--repair"
    DROP = "--repair --drop-damaged"
    ORIGIN = "--repair --origin ORIGIN"
    GEOMETRY = "--repair --origin ORIGIN --block SIZE --assoc N"
    NONE = ""


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """One damage.

    Attributes:
        where: the place, in words.
        cause: what is wrong there.
        cure: what is done about it.
        option: if these options are given; empty if nothing can be done.
        slots: the first and the last one, if it is about slots.
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
    """What is there. Sizes in bytes; None where no superblock says it.

    Attributes:
        state: "clean", or "in use": only dirty blocks count then.
        clean, dirty: blocks that records whose checksum is right call so.
        commits: the last commit known.
        damage: what is damaged now.
        mended: what a repair has mended.
    """

    ssd: str
    uuid: str | None = None
    state: str | None = None
    block: int | None = None
    assoc: int | None = None
    sets: int | None = None
    slots: int | None = None
    origin: int | None = None
    clean: int | None = None
    dirty: int | None = None
    commits: int | None = None
    damage: list[Damage] = []
    mended: list[Damage] = []


@dataclass(frozen=True)
class Fault:
    """Slots to be freed, from `start` up to `stop`. dirty: how many of them are recorded so."""

    start: int
    stop: int
    cause: str
    cure: Cure
    dirty: int = 0
    why: str = ""


@dataclass(frozen=True)
class Examined:
    """An SSD as it was found.

    Attributes:
        report: for people.
        superblock: what holds when `copies` are written; None: nothing can be mended.
        copies: superblocks to be written, in order.
        faults: slots to be freed.
        dirty: records that say dirty.
    """

    report: Report
    superblock: Superblock | None = None
    copies: Sequence[Superblock] = ()
    faults: Sequence[Fault] = ()
    dirty: int = 0


def examine(ssd: Ssd, known: Known) -> Examined:
    """Look at an SSD.

    Args:
        ssd: the SSD.
        known: what the user says of it; needed if no superblock can be read.

    Raises:
        UserError: it holds no cache, or another one than `known`.
    """
    if ssd.size < layout.RECORDS_AT + layout.PAGE:
        raise UserError(f"is too small for a cache: {ssd.size} bytes", where=ssd.path)
    found = [_copy(ssd, number) for number in range(COPIES)]
    newer = [
        Damage(
            where=f"superblock copy {number}", cause=str(one), option=Cure.NONE,
            cure="nothing is done; use the isoblk that made it",
        )
        for number, one in enumerate(found) if isinstance(one, VersionError)
    ]  # fmt: skip
    if newer:
        return Examined(Report(ssd=ssd.path, damage=newer))
    if any(isinstance(one, Superblock) for one in found):
        found = _of_these_records(ssd, found)
        if not any(isinstance(one, Superblock) for one in found):
            other = Damage(
                where="superblock", cause="it is of another cache than the records",
                option=Cure.NONE, cure="nothing is done: which of the two is right?",
            )  # fmt: skip
            return Examined(Report(ssd=ssd.path, damage=[other]))
    good = [one for one in found if isinstance(one, Superblock)]
    wrong = {n: str(one) for n, one in enumerate(found) if isinstance(one, FormatError)}
    if not good:
        return _without_superblock(ssd, wrong, known)
    newest = max(good, key=lambda one: one.sequence)
    _refuse_other(ssd, newest, known)
    damage = [
        Damage(
            where=f"superblock copy {number}", cause=cause, option=Cure.REPAIR,
            cure=f"restore it from copy {newest.copy}, as in use: it may have been the newer one",
        )
        for number, cause in wrong.items()
    ]  # fmt: skip
    if wrong:
        newest = _in_use(newest)
    return _look(ssd, newest, [newest] if wrong else [], damage)


def repair(ssd: Ssd, known: Known, *, drop: bool) -> Report:
    """Mend what can be, and look again.

    Args:
        ssd: the SSD.
        known: see examine().
        drop: see mend().

    Raises:
        UserError: see examine(). RunError: it cannot be written.
    """
    before = examine(ssd, known)
    if not before.report.damage:
        return before.report
    mend(ssd, before, drop=drop)
    after = examine(ssd, known).report
    left = {(one.where, one.cause) for one in after.damage}
    mended = [one for one in before.report.damage if (one.where, one.cause) not in left]
    return msgspec.structs.replace(after, mended=mended)


def mend(ssd: Ssd, examined: Examined, *, drop: bool) -> None:
    """Do what can be done.

    Args:
        ssd: the SSD, as it was examined.
        examined: what was found.
        drop: also free slots that may have been dirty.

    Raises:
        RunError: it cannot be written.
    """
    superblock = examined.superblock
    if superblock is None:
        return
    freed = [one for one in examined.faults if one.cure == Cure.REPAIR or drop]
    whole = _free(ssd, superblock, freed)
    copies = list(examined.copies)
    dirty = examined.dirty - sum(one.dirty for one in freed)
    left = len(freed) < len(examined.faults)
    if superblock.clean and whole and not left and dirty != superblock.dirty:
        copies.append(replace(superblock, sequence=superblock.sequence + 1, dirty=dirty))
    for one in copies:
        ssd.write(one.copy * layout.PAGE, one.pack())
        ssd.sync()


def describe(report: Report) -> Sequence[tuple[str, str]]:
    """What a person wants to know of a report, but for the damage: names and values."""
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
        ("origin", f"{report.origin} bytes"),
    ]
    if report.clean is not None:
        rows.append(("recorded", f"{report.dirty} dirty blocks, {report.clean} clean ones"))
    rows.append(("commits", str(report.commits)))
    return rows


# -- superblocks --


def _copy(ssd: Ssd, number: int) -> Superblock | FormatError:
    page = ssd.read(number * layout.PAGE, layout.PAGE)
    if page is None:
        return FormatError("it cannot be read")
    try:
        return layout.parse_super(page, number)
    except FormatError as error:
        return error


def _of_these_records(
    ssd: Ssd, copies: Sequence[Superblock | FormatError]
) -> list[Superblock | FormatError]:
    """The same, where one of another cache than the records is no superblock."""
    slots = max((one.geometry.slots for one in copies if isinstance(one, Superblock)), default=0)
    seeds = own_seeds(ssd, slots)
    return [
        FormatError("it is of another cache than the records")
        if isinstance(one, Superblock) and seeds and one.seed not in seeds
        else one
        for one in copies
    ]


def _in_use(superblock: Superblock) -> Superblock:
    """The next one, as the kernel writes it when a cache starts."""
    return replace(superblock, sequence=superblock.sequence + 1, clean=False, stamp=0, dirty=0)


def _refuse_other(ssd: Ssd, superblock: Superblock, known: Known) -> None:
    geometry = superblock.geometry
    for option, told, is_so in (
        ("--origin", known.origin, geometry.origin),
        ("--block", known.block, geometry.block),
        ("--assoc", known.assoc, geometry.assoc),
    ):
        if told not in (None, is_so):
            raise UserError(
                f"{option} is {told}, the superblock says {is_so}",
                where=ssd.path,
                next=f"leave {option}",
            )


def _without_superblock(ssd: Ssd, wrong: dict[int, str], known: Known) -> Examined:
    """Both copies are gone."""
    proof = prove(ssd, known)
    foreign = all(cause in layout.NOT_OURS for cause in wrong.values())
    if foreign and not (proof and proof.dirty):
        raise UserError(
            "holds no cache of dm-setcache",
            where=ssd.path,
            next="isoblk cache create makes one",
        )
    causes = ", ".join(f"copy {number}: {cause}" for number, cause in wrong.items())
    fitting = proof.geometries if proof else []
    geometry = proof.geometry if proof else None
    if geometry is None and known.block and known.assoc and len(fitting) == 1:
        geometry = fitting[0]
    first, option = None, Cure.NONE
    if proof is None:
        cure = "the records are gone, too: nothing can be done"
    elif not fitting:
        cure = "the records fit no geometry, or not the one that was given: nothing can be done"
    elif geometry is None:
        option = Cure.GEOMETRY
        cure = f"make them from {proof.dirty} dirty records; damaged ones hide the geometry"
    else:
        option = Cure.ORIGIN if known.origin is None else Cure.REPAIR
        cure = (
            f"make them from {proof.dirty} dirty records, of blocks of {geometry.block * SECTOR}"
            f" bytes, {geometry.assoc} a set"
        )
        if known.origin is not None:
            first = proof.superblock(geometry)
    damage = Damage(where="superblock, both copies", cause=causes, option=option, cure=cure)
    if first is None:
        dirty = proof.dirty if proof else None
        return Examined(Report(ssd=ssd.path, dirty=dirty, damage=[damage]))
    # The older one first.
    return _look(ssd, first, [replace(first, sequence=first.sequence - 1), first], [damage])


# -- records --


def _look(
    ssd: Ssd, superblock: Superblock, copies: Sequence[Superblock], damage: list[Damage]
) -> Examined:
    """Everything but the superblocks. copies: those to be written; damage: theirs."""
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
    for piece in ssd.pieces(geometry.slots):
        _look_at(ssd, superblock, piece, seen)
    faults, more = _judge(superblock, seen)
    return Examined(
        report=msgspec.structs.replace(
            report,
            clean=seen.clean,
            dirty=seen.dirty,
            commits=max(superblock.commits, seen.commits),
            damage=[*damage, *more, *(_describe(one, superblock) for one in faults)],
        ),
        superblock=replace(superblock, commits=max(superblock.commits, seen.commits)),
        copies=copies,
        faults=faults,
        dirty=seen.dirty,
    )


class _Seen:
    """What the records have shown so far. unclear: such as may have been anything."""

    def __init__(self) -> None:
        self.clean = self.dirty = self.commits = 0
        self.unclear: list[Fault] = []
        self.faults: list[Fault] = []


def _look_at(ssd: Ssd, superblock: Superblock, piece: Piece, seen: _Seen) -> None:
    geometry, found = superblock.geometry, piece.records
    whole = piece.readable & (found["sum"] == layout.sums(found, piece.first, superblock.seed))
    state, block = layout.states(found), layout.blocks(found)
    clean, dirty = whole & (state == CLEAN), whole & (state == DIRTY)
    far = block >= geometry.blocks
    stray = ~far & (geometry.set_of(block) != piece.slots // np.uint64(geometry.assoc))
    seen.clean += int(clean.sum())
    seen.dirty += int(dirty.sum())
    if whole.any():
        seen.commits = max(seen.commits, int(found["commit"][whole].max()))
    for mask, cause in (
        (~piece.readable, "the record cannot be read"),
        (piece.readable & ~whole, "the record's checksum is wrong"),
        (whole & (state > DIRTY), "the record has a state that means nothing"),
    ):
        seen.unclear = _runs(seen.unclear, mask, piece.first, Fault(0, 1, cause, Cure.DROP))
    for mask, cause in (
        (far, "the record says a block beyond the origin"),
        (stray, "the record says a block of another set"),
    ):
        for kind, cure in ((clean, Cure.REPAIR), (dirty, Cure.DROP)):
            mark = int(kind is dirty)
            fault = Fault(0, 1, f"{cause}, {'dirty' if mark else 'clean'}", cure, mark)
            seen.faults = _runs(seen.faults, mask & kind, piece.first, fault)
    # After a crash clean records mean nothing, and may be outdated.
    counts = (dirty | clean if superblock.clean else dirty) & ~far & ~stray
    seen.faults += _twice(ssd, superblock, piece, counts)


def _runs(before: list[Fault], mask: Mask, first: int, like: Fault) -> list[Fault]:
    """Faults, and those of a mask from slot `first` on, neighbours together. like: one slot's."""
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
    """Slots that hold a block that another one of the set holds, too. A set is in one piece."""
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
                f"the record says block {block}, as slot {piece.first + other} does,"
                f" {'dirty' if states[slot] == DIRTY else 'clean'}",
                cure, int(states[slot] == DIRTY), why,
            )  # fmt: skip


def _later(one: int, other: int) -> bool:
    """Whether a commit came after another: numbers of 32 bits that begin again."""
    return 0 < (one - other) % (1 << 32) < 1 << 31


def _alike(ssd: Ssd, superblock: Superblock, first: int, one: int, other: int) -> bool:
    """Whether two slots hold the same data."""
    geometry = superblock.geometry
    size = geometry.block * SECTOR
    for at in range(0, size, layout.PAGE):
        count = min(layout.PAGE, size - at)
        data = [ssd.read(geometry.at(first + slot) + at, count) for slot in (one, other)]
        if data[0] is None or data[0] != data[1]:
            return False
    return True


def _judge(superblock: Superblock, seen: _Seen) -> tuple[list[Fault], list[Damage]]:
    """What is to become of unclear records: an orderly stop has counted the dirty ones."""
    unclear = sum(one.stop - one.start for one in seen.unclear)
    dirty = seen.dirty - sum(one.dirty for one in seen.faults if one.cure == Cure.REPAIR)
    missing = superblock.dirty - dirty
    if not superblock.clean:
        faults = [replace(one, why="it may be dirty") for one in seen.unclear]
        return sorted([*faults, *seen.faults], key=lambda one: one.start), []
    cure, why = Cure.DROP, f"dirty blocks missing: {missing}"
    # Dirty records that should not be there may have been counted, or not.
    doubtful = any(one.dirty for one in seen.faults if one.cure == Cure.DROP)
    if doubtful:
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
        cure += f", and lose what is at byte {geometry.at(fault.start)}, {size} bytes"
    return Damage(
        where=f"slots {fault.start} to {last}" if several else f"slot {last}",
        cause=f"{fault.cause}; {fault.why}" if fault.why else fault.cause,
        cure=cure,
        option=fault.cure,
        slots=(fault.start, last),
    )


def _free(ssd: Ssd, superblock: Superblock, faults: Sequence[Fault]) -> bool:
    """Free slots, durably; whether all could be."""
    slots = superblock.geometry.slots
    marked: dict[int, Mask] = {}
    for fault in faults:
        for page in range(fault.start // layout.PER_PAGE, (fault.stop - 1) // layout.PER_PAGE + 1):
            first = page * layout.PER_PAGE
            mask = marked.setdefault(page, np.zeros(layout.PER_PAGE, np.bool_))
            mask[max(fault.start - first, 0) : fault.stop - first] = True
    whole = True
    for page, mask in sorted(marked.items()):
        piece = ssd.page(page, slots)
        chosen = mask[: len(piece.records)]
        if (~piece.readable & ~chosen).any():
            # What cannot be read, and is not to be freed, would be overwritten.
            whole = False
            continue
        nothing = np.zeros(len(chosen), np.uint64)
        free = layout.records(nothing, nothing, superblock.commits, piece.first, superblock.seed)
        data = np.where(chosen, free, piece.records).tobytes()
        ssd.write(layout.RECORDS_AT + page * layout.PAGE, data.ljust(layout.PAGE, b"\0"))
    if marked:
        ssd.sync()
    return whole

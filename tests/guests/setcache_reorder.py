# SPDX-License-Identifier: GPL-2.0-only
"""What a power cut may leave of a cache if its disk writes in any order between two flushes.

Run in the guest: MODE LIFE SUBSETS, as often as wanted. Origin and SSD are halves of one disk, and
dm-log-writes keeps a log of what it does. From that, disks are made as they may be after a power
cut: at each flush with what was flushed before and SUBSETS times some of the sectors written since,
at each FUA write with that and what was flushed. With each the cache is loaded, and what is read is
compared with what the life's user knew at that place of the log, by the marks that it has left.
"""

import random
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.guests.setcache_model import MOST, SECTOR, Content, Direct, Mapped
from tests.guests.setcache_sweep import ORIGIN, VDISK, Life, OverError, new_disk, put

LOG: Final = 64 << 11  # sectors

# On the SSD, up to here: superblock and records, which are never written twice without a flush.
METADATA: Final = 128  # sectors

# The log, as Linux's log-writes.rst and dm-log-writes describe it: a superblock of a sector, then
# for each entry a sector that begins with its fields, and the sectors it has written.
MAGIC: Final = 0x6A736677736872
SUPER: Final = struct.Struct("<QQQI")
ENTRY: Final = struct.Struct("<QQQQ")
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8


@dataclass(frozen=True)
class Entry:
    sector: int
    flags: int
    data: bytes  # of a mark, its name

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        for at in range(0, len(self.data), SECTOR):
            yield self.sector + at // SECTOR, self.data[at : at + SECTOR]


def log_entries() -> Iterator[Entry]:
    log = Direct("/dev/log")
    magic, version, count, sector_size = SUPER.unpack_from(log.read(0, 1))
    assert (magic, version, sector_size) == (MAGIC, 1, SECTOR)
    at = 1
    for _ in range(count):
        head = log.read(at, 1)
        at += 1
        sector, sectors, flags, length = ENTRY.unpack_from(head)
        if flags & MARK:
            yield Entry(0, flags, head[ENTRY.size : ENTRY.size + length])
        elif flags & DISCARD:
            yield Entry(sector, flags, bytes(sectors * SECTOR))
        else:
            data = b"".join(
                log.read(at + i, min(MOST, sectors - i)) for i in range(0, sectors, MOST)
            )
            at += sectors
            yield Entry(sector, flags, data)
    log.close()


class Halves(Life):
    """On two halves of a device."""

    word = "half"

    def divide(self, path: str) -> None:
        self.halves = (
            Mapped("slow", f"0 {ORIGIN} linear {path} 0"),
            Mapped("fast", f"0 {self.kind.ssd} linear {path} {ORIGIN}"),
        )
        self.devices = (self.halves[0].path, self.halves[1].path)

    def join(self) -> None:
        for half in self.halves:
            half.remove()


@dataclass(frozen=True)
class Known:
    """By the user at a mark: how many writes each sector has had, and which was flushed last."""

    written: list[int]
    stable: list[int]


class Recorded(Halves):
    """Says in the log what its user knows."""

    def live(self) -> None:
        self.known: list[Known] = []
        self.log = Mapped("log", f"0 {ORIGIN + self.kind.ssd} log-writes /dev/disk /dev/log")
        self.divide(self.log.path)
        super().live()
        self.join()
        self.log.remove()

    def note(self) -> None:
        content = self.content
        self.log.message(f"mark {len(self.known)}")
        written = [len(numbers) for numbers in content.written.values()]
        self.known.append(Known(written, list(content.stable.values())))

    def discard(self) -> None:
        """Zeros have no number that tells them from what comes later: see Replay.older()."""
        super().discard()
        self.flush()

    def power_cut(self) -> None:
        """That is done to the log."""
        self.remove()

    def known_at(self, mark: int) -> Content:
        """What may be read after a power cut between this mark and the next."""
        content = Content(range(ORIGIN))
        stable = self.known[mark].stable if mark >= 0 else [0] * ORIGIN
        # What comes next may have begun.
        written = self.known[min(mark + 1, len(self.known) - 1)].written
        for s, numbers in self.content.written.items():
            content.written[s] = numbers[stable[s] : written[s]]
        return content


class Replay:
    """A disk, as far as it is stable, and what was written since."""

    def __init__(self, sectors: int) -> None:
        self.sectors = [bytes(SECTOR)] * sectors
        self.fua: dict[int, bytes] = {}
        self.group: list[Entry] = []

    def older(self, sector: int, piece: bytes) -> bool:
        """The log has writes at the flush that follows them, but FUA writes at once."""
        newer = self.fua.get(sector)
        if not newer or ORIGIN <= sector < ORIGIN + METADATA:
            return False
        place, number = struct.unpack_from("<QQ", piece)
        its_place, its_number = struct.unpack_from("<QQ", newer)
        return bool(place == its_place and 0 < number < its_number)

    def write(self, sectors: list[bytes], entry: Entry) -> None:
        for s, piece in entry.pieces():
            if entry.flags & FUA:
                self.fua[s] = piece
            elif self.older(s, piece):
                continue
            sectors[s] = piece

    def flush(self) -> None:
        for entry in self.group:
            self.write(self.sectors, entry)
        self.group.clear()

    def some(self, rnd: random.Random) -> list[bytes]:
        """A subset of what is not stable: of writes, or of sectors."""
        image = self.sectors.copy()
        whole = rnd.random() < 0.5
        for entry in self.group:
            if whole:
                if rnd.random() < 0.5:
                    self.write(image, entry)
                continue
            for s, piece in entry.pieces():
                if rnd.random() < 0.5:
                    self.write(image, Entry(s, 0, piece))
        return image


def images(replay: Replay, subsets: int, rnd: random.Random) -> Iterator[tuple[int, list[bytes]]]:
    """Disks after a power cut, each with the last mark before it."""
    mark = -1
    for entry in log_entries():
        if entry.flags & MARK:
            if entry.data.isdigit():
                mark = int(entry.data)
        elif entry.flags & FLUSH:
            assert not entry.data
            if replay.group:
                yield mark, replay.sectors
            for _ in range(subsets if replay.group else 0):
                yield mark, replay.some(rnd)
            replay.flush()
        elif entry.flags & FUA:
            replay.write(replay.sectors, entry)
            yield mark, replay.sectors
        else:
            replay.group.append(entry)
    replay.flush()
    yield mark, replay.sectors


def reorder(mode: str, number: int, subsets: int) -> int:
    """How many disks were made."""
    recorded = Recorded(mode, number)
    total = ORIGIN + recorded.kind.ssd
    new_disk("disk", 1, total)
    new_disk("log", 1, LOG)
    recorded.live()

    disk = Direct("/dev/disk")
    life = Halves(mode, number)
    life.divide("/dev/disk")
    count = 0
    for mark, image in images(Replay(total), subsets, random.Random(number)):
        count += 1
        data = b"".join(image)
        for at in range(0, total, MOST):
            disk.put(at, data[at * SECTOR : (at + MOST) * SECTOR])
        life.content = recorded.known_at(mark)
        life.created = mark >= 0
        try:
            life.finish(life.load(mode, stable=True))
        except (AssertionError, OSError, OverError) as fault:
            life.end()
            raise AssertionError(f"disk {count}, after mark {mark}: {fault!r}") from fault
    life.join()
    disk.close()
    return count


def main() -> None:
    for name in ("disk", "log"):
        (VDISK / name).mkdir()
        put("memory", f"{name}/store")
        put(1, f"{name}/write_cache")
    for text in sys.argv[1:]:
        mode, number, subsets = text.split(",")
        try:
            print(f"{text} disks {reorder(mode, int(number), int(subsets))}", flush=True)
        except AssertionError as fault:
            print(f"{text} {fault}", flush=True)
            sys.exit(1)


if __name__ == "__main__":
    main()

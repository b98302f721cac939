# SPDX-License-Identifier: GPL-2.0-only
"""A cache's life, once for each write that its disks do, with a fault at that write.

Run in the guest: MODE DISK WHAT LIFE FIRST STEP, as often as wanted. In each life a cache is
created, written, cleaned, reloaded, removed, created again, meets a power cut, is created and
removed, with reads and writes all the time. At the FIRST write of the DISK ("slow", the origin, or
"fast", the SSD) there happens WHAT (kernel/README.md has the words, at nth_write), in the next life
STEP writes later, until a life is over before its fault.

Then the disks are mended, and what may be read is checked: by the cache that is loaded again, after
writing more and another power cut, and of the origin alone when all is clean.
"""

import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.guests.setcache_guest import named
from tests.guests.setcache_model import (
    ANYTHING,
    MODES,
    POLICIES,
    SECTOR,
    Content,
    Direct,
    Mapped,
    everything,
    numbers,
)

VDISK: Final = Path("/sys/kernel/config/isoblk_vdisk")
WRITE_NS: Final = {"slow": 100_000, "fast": 20_000}
ORIGIN: Final = 1544  # sectors; the last block of 16 is not a whole one
WAYS: Final = 16


@dataclass(frozen=True)
class Kind:
    """Of a life: sectors of the SSD and of a block; options; when an SSD that fails is back; where
    the SSD is bad from the beginning, in the words of the disk."""

    ssd: int
    block: int
    options: str
    early: bool = False  # while the cache still counts it as lost
    bad: tuple[str, ...] = ()


# By a life's number. Of the second, records fill six blocks; the last one cleans and commits only
# what it is asked to.
KINDS: Final = (
    Kind(640, 8, "0"),
    Kind(1600, 1, "2 commit_ms 1"),
    Kind(640, 16, "4 set_high 60 set_low 40"),
    Kind(640, 4, "6 commit_ms 1 age_ms 1 idle_ms 1"),
    Kind(640, 8, "4 seq_write_kb 16 seq_read_kb 16"),
    Kind(640, 8, "4 set_high 100 commit_ms 60000", early=True),
    # The first block of records cannot be written, nor its first new place; three slots are bad.
    Kind(
        640, 8, "2 commit_ms 5", bad=("8192 4096 write", "65536 8192 readwrite", "90112 4096 write")
    ),
)


class OverError(Exception):
    """The power is off, or the cache does not start."""


def put(value: object, name: str) -> None:
    (VDISK / name).write_text(str(value))


def new_disk(name: str, seed: int, sectors: int) -> None:
    """Empty, and without faults."""
    put(0, f"{name}/power")
    put(seed, f"{name}/seed")
    put(sectors * SECTOR, f"{name}/size")
    put(1, f"{name}/power")


def same(found: list[int], again: list[int], where: str) -> None:
    for s, (one, other) in enumerate(zip(found, again, strict=True)):
        assert one == other, f"sector {s} reads {one}, but {other} {where}"


def make_disks() -> None:
    for name in WRITE_NS:
        (VDISK / name).mkdir()
        put(WRITE_NS[name] // 2, f"{name}/read_ns")
        put(WRITE_NS[name], f"{name}/write_ns")
        put(50_000, f"{name}/flush_ns")
        put(4, f"{name}/servers")
        put("memory", f"{name}/store")
        put(1, f"{name}/write_cache")


class Life:
    """A cache and its only user. It is a function of its mode and number, but for the fault."""

    # The origin, the SSD; and what tells the origin, if the kernel cannot.
    devices = ("/dev/slow", "/dev/fast")
    word = ""

    def __init__(self, mode: str, number: int, fault: tuple[str, str] | None = None) -> None:
        self.random = random.Random(f"{mode} {number}")
        self.mode = mode
        self.kind = KINDS[number % len(KINDS)]
        self.policy = POLICIES[number % len(POLICIES)]
        self.fault = fault  # the disk, and what happens to it
        self.met = False
        self.content = Content(range(ORIGIN))
        self.number = 0
        self.created = False
        self.running = False

    # -- the cache --

    def table(self, mode: str) -> str:
        kind = self.kind
        devices = " ".join(self.devices)
        options = named(kind.options, self.word)
        line = f"{devices} {kind.block} {WAYS} {mode} {self.policy} {options}"
        return f"0 {ORIGIN} setcache {line}"

    def note(self) -> None:
        """Something has ended: a mark for who wants to know."""

    def make(self, mode: str) -> None:
        try:
            self.cache = Mapped("c", self.table(mode))
        except OSError as error:
            raise OverError from error
        self.created = True
        self.user = Direct(self.cache.path)
        self.running = True
        self.note()

    def suspend(self) -> None:
        """What a cache that is lost does not know to be flushed is not there any more."""
        self.cache.suspend()
        if self.cache.status()["state"] == "lost":
            self.content.crash()

    def end(self) -> None:
        if self.running:
            self.running = False
            self.user.close()
            self.cache.remove()

    def remove(self) -> None:
        self.suspend()
        self.end()

    def reload(self) -> None:
        self.suspend()
        self.mend()
        self.cache.load(self.table(self.mode))
        try:
            self.cache.resume()
        except OSError as error:
            self.end()
            raise OverError from error

    def mend(self) -> None:
        """The disks. What happened to one is not going to happen again."""
        if not self.fault or self.met:
            return
        disk, what = self.fault
        fault = VDISK / disk / "fault"
        self.met = (fault / "nth_write").read_text().startswith("0 ")
        if not self.met:
            return
        put("none", f"{disk}/fault/nth_write")
        for name in WRITE_NS:
            put("ok", f"{name}/fault/state")
        if what.startswith("cut"):
            self.content.crash()

    def is_clean(self) -> bool:
        """Soon. It need not be if there was a fault."""
        for _ in range(100):
            status = self.cache.status()
            if status["dirty"] == "0":
                return True
            if status["state"] == "lost":
                return False
            time.sleep(0.05)
        return False

    # -- its user --

    def failed(self, error: OSError) -> None:
        if not self.fault or self.fault[1] == "cut-all":
            self.end()
            raise OverError from error

    def place(self, sizes: tuple[int, ...], align: int) -> tuple[int, int]:
        count = self.random.choice(sizes)
        # Some places more often than others.
        end = ORIGIN if self.random.random() < 0.4 else 192
        return self.random.randrange(max(1, (end - count) // align)) * align, count

    def write(self, *, fua: bool) -> None:
        sector, count = self.place((1, 3, 8, 8, 8, 8, 16, 24, 40, 128), self.random.choice((1, 8)))
        sectors = range(sector, sector + count)
        self.number += 1
        self.content.begin(sectors, self.number)
        try:
            self.user.write(sector, count, self.number, fua=fua)
        except OSError as error:
            self.failed(error)
        else:
            self.content.end(sectors, stable=fua)

    def read(self) -> None:
        sector, count = self.place((1, 3, 8, 16, 64, 128), self.random.choice((1, 8)))
        try:
            data = self.user.read(sector, count)
        except OSError as error:
            self.failed(error)
        else:
            self.content.check(numbers(data, sector), sector)

    def flush(self) -> None:
        try:
            self.user.flush()
        except OSError as error:
            self.failed(error)
        else:
            self.content.flushed()

    def discard(self) -> None:
        sector, count = self.place((8, 16, 64), 8)
        sectors = range(sector, sector + count)
        self.content.begin(sectors, ANYTHING)
        try:
            self.user.discard(sector, count)
        except OSError as error:
            self.failed(error)
        else:
            self.content.end(sectors)

    def steps(self, count: int) -> None:
        for _ in range(count):
            what = self.random.choices(
                ("write", "fua", "read", "flush", "discard", "sleep"), (50, 6, 24, 8, 3, 4)
            )[0]
            if what in ("write", "fua"):
                self.write(fua=what == "fua")
            elif what == "sleep":
                time.sleep(0.002)
            else:
                getattr(self, what)()
            self.note()

    # -- from the beginning to the end --

    def live(self) -> None:
        self.make(self.mode)
        self.steps(14)
        self.cache.message("clean")
        self.is_clean()
        self.steps(10)
        if self.kind.early:
            if self.fault and self.fault[0] == "fast":
                self.mend()
            self.steps(6)
        self.reload()
        self.steps(6)
        self.cache.message(f"mode {self.random.choice(MODES)}")
        self.steps(4)
        self.cache.message(f"mode {self.mode}")
        self.steps(6)
        self.remove()
        self.mend()
        self.make(self.mode)
        self.steps(8)
        self.power_cut()
        self.make(self.mode)
        self.steps(4)
        self.cache.message("clean")
        self.is_clean()
        self.steps(4)
        self.remove()

    def power_cut(self) -> None:
        for name in WRITE_NS:
            put("cut", f"{name}/fault/state")
        self.end()
        self.mend()
        for name in WRITE_NS:
            put("ok", f"{name}/fault/state")
        self.content.crash()

    def load(self, mode: str, *, stable: bool) -> list[int]:
        """What it holds, twice."""
        try:
            self.make(mode)
        except OverError as error:
            assert not self.created, f"it is refused: {error.__cause__}"
            # The fault came before there was a cache: what is there is nothing of ours.
            ssd = Direct(self.devices[1])
            ssd.put(0, bytes(8192))
            ssd.put(self.kind.ssd // 8 * 8 - 8, bytes(4096))
            ssd.close()
            self.make(mode)
        found = everything(self.cache.path, ORIGIN)
        self.content.check(found)
        self.content.settle(found, stable=stable)
        same(found, everything(self.cache.path, ORIGIN), "the second time")
        return found

    def after(self, *, cut: bool) -> None:
        """What is left. After a power cut of both disks nothing is in their caches."""
        self.load(self.mode, stable=cut)
        self.steps(8)
        self.power_cut()
        self.finish(self.load(self.random.choice(MODES), stable=True))

    def finish(self, found: list[int]) -> None:
        """It can be cleaned, and then the origin needs no cache."""
        self.cache.message("mode readonly")
        assert self.is_clean(), "it is never clean"
        self.remove()
        same(found, everything(self.devices[0], ORIGIN), "on the origin")


def sweep(mode: str, disk: str, what: str, number: int, first: int, step: int) -> int:
    """How many lives met their fault."""
    nth, lives = first, 0
    while True:
        life = Life(mode, number, (disk, what))
        new_disk("slow", 10_000 * number + 2 * nth, ORIGIN)
        new_disk("fast", 10_000 * number + 2 * nth + 1, life.kind.ssd)
        for place in life.kind.bad:
            put(place, "fast/fault/errors")
        put(f"{nth} {what}", f"{disk}/fault/nth_write")
        cut = False
        try:
            try:
                life.live()
            except OverError:
                cut = what == "cut-all"
            life.mend()
            life.fault = None
            put("none", f"{disk}/fault/nth_write")
            life.after(cut=cut)
        except (AssertionError, OSError, OverError) as fault:
            cause = fault.__cause__ or ""
            life.end()
            raise AssertionError(f"at write {nth}: {fault!r} {cause}") from fault
        if not life.met:
            return lives
        lives += 1
        nth += step


def main() -> None:
    make_disks()
    failed = False
    for text in sys.argv[1:]:
        mode, disk, what, number, first, step = text.split(":")
        try:
            lives = sweep(mode, disk, what, int(number), int(first), int(step))
            print(f"{text} lives {lives}", flush=True)
        except AssertionError as fault:
            print(f"{text} {fault}", flush=True)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()

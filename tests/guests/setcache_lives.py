# SPDX-License-Identifier: GPL-2.0-only
"""Lives of a cache, each cut short by a power cut, and what may be read afterwards.

Run in the guest, with the standard library alone: FIRST COUNT STEPS. A life is a function of its
number: writers that write, read, flush, write through (FUA) and discard, and meanwhile other modes
and policies, cleaning, suspension, reload. Origin and SSD are parts of one disk with a volatile
cache, so one cut takes both, and of each write that is not stable it keeps all, a part, or nothing.

What may be read: before the cut, what was written last; after it, no less than what was flushed.
"""

import random
import subprocess
import sys
import threading
import time
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
    everything,
    numbers,
)

DISK: Final = Path("/sys/kernel/config/isoblk_vdisk/disk0")
STATS: Final = Path("/sys/kernel/debug/isoblk_vdisk/disk0/stats")
ORIGIN: Final = 4096  # sectors
SSD: Final = 1024
WAYS: Final = 16
OPTIONS: Final = (
    "0",
    "2 commit_ms 1",
    "4 set_high 60 set_low 40",
    "4 seq_write_kb 16 seq_read_kb 16",
    "6 commit_ms 1 age_ms 1 idle_ms 1",
)


class DeadError(Exception):
    """The power is off."""


def put(value: object, name: str) -> None:
    (DISK / name).write_text(str(value))


def writes_of_disk() -> int:
    figures = dict(line.split() for line in STATS.read_text().splitlines())
    return int(figures["write_requests"])


def dm(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = ["dmsetup", "--noudevsync", "--noudevrules", *words]
    return subprocess.run(command, capture_output=True, text=True, check=check)


class Writer:
    """One at a time, on sectors of its own."""

    def __init__(self, seed: int, path: str, first: int, count: int) -> None:
        self.random = random.Random(seed)
        self.path, self.first, self.count = path, first, count
        self.number = 0
        self.content = Content(range(first, first + count))
        self.fault: str | None = None
        self.off = False

    def place(self, sizes: tuple[int, ...], aligns: tuple[int, ...]) -> tuple[int, int]:
        count = min(self.random.choice(sizes), self.count)
        align = self.random.choice(aligns)
        start = self.random.randrange((self.count - count) // align + 1) * align
        # Some places more often than others.
        if self.random.random() < 0.6:
            start %= self.count // 4
        return self.first + start, count

    def write(self, *, fua: bool) -> None:
        sector, count = self.place((1, 2, 7, 8, 8, 8, 8, 16, 24, 40, 128), (1, 8, 8, 8))
        self.number += 1
        sectors = range(sector, sector + count)
        self.content.begin(sectors, self.number)
        self.device.write(sector, count, self.number, fua=fua)
        self.content.end(sectors, stable=fua)

    def read(self) -> None:
        sector, count = self.place((1, 3, 8, 8, 16, 64, 128, 256), (1,))
        self.content.check(numbers(self.device.read(sector, count), sector), sector)

    def flush(self) -> None:
        self.device.flush()
        if self.off:
            raise DeadError
        self.content.flushed()

    def discard(self) -> None:
        sector, count = self.place((8, 8, 16, 64, 300), (1, 8))
        sectors = range(sector, sector + count)
        self.content.begin(sectors, ANYTHING)
        self.device.discard(sector, count)
        self.content.end(sectors)

    def live(self, steps: int) -> None:
        """Any number of steps, until the power is off."""
        self.device = Direct(self.path)
        try:
            for _ in range(steps):
                what = self.random.choices(
                    ["write", "fua", "read", "flush", "discard", "sleep"], [50, 8, 20, 8, 3, 4]
                )[0]
                if what in ("write", "fua"):
                    self.write(fua=what == "fua")
                elif what == "sleep":
                    time.sleep(self.random.choice([0.0001, 0.001]))
                else:
                    getattr(self, what)()
        except (OSError, DeadError):
            self.content.crash()
        except AssertionError as fault:
            self.fault = str(fault)
        finally:
            self.device.close()

    def check(self, found: list[int]) -> None:
        """After the cut. It may have come after the last step."""
        self.content.crash()
        first = self.first
        self.content.check(found[first : first + self.count], first)


class Life:
    """A cache, its writers, and who disturbs them."""

    def __init__(self, number: int, steps: int) -> None:
        self.random = random.Random(number)
        self.number, self.steps = number, steps
        self.block = self.random.choice([8, 8, 8, 1, 4, 16])
        self.options = self.random.choice(OPTIONS)
        self.writers = self.random.choice([1, 1, 3, 8])
        self.cut_ns = self.random.randrange(50_000, 60_000 * steps)

    def table(self) -> str:
        mode, policy = self.random.choice(MODES), self.random.choice(POLICIES)
        devices = "/dev/mapper/slow /dev/mapper/fast"
        options = named(self.options, "slow")
        return f"0 {ORIGIN} setcache {devices} {self.block} {WAYS} {mode} {policy} {options}"

    def disturb(self) -> None:
        what = self.random.choices(
            ["mode", "policy", "clean", "suspend", "reload", "sleep"], [8, 4, 5, 1, 1, 20]
        )[0]
        if what == "mode":
            dm("message", "c", "0", "mode", self.random.choice(MODES), check=False)
        elif what == "policy":
            dm("message", "c", "0", "policy", self.random.choice(POLICIES), check=False)
        elif what == "clean":
            dm("message", "c", "0", "clean", check=False)
        elif what == "sleep":
            time.sleep(self.random.choice([0.0001, 0.0003, 0.001]))
        else:
            dm("suspend", "c", check=False)
            if what == "reload":
                dm("load", "c", "--table", self.table(), check=False)
            if dm("resume", "c", check=False).returncode:
                # A new table does not begin without power, and writers would wait for it. They
                # must not believe the other: it has no device that a flush could fail on.
                for writer in self.all:
                    writer.off = True
                dm("load", "c", "--table", f"0 {ORIGIN} error")
                dm("resume", "c")

    def cut(self, start: int) -> None:
        time.sleep(max(0, start + self.cut_ns - time.monotonic_ns()) / 1e9)
        self.at = writes_of_disk()
        put("cut", "fault/state")

    def live(self) -> None:
        put(0, "power")
        put(self.number, "seed")
        put(1, "power")
        dm("create", "slow", "--table", f"0 {ORIGIN} linear /dev/disk0 0")
        dm("create", "fast", "--table", f"0 {SSD} linear /dev/disk0 {ORIGIN}")
        dm("mknodes")
        dm("create", "c", "--table", self.table())
        dm("mknodes")
        share = ORIGIN // self.writers
        writers = [
            Writer(self.number * 100 + i, "/dev/mapper/c", i * share, share)
            for i in range(self.writers)
        ]
        self.all = writers
        threads = [
            threading.Thread(target=one.live, args=(self.steps // self.writers,)) for one in writers
        ]
        threads.append(threading.Thread(target=self.cut, args=(time.monotonic_ns(),)))
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self.disturb()
        for thread in threads:
            thread.join()
        dm("remove", "c")
        put("ok", "fault/state")
        for writer in writers:
            assert not writer.fault, writer.fault
        self.after(writers)

    def after(self, writers: list[Writer]) -> None:
        dm("create", "c", "--table", self.table())
        dm("mknodes")
        found = everything("/dev/mapper/c", ORIGIN)
        for writer in writers:
            writer.check(found)
        # It stays so, and once all is clean the origin has it.
        assert everything("/dev/mapper/c", ORIGIN) == found, "another content the second time"
        dm("message", "c", "0", "mode", "readonly")
        for _ in range(2000):
            words = dm("status", "c").stdout.split()
            if words[words.index("dirty") + 1] == "0":
                break
            time.sleep(0.01)
        else:
            raise AssertionError("it is never clean")
        dm("remove", "c")
        assert everything("/dev/mapper/slow", ORIGIN) == found, "the origin differs"
        dm("remove", "slow")
        dm("remove", "fast")


def main() -> None:
    first, count, steps = map(int, sys.argv[1:])
    DISK.mkdir()
    put((ORIGIN + SSD) * SECTOR, "size")
    for name in ("read_ns", "write_ns"):
        put(20_000, name)
    put(50_000, "flush_ns")
    put(8, "servers")
    put("memory", "store")
    put(1, "write_cache")
    put(1, "power")
    cuts = set()
    for number in range(first, first + count):
        life = Life(number, steps)
        try:
            life.live()
        except AssertionError as fault:
            print(f"life {number}: {fault}")
            sys.exit(1)
        cuts.add(life.at)
    print(f"lives {count} writes {len(cuts)}")


if __name__ == "__main__":
    main()

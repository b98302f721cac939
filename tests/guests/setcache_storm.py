# SPDX-License-Identifier: GPL-2.0-only
"""All that may be done to a cache, at random and by several threads, while somebody else loads it.

Run in the guest, with the standard library alone: TASK SECONDS SEED. The cache is "c" on
/dev/slow and /dev/fast; another one, "d" on /dev/slow2 and /dev/fast2, is removed and made again.
The kernel is called by itself, for a process would cost more time than what it asks for.
"""

import errno
import fcntl
import itertools
import mmap
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

MODES: Final = ("writeback", "writethrough", "writearound", "readonly", "writeonly")
# Those that leave nothing dirty.
THROUGH: Final = ("writethrough", "writearound", "readonly")
POLICIES: Final = ("fifo", "lru", "random")
OPTIONS: Final = {
    "seq_read_kb": (0, 64, 512),
    "seq_write_kb": (0, 64, 512),
    "dirty_high": (100, 60, 30),
    "dirty_low": (90, 10),
    "set_high": (20, 100, 50),
    "set_low": (15, 5),
    "idle_ms": (0, 1, 100),
    "age_ms": (0, 1, 1000),
    "clean_ios": (16, 1, 64),
    "clean_set": (128, 1, 16),
    "clean_gate": (0, 1, 8),
    "commit_ms": (1000, 1, 20),
}
BLOCK, WAYS = 8, 16

# include/uapi/linux/dm-ioctl.h
HEAD: Final = struct.Struct("=3I2IIiIIIQ128s129s7x")
TARGET: Final = struct.Struct("=QQiI16s")
CREATE, REMOVE, SUSPEND, LOAD, CLEAR, STATUS, MESSAGE = 3, 4, 6, 9, 10, 12, 14
IS_SUSPEND, IS_TABLE, SKIP_LOCKFS, NO_FLUSH = 1 << 1, 1 << 4, 1 << 10, 1 << 11

VDISK = Path("/sys/kernel/config/isoblk_vdisk")
BLKLOAD = Path("/sys/kernel/config/blkload")
DEBUG = Path("/sys/kernel/debug")

# Faults, of which that many would be left if none had been injected.
MANY: Final = 1_000_000


class Dm:
    """A device of device mapper, by ioctls."""

    def __init__(self, name: str, origin: str, ssd: str) -> None:
        self.name = name
        self.control = os.open("/dev/mapper/control", os.O_RDWR)
        self.sectors = int(Path(f"/sys/block/{origin}/size").read_text())
        self.disks = " ".join(
            Path(f"/sys/block/{d}/dev").read_text().strip() for d in (origin, ssd)
        )
        self.dev = 0

    def call(self, number: int, flags: int = 0, data: bytes = b"", targets: int = 0) -> bytes:
        """One ioctl; what it leaves behind the header."""
        room = HEAD.size + max(len(data), 8192)
        head = HEAD.pack(
            4, 0, 0, room, HEAD.size, targets, 0, flags, 0, 0, 0, self.name.encode(), b""
        )
        buffer = bytearray((head + data).ljust(room, b"\0"))
        fcntl.ioctl(self.control, 3 << 30 | HEAD.size << 16 | 0xFD << 8 | number, buffer, True)
        self.dev = HEAD.unpack_from(buffer)[10]
        return bytes(buffer[HEAD.unpack_from(buffer)[4] :])

    def load(self, mode: str, policy: str, options: str = "", ways: int = WAYS) -> None:
        line = f"{self.disks} {BLOCK} {ways} {mode} {policy} {len(options.split())} {options}"
        text = line.encode() + b"\0"
        size = -(-(TARGET.size + len(text)) // 8) * 8
        target = TARGET.pack(0, self.sectors, 0, size, b"setcache") + text
        self.call(LOAD, data=target, targets=1)

    def suspend(self, flags: int = 0) -> None:
        self.call(SUSPEND, IS_SUSPEND | SKIP_LOCKFS | flags)

    def resume(self) -> None:
        self.call(SUSPEND)

    def tell(self, text: str) -> None:
        self.call(MESSAGE, data=struct.pack("=Q", 0) + text.encode() + b"\0")

    def status(self, flags: int = 0) -> list[str]:
        found = self.call(STATUS, flags)
        return found[TARGET.size :].partition(b"\0")[0].decode().split()


class Storm:
    """Beside the load, threads that go on until the time is over and each has made its rounds, or
    one fails."""

    def __init__(self, seconds: float, seed: str) -> None:
        self.seed = seed
        self.seconds = seconds
        self.end = 0.0
        self.rounds: dict[str, int] = {}
        self.failed: list[BaseException] = []
        self.threads: list[threading.Thread] = []

    def add(self, name: str, least: int, body: Callable[[random.Random], None]) -> None:
        """A thread. least: rounds that it makes, however long they take."""

        def run() -> None:
            rng = random.Random(f"{self.seed} {name}")
            self.rounds[name] = 0
            try:
                while not self.failed and (
                    time.monotonic() < self.end or self.rounds[name] < least
                ):
                    body(rng)
                    self.rounds[name] += 1
            except BaseException as error:
                self.failed.append(error)
                raise

        self.threads.append(threading.Thread(target=run))

    def run(self) -> None:
        # Not before: where processors are emulated the load takes all of them, and the start of
        # this program, with its modules, takes minutes beside it.
        (BLKLOAD / "start").write_text("1")
        self.end = time.monotonic() + self.seconds
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()
        (BLKLOAD / "stop").write_text("1")
        print(*(f"{name} {rounds}" for name, rounds in self.rounds.items()))
        if self.failed:
            sys.exit(1)


def some_options(rng: random.Random) -> str:
    chosen = rng.sample(sorted(OPTIONS), 4)
    own = {name: rng.choice(OPTIONS[name]) for name in chosen}
    if "dirty_high" in own:
        # No low mark may be above its high one.
        own["dirty_low"] = min(OPTIONS["dirty_low"])
    return " ".join(f"{name} {value}" for name, value in own.items())


def tell(dm: Dm, modes: tuple[str, ...], rng: random.Random) -> None:
    """One message."""
    kind = rng.randrange(6)
    if kind == 0:
        dm.tell(f"mode {rng.choice(modes)}")
    elif kind == 1:
        dm.tell(f"policy {rng.choice(POLICIES)}")
    elif kind == 2:
        dm.tell(rng.choice(("clean", "stop_clean")))
    else:
        name = rng.choice(sorted(OPTIONS))
        # Marks that do not fit each other, by then, are refused.
        with suppress(OSError) if name.startswith("dirty_") else nullcontext():
            dm.tell(f"{name} {rng.choice(OPTIONS[name])}")
    time.sleep(rng.choice((0, 0.02, 0.1)))


def look(dm: Dm, rng: random.Random) -> None:
    """A status line is whole, whatever is changed meanwhile."""
    words = dm.status()
    # Between a table's load and its resumption there may be none.
    if words:
        figures = dict(zip(words[::2], words[1::2], strict=True))
        assert int(figures["dirty"]) <= int(figures["used"]) + WAYS, figures
    words = dm.status(IS_TABLE)
    assert not words or int(words[6]) == len(words) - 7, words
    time.sleep(rng.choice((0, 0.1, 0.2)))


def turn(dm: Dm, modes: tuple[str, ...], rng: random.Random, again: Callable[[], None]) -> None:
    """Suspend and resume, perhaps with another table. again: resume where this failed."""
    if rng.random() < 0.2:
        # Another geometry is not that of the SSD: the table is not loaded, or does not start.
        try:
            dm.load(rng.choice(modes), "lru", ways=7)
        except OSError as error:
            assert error.errno == errno.EINVAL
        dm.call(CLEAR)
    dm.suspend(rng.choice((0, NO_FLUSH)))
    if rng.random() < 0.5:
        dm.load(rng.choice(modes), rng.choice(POLICIES), some_options(rng))
    try:
        dm.resume()
    except OSError:
        again()
    time.sleep(rng.choice((0.05, 0.3, 0.6)))


class Life:
    """A cache that is made, used by one at a time, and removed; its contents stay."""

    def __init__(self, dm: Dm) -> None:
        self.dm = dm
        self.wanted: dict[int, int] = {}
        self.number = 0

    def __call__(self, rng: random.Random) -> None:
        dm = self.dm
        dm.call(CREATE)
        dm.load(rng.choice(MODES), rng.choice(POLICIES), some_options(rng))
        dm.resume()
        node = (
            f"/dev/{Path(f'/sys/dev/block/{os.major(dm.dev)}:{os.minor(dm.dev)}').resolve().name}"
        )
        fd = os.open(node, os.O_RDWR | os.O_DIRECT)
        data = mmap.mmap(-1, 4096)
        for _ in range(8):
            block = rng.randrange(dm.sectors // 8)
            if self.wanted and rng.random() < 0.5:
                block = rng.choice(sorted(self.wanted))
                assert os.preadv(fd, [data], block * 4096) == 4096
                found = struct.unpack("<QQ", data[:16])
                assert found == (block, self.wanted[block]), (found, block, self.wanted[block])
                continue
            self.number += 1
            data[:16] = struct.pack("<QQ", block, self.number)
            os.pwritev(fd, [data], block * 4096, os.RWF_DSYNC if rng.random() < 0.3 else 0)
            self.wanted[block] = self.number
        os.close(fd)
        # Who tells it something, or looks, may have it open.
        while True:
            try:
                dm.call(REMOVE)
                break
            except OSError as error:
                assert error.errno == errno.EBUSY


def or_gone(body: Callable[[random.Random], None]) -> Callable[[random.Random], None]:
    """The same for a device that may not be there."""

    def run(rng: random.Random) -> None:
        try:
            body(rng)
        except OSError as error:
            assert error.errno in (errno.ENXIO, errno.EINVAL), error
            time.sleep(0.01)

    return run


def changes(storm: Storm, dm: Dm) -> None:
    """Everything, and nothing fails."""
    other = Dm("d", "slow2", "fast2")
    storm.add("tell", 10, lambda rng: tell(dm, MODES, rng))
    storm.add("look", 3, lambda rng: look(dm, rng))
    storm.add("turn", 3, lambda rng: turn(dm, MODES, rng, dm.resume))
    storm.add("life", 2, Life(Dm("d", "slow2", "fast2")))
    storm.add("tell_d", 1, or_gone(lambda rng: tell(other, MODES, rng)))
    storm.run()


def mark() -> None:
    """Memory is short for all who may do the cache's work: the load, and unbound workers."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().startswith(("blkload/", "kworker/u")):
                comm.with_name("make-it-fail").write_text("1")
        except OSError:
            pass  # it has ended
    time.sleep(0.5)


def knobs(name: str, **values: object) -> None:
    """Of one kind of injected faults."""
    for key, value in values.items():
        (DEBUG / name / key.replace("_", "-")).write_text(str(value))


def injected(name: str) -> int:
    return MANY - int((DEBUG / name / "times").read_text())


def shortage(storm: Storm, dm: Dm) -> None:
    """Everything, and memory is short. Nothing fails."""
    knobs("failslab", verbose=0, times=MANY, task_filter="Y", ignore_gfp_wait="N", probability=20)
    storm.add("mark", 2, lambda _: mark())
    storm.add("tell", 5, lambda rng: tell(dm, MODES, rng))
    storm.add("turn", 2, lambda rng: turn(dm, MODES, rng, dm.resume))
    storm.run()
    knobs("failslab", probability=0)
    print("injected", injected("failslab"))


class Faults:
    """Of disks: requests that fail, bad places, and, of an SSD, that it is gone for a while."""

    def __init__(self, dm: Dm, *disks: str) -> None:
        self.dm = dm
        self.disks = disks
        self.cases = itertools.cycle(self.all_cases())
        self.lock = threading.Lock()
        knobs("fail_make_request", verbose=0, times=MANY, probability=30)

    def off(self) -> None:
        for disk in self.disks:
            Path(f"/sys/block/{disk}/make-it-fail").write_text("0")
            (VDISK / disk / "fault/errors").write_text("none")
            (VDISK / disk / "fault/state").write_text("ok")

    def again(self) -> None:
        with self.lock:
            self.off()
            self.dm.resume()

    def all_cases(self) -> Iterator[tuple[str, str, str]]:
        """Disk, file, and what is written there."""
        for way in ("read", "write", "readwrite"):
            for disk in self.disks:
                # The SSD's data begin at 64 KiB.
                yield disk, "fault/errors", f"{1 << 16} {1 << 19} {way}"
                yield disk, "make-it-fail", "1"
            yield "fast", "fault/state", "lost"

    def __call__(self, rng: random.Random) -> None:
        disk, name, value = next(self.cases)
        where = Path("/sys/block") if name == "make-it-fail" else VDISK
        before = injected("fail_make_request")
        with self.lock:
            (where / disk / name).write_text(value)
        time.sleep(rng.choice((0.1, 0.3, 1)))
        # In some modes few requests go to the SSD.
        for _ in range(20 if name == "make-it-fail" else 0):
            if injected("fail_make_request") > before:
                break
            time.sleep(0.2)
        with self.lock:
            self.off()
        time.sleep(rng.choice((0.1, 0.3)))

    def storm(self, storm: Storm, modes: tuple[str, ...]) -> None:
        storm.add("fault", 2 * (2 * len(self.disks) + 1), self)
        storm.add("tell", 5, lambda rng: tell(self.dm, modes, rng))
        storm.add("turn", 3, lambda rng: turn(self.dm, modes, rng, self.again))
        storm.run()
        self.dm.suspend()
        self.dm.resume()
        print("ok", int(self.dm.status()[1] == "ok"), "injected", injected("fail_make_request"))


def through(storm: Storm, dm: Dm) -> None:
    """The SSD fails, and nothing is dirty: nobody sees an error."""
    Faults(dm, "fast").storm(storm, THROUGH)


def both(storm: Storm, dm: Dm) -> None:
    """Any disk fails."""
    Faults(dm, "fast", "slow").storm(storm, MODES)


TASKS: Final = {task.__name__: task for task in (changes, shortage, through, both)}


def main() -> None:
    task, seconds, seed = sys.argv[1:]
    TASKS[task](Storm(float(seconds), seed), Dm("c", "slow", "fast"))


main()

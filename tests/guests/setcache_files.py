# SPDX-License-Identifier: GPL-2.0-only
"""A file system on a cache, at work while the cache is changed. Run in the guest, with the standard
library alone: FS MODE POLICY BLOCK WAYS SSD-SIZE SEED. Prints `status` lines, and `done`."""

import fcntl
import json
import mmap
import os
import random
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Final

from tests.guests.setcache_guest import (
    MODES,
    POLICIES,
    Cache,
    disk,
    drop_caches,
    run,
)

FITRIM: Final = 0xC0185879
MOUNT: Final = Path("/run/fs")
# What a worker does, and how often.
WORK: Final = {
    "create": 20,
    "write": 20,
    "append": 10,
    "truncate": 3,
    "rename": 6,
    "replace": 5,
    "remove": 9,
    "move": 1,
    "copy": 3,
    "direct": 8,
    "read": 20,
    "sync": 10,
    "sleep": 6,
}
OPTIONS: Final = (
    "0",
    "2 commit_ms 5",
    "4 set_high 60 set_low 40",
    "4 seq_write_kb 64 seq_read_kb 64",
    "6 commit_ms 20 age_ms 1000 idle_ms 5",
)


def make_fs(kind: str, path: str) -> None:
    if kind == "ext4":
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", path)
    else:
        run("mkfs.xfs", "-q", "-f", "-K", path)


def mount(path: str, *options: str) -> None:
    MOUNT.mkdir(exist_ok=True)
    run("mount", *options, path, str(MOUNT))


def unmount() -> None:
    run("umount", str(MOUNT))


def check_fs(kind: str, path: str) -> None:
    if kind == "ext4":
        run("e2fsck", "-fn", path)
    else:
        run("xfs_repair", "-n", path)


class Worker(threading.Thread):
    """At work in a directory of its own; knows what is in each of its files."""

    def __init__(self, number: int, seed: int, steps: int) -> None:
        super().__init__()
        self.random = random.Random(seed * 10 + number)
        self.dir = MOUNT / f"w{number}"
        self.steps = steps
        self.files: dict[Path, bytearray] = {}
        self.names = 0
        self.fault: Exception | None = None

    def run(self) -> None:
        try:
            self.dir.mkdir()
            while self.steps:
                self.step()
                self.steps = max(0, self.steps - 1)
        except Exception as fault:
            self.fault = fault

    def fresh(self) -> Path:
        """A new one, perhaps in a new directory."""
        self.names += 1
        place = self.dir / self.random.choice("abc")
        place.mkdir(exist_ok=True)
        return place / str(self.names)

    def any(self) -> Path:
        return self.random.choice(list(self.files))

    def step(self) -> None:
        what = "create"
        if len(self.files) > 4:
            (what,) = self.random.choices(list(WORK), list(WORK.values()))
        getattr(self, what)()

    def data(self, most: int = 150_000) -> bytes:
        size = self.random.choice([100, 1000, 4096, 20_000, most])
        return self.random.randbytes(self.random.randint(1, size))

    def create(self) -> None:
        path, data = self.fresh(), self.data()
        path.write_bytes(data)
        self.files[path] = bytearray(data)

    def write(self) -> None:
        path, data = self.any(), self.data(30_000)
        at = self.random.randint(0, len(self.files[path]))
        with path.open("r+b") as file:
            file.seek(at)
            file.write(data)
        self.files[path][at : at + len(data)] = data

    def append(self) -> None:
        path, data = self.any(), self.data(30_000)
        with path.open("ab") as file:
            file.write(data)
        self.files[path] += data

    def truncate(self) -> None:
        path = self.any()
        size = self.random.randint(0, 2 * len(self.files[path]))
        os.truncate(path, size)
        was = self.files[path]
        self.files[path] = was[:size] + bytes(max(0, size - len(was)))

    def rename(self) -> None:
        path, new = self.any(), self.fresh()
        path.rename(new)
        self.files[new] = self.files.pop(path)

    def replace(self) -> None:
        path, over = self.any(), self.any()
        path.replace(over)
        self.files[over] = self.files.pop(path)

    def remove(self) -> None:
        path = self.any()
        path.unlink()
        del self.files[path]

    def move(self) -> None:
        """A whole directory."""
        old, new = self.dir / "a", self.dir / f"d{self.names}"
        if not old.exists() or new.exists():
            return
        old.rename(new)
        self.files = {
            new / path.name if path.parent == old else path: data
            for path, data in self.files.items()
        }

    def sync(self) -> None:
        fd = os.open(self.any(), os.O_RDWR)
        self.random.choice([os.fsync, os.fdatasync])(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)

    def read(self) -> None:
        path = self.any()
        self.compare(path, self.files[path])

    def copy(self) -> None:
        old, new = self.any(), self.fresh()
        with old.open("rb") as source, new.open("wb") as file:
            os.copy_file_range(source.fileno(), file.fileno(), len(self.files[old]))
        self.files[new] = bytearray(self.files[old])

    def direct(self) -> None:
        """By direct I/O, which goes to the cache at once."""
        path, data = self.fresh(), self.random.randbytes(4096 * self.random.randint(1, 32))
        pages, found = mmap.mmap(-1, len(data)), mmap.mmap(-1, len(data))
        pages.write(data)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        os.pwrite(fd, pages, 0)
        os.preadv(fd, [found], 0)
        os.close(fd)
        assert found[:] == data, f"{path}: direct"
        self.files[path] = bytearray(data)

    def sleep(self) -> None:
        time.sleep(self.random.choice([0.001, 0.01]))

    @staticmethod
    def compare(path: Path, data: bytes | bytearray) -> None:
        found = path.read_bytes()
        if found != data:
            at = next((i for i, (a, b) in enumerate(zip(found, data, strict=False)) if a != b), -1)
            raise AssertionError(f"{path}: {len(found)} of {len(data)} bytes, differs at {at}")

    def check(self) -> None:
        """All is there, and nothing else."""
        if self.fault:
            raise self.fault
        for path, data in self.files.items():
            self.compare(path, data)
        there = {path for path in self.dir.rglob("*") if path.is_file()}
        assert there == set(self.files), there ^ set(self.files)


def trim() -> None:
    """fstrim."""
    fd = os.open(MOUNT, os.O_RDONLY)
    fcntl.ioctl(fd, FITRIM, struct.pack("QQQ", 0, 2**63, 0))
    os.close(fd)


def say(status: dict[str, str]) -> None:
    print("status", json.dumps(status))


class Bench:
    """A cache with a file system, workers on it, and who changes the cache."""

    def __init__(self, words: list[str]) -> None:
        self.fs, self.mode, self.policy, block, ways, ssd, seed = words
        self.random = random.Random(int(seed))
        self.seed = int(seed)
        # The guest's clock begins at 0, and a file that was deleted then counts as a fault.
        time.clock_settime(time.CLOCK_REALTIME, 1_000_000_000)
        # No smaller: xfs.
        origin = disk("slow", "320m", 300_000)
        self.cache = Cache(origin, disk("fast", ssd, 60_000), int(block), int(ways))

    def change(self, what: str) -> None:
        pick = self.random.choice
        if what == "mode":
            self.cache.tell("mode", pick(MODES))
        elif what == "policy":
            self.cache.tell("policy", pick(POLICIES))
        elif what == "clean":
            self.cache.tell("clean")
        elif what == "trim":
            trim()
        elif what == "drop":
            drop_caches()
        elif what == "reload":
            say(self.cache.again(self.cache.line(pick(MODES), pick(POLICIES), pick(OPTIONS))))
        else:
            say(self.cache.again())

    def work(self, number: int, steps: int, changes: list[str]) -> list[Worker]:
        """Two at work; what changes meanwhile."""
        workers = [Worker(number + i, self.seed, steps) for i in range(2)]
        for worker in workers:
            worker.start()
        for change in changes:
            time.sleep(0.05)
            self.change(change)
        for worker in workers:
            worker.join()
        return workers

    def live(self) -> None:
        cache = self.cache
        cache.create(self.mode, self.policy)
        make_fs(self.fs, cache.path)
        # The mode alone, then everything.
        mount(cache.path, "-o", "discard")
        workers = self.work(0, 120, ["drop", "drop", "trim"])
        drop_caches()
        for worker in workers:
            worker.check()
        unmount()
        check_fs(self.fs, cache.path)
        say(cache.again())
        assert cache.status()["mode"] == self.mode

        changes = ["mode", "policy", "trim", "drop", "reload", "mode", "clean", "suspend", "mode"]
        changes *= 2
        self.random.shuffle(changes)
        mount(cache.path, "-o", "discard")
        workers += self.work(2, 160, changes)
        drop_caches()
        for worker in workers:
            worker.check()
        unmount()
        check_fs(self.fs, cache.path)

        # Again from the SSD, then without it.
        say(cache.again(cache.line(self.mode)))
        mount(cache.path)
        for worker in workers:
            worker.check()
        unmount()
        cache.clean()
        say(cache.status())
        cache.remove()
        check_fs(self.fs, cache.origin)
        mount(cache.origin, "-o", "ro")
        for worker in workers:
            worker.check()
        unmount()
        print("done")


if __name__ == "__main__":
    try:
        Bench(sys.argv[1:]).live()
    except AssertionError as fault:
        print(f"fault: {fault}")
        raise

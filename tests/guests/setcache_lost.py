# SPDX-License-Identifier: GPL-2.0-only
"""The SSD is lost and comes back: who sees an error, and what is there then. Run in the guest, with
the standard library alone. `blocks MODE`: on blocks, with and without dirty ones, as it was, empty,
or as it was long ago. `files FS MODE`: under a file system at work. Prints `done`."""

import os
import random
import sys
import time
from pathlib import Path

from tests.guests.setcache_files import MOUNT, Worker, check_fs, make_fs, mount, unmount
from tests.guests.setcache_guest import (
    BLOCK,
    DIRTYING,
    Cache,
    Raw,
    disk,
    dm,
    dm_fails,
    drop_caches,
    fault,
    kernel_log,
    sectors,
)

# Blocks: written at first; of those, again later; new ones, not flushed; read, never written.
OLD, AGAIN, NEW, READ = (0, 256), (0, 32), (256, 32), (320, 32)


def image(path: str) -> bytes:
    return Path(path).read_bytes()


def restore(path: str, content: bytes, at: int = 0) -> None:
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, content, at)
    os.fsync(fd)
    os.close(fd)


def empty(path: str) -> None:
    """Zeros where superblocks are, and records."""
    restore(path, bytes(1 << 20))
    restore(path, bytes(4096), sectors(path) // 8 * 4096 - 4096)


class Blocks:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.cache = Cache(disk("slow", "8m", 300_000), disk("fast", "5m", 100_000), 8, 64)

    def begin(self, *, dirty: bool) -> None:
        """A cache with blocks of all kinds, then no SSD."""
        self.dirty = dirty
        empty(self.cache.ssd)
        restore(self.cache.origin, bytes(8 << 20))
        cache = self.cache
        cache.create("writeback" if dirty else self.mode, "lru", "2 set_high 100")
        raw = self.raw = Raw(cache.path)
        for first, count in (OLD, READ):
            for at in range(first, first + count, 16):
                assert raw.write(at, 16) if first != READ[0] else raw.good(at, 16)
        assert raw.good(*AGAIN)
        assert raw.good(*AGAIN)
        if dirty:
            assert raw.flush()
        else:
            cache.clean()
        dm("suspend", "c")
        self.image = image(cache.ssd)
        dm("resume", "c")
        if dirty:
            for first, count in (AGAIN, NEW):
                for at in range(first, first + count, 16):
                    assert raw.write(at, 16)
        self.count = cache.count("dirty")
        assert self.count == (OLD[1] + NEW[1] if dirty else 0)
        fault("fast", "state", "lost")
        if dirty:
            cache.tell("mode", self.mode)

    def without(self, *, flush: bool = True) -> None:
        """What holds while it is lost."""
        raw, cache = self.raw, self.cache
        # What must not be there when it is back: clean before, now changed behind its back.
        assert raw.write(READ[0], 16)
        for first, count in (OLD, NEW):
            for at in range(first, first + count, 16):
                assert raw.good(at, 16) != self.dirty, f"{self.mode}: read of {at}"
                assert raw.write(at, 16) != self.dirty, f"{self.mode}: write of {at}"
                assert raw.good(at, 16) != self.dirty
        assert raw.good(*READ)
        assert raw.write(512, 16)
        assert raw.good(512, 16)
        if flush:
            # Acknowledged, and never made stable.
            assert raw.flush() != self.dirty, f"{self.mode}: flush"
        status = cache.status()
        assert status["state"] == "lost"
        assert int(status["dirty"]) == self.count
        assert (int(status["lost_errors"]) > 0) == self.dirty

    def again(self) -> None:
        """The SSD is looked for."""
        self.cache.again()

    def everything(self) -> None:
        """All is there, and works; at last the origin has it."""
        raw, cache = self.raw, self.cache
        if self.dirty:
            # Written once more, not flushed, then lost. What it is now stays so.
            for first, count in (AGAIN, NEW):
                for at in range(first, first + count):
                    (found,) = raw.read(at) or [b""]
                    if found != raw.written[at]:
                        assert first == NEW[0], f"block {at} was flushed"
                        assert found == bytes(BLOCK), f"block {at} reads {found[:16]!r}"
                        raw.written[at] = found
        for at in range(0, 640, 16):
            assert raw.good(at, 16)
            assert raw.good(at, 16)
        assert cache.status()["state"] == "ok"
        assert raw.write(640, 16)
        assert raw.good(640, 16)
        assert raw.flush()
        cache.clean()
        raw.close()
        cache.remove()
        origin = Raw(cache.origin)
        origin.written = raw.written
        for at in range(0, 656, 16):
            assert origin.good(at, 16), "the origin differs"
        origin.close()

    def back(self, how: str, *, dirty: bool) -> None:
        self.begin(dirty=dirty)
        asked = how != "as it was"
        self.without(flush=asked)
        self.again()
        self.without(flush=asked)
        fault("fast", "state", "ok")
        if how == "empty":
            empty(self.cache.ssd)
        elif how == "long ago":
            restore(self.cache.ssd, self.image)
        if how == "empty" and dirty:
            seen = len(kernel_log())
            self.again()
            assert "the SSD is empty, but there were dirty blocks" in kernel_log()[seen:]
            self.without()
            # As it was, after all.
            restore(self.cache.ssd, self.image)
        self.again()
        if dirty and not asked:
            # The first who asks is told, for something that was acknowledged may be gone.
            assert not self.raw.flush(), f"{self.mode}, {how}: nobody is told"
        assert self.raw.flush()
        if dirty and how != "as it was":
            # Of what was written again the SSD knows nothing.
            for at in range(AGAIN[0], AGAIN[0] + AGAIN[1]):
                (found,) = self.raw.read(at) or [b""]
                self.raw.written[at] = found
        self.everything()

    def gone(self, *, dirty: bool) -> None:
        """Not found at a start; back when the origin has been changed meanwhile."""
        self.begin(dirty=dirty)
        self.without()
        self.raw.close()
        cache = self.cache
        cache.remove()
        assert "cannot read two copies of the superblock" in dm_fails(
            "create", "c", "--table", cache.line(self.mode)
        )
        origin = Raw(cache.origin)
        origin.written = self.raw.written
        assert origin.write(READ[0], 16)
        assert origin.write(600, 16)
        origin.close()
        fault("fast", "state", "ok")
        cache.create(self.mode, "lru", "2 set_high 100")
        written, self.raw = self.raw.written, Raw(cache.path)
        self.raw.written = written
        self.everything()

    def resumed(self) -> None:
        """Suspended in order, and no SSD then: it does not start, for the SSD calls what is clean
        good. Back, it does."""
        self.begin(dirty=False)
        fault("fast", "state", "ok")
        assert self.raw.good(*READ)
        dm("suspend", "c")
        fault("fast", "state", "lost")
        assert "cannot write the superblock" in dm_fails("resume", "c")
        fault("fast", "state", "ok")
        dm("resume", "c")
        self.everything()


def blocks(mode: str) -> None:
    bench = Blocks(mode)
    for how in ("as it was", "empty", "long ago"):
        bench.back(how, dirty=False)
        bench.back(how, dirty=True)
    bench.gone(dirty=False)
    bench.gone(dirty=True)
    bench.resumed()


def files(fs: str, mode: str) -> None:
    """Nothing is dirty, so nobody sees an error."""
    assert mode not in DIRTYING
    rand = random.Random(mode)
    cache = Cache(disk("slow", "320m", 300_000), disk("fast", "5m", 60_000), 8, 64)
    cache.create(mode)
    make_fs(fs, cache.path)
    mount(cache.path)
    workers = [Worker(i, 7, 10_000) for i in range(2)]
    for worker in workers:
        worker.start()
    states = []
    kept = b""
    for how in ("lost", "cut", "empty", "errors", "long ago", "lost"):
        time.sleep(rand.uniform(0.02, 0.1))
        if how == "errors":
            fault("fast", "errors", "0 5242880 readwrite")
        else:
            fault("fast", "state", "cut" if how == "cut" else "lost")
        time.sleep(0.1)
        drop_caches()
        time.sleep(0.1)
        states.append(cache.status()["state"])
        # Perhaps it is looked for while it is away.
        if rand.random() < 0.5:
            cache.again()
        if how == "errors":
            fault("fast", "errors", "none")
        fault("fast", "state", "ok")
        if how == "empty":
            empty(cache.ssd)
        elif how == "long ago":
            restore(cache.ssd, kept)
        cache.again()
        assert cache.status()["state"] == "ok"
        dm("suspend", "c")
        kept = image(cache.ssd)
        dm("resume", "c")
    assert any(worker.is_alive() for worker in workers), "they had nothing to do"
    for worker in workers:
        worker.steps = 0
        worker.join()
    drop_caches()
    for worker in workers:
        worker.check()
    unmount()
    check_fs(fs, cache.path)
    cache.remove()
    check_fs(fs, cache.origin)
    mount(cache.origin, "-o", "ro")
    for worker in workers:
        worker.check()
    unmount()
    print("states", *states)


def main() -> None:
    time.clock_settime(time.CLOCK_REALTIME, 1_000_000_000)
    MOUNT.mkdir()
    if sys.argv[1] == "blocks":
        blocks(sys.argv[2])
    else:
        files(sys.argv[2], sys.argv[3])
    print("done")


if __name__ == "__main__":
    main()

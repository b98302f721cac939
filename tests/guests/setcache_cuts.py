# SPDX-License-Identifier: GPL-2.0-only
"""A file system on a write-back cache, power cuts at random instants, and what fsync had promised.
Run in the guest, with the standard library alone: FS SEED CUTS. Prints how many files were found,
how often fsync was asked, how many dirty blocks were there again, and `done`.

Origin and SSD have volatile caches, and a cut takes both. They are two disks, for a flush of the
one must not help the other. The file system is mounted again each time, which replays its journal,
and used until the next cut.
"""

import os
import random
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.guests.setcache_files import MOUNT, check_fs, make_fs, mount, unmount
from tests.guests.setcache_guest import DIRTYING, POLICIES, Cache, disk, drop_caches, fault

SIZES: Final = (900, 9000, 90_000)
WORK: Final = ("create", "replace", "append", "overwrite", "remove", "noise")


@dataclass
class Held:
    """What a file may hold after a cut; None: there may be no such file.

    From `at` on, `new` was being written over the last one of `allowed`: each of its bytes may be
    there or not, and behind the end the file may be of any length up to the new one.
    """

    allowed: list[bytes | None]
    at: int = 0
    new: bytes = b""

    def fits(self, found: bytes | None) -> bool:
        if found in self.allowed:
            return True
        was = self.allowed[-1]
        if found is None or was is None:
            return False
        end = self.at + len(self.new)
        # Behind the old end there are zeros until the new bytes are.
        base = was.ljust(end, b"\0")
        written = zip(found[self.at : end], base[self.at :], self.new, strict=False)
        return (
            len(was) <= len(found) <= len(base)
            and found[: self.at] == was[: self.at]
            and found[end:] == base[end:]
            and all(byte in pair for byte, *pair in written)
        )

    def compared(self, found: bytes | None) -> str:
        """Where what was found differs from each of what is allowed."""
        said = [f"{len(found or b'')} bytes, new {len(self.new)} at {self.at}"]
        for one in self.allowed:
            pairs = zip(found or b"", one or b"", strict=False)
            differing = [at for at, (a, b) in enumerate(pairs) if a != b]
            kept = bytes(found or b"")[differing[0] : differing[0] + 16] if differing else b""
            where = f"{len(differing)} differ from {differing[:1]} on" if differing else "equal"
            said.append(f"{len(one or b'')} bytes, {where}: {kept.hex()}")
        return "; ".join(said)


class Writer(threading.Thread):
    """Makes promises, until the power is off."""

    def __init__(
        self, number: int, seed: int, held: dict[Path, Held], off: threading.Event
    ) -> None:
        super().__init__()
        self.off = off
        self.random = random.Random(seed)
        self.dir = MOUNT / f"w{number}"
        self.held = held
        self.seed = seed
        self.names = 0
        self.syncs = 0
        self.fault: Exception | None = None

    def run(self) -> None:
        try:
            self.dir.mkdir(exist_ok=True)
            self.flush(self.dir.parent)
            while True:
                self.step()
        except OSError:
            # The power is off.
            pass
        except Exception as fault:
            self.fault = fault

    def step(self) -> None:
        mine = [path for path, held in self.held.items() if held.allowed != [None]]
        what = "create"
        if len(mine) > 5:
            what = self.random.choice(WORK)
        if what == "create":
            self.names += 1
            self.create(self.dir / f"{self.seed}-{self.names}")
        else:
            getattr(self, what)(self.random.choice(mine))

    def data(self) -> bytes:
        return self.random.randbytes(self.random.randint(1, self.random.choice(SIZES)))

    def flush(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY)
        try:
            self.sync(fd)
        finally:
            os.close(fd)

    def sync(self, fd: int) -> None:
        """A file system that a failed write has made read-only says yes to fsync, and keeps nothing
        (ext4_sync_file()). What is said once the power is off is no promise."""
        os.fsync(fd)
        if self.off.is_set():
            raise OSError("the power is off")
        self.syncs += 1

    def write(self, path: Path, data: bytes, at: int | None = None) -> None:
        with path.open("wb" if at is None else "r+b") as file:
            file.seek(at or 0)
            file.write(data)
            file.flush()
            self.sync(file.fileno())

    def now(self, path: Path) -> bytes:
        (content,) = self.held[path].allowed
        assert content is not None
        return content

    def create(self, path: Path) -> None:
        data = self.data()
        self.held[path] = Held([None, b""], new=data)
        self.write(path, data)
        self.flush(self.dir)
        self.held[path] = Held([data])

    def replace(self, path: Path) -> None:
        """As editors do: what was there, or what is to be, and nothing else."""
        data = self.data()
        new = path.with_name("new")
        self.write(new, data)
        self.held[path] = Held([self.now(path), data])
        new.replace(path)
        self.flush(self.dir)
        self.held[path] = Held([data])

    def append(self, path: Path) -> None:
        was, data = self.now(path), self.data()
        self.held[path] = Held([was], len(was), data)
        self.write(path, data, len(was))
        self.held[path] = Held([was + data])

    def overwrite(self, path: Path) -> None:
        was = self.now(path)
        at = self.random.randint(0, len(was))
        data = self.data()[: len(was) - at]
        new = was[:at] + data + was[at + len(data) :]
        self.held[path] = Held([was], at, data)
        self.write(path, data, at)
        self.held[path] = Held([new])

    def remove(self, path: Path) -> None:
        self.held[path] = Held([self.now(path), None])
        path.unlink()
        self.flush(self.dir)
        self.held[path] = Held([None])

    def noise(self, _path: Path) -> None:
        """Writes that nobody has promised anything of, and reads."""
        (self.dir / "noise").write_bytes(self.random.randbytes(300_000))
        if self.random.random() < 0.3:
            drop_caches()
        for path, held in list(self.held.items())[:5]:
            if len(held.allowed) == 1 and held.allowed[0] is not None:
                found = path.read_bytes()
                assert found == held.allowed[0], f"{path} reads otherwise"


def check(held: dict[Path, Held]) -> int:
    """What is there is what may be; it is what is there from now on. Says how many files are."""
    count = 0
    for path, one in held.items():
        found = path.read_bytes() if path.exists() else None
        assert one.fits(found), f"{path}: not what it may hold: {one.compared(found)}"
        one.allowed, one.new = [found], b""
        count += found is not None
    return count


def power(state: str) -> None:
    """Of both disks; no time passes."""
    for name in ("slow", "fast"):
        fault(name, "state", state)


def start(cache: Cache, rand: random.Random) -> None:
    options = rand.choice(["0", "2 commit_ms 5", "4 set_high 60 set_low 40", "2 set_high 100"])
    cache.create(rand.choice(DIRTYING), rand.choice(POLICIES), options)


def main() -> None:
    fs, seed, cuts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rand = random.Random(seed)
    time.clock_settime(time.CLOCK_REALTIME, 1_000_000_000)
    cache = Cache(disk("slow", "320m", 200_000), disk("fast", "5m", 100_000), 8, 16)
    cache.block = rand.choice([1, 8, 8, 128])
    start(cache, rand)
    make_fs(fs, cache.path)
    held: list[dict[Path, Held]] = [{}, {}]
    files = syncs = dirty = 0
    for cut in range(cuts):
        mount(cache.path)
        off = threading.Event()
        writers = [Writer(i, 100 * seed + 10 * cut + i, held[i], off) for i in range(2)]
        for writer in writers:
            writer.start()
        time.sleep(rand.uniform(0.02, 0.3))
        if rand.random() < 0.5:
            cache.tell("clean")
            time.sleep(rand.uniform(0, 0.02))
        off.set()
        power("cut")
        # Those that write to memory alone notice it late.
        os.sync()
        for writer in writers:
            writer.join()
            if writer.fault:
                raise writer.fault
            syncs += writer.syncs
        unmount()
        cache.remove()
        power("ok")
        start(cache, rand)
        dirty += cache.count("dirty")
        mount(cache.path)
        for one in held:
            files += check(one)
        unmount()
        check_fs(fs, cache.path)
    cache.clean()
    cache.remove()
    check_fs(fs, cache.origin)
    mount(cache.origin, "-o", "ro")
    for one in held:
        check(one)
    unmount()
    print("files", files, "syncs", syncs, "dirty", dirty)
    print("done")


if __name__ == "__main__":
    main()

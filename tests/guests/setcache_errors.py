# SPDX-License-Identifier: GPL-2.0-only
"""Bad places on the SSD or the origin: who sees an error, by the table in kernel/cache/README.md.
Run in the guest, with the standard library alone: MODE. Prints a line for each fault, and
`done`."""

import sys
import time
from dataclasses import dataclass
from typing import Final

from tests.guests.setcache_guest import BLOCK, DIRTYING, Cache, Raw, disk, fault, kernel_log
from tests.guests.setcache_lost import empty, restore

SSD: Final = 5 << 20
ORIGIN: Final = 8 << 20
# Superblocks and records lie before that.
DATA: Final = 1 << 16
# What the cache holds of a region, and what is done there. A part: the first sector of a block.
WHATS: Final = ("clean", "dirty", "absent")
OPS: Final = ("read", "write", "part")
LENGTH: Final = 16  # blocks of a region
# Faults with which nothing can be cleaned.
HOLDING: Final = (("fast", "read"), ("slow", "write"))


@dataclass(frozen=True)
class Case:
    mode: str
    disk: str
    kind: str
    what: str
    op: str

    @property
    def fails(self) -> bool:
        """What the README says."""
        read = self.op == "read"
        if self.disk == "fast":
            # Only of a dirty block the SSD has what nobody else has, and what is not needed if all
            # of it is written: then it goes to the origin.
            return self.what == "dirty" and self.op == ("read" if self.kind == "read" else "part")
        if self.kind == "read":
            # A write of a part that cannot have the rest goes to the origin alone.
            return read and self.what == "absent"
        if read or self.mode in DIRTYING:
            return False
        # A dirty block stays in the cache; in writethrough it goes to both.
        return self.what != "dirty" or self.mode == "writethrough"


class Bench:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        origin, ssd = disk("slow", str(ORIGIN), 300_000), disk("fast", str(SSD), 100_000)
        self.cache = Cache(origin, ssd, 8, 64)

    def begin(self, whats: tuple[str, ...]) -> Raw:
        """A cache with a region for each op on each kind of block."""
        cache = self.cache
        empty(cache.ssd)
        restore(cache.origin, bytes(ORIGIN))
        origin = Raw(cache.origin)
        for at in range(0, ORIGIN // BLOCK, 64):
            assert origin.write(at, 64)
        origin.close()
        cache.create("writeback", "lru", "2 set_high 100")
        raw = Raw(cache.path)
        raw.written, raw.version = origin.written, origin.version
        for what in ("clean", "dirty"):
            for i, _ in enumerate(OPS):
                assert what not in whats or raw.write(self.region(what, i), LENGTH)
            if what == "clean":
                cache.clean()
        assert raw.flush()
        assert cache.count("dirty") == ("dirty" in whats) * 3 * LENGTH
        return raw

    @staticmethod
    def region(what: str, op: int) -> int:
        # Not side by side, so that no run of dirty blocks is of two.
        return (WHATS.index(what) * len(OPS) + op) * 2 * LENGTH

    def one(self, name: str, kind: str) -> None:
        # Where a dirty block can be cleaned, it soon is not dirty in these modes.
        held = self.mode in DIRTYING or (name, kind) in HOLDING
        whats = WHATS if held else ("clean", "absent")
        raw = self.begin(whats)
        first, size = (DATA, SSD) if name == "fast" else (0, ORIGIN)
        fault(name, "errors", f"{first} {size - first} {kind}")
        self.cache.tell("mode", self.mode)
        failed = 0
        for what in whats:
            for i, op in enumerate(OPS):
                case = Case(self.mode, name, kind, what, op)
                at = self.region(what, i)
                if op == "read":
                    good = raw.good(at, LENGTH)
                elif op == "write":
                    good = raw.write(at, LENGTH)
                else:
                    good = raw.write(at, 1, part=True)
                assert good != case.fails, f"{case}: {'no error' if good else 'an error'}"
                failed += not good
        dirty = self.cache.count("dirty")
        if name == "fast" and "dirty" in whats and kind == "write":
            # The region that was written as a whole has left.
            assert dirty == 2 * LENGTH
        if (name, kind) in HOLDING:
            # Nor is it lost what cannot be cleaned.
            self.cache.tell("clean")
            time.sleep(0.2)
            assert self.cache.count("dirty") == dirty >= 3 * LENGTH
        status = self.cache.status()
        fault(name, "errors", "none")
        assert status["state"] == "ok"
        self.check(raw)
        counted = {key: int(value) for key, value in status.items() if key.endswith("_errors")}
        print(name, kind, "failed", failed, *(f"{key} {n}" for key, n in counted.items()))

    def check(self, raw: Raw) -> None:
        """What was acknowledged is there; of what failed, the old or the new, and it stays so."""
        for block, new in raw.failed.items():
            (found,) = raw.read(block) or [b""]
            old = raw.written[block]
            for at in range(0, BLOCK, 512):
                piece = slice(at, at + 512)
                assert found[piece] in (old[piece], new[piece]), f"block {block}"
            raw.written[block] = found
        for block in range(0, ORIGIN // BLOCK, 64):
            assert raw.good(block, 64)
            assert raw.good(block, 64)
        self.cache.clean()
        raw.close()
        self.cache.remove()
        origin = Raw(self.cache.origin)
        origin.written = raw.written
        for block in range(0, ORIGIN // BLOCK, 64):
            assert origin.good(block, 64)
        origin.close()


def main() -> None:
    bench = Bench(sys.argv[1])
    for name in ("fast", "slow"):
        for kind in ("read", "write"):
            bench.one(name, kind)
    log = kernel_log()
    assert "I/O error on the SSD" in log
    print("done")


if __name__ == "__main__":
    main()

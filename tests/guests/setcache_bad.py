# SPDX-License-Identifier: GPL-2.0-only
"""Bad places on the SSD, found under load while other blocks are dirty: nobody sees an error.

Run in the guest, with the standard library alone: COUNT. The SSD is a mapped device whose bad
places answer with an error at once. Prints the last status, and `done`; leaves blkload's results.
"""

import random
import struct
import sys
from pathlib import Path
from typing import Final

from tests.guests.setcache_faulty import load, start, wait
from tests.guests.setcache_files import say
from tests.guests.setcache_guest import BLOCK, Cache, Raw, disk, dm

SSD: Final = 32 << 20
DISK: Final = "/dev/fast"
# Blocks of the SSD that the load needs: its data are within the first 6 MiB of the origin.
USED: Final = set(range(48, 48 + 1536))
# Dirty blocks, which nobody else writes to.
HELD: Final = range(4096, 4096 + 256)


def table(bad: set[int]) -> None:
    """The SSD, but for some blocks of 4096 bytes."""
    lines = []
    first = 0
    for at in [*sorted(bad), SSD // BLOCK]:
        if at > first:
            lines.append(f"{8 * first} {8 * (at - first)} linear {DISK} {8 * first}")
        if at < SSD // BLOCK:
            lines.append(f"{8 * at} 8 error")
        first = at + 1
    path = Path("/run/isoblk/table")
    path.write_text("\n".join(lines) + "\n")
    dm("suspend", "--noflush", "--nolockfs", "fast")
    dm("load", "fast", str(path))
    dm("resume", "fast")


def in_use() -> set[int]:
    """Blocks of the SSD whose loss would be one: those of dirty blocks, by the records."""
    ssd = Path(DISK).read_bytes()
    ways, sets = struct.unpack_from("<IQ", ssd, 52)
    (data,) = struct.unpack_from("<Q", ssd, 80)
    used = set()
    for slot in range(ways * sets):
        (where,) = struct.unpack_from("<Q", ssd, 8192 + 16 * slot)
        if where >> 60 == 2:
            used.add(data // 8 + slot)
    return used


def main() -> None:
    count = int(sys.argv[1])
    rand = random.Random(count)
    disk("slow", "64m", 300_000)
    disk("fast", str(SSD), 60_000)
    dm("create", "fast", "--table", f"0 {SSD // 512} linear {DISK} 0")
    cache = Cache("/dev/slow", "/dev/mapper/fast", 8, 256)
    cache.create("writeback", "lru", "6 set_high 60 set_low 50 commit_ms 20")
    raw = Raw(cache.path)
    for at in range(HELD.start, HELD.stop, 64):
        assert raw.write(at, 64)
    assert raw.flush()
    dm("suspend", "c")
    # One copy of the superblock may be bad, and records, and data that are not needed.
    free = set(range(2, SSD // BLOCK)) - in_use()
    # Records and data of what the load is going to use; else it would meet few of them.
    bad = {100} if count == 1 else {1, 2, *rand.sample(sorted(free & USED), 8)}
    bad |= set(rand.sample(sorted(free - bad), count - len(bad)))
    table(bad)
    dm("resume", "c")
    load(cache.path, 2000)
    start()
    wait()
    for at in range(HELD.start, HELD.stop, 64):
        assert raw.good(at, 64), "a dirty block is gone"
    assert raw.flush()
    status = cache.status()
    say(status)
    raw.close()
    dm("suspend", "c")
    dm("resume", "c")
    cache.clean()
    cache.remove()
    origin = Raw("/dev/slow")
    origin.written = raw.written
    for at in range(HELD.start, HELD.stop, 64):
        assert origin.good(at, 64)
    print("done")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only
"""FUA writes that nobody flushes, and a power cut at each write that a disk does.

Run in the guest: MODE:DISK, as often as wanted. A program cannot write so: after its FUA write
Linux flushes. blkload does, as file systems do. It writes forward, two writes a block of the cache:
one makes the block dirty, the other finds it so. What it was told to have ended must be there.
"""

import contextlib
import sys
from pathlib import Path
from typing import Final

from tests.guests.setcache_model import SECTOR, Direct
from tests.guests.setcache_sweep import ORIGIN, Life, OverError, make_disks, new_disk, put

BLKLOAD: Final = Path("/sys/kernel/config/blkload")
RESULTS: Final = Path("/sys/kernel/debug/blkload/results")
WRITES: Final = 24
COUNT: Final = 4  # sectors of a write


def write_forward(path: str) -> int:
    """How many writes have ended well: the first so many."""
    tenant = BLKLOAD / "writer"
    tenant.mkdir()
    values = {"device": path, "rw": "write", "bs": COUNT * SECTOR, "fua": 1, "verify": 1}
    for name, value in {**values, "number_ios": WRITES, "size": WRITES * COUNT * SECTOR}.items():
        (tenant / name).write_text(str(value))
    (BLKLOAD / "start").write_text("1")
    (BLKLOAD / "wait").read_text()
    lines = [line.split() for line in RESULTS.read_text().splitlines()]
    tenant.rmdir()
    return next(int(words[6]) for words in lines if words[:3] == ["op", "writer", "write"])


def content(path: str, sectors: int) -> bytes:
    device = Direct(path)
    data = device.read(0, sectors)
    device.close()
    return data


def check(life: Life, ended: int) -> None:
    try:
        life.make(life.mode)
    except OverError:
        assert not life.created, "it is refused"
        return
    data = content(life.cache.path, WRITES * COUNT)
    for at in range(0, ended * COUNT * SECTOR, SECTOR):
        assert any(data[at : at + SECTOR]), f"sector {at // SECTOR} is lost, {ended} writes ended"
    life.cache.message("mode readonly")
    assert life.is_clean(), "it is never clean"
    life.remove()
    assert content(life.devices[0], WRITES * COUNT) == data, "the origin differs"


def sweep(mode: str, disk: str) -> int:
    """How many lives met their fault."""
    nth = 1
    while True:
        life = Life(mode, 0, (disk, "cut-all"))
        new_disk("slow", 2 * nth, ORIGIN)
        new_disk("fast", 2 * nth + 1, life.kind.ssd)
        put(f"{nth} cut-all", f"{disk}/fault/nth_write")
        ended = 0
        with contextlib.suppress(OverError):
            life.make(mode)
            ended = write_forward(life.cache.path)
            life.end()
        life.mend()
        put("none", f"{disk}/fault/nth_write")
        try:
            check(life, ended)
        except AssertionError as fault:
            life.end()
            raise AssertionError(f"at write {nth}: {fault}") from fault
        if not life.met:
            assert ended == WRITES
            return nth - 1
        nth += 1


def main() -> None:
    make_disks()
    for text in sys.argv[1:]:
        mode, disk = text.split(":")
        try:
            print(f"{text} lives {sweep(mode, disk)}", flush=True)
        except AssertionError as fault:
            print(f"{text} {fault}", flush=True)


if __name__ == "__main__":
    main()

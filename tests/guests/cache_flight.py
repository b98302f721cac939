# SPDX-License-Identifier: GPL-2.0-only
"""Writes under way while a cache is attached, changed and taken away: whatever was acknowledged is
there, and nothing waits for ever.

Run in the guest: NANOSECONDS of a write of the SSD, and how many KINDS of flights, of the last ones
if less than 0, or `hot`. What `isoblk cache` does is done again and again, with writes that begin
just before its first call of dmsetup, its second, and so on; also so that it is interrupted or
killed there.
"""

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from isoblk.cachectl import live, manage
from isoblk.cachectl.manage import Volume
from isoblk.caches.setcache import PERSONALITIES, Line
from isoblk.errors import IsoblkError, RunError
from isoblk.machine.mapper import Mapper, dmsetup
from tests.guests.setcache_guest import BLOCK, Raw, disk

PLAIN: Final = PERSONALITIES["setcache"]
SIZE: Final = 16 << 20
SSD: Final = 8 << 20
V: Final = "/dev/mapper/v"
# Of virtual time; no write takes so long.
PATIENCE_S: Final = 100


def wait(_: float) -> None:
    """Not so often that most steps are looks at a cache that is being cleaned."""
    time.sleep(3)


@dataclass
class Flight:
    """A Mapper before whose call `at` writes begin; `late`: which then ends by an interrupt, before
    it is done or after; None: it does not. killed: all calls after it end so, too."""

    at: int
    late: bool | None
    path: str
    killed: bool = False
    calls: int = 0
    threads: list[threading.Thread] = field(default_factory=list)
    written: dict[int, bytes] = field(default_factory=dict)

    def __call__(self, *words: str, table: str = "") -> str:
        number, self.calls = self.calls, self.calls + 1
        if self.killed and number > self.at:
            raise KeyboardInterrupt
        if number == self.at:
            for i, block in enumerate((0, 100, 200, 300)):
                thread = threading.Thread(target=self.write, args=(block, i))
                self.threads.append(thread)
                thread.start()
            time.sleep(0.001)
            if self.late is False:
                raise KeyboardInterrupt
        said = dmsetup(*words, table=table)
        if number == self.at and self.late:
            raise KeyboardInterrupt
        return said

    def write(self, block: int, number: int) -> None:
        with contextlib.suppress(OSError):
            raw = Raw(self.path)
            raw.version = 1000 + number
            raw.write(block)
            raw.close()
            self.written |= raw.written


def volume(name: str, size: int) -> Volume:
    number = Path("/sys/block", name, "dev").read_text().strip()
    return Volume(f"/dev/{name}", size, number)


def attached() -> Callable[[Mapper], object]:
    linear()
    attach(dmsetup)
    return lambda by: live.delete("v", by, sleep=wait)


def alone() -> Callable[[Mapper], object]:
    made = manage.line_of(PLAIN, {"assoc": 64})
    manage.create("v", volume("slow", SIZE), volume("fast", SSD), made, dmsetup)
    return lambda by: live.delete("v", by, sleep=wait)


def changed() -> Callable[[Mapper], object]:
    alone()

    def there_and_back(by: Mapper) -> None:
        live.edit("v", {"mode": "writethrough"}, PLAIN, by)
        live.clean("v", by, sleep=wait)
        live.edit("v", {"mode": "writeback"}, PLAIN, by)

    return there_and_back


def new() -> Callable[[Mapper], object]:
    linear()
    return attach


def linear() -> None:
    dmsetup("create", "v", table=f"0 {SIZE // 512} linear /dev/slow 0")


def attach(by: Mapper) -> None:
    live.attach("v", volume("fast", SSD), named(manage.line_of(PLAIN, {"assoc": 64})), by)


def named(line: Line) -> Line:
    """With a word for the origin, a device of device-mapper."""
    return dataclasses.replace(line, origin_id="v")


def erase(path: str, size: int) -> None:
    device = os.open(path, os.O_RDWR)
    for at in (0, BLOCK, size - BLOCK):
        os.pwrite(device, bytes(BLOCK), at)
    os.fsync(device)
    os.close(device)


def look(path: str, wanted: dict[int, bytes]) -> None:
    """Whether everything is there."""
    raw = Raw(path)
    raw.written |= wanted
    for block in wanted:
        assert raw.good(block), f"block {block} cannot be read"
    raw.close()


def fly(
    make: Callable[[], Callable[[Mapper], object]],
    at: int,
    dirty: int,
    late: bool | None,
    killed: bool = False,
) -> bool:
    """One of them. Whether there was a call `at`."""
    act = make()
    raw = Raw(V)
    for block in range(dirty):
        raw.write(block)
    raw.close()
    flight = Flight(at, late, V, killed)
    try:
        act(flight)
        ended = "done"
    except (IsoblkError, KeyboardInterrupt) as error:
        ended = repr(error)
    if killed and "v" in manage.names(dmsetup):
        # What the guide has for it.
        dmsetup("resume", "v")
        for name in ("v", "v-origin"):
            if name in manage.names(dmsetup):
                dmsetup("clear", name)
    for thread in flight.threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), f"a write waits for ever ({ended})"
    there = "v" in manage.names(dmsetup)
    if there:
        assert "s" not in dmsetup("info", "-c", "--noheadings", "-o", "attr", "v"), ended
    wanted = raw.written | flight.written
    look(V if there else "/dev/slow", wanted)
    # All is on the disk once the cache is gone.
    if there and " setcache " in dmsetup("table", "v"):
        live.delete("v", dmsetup, sleep=wait)
    for name in ("v", "v-origin"):
        if name in manage.names(dmsetup):
            dmsetup("remove", name)
    assert not manage.names(dmsetup)
    look("/dev/slow", wanted)
    erase("/dev/slow", SIZE)
    erase("/dev/fast", SSD)
    return flight.calls > at


def hot() -> None:
    """Blocks that are written without a pause: the cache is gone and the disk has them, or it is
    said that they are, and the cache is as it was."""
    attached()
    ended = threading.Event()
    written: dict[int, bytes] = {}

    def write(blocks: range) -> None:
        raw = Raw(V)
        while not ended.is_set():
            for block in blocks:
                raw.write(block)
        raw.close()
        written.update(raw.written)

    threads = [threading.Thread(target=write, args=(range(i, i + 2),)) for i in (0, 2, 100)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    try:
        live.delete("v", dmsetup)
        path = "/dev/slow"
    except RunError as error:
        assert "do not become clean" in str(error), error
        assert manage.find("v", dmsetup).mode == "writeback"
        path = V
    ended.set()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    look(path, written)
    if path == V:
        live.delete("v", dmsetup)
        look("/dev/slow", written)
    print(f"flights 1, {path}")


# How many blocks are dirty before: if none are, nobody waits for the cleaning of others. And how a
# call ends: see Flight.
KINDS: Final = (
    (attached, 0, None),
    (alone, 0, None),
    (changed, 0, None),
    (new, 0, None),
    (attached, 8, None),
    (attached, 8, True),
    (alone, 8, True),
    (new, 8, True),
    # SIGKILL, before the call's effect and after it.
    (attached, 8, False, True),
    (attached, 8, True, True),
    (alone, 8, True, True),
    (changed, 8, True, True),
    (new, 8, True, True),
)


def main() -> None:
    os.environ["DM_DISABLE_UDEV"] = "1"
    disk("slow", "16m", 1_000_000)
    disk("fast", "8m", int(sys.argv[1]))
    if sys.argv[2] == "hot":
        hot()
        return
    flights = 0
    kinds = int(sys.argv[2])
    chosen = KINDS[:kinds] if kinds > 0 else KINDS[kinds:]
    for make, dirty, late, *killed in chosen:
        at = 0
        while True:
            try:
                again = fly(make, at, dirty, late, *killed)
            except (AssertionError, IsoblkError) as fault:
                how = f"{dirty} dirty, interrupted {late} {killed}"
                print(f"{make.__name__}, call {at}, {how}: {fault}")
                sys.exit(1)
            if not again:
                break
            flights += 1
            at += 1
    print(f"flights {flights}")


if __name__ == "__main__":
    main()

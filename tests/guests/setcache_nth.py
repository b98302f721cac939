# SPDX-License-Identifier: GPL-2.0-only
"""Memory that cannot be had, at each place in turn: loading a table, starting a cache, messages,
status, stopping it. Run in the guest, with the standard library alone: ROUNDS. The kernel fails the
N-th allocation of an ioctl, for N = 1, 2, 3 ... until it has had all it asks for. Prints for each
ioctl how many allocations it took and how often it failed, and `done`."""

import fcntl
import os
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.guests.setcache_guest import Cache, Raw, disk, dm, run

FAIL: Final = Path("/proc/thread-self/fail-nth")
FAILSLAB: Final = Path("/sys/kernel/debug/failslab")
LEAKS: Final = Path("/sys/kernel/debug/kmemleak")
SIZE: Final = 16384
CREATE, REMOVE, SUSPEND, LOAD, CLEAR, STATUS, MESSAGE = 3, 4, 6, 9, 10, 12, 14
SUSPENDED: Final = 1 << 1
# More than any of these takes.
MOST: Final = 1000


class Control:
    """/dev/mapper/control, for the device c."""

    def __init__(self) -> None:
        self.fd = os.open("/dev/mapper/control", os.O_RDWR)

    def ioctl(self, command: int, data: bytes = b"", flags: int = 0, targets: int = 0) -> None:
        head = struct.pack(
            "=IIIIIIiIIIQ128s129s7x", 4, 0, 0, SIZE, 312, targets, 0, flags, 0, 0, 0, b"c", b""
        )
        buffer = bytearray((head + data).ljust(SIZE, b"\0"))
        fcntl.ioctl(self.fd, 0xC138FD00 | command, buffer)

    def load(self, line: str) -> None:
        start, length, kind, params = line.split(" ", 3)
        text = params.encode() + b"\0"
        spec = struct.pack("=QQiI16s", int(start), int(length), 0, 0, kind.encode())
        self.ioctl(LOAD, spec + text, targets=1)

    def message(self, text: str) -> None:
        self.ioctl(MESSAGE, struct.pack("=Q", 0) + text.encode() + b"\0")


def nth(name: str, action: Callable[[], None], undo: Callable[[], None] | None = None) -> None:
    """Fail its N-th allocation, for all N. It may fail; if not, `undo` makes ready for the next."""
    failed = 0
    for n in range(1, MOST):
        fd = os.open(FAIL, os.O_RDWR)
        try:
            os.write(fd, str(n).encode())
            action()
            good = True
        except OSError:
            good = False
            failed += 1
        met = os.pread(fd, 20, 0).strip() == b"0"
        os.write(fd, b"0")
        os.close(fd)
        if not met:
            assert good, f"{name}: fails though it has all memory"
            print(name, "allocations", n - 1, "failed", failed)
            return
        if good and undo:
            undo()
    raise AssertionError(f"{name}: more than {MOST} allocations")


def free_kib() -> int:
    run("sh", "-c", "echo 3 > /proc/sys/vm/drop_caches")
    words = Path("/proc/meminfo").read_text().split()
    return int(words[words.index("MemFree:") + 1])


def main() -> None:
    rounds = int(sys.argv[1])
    cache = Cache(disk("slow", "8m", 300_000), disk("fast", "3m", 60_000), 8, 64)
    line = cache.line("writeback", "lru", "2 set_high 100")
    (FAILSLAB / "ignore-gfp-wait").write_text("N")
    (FAILSLAB / "verbose").write_text("0")
    cache.create("writeback", "lru", "2 set_high 100")
    raw = Raw(cache.path)
    for at in range(0, 256, 16):
        assert raw.write(at, 16)
    raw.close()
    control = Control()
    free = []
    for _ in range(rounds):
        nth("load", lambda: control.load(line), lambda: control.ioctl(CLEAR))

        # A new table is started by a resume, and the old one is gone; one that could not be is
        # loaded and started again.
        def start() -> None:
            control.ioctl(SUSPEND)

        def again() -> None:
            control.ioctl(SUSPEND, flags=SUSPENDED)
            control.load(line)

        control.ioctl(SUSPEND, flags=SUSPENDED)
        control.load(line)
        nth("start", start, again)
        nth("stop", lambda: control.ioctl(SUSPEND, flags=SUSPENDED), start)
        start()
        for text in (
            "mode writethrough",
            "mode writeback",
            "policy random",
            "set_high 99",
            "clean",
        ):
            nth(f"message-{text.split()[0]}", partial(control.message, text))
        nth("status", lambda: control.ioctl(STATUS))
        control.message("stop_clean")
        free.append(free_kib())
    raw.fd = os.open(cache.path, os.O_RDWR | os.O_DIRECT)
    for at in range(0, 256, 16):
        assert raw.good(at, 16)
    assert raw.flush()
    raw.close()
    assert cache.status()["state"] == "ok"
    cache.clean()
    cache.remove()
    print("free", *free)
    if LEAKS.exists():
        # What is still referred to from a register or a stack is not found at first.
        for _ in range(2):
            time.sleep(6)
            LEAKS.write_text("scan")
        print("leaks", LEAKS.read_text().count("unreferenced object"))
        print(LEAKS.read_text()[:3000])
    dm("ls")
    print("done")


if __name__ == "__main__":
    main()

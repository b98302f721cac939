# SPDX-License-Identifier: GPL-2.0-only
"""Virtual disks and a dm-setcache on them, for the scripts that run in a guest: standard library
only. The host takes from here what the counters have to add up to."""

import mmap
import os
import struct
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

VDISK: Final = Path("/sys/kernel/config/isoblk_vdisk")
MODES: Final = ("writeback", "writethrough", "writearound", "readonly", "writeonly")
POLICIES: Final = ("fifo", "lru", "random")
DIRTYING: Final = ("writeback", "writeonly")


def balance(status: Mapping[str, str]) -> None:
    """What adds up when nothing has failed, and nothing is under way."""
    n = {name: int(value) for name, value in status.items() if value.isdigit()}
    sums = {
        "read": n["read_hit"] + n["read_miss"],
        "write": n["write_hit"] + n["write_new"] + n["write_bypass"],
        "origin_read": n["read_miss"] + n["fill_extra"] + n["rmw_read"],
        "origin_write": n["write_bypass"] + n["through"] + n["clean"],
        "ssd_read": n["read_hit"] + n["clean_read"],
        "ssd_write": (
            n["fill"] + n["write_hit"] + n["write_new"] + n["rmw_extra"] + 8 * n["record_blocks"]
        ),
        "record_updates": n["record_batched"] + n["record_blocks"],
        "fill": n["block"] * n["inserted"],
    }
    wrong = {name: (n[name], total) for name, total in sums.items() if n[name] != total}
    assert not wrong, f"{wrong} of {status}"


def status_of(line: str) -> dict[str, str]:
    """Names and values of a status line."""
    words = line.split()[3:]
    return dict(zip(words[::2], words[1::2], strict=True))


def no_errors(status: Mapping[str, str]) -> None:
    """It has met no error."""
    for name in ("ssd_errors", "origin_errors", "lost_errors", "clean_errors"):
        assert status[name] == "0", (name, status[name])
    assert status["state"] == "ok"


def disk(name: str, size: str, ns: int) -> str:
    """A virtual disk with a volatile cache that takes `ns` for a request."""
    where = VDISK / name
    where.mkdir()
    for key, value in {
        "size": size,
        "store": "memory",
        "write_cache": 1,
        "servers": 4,
        "read_ns": ns,
        "write_ns": ns,
        "flush_ns": ns,
        "power": 1,
    }.items():
        (where / key).write_text(str(value))
    return f"/dev/{name}"


def fault(name: str, key: str, value: str) -> None:
    (VDISK / name / "fault" / key).write_text(value)


def run(*words: str, check: bool = True) -> str:
    """A program's output.

    Raises:
        AssertionError: it has failed; with what it said.
    """
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not (check and done.returncode), f"{words}: {done.stdout[-1500:]}{done.stderr}"
    return done.stdout


def dm(*words: str) -> str:
    os.environ["DM_DISABLE_UDEV"] = "1"
    return run("dmsetup", *words)


def dm_fails(*words: str) -> str:
    """What the kernel says of a dmsetup that it refuses."""
    seen = len(kernel_log())
    try:
        dm(*words)
    except AssertionError:
        return kernel_log()[seen:]
    raise AssertionError(f"this did not fail: {words}")


def kernel_log() -> str:
    return run("dmesg", "-t")


def drop_caches() -> None:
    Path("/proc/sys/vm/drop_caches").write_text("3")


def sectors(path: str) -> int:
    return int(run("blockdev", "--getsz", path))


def named(options: str, word: str) -> str:
    """Options of a table's line, with a word for the origin, unless it is empty."""
    count, *others = options.split()
    return " ".join([str(int(count) + 2), *others, "origin_id", word]) if word else options


@dataclass
class Cache:
    """/dev/mapper/c."""

    origin: str
    ssd: str
    block: int
    ways: int

    path = "/dev/mapper/c"

    def line(self, mode: str, policy: str = "lru", options: str = "0") -> str:
        return (
            f"0 {sectors(self.origin)} setcache {self.origin} {self.ssd}"
            f" {self.block} {self.ways} {mode} {policy} {options}"
        )

    def create(self, mode: str, policy: str = "lru", options: str = "0") -> None:
        dm("create", "c", "--table", self.line(mode, policy, options))

    def tell(self, *words: str) -> None:
        dm("message", "c", "0", *words)

    def status(self) -> dict[str, str]:
        return status_of(dm("status", "c"))

    def count(self, name: str) -> int:
        return int(self.status()[name])

    def again(self, line: str | None = None) -> dict[str, str]:
        """Suspend and resume, with another line if one is given; the status between, when
        nothing is under way. Counters begin anew."""
        dm("suspend", "c")
        status = self.status()
        self.tell("clear_stats")
        if line:
            dm("load", "c", "--table", line)
        dm("resume", "c")
        return status

    def clean(self) -> None:
        """All dirty blocks to the origin."""
        self.tell("clean")
        for _ in range(2000):
            if not self.count("dirty"):
                # What reads have brought may still be on its way to the SSD.
                time.sleep(0.1)
                return
            time.sleep(0.02)
        raise AssertionError("it is never clean")

    def remove(self) -> None:
        dm("remove", "c")


BLOCK: Final = 4096


class Raw:
    """A device, by blocks of 4 KiB, with direct I/O; and what was written there."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, 64 * BLOCK)
        self.version = 0
        self.written: dict[int, bytes] = {}
        self.failed: dict[int, bytes] = {}

    def close(self) -> None:
        os.close(self.fd)

    def write(self, block: int, count: int = 1, *, part: bool = False) -> bool:
        """Whether it went well; then its content is known, else it is in `failed`, and that of
        before may be there, too.

        `part`: only the first sector of each.
        """
        self.version += 1
        new = {
            one: struct.pack("<QQ", one, self.version) * (BLOCK // 16)
            for one in range(block, block + count)
        }
        if part:
            new = {
                one: data[:512] + self.written.get(one, bytes(BLOCK))[512:]
                for one, data in new.items()
            }
        try:
            for one, data in new.items() if part else {block: b"".join(new.values())}.items():
                piece = data[:512] if part else data
                self.buffer[: len(piece)] = piece
                os.pwritev(self.fd, [memoryview(self.buffer)[: len(piece)]], one * BLOCK)
        except OSError:
            self.failed |= new
            return False
        self.written |= new
        return True

    def read(self, block: int, count: int = 1) -> list[bytes] | None:
        """Blocks, or None if that failed."""
        view = memoryview(self.buffer)[: count * BLOCK]
        try:
            assert os.preadv(self.fd, [view], block * BLOCK) == len(view)
        except OSError:
            return None
        return [bytes(view[at : at + BLOCK]) for at in range(0, len(view), BLOCK)]

    def good(self, block: int, count: int = 1) -> bool:
        """Whether they can be read.

        Raises:
            AssertionError: they are not what was written last.
        """
        found = self.read(block, count)
        for i, data in enumerate(found or []):
            wanted = self.written.get(block + i, bytes(BLOCK))
            assert data == wanted, f"block {block + i} reads {data[:16]!r}, not {wanted[:16]!r}"
        return found is not None

    def flush(self) -> bool:
        try:
            os.fsync(self.fd)
        except OSError:
            return False
        return True

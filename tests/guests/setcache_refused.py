# SPDX-License-Identifier: GPL-2.0-only
"""What is refused, and what the kernel then says; and that nothing is lost by it. Run in the guest,
with the standard library alone. Prints `done`."""

import fcntl
import struct
from typing import Final

from tests.guests.setcache_guest import (
    BLOCK,
    DIRTYING,
    Cache,
    Raw,
    disk,
    dm,
    dm_fails,
    fault,
    kernel_log,
    sectors,
)
from tests.guests.setcache_lost import empty, restore

ORIGIN: Final = 16384  # sectors
SSD: Final = 6144
BLKDISCARD: Final = 0x1277

GEOMETRY: Final = "block: a power of two, 1 to 128 sectors, no less than a logical block"
WAYS: Final = "associativity: 16 to 4096, a power of two"
OPTION: Final = "an option is not known, has no value, or one out of range"
USAGE: Final = "usage: ORIGIN SSD BLOCK ASSOC MODE POLICY [#WORDS [OPTION VALUE]...]"
LINES: Final = {
    "/dev/slow /dev/fast 3 64 writeback lru": GEOMETRY,
    "/dev/slow /dev/fast 256 64 writeback lru": GEOMETRY,
    "/dev/slow /dev/fast 0 64 writeback lru": GEOMETRY,
    "/dev/slow /dev/fast 4k 64 writeback lru": GEOMETRY,
    "/dev/slow /dev/fast 8 8 writeback lru": WAYS,
    "/dev/slow /dev/fast 8 8192 writeback lru": WAYS,
    "/dev/slow /dev/fast 8 100 writeback lru": WAYS,
    "/dev/slow /dev/fast 8 64 writebehind lru": "mode: writeback, writethrough, writearound,",
    "/dev/slow /dev/fast 8 64 writeback mru": "policy: fifo, lru or random",
    "/dev/slow /dev/fast 8 64 writeback lru 2 set_high 101": OPTION,
    "/dev/slow /dev/fast 8 64 writeback lru 2 set_high -1": OPTION,
    "/dev/slow /dev/fast 8 64 writeback lru 2 set_height 1": OPTION,
    "/dev/slow /dev/fast 8 64 writeback lru 2 clean_ios 0": OPTION,
    "/dev/slow /dev/fast 8 64 writeback lru 1 set_high": OPTION,
    "/dev/slow /dev/fast 8 64 writeback lru 0 set_high 1": OPTION,
    "/dev/slow /dev/fast 8 64 writeback lru x": "the number of options is wrong",
    "/dev/slow /dev/fast 8 64 writeback lru 4 set_high 1": "the number of options is wrong",
    "/dev/slow /dev/fast 8 64 writeback lru 4 set_high 10 set_low 90": "a low mark is above",
    "/dev/slow /dev/fast 8 64 writeback lru 2 dirty_high 10": "a low mark is above",
    "/dev/slow /dev/fast 8 64 writeback": USAGE,
    "/dev/none /dev/fast 8 64 writeback lru": "cannot open the origin",
    "/dev/slow /dev/none 8 64 writeback lru": "cannot open the SSD",
    "/dev/slow /dev/slow 8 64 writeback lru": "origin and SSD are the same device",
    "/dev/slow /dev/fast 128 128 writeback lru": "the SSD is too small for one set",
}


def refused(said: str, *words: str) -> None:
    found = dm_fails(*words)
    assert said in found, f"{words}: {found!r}, not {said!r}"


def lines() -> None:
    length = sectors("/dev/slow")
    for line, said in LINES.items():
        refused(f"setcache: {said}", "create", "c", "--table", f"0 {length} setcache {line}")
    line = f"0 {length} setcache /dev/slow /dev/fast 8 64 writeback lru"
    refused("the table must not be read-only", "create", "c", "--readonly", "--table", line)


def messages(cache: Cache) -> None:
    cache.create("writeback")
    table = dm("table", "c")
    for words in (
        ("dance",),
        ("clean", "now"),
        ("mode",),
        ("mode", "fast"),
        ("policy", "mru"),
        ("set_high", "101"),
        ("set_high", "14"),
        ("set_low", "21"),
        ("dirty_low", "101"),
        ("dirty_high", "89"),
        ("age_ms", "soon"),
        ("commit_ms", "0"),
        ("set_high", "1", "2"),
    ):
        refused("message not understood, or out of range", "message", "c", "0", *words)
    assert dm("table", "c") == table
    cache.remove()


def sizes() -> None:
    """Both devices as linear ones that grow and shrink. The cache is full of dirty blocks."""
    dm("create", "o", "--table", f"0 {ORIGIN} linear /dev/slow 0")
    dm("create", "f", "--table", f"0 {SSD} linear /dev/fast 0")
    cache = Cache("/dev/mapper/o", "/dev/mapper/f", 8, 64)
    options = "4 set_high 100 origin_id o"
    cache.create("writeback", "lru", options)
    raw = Raw(cache.path)
    for at in range(0, 256, 16):
        assert raw.write(at, 16)
    raw.close()
    good = cache.line("writeback", "lru", options)

    def set_size(name: str, below: str, size: int) -> None:
        dm("suspend", name)
        dm("load", name, "--table", f"0 {size} linear {below} 0")
        dm("resume", name)
        assert sectors(f"/dev/mapper/{name}") == size

    def there() -> None:
        raw.fd = Raw(cache.path).fd
        for at in range(0, 256, 16):
            assert raw.good(at, 16)
        raw.close()
        assert cache.count("dirty") == 256

    other = {
        "too long": (
            good.replace(f"0 {ORIGIN} ", f"0 {ORIGIN + 8} ", 1),
            "as long as the origin",
        ),
        "too short": (good.replace(f"0 {ORIGIN} ", f"0 {ORIGIN - 8} ", 1), "as long as the origin"),
        "blocks": (good.replace(" 8 64 ", " 16 64 "), "made with another block size"),
        "ways": (good.replace(" 8 64 ", " 8 32 "), "made with another associativity"),
    }
    # On the live cache: the old line goes on.
    for line, said in other.values():
        dm("suspend", "c")
        log = len(kernel_log())
        try:
            dm("load", "c", "--table", line)
            dm("resume", "c")
            raise RuntimeError(f"taken: {line}")
        except AssertionError:
            assert said in kernel_log()[log:], kernel_log()[log:]
        dm("load", "c", "--table", good)
        dm("resume", "c")
        there()
    # And when it starts.
    cache.remove()
    for line, said in other.values():
        refused(said, "create", "c", "--table", line)
    set_size("o", "/dev/slow", ORIGIN - 64)
    refused("as long as the origin", "create", "c", "--table", good)
    refused("the origin has changed its size", "create", "c", "--table",
            cache.line("writeback", "lru", options))  # fmt: skip
    set_size("o", "/dev/slow", ORIGIN + 64)
    refused("as long as the origin", "create", "c", "--table", good)
    refused("the origin has changed its size", "create", "c", "--table",
            cache.line("writeback", "lru", options))  # fmt: skip
    set_size("o", "/dev/slow", ORIGIN)
    for size in (SSD - 64, SSD + 64):
        set_size("f", "/dev/fast", size)
        refused("the SSD has changed its size", "create", "c", "--table", good)
    set_size("f", "/dev/fast", SSD)
    # Nothing of this has changed it.
    dm("create", "c", "--table", good)
    there()
    cache.clean()
    cache.remove()
    dm("remove", "o")
    dm("remove", "f")


def discards(cache: Cache) -> None:
    """Of dirty blocks: after a power cut what is not discarded is there, what is does not count."""
    for mode in DIRTYING:
        empty(cache.ssd)
        cache.create(mode, "lru", "2 set_high 100")
        raw = Raw(cache.path)
        for at in range(0, 256, 16):
            assert raw.write(at, 16)
        assert raw.flush()
        # From the middle of block 10 to the middle of block 40, and what is in several sets.
        for first, last in ((10.5, 40.5), (60, 200)):
            where = struct.pack("QQ", int(first * BLOCK), int((last - first) * BLOCK))
            fcntl.ioctl(raw.fd, BLKDISCARD, where)
        gone = [*range(11, 40), *range(60, 200)]
        assert cache.count("discarded") == len(gone)
        assert cache.count("dirty") == 256 - len(gone)
        # One is written again; the other cuts the power at once.
        assert raw.write(20)
        if mode == "writeback":
            assert raw.flush()
            gone.remove(20)
        raw.close()
        for name in ("slow", "fast"):
            fault(name, "state", "cut")
        cache.remove()
        for name in ("slow", "fast"):
            fault(name, "state", "ok")
        cache.create(mode, "lru", "2 set_high 100")
        assert cache.count("dirty") == 256 - len(gone)
        raw.fd = Raw(cache.path).fd
        for block in range(256):
            if block in (10, 40):
                # The half that was discarded may be anything.
                half = slice(0, BLOCK // 2) if block == 10 else slice(BLOCK // 2, BLOCK)
                (found,) = raw.read(block) or [b""]
                assert found[half] == raw.written[block][half], f"block {block}"
            elif block not in gone:
                assert raw.good(block)
        raw.close()
        cache.remove()


def changed(cache: Cache) -> None:
    """The origin, behind the back of a cache with dirty blocks that was stopped in order."""
    options = "2 set_high 100"
    empty(cache.ssd)
    cache.create("writeback", "lru", options)
    raw = Raw(cache.path)
    for at in range(0, 256, 16):
        assert raw.write(at, 16)
    raw.close()
    cache.remove()
    # Seen, wherever it is, unless one insists.
    origin = Raw(cache.origin)
    assert origin.write(100)
    line = cache.line("writeback", "lru", options)
    refused("dirty blocks, but the origin has changed", "create", "c", "--table", line)
    cache.create("writeback", "lru", "4 set_high 100 accept_origin 1")
    cache.remove()
    assert origin.write(15)
    origin.close()
    refused("dirty blocks, but the origin has changed", "create", "c", "--table", line)
    cache.create("writeback", "lru", "4 set_high 100 accept_origin 1")
    assert cache.count("dirty") == 256
    raw.fd = Raw(cache.path).fd
    for at in range(0, 256, 16):
        assert raw.good(at, 16)
    raw.close()
    cache.clean()
    cache.remove()


def identities() -> None:
    """A disk that nothing names has no dirty blocks, unless the line gives it a name."""
    # What LVM has on the disk as well, and so has a copy.
    dm("create", "o", "--uuid", "LVM-o", "--table", f"0 {ORIGIN} linear /dev/slow 0")
    cache = Cache("/dev/mapper/o", "/dev/fast", 8, 64)
    said = "no identity of the origin"
    for mode in DIRTYING:
        refused(said, "create", "c", "--table", cache.line(mode))
        cache.create("writethrough")
        refused(said, "message", "c", "0", "mode", mode)
        assert cache.status()["mode"] == "writethrough"
        cache.remove()
    for word in ("", "a\tb", "\xe4", "x" * 101):
        refused("setcache: ", "create", "c", "--table",
                cache.line("writeback", "lru", f"2 origin_id {word}"))  # fmt: skip
    # Named, it stays so, and nobody else is it.
    word = "x" * 100
    cache.create("writeback", "lru", f"2 origin_id {word}")
    assert dm("table", "c").endswith(f" 2 origin_id {word}\n")
    refused("message not understood", "message", "c", "0", "origin_id", "y")
    cache.remove()
    other = cache.line("writethrough", "lru", "2 origin_id y")
    refused(f"another origin, id:{word}, not of id:y", "create", "c", "--table", other)
    refused("not of one without an identity", "create", "c", "--table", cache.line("readonly"))
    cache.create("writeback", "lru", f"2 origin_id {word}")
    cache.remove()
    dm("remove", "o")


def damaged(cache: Cache) -> None:
    line = cache.line("writeback")
    empty(cache.ssd)
    restore(cache.ssd, b"some file system".ljust(1 << 16, b"x"))
    refused("all are damaged", "create", "c", "--table", line)
    empty(cache.ssd)
    dm("create", "c", "--table", line)
    cache.remove()
    empty_first(cache)
    fault("fast", "errors", "8192 8388608 write")
    refused("cannot format the SSD", "create", "c", "--table", line)
    fault("fast", "errors", "none")
    dm("create", "c", "--table", line)
    cache.remove()
    for kind, said in (("read", "cannot read the records"), ("write", "cannot write")):
        place = "8192 4096 read" if kind == "read" else "0 8192 write"
        fault("fast", "errors", place)
        refused(said, "create", "c", "--table", line)
        fault("fast", "errors", "none")
    fault("slow", "errors", "0 4096 read")
    refused("cannot read the origin", "create", "c", "--table", line)
    fault("slow", "errors", "none")
    dm("create", "c", "--table", line)
    cache.remove()


def empty_first(cache: Cache) -> None:
    """Zeros where the superblocks are."""
    size = sectors(cache.ssd) * 512
    for at, length in ((0, 8192), (size // 4096 * 4096 - 4096, 4096)):
        restore(cache.ssd, bytes(length), at)


def main() -> None:
    cache = Cache(disk("slow", "16m", 300_000), disk("fast", "8m", 100_000), 8, 64)
    lines()
    messages(cache)
    empty(cache.ssd)
    identities()
    empty(cache.ssd)
    sizes()
    changed(cache)
    damaged(cache)
    discards(cache)
    print("done")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only
"""The data of the virtual disk: stores, losses of its volatile cache, and faults.

The guest leaves images of the disk. Their allowed content is computed here, from the writes and
flushes, and not from the disk's own statistics.
"""

import errno
import random
import shutil

import pytest

from tests.lab.guest import BARE_PYTHON, Guest, Left
from tests.lab.load import (
    EINVAL,
    ERANGE,
    LATE,
    MS,
    SECOND,
    STATS,
    VDISK,
    WAIT,
    Load,
    numbers,
    results,
    run,
    save,
    script,
    tenant,
    text,
    vdisk,
)
from tests.lab.test_blkload_life import START_AND_GO, Careful, careful

__all__ = ["careful"]

FAULT = f"{VDISK}/disk0/fault"
ENODEV, ENODATA, ENOSPC = text(errno.ENODEV), text(errno.ENODATA), text(errno.ENOSPC)
EIO = text(errno.EIO)

NONE = (
    "Q=/sys/block/disk0/queue; echo none > $Q/scheduler; echo 2 > $Q/nomerges;"
    " echo 0 > $Q/wbt_lat_usec"
)
KEEPS: Load = {"store": "memory", "size": "8m"}
CACHED: Load = {**KEEPS, "write_cache": 1}
MIB = 1 << 20


def _stats(to: str = "stats") -> str:
    return f"cat {STATS}/disk0/stats > /run/isoblk/{to}"


def _image(to: str = "image") -> str:
    """Keep what the disk holds. The page cache is left out."""
    return f"dd if=/dev/disk0 of=/run/isoblk/{to} bs=1M iflag=direct 2> /dev/null"


def _content(left: Left, name: str = "image") -> bytes:
    return (left.dir / name).read_bytes()


def _power(state: str) -> str:
    return f"echo {state} > {FAULT}/state"


# Runs in the guest: one line a write, trim or flush, one after the other. Byte k of a write is its
# number, 1..255, so that the image tells of each byte which write was the last.
_STEPS = """
import fcntl, mmap, os, struct, sys
fd = os.open("/dev/disk0", os.O_RDWR | os.O_DIRECT)
for line in sys.stdin:
    what, *rest = line.split()
    if what == "flush":
        os.fsync(fd)
        continue
    start, length, value = map(int, rest)
    if what == "trim":
        fcntl.ioctl(fd, 0x1277, struct.pack("QQ", start, length))
        continue
    data = mmap.mmap(-1, length)
    data.write(bytes([value]) * length)
    assert os.pwrite(fd, data, start) == length
"""


def _do(steps: list[tuple[str, int, int, int]]) -> str:
    """Lines of a script that does the steps: write or trim START LENGTH VALUE, or flush."""
    lines = "\n".join(" ".join(map(str, step)) for step in steps)
    program = f"cat > /run/steps.py << 'END'\n{_STEPS}END\n"
    return f"{program}{BARE_PYTHON} /run/steps.py << 'END'\n{lines}\nEND"


def _random_steps(seed: int, count: int, size: int, block: int) -> list[tuple[str, int, int, int]]:
    rnd = random.Random(seed)
    steps = []
    for i in range(count):
        length = block * rnd.choice([1, 1, 2, 3, 8, 9, 16, 40])
        start = block * rnd.randrange((size - length) // block + 1)
        what = rnd.choices(["write", "trim", "flush"], [90, 10, 2])[0]
        value = rnd.choice([0, 1 + i % 255, 1 + i % 255])
        steps.append((what, start, length, 0 if what == "trim" else value))
    return steps


def _apply(steps: list[tuple[str, int, int, int]], size: int) -> bytes:
    image = bytearray(size)
    for what, start, length, value in steps:
        if what != "flush":
            image[start : start + length] = bytes([value]) * length
    return bytes(image)


# Near the epoch, at which the guest's clock begins, a file that was deleted looks damaged.
MKFS = "PATH=$PATH:/sbin:/usr/sbin; date -s @1700000000 > /dev/null; mkfs.ext4 -q /dev/disk0"


# -- contents --


@pytest.mark.parametrize("block", [512, 4096])
@pytest.mark.parametrize("cache", [0, 1])
def test_a_read_returns_the_last_write(careful: Careful, block: int, cache: int) -> None:
    size = MIB
    steps = _random_steps(block, 400, size, block)
    disk: Load = {"store": "memory", "size": size, "logical_block_size": block}
    left = careful.run(vdisk(**disk, write_cache=cache), _do(steps), _image(), _stats())
    assert _content(left) == _apply(steps, size)


def test_zeros_take_no_memory_and_trimmed_blocks_are_free(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(**KEEPS),
            _do([("write", 0, MIB, 7), ("write", 2 * MIB, MIB, 0), ("write", 4096, 4096, 0)]),
            _stats("written"),
            _do([("write", 0, 512, 0), ("write", 512, 3584, 0)]),
            _stats("piecewise"),
            _do([("trim", 8192, 4096, 0), ("trim", 12288 + 512, 4096 - 512, 0)]),
            _stats("trimmed"),
            _do([("trim", 0, 8 * MIB, 0)]),
            _stats("empty"),
            _image(),
        )
    )
    held = [
        numbers(left.read(name))["stored_bytes"]
        for name in ("written", "piecewise", "trimmed", "empty")
    ]
    assert held == [MIB - 4096, MIB - 8192, MIB - 3 * 4096, 0]
    assert _content(left) == bytes(8 * MIB)


def test_a_new_disk_is_empty(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(**KEEPS),
            _do([("write", 0, MIB, 7)]),
            f"echo 0 > {VDISK}/disk0/power; echo 1 > {VDISK}/disk0/power",
            _image(),
        )
    )
    assert _content(left) == bytes(8 * MIB)


@pytest.mark.parametrize("cache", [0, 1])
def test_a_random_load_verifies_its_writes(careful: Careful, cache: int) -> None:
    left = careful.run(
        vdisk(store="memory", size="64m", write_cache=cache),
        tenant(
            "small", rw="randrw", bssplit="512/40:1k/20:4k/30:20k/10", verify=1, iodepth=32,
            size="8m", number_ios=4000, fsync=50,
        ),
        tenant(
            "large", rw="randrw", bs="256k", verify=1, iodepth=8, offset="8m", size="48m",
            number_ios=500, fua=1,
        ),
        run("results"),
        _stats(),
    )  # fmt: skip
    for name, done in results(left, "results").items():
        assert done.error == 0
        for op in done.ops.values():
            assert (op.errors, op.verify_errors) == (0, 0), name
    stats = numbers(left.read("stats"))
    assert stats["failed_requests"] == 0
    assert stats["stored_bytes"] > 8 * MIB


@pytest.mark.parametrize("model", ["flash", "disk"])
def test_every_model_stores_and_loses_by_the_same_rules(careful: Careful, model: str) -> None:
    left = careful.run(
        vdisk(model=model, store="memory", size="128m", write_cache=1),
        tenant("a", rw="randrw", bs="8k", verify=1, iodepth=16, size="16m", number_ios=1000),
        tenant("f", rw="write", fua=1, verify=1, offset="16m", size="1m", number_ios=256),
        tenant("d", rw="randtrim", bs="64k", offset="32m", number_ios=100),
        run("results"),
        _do([("write", 64 * MIB, 4 * MIB, 5), ("flush", 0, 0, 0), ("write", 68 * MIB, MIB, 6)]),
        _power("cut"),
        _power("ok"),
        _image(),
        _stats(),
    )
    for name, done in results(left, "results").items():
        assert done.error == 0
        for op in done.ops.values():
            assert (op.errors, op.verify_errors) == (0, 0), name
    image = _content(left)
    assert all(any(image[at : at + 4096]) for at in range(16 * MIB, 17 * MIB, 4096))
    assert image[64 * MIB : 68 * MIB] == bytes([5]) * 4 * MIB
    stats = numbers(left.read("stats"))
    assert stats["in_service"] == stats["waiting"] == stats["failed_requests"] == 0


def test_a_disk_that_stores_is_as_fast_as_one_that_does_not(guest: Guest) -> None:
    said = []
    for store in ("none", "memory"):
        left = guest.run(
            script(
                vdisk(store=store, size="64m", servers=3, write_cache=1, read_bps="200m"),
                tenant("a", rw="randrw", bssplit="4k/50:64k/50", iodepth=16, number_ios=3000),
                tenant("b", rw="randtrim", bs="64k", iodepth=2, number_ios=500),
                tenant("c", rw="write", bs="8k", fsync=3, fua=1, number_ios=500),
                run("results"),
            )
        )
        said.append(left.read("results"))
    assert said[0] == said[1]


def test_a_store_that_memory_cannot_hold_is_full_and_can_be_emptied(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(store="memory", size="1g"),
            "try dd if=/dev/urandom of=/dev/disk0 bs=1M oflag=direct > /run/said",
            _stats("full"),
            "blkdiscard /dev/disk0",
            _stats("empty"),
            "try dd if=/dev/urandom of=/dev/disk0 bs=1M count=8 oflag=direct >> /run/said",
            "cat /run/said > /run/isoblk/said",
        ),
        memory_mib=128,
    )
    # Half of the memory.
    full, empty = numbers(left.read("full")), numbers(left.read("empty"))
    assert left.read("said").splitlines()[-1] == "ok"
    assert ENOSPC in left.read("said")
    assert 40 * MIB < full["stored_bytes"] < 64 * MIB
    assert empty["stored_bytes"] == 0


def test_writes_that_find_no_memory_are_tried_again(careful: Careful) -> None:
    fail = "/sys/kernel/debug/failslab"
    left = careful.run(
        vdisk(store="memory", size="64m"),
        # Only allocations that must not sleep, which are those of the disk.
        f"echo 0 > {fail}/verbose; echo -1 > {fail}/times; echo 3 > {fail}/probability",
        tenant("a", rw="randrw", bssplit="512/50:16k/50", verify=1, number_ios=2000),
        run("results"),
        f"echo 0 > {fail}/probability",
        _stats(),
    )
    done, stats = results(left, "results")["a"], numbers(left.read("stats"))
    assert (done.error, stats["failed_requests"]) == (0, 0)
    assert all(op.errors == op.verify_errors == 0 for op in done.ops.values())
    # With nothing else to wait for, the next try is 3 ms later.
    assert done.ops["write"].lat_max_ns > 3 * MS


@pytest.mark.long
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_verifies_its_writes(careful: Careful) -> None:
    fio = (
        "fio --clocksource=clock_gettime --filename=/dev/disk0 --direct=1 --ioengine=libaio"
        " --verify=crc32c --verify_fatal=1 --iodepth=16 --minimal"
    )
    left = careful.run(
        vdisk(store="memory", size="64m", write_cache=1),
        f"{fio} --name=a --rw=randwrite --bs=4k --size=4m --fsync=64 > /run/isoblk/said",
        f"{fio} --name=b --rw=randrw --bsrange=512-32k --size=4m >> /run/isoblk/said",
        f"{fio} --name=c --rw=write --bs=128k --size=8m >> /run/isoblk/said",
    )
    assert len(left.read("said").splitlines()) == 3


@pytest.mark.parametrize("cache", [0, 1])
def test_ext4_is_whole_after_use(careful: Careful, cache: int) -> None:
    left = careful.run(
        vdisk(store="memory", size="96m", write_cache=cache),
        MKFS,
        "mkdir /run/m",
        "mount -o discard /dev/disk0 /run/m; mkdir /run/m/d",
        "for i in 1 2 3 4 5 6 7 8 9 10; do"
        " head -c $((i * 300000)) /dev/urandom > /run/m/d/$i; done",
        "rm /run/m/d/3 /run/m/d/7; sync; sha256sum /run/m/d/* > /run/sums",
        "umount /run/m; fsck.ext4 -fn /dev/disk0 > /run/isoblk/fsck",
        "echo 3 > /proc/sys/vm/drop_caches; mount /dev/disk0 /run/m",
        "sha256sum -c /run/sums > /run/isoblk/sums; fstrim /run/m; umount /run/m",
        "fsck.ext4 -fn /dev/disk0 >> /run/isoblk/fsck",
        _stats(),
    )
    assert left.read("sums").count(": OK\n") == 8
    stats = numbers(left.read("stats"))
    assert (stats["flush_requests"] > 0) == cache
    assert stats["failed_requests"] == 0
    # It holds the files, a journal, and little more.
    assert 45 * 300_000 < stats["stored_bytes"] < 40 * MIB


# -- the volatile cache --


def test_flush_and_fua_reach_a_disk_with_a_volatile_cache_only(guest: Guest) -> None:
    for cache, mode, fua in ((0, "write through", "0"), (1, "write back", "1")):
        left = guest.run(
            script(
                vdisk(write_cache=cache, flush_ns=500_000),
                NONE,
                "cat $Q/write_cache $Q/fua > /run/isoblk/seen",
                tenant("a", rw="write", fsync=10, number_ios=100),
                run("results"),
                _stats(),
            )
        )
        assert left.read("seen").splitlines() == [mode, fua]
        flush = results(left, "results")["a"].ops["flush"]
        assert flush.ios == 10
        stats = numbers(left.read("stats"))
        assert stats["flush_requests"] == 10 * cache
        took = 500_000 * cache
        assert took <= flush.lat_min_ns <= flush.lat_max_ns <= took + 2 * LATE


def test_flush_time_may_change_while_it_runs(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(write_cache=1, flush_ns=500_000),
            f"echo 900000 > {VDISK}/disk0/flush_ns",
            tenant("a", rw="write", fsync=1, number_ios=10),
            run("results"),
        )
    )
    flush = results(left, "results")["a"].ops["flush"]
    assert 900_000 <= flush.lat_min_ns <= flush.lat_max_ns <= 900_000 + 2 * LATE


# -- jitter --


def test_jitter_spreads_service_times_evenly_and_repeatably(guest: Guest) -> None:
    def lat(jitter: int, seed: int) -> str:
        left = guest.run(
            script(
                vdisk(servers=4, read_ns=100_000, jitter=jitter, seed=seed),
                NONE,
                tenant("a", rw="randread", iodepth=4, number_ios=8000),
                run("results"),
            )
        )
        op = results(left, "results")["a"].op
        assert 100 * (1000 - jitter) <= op.lat_min_ns
        assert op.lat_max_ns <= 100 * (1000 + jitter) + LATE
        assert op.lat_sum_ns / op.ios == pytest.approx(100_000 + LATE / 2, rel=0.01)
        if jitter:
            # The middle half of the range has half of the requests.
            inner = range(100_000 - 50 * jitter, 100_000 + 50 * jitter)
            middle = sum(count for upper, count in op.lat.items() if upper in inner)
            assert middle / op.ios == pytest.approx(0.5, abs=0.05)
            assert op.lat_max_ns - op.lat_min_ns > 190 * jitter
        return left.read("results")

    assert lat(250, 1) == lat(250, 1)
    assert lat(250, 1) != lat(250, 2)
    assert lat(0, 1) == lat(0, 2)


# -- power cuts --


def _may_be(
    steps: list[tuple[str, int, int, int]], size: int, block: int
) -> list[set[tuple[int, int]]]:
    """For each block its allowed content after a cut at the end: the number of the step that wrote
    it, -1 for none, and the value."""
    may: list[set[tuple[int, int]]] = [{(-1, 0)} for _ in range(size // block)]
    last = [(-1, 0)] * (size // block)
    for number, (what, start, length, value) in enumerate(steps):
        if what == "flush":
            may = [{newest} for newest in last]
            continue
        for i in range(start // block, (start + length) // block):
            may[i].add((number, value))
            last[i] = (number, value)
    return may


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("block", [512, 4096])
def test_a_cut_leaves_an_image_that_a_real_disk_could_have(
    careful: Careful, block: int, seed: int
) -> None:
    size, steps = MIB, _random_steps(seed, 300, MIB, block)
    # The last flush is some way before the end.
    steps.insert(220, ("flush", 0, 0, 0))
    steps = [step for i, step in enumerate(steps) if i <= 220 or step[0] != "flush"]
    left = careful.run(
        vdisk(**CACHED | {"size": size, "logical_block_size": block, "seed": seed}),
        _do(steps),
        _stats("before"),
        _power("cut"),
        "try dd if=/dev/disk0 of=/dev/null iflag=direct bs=4k count=1 > /run/isoblk/said",
        _power("ok"),
        _image(),
        _stats(),
        # A disk that has come back is a good one.
        _do([("write", 0, size, 77), ("flush", 0, 0, 0)]),
        _power("cut"),
        _power("ok"),
        _image("after"),
    )
    assert ENODEV in left.read("said")
    image, may = _content(left), _may_be(steps, size, block)
    for i, choices in enumerate(may):
        held = image[i * block : (i + 1) * block]
        assert held in {bytes([value]) * block for _, value in choices}, i
    stats = numbers(left.read("stats"))
    unstable = numbers(left.read("before"))["unstable_writes"]
    assert unstable == sum(what != "flush" for what, *_ in steps[220:])
    assert stats["cut_lost"] + stats["cut_torn"] + stats["cut_kept"] == unstable
    assert all(stats[f"cut_{fate}"] > 0 for fate in ("lost", "torn", "kept"))
    # It was no accident that all is well: with all kept or all lost it would not be the same.
    assert image != _apply(steps, size)
    assert image != _apply(steps[:220], size)
    assert _content(left, "after") == bytes([77]) * size


def test_the_image_after_a_cut_is_a_function_of_the_seed(guest: Guest) -> None:
    def image(seed: int) -> bytes:
        left = guest.run(
            script(
                vdisk(**CACHED | {"size": MIB, "seed": seed}),
                _do(_random_steps(1, 100, MIB, 512)),
                _power("cut"),
                _power("ok"),
                _image(),
            )
        )
        return _content(left)

    assert image(1) == image(1)
    assert image(1) != image(2)


def test_a_torn_write_keeps_its_front_up_to_a_block(guest: Guest) -> None:
    writes = [("write", i * 65536, 65536, 9) for i in range(64)]
    left = guest.run(
        script(
            vdisk(**CACHED | {"logical_block_size": 1024}),
            _do(writes),
            _power("cut"),
            _power("ok"),
            _image(),
            _stats(),
        )
    )
    kept = []
    for _, start, length, value in writes:
        held = _content(left)[start : start + length]
        kept.append(held.count(value))
        assert held == bytes([value]) * kept[-1] + bytes(length - kept[-1])
        assert kept[-1] % 1024 == 0
    stats = numbers(left.read("stats"))
    assert kept.count(0) == stats["cut_lost"] > 8
    assert kept.count(65536) == stats["cut_kept"] > 8
    assert len(set(kept)) > 10


def test_fua_is_never_lost_even_above_older_unflushed_writes(careful: Careful) -> None:
    left = careful.run(
        vdisk(**CACHED),
        _do([("write", 0, 2 * MIB, 7)]),
        # Writes of blkload hold no 7 all over.
        tenant("a", rw="write", fua=1, verify=1, size="1m", number_ios=256, iodepth=4),
        tenant("b", rw="write", verify=1, offset="1m", size="1m", number_ios=256, iodepth=4),
        run("results"),
        _power("cut"),
        _power("ok"),
        _image(),
    )
    image = _content(left)
    old = [
        all(held in (bytes([7]) * 512, bytes(512)) for held in _sectors(image, i))
        for i in range(512)
    ]
    assert not any(old[:256])
    assert any(old[256:])
    assert not all(old[256:])


def _sectors(image: bytes, block: int) -> list[bytes]:
    return [image[at : at + 512] for at in range(block * 4096, (block + 1) * 4096, 512)]


def test_without_a_volatile_cache_a_cut_loses_only_requests_in_flight(careful: Careful) -> None:
    left = careful.run(
        vdisk(**KEEPS, servers=1, write_ns=1_000_000),
        NONE,
        tenant("a", rw="write", verify=1, size="8m", iodepth=64, number_ios=2048),
        # Commands take virtual time, a few ms at most.
        f"{START_AND_GO}; sleep 0.5; {_power('cut')}; {WAIT}",
        save("results"),
        _stats(),
        _power("ok"),
        _image(),
    )
    done, stats = results(left, "results")["a"], numbers(left.read("stats"))
    assert done.error == -errno.ENODEV
    image, ios = _content(left), done.op.ios
    assert 400 < ios < 800
    empty = [image[i * 4096 : (i + 1) * 4096] == bytes(4096) for i in range(2048)]
    # One server, in order: those that ended are the first ones.
    assert not any(empty[:ios])
    assert all(empty[ios + 64 :])
    flying = stats["cut_lost"] + stats["cut_torn"] + stats["cut_kept"]
    assert 63 <= flying <= 64
    assert stats["cut_lost"] > 5
    assert any(empty[ios : ios + 64])
    assert stats["stored_bytes"] == 4096 * empty.count(False)


def test_the_cache_is_finite(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(store="memory", size="160m", write_cache=1),
            _do([("write", i * MIB, MIB, 1 + i) for i in range(160)]),
            _stats(),
            _power("cut"),
            _power("ok"),
            _image(),
        ),
        memory_mib=1024,
    )
    assert numbers(left.read("stats"))["unstable_writes"] == 64
    image = _content(left)
    for i in range(96):
        assert image[i * MIB : (i + 1) * MIB] == bytes([1 + i]) * MIB
    assert 0 in image[96 * MIB :]


def test_cuts_under_load_end_every_request(careful: Careful) -> None:
    left = careful.run(
        vdisk(**CACHED, servers=4),
        tenant("a", rw="randrw", iodepth=32, bssplit="512/50:16k/50", fsync=20, runtime=10),
        tenant("b", rw="randtrim", bs="32k", iodepth=4, runtime=10),
        tenant("c", rw="write", bs="8k", fua=1, iodepth=2, runtime=10),
        *(
            line
            for i in range(6)
            for line in (
                START_AND_GO,
                f"sleep 0.0{i + 1}; {_power('cut' if i % 3 else 'lost')}; {WAIT}",
                save(f"r{i}"),
                _power("ok"),
            )
        ),
        _stats(),
    )
    for i in range(6):
        for name, done in results(left, f"r{i}").items():
            assert done.error == -errno.ENODEV, (i, name)
            assert sum(op.ios for op in done.ops.values()) > 0
    stats = numbers(left.read("stats"))
    assert stats["in_service"] == stats["waiting"] == 0
    assert stats["failed_requests"] > 0


@pytest.mark.parametrize("seed", range(3))
def test_ext4_recovers_from_a_power_cut(careful: Careful, seed: int) -> None:
    left = careful.run(
        vdisk(store="memory", size="96m", write_cache=1, seed=seed),
        MKFS,
        "mkdir /run/m",
        "mount /dev/disk0 /run/m; mkdir /run/m/d",
        "for i in 1 2 3 4 5 6; do head -c $((i * 300000)) /dev/urandom > /run/m/d/$i; done",
        "sync; sha256sum /run/m/d/* > /run/sums",
        "for i in 1 2 3 4 5 6; do head -c $((i * 300000)) /dev/urandom > /run/m/new$i;"
        " mv /run/m/new$i /run/m/renamed$i; done",
        # The cut is in the middle of the writing.
        "sync & sleep 0.002",
        _power("cut"),
        "wait; umount /run/m",
        _power("ok"),
        "mount /dev/disk0 /run/m; sha256sum -c /run/sums > /run/isoblk/sums; umount /run/m",
        "fsck.ext4 -fn /dev/disk0 > /run/isoblk/fsck",
        _stats(),
    )
    assert left.read("sums").count(": OK\n") == 6
    assert numbers(left.read("stats"))["cut_lost"] > 0


# -- other faults --


def test_errors_occur_in_the_range_and_for_the_operation_that_are_set(careful: Careful) -> None:
    def read(block: int) -> str:
        return f"try dd if=/dev/disk0 of=/dev/null bs=4k skip={block} count=1 iflag=direct"

    def write(block: int) -> str:
        return f"try dd if=/dev/zero of=/dev/disk0 bs=4k seek={block} count=1 oflag=direct"

    left = careful.run(
        vdisk(**KEEPS),
        _do([("write", 0, MIB, 7)]),
        "exec 4> /run/said",
        f"put '4097 1 read' {FAULT}/errors >&4; put '8k 4k write' {FAULT}/errors >&4",
        f"put '16k 8k readwrite' {FAULT}/errors >&4; cat {FAULT}/errors >&4",
        *(f"{line} 2> /dev/null | sed 's/.*: //;q' >&4" for line in map(read, range(7))),
        *(f"{line} 2> /dev/null | sed 's/.*: //;q' >&4" for line in map(write, range(7))),
        _stats(),
        f"put none {FAULT}/errors >&4; cat {FAULT}/errors >&4",
        *(f"{line} >&4" for line in map(read, range(7))),
        _image(),
        "cat /run/said > /run/isoblk/said",
    )
    said = left.read("said").splitlines()
    assert said[:6] == [*3 * ["ok"], "4097 1 read", "8192 4096 write", "16384 8192 readwrite"]
    bad = {"read": {1, 4, 5}, "write": {2, 4, 5}}
    for kind, found in (("read", said[6:13]), ("write", said[13:20])):
        assert [one != "ok" for one in found] == [i in bad[kind] for i in range(7)], kind
        assert all(ENODATA in one for one in found if one != "ok"), found
    assert said[20:] == 8 * ["ok"]
    assert numbers(left.read("stats"))["failed_requests"] == 6
    # A write that failed has written nothing.
    image = _content(left)
    for i in range(7):
        expected = 7 if i in bad["write"] else 0
        assert image[i * 4096 : (i + 1) * 4096] == bytes([expected]) * 4096, i


def test_a_failed_request_takes_its_time(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(servers=1, read_ns=1_000_000),
            NONE,
            f"echo '0 4g read' > {FAULT}/errors",
            tenant("a", rw="randread", number_ios=100, iodepth=4),
            run("results"),
        )
    )
    done = results(left, "results")["a"]
    assert (done.op.ios, done.op.errors) == (0, 100)
    assert 100 * MS <= done.end_ns <= 100 * MS + 2 * LATE


def test_a_lost_disk_fails_everything_and_comes_back_as_it_was(careful: Careful) -> None:
    left = careful.run(
        vdisk(**CACHED, servers=1, read_ns=SECOND),
        _do([("write", 0, MIB, 7)]),
        "exec 4> /run/said",
        "(try dd if=/dev/disk0 of=/dev/null bs=4k count=1 iflag=direct status=none > /run/late) &"
        " sleep 0.5",
        f"cat {FAULT}/state >&4; put lost {FAULT}/state >&4; cat {FAULT}/state >&4",
        "try dd if=/dev/zero of=/dev/disk0 bs=4k count=1 oflag=direct status=none >&4",
        "try blkdiscard /dev/disk0 >&4; wait",
        "cat /run/late >&4",
        f"put ok {FAULT}/state >&4; echo 1000 > {VDISK}/disk0/read_ns",
        _image(),
        "cat /run/said > /run/isoblk/said",
        _stats(),
    )
    # The ioctl for trims has an error of its own.
    assert left.read("said").splitlines() == ["ok", "ok", "lost", ENODEV, EIO, ENODEV, "ok"]
    assert _content(left) == bytes([7]) * MIB + bytes(7 * MIB)
    assert numbers(left.read("stats"))["failed_requests"] >= 3


# Runs in the guest: writes of 4 KiB, with a trim, a FUA write and a flush between them, one after
# the other; then all is read. Says what each did.
_COMMANDS = """
import fcntl, mmap, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
page.write(b"x" * 4096)
def do(i):
    if i == 1:
        fcntl.ioctl(fd, 0x1277, struct.pack("QQ", 1 << 16, 4096))
    elif i == 3:
        os.fsync(fd)
    else:
        os.pwritev(fd, [page], i << 12, os.RWF_DSYNC if i == 2 else 0)
for step, args in [(do, (i,)) for i in range(6)] + [(os.preadv, (fd, [page], 0))]:
    try:
        step(*args)
        print("ok", end=" ")
    except OSError as error:
        print(error.errno, end=" ")
print()
"""


# Which of them the disk's n-th command is of: after a FUA write Linux flushes.
_COMMAND_OF = (0, 1, 2, 2, 3, 4, 5)


def test_the_nth_write_meets_its_fault_and_no_other_does(careful: Careful) -> None:
    cases = [
        (n, what)
        for what in ("error", "errors", "lost", "cut", "cut-all")
        for n in range(1, len(_COMMAND_OF) + 2)
    ]
    left = careful.run(
        *(vdisk(name, **CACHED) for name in ("disk0", "disk1")),
        f"cat > /run/commands.py << 'END'\n{_COMMANDS}END",
        *(
            f"for d in disk0 disk1; do echo ok > {VDISK}/$d/fault/state; done\n"
            f"echo '{n} {what}' > {FAULT}/nth_write\n"
            f"{BARE_PYTHON} /run/commands.py /dev/disk0 >> /run/said\n"
            f"cat {FAULT}/nth_write {FAULT}/state {VDISK}/disk1/fault/state >> /run/said\n"
            f"echo none > {FAULT}/nth_write"
            for n, what in cases
        ),
        "cat /run/said > /run/isoblk/said",
    )
    said = left.read("said").splitlines()
    for (n, what), found in zip(cases, zip(*[iter(said)] * 4, strict=True), strict=True):
        results, rest, state, other = found
        happens = n <= len(_COMMAND_OF)
        first = _COMMAND_OF[n - 1] if happens else 6
        gone = happens and what not in ("error", "errors")
        failed = [i == first or (i > first and what != "error") for i in range(6)]
        assert [word != "ok" for word in results.split()] == [*failed, gone], (n, what, results)
        assert rest == f"{max(0, n - len(_COMMAND_OF))} {what}"
        assert state == ("ok" if not gone else what.split("-")[0])
        assert other == ("cut" if gone and what == "cut-all" else "ok")


def test_writes_in_flight_at_a_power_cut_may_be_kept_or_lost(
    careful: Careful,
) -> None:
    left = careful.run(
        vdisk(**CACHED),
        *(
            f"echo '3 cut' > {FAULT}/nth_write; "
            f"dd if=/dev/zero bs=4k count=4 oflag=direct of=/dev/disk0 2> /dev/null || true; "
            f"echo ok > {FAULT}/state"
            for _ in range(20)
        ),
        _stats(),
    )
    stats = numbers(left.read("stats"))
    # Two had ended, and the third was on its way.
    assert stats["cut_lost"] + stats["cut_kept"] + stats["cut_torn"] == 60
    assert stats["cut_lost"] > 10
    assert stats["cut_kept"] > 10
    assert stats["unstable_writes"] == 0


def test_faults_are_of_a_disk_that_is_on_and_bad_input_is_refused(guest: Guest) -> None:
    bad = {
        "state": {EINVAL: ["", "off", "Cut"]},
        "nth_write": {
            EINVAL: ["", "1", "cut", "1 cuts", "x cut", "1 cut 1", "-1 cut", f"1 {40 * ' '}cut"],
            ERANGE: ["0 cut", f"{2**64} cut"],
        },
        "errors": {
            EINVAL: [
                *("", "0", "0 4k", "0 4k reads", "x 4k read", "0 4k read 1", "0 4k writeread"),
                "-1 4k read",
                *("0  4k read", f"0 4k {70 * ' '}read"),
            ],
            ERANGE: ["0 0 read", f"{2**64 - 1} 4k read", f"{2**64} 1 read"],
        },
    }
    cases = [(n, t, why) for n, texts in bad.items() for why, ts in texts.items() for t in ts]
    left = guest.run(
        script(
            f"mkdir {VDISK}/disk0; cd {FAULT}; exec 4> /run/said",
            "cat state errors >&4; put cut state >&4; put '0 1 read' errors >&4",
            "put '1 cut' nth_write >&4",
            "echo 1 > ../power",
            *(f"put '{text}' {name} >&4" for name, text, _ in cases),
            "cat state errors nth_write >&4",
            'for i in $(seq 0 64); do put "$i 1 read" errors >&4; done; wc -l < errors >&4',
            "echo '9 cut' > nth_write; echo lost > state; echo 0 > ../power; echo 1 > ../power",
            "cat state errors nth_write >&4",
            "cat /run/said > /run/isoblk/said",
        )
    )
    said = left.read("said").splitlines()
    assert said[:4] == ["ok", ENODEV, ENODEV, ENODEV]
    wrong = [
        f"{name} {text!r}: {found}, not {why}"
        for (name, text, why), found in zip(cases, said[4:], strict=False)
        if found != why
    ]
    assert wrong == []
    last = ["ok", "none", *64 * ["ok"], ENOSPC, "64", "ok", "none"]
    assert said[4 + len(cases) :] == last

# SPDX-License-Identifier: GPL-2.0-only
"""Blkload replays a trace as kernel/README.md says: all its requests, at their times or as fast as
a closed loop allows."""

import random
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from tests.lab.campaigns import finished, run_file, tables
from tests.lab.guest import Guest, Left
from tests.lab.load import (
    BLKLOAD,
    EINVAL,
    LATE,
    MS,
    SECOND,
    TICK,
    TRACING,
    Load,
    Tenant,
    nullb,
    requests,
    results,
    run,
    save,
    script,
    tenant,
    text,
    trace_on,
    trace_save,
    vdisk,
)
from tests.unit.isotrace import (
    ASYNC,
    FLUSH,
    FUA,
    OPS,
    PREFLUSH,
    READ,
    TRIM,
    WRITE,
    Rec,
    packed,
    write_trace,
)

SERVICE = 20_000  # ns: the virtual disk's default
DEEP = 512  # more than any of these traces has in flight
IN_TIME = 2 * TICK  # later than this is not the clock's doing
# Requests that start together follow each other in ticks: less than so much, for a dozen.
TOGETHER = 10_000
NONE = "echo none > /sys/block/{}/queue/scheduler"
MODULES = ("isoblk_vdisk", "null_blk", "blkload")
GIB = 1 << 30


def _mix(
    count: int, seed: int, region: int, gaps: Sequence[int] = (0, 1, 500, 3_000, 40_001)
) -> list[Rec]:
    """A trace of everything; some requests start together."""
    rng = random.Random(seed)
    times = accumulate(rng.choice(gaps) for _ in range(count))
    records = []
    for t in times:
        op = rng.choices((READ, WRITE, TRIM, FLUSH), (50, 35, 10, 5))[0]
        if op == FLUSH:
            records.append(Rec(t, FLUSH, 0, 0))
            continue
        size = 512 * rng.randint(1, 128)
        offset = 512 * rng.randrange((region - size) // 512)
        flags = rng.randrange(8) if op == WRITE and rng.random() < 0.4 else 0
        records.append(Rec(t, op, offset, size, flags, rng.randrange(8)))
    first = records[0].t
    return [r._replace(t=r.t - first) for r in records]


def _counted(done: Tenant) -> dict[str, tuple[int, int]]:
    return {name: (op.ios, op.bytes) for name, op in done.ops.items()}


def _expected(records: list[Rec]) -> dict[str, tuple[int, int]]:
    ios = Counter(OPS[r.op] for r in records)
    size = Counter[str]()
    for r in records:
        size[OPS[r.op]] += r.bytes if r.op != FLUSH else 0
    return {name: (ios[name], size[name]) for name in ios}


def _replay(guest: Guest, path: Path, /, disk: str = "", **attributes: str | int) -> Tenant:
    """One tenant replays one trace on an idle disk of its own."""
    lines = [disk or vdisk(queue_depth=2048, servers=1024), NONE.format("disk0")]
    load: Load = {"trace": str(path), "iodepth": DEEP, **attributes}
    lines += [tenant("a", **load), run("r")]
    return results(guest.run(script(*lines)), "r")["a"]


def test_a_timed_replay_issues_all_records_of_the_trace_in_order(
    any_guest: Guest, tmp_path: Path
) -> None:
    # More than the two chunks that are read ahead.
    records = _mix(10_000, 1, 64 << 20)
    path = write_trace(tmp_path / "mix.isotrace", records)
    left = any_guest.run(
        script(
            nullb(cache_size=1, fua=1, hw_queue_depth=512),
            NONE.format("nullb0"),
            trace_on(),
            tenant("a", device="/dev/nullb0", trace=str(path), iodepth=DEEP),
            run("r"),
            trace_save("r"),
        ),
        modules=MODULES,
    )
    done = results(left, "r")["a"]
    assert done.error == 0
    assert done.trace == {"records": 10_000, "passes": 1, "rounded": 0, "clipped": 0, "moved": 0}
    assert _counted(done) == _expected(records)
    flags = {READ: "R", TRIM: "D", FLUSH: "FWS"}

    def write(r: Rec) -> str:
        marks = ("F" * bool(r.flags & PREFLUSH), "F" * bool(r.flags & FUA))
        return f"{marks[0]}W{marks[1]}{'' if r.flags & ASYNC else 'S'}"

    assert [(r.flags, r.sector, r.sectors) for r in requests(left, "r")] == [
        (
            flags.get(r.op) or write(r),
            0 if r.op == FLUSH else r.offset // 512,
            r.bytes // 512,
        )
        for r in records
    ]


def _issued_ns(left: Left, label: str) -> list[int]:
    """When each bio was submitted, CLOCK_MONOTONIC."""
    found = re.findall(
        r"blkload/\S+-\d+ .* (\d+)\.(\d{6}): block_bio_queue", left.read(f"{label}.trace")
    )
    return [int(seconds) * SECOND + int(micros) * 1000 for seconds, micros in found]


def test_a_timed_replay_is_in_time(any_guest: Guest, tmp_path: Path) -> None:
    # A request takes a few ticks to issue: the next is then, or well after it.
    gaps = (0, 20_000, 20_001, 40_777)
    records = [r for r in _mix(6_000, 2, GIB, gaps) if r.op != FLUSH]
    path = write_trace(tmp_path / "mix.isotrace", records)
    left = any_guest.run(
        script(
            vdisk(queue_depth=2048, servers=1024),
            NONE.format("disk0"),
            trace_on(),
            f"echo mono > {TRACING}/trace_clock",
            tenant("a", trace=str(path), iodepth=DEEP, startdelay="2500us"),
            run("r"),
            trace_save("r"),
        )
    )
    done = results(left, "r")["a"]
    assert (done.late["ios"], done.late["above_1ms"]) == (len(records), 0)
    assert done.late["max_ns"] < IN_TIME
    begin = done.start_ns + 2_500_000
    off = [at - begin - r.t for at, r in zip(_issued_ns(left, "r"), records, strict=True)]
    assert min(off) > -1000, "the tracer gives whole microseconds"
    assert max(off) < TOGETHER
    last = 2_500_000 + records[-1].t + off[-1]
    assert done.end_ns == pytest.approx(last + SERVICE, abs=2 * LATE)
    for op in done.ops.values():
        assert op.lat_max_ns < SERVICE + TOGETHER


def _steady(count: int, gap: int) -> list[Rec]:
    return [Rec(gap * i, i % 2, 4096 * i) for i in range(count)]


@pytest.mark.parametrize(("speed", "factor"), [(2000, 2.0), (500, 0.5), (1000, 1.0), (3333, 3.333)])
def test_speed_divides_all_times(guest: Guest, tmp_path: Path, speed: int, factor: float) -> None:
    path = write_trace(tmp_path / "t.isotrace", _steady(1001, 100_000))
    done = _replay(guest, path, speed=speed)
    assert done.end_ns == pytest.approx(100 * MS / factor + SERVICE, abs=LATE)
    assert done.late["max_ns"] < IN_TIME
    assert done.trace["records"] == 1001


def test_a_slow_disk_makes_requests_late_and_latency_counts_from_the_intended_start(
    guest: Guest, tmp_path: Path
) -> None:
    path = write_trace(tmp_path / "t.isotrace", _steady(1000, 10_000))
    disk = vdisk(servers=1, read_ns=20_000, write_ns=20_000)
    done = _replay(guest, path, disk, iodepth=1)
    # Request k is due at 10 us times k, and its turn comes at 20 us times k.
    assert done.late["ios"] == 1000
    assert done.late["max_ns"] == pytest.approx(999 * 10_000, rel=0.05)
    assert done.late["sum_ns"] == pytest.approx(10_000 * 999 * 1000 // 2, rel=0.05)
    assert done.late["above_1ms"] == pytest.approx(900, abs=20)
    assert max(op.lat_max_ns for op in done.ops.values()) == pytest.approx(
        999 * 10_000 + SERVICE, rel=0.05
    )
    # Enough slots: then the disk's queue is where requests wait, and none is late.
    deep = _replay(guest, path, disk, iodepth=1024)
    assert deep.late["max_ns"] < IN_TIME
    assert max(op.lat_max_ns for op in deep.ops.values()) == pytest.approx(
        999 * 10_000 + SERVICE, rel=0.05
    )


def test_lateness_is_that_of_the_measured_time(guest: Guest, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.isotrace", _steady(1000, 10_000))
    done = _replay(guest, path, ramp_time="4ms", runtime="3ms")
    assert done.late["ios"] == 300
    assert done.trace["records"] == 700


def test_a_closed_loop_ignores_times_and_keeps_its_depth(guest: Guest, tmp_path: Path) -> None:
    records = [Rec(SECOND * i, i % 2, 4096 * i) for i in range(5000)]
    path = write_trace(tmp_path / "t.isotrace", records)
    disk = vdisk(servers=8)
    one = _replay(guest, path, disk, replay="closed", iodepth=1)
    eight = _replay(guest, path, disk, replay="closed", iodepth=8)
    assert one.late == eight.late == {}
    assert _counted(one) == _counted(eight) == _expected(records)
    assert one.end_ns == pytest.approx(5000 * SERVICE, rel=0.05)
    # A tick for each request, which are issued one by one.
    assert eight.end_ns == pytest.approx(5000 * SERVICE / 8, rel=0.15)


def test_a_replay_ends_at_the_first_of_its_limits(guest: Guest, tmp_path: Path) -> None:
    records = _steady(1000, 100_000)
    path = write_trace(tmp_path / "t.isotrace", records)
    assert _replay(guest, path, number_ios=10).trace["records"] == 10
    assert _replay(guest, path, runtime="50ms").trace["records"] == 500
    ended = _replay(guest, path, runtime="1s", number_ios=2000)
    assert ended.trace["records"] == 1000
    assert ended.measure_to_ns == ended.end_ns < 101 * MS


def test_a_trace_that_repeats_keeps_its_rate(guest: Guest, tmp_path: Path) -> None:
    # Both more and less than a chunk.
    for count in (10, 5000):
        path = write_trace(tmp_path / f"{count}.isotrace", _steady(count, 10_000))
        done = _replay(guest, path, trace_loop=1, runtime="200ms", window=1)
        assert done.trace["records"] == 20_000
        assert done.trace["passes"] == 20_000 // count
        assert done.late["max_ns"] < IN_TIME
        ios = Counter[int]()
        for op in done.ops.values():
            for start, (n, _) in op.win.items():
                ios[start] += n
        assert all(abs(ios[ms] - 100) <= 2 for ms in range(1, 199))
    closed = _replay(guest, path, trace_loop=1, number_ios=12_345, replay="closed")
    assert (closed.trace["records"], closed.trace["passes"]) == (12_345, 3)


def _placed(guest: Guest, path: Path, **attributes: str | int) -> tuple[Tenant, list[int]]:
    left = guest.run(
        script(
            vdisk(size="64m", logical_block_size=4096),
            NONE.format("disk0"),
            trace_on(),
            tenant("a", **({"trace": str(path), "replay": "closed"} | attributes)),
            run("r"),
            trace_save("r"),
        )
    )
    return results(left, "r")["a"], [r.sector * 512 for r in requests(left, "r")]


def test_addresses_are_wrapped_or_scaled_into_the_region(guest: Guest, tmp_path: Path) -> None:
    mib = 1 << 20
    offsets = [0, 8 * mib, 31 * mib, 33 * mib, 128 * mib - 4096, 100 * mib]
    path = write_trace(tmp_path / "t.isotrace", [Rec(i, READ, at) for i, at in enumerate(offsets)])
    region: Load = {"offset": 16 * mib, "size": 32 * mib}
    wrapped, at = _placed(guest, path, **region)
    assert [a - 16 * mib for a in at] == [o % (32 * mib) for o in offsets]
    assert wrapped.trace["moved"] == 3
    scaled, at = _placed(guest, path, trace_fit="scale", **region)
    assert [a - 16 * mib for a in at] == [o // 4 // 4096 * 4096 for o in offsets[:4]] + [
        32 * mib - 4096,
        25 * mib,
    ]
    assert scaled.trace["moved"] == 5


def test_replayed_requests_are_rounded_to_blocks_and_clipped_to_the_region(
    guest: Guest, tmp_path: Path
) -> None:
    records = [
        Rec(0, READ, 4096, 4096),
        Rec(1, READ, 512, 4096),  # two blocks
        Rec(2, WRITE, 8192, 1),  # one
        Rec(3, READ, 0, 0),  # one
        Rec(4, READ, 0, 100 << 20),  # the generator's largest, 32 MiB
        Rec(5, TRIM, 0, 100 << 20),  # the region
    ]
    path = write_trace(tmp_path / "t.isotrace", records)
    done, _ = _placed(guest, path)
    assert done.trace == {"records": 6, "passes": 1, "rounded": 3, "clipped": 2, "moved": 0}
    assert _counted(done) == {
        "read": (4, 4096 + 8192 + 4096 + (32 << 20)),
        "write": (1, 4096),
        "trim": (1, 64 << 20),
    }


def test_equal_replays_give_equal_results(guest: Guest, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.isotrace", _mix(9_000, 3, 4 * GIB))
    lines = [vdisk(servers=4), tenant("a", trace=str(path), iodepth=64)]
    left = guest.run(script(*lines, run("one"), run("two")))
    first = left.read("one")
    # In one guest a timer of the kernel's own may move a request by a tick.
    assert _counted(results(left, "two")["a"]) == _counted(results(left, "one")["a"])
    assert guest.run(script(*lines, run("one"))).read("one") == first


_GOOD = [Rec(i * 10, READ, 4096 * i) for i in range(5000)]


def _broken(at: int, **values: int) -> bytes:
    records = list(_GOOD)
    records[at] = records[at]._replace(**values)
    return packed(records, end=5000 * 4096)


@pytest.mark.parametrize(
    ("content", "logged"),
    [
        (b"", "is not a compact trace"),
        (b"0,0,4096,r,0.0\n" * 100, "is not a compact trace"),
        (packed(_GOOD, magic=b"ISOTRACX"), "is not a compact trace"),
        (packed(_GOOD, version=2), "is a compact trace of another version"),
        (packed([]), "has no records"),
        (packed(_GOOD)[:-1], "is truncated: it has fewer records than its header says"),
        (packed(_GOOD) + b"x", "has more records than its header says"),
        (_broken(4500, t=44_000), "record 4501: starts before the one before it"),
        (_broken(2, t=60_000), "record 3: starts after the end that the header gives"),
        (_broken(4999, op=9), "record 5000: unknown operation"),
        (_broken(7, bytes=1 << 31), "record 8: goes beyond the last byte that the header gives"),
    ],
    ids=str,
)
def test_a_damaged_trace_starts_no_tenant_and_is_named(
    guest: Guest, tmp_path: Path, content: bytes, logged: str
) -> None:
    path = tmp_path / "t.isotrace"
    path.write_bytes(content)
    left = guest.run(
        script(
            vdisk(),
            tenant("a", number_ios=10),
            tenant("b", trace=str(path)),
            f"put 1 {BLKLOAD}/start > /run/isoblk/said",
            f"cat {BLKLOAD}/state > /run/isoblk/state",
            save("none"),
        )
    )
    assert left.read("said") == EINVAL + "\n"
    assert f"blkload: b: trace {path}: {logged}" in left.console
    assert left.read("state") == "idle\n"
    assert left.read("none") == ""


@pytest.mark.parametrize(
    ("attributes", "why", "logged"),
    [
        ({"trace": "/none.isotrace"}, text(2), "b: trace /none.isotrace: error -2"),
        ({"trace": "/usr"}, EINVAL, "b: trace /usr: is not a file"),
        ({"numjobs": 2}, EINVAL, "b: a trace needs numjobs 1, and no verify, rate_iops"),
        ({"verify": 1}, EINVAL, "b: a trace needs numjobs 1"),
        ({"rate_iops": 5}, EINVAL, "b: a trace needs numjobs 1"),
        ({"thinktime": 5}, EINVAL, "b: a trace needs numjobs 1"),
        ({"fsync": 5}, EINVAL, "b: a trace needs numjobs 1"),
        ({"trace_loop": 1}, EINVAL, "b: neither runtime nor number_ios is set"),
        ({"size": 2048}, text(34), "b: the region has 2048 bytes, the load needs 4096"),
    ],
)
def test_attributes_that_conflict_with_a_trace_are_refused(
    guest: Guest, tmp_path: Path, attributes: Load, why: str, logged: str
) -> None:
    path = write_trace(tmp_path / "t.isotrace", _GOOD)
    left = guest.run(
        script(
            vdisk(logical_block_size=4096),
            tenant("b", **({"trace": str(path)} | attributes)),
            f"put 1 {BLKLOAD}/start > /run/isoblk/said",
        )
    )
    assert left.read("said") == why + "\n"
    assert f"blkload: {logged}" in left.console


def test_a_trace_of_one_moment_cannot_be_repeated_in_its_time(guest: Guest, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.isotrace", [Rec(0), Rec(0)])
    bad = tenant("b", trace=str(path), trace_loop=1, number_ios=10)
    closed = f"echo closed > {BLKLOAD}/b/replay"
    start = f"put 1 {BLKLOAD}/start > /run/isoblk/said"
    left = guest.run(script(vdisk(), bad, start, closed, run("r")))
    assert left.read("said") == EINVAL + "\n"
    assert "all records have one time, it cannot be repeated" in left.console
    assert results(left, "r")["b"].trace["records"] == 10


def test_a_replay_may_be_stopped_and_its_tenant_removed(debug_guest: Guest, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.isotrace", _steady(50_000, 10_000))
    left = debug_guest.run(
        script(
            vdisk(),
            tenant("a", trace=str(path), iodepth=4),
            tenant("b", trace=str(path), iodepth=4, replay="closed", trace_loop=1, runtime=100),
            f"echo 1 > {BLKLOAD}/start; cat {BLKLOAD}/align > /dev/null; sleep 0.1",
            f"rmdir {BLKLOAD}/a; echo 1 > {BLKLOAD}/stop; cat {BLKLOAD}/wait",
            save("r"),
            f"rmdir {BLKLOAD}/b; rmmod blkload",
        ),
        memory_mib=1024,
    )
    assert results(left, "r")["b"].trace["records"] > 1000
    for word in ("WARNING", "BUG", "UBSAN", "INFO:"):
        assert word not in left.console


def test_a_file_that_changes_under_a_replay_ends_it(guest: Guest, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.isotrace", _steady(50_000, 10_000))
    copy = "/run/t.isotrace"
    left = guest.run(
        script(
            f"cp {path} {copy}",
            vdisk(),
            tenant("a", trace=copy, iodepth=4),
            f"echo 1 > {BLKLOAD}/start; cat {BLKLOAD}/align > /dev/null",
            f"dd if=/dev/zero of={copy} bs=64 count=1 2> /dev/null; cat {BLKLOAD}/wait",
            save("r"),
        )
    )
    done = results(left, "r")["a"]
    assert done.error == -5
    assert 0 < done.trace["records"] <= 2 * 4096


@pytest.mark.long
def test_a_study_replays_and_its_result_is_that_of_the_traces_content(
    default_bench: Bench, tmp_path: Path
) -> None:
    trace = write_trace(tmp_path / "one.isotrace", _mix(20_000, 4, GIB, (0, 20_000, 70_000)))
    outcomes = []
    for name in ("one", "two"):
        shutil.copy(trace, tmp_path / "two.isotrace")
        study = tmp_path / f"{name}.toml"
        study.write_text(
            'name = "s"\ndevice = "fast"\n[run]\nwarmup = "100ms"\nruntime = "400ms"\n'
            f'[[tenant]]\nname = "a"\nweight = 300\ntrace = "{tmp_path / name}.isotrace"\n'
            f'[[tenant]]\nname = "b"\niodepth = 64\n[[tenant]]\nname = "c"\nreplay = "closed"\n'
            f'trace = "{trace}"\ntrace_loop = true\niodepth = 32\n'
            '[matrix]\nscheduler = ["none", "feedbac"]\n'
        )
        outcomes.append(run_file(study, default_bench, tmp_path / f"results-{name}"))
    assert tables(outcomes[0]) == tables(outcomes[1])
    for run_ in finished(outcomes[0]):
        for asked, one in zip(run_.record.spec.tenants, run_.record.tenants, strict=True):
            assert (one.replay is None) == (asked.workload.trace is None)
            if one.replay and one.replay.late:
                assert 0 < one.replay.late.ios < one.replay.records < 20_000

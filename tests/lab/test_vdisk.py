# SPDX-License-Identifier: GPL-2.0-only
"""The virtual disk does what kernel/README.md says, to the tick of the clock.

The disk lives in the time of its events, and not in that of UML's ticks: however many requests
there are, the last one ends within ENDS of the time that the model gives.
"""

import re
from itertools import pairwise

import pytest

from isoblk.paths import kernel_tree
from isoblk.run.spec import CgroupVersion
from tests.lab.guest import Guest, Left
from tests.lab.load import (
    BLKLOAD,
    CGROUP,
    EBUSY,
    EEXIST,
    EINVAL,
    ERANGE,
    LATE,
    MS,
    SECOND,
    START,
    STATS,
    STOP,
    TRACING,
    VDISK,
    WAIT,
    Load,
    Tenant,
    numbers,
    results,
    run,
    save,
    script,
    tenant,
    trace_on,
    trace_save,
    vdisk,
)
from tests.lab.test_blkload_life import START_AND_GO, Careful, careful

__all__ = ["careful"]

# Without write-back throttling as well: it would hold back trims.
NONE = (
    "Q=/sys/block/disk0/queue; echo none > $Q/scheduler; echo 2 > $Q/nomerges;"
    " echo 0 > $Q/wbt_lat_usec"
)
# The tenants' first requests are late by some ticks, and the last completion is.
ENDS = 2 * LATE
# Deep enough that no server ever lacks work.
DEEP: Load = {"rw": "randread", "iodepth": 128, "bs": 4096}


def _disk(**attributes: str | int) -> str:
    """A disk whose queue hands requests through as they come."""
    return f"{vdisk(**attributes)}\n{NONE}"


def _stats(name: str = "disk0", to: str = "stats") -> str:
    return f"cat {STATS}/{name}/stats > /run/isoblk/{to}"


# -- texts --

DEFAULTS = {
    "model": "fixed",
    "size": str(4 << 30),
    "logical_block_size": "512",
    "queue_depth": "1023",
    "hw_queues": "1",
    "servers": "16",
    "read_ns": "20000",
    "write_ns": "20000",
    "trim_ns": "20000",
    "flush_ns": "20000",
    "read_bps": "0",
    "write_bps": "0",
    "jitter": "0",
    "seed": "1",
    "write_cache": "0",
    "store": "none",
    "power": "0",
}

# All attributes of the directory, and not those of its groups.
SHOW = "grep '' $(ls -p | grep -v /)"

FORMS = {
    "model": [("flash", "flash"), ("disk", "disk"), ("fixed", "fixed")],
    "size": [("4096", "4096"), ("1G", str(1 << 30)), ("8k", "8192"), (str(1 << 60), str(1 << 60))],
    "logical_block_size": [("4k", "4096"), ("1024", "1024"), ("512", "512")],
    "queue_depth": [("1", "1"), ("10k", "10240")],
    "hw_queues": [("1", "1")],
    "servers": [("1", "1"), ("64k", "65536")],
    "read_ns": [("1", "1"), ("10000000000", "10000000000")],
    "write_ns": [("1", "1"), ("10k", "10240")],
    "trim_ns": [("1", "1"), ("10000000000", "10000000000")],
    "flush_ns": [("1", "1"), ("10000000000", "10000000000")],
    "jitter": [("1000", "1000"), ("0", "0"), ("250", "250")],
    "seed": [("0", "0"), (str(2**64 - 1), str(2**64 - 1)), ("7", "7")],
    "write_cache": [("1", "1"), ("0", "0"), ("1", "1")],
    "store": [("memory", "memory"), ("none", "none"), ("memory", "memory")],
    "read_bps": [("1", "1"), ("1000000000000", "1000000000000"), ("500M", str(500 << 20))],
    "write_bps": [("2g", str(2 << 30)), ("0", "0")],
    "power": [("1", "1"), ("1", "1"), ("0", "0"), ("0", "0")],
}

TIMES = {EINVAL: ["", "20us", "-1", "0x10", "1.5", "1 1"], ERANGE: ["0", "10000000001", 22 * "9"]}
RATES = {EINVAL: ["", "fast", "1t", "k"], ERANGE: ["1000000000001", "1024g", "99999999999g"]}
BAD = {
    "model": {EINVAL: ["", "ssd", "fixe", "fixed2"]},
    "size": {
        EINVAL: ["", "4095k1", "4097", "1t", "+4096", "4096 4096", 30 * "9"],
        ERANGE: ["0", "2048", "1073741825g"],
    },
    "logical_block_size": {EINVAL: ["513", "768", "x"], ERANGE: ["256", "8k", "0"]},
    "queue_depth": {EINVAL: ["-1"], ERANGE: ["0", "10241"]},
    "hw_queues": {EINVAL: ["all"], ERANGE: ["0", "2"]},  # UML has one CPU
    "servers": {EINVAL: ["x"], ERANGE: ["0", "65537"]},
    "read_ns": TIMES,
    "write_ns": TIMES,
    "trim_ns": TIMES,
    "flush_ns": TIMES,
    "jitter": {EINVAL: ["", "1%", "-1"], ERANGE: ["1001"]},
    "seed": {EINVAL: ["", "x", "-1"], ERANGE: [str(2**64)]},
    "write_cache": {EINVAL: ["", "on"], ERANGE: ["2"]},
    "store": {EINVAL: ["", "disk", "mem", "memoryx", "1"]},
    "read_bps": RATES,
    "write_bps": RATES,
    "power": {EINVAL: ["2", "", "x"]},
}


def test_a_new_disk_has_the_defaults(guest: Guest) -> None:
    left = guest.run(script(f"mkdir {VDISK}/a; cd {VDISK}/a; {SHOW} > /run/isoblk/all"))
    assert dict(line.split(":") for line in left.read("all").splitlines()) == DEFAULTS


def test_every_attribute_reads_back_as_a_number(guest: Guest) -> None:
    cases = [(name, text, read) for name, texts in FORMS.items() for text, read in texts]
    left = guest.run(
        script(
            f"mkdir {VDISK}/disk0; cd {VDISK}/disk0",
            *(
                f"echo '{text}' > {name}; cat {name} >> /run/isoblk/read"
                + ("; echo 1g > size" if name == "queue_depth" else "")
                for name, text, _ in cases
            ),
        )
    )
    assert set(FORMS) == set(DEFAULTS)
    read = left.read("read").splitlines()
    for (name, text, expected), found in zip(cases, read, strict=True):
        assert found == expected, f"{name} = {text}"


def test_bad_input_is_refused_and_changes_nothing(guest: Guest) -> None:
    cases = [(n, t, why) for n, texts in BAD.items() for why, ts in texts.items() for t in ts]
    left = guest.run(
        script(
            f"mkdir {VDISK}/disk0; cd {VDISK}/disk0",
            *(f"put '{text}' {name} >> /run/said" for name, text, _ in cases),
            f"{SHOW} > /run/isoblk/after; cat /run/said > /run/isoblk/said",
        )
    )
    wrong = [
        f"{name} {text!r}: {found}, not {why}"
        for (name, text, why), found in zip(cases, left.read("said").splitlines(), strict=True)
        if found != why
    ]
    assert wrong == []
    assert set(BAD) == set(DEFAULTS)
    assert dict(line.split(":") for line in left.read("after").splitlines()) == DEFAULTS


def test_structural_attributes_are_fixed_while_the_disk_is_on(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(),
            f"cd {VDISK}/disk0",
            f"for name in {' '.join(DEFAULTS)}; do"
            ' echo "$name $(put "$(cat $name)" $name)" >> /run/isoblk/said; done',
            "echo 0 > power; put 8g size > /run/isoblk/off; put 1 power >> /run/isoblk/off",
            "cat /sys/block/disk0/size >> /run/isoblk/off",
        )
    )
    said = dict(line.split(" ", 1) for line in left.read("said").splitlines())
    fixed = {
        *("model", "size", "logical_block_size", "queue_depth", "hw_queues"),
        *("seed", "write_cache", "store"),
    }
    assert said == {name: EBUSY if name in fixed else "ok" for name in DEFAULTS}
    assert left.read("off").splitlines() == ["ok", "ok", str((8 << 30) // 512)]


@pytest.mark.parametrize(
    ("group", "model"), [("flash", "flash"), ("disk", "disk"), ("volume", "fixed")]
)
def test_a_model_s_attributes_are_in_its_group_and_fixed_but_for_the_live_ones(
    guest: Guest, group: str, model: str
) -> None:
    documented = _documented(group)
    left = guest.run(
        script(
            f"mkdir {VDISK}/disk0; cd {VDISK}/disk0/{group}; echo {model} > ../model",
            "grep '' * > /run/isoblk/before",
            'for name in *; do echo "$(put "$(cat $name)" $name)" >> /run/isoblk/said; done',
            "for name in *; do put x $name >> /run/isoblk/bad; done",
            "grep '' * > /run/isoblk/after; echo 1 > ../power",
            'for name in *; do echo "$name $(put "$(cat $name)" $name)" >> /run/isoblk/on; done',
        )
    )
    found = dict(line.split(":") for line in left.read("before").splitlines())
    assert found == {name: default for name, (default, _) in documented.items()}
    assert left.read("after") == left.read("before")
    assert set(left.read("said").splitlines()) == {"ok"}
    assert set(left.read("bad").splitlines()) == {EINVAL}
    on = dict(line.split(" ", 1) for line in left.read("on").splitlines())
    assert on == {name: "ok" if live else EBUSY for name, (_, live) in documented.items()}


def _documented(group: str) -> dict[str, tuple[str, bool]]:
    """A group's table in kernel/README.md: name -> default, and whether it may change."""
    section = (kernel_tree() / "README.md").read_text().split(f"\n### Group `{group}`\n")[1]
    section = section.split("\n## ")[0].split("\n### ")[0]
    table = {}
    for names, default in re.findall(r"^\| ((?:`\w+` ?)+\*?) \| ([^|]+) \|", section, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            table[name] = (default.strip(), names.endswith("*"))
    return table


def test_the_block_layer_sees_the_disk_as_it_was_set(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(size="12g", logical_block_size=4096, queue_depth=77),
            "cd /sys/block/disk0",
            "cat size queue/logical_block_size queue/physical_block_size mq/0/nr_tags"
            " queue/write_cache queue/rotational queue/discard_granularity > /run/isoblk/seen",
            "ls mq | wc -l >> /run/isoblk/seen; grep -c disk0 /proc/partitions >> /run/isoblk/seen",
        )
    )
    assert left.read("seen").splitlines() == [
        str((12 << 30) // 512),
        *("4096", "4096", "77", "write through", "0", "4096", "1", "1"),
    ]


# -- names --


def test_names_that_are_taken_or_too_long_are_refused(careful: Careful) -> None:
    longest = 31 * "n"
    left = careful.run(
        f"cd {VDISK}; exec > /run/said",
        # loop0 is another driver's.
        "mkdir loop0; put 1 loop0/power; cat loop0/power; put 8g loop0/size; put 1 loop0/power",
        "rmdir loop0",
        f"try mkdir {longest}n; try mkdir {longest}; put 1 {longest}/power; ls /dev/{longest}",
        f"ls {STATS}/{longest}",
        # Two of one name cannot be, but one after the other.
        "mkdir a; echo 1 > a/power; try mkdir a; rmdir a; mkdir a; put 1 a/power; rmdir a",
        "exec > /dev/console; cat /run/said > /run/isoblk/said",
        "cat /proc/partitions > /run/isoblk/partitions",
    )
    assert left.read("said").splitlines() == [
        *(EEXIST, "0", "ok", EEXIST),
        *("File name too long", "ok", "ok", f"/dev/{longest}", "stats"),
        *(EEXIST, "ok"),
    ]
    assert longest in left.read("partitions")


# -- stored data --


def test_nothing_is_stored_and_reads_give_zeros(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(size="1m"),
            "dd if=/dev/urandom of=/dev/disk0 bs=64k count=16 oflag=direct 2> /dev/null",
            "dd if=/dev/disk0 of=/run/isoblk/data bs=64k iflag=direct 2> /dev/null",
            "behind='of=/dev/disk0 bs=4k seek=256 count=1 oflag=direct'",
            "try dd if=/dev/zero $behind > /run/isoblk/said",
        )
    )
    assert (left.dir / "data").read_bytes() == bytes(1 << 20)
    assert left.read("said") != "ok\n"


def test_a_file_system_s_requests_all_end(careful: Careful) -> None:
    # Buffered, split, merged, with flushes and read-ahead: not only what blkload makes.
    left = careful.run(
        vdisk(servers=2, read_bps="100m", write_bps="100m"),
        "dd if=/dev/zero of=/dev/disk0 bs=1M count=20 conv=fsync 2> /dev/null",
        "cat /dev/disk0 | head -c 20000000 | wc -c > /run/isoblk/read",
        "blkdiscard -o 0 -l 1073741824 /dev/disk0; blockdev --flushbufs /dev/disk0",
        _stats(),
    )
    stats = numbers(left.read("stats"))
    assert int(left.read("read")) == 20_000_000
    assert stats["write_bytes"] == 20 << 20
    assert stats["read_bytes"] >= 20_000_000
    assert stats["trim_bytes"] == 1 << 30
    assert stats["in_service"] == stats["waiting"] == 0


# -- time --


@pytest.mark.parametrize(
    ("servers", "service", "ios"),
    [
        (1, 20_000, 10_000),
        (4, 20_000, 40_000),
        (16, 20_000, 100_000),
        (7, 12_345, 70_000),
        (16, 1_001, 50_000),
        (100, 77_777, 100_000),
        (3, 1, 3_000),
        (1, 10**9, 10),
    ],
)
def test_throughput_is_servers_by_service_time_exactly(
    guest: Guest, servers: int, service: int, ios: int
) -> None:
    left = guest.run(
        script(
            _disk(servers=servers, read_ns=service),
            tenant("a", **DEEP | {"iodepth": 256}, number_ios=ios),
            run("results"),
            _stats(),
        )
    )
    done = results(left, "results")["a"]
    stats = numbers(left.read("stats"))
    exact = -(-ios // servers) * service
    if servers / service < 1 / 50:  # else UML's next interrupt, 500 ns away, is the limit
        assert exact <= done.end_ns <= exact + ENDS
    # A server is held for the service time, whatever the clock's steps are.
    assert stats["busy_ns"] == ios * service
    assert stats["read_requests"] == ios
    assert stats["read_bytes"] == 4096 * ios


def test_each_op_has_its_own_service_time(guest: Guest) -> None:
    times = {"read": 11_000, "write": 44_000, "trim": 99_000}
    left = guest.run(
        script(
            _disk(servers=1, **{f"{op}_ns": ns for op, ns in times.items()}),
            *(
                line
                for op in times
                for line in (
                    tenant("a", **DEEP | {"rw": f"rand{op}"}, number_ios=1000),
                    run(op),
                    f"rmdir {BLKLOAD}/a",
                )
            ),
            _stats(),
        )
    )
    stats = numbers(left.read("stats"))
    for op, service in times.items():
        end = results(left, op)["a"].end_ns
        assert 1000 * service <= end <= 1000 * service + ENDS, op
        assert (stats[f"{op}_requests"], stats[f"{op}_bytes"]) == (1000, 4_096_000), op
    assert stats["busy_ns"] == 1000 * sum(times.values())


def _bandwidth(guest: Guest, loads: dict[str, Load], **attributes: str | int) -> dict[str, Tenant]:
    left = guest.run(
        script(
            _disk(**attributes),
            "echo 32768 > /sys/block/disk0/queue/max_sectors_kb",
            *(tenant(name, **DEEP | load) for name, load in loads.items()),
            run("results"),
        )
    )
    return results(left, "results")


@pytest.mark.parametrize(
    ("bps", "size", "ios"),
    [
        (100_000_000, 4096, 5000),
        (300_000_007, 4096, 20_000),  # a third of a ns is left of each request
        (999_999_937, 65_536, 5000),
        (7, 512, 5),
        (1_000_000_000_000, 32 << 20, 300),
    ],
)
def test_a_stream_runs_at_exactly_its_bandwidth(
    guest: Guest, bps: int, size: int, ios: int
) -> None:
    load: Load = {"number_ios": ios, "bs": size, "iodepth": 64}
    done = _bandwidth(guest, {"a": load}, servers=64, read_bps=bps)["a"]
    # The link begins with the end of the first service, and is never idle then.
    exact = 20_000 + ios * size * SECOND // bps
    assert exact <= done.end_ns <= exact + ENDS


def test_reads_and_writes_have_a_link_each_and_trims_none(guest: Guest) -> None:
    mega = 1_000_000
    loads: dict[str, Load] = {
        "r": {"number_ios": 2000, "bs": 65536},
        "w": {"number_ios": 1000, "bs": 65536, "rw": "randwrite"},
        "t": {"number_ios": 500, "bs": "1m", "rw": "randtrim"},
    }
    done = _bandwidth(guest, loads, servers=1000, read_bps=400 * mega, write_bps=100 * mega)
    for name, ios, bps in (("r", 2000, 400 * mega), ("w", 1000, 100 * mega)):
        exact = 20_000 + ios * 65536 * SECOND // bps
        # The others' first requests are issued before its own.
        assert exact <= done[name].end_ns <= exact + 2 * ENDS, name
    assert done["t"].end_ns <= 5 * 20_000  # four rounds of 128


def test_a_slow_link_holds_the_servers(guest: Guest) -> None:
    # 4 servers; a read crosses in 409.6 us, so that soon all are held by reads that wait for the
    # link. Writes, without a limit, get through only as reads leave.
    left = guest.run(
        script(
            _disk(servers=4, read_bps=10_000_000),
            tenant("a", **DEEP, number_ios=300),
            run("results"),
            _stats(),
        )
    )
    end = results(left, "results")["a"].end_ns
    exact = 20_000 + 300 * 409_600
    assert exact <= end <= exact + ENDS
    # All four are held from the beginning on; in the end they become free one by one.
    held = numbers(left.read("stats"))["busy_ns"]
    assert held == 4 * exact - 409_600 * (1 + 2 + 3)


# -- order --


def _order(left: Left, label: str, event: str) -> list[int]:
    """The sectors of a trace's block events, in order."""
    trace = left.read(f"{label}.trace")
    return [int(at) for at in re.findall(rf"{event}: \S+ \S+ .*?(\d+) \+ \d+ ", trace)]


def test_requests_are_served_in_the_order_of_their_arrival(guest: Guest) -> None:
    load: Load = {"rw": "randrw", "bsrange": "4k-64k", "number_ios": 300, "iodepth": 32}
    left = guest.run(
        script(
            _disk(servers=3, read_ns=30_000, write_ns=30_000),
            trace_on("block_rq_issue"),
            f"echo 1 > {TRACING}/events/block/block_rq_complete/enable",
            tenant("a", **load),
            tenant("b", **load, randseed=2, numjobs=2),
            run("results"),
            trace_save("t"),
        )
    )
    issued = _order(left, "t", "block_rq_issue")
    assert len(issued) == 900
    # All service times are equal, so they end in the order in which they came.
    assert _order(left, "t", "block_rq_complete") == issued


def test_a_slow_request_does_not_hold_up_the_other_servers(guest: Guest) -> None:
    left = guest.run(
        script(
            _disk(servers=2, read_ns=10_000, write_ns=10 * MS),
            tenant("r", rw="randread", number_ios=990, iodepth=4),
            tenant("w", rw="randwrite", number_ios=1),
            run("results"),
        )
    )
    done = results(left, "results")
    # The first four reads come before the write; then it has one server and they the other.
    assert 10 * MS <= done["w"].end_ns <= 10 * MS + 20_000 + ENDS
    assert 9 * MS < done["r"].end_ns <= 990 * 10_000 + 20_000 + ENDS


# -- changes while it runs --


def _rates(done: Tenant, change: int, end: int) -> tuple[float, float]:
    """Requests a window, before and after a change at a ms; the window of the change left out."""
    win = done.op.win
    before = [win[ms][0] for ms in range(5, change - 1)]
    after = [win[ms][0] for ms in range(change + 2, end)]
    return sum(before) / len(before), sum(after) / len(after)


@pytest.mark.parametrize(
    ("attribute", "first", "then", "before", "after"),
    [
        ("read_ns", 20_000, 40_000, 200, 100),
        ("read_ns", 40_000, 20_000, 100, 200),
        ("servers", 4, 1, 200, 50),
        ("servers", 1, 16, 50, 800),
        ("read_bps", 0, 40_960_000, 200, 10),
        ("read_bps", 40_960_000, 81_920_000, 10, 20),
        ("read_bps", 40_960_000, 0, 10, 200),
    ],
)
def test_a_change_while_it_runs_acts_on_requests_not_yet_in_service(
    guest: Guest, attribute: str, first: int, then: int, before: int, after: int
) -> None:
    disk: Load = {"servers": 4, attribute: first}
    left = guest.run(
        script(
            _disk(**disk),
            tenant("a", **DEEP, runtime="100ms", window=1),
            START_AND_GO,
            # Commands take virtual time, a few ms at most, so the window is looked up.
            f"sleep 0.045; echo {then} > {VDISK}/disk0/{attribute}; cat /proc/uptime > /run/up",
            WAIT,
            save("results"),
            "cat /run/up > /run/isoblk/uptime",
        )
    )
    done = results(left, "results")["a"]
    changed = int((float(left.read("uptime").split()[0]) * SECOND - done.start_ns) // MS)
    # /proc/uptime has hundredths: look 10 ms to each side.
    early, _ = _rates(done, changed - 10, changed)
    _, late = _rates(done, changed + 12, 99)
    assert early == pytest.approx(before, rel=0.03)
    assert late == pytest.approx(after, rel=0.03)


def test_writes_and_trims_can_be_changed_while_they_run(guest: Guest) -> None:
    left = guest.run(
        script(
            _disk(servers=4),
            tenant("w", **DEEP | {"rw": "randwrite"}, runtime="200ms"),
            tenant("t", **DEEP | {"rw": "randtrim"}, runtime="200ms"),
            START_AND_GO,
            f"sleep 0.05; cd {VDISK}/disk0; echo 1000000 > write_ns; echo 1000000 > trim_ns",
            _stats(to="then"),
            "sleep 0.05",
            _stats(to="later"),
            "echo 4096000 > write_bps",
            WAIT,
            save("results"),
        )
    )
    then, later = numbers(left.read("then")), numbers(left.read("later"))
    ended = {op: later[f"{op}_requests"] - then[f"{op}_requests"] for op in ("write", "trim")}
    # 4 servers and 1 ms: 4,000 a second between the two, in 50 ms and what cat takes. At 20 us it
    # would be 10,000.
    assert 190 <= sum(ended.values()) <= 240, ended
    done = results(left, "results")
    assert all(tenant.error == 0 for tenant in done.values())


def test_fewer_servers_than_are_busy_lose_nothing(careful: Careful) -> None:
    left = careful.run(
        _disk(servers=64, read_ns=100_000),
        tenant("a", **DEEP, runtime="300ms"),
        START_AND_GO,
        f"cd {VDISK}/disk0",
        "for n in 1 64 3 65536 2 16 1 64; do sleep 0.02; echo $n > servers; done",
        f"for n in 5000 10000000 20000; do sleep 0.01; echo $n > read_ns; done; {WAIT}",
        save("results"),
        _stats(),
    )
    done, stats = results(left, "results")["a"], numbers(left.read("stats"))
    assert (done.op.ios, done.op.errors, done.error) == (stats["read_requests"], 0, 0)
    assert stats["in_service"] == stats["waiting"] == 0


# -- statistics --


def test_stats_are_those_of_the_requests_and_of_the_moment(guest: Guest) -> None:
    left = guest.run(
        script(
            f"mkdir {VDISK}/disk0; try cat {STATS}/disk0/stats > /run/isoblk/off",
            f"cd {VDISK}/disk0; echo 4 > servers; echo 1000000000 > read_ns; echo 1 > power",
            NONE,
            tenant("a", rw="randread", iodepth=10, number_ios=20),
            START_AND_GO,
            "sleep 0.5",
            _stats(to="during"),
            WAIT,
            _stats(to="after"),
            f"echo 0 > {VDISK}/disk0/power; try cat {STATS}/disk0/stats >> /run/isoblk/off",
            f"echo 1 > {VDISK}/disk0/power",
            _stats(to="new"),
        )
    )
    assert left.read("off").splitlines() == 2 * ["No such file or directory"]
    names = [
        *("read_requests", "read_bytes", "write_requests", "write_bytes"),
        *("trim_requests", "trim_bytes", "flush_requests", "failed_requests"),
        *("in_service", "waiting", "waiting_max", "busy_ns"),
    ]
    assert list(numbers(left.read("during"))) == names
    during = numbers(left.read("during"))
    assert (during["in_service"], during["waiting"], during["waiting_max"]) == (4, 6, 6)
    # Between the first ends, at 1 s, and the barrier: the half second and what the shell took.
    assert during["read_requests"] == 0
    assert 2 * SECOND <= during["busy_ns"] < 4 * SECOND
    after = numbers(left.read("after"))
    assert after == dict.fromkeys(names, 0) | {
        "read_requests": 20,
        "read_bytes": 20 * 4096,
        "waiting_max": 6,
        "busy_ns": 20 * SECOND,
    }
    assert numbers(left.read("new")) == dict.fromkeys(names, 0)


# -- life --


def test_power_cycles_under_load_end_every_request(careful: Careful) -> None:
    cycles = 8
    left = careful.run(
        vdisk(servers=2),
        tenant("a", rw="randrw", iodepth=64, numjobs=2, runtime=10),
        tenant("b", rw="randtrim", rate_iops=5000, iodepth=8, runtime=10),
        f"cd {VDISK}/disk0",
        *(
            line
            for i in range(cycles)
            for line in (
                START_AND_GO,
                f"sleep 0.0{i}; cat {STATS}/disk0/stats > /dev/null; echo 0 > power; {WAIT}",
                save(f"r{i}"),
                "try ls /dev/disk0 >> /run/said; echo 1 > power",
            )
        ),
        # A disk that went and came is as good as new.
        f"rmdir {BLKLOAD}/b",
        NONE,
        f"echo 10000 > {BLKLOAD}/a/number_ios",
        run("last"),
        "cat /run/said > /run/isoblk/said",
    )
    assert left.read("said").splitlines() == cycles * ["No such file or directory"]
    for i in range(cycles):
        for name, done in results(left, f"r{i}").items():
            assert done.error == -19, (i, name)
            assert done.end_ns < SECOND, (i, name)
    last = results(left, "last")["a"]
    assert sum(op.ios for op in last.ops.values()) == 20_000
    exact = 20_000 // 2 * 20_000
    assert exact <= last.end_ns <= exact + ENDS


def test_a_slow_disk_completes_its_requests_before_it_is_switched_off(careful: Careful) -> None:
    left = careful.run(
        _disk(servers=1, read_ns=SECOND),
        tenant("a", rw="randread", iodepth=5, runtime=100),
        f"{START_AND_GO}; sleep 0.5; echo 0 > {VDISK}/disk0/power; {WAIT}",
        save("results"),
    )
    done = results(left, "results")["a"]
    assert done.error == -19
    assert done.op.ios == 5
    assert done.op.lat_max_ns <= 5 * SECOND + LATE


def test_rmdir_under_load_removes_the_disk(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        tenant("a", rw="randrw", iodepth=64, runtime=10),
        f"{START_AND_GO}; sleep 0.01; rmdir {VDISK}/disk0; {WAIT}",
        save("results"),
        f"ls {VDISK} {STATS} | grep disk0 > /run/isoblk/rest || [ $? = 1 ]",
        "rmmod isoblk_vdisk; insmod /run/isoblk/modules/isoblk_vdisk.ko",
        vdisk(),
        f"echo 100 > {BLKLOAD}/a/number_ios",
        run("again"),
    )
    assert results(left, "results")["a"].error == -19
    assert left.read("rest") == ""
    assert sum(op.ios for op in results(left, "again")["a"].ops.values()) == 100


def test_an_open_device_outlives_its_disk(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        "exec 3< /dev/disk0",
        f"echo 0 > {VDISK}/disk0/power",
        "dd bs=4k count=1 <&3 2> /dev/null | wc -c > /run/isoblk/said",
        # The name is free again, while the old one is still open.
        f"put 1 {VDISK}/disk0/power >> /run/isoblk/said; rmdir {VDISK}/disk0",
        "try rmmod isoblk_vdisk >> /run/isoblk/said",
        "exec 3<&-; sleep 1; try rmmod isoblk_vdisk >> /run/isoblk/said",
    )
    said = left.read("said").splitlines()
    assert said[0] == "0"  # it has shrunk to nothing
    assert said[1:] == ["ok", "Module isoblk_vdisk is in use", "ok"]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_schedulers_and_controllers_may_change_under_load(
    careful: Careful, version: CgroupVersion
) -> None:
    schedulers = "none mq-deadline kyber bfq none bfq mq-deadline"
    group = (
        f"mkdir {CGROUP}/a"
        if version == "v1"
        else f"echo +io > {CGROUP}/cgroup.subtree_control; mkdir {CGROUP}/a"
    )
    left = careful.run(
        vdisk(servers=2),
        group,
        tenant("a", cgroup="/a", rw="randrw", iodepth=64, runtime=10),
        tenant("b", rw="randtrim", iodepth=8, runtime=10),
        START_AND_GO,
        f"for s in {schedulers}; do echo $s > /sys/block/disk0/queue/scheduler; sleep 0.01; done",
        f"{STOP}; {WAIT}",
        save("results"),
        _stats(),
        cgroup=version,
    )
    done, stats = results(left, "results"), numbers(left.read("stats"))
    assert [tenant.error for tenant in done.values()] == [0, 0]
    assert sum(op.errors for tenant in done.values() for op in tenant.ops.values()) == 0
    # Merged or not, every byte went through the disk.
    for op in ("read", "write"):
        assert stats[f"{op}_bytes"] == done["a"].ops[op].bytes, op
    assert stats["trim_bytes"] == done["b"].op.bytes


def test_many_disks_are_independent(careful: Careful) -> None:
    names = [f"d{i}" for i in range(20)]
    left = careful.run(
        *(vdisk(name, servers=1, read_ns=10_000 * (i + 1)) for i, name in enumerate(names)),
        *(tenant(n, device=f"/dev/{n}", number_ios=100, rw="randread") for n in names),
        run("results"),
        *(f"rmdir {VDISK}/{name}" for name in names),
        "rmmod isoblk_vdisk",
    )
    done = results(left, "results")
    for i, name in enumerate(names):
        service = 10_000 * (i + 1)
        assert 100 * service <= done[name].end_ns <= 100 * (service + 2 * LATE), name
    ends = [done[name].end_ns for name in names]
    assert all(a < b for a, b in pairwise(ends))


def test_memory_that_cannot_be_had_fails_the_power_on_and_nothing_else(careful: Careful) -> None:
    fail, tries = "/sys/kernel/debug/failslab", 100
    left = careful.run(
        f"mkdir {VDISK}/disk0; cd {VDISK}/disk0",
        f"echo 0 > {fail}/verbose; echo N > {fail}/ignore-gfp-wait",
        f"for n in $(seq {tries}); do"
        " if (echo $n > /proc/self/fail-nth; echo 1 > power) 2> /dev/null; then on=1; else"
        " on=0; fi; read power < power; echo $on $power >> /run/said; echo 0 > power; done",
        "echo 1 > power",
        tenant("a", number_ios=100),
        run("results"),
        "cat /run/said > /run/isoblk/said",
    )
    said = left.read("said").splitlines()
    assert len(said) == tries
    assert set(said) == {"0 0", "1 1"}
    assert said.count("0 0") >= 20
    assert results(left, "results")["a"].op.ios == 100


def test_start_on_a_disk_that_is_off_is_refused(guest: Guest) -> None:
    left = guest.run(
        script(
            f"mkdir {VDISK}/disk0",
            tenant("a", number_ios=1),
            f"put 1 {BLKLOAD}/start > /run/isoblk/said",
            f"echo 1 > {VDISK}/disk0/power; {START}; {WAIT}",
            save("results"),
        )
    )
    assert left.read("said") == "No such file or directory\n"
    assert results(left, "results")["a"].op.ios == 1

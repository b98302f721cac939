# SPDX-License-Identifier: GPL-2.0-only
"""Features of some virtual disks only: a volume's limits, pages of several kinds, read-ahead."""

import errno

import pytest

from tests.lab.guest import Guest, Left
from tests.lab.load import (
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

NONE = "Q=/sys/block/disk0/queue; echo none > $Q/scheduler; echo 2 > $Q/nomerges"
MIB = 1 << 20
# Never short of servers.
VOLUME: Load = {"servers": 1023, "read_ns": 20_000, "write_ns": 20_000}
# The spread of TLC; it reads 32 units ahead, and its channels and controller take no time.
FLASH: Load = {
    "model": "flash",
    "size": "256m",
    "flash/read_ns": 50_000,
    "flash/cell_bits": 3,
    "flash/read_step": 150,
    "flash/cmd_ns": 0,
    "flash/bus_bps": 0,
    "flash/precondition": "sequential",
}


def _stats() -> str:
    return f"cat {STATS}/disk0/stats > /run/isoblk/stats"


def _ends(guest: Guest, disk: Load, load: Load) -> Left:
    return guest.run(script(vdisk(**disk), NONE, tenant("a", **load), run("results"), _stats()))


@pytest.mark.parametrize(
    ("limits", "load", "each_ns"),
    [
        ({"volume/iops": 3000}, {"rw": "randread", "bs": 4096}, 10**9 / 3000),
        ({"volume/iops": 3000}, {"rw": "randwrite", "bs": "1m"}, 4 * 10**9 / 3000),
        ({"volume/bps": 125 * MIB}, {"rw": "randread", "bs": "128k"}, 10**6),
        # The tighter one of the two.
        ({"volume/iops": 2000, "volume/bps": 125 * MIB}, {"rw": "randrw", "bs": "16k"}, 500_000),
        # Sequential requests count as one: 64 of 4 KiB.
        ({"volume/iops": 1000}, {"rw": "read", "bs": 4096}, 10**9 / 64_000),
    ],
)
def test_a_volume_keeps_to_its_limits_exactly(
    guest: Guest, limits: Load, load: Load, each_ns: float
) -> None:
    count = 2000 if load["rw"] == "read" else 400
    left = _ends(guest, {**VOLUME, **limits}, {**load, "iodepth": 256, "number_ios": count})
    done = results(left, "results")["a"]
    # Merging begins with the second request.
    first = 0 if load["rw"] != "read" else 10**6
    exact = (count - 1) * each_ns + first
    assert done.end_ns == pytest.approx(exact, rel=0.01, abs=2 * MS)
    assert numbers(left.read("stats"))["waiting_max"] > 200


def test_a_burst_is_spent_once_and_saved_up_again(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(**VOLUME, **{"volume/iops": 1000, "volume/burst_ns": 100 * MS}),
            NONE,
            tenant("a", rw="randread", iodepth=1, number_ios=200),
            run("first"),
            run("second"),
        )
    )
    # 101 go at once, and one a ms from then on. The second begins at least a second later.
    for name in ("first", "second"):
        assert results(left, name)["a"].end_ns == pytest.approx(99 * MS, abs=MS)


def test_a_volume_completes_its_requests_when_it_is_switched_off(careful: Careful) -> None:
    left = careful.run(
        vdisk(**VOLUME, **{"volume/iops": 10}),
        tenant("a", rw="randread", iodepth=5, runtime=100),
        f"{START_AND_GO}; sleep 0.05; echo 0 > {VDISK}/disk0/power; {WAIT}",
        save("results"),
    )
    done = results(left, "results")["a"]
    assert done.error == -errno.ENODEV
    # One went on at once, and another came in its place.
    assert done.op.ios == 6
    assert done.op.lat_max_ns <= SECOND // 2 + LATE


def test_requests_queued_at_a_lost_volume_fail_when_they_are_due(careful: Careful) -> None:
    read = "dd if=/dev/disk0 of=/dev/null bs=4k count=1 iflag=direct status=none"
    left = careful.run(
        vdisk(**VOLUME, **{"volume/iops": 10}),
        f"{read}; (try {read} > /run/late) & sleep 0.02",
        f"echo lost > {VDISK}/disk0/fault/state; try {read} > /run/isoblk/said; wait",
        "cat /run/late >> /run/isoblk/said",
        f"echo ok > {VDISK}/disk0/fault/state; try {read} >> /run/isoblk/said",
        _stats(),
    )
    gone = text(errno.ENODEV)
    assert left.read("said").splitlines()[:2] == [gone, gone]
    stats = numbers(left.read("stats"))
    assert (stats["in_service"], stats["waiting"]) == (0, 0)


def test_a_volume_s_limits_may_change_while_it_holds_requests(careful: Careful) -> None:
    left = careful.run(
        vdisk(**VOLUME, **{"volume/iops": 1}),
        tenant("a", rw="randread", iodepth=64, number_ios=64),
        f"{START_AND_GO}; sleep 0.1; echo 0 > {VDISK}/disk0/volume/iops; {WAIT}",
        save("results"),
    )
    assert results(left, "results")["a"].end_ns < SECOND


def test_the_network_delays_each_request_and_holds_no_server(guest: Guest) -> None:
    disk: Load = {"servers": 4, "read_ns": 100_000, "volume/net_ns": 900_000}
    left = _ends(guest, disk, {"rw": "randread", "iodepth": 40, "number_ios": 4000})
    op = results(left, "results")["a"].op
    assert op.lat_min_ns >= 1_000_000
    # 40 in flight, of 1 ms at least: 40,000 a second, which is what the servers do.
    assert op.lat_sum_ns / op.ios == pytest.approx(1_000_000, rel=0.03)


def test_a_volume_is_the_same_to_the_byte_each_time(guest: Guest) -> None:
    def made(seed: int) -> str:
        disk: Load = {
            **VOLUME,
            **{"volume/iops": 5000, "volume/burst_ns": MS, "jitter": 200, "seed": seed},
            **{"volume/net_ns": 500_000, "volume/net_spread": 400},
        }
        load: Load = {"rw": "randrw", "iodepth": 32, "number_ios": 3000}
        return _ends(guest, disk, load).read("results")

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_random_reads_alone_take_as_long_as_their_kind_of_page(guest: Guest) -> None:
    left = _ends(guest, FLASH, {"rw": "randread", "number_ios": 3000})
    op = results(left, "results")["a"].op
    # 40,000, 47,500 and 62,500 ns of the cells, and 5,000 more.
    kinds = [45_000, 52_500, 67_500]
    near = [
        sum(count for upper, count in op.lat.items() if ns - 2000 < upper < ns + 4000)
        for ns in kinds
    ]
    assert sum(near) == 3000
    for count in near:
        assert count == pytest.approx(1000, abs=100)
    assert op.lat_sum_ns / op.ios == pytest.approx(55_000, rel=0.02)


@pytest.mark.parametrize("readahead", [0, 128 << 10])
def test_a_stream_is_faster_than_random_reads_if_the_disk_reads_ahead(
    guest: Guest, readahead: int
) -> None:
    disk: Load = {**FLASH, "flash/readahead": readahead}
    left = _ends(guest, disk, {"rw": "read", "number_ios": 3000})
    op = results(left, "results")["a"].op
    stats = numbers(left.read("stats"))
    if readahead:
        assert op.lat_sum_ns / op.ios == pytest.approx(5_000, rel=0.2)
        assert stats["readahead_hits"] >= 2990
        assert stats["readahead_pages"] <= 3000 + 32
    else:
        assert op.lat_sum_ns / op.ios == pytest.approx(55_000, rel=0.02)
        assert stats["readahead_pages"] == 0


@pytest.mark.parametrize("rw", ["randrw", "rw", "read"])
def test_a_flash_disk_is_the_same_to_the_byte_each_time(guest: Guest, rw: str) -> None:
    def made(seed: int) -> str:
        disk: Load = {**FLASH, "flash/readahead": "128k", "jitter": 50, "seed": seed}
        return _ends(guest, disk, {"rw": rw, "iodepth": 16, "number_ios": 4000}).read("results")

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_read_ahead_returns_blocks_that_were_written_meanwhile(careful: Careful) -> None:
    disk: Load = {**FLASH, "flash/readahead": "128k", "store": "memory", "size": "64m"}
    load: Load = {"bs": 4096, "verify": 1, "size": "16m", "number_ios": 4000, "iodepth": 8}
    left = careful.run(
        vdisk(**disk),
        tenant("a", **load, rw="rw"),
        tenant("b", **load, rw="randrw", offset="16m"),
        tenant("c", **load, rw="read", offset="32m"),
        run("results"),
    )
    for done in results(left, "results").values():
        assert done.error == 0
        assert sum(op.errors for op in done.ops.values()) == 0

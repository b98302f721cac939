# SPDX-License-Identifier: GPL-2.0-only
"""Blkload's figures: histogram, time series and totals of a disk that is known exactly."""

from math import inf

import pytest

from isoblk.programs.blkload import parse_results
from tests.lab.guest import Guest
from tests.lab.load import (
    LATE,
    MS,
    RESULTS,
    SECOND,
    VDISK,
    Load,
    Op,
    Tenant,
    measure,
    results,
    run,
    script,
    tenant,
    vdisk,
)


def _lower(upper: int) -> int:
    """The lower bound of a bucket: exact below 128 ns, then 64 in each power of two."""
    if upper <= 128:
        return upper - 1
    width = 1 << ((upper - 1).bit_length() - 7)
    assert upper % width == 0, upper
    return upper - width


def test_buckets_hold_the_known_latency_within_their_width(guest: Guest) -> None:
    services = [1, 100, 1000, 5000, 20_000, 77_777, 10**6, 33_333_333, 10**9, 10**10]
    lines = [vdisk(), tenant("a", rw="randread", number_ios=20)]
    for service in services:
        lines += [f"echo {service} > {VDISK}/disk0/read_ns", run(f"s{service}")]
    left = guest.run(script(*lines))
    for service in services:
        op = results(left, f"s{service}")["a"].op
        assert service <= op.lat_min_ns <= op.lat_max_ns <= service + LATE, service
        for upper in op.lat:
            lower = _lower(upper)
            assert upper - lower <= max(1, lower / 64), upper
        # The outermost buckets hold the extremes, to the ns.
        assert _lower(min(op.lat)) <= op.lat_min_ns < min(op.lat), service
        assert _lower(max(op.lat)) <= op.lat_max_ns < max(op.lat), service
        # A percentile of the histogram is right to 1.6 %.
        low = sum(_lower(upper) * count for upper, count in op.lat.items())
        high = sum(upper * count for upper, count in op.lat.items())
        assert low <= op.lat_sum_ns <= high, service
        assert high - op.lat_sum_ns <= 0.016 * op.lat_sum_ns, service


def _quantile(op: Op, share: float) -> int:
    """The upper bound of the bucket that holds it."""
    seen = 0
    for upper, count in op.lat.items():
        seen += count
        if seen >= share * op.meas_ios:
            return upper
    raise AssertionError("empty histogram")


def test_a_queue_s_latencies_are_those_of_theory(guest: Guest) -> None:
    # 64 in flight and 4 servers: each request waits for 15 others, then is served.
    load: Load = {"rw": "randread", "iodepth": 64, "number_ios": 64_000}
    op = measure(guest, {"a": load}, disk=vdisk(servers=4, read_ns=25_600))["a"].result.op
    full = 16 * 25_600
    assert _quantile(op, 0.01) == pytest.approx(full, rel=0.02)
    assert _quantile(op, 0.999) == pytest.approx(full, rel=0.02)
    assert full <= op.lat_max_ns <= full + LATE
    # The first 64 come to an idle disk: 4 of each multiple of the service time.
    counts = list(op.lat.values())
    assert counts[:15] == 15 * [4]


def test_an_open_loop_s_wait_for_a_slot_is_latency_a_closed_loop_s_is_not(guest: Guest) -> None:
    # One disk, overloaded by half, one slot: the same requests, seen from the arrival or not.
    load: Load = {"rw": "randread", "number_ios": 1000}
    cases = {"open": load | {"rate_iops": 60_000}, "closed": load}
    done = measure(guest, cases, disk=vdisk(servers=1, read_ns=25_600))
    opened, closed = done["open"].result.op, done["closed"].result.op
    assert closed.lat_max_ns <= 25_600 + LATE
    last = done["open"].result.end_ns - 999 * SECOND // 60_000
    assert opened.lat_max_ns == pytest.approx(last, abs=LATE)
    assert opened.lat_min_ns <= 25_600 + LATE
    # In even steps between the two.
    assert opened.lat_sum_ns / 1000 == pytest.approx((opened.lat_min_ns + last) / 2, rel=0.01)


def test_series_totals_and_histogram_agree_for_a_mix_on_both_kernels(any_guest: Guest) -> None:
    # results() checks that all sums are those of their parts.
    left = any_guest.run(
        script(
            vdisk(servers=4, read_ns=30_000, write_ns=50_000, trim_ns=10_000, read_bps="500m"),
            tenant(
                "mix",
                rw="randrw",
                bssplit="4k/80:64k/20",
                iodepth=16,
                numjobs=3,
                fsync=10,
                ramp_time="31ms",
                runtime="70ms",
                window=1,
            ),
            tenant("trim", rw="randtrim", iodepth=8, runtime="60ms", startdelay="15ms", window=7),
            tenant("open", rate_iops=7000, rate_process="poisson", iodepth=9, runtime="150ms"),
            run("results"),
        )
    )
    done = results(left, "results")
    assert list(done) == ["mix", "open", "trim"]
    assert list(done["mix"].ops) == ["read", "write", "flush"]
    for name, first, end, window in (
        ("mix", 0, 101, 1),
        ("trim", 15, 75, 7),
        ("open", 0, 150, 100),
    ):
        for op in done[name].ops.values():
            assert min(op.win) >= first // window * window, name
            assert max(op.win) <= end + 5, name
    mix = done["mix"]
    assert (mix.measure_from_ns, mix.measure_to_ns) == (31 * MS, 101 * MS)
    for kind, op in mix.ops.items():
        # Windows of 1 ms: the measured ones are known exactly.
        inside = [count for start, count in op.win.items() if 31 <= start < 101]
        assert op.meas_ios == sum(ios for ios, _ in inside), kind
        assert op.meas_bytes == sum(size for _, size in inside), kind


def test_a_long_run_of_short_windows_is_kept_whole(guest: Guest) -> None:
    load: Load = {"rate_iops": 100, "runtime": 300, "window": 1}
    op = measure(guest, {"a": load})["a"].result.op
    assert op.ios == 30_000
    assert len(op.win) == 30_000
    assert max(op.win) == 299_990


def test_the_product_parses_the_results_of_the_kernel(guest: Guest) -> None:
    left = guest.run(
        script(
            vdisk(),
            tenant("a", rw="randrw", iodepth=4, runtime="10ms", ramp_time="5ms", fsync=2, window=1),
            tenant("b", rw="trim", number_ios=10),
            tenant("c", rate_iops=1, startdelay=1, runtime="1ns"),
            run("results"),
            f"wc -l < {RESULTS} > /run/isoblk/lines",
        )
    )
    text = left.read("results")
    assert int(left.read("lines")) == len(text.splitlines())
    mine, product = results(left, "results"), parse_results(text)
    assert list(product) == list(mine)
    for name, output in product.items():
        tenant_: Tenant = mine[name]
        assert output.error == 0
        assert output.measured_ns == (tenant_.measure_from_ns, tenant_.measure_to_ns)
        for kind, op in tenant_.ops.items():
            assert output.ops[kind].ios == op.ios
            assert output.ops[kind].lat_sum_ns == op.lat_sum_ns
            assert {u: n for (k, u), n in output.latency.items() if k == kind} == op.lat
            assert {s: w for (k, s), w in output.windows.items() if k == kind} == op.win
    assert min((op.lat_min_ns for op in mine["a"].ops.values()), default=inf) < MS

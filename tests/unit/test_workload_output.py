# SPDX-License-Identifier: GPL-2.0-only
"""The output of generators is read to the last number, and no other text is mistaken for it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.campaign.charged import parse_charged
from isoblk.errors import RunError
from isoblk.programs import blkload, fio
from isoblk.run.record import IoStat, OpTotals, Processors
from isoblk.run.spec import RunSpec
from tests.unit.specs import MS, run_spec, tenant

RESULTS = """\
tenant web jobs 2 start_ns 2000000000 measure_from_ns 100 measure_to_ns 1100 end_ns 1180 error 0
cpu web cpus 2 busy_ns 700
op web read issued 10 ios 10 bytes 40960 errors 1 verify_errors 2 meas_ios 9 meas_bytes 36864 \
lat_sum_ns 800 lat_min_ns 80 lat_max_ns 90
lat web read 81 8
lat web read 91 1
win web read 0 4 16384
win web read 100 6 24576
tenant idle jobs 1 start_ns 2000000000 measure_from_ns 0 measure_to_ns 1 end_ns 1 error -5
"""


def test_results_of_blkload() -> None:
    outputs = blkload.parse_results(RESULTS)
    assert list(outputs) == ["web", "idle"]
    web = outputs["web"]
    assert (web.jobs, web.error, web.measured_ns) == (2, 0, (100, 1100))
    assert web.latency == {("read", 81): 8, ("read", 91): 1}
    assert web.processors == Processors(cpus=2, busy_ns=700)
    assert web.windows == {("read", 0): (4, 16384), ("read", 100): (6, 24576)}
    assert web.ops == {
        "read": OpTotals(
            ios=10,
            bytes=40960,
            errors=1,
            verify_errors=2,
            meas_ios=9,
            meas_bytes=36864,
            lat_sum_ns=800,
            lat_min_ns=80,
            lat_max_ns=90,
        )
    }
    assert outputs["idle"].error == -5


@pytest.mark.parametrize(
    "line",
    [
        "",
        "cpu web cpus 2",
        "lat web read 81",
        "lat web read x 8",
        "win nobody read 0 1 2",
        "op web read ios 3",
        "x",
    ],
)
def test_a_damaged_result_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(RunError, match=r"results:9: not a result of blkload"):
        blkload.parse_results(RESULTS + line + "\n")


def _fio(bins: dict[str, int]) -> bytes:
    count = sum(bins.values())
    read = {
        "total_ios": count,
        "io_bytes": 4096 * count,
        "runtime": 1000,
        "lat_ns": {"mean": 81.0, "N": count, "min": 80, "max": 90, "bins": bins},
    }
    job = {
        "error": 0,
        "job options": {"numjobs": "1"},
        "read": read,
        "write": {"total_ios": 0},
        "trim": {"total_ios": 0},
    }
    return b"fio: a warning\n" + json.dumps({"jobs": [job]}).encode()


def test_json_of_fio() -> None:
    output = fio.parse_output("t1", _fio({"80": 3, "81408": 5}))
    assert output.ops["read"].ios == 8
    assert output.ops["read"].lat_sum_ns == 81 * 8
    assert output.measured_ns == (0, 1_000_000_000)
    assert output.latency == {("read", 81): 3, ("read", 81920): 5}


def test_requests_of_fio_in_its_ramp_alone_are_not_measured() -> None:
    job = json.loads(_fio({"80": 3}).partition(b"\n")[2])
    job["jobs"][0]["read"]["lat_ns"] = {"mean": 0.0, "N": 0, "min": 0, "max": 0}
    output = fio.parse_output("t1", json.dumps(job).encode())
    assert (output.ops["read"].ios, output.ops["read"].meas_ios) == (3, 0)
    assert output.measured_ns == (0, 0)


@given(st.integers(min_value=0, max_value=2**40))
def test_the_bucket_of_a_value_bounds_it_closely(value: int) -> None:
    ((_, upper),) = fio.parse_output("t1", _fio({str(value): 1})).latency
    assert value < upper <= value + max(1, value / 64 + 1)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"jobs": []}', b"{", b'{"jobs": [{}]}'])
def test_output_that_is_not_fios_is_refused(data: bytes) -> None:
    with pytest.raises(RunError, match=r"t1\.json: not fio's json"):
        fio.parse_output("t1", data)


def test_charges_of_v2() -> None:
    files = {
        "/sys/fs/cgroup/a/t1/io.stat": "254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6",
        "/sys/fs/cgroup/t1/io.stat": "254:0 rbytes=9 wbytes=9 rios=9 wios=9 dbytes=9 dios=9",
    }
    expected = IoStat(rbytes=1, wbytes=2, rios=3, wios=4, dbytes=5, dios=6)
    assert parse_charged(files, "/sys/fs/cgroup/a/t1") == expected


def test_charges_of_a_cgroup_of_the_same_name_further_down_are_not_its_own() -> None:
    files = {"/sys/fs/cgroup/a/cgroup/t1/io.stat": "254:0 rbytes=1 wbytes=0 rios=1 wios=0"}
    assert parse_charged(files, "/sys/fs/cgroup/t1") is None


def test_charges_of_v1() -> None:
    base = "/sys/fs/cgroup/t1/blkio.bfq.io_"
    files = {
        base + "service_bytes": "254:0 Read 4096\n254:0 Write 0\n254:0 Discard 512\nTotal 4608",
        base + "serviced": "254:0 Read 1\n254:0 Write 0\n254:0 Discard 1\nTotal 2",
    }
    expected = IoStat(rbytes=4096, wbytes=0, rios=1, wios=0, dbytes=512, dios=1)
    assert parse_charged(files, "/sys/fs/cgroup/t1") == expected


def test_a_cgroup_that_nothing_was_counted_for_has_no_charges() -> None:
    assert parse_charged({}, "/sys/fs/cgroup/t1") is None
    assert parse_charged({"/sys/fs/cgroup/t1/io.stat": ""}, "/sys/fs/cgroup/t1") is None


def _left(directory: Path, log: str, start_ms: int = 1000) -> RunSpec:
    """The files of fio for a tenant t1 with 1000 reads in 1 s after a ramp of 500 ms."""
    load = tenant("t1", program="fio")
    spec = run_spec(tenants=(load,), warmup_ns=500 * MS, window_ms=100)
    (directory / "t1.json").write_bytes(_fio({"1000": 1000}))
    (directory / "start").write_text(f"{start_ms * MS}\n")
    for unit in ("iops", "bw"):
        (directory / f"t1_{unit}.1.log").write_text(log)
    return spec


def test_windows_of_fios_logs_lie_after_the_common_start(tmp_path: Path) -> None:
    # Twice as fast in the second half; the last line is missing, as fio leaves it.
    rates = [666] * 5 + [1333] * 4
    log = "".join(f"{1000 + 600 + 100 * i}, {rate}, 0, 0, 0\n" for i, rate in enumerate(rates))
    spec = _left(tmp_path, log)
    output = fio.read_output(tmp_path, spec.tenants[0], spec)
    assert output.measured_ns == (500 * MS, 1500 * MS)
    ios = {t_ms: ios for (_, t_ms), (ios, _) in output.windows.items()}
    assert list(ios) == list(range(500, 1500, 100))
    assert all(abs(ios[t_ms] - 67) <= 1 for t_ms in range(500, 1000, 100))
    assert all(abs(ios[t_ms] - 133) <= 2 for t_ms in range(1000, 1500, 100))
    assert sum(ios.values()) == 1000


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(0, 5000)), min_size=1, max_size=20),
    st.integers(1, 100_000),
)
def test_windows_add_up_to_the_count_of_fio(steps: list[tuple[int, int]], total: int) -> None:
    log, at = [], 500.0
    for step, rate in steps:
        at += step
        log.append((at, float(rate)))
    windows = fio._windows([log], total, (500.0, 1500.0), 100)
    assert sum(windows.values()) == total
    assert all(count > 0 for count in windows.values())


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("t1_iops.1.log", "x\n", r"t1_iops\.1\.log:1: not a line of fio's log"),
        ("t1_iops.1.log", "", "fio logged no window"),
        ("start", "x", "start: not a time"),
        ("t1.json", "{}", r"t1\.json: not fio's json"),
    ],
)
def test_a_damaged_file_of_fio_is_refused(
    tmp_path: Path, file: str, content: str, why: str
) -> None:
    spec = _left(tmp_path, "1600, 1000, 0, 0, 0\n")
    (tmp_path / file).write_text(content)
    with pytest.raises(RunError, match=why):
        fio.read_output(tmp_path, spec.tenants[0], spec)


def test_only_the_disks_own_line_is_a_charge() -> None:
    files = {
        "/cg/t1/io.stat": "254:0 rbytes=9 wbytes=9 rios=9 wios=9\n7:0 rbytes=1 wbytes=2 rios=3"
    }
    assert parse_charged(files, "/cg/t1", "7:0") == IoStat(rbytes=1, wbytes=2, rios=3, wios=0)
    assert parse_charged(files, "/cg/t1", "8:0") is None

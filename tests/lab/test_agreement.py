# SPDX-License-Identifier: GPL-2.0-only
"""The generator's figures are those of fio, and of the cgroup's charges."""

import shutil
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.run.record import RunRecord
from isoblk.run.spec import Device, Workload
from tests.unit.specs import SECOND, NullBlkDevice, VdiskDevice, run_spec, tenant

LOADS = {
    "random reads": Workload(rw="randread", iodepth=8),
    "sequential writes": Workload(rw="write", iodepth=16, bs=65536),
    "mixed": Workload(rw="randrw", rwmixread=70, iodepth=16),
    "one at a time": Workload(rw="randread", iodepth=1),
}
# Slow enough that what fio pays for its own clock readings, five of 256 ns a request, is less
# than the 2 %.
VDISK = VdiskDevice(servers=4, read_ns=100_000, write_ns=180_000)
CASES: list[tuple[str, Device, Workload]] = [
    ("null_blk, one at a time", NullBlkDevice(), LOADS["one at a time"]),
    *((f"vdisk, {name}", VDISK, load) for name, load in LOADS.items()),
]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize(
    ("device", "load"),
    [(device, load) for _, device, load in CASES],
    ids=[name for name, _, _ in CASES],
)
def test_iops_and_mean_latency_are_fios_within_2_percent(
    default_bench: Bench, tmp_path: Path, device: Device, load: Workload
) -> None:
    by_program = {}
    for program in ("blkload", "fio"):
        fields = {name: getattr(load, name) for name in ("rw", "rwmixread", "iodepth", "bs")}
        only = tenant("t1", **fields, program=program)
        spec = run_spec(tenants=(only,), device=device, runtime_ns=SECOND)
        run = execute(make_job(spec, "", ""), default_bench, tmp_path)
        assert run.record.reasons == []
        by_program[program] = run.record
    own, fios = by_program["blkload"], by_program["fio"]
    assert _iops(own) == pytest.approx(_iops(fios), rel=0.02)
    for op in own.tenants[0].ops:
        assert _mean_latency(own, op) == pytest.approx(_mean_latency(fios, op), rel=0.02)


def _iops(record: RunRecord) -> float:
    (only,) = record.tenants
    return sum(op.meas_ios for op in only.ops.values()) * 1e9 / only.measured_ns


def _mean_latency(record: RunRecord, op: str) -> float:
    totals = record.tenants[0].ops[op]
    return totals.lat_sum_ns / totals.meas_ios


@pytest.mark.parametrize("cgroup", ["v1", "v2"])
@pytest.mark.parametrize("rw", ["randread", "randwrite", "randrw"])
def test_the_cgroup_is_charged_with_every_byte(
    default_bench: Bench, tmp_path: Path, cgroup: str, rw: str
) -> None:
    tenants = (tenant("t1", 200, rw=rw, iodepth=8), tenant("t2", 100, rw=rw, iodepth=8))
    spec = run_spec("bfq", cgroup=cgroup, tenants=tenants)
    record = execute(make_job(spec, "", ""), default_bench, tmp_path).record
    assert record.reasons == []
    for one in record.tenants:
        assert one.io_stat is not None
        assert one.io_stat.rbytes == (one.ops["read"].bytes if "read" in one.ops else 0)
        assert one.io_stat.wbytes == (one.ops["write"].bytes if "write" in one.ops else 0)

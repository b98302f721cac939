# SPDX-License-Identifier: GPL-2.0-only
"""A run is believed only if the counted bytes equal the charged ones."""

import json
from pathlib import Path

import pytest

from isoblk.campaign.collect import collect
from isoblk.errors import RunError
from isoblk.machine import Ran
from isoblk.plan.plan import Plan
from tests.unit.resultgen import PROVENANCE
from tests.unit.specs import MS, Group, run_spec, tenant

COUNTED = 1000


def _collect(directory: Path, warmup_ns: int, charged: int) -> list[str]:
    """The reasons against a run of one fio tenant that counted COUNTED reads of 4 KiB."""
    latency = {"mean": 81.0, "N": COUNTED, "min": 80, "max": 90, "bins": {"80": COUNTED}}
    read = {"total_ios": COUNTED, "io_bytes": 4096 * COUNTED, "runtime": 1000, "lat_ns": latency}
    idle = {"total_ios": 0}
    job = {"error": 0, "job options": {}, "read": read, "write": idle, "trim": idle}
    own = directory / "programs"
    own.mkdir()
    (own / "t1.json").write_text(json.dumps({"jobs": [job]}))
    (own / "start").write_text("0\n")
    for unit in ("iops", "bw"):
        (own / f"t1_{unit}.1.log").write_text("500, 1000, 0, 0, 0\n")
    (directory / "results").write_text("")
    (directory / "knobs").write_text("")
    stat = f"254:0 rbytes={4096 * charged} wbytes=0 rios={charged} wios=0 dbytes=0 dios=0"
    (directory / "charged").write_text(f"/sys/fs/cgroup/t1/io.stat:{stat}\n")
    spec = run_spec(tenants=(tenant("t1", program="fio"),), warmup_ns=warmup_ns)
    return collect(directory, "id", spec, Plan("", (), ()), Ran(0, 0), PROVENANCE).reasons


@pytest.mark.parametrize(
    ("warmup_ns", "charged", "believed"),
    [(0, 1000, True), (0, 1500, False), (500 * MS, 1500, True), (500 * MS, 900, False)],
)
def test_fio_does_not_count_its_warmup_and_the_cgroup_does(
    tmp_path: Path, warmup_ns: int, charged: int, believed: bool
) -> None:
    assert (_collect(tmp_path, warmup_ns, charged) == []) is believed


@pytest.mark.parametrize(
    ("cgroup", "charged", "believed"),
    [("v2", 2000, True), ("v2", 1000, False), ("v1", 1000, True), ("v1", 2000, False)],
)
def test_the_charge_of_a_child_counts_for_its_parent_on_v2_alone(
    tmp_path: Path, cgroup: str, charged: int, believed: bool
) -> None:
    """A parent and its child counted 1000 reads of 4 KiB each."""
    root = "/sys/fs/cgroup"
    results, lines = "", []
    for name, path, ios in (("t1", "p", charged), ("t2", "p/c", COUNTED)):
        size = 4096 * COUNTED
        results += (
            f"tenant {name} jobs 1 start_ns 1 measure_from_ns 0 measure_to_ns 9 end_ns 9 error 0\n"
            f"op {name} read issued {COUNTED} ios {COUNTED} bytes {size} errors 0 verify_errors 0"
            f" meas_ios {COUNTED} meas_bytes {size} lat_sum_ns 1 lat_min_ns 1 lat_max_ns 1\n"
        )
        if cgroup == "v2":
            lines.append(f"{root}/{path}/io.stat:254:0 rbytes={4096 * ios} wbytes=0 rios={ios}")
        else:
            file = f"{root}/{path}/blkio.isoblk.io_service"
            lines += [f"{file}_bytes:254:0 Read {4096 * ios}", f"{file}_bytes:Total {4096 * ios}"]
            lines.append(f"{file}d:254:0 Read {ios}")
    (tmp_path / "results").write_text(results)
    (tmp_path / "knobs").write_text("")
    (tmp_path / "charged").write_text("\n".join(lines))
    spec = run_spec(
        "kyber-fair",
        cgroup=cgroup,
        groups=(Group(path="p", weight=100),),
        tenants=(tenant("t1", 100, "p"), tenant("t2", 100, "p/c")),
    )
    reasons = collect(tmp_path, "id", spec, Plan("", (), ()), Ran(0, 0), PROVENANCE).reasons
    assert (reasons == []) is believed
    assert all(reason.startswith("t1: generator counted") for reason in reasons)


@pytest.mark.parametrize(
    ("reads", "dbytes", "believed"),
    [(0, None, True), (1, 4096 * COUNTED, True), (1, 0, False)],
)
def test_a_cgroup_that_only_trims_shows_nothing_on_v2(
    tmp_path: Path, reads: int, dbytes: int | None, believed: bool
) -> None:
    """The kernel leaves its line out until it has read or written."""
    rest = "errors 0 verify_errors 0"
    measured = "lat_sum_ns 1 lat_min_ns 1 lat_max_ns 1"
    results = (
        "tenant t1 jobs 1 start_ns 1 measure_from_ns 0 measure_to_ns 9 end_ns 9 error 0\n"
        f"op t1 trim issued {COUNTED} ios {COUNTED} bytes {4096 * COUNTED} {rest}"
        f" meas_ios {COUNTED} meas_bytes {4096 * COUNTED} {measured}\n"
    )
    if reads:
        results += (
            f"op t1 read issued 1 ios 1 bytes 4096 {rest} meas_ios 1 meas_bytes 4096 {measured}\n"
        )
    (tmp_path / "results").write_text(results)
    (tmp_path / "knobs").write_text("")
    line = f"254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes={dbytes} dios=1" if reads else ""
    (tmp_path / "charged").write_text(f"/sys/fs/cgroup/t1/io.stat:{line}\n" if line else "")
    spec = run_spec(tenants=(tenant("t1"),))
    reasons = collect(tmp_path, "id", spec, Plan("", (), ()), Ran(0, 0), PROVENANCE).reasons
    assert (reasons == []) is believed


def test_a_garbled_result_of_a_guest_is_refused_without_a_crash(tmp_path: Path) -> None:
    for name in ("knobs", "charged"):
        (tmp_path / name).write_bytes(b"\xff\n")
    (tmp_path / "results").write_bytes(b"tenant \xff\xfe\n")
    with pytest.raises(RunError, match="not a result of blkload"):
        collect(tmp_path, "id", run_spec(), Plan("", (), ()), Ran(0, 0), PROVENANCE)

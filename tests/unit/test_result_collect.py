# SPDX-License-Identifier: GPL-2.0-only
"""A run is believed only if what was counted is what was charged."""

import json
from pathlib import Path

import pytest

from isoblk.errors import RunError
from isoblk.guest.plan import Plan
from isoblk.machine import Ran
from isoblk.result.collect import collect
from tests.unit.resultgen import PROVENANCE
from tests.unit.specs import MS, run_spec, tenant

COUNTED = 1000


def _collect(directory: Path, warmup_ns: int, charged: int) -> list[str]:
    """The reasons against a run of one fio tenant that counted COUNTED reads of 4 KiB."""
    latency = {"mean": 81.0, "N": COUNTED, "min": 80, "max": 90, "bins": {"80": COUNTED}}
    read = {"total_ios": COUNTED, "io_bytes": 4096 * COUNTED, "runtime": 1000, "clat_ns": latency}
    idle = {"total_ios": 0}
    job = {"error": 0, "job options": {}, "read": read, "write": idle, "trim": idle}
    (directory / "t1.json").write_text(json.dumps({"jobs": [job]}))
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


def test_what_a_guest_garbled_is_refused_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "results").write_bytes(b"tenant \xff\xfe\n")
    with pytest.raises(RunError, match="not a result of blkload"):
        collect(tmp_path, "id", run_spec(), Plan("", (), ()), Ran(0, 0), PROVENANCE)

# SPDX-License-Identifier: GPL-2.0-only
"""YCSB on RocksDB in a guest: every operation of its workloads works, the disk is not hidden by
caches, and equal seeds give equal runs."""

from pathlib import Path
from typing import Any

import pytest

from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.campaign.installed import find_programs
from isoblk.programs import ycsb_jars
from isoblk.result.store import Run
from isoblk.run.record import TenantResult
from isoblk.run.spec import Filesystem, Options, PlannedRun, RunSpec, VdiskDevice
from isoblk.study.model import Expansion, Study
from tests.unit.specs import MS, SECOND, run_spec, tenant

MIB = 1 << 20
pytestmark = pytest.mark.skipif(bool(ycsb_jars.missing()), reason="no Java or Maven")


def _spec(options: Options, **fields: Any) -> RunSpec:
    small: Options = {"recordcount": 3000, "cache": "128k", "buffer": "256k"}
    return run_spec(
        device=VdiskDevice(size=256 * MIB, store="memory", read_ns=80_000, write_ns=80_000),
        filesystem=Filesystem(type="ext4", offset=0, size=128 * MIB),
        tenants=(
            tenant("db", program="ycsb", options=small | options),
            tenant("web", rw="randread", iodepth=4, offset=128 * MIB, size=128 * MIB),
        ),
        **fields,
    )


def _run(spec: RunSpec, bench: Bench, results: Path) -> Run:
    """The run, which must be valid."""
    study = Study(name="s", device="fast", tenant=[])
    found = find_programs(Expansion(study=study, runs=(PlannedRun(spec=spec),)))
    (results / "runs").mkdir(parents=True)
    run = execute(make_job(found.runs[0].spec, "", ""), bench, results)
    assert run.record.reasons == []
    return run


def _db(run: Run) -> TenantResult:
    return next(one for one in run.record.tenants if one.name == "db")


def _figures(run: Run) -> dict[str, float]:
    says = _db(run).says
    assert says is not None
    return {figure.name: figure.value for figure in says.figures}


@pytest.mark.long
@pytest.mark.parametrize(
    ("workload", "operations"),
    [("e", {"SCAN", "INSERT"}), ("f", {"READ", "UPDATE", "READ-MODIFY-WRITE"})],
)
def test_every_operation_works(
    workload: str, operations: set[str], default_bench: Bench, tmp_path: Path
) -> None:
    options: Options = {"workload": workload, "operationcount": 400}
    figures = _figures(_run(_spec(options), default_bench, tmp_path))
    assert {name.partition(".")[0] for name in figures} == operations | {"throughput"}
    done = {one: figures[f"{one}.ops"] for one in operations}
    # The parts of a read-modify-write are counted as well.
    parts = done.get("READ-MODIFY-WRITE", 0)
    assert sum(done.values()) == 400 + 2 * parts


@pytest.mark.long
def test_equal_seeds_give_equal_runs_and_others_do_not(
    default_bench: Bench, tmp_path: Path
) -> None:
    options: Options = {"workload": "a"}
    specs = [_spec(options, warmup_ns=500 * MS, runtime_ns=SECOND // 2, seed=s) for s in (7, 7, 8)]
    first, again, other = (
        _run(spec, default_bench, tmp_path / str(i)) for i, spec in enumerate(specs)
    )
    assert _figures(first) == _figures(again)
    assert first.series().equals(again.series())
    assert _figures(first) != _figures(other)
    figures = _figures(first)
    # Most records are not in the cache: an operation has to wait for the disk.
    assert figures["READ.p50"] >= 80_000
    reads = _db(first).ops["read"]
    assert reads.ios >= 0.5 * (figures["READ.ops"] + figures["UPDATE.ops"])
    # One client, which does one thing at a time.
    done = figures["READ.ops"] + figures["UPDATE.ops"]
    busy = sum(figures[f"{one}.mean"] * figures[f"{one}.ops"] for one in ("READ", "UPDATE"))
    assert figures["throughput"] == pytest.approx(done / busy * 1e9, rel=0.05)

# SPDX-License-Identifier: GPL-2.0-only
"""Programs as tenants in a guest: they start with the others, their cgroup is charged, their
output is kept, and equal inputs give equal tables."""

import shutil
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.campaign.installed import find_programs
from isoblk.result.store import Run
from isoblk.run.record import RunRecord, TenantResult
from isoblk.run.spec import Filesystem, PlannedRun, RunSpec, Tenant, VdiskDevice
from isoblk.run.tier import UML
from isoblk.study.model import Expansion, Study
from tests.unit.specs import MS, SECOND, run_spec, tenant

MIB = 1 << 20
DISK = VdiskDevice(size=512 * MIB, store="memory")
EXT4 = Filesystem(type="ext4", offset=0, size=64 * MIB)


def _needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(name, path=UML.path), reason=f"no {name}")


def _run(spec: RunSpec, bench: Bench, results: Path) -> Run:
    """The run, which must be valid."""
    study = Study(name="s", device="fast", tenant=[])
    found = find_programs(Expansion(study=study, runs=(PlannedRun(spec=spec),)))
    (results / "runs").mkdir(parents=True)
    run = execute(make_job(found.runs[0].spec, "", ""), bench, results)
    assert run.record.reasons == []
    return run


def _tenant(record: RunRecord, name: str) -> TenantResult:
    return next(one for one in record.tenants if one.name == name)


def _figures(result: TenantResult) -> dict[str, float]:
    assert result.says is not None
    return {figure.name: figure.value for figure in result.says.figures}


def _dd(weight: int = 100, memory: int = 0, **options: object) -> Tenant:
    own = {"bs": "256k", "count": 128, **options}
    return tenant("dd", weight, program="dd", options=own, memory=memory)


@pytest.mark.parametrize("type_", ["ext4", "xfs"])
def test_dd_writes_beside_a_generator(default_bench: Bench, tmp_path: Path, type_: str) -> None:
    spec = run_spec(
        device=DISK,
        filesystem=Filesystem(type=type_, offset=0, size=320 * MIB),  # type: ignore[arg-type]
        tenants=(
            _dd(flag="", conv="fdatasync"),
            tenant("web", rw="randread", iodepth=4, offset=320 * MIB),
        ),
        runtime_ns=200 * MS,
        window_ms=10,
    )
    run = _run(spec, default_bench, tmp_path)
    dd = _tenant(run.record, "dd")
    # Written by way of the page cache, and charged to its own cgroup all the same.
    written = dd.ops["write"]
    assert 32 * MIB <= written.bytes <= 33 * MIB
    assert written.meas_bytes == written.bytes
    series = run.series().filter(tenant="dd", op="write")
    assert series["bytes"].sum() == written.bytes
    figures = _figures(dd)
    assert figures["throughput"] == pytest.approx(32 * MIB / figures["time"] * 1e9)
    assert 0 < figures["time"] <= dd.measured_ns
    assert b"33554432 bytes" in (run.dir / "programs/dd.out").read_bytes()
    assert _tenant(run.record, "web").measured_ns == 200 * MS


def test_writes_to_the_page_cache_count_when_they_reach_the_disk(
    default_bench: Bench, tmp_path: Path
) -> None:
    # The scheduler's queue takes all of it at once, and that is when the cgroup is charged.
    spec = run_spec(
        "mq-deadline",
        device=VdiskDevice(size=512 * MIB, store="memory", write_bps=100_000_000),
        filesystem=Filesystem(type="ext4", offset=0, size=256 * MIB),
        tenants=(_dd(flag="", conv="fdatasync", count=192),),
        runtime_ns=200 * MS,
        window_ms=10,
    )
    run = _run(spec, default_bench, tmp_path)
    dd = _tenant(run.record, "dd")
    assert 48 * MIB <= dd.ops["write"].bytes <= 49 * MIB
    # A fifth of a second of 100 MB/s, less the time that dd takes to hand it over.
    assert 15_000_000 < dd.ops["write"].meas_bytes < 20_400_000
    assert dd.io_stat is not None and dd.io_stat.wbytes == dd.ops["write"].bytes


@_needs("fio")
def test_fio_starts_with_the_others(default_bench: Bench, tmp_path: Path) -> None:
    spec = run_spec(
        tenants=(
            tenant("fio", rw="randread", iodepth=2, program="fio"),
            tenant("web", rw="randread", iodepth=2),
        ),
        runtime_ns=100 * MS,
        window_ms=10,
    )
    run = _run(spec, default_bench, tmp_path)
    fio, web = (_tenant(run.record, name).ops["read"] for name in ("fio", "web"))
    # The disk has a server for each: both are as fast as it is, from the same moment on.
    assert fio.meas_ios == pytest.approx(web.meas_ios, rel=0.1)
    first = {name: run.series().filter(tenant=name)["t_ms"].min() for name in ("fio", "web")}
    assert first == {"fio": 0, "web": 0}


@pytest.mark.long
@_needs("fio")
def test_programs_twice_give_the_same_tables(default_bench: Bench, tmp_path: Path) -> None:
    spec = run_spec(
        "bfq",
        device=DISK,
        filesystem=EXT4,
        tenants=(
            _dd(300),
            tenant("fio", 200, rw="randwrite", offset=64 * MIB, iodepth=4, program="fio"),
            tenant("web", 100, rw="randrw", iodepth=8, offset=64 * MIB),
        ),
        runtime_ns=100 * MS,
        window_ms=10,
    )
    one, two = (_run(spec, default_bench, tmp_path / name) for name in ("one", "two"))
    for name in ("series.parquet", "latency.parquet", "programs/dd.out"):
        assert (one.dir / name).read_bytes() == (two.dir / name).read_bytes(), name
    assert one.record.tenants == two.record.tenants


def test_an_error_of_a_program_invalidates_the_run_with_its_message(
    default_bench: Bench, tmp_path: Path
) -> None:
    spec = run_spec(device=DISK, filesystem=EXT4, tenants=(_dd(count=1024),))
    (tmp_path / "runs").mkdir()
    run = execute(make_job(spec, "", ""), default_bench, tmp_path)
    assert run.record.status == "invalid"
    assert run.record.reasons == [
        "dd: dd ended with status 1: /usr/bin/dd: error writing 'file': No space left on device"
    ]


def test_a_program_may_read_more_than_its_memory_limit(
    default_bench: Bench, tmp_path: Path
) -> None:
    spec = run_spec(
        device=DISK,
        filesystem=EXT4,
        tenants=(_dd(direction="read", flag="", memory=16 * MIB),),
    )
    run = _run(spec, default_bench, tmp_path)
    assert 32 * MIB <= _tenant(run.record, "dd").ops["read"].bytes <= 33 * MIB


@_needs("sysbench")
def test_sysbench(default_bench: Bench, tmp_path: Path) -> None:
    options = {"mode": "rndrw", "size": "16m", "bs": "64k", "fsync_freq": 0}
    slow = VdiskDevice(size=512 * MIB, store="memory", read_ns=2 * MS, write_ns=2 * MS)
    spec = run_spec(
        device=slow,
        filesystem=EXT4,
        tenants=(tenant("sb", program="sysbench", options=options),),
        runtime_ns=SECOND,
    )
    result = _tenant(_run(spec, default_bench, tmp_path).record, "sb")
    figures = _figures(result)
    assert figures["events"] == pytest.approx(500, rel=0.1)
    reads = result.ops["read"]
    assert figures["read.rate"] == pytest.approx(reads.meas_bytes / 65536, rel=0.05)
    assert figures["latency.mean"] == pytest.approx(2 * MS, rel=0.05)


@_needs("db_bench")
def test_db_bench(default_bench: Bench, tmp_path: Path) -> None:
    options = {
        "benchmarks": "readrandom",
        "num": 4000,
        "value_size": 1000,
        "compression_type": "none",
        "use_direct_reads": True,
        "cache_size": 65_536,
    }
    slow = VdiskDevice(size=512 * MIB, store="memory", read_ns=2 * MS)
    spec = run_spec(
        device=slow,
        filesystem=Filesystem(type="ext4", offset=0, size=256 * MIB),
        tenants=(tenant("db", program="db_bench", options=options),),
        runtime_ns=SECOND,
    )
    result = _tenant(_run(spec, default_bench, tmp_path).record, "db")
    figures = _figures(result)
    # Every read that finds its key reads a block of the disk.
    assert figures["readrandom.read.latency.max"] >= 2 * MS
    assert figures["readrandom.operations"] >= result.ops["read"].meas_ios * 0.5
    assert result.ops["read"].meas_ios > 100


@pytest.mark.skipif(
    not (shutil.which("iozone", path=UML.path) or shutil.which("fio", path=UML.path)),
    reason="no iozone, no fio",
)
def test_iozone_or_fio_in_its_place(default_bench: Bench, tmp_path: Path) -> None:
    options = {"record": "64k", "size": "4m", "tests": ["write", "random"]}
    spec = run_spec(
        device=DISK,
        filesystem=EXT4,
        tenants=(tenant("io", program="iozone", options=options),),
        runtime_ns=60 * SECOND,
        window_ms=1000,
    )
    result = _tenant(_run(spec, default_bench, tmp_path).record, "io")
    # One request of 64 KiB at a time, 20 us each.
    figures = _figures(result)
    assert set(figures) == {
        f"{name}.throughput" for name in ("write", "rewrite", "random_read", "random_write")
    }
    assert figures["random_read.throughput"] == pytest.approx(65536 / 20e-6, rel=0.1)
    assert result.says is not None
    assert result.says.used in (["iozone"], ["fio"])

# SPDX-License-Identifier: GPL-2.0-only
"""Measure isoblk's own speed, and write the table in docs/speed.md.

`make bench` runs it, on an otherwise idle machine. Each figure is the median of REPEATS
runs after one that is not counted. Nothing here passes or fails.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import Bench, execute, make_bench, make_job
from isoblk.kernel import DEFAULT_VERSION, find, hold
from isoblk.machine.uml import Uml
from isoblk.report.page import write_report
from isoblk.result.model import StudyRecord, StudyRun
from isoblk.result.store import FORMAT, Run, read_results, write_study
from isoblk.study.model import (
    Device,
    NullBlkDevice,
    PlannedRun,
    RunSpec,
    Scheduler,
    SchedulerName,
    Study,
    Tenant,
    TenantEntry,
    VdiskDevice,
    Workload,
)

REPEATS = 3
REPORT_RUNS = 50
SECOND = 1_000_000_000
PAGE = Path(__file__).resolve().parents[1] / "docs" / "speed.md"
MARK = "<!-- figures: written by make bench -->"
NULL_BLK = NullBlkDevice()
FAST = VdiskDevice()


def _spec(scheduler: SchedulerName, device: Device, tenants: int, *, virtual_s: int = 0) -> RunSpec:
    """4 KiB random reads, iodepth 32 each; without virtual_s, one request each."""
    load = Workload(iodepth=32, number_ios=0 if virtual_s else 1)
    return RunSpec(
        kind="share",
        point={"scheduler": scheduler},
        repeat=0,
        device=device,
        scheduler=Scheduler(name=scheduler, elevator=scheduler),
        cgroup="v2",
        queue={},
        groups=(),
        tenants=tuple(
            Tenant(
                name=f"t{i}",
                cgroup=f"t{i}",
                weight=100,
                workload=msgspec.structs.replace(load, randseed=i + 1),
            )
            for i in range(tenants)
        ),
        events=(),
        warmup_ns=0,
        runtime_ns=virtual_s * SECOND,
        window_ms=100,
        seed=1,
    )


def _run(spec: RunSpec, bench: Bench) -> Run:
    with TemporaryDirectory() as results:
        job = make_job(spec, bench.kernel.key, bench.modules_key)
        return execute(job, bench, Path(results))


def _median(measure: Callable[[], float]) -> float:
    measure()
    return statistics.median(measure() for _ in range(REPEATS))


def _wall(spec: RunSpec, bench: Bench) -> float:
    return _median(lambda: _run(spec, bench).record.wall_s)


def _rate(spec: RunSpec, bench: Bench, boot_s: float) -> float:
    """Million requests a wall second, after boot."""

    def measure() -> float:
        record = _run(spec, bench).record
        requests = sum(op.ios for tenant in record.tenants for op in tenant.ops.values())
        return requests / (record.wall_s - boot_s) / 1e6

    return _median(measure)


def _report_s(bench: Bench) -> float:
    """Seconds to report REPORT_RUNS runs of four tenants, one virtual second each."""
    with TemporaryDirectory() as results:
        runs = []
        names: list[SchedulerName] = ["none", "mq-deadline", "kyber", "bfq"]
        for i in range(REPORT_RUNS):
            spec = _spec(names[i % len(names)], VdiskDevice(read_ns=20_000 + i), 4, virtual_s=1)
            point = spec.point | {"device.read_ns": str(20_000 + i // len(names))}
            spec = msgspec.structs.replace(spec, point=point)
            job = make_job(spec, bench.kernel.key, bench.modules_key)
            execute(job, bench, Path(results))
            runs.append(StudyRun(planned=PlannedRun(spec=spec), id=job.id))
        study = Study(name="bench", device="fast", tenant=[TenantEntry(name="t", count=4)])
        write_study(Path(results), StudyRecord(format=FORMAT, study=study, source="", runs=runs))
        began = time.perf_counter()
        write_report(analyse(read_results(Path(results))))
        return time.perf_counter() - began


def _rows(bench: Bench) -> Iterator[tuple[str, str, str]]:
    boot_s = _wall(_spec("none", FAST, 1), bench)
    yield "boot to first I/O and power-off", "under 0.6 s", f"{boot_s:.2f} s"
    rates: list[tuple[str, SchedulerName, Device, str]] = [
        ("isoblk_vdisk `fast`, none", "none", FAST, "at least 1 M"),
        ("isoblk_vdisk `fast`, mq-deadline", "mq-deadline", FAST, ""),
        ("isoblk_vdisk `fast`, kyber", "kyber", FAST, ""),
        ("isoblk_vdisk `fast`, bfq", "bfq", FAST, "at least 0.5 M"),
        ("null_blk, none", "none", NULL_BLK, ""),
    ]
    for name, scheduler, device, wanted in rates:
        rate = _rate(_spec(scheduler, device, 4, virtual_s=3), bench, boot_s)
        yield f"requests a wall second, {name}", wanted, f"{rate:.2f} M"
    for tenants, wanted in ((128, "under 3 s"), (1024, "works")):
        set_up = _wall(_spec("bfq", FAST, tenants), bench) - boot_s
        yield f"set-up and read-back of {tenants:,} tenants", wanted, f"{set_up:.1f} s"
    yield f"report of {REPORT_RUNS} runs", "under 10 s", f"{_report_s(bench):.1f} s"


def main() -> None:
    """Measure, print, and put the table into docs/speed.md."""
    kernel = find(DEFAULT_VERSION)
    lines = ["| what | wanted | measured |", "|---|---|---|"]
    with hold(kernel):
        bench = make_bench(Uml(kernel, time_limit_s=600), kernel)
        for row in _rows(bench):
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
    where = f"Linux {kernel.version} as the guest, {os.cpu_count()} CPUs, {platform.machine()}."
    head, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text("\n".join([head + MARK, "", where, "", *lines, ""]))


if __name__ == "__main__":
    main()

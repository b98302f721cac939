# SPDX-License-Identifier: GPL-2.0-only
"""Measure isoblk's own speed, and write the table in docs/findings/speed.md.

`make bench` runs it, on an otherwise idle machine. Each figure is the median of REPEATS
runs after one that is not counted. Nothing here passes or fails.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from common import FAST, LOAD, requests, run, spec, uml_bench, write_table

from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.report.page import write_report
from isoblk.result.store import FORMAT, read_results, write_study
from isoblk.result.study import StudyRecord, StudyRun
from isoblk.run.spec import Device, NullBlkDevice, PlannedRun, RunSpec, VdiskDevice, Workload
from isoblk.study.model import Study, TenantEntry
from isoblk.study.presets import load_device

REPEATS = 3
REPORT_RUNS = 50
NULL_BLK = NullBlkDevice()


def _median(measure: Callable[[], float]) -> float:
    measure()
    return statistics.median(measure() for _ in range(REPEATS))


def _wall(of: RunSpec, bench: Bench) -> float:
    return _median(lambda: run(of, bench).record.wall_s)


def _rate(of: RunSpec, bench: Bench, boot_s: float) -> float:
    """Million requests a wall second, after boot."""

    def measure() -> float:
        made = run(of, bench)
        return requests(made) / (made.record.wall_s - boot_s) / 1e6

    return _median(measure)


def _report_s(bench: Bench) -> float:
    """Seconds to report REPORT_RUNS runs of four tenants, one virtual second each."""
    with TemporaryDirectory() as results:
        runs = []
        names: list[str] = ["none", "mq-deadline", "kyber", "bfq"]
        for i in range(REPORT_RUNS):
            one = spec(names[i % len(names)], VdiskDevice(read_ns=20_000 + i), 4, virtual_s=1)
            point = one.point | {"device.read_ns": str(20_000 + i // len(names))}
            one = msgspec.structs.replace(one, point=point)
            job = make_job(one, bench.kernel.key, bench.modules_key)
            execute(job, bench, Path(results))
            runs.append(StudyRun(planned=PlannedRun(spec=one), id=job.id))
        study = Study(name="bench", device="fast", tenant=[TenantEntry(name="t", count=4)])
        write_study(Path(results), StudyRecord(format=FORMAT, study=study, source="", runs=runs))
        began = time.perf_counter()
        write_report(analyse(read_results(Path(results))))
        return time.perf_counter() - began


def _rows(bench: Bench) -> Iterator[tuple[str, str, str]]:
    boot_s = _wall(spec("none", FAST, 1), bench)
    yield "boot to first I/O and power-off", "under 0.6 s", f"{boot_s:.2f} s"
    flash = load_device("p4500-1t")
    no_cputime = msgspec.structs.replace(LOAD, cputime_ns=0)
    rates: list[tuple[str, str, Device, Workload, str]] = [
        ("isoblk_vdisk `fast`, none", "none", FAST, LOAD, "at least 3 M"),
        ("isoblk_vdisk `fast`, mq-deadline", "mq-deadline", FAST, LOAD, ""),
        ("isoblk_vdisk `fast`, kyber", "kyber", FAST, LOAD, ""),
        ("isoblk_vdisk `fast`, bfq", "bfq", FAST, LOAD, "at least 0.5 M"),
        ("null_blk, none", "none", NULL_BLK, LOAD, ""),
        ("flash as `p4500-1t`, none", "none", flash, LOAD, "at least 0.5 M"),
        ("isoblk_vdisk `fast`, none, `cputime` 0", "none", FAST, no_cputime, ""),
    ]
    for name, scheduler, device, load, wanted in rates:
        rate = _rate(spec(scheduler, device, 4, virtual_s=3, load=load), bench, boot_s)
        yield f"requests a wall second, {name}", wanted, f"{rate:.2f} M"
    for tenants, wanted in ((128, "under 3 s"), (1024, "works")):
        set_up = _wall(spec("bfq", FAST, tenants), bench) - boot_s
        yield f"set-up and read-back of {tenants:,} tenants", wanted, f"{set_up:.1f} s"
    yield f"report of {REPORT_RUNS} runs", "under 10 s", f"{_report_s(bench):.1f} s"


def main() -> None:
    """Measure, print, and put the table into docs/findings/speed.md."""
    lines = ["| what | wanted | measured |", "|---|---|---|"]
    with uml_bench() as bench:
        for row in _rows(bench):
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
        write_table("speed", bench, lines)


if __name__ == "__main__":
    main()

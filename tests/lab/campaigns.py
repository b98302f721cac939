# SPDX-License-Identifier: GPL-2.0-only
"""Run whole studies in tests."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from isoblk.campaign.execute import Bench, Job, here, make_job
from isoblk.campaign.study import run_study
from isoblk.result.store import ResultSet, Run, read_results
from isoblk.study.expand import expand
from isoblk.study.load import load_study
from tests.unit.specs import run_spec, tenant

STUDIES = Path(__file__).resolve().parents[2] / "studies"


def run_file(study: Path, bench: Bench, results: Path, jobs: int = 1) -> ResultSet:
    """Run a study file to its end; fails if a run fails."""
    parsed, source = load_study(study)
    with ThreadPoolExecutor(jobs) as executor:
        submit = here(executor, bench, results)
        record = run_study(expand(parsed), source, bench, results, submit, lambda i, run: None)
    assert [run.failure for run in record.runs if run.failure] == []
    return read_results(results)


def easily_disturbed() -> Job:
    """Mixed reads and writes on a fast disk under BFQ: nothing is as easily disturbed."""
    tenants = tuple(
        tenant(f"t{i}", weight, rw="randrw", iodepth=32, cputime_ns=512, randseed=i)
        for i, weight in enumerate((1000, 500, 250, 100))
    )
    return make_job(run_spec("bfq", tenants=tenants), "", "")


def finished(results: ResultSet) -> list[Run]:
    """All runs, which must have finished and be valid."""
    runs = [run for run in results.runs if run is not None]
    assert len(runs) == len(results.runs)
    assert [run.record.reasons for run in runs if run.record.status != "valid"] == []
    return runs


def tables(results: ResultSet) -> dict[str, tuple[bytes, bytes]]:
    """The series and latency tables of all runs, byte for byte, by run id."""
    return {
        run.record.id: (
            (run.dir / "series.parquet").read_bytes(),
            (run.dir / "latency.parquet").read_bytes(),
        )
        for run in finished(results)
    }

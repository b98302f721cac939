# SPDX-License-Identifier: GPL-2.0-only
"""A study that is killed in the middle loses nothing that was finished."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from isoblk.result.store import read_results
from tests.lab.campaigns import tables

STUDY = """\
name = "twenty"
device = "fast"

[run]
runtime = "300ms"

[[tenant]]
name = "t"
count = 2
weight = [200, 100]
rw = "randread"
iodepth = 32

[matrix]
scheduler = ["none", "mq-deadline", "kyber", "bfq"]
"workload.bs" = ["4k", "8k", "16k", "32k", "64k"]
"""
SHARES = 20


def _command(study: Path, results: Path) -> list[str]:
    return [sys.executable, "-m", "isoblk", "run", str(study), "-o", str(results)]


def _finished(results: Path) -> dict[str, int]:
    """Ids of finished runs, and when each was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in results.glob("runs/*/run.json")}


@pytest.mark.long
def test_killed_in_the_middle_and_started_again(default_bench: Bench, tmp_path: Path) -> None:
    study = tmp_path / "twenty.toml"
    study.write_text(STUDY)
    results = tmp_path / "killed"
    process = subprocess.Popen(_command(study, results), stdout=subprocess.DEVNULL)
    while len(_finished(results)) < SHARES // 2:
        assert process.poll() is None, "the study ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = _finished(results)

    subprocess.run(_command(study, results), stdout=subprocess.DEVNULL, check=True)
    after = _finished(results)
    assert {run_id: after[run_id] for run_id in before} == before
    assert len(after) > len(before)

    undisturbed = tmp_path / "undisturbed"
    subprocess.run(_command(study, undisturbed), stdout=subprocess.DEVNULL, check=True)
    killed, whole = read_results(results), read_results(undisturbed)
    shares = [run for run in whole.record.runs if run.planned.spec.kind == "share"]
    assert len(shares) == SHARES
    assert killed.record == whole.record
    assert tables(killed) == tables(whole)


@pytest.mark.parametrize("reason", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_finished_runs_and_nothing_else(
    default_bench: Bench, tmp_path: Path, reason: signal.Signals
) -> None:
    study = tmp_path / "twenty.toml"
    study.write_text(STUDY)
    results = tmp_path / "results"
    process = subprocess.Popen(
        _command(study, results), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while not _finished(results):
        assert process.poll() is None, "the study ended before it could be interrupted"
        time.sleep(0.01)
    process.send_signal(reason)
    _, errors = process.communicate()
    assert process.returncode == 130
    (line,) = errors.splitlines()
    assert line == "isoblk: interrupted; finished runs are kept, repeat the command to resume"
    assert [run for run in read_results(results).runs if run is not None]
    left = {path.name for path in (results / "runs").iterdir()}
    assert left == set(_finished(results)), "what was interrupted is no failed run"

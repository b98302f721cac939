# SPDX-License-Identifier: GPL-2.0-only
"""Whatever happens to a cluster: its results equal those of this process, to the byte."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from isoblk.paths import cache_dir
from tests.lab.cluster import (
    MAY_MOUNT,
    cluster,
    end_of,
    eventually,
    everything,
    fill,
    finished,
    isoblk_run,
    until,
)

STUDY = """\
name = "twelve"
device = "fast"

[run]
warmup = 0
runtime = "50ms"
window = "50ms"

[[tenant]]
name = "t"
count = 2
weight = [200, 100]
rw = "randread"
iodepth = 32

[matrix]
scheduler = ["none", "bfq"]
"workload.bs" = ["4k", "8k", "16k", "32k"]
"""
RUNS = 12
# A few times the space that a worker's runs take.
_DISK = 'mount -t tmpfs -o size=16m tmpfs "{disk}"'
_MOUNTS = pytest.mark.skipif(not MAY_MOUNT, reason="may not make namespaces")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "twelve.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def alone(study: Path, default_bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of -j 1."""
    results = tmp_path_factory.mktemp("alone") / "results"
    status, said, errors = end_of(isoblk_run(study, results, "-j", "1"))
    assert (status, errors) == (0, ""), said
    assert finished(results) == RUNS
    return results


@pytest.mark.long
def test_workers_that_are_started_for_it(study: Path, alone: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    status, _, errors = end_of(isoblk_run(study, results, "--on", "local", "-j", "2"))
    assert (status, errors) == (0, "")
    assert everything(results) == everything(alone)


@_MOUNTS
@pytest.mark.long
def test_workers_without_kernel_and_modules_get_them_once(
    study: Path, alone: Path, tmp_path: Path
) -> None:
    with cluster(tmp_path / "cluster") as one:
        one.scheduler()
        # The files of the campaign are not visible to the workers.
        hidden = f'mount -t tmpfs tmpfs "{cache_dir()}"'
        for name in ("a", "b"):
            one.worker(name, hidden)
        for attempt in ("first", "second"):
            results = tmp_path / attempt
            status, said, errors = end_of(isoblk_run(study, results, "--on", one.address))
            assert (status, errors) == (0, ""), said
            assert everything(results) == everything(alone)
            shipped = {
                path: path.stat().st_mtime_ns
                for path in one.directory.glob("cache of */shipped/*/**/*")
                if path.is_file()
            }
            assert len([path for path in shipped if path.name == "linux"]) == 2
            if attempt == "first":
                before = shipped
        assert shipped == before
        # Files of the workers do not stay there.
        assert not list(one.directory.glob("*/dask-scratch-space/*/isoblk-*/runs/*"))


@pytest.mark.long
def test_a_worker_is_killed_in_the_middle(study: Path, alone: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with cluster(tmp_path / "cluster") as one:
        one.scheduler()
        doomed, _ = one.worker("a"), one.worker("b")
        campaign = isoblk_run(study, results, "--on", one.address)
        until(lambda: finished(results) >= 2, campaign)
        doomed.kill()
        status, said, errors = end_of(campaign)
    assert (status, errors) == (0, ""), said
    assert everything(results) == everything(alone)


@_MOUNTS
@pytest.mark.long
def test_a_workers_disk_fills_in_the_middle(study: Path, alone: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with cluster(tmp_path / "cluster") as one:
        one.scheduler()
        small = one.worker("small", _DISK.format(disk=one.disk("small")))
        one.worker("b")
        campaign = isoblk_run(study, results, "--on", one.address)
        until(lambda: finished(results) >= 2, campaign)
        fill(small, one.disk("small"))
        status, said, errors = end_of(campaign)
    assert (status, errors) == (0, ""), said
    assert said.count("its disk is full: ") == 1
    assert everything(results) == everything(alone)


@_MOUNTS
@pytest.mark.long
def test_no_worker_has_space(study: Path, default_bench: Bench, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with cluster(tmp_path / "cluster") as one:
        one.scheduler()
        small = one.worker("small", _DISK.format(disk=one.disk("small")))
        campaign = isoblk_run(study, results, "--on", one.address)
        until(lambda: finished(results) >= 1, campaign)
        fill(small, one.disk("small"))
        status, _, errors = end_of(campaign)
    assert status == 1
    (line,) = errors.splitlines()
    assert line.startswith("isoblk: no worker can make runs: tcp://127.0.0.1:")
    assert f" its disk is full: {one.disk('small')}" in line


@pytest.mark.long
def test_the_scheduler_is_killed_and_started_again(
    study: Path, alone: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    with cluster(tmp_path / "cluster") as one:
        scheduler = one.scheduler()
        workers = [one.worker("a"), one.worker("b")]
        campaign = isoblk_run(study, results, "--on", one.address)
        until(lambda: finished(results) >= 2, campaign)
        scheduler.kill()
        # As systemd or Kubernetes would do it: plain workers end without their scheduler.
        assert [worker.wait() for worker in workers] == [0, 0]
        one.scheduler()
        one.worker("a")
        one.worker("b")
        status, said, errors = end_of(campaign)
    assert (status, errors) == (0, ""), said
    assert said.count("is gone; waiting for it") == 1
    assert everything(results) == everything(alone)


@pytest.mark.long
def test_a_worker_of_another_isoblk_makes_no_runs(study: Path, alone: Path, tmp_path: Path) -> None:
    # The same version, and another state of the sources.
    sources = Path(__file__).resolve().parents[2] / "src"
    other = shutil.copytree(sources, tmp_path / "other", ignore=shutil.ignore_patterns("*.pyc"))
    with (other / "isoblk" / "errors.py").open("a") as file:
        file.write("# a change\n")
    results = tmp_path / "results"
    with cluster(tmp_path / "cluster") as one:
        one.scheduler()
        one.worker("other", PYTHONPATH=str(other))
        status, said, errors = end_of(isoblk_run(study, results, "--on", one.address))
        assert status == 2
        (line,) = errors.splitlines()
        assert line.startswith("isoblk: no worker can make runs: tcp://127.0.0.1:")
        assert "has another state of the sources of isoblk" in line
        assert finished(results) == 0
        one.worker("same")
        status, said, errors = end_of(isoblk_run(study, results, "--on", one.address))
    assert (status, errors) == (0, ""), said
    assert everything(results) == everything(alone)


@pytest.mark.parametrize("local", [True, pytest.param(False, marks=pytest.mark.long)])
def test_an_interrupt_ends_the_runs_of_the_workers(
    default_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    study = tmp_path / "long.toml"
    study.write_text(STUDY.replace('runtime = "50ms"', 'runtime = "3600s"'))
    results = tmp_path / "results"
    with cluster(tmp_path / "cluster") as one:
        monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(one.disk("a")))
        if not local:
            one.scheduler()
            one.worker("a")
        campaign = isoblk_run(study, results, "--on", "local" if local else one.address)

        def under_way() -> list[Path]:
            return list(one.disk("a").glob("dask-scratch-space/*/isoblk-*/runs/.*"))

        until(under_way, campaign)
        # As a terminal does it: all of its processes hear of it.
        os.killpg(campaign.pid, signal.SIGINT)
        status, _, errors = end_of(campaign)
        assert status == 130
        (line,) = errors.splitlines()
        assert line == "isoblk: interrupted; finished runs are kept, repeat the command to resume"
        assert not list((results / "runs").iterdir())
        # Of itself the run would take far longer than this test waits.
        eventually(lambda: not under_way())

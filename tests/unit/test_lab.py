# SPDX-License-Identifier: GPL-2.0-only
"""The lab as a library: a study is run, its results are tables, and errors are isoblk's."""

import threading
import time
from contextlib import nullcontext
from pathlib import Path

import polars as pl
import pytest

import isoblk
from isoblk.campaign.execute import Bench
from isoblk.errors import RunError, UserError
from isoblk.lab import Lab, lab
from isoblk.machine import StoppedError
from tests.unit.fakes import IOS, FakeMachine, fake_lab

STUDY = """
name = "s"
device = "fast"
[run]
runtime = "1s"
repeats = 2
[[tenant]]
name = "a"
weight = 200
[[tenant]]
name = "b"
[matrix]
scheduler = ["none", "bfq"]
"workload.iodepth" = [8, 16]
"tenant.a.weight" = [200, 300]
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lab, "try_out", lambda bench, directory: None)
    path = tmp_path / "s.toml"
    path.write_text(STUDY)
    return path


def test_a_study_is_run_and_read_as_tables(study: Path, tmp_path: Path) -> None:
    results = fake_lab(FakeMachine(), jobs=2).run(study, tmp_path / "results")
    keys = ["scheduler", "workload.iodepth", "tenant.a.weight", "repeat"]
    assert results.runs.columns[:7] == [*keys, "status", "id", "seed"]
    assert results.runs.height == 2 * 2 * 2 * 2
    assert results.runs["total_iops"].to_list() == [2.0 * IOS] * 16
    assert results.tenants.columns[:8] == [*keys, "tenant", "cgroup", "weight", "ideal"]
    of_b = results.tenants.filter(scheduler="bfq", tenant="b")
    assert of_b["share"].to_list() == [0.5] * 8
    for table in (results.runs, results.tenants, results.series, results.latency):
        assert dict(table.schema.items()) | {
            "scheduler": pl.String,
            "workload.iodepth": pl.Int64,
            "tenant.a.weight": pl.Int64,
            "repeat": pl.Int64,
        } == dict(table.schema.items())
    assert results.series["ios"].sum() == 16 * 2 * IOS
    assert results.latency["count"].sum() == 16 * 2 * IOS


def test_runs_that_are_there_are_not_made_again(study: Path, tmp_path: Path) -> None:
    again = FakeMachine()
    first = fake_lab(FakeMachine()).run(study, tmp_path / "results")
    second = fake_lab(again).run(study, tmp_path / "results")
    assert again.plans == []
    assert second.runs.equals(first.runs)


def test_a_run_that_failed_is_an_error_and_the_others_are_kept(study: Path, tmp_path: Path) -> None:
    def fail(text: str) -> None:
        if "bfq" in text:
            raise RunError("the guest fell over")

    with pytest.raises(RunError, match="runs failed; the first: the guest fell over"):
        fake_lab(FakeMachine(before=fail)).run(study, tmp_path / "results")
    kept = isoblk.load(tmp_path / "results")
    assert kept.runs.group_by("scheduler", "status").len().sort("scheduler").rows() == [
        ("bfq", "failed", 8),
        ("none", "valid", 8),
    ]
    assert kept.tenants["scheduler"].unique().to_list() == ["none"]


def test_results_without_a_valid_run_are_empty_tables(study: Path, tmp_path: Path) -> None:
    def fail(text: str) -> None:
        raise RunError("no guest runs here")

    with pytest.raises(RunError):
        fake_lab(FakeMachine(before=fail)).run(study, tmp_path / "results")
    kept = isoblk.load(tmp_path / "results")
    assert kept.runs["status"].unique().to_list() == ["failed"]
    assert kept.tenants.is_empty()
    assert kept.series.is_empty()
    assert kept.latency.is_empty()


def test_each_request_is_kept_with_the_study_s_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no machine 'kvm'"), Lab.open("kvm"):
        pass
    with pytest.raises(UserError, match="not a result directory"):
        isoblk.load(tmp_path)
    running = tmp_path / "running.toml"
    running.write_text(
        'name = "r"\ndevice = "fast"\n[[tenant]]\nname = "web"\nworkload = "running"\n'
        'cgroup = "/web"\n'
    )
    with pytest.raises(UserError, match="running tenant"):
        fake_lab(FakeMachine()).run(running, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_number_out_of_range_is_the_user_s_error() -> None:
    kernel = fake_lab(FakeMachine()).bench.kernel
    with pytest.raises(UserError, match="jobs: 0 is out of range"), Lab.open(kernel=kernel, jobs=0):
        pass
    with (
        pytest.raises(UserError, match="time_limit_s: -1 is"),
        Lab.open(kernel=kernel, time_limit_s=-1),
    ):
        pass
    with pytest.raises(UserError, match="cpus is not for machine 'uml'"), Lab.open(cpus=2):
        pass
    with pytest.raises(UserError, match="cpus: 99 is out of range"), Lab.open("icount", cpus=99):
        pass


def test_places_are_texts_or_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    def find_modules(kernel: object, places: list[Path], progress: object) -> dict[str, Path]:
        given.extend(places)
        return {}

    def make_bench(*args: object) -> Bench:
        given.append(args[3])
        return fake_lab(FakeMachine()).bench

    monkeypatch.setattr(lab, "find_modules", find_modules)
    monkeypatch.setattr(lab, "make_bench", make_bench)
    monkeypatch.setattr(lab, "host_library", lambda kernel: tmp_path)
    monkeypatch.setattr(lab, "hold", lambda kernel: nullcontext())
    kernel = fake_lab(FakeMachine()).bench.kernel
    with Lab.open(kernel=kernel, modules=["a.ko", Path("b.ko")], sources="kernel"):
        pass
    with Lab.open(kernel=kernel, modules="a.ko"):
        pass
    assert given == [Path("a.ko"), Path("b.ko"), Path("kernel"), Path("a.ko"), None]


def test_a_lab_that_has_ended_says_so(study: Path, tmp_path: Path) -> None:
    ended = fake_lab(FakeMachine())
    ended.run(study, tmp_path / "results")
    ended.stop()
    with pytest.raises(UserError, match="the lab has ended"):
        ended.run(study, tmp_path / "other")
    assert not (tmp_path / "other").exists()


KEY = "iosched.bfq.slice_idle"


@pytest.mark.parametrize("fails", [False, True])
def test_a_key_of_one_scheduler_is_a_column_of_each_table(
    study: Path, tmp_path: Path, fails: bool
) -> None:
    study.write_text(
        STUDY[: STUDY.index("[matrix]")]
        + f'[matrix]\nscheduler = ["none", "bfq"]\n"{KEY}" = [0, 8]\n'
    )

    def fail(text: str) -> None:
        if fails:
            raise RunError("no guest runs here")

    with nullcontext() if not fails else pytest.raises(RunError):
        fake_lab(FakeMachine(before=fail)).run(study, tmp_path / "results")
    results = isoblk.load(tmp_path / "results")
    for table in (results.runs, results.tenants, results.series, results.latency):
        assert table.columns[:3] == ["scheduler", KEY, "repeat"]
    assert results.runs[KEY].to_list() == [None, None, 0, 0, 8, 8]
    assert results.series[KEY].to_list() == ([] if fails else [None] * 4 + [0] * 4 + [8] * 4)


def test_a_study_whose_lab_ends_is_stopped(study: Path, tmp_path: Path) -> None:
    def end(text: str) -> None:
        threading.Thread(target=ending.stop).start()
        assert ending.ended.wait(10)
        time.sleep(0.05)  # until the queued runs are cancelled

    ending = fake_lab(FakeMachine(before=end))
    with pytest.raises(StoppedError, match="the lab ended during the study"):
        ending.run(study, tmp_path / "results")

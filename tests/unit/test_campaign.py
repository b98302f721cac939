# SPDX-License-Identifier: GPL-2.0-only
"""A study resumes, repeats nothing, keeps finished runs, and never believes a bad run."""

import dataclasses
import errno
import fcntl
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isoblk.campaign import study, trial
from isoblk.campaign.execute import DiskFullError, Job, execute, here, make_job
from isoblk.campaign.study import EndedError, dry_run, run_study
from isoblk.errors import RunError, UserError
from isoblk.machine import StoppedError
from isoblk.result import earlier
from isoblk.result.store import Run, read_results
from isoblk.result.study import StudyRecord
from isoblk.study.expand import expand
from isoblk.study.model import Expansion, Study, TenantEntry
from tests.unit.fakes import IOS, FakeMachine, fake_bench
from tests.unit.specs import run_spec

SCHEDULERS = ["none", "mq-deadline", "kyber", "bfq", "io.cost", "io.max", "io.latency"]


def _expansion(name: str = "s", schedulers: list[str] | None = None) -> Expansion:
    study = Study(
        name=name,
        device="fast",
        tenant=[TenantEntry(name="t1", weight=200), TenantEntry(name="t2", weight=100)],
        matrix={"scheduler": [*(schedulers or SCHEDULERS)]},
    )
    return expand(study)


def _run(expansion: Expansion, machine: FakeMachine, results: Path, jobs: int = 1) -> StudyRecord:
    with ThreadPoolExecutor(jobs) as executor:
        bench = fake_bench(machine)
        submit = here(executor, bench, results)
        return run_study(expansion, "", bench, results, submit, lambda index, run: None)


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_study_runs_to_its_end(tmp_path: Path, jobs: int) -> None:
    expansion = _expansion()
    record = _run(expansion, FakeMachine(), tmp_path, jobs)
    assert [run.failure for run in record.runs] == [""] * len(expansion.runs)
    finished = read_results(tmp_path)
    assert all(run and run.record.status == "valid" for run in finished.runs)
    shown = [
        run.planned.spec.point["scheduler"]
        for run in record.runs
        if run.planned.spec.kind == "share"
    ]
    assert sorted(shown) == sorted(SCHEDULERS)


def test_a_finished_run_is_not_repeated(tmp_path: Path) -> None:
    expansion = _expansion()
    first = _run(expansion, FakeMachine(), tmp_path)
    again = FakeMachine()
    second = _run(expansion, again, tmp_path)
    assert again.plans == []
    assert second == first


def test_a_trial_comes_once_before_the_first_run_that_has_to_be_made(tmp_path: Path) -> None:
    expansion = _expansion()
    tried: list[Path] = []

    def run(machine: FakeMachine, refusal: Exception | None = None) -> None:
        def prepare(directory: Path) -> None:
            assert machine.plans == []
            assert directory.is_dir()
            tried.append(directory)
            if refusal:
                raise refusal

        with ThreadPoolExecutor(2) as executor:
            bench = fake_bench(machine)
            submit = here(executor, bench, tmp_path)
            run_study(expansion, "", bench, tmp_path, submit, lambda i, run: None, prepare)

    refused = FakeMachine()
    with pytest.raises(UserError, match="no guest"):
        run(refused, UserError("no guest"))
    assert refused.plans == []
    run(FakeMachine())
    assert tried == [tmp_path / "runs"] * 2
    # Nothing is left to be made.
    run(FakeMachine(), AssertionError())
    assert len(tried) == 2


def test_an_interrupted_study_goes_on_where_it_was(tmp_path: Path) -> None:
    expansion = _expansion()
    budget = 4

    def die(text: str) -> None:
        nonlocal budget
        budget -= 1
        if budget < 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(expansion, FakeMachine(before=die), tmp_path / "a")
    rest = FakeMachine()
    resumed = _run(expansion, rest, tmp_path / "a")
    whole = FakeMachine()
    undisturbed = _run(expansion, whole, tmp_path / "b")
    assert len(rest.plans) == len(whole.plans) - 4
    assert resumed == undisturbed


def test_a_failed_run_is_kept_apart_and_tried_again(tmp_path: Path) -> None:
    def fail_bfq(text: str) -> None:
        if "echo bfq" in text:
            raise RunError("the kernel failed")

    expansion = _expansion(schedulers=["none", "bfq"])
    record = _run(expansion, FakeMachine(before=fail_bfq), tmp_path)
    (failed,) = [run for run in record.runs if run.failure]
    assert failed.failure == "the kernel failed"
    assert (tmp_path / "runs" / f"{failed.id}.failed" / "plan.sh").exists()
    again = FakeMachine()
    record = _run(expansion, again, tmp_path)
    assert len(again.plans) == 1
    assert not any(run.failure for run in record.runs)
    assert not (tmp_path / "runs" / f"{failed.id}.failed").exists()


def test_a_run_that_the_user_stopped_did_not_fail(tmp_path: Path) -> None:
    def stop(text: str) -> None:
        raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        execute(make_job(run_spec(), "", ""), fake_bench(FakeMachine(before=stop)), tmp_path)
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_run_that_fails_on_a_full_disk_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(text: str) -> None:
        raise RunError("ended early")

    monkeypatch.setattr("isoblk.campaign.execute._ROOM", 1 << 60)
    with pytest.raises(RunError, match=r"the disk is full: ended early"):
        execute(make_job(run_spec(), "", ""), fake_bench(FakeMachine(before=fail)), tmp_path)


def test_a_run_that_leans_on_a_failed_one_is_not_made(tmp_path: Path) -> None:
    def fail_calibration(text: str) -> None:
        if "nomerges" in text:
            raise RunError("the kernel failed")

    machine = FakeMachine(before=fail_calibration)
    record = _run(_expansion(schedulers=["none", "io.cost"]), machine, tmp_path)
    share = [run for run in record.runs if run.planned.spec.point.get("scheduler") == "io.cost"]
    assert share[0].failure == "needs a run that failed: the kernel failed"
    assert not any("io.cost.model" in plan for plan in machine.plans)


def test_nothing_is_set_up_with_the_figures_of_an_invalid_run(tmp_path: Path) -> None:
    machine = FakeMachine(charged_bytes=0)
    record = _run(_expansion(schedulers=["none", "io.cost", "io.max"]), machine, tmp_path)
    leaning = [
        run.failure
        for run in record.runs
        if run.planned.spec.point.get("scheduler") in ("io.cost", "io.max")
    ]
    assert len(leaning) == 2
    assert all(one.startswith("needs a run that is invalid: ") for one in leaning)
    assert not any("io.cost.model" in plan or "/io.max" in plan for plan in machine.plans)


def test_a_tenant_that_ended_in_the_warmup_adds_nothing_to_the_limits_of_io_max(
    tmp_path: Path,
) -> None:
    machine = FakeMachine(unmeasured="t1")
    record = _run(_expansion(schedulers=["io.max"]), machine, tmp_path)
    assert not any(run.failure for run in record.runs)
    (plan,) = [plan for plan in machine.plans if "/io.max" in plan]
    assert f'"$dev rbps={round(IOS * 4096 * 2 / 3)}' in plan


def test_io_max_caps_each_tenant_at_its_share_of_the_total_under_none(tmp_path: Path) -> None:
    machine = FakeMachine()
    _run(_expansion(schedulers=["io.max"]), machine, tmp_path)
    (plan,) = [plan for plan in machine.plans if "io.max" in plan]
    total = 2 * IOS * 4096
    assert f'"$dev rbps={round(total * 2 / 3)}' in plan
    assert f'"$dev rbps={round(total / 3)}' in plan


def test_io_cost_is_calibrated_from_the_measured_rates(tmp_path: Path) -> None:
    machine = FakeMachine()
    record = _run(_expansion(schedulers=["io.cost"]), machine, tmp_path)
    specs = [run.planned.spec for run in record.runs if run.planned.calibrate]
    assert specs[0].scheduler.io_cost_model is not None
    assert specs[0].scheduler.io_cost_model["rrandiops"] == IOS
    assert specs[0].scheduler.io_cost_model["rbps"] == IOS * 4096


def test_a_knob_that_did_not_take_makes_the_run_invalid(tmp_path: Path) -> None:
    path = "/sys/block/disk0/queue/scheduler"
    machine = FakeMachine(altered={path: "[none] bfq"})
    _run(_expansion(schedulers=["bfq"]), machine, tmp_path)
    invalid = [
        run.record for run in read_results(tmp_path).runs if run and run.record.status == "invalid"
    ]
    assert len(invalid) == 1
    assert invalid[0].reasons[0].startswith(f"setting without effect: {path}: asked 'bfq'")


@pytest.mark.parametrize(("charged", "status"), [(0.985, "invalid"), (0.995, "valid")])
def test_bytes_must_agree_with_the_cgroups_charges(
    tmp_path: Path, charged: float, status: str
) -> None:
    machine = FakeMachine(charged_bytes=round(charged * IOS * 4096))
    _run(_expansion(schedulers=["none"]), machine, tmp_path)
    assert {run.record.status for run in read_results(tmp_path).runs if run} == {status}


def test_two_campaigns_cannot_share_a_directory(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="in use by another isoblk run"):
            _run(_expansion(), FakeMachine(), tmp_path)


def test_a_directory_of_another_study_is_left_alone(tmp_path: Path) -> None:
    _run(_expansion("a", ["none"]), FakeMachine(), tmp_path)
    with pytest.raises(UserError, match="has the results of another study, 'a'"):
        _run(_expansion("b", ["none"]), FakeMachine(), tmp_path)
    assert read_results(tmp_path).record.study.name == "a"


def test_a_file_in_the_way_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(UserError, match="cannot write results"):
        _run(_expansion(), FakeMachine(), tmp_path / "results")


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    def full(text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    record = _run(_expansion(schedulers=["none"]), FakeMachine(before=full), tmp_path)
    assert all("No space left on device" in run.failure for run in record.runs)
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_full_disk_under_the_study_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match="cannot write results: No space left on device"):
        _run(_expansion(schedulers=["none"]), FakeMachine(), tmp_path)


def test_a_directory_that_holds_no_run_is_made_anew(tmp_path: Path) -> None:
    expansion = _expansion(schedulers=["none"])
    first = _run(expansion, FakeMachine(), tmp_path)
    (tmp_path / "runs" / first.runs[0].id / "run.json").unlink()
    again = FakeMachine()
    assert _run(expansion, again, tmp_path) == first
    assert len(again.plans) == 1


def test_an_unreadable_result_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "study.json").mkdir()
    with pytest.raises(UserError, match=r"study\.json: cannot read"):
        read_results(tmp_path)


def test_equal_runs_at_two_places_are_made_once(tmp_path: Path) -> None:
    spec = run_spec()
    elsewhere = msgspec.structs.replace(spec, point={"scheduler": "none", "x": "1"}, repeat=1)
    ids = {make_job(one, "kernel", "modules").id for one in (spec, elsewhere)}
    assert len(ids) == 1
    machine = FakeMachine()
    for one in (spec, elsewhere):
        execute(make_job(one, "kernel", "modules"), fake_bench(machine), tmp_path)
    assert len(machine.plans) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"runtime_ns": 7},
        {"window_ms": 1},
        {"cgroup": "v1"},
        {"queue": {"nomerges": 1}},
    ],
)
def test_the_id_depends_on(change: dict[str, Any]) -> None:
    plain = make_job(run_spec(), "kernel", "modules").id
    assert make_job(run_spec(**change), "kernel", "modules").id != plain


def test_the_id_depends_on_kernel_and_modules() -> None:
    ids = {make_job(run_spec(), k, m).id for k in ("a", "b") for m in ("c", "d")}
    assert len(ids) == 4


def test_a_dry_run_prints_every_script() -> None:
    expansion = _expansion()
    scripts = list(dry_run(expansion))
    assert len(scripts) == len(expansion.runs)
    assert all("#!/bin/sh" in script for script in scripts)


# -- large studies, and those that end early --


def test_study_json_is_not_written_after_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def write(results: Path, record: StudyRecord) -> None:
        written.append(sum(bool(run.id) for run in record.runs))

    monkeypatch.setattr(study, "write_study", write)
    monkeypatch.setattr(study, "_BETWEEN_WRITES_S", 1e9)
    monkeypatch.setattr(earlier, "forget_what_is_here", lambda results: None)
    expansion = _expansion()
    record = _run(expansion, FakeMachine(), tmp_path)
    # Before the first run, and when all have ended.
    assert len(written) == 2
    assert 0 < written[0] < written[1] == len(record.runs)


def test_a_study_whose_cluster_ends_keeps_finished_runs(tmp_path: Path) -> None:
    expansion = _expansion()
    bench = fake_bench(FakeMachine())
    count = 0

    def submit(job: Job) -> "Future[Run]":
        nonlocal count
        count += 1
        future: Future[Run] = Future()
        if count > 3:
            future.set_exception(EndedError("the scheduler is gone"))
        else:
            future.set_result(execute(job, bench, tmp_path))
        return future

    with pytest.raises(EndedError, match="the scheduler is gone"):
        run_study(expansion, "", bench, tmp_path, submit, lambda index, run: None)
    left = read_results(tmp_path)
    assert len({run.record.id for run in left.runs if run}) == 3
    assert not any(run.failure for run in left.record.runs)
    rest = FakeMachine()
    resumed = _run(expansion, rest, tmp_path)
    assert resumed == _run(expansion, FakeMachine(), tmp_path / "undisturbed")
    assert len(rest.plans) == len({run.id for run in resumed.runs}) - 3


# -- what a user has there --


@pytest.mark.parametrize("mine", ["thesis.tex", "runs/.git/HEAD", "runs/notes.txt", ".config"])
def test_a_directory_of_the_users_own_is_left_alone(tmp_path: Path, mine: str) -> None:
    (tmp_path / mine).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mine).write_text("mine")
    with pytest.raises(UserError, match="not a result directory"):
        _run(_expansion(schedulers=["none"]), FakeMachine(), tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / mine]


def test_files_that_a_user_adds_to_a_result_directory_stay(tmp_path: Path) -> None:
    expansion = _expansion(schedulers=["none"])
    _run(expansion, FakeMachine(), tmp_path)
    (tmp_path / "runs" / ".git").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    _run(expansion, FakeMachine(), tmp_path)
    assert (tmp_path / "runs" / ".git").is_dir()
    assert (tmp_path / "notes.txt").exists()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    results = tmp_path / "results"
    results.mkdir()
    (results / ".lock").symlink_to(tmp_path / "mine")
    with pytest.raises(UserError, match="cannot write results"):
        _run(_expansion(), FakeMachine(), results)
    assert (tmp_path / "mine").read_text() == "mine"


def test_runs_that_an_edited_study_lacks_are_kept_and_told(tmp_path: Path) -> None:
    both = _expansion(schedulers=["none", "kyber"])
    first = _run(both, FakeMachine(), tmp_path)
    _run(_expansion(schedulers=["none", "bfq"]), FakeMachine(), tmp_path)
    assert earlier.notes(tmp_path) == [
        "1 run of an earlier version of the study: not shown here;"
        f" see: isoblk show {tmp_path}/earlier/1"
    ]
    before = read_results(tmp_path / "earlier" / "1")
    assert before.record == first
    assert all(run is not None for run in before.runs)
    # As it was before: nothing is repeated, and the runs that were set aside are back.
    again = FakeMachine()
    _run(both, again, tmp_path)
    assert again.plans == []
    assert [path.name for path in (tmp_path / "earlier").iterdir()] == ["2"]


def test_an_edit_that_loses_no_run_leaves_nothing_behind(tmp_path: Path) -> None:
    _run(_expansion(schedulers=["none"]), FakeMachine(), tmp_path)
    _run(_expansion(schedulers=["none", "kyber"]), FakeMachine(), tmp_path)
    assert earlier.notes(tmp_path) == []
    assert not (tmp_path / "earlier").exists()


def test_runs_under_another_kernel_are_kept_and_told(tmp_path: Path) -> None:
    expansion = _expansion(schedulers=["none"])
    _run(expansion, FakeMachine(), tmp_path)
    with ThreadPoolExecutor(1) as executor:
        other = dataclasses.replace(fake_bench(FakeMachine()), modules_key="others")
        submit = here(executor, other, tmp_path)
        run_study(expansion, "", other, tmp_path, submit, lambda index, run: None)
    (told,) = earlier.notes(tmp_path)
    assert told.startswith(f"{len(expansion.runs)} runs of an earlier version of the study")


def test_an_interrupted_run_of_an_edited_study_loses_sight_of_nothing(tmp_path: Path) -> None:
    first = _run(_expansion(schedulers=["none", "kyber"]), FakeMachine(), tmp_path)

    def stop(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(_expansion(schedulers=["bfq"]), FakeMachine(before=stop), tmp_path)
    assert read_results(tmp_path / "earlier" / "1").record == first


def test_a_report_that_was_made_of_earlier_runs_stays(tmp_path: Path) -> None:
    both = _expansion(schedulers=["none", "kyber"])
    _run(both, FakeMachine(), tmp_path)
    _run(_expansion(schedulers=["none"]), FakeMachine(), tmp_path)
    (tmp_path / "earlier" / "1" / "report.html").write_text("a report")
    _run(both, FakeMachine(), tmp_path)
    assert (tmp_path / "earlier" / "1" / "report.html").exists()
    assert earlier.notes(tmp_path) == []


def test_results_tell_the_day_they_were_made_and_the_title_of_their_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    first = _run(_expansion(), FakeMachine(), tmp_path)
    assert first.made == "1970-01-02"
    assert first.presets["fast"].startswith("fast: 16 servers")
    # A report of the same runs is the same tomorrow.
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "172800")
    assert _run(_expansion(), FakeMachine(), tmp_path) == first
    assert read_results(tmp_path).record == first


def test_the_day_is_that_of_the_last_run_that_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    _run(_expansion(schedulers=["none"]), FakeMachine(), tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "172800")
    longer = _run(_expansion(schedulers=["none", "bfq"]), FakeMachine(), tmp_path)
    assert longer.made == "1970-01-03"


def test_runs_are_not_written_through_a_link(tmp_path: Path) -> None:
    """Runs that are created, executed and removed there would be another user's."""
    elsewhere, results = tmp_path / "elsewhere", tmp_path / "results"
    for directory in (elsewhere, results):
        directory.mkdir()
    (results / "runs").symlink_to(elsewhere)
    machine = FakeMachine()
    with pytest.raises(UserError, match=r"results/runs: is a symbolic link"):
        _run(_expansion(), machine, results)
    assert not machine.plans and not list(elsewhere.iterdir())


def test_a_full_disk_of_results_is_called_by_its_name(tmp_path: Path) -> None:
    """Not by that of the file which was to be copied there."""

    def full(text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/cache/isoblk_vdisk.ko")

    bench = fake_bench(FakeMachine(before=full))
    bench = dataclasses.replace(bench, modules={name: tmp_path / name for name in trial.MODULES})
    with pytest.raises(DiskFullError, match="the disk is full") as raised:
        trial.try_out(bench, tmp_path)
    assert raised.value.where == str(tmp_path)

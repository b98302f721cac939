# SPDX-License-Identifier: GPL-2.0-only
"""The commands do what the documentation says, from a study to a report."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.result.store import read_results
from isoblk.run.spec import DeviceEvent, Event
from tests.lab.campaigns import STUDIES, run_file
from tests.unit.specs import MS, Group, NullBlkDevice, run_spec, tenant

MANY = 1024
LOAD: dict[str, Any] = {"rw": "randread", "iodepth": 32, "cputime_ns": 768}


def _isoblk(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "isoblk", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_from_a_study_to_a_report(default_bench: Bench, tmp_path: Path) -> None:
    results = str(tmp_path / "quick")
    ran = _isoblk("run", str(STUDIES / "quick.toml"), "-o", results)
    assert ran.returncode == 0, ran.stderr
    assert "bfq" in ran.stdout
    shown = _isoblk("show", results)
    assert shown.returncode == 0, shown.stderr
    assert "holds" in shown.stdout
    reported = _isoblk("report", results)
    assert reported.returncode == 0, reported.stderr
    page = (tmp_path / "quick" / "report.html").read_text()
    assert "mount -t cgroup2" in page, "the report shows the script of each run"
    assert default_bench.kernel.version in page
    for kind in ("svg", "png"):
        assert list((tmp_path / "quick" / "figures").glob(f"*.{kind}"))
    shutil.copytree(results, tmp_path / "again")
    compared = _isoblk("compare", results, str(tmp_path / "again"))
    assert compared.returncode == 0, compared.stderr
    assert "identical" in compared.stdout


@pytest.mark.long
def test_a_new_study_runs_and_its_claims_hold(default_bench: Bench, tmp_path: Path) -> None:
    study, results = tmp_path / "mine.toml", tmp_path / "results"
    assert _isoblk("study", "new", str(study)).returncode == 0
    ran = _isoblk("run", str(study), "-o", str(results), "--check-claims")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    points = analyse(read_results(results)).points
    assert [one.scheduler for one in points] == ["none", "mq-deadline", "bfq", "io.cost", "isoblk"]


def test_a_dry_run_prints_the_script_that_a_run_executes(
    default_bench: Bench, tmp_path: Path
) -> None:
    study = str(STUDIES / "quick.toml")
    printed = _isoblk("run", study, "--dry-run")
    assert printed.returncode == 0, printed.stderr
    results = run_file(STUDIES / "quick.toml", default_bench, tmp_path)
    for run in results.runs:
        assert run is not None
        assert (run.dir / "plan.sh").read_text() in printed.stdout


def test_a_run_that_cannot_be_believed_is_shown_so_and_fails_the_command(
    default_bench: Bench, tmp_path: Path
) -> None:
    study = tmp_path / "odd.toml"
    # The kernel rounds read_ahead_kb down to a multiple of the page size.
    text = (STUDIES / "quick.toml").read_text()
    study.write_text(text.replace("[workload]", "[queue]\nread_ahead_kb = 130\n\n[workload]"))
    ran = _isoblk("run", str(study), "-o", str(tmp_path / "odd"))
    assert ran.returncode == 1
    assert "read_ahead_kb: asked '130', reads '128'" in " ".join(ran.stderr.split())
    shown = _isoblk("show", str(tmp_path / "odd"))
    assert "invalid" in shown.stdout
    assert "holds" not in shown.stdout


COMES_AND_GOES = """
name = "turns"
device = "fast"
scheduler = "isoblk"

[run]
runtime = "800ms"
window = "10ms"

[workload]
rw = "randread"
iodepth = 32
cputime = "512ns"

[[tenant]]
name = "guest"
weight = 300
on = "200ms"
off = "100ms"

[[tenant]]
name = "here"
weight = 100

[[tenant]]
name = "light"
rate_iops = 1000
on = "100ms"
off = "300ms"
"""


def test_a_tenant_that_comes_and_goes_is_one(default_bench: Bench, tmp_path: Path) -> None:
    study = tmp_path / "turns.toml"
    study.write_text(COMES_AND_GOES)
    results = run_file(study, default_bench, tmp_path / "results")
    (point,) = analyse(results).points
    (metrics,) = point.valid
    # A window of 100 ms has either of the two, or both.
    active = [sorted(phase.active) for phase in metrics.phases]
    assert ["guest", "here"] in active and ["here"] in active
    assert [one.name for one in metrics.tenants] == ["guest", "here", "light"]
    # 3 of 4 in 6 of 8 tenths, less what light has.
    assert metrics.by_name["guest"].share == pytest.approx(0.75 * 0.75, rel=0.03)
    assert metrics.by_name["guest"].ideal == pytest.approx(0.75 * 0.75, rel=0.03)
    share_error = max(metrics.by_name[name].share_error or 0 for name in ("guest", "here"))
    assert share_error < 0.02
    (run,) = [one for one in results.runs if one and one.record.spec.kind == "share"]
    guest, light = (run.series().filter(tenant=name) for name in ("guest", "light"))
    # Requests in flight at the start of a pause complete in the next window.
    rested = {t for t in guest["t_ms"] if t % 300 >= 210}
    assert not rested
    assert set(guest["t_ms"]) >= {t for t in range(0, 800, 10) if t % 300 < 200}
    # A thousand a second while it works, with none that would have come meanwhile.
    assert light.filter(light["t_ms"] % 400 > 110).height == 0
    assert light["ios"].sum() == pytest.approx(200, abs=2)
    by_name = {tenant.name: tenant for tenant in run.record.tenants}
    assert by_name["guest"].measured_ns == 600 * MS
    assert by_name["light"].measured_ns == 200 * MS


@pytest.mark.parametrize(
    ("on", "off"),
    [
        ("50ms", "100ms"),
        *(
            pytest.param(on, off, marks=pytest.mark.long)
            for on, off in (("80ms", "30ms"), ("110ms", "101ms"), ("230ms", "100ms"))
        ),
    ],
)
def test_a_tenant_that_returns_in_a_trial_gets_no_more_than_its_share(
    default_bench: Bench, tmp_path: Path, on: str, off: str
) -> None:
    # When a trial begins and ends is the scheduler's own affair: try some that overlap.
    study = tmp_path / "turns.toml"
    turns = COMES_AND_GOES.replace('on = "200ms"', f'on = "{on}"')
    turns = turns.replace('off = "100ms"', f'off = "{off}"').replace("800ms", "3s")
    study.write_text(turns)
    (point,) = analyse(run_file(study, default_bench, tmp_path / "results")).points
    (metrics,) = point.valid
    errors = {name: metrics.by_name[name].share_error or 0 for name in ("guest", "here")}
    assert max(errors.values()) < 0.02, errors


SWITCHES = """
name = "switch"
device = "fast"
scheduler = "none"

[run]
runtime = "800ms"
window = "10ms"

[workload]
rw = "randread"
iodepth = 32
cputime = "512ns"

[queue]
nr_requests = 200

[iosched.bfq]
slice_idle = 0

[[tenant]]
name = "a"
weight = 300

[[tenant]]
name = "b"
weight = 100

[[event]]
at = "200ms"
scheduler = "isoblk"

[[event]]
at = "600ms"
scheduler = "bfq"

[[event]]
at = "400ms"
tenant = "b"
weight = 300
"""


def test_the_scheduler_changes_under_load(default_bench: Bench, tmp_path: Path) -> None:
    study = tmp_path / "switch.toml"
    study.write_text(SWITCHES)
    results = run_file(study, default_bench, tmp_path / "results")
    # A run under none alone is there to compare with.
    assert [one.planned.spec.kind for one in results.record.runs].count("reference") == 1
    (point,) = analyse(results).points
    (metrics,) = point.valid
    moved = metrics.windows.moved
    parts = [a / (a + b) for a, b in zip(moved["a"], moved["b"], strict=True)]
    for window, share in ((0, 0.5), (1, 0.5), (3, 0.75), (5, 0.5)):
        assert parts[window] == pytest.approx(share, abs=0.02), parts
    assert parts[7] == pytest.approx(0.5, abs=0.1), parts
    told = [change.what for change in metrics.changes]
    assert told == ["the scheduler is isoblk", "b weighs 300", "the scheduler is bfq"]
    (run,) = [one for one in results.runs if one and one.record.spec.kind == "share"]
    got = [(knob.path.rpartition("/")[2], knob.got, knob.ok) for knob in run.record.knobs]
    chosen = [
        text.partition("[")[2].partition("]")[0] for name, text, _ in got if name == "scheduler"
    ]
    assert chosen == ["none", "isoblk", "bfq"]
    assert ("slice_idle", "0", True) in got
    assert got.count(("nr_requests", "200", True)) == 3
    assert all(ok for *_, ok in got)


def test_nested_groups_share_level_by_level(default_bench: Bench, tmp_path: Path) -> None:
    spec = run_spec(
        "bfq",
        device=NullBlkDevice(),
        groups=(Group(path="a", weight=300), Group(path="b", weight=100)),
        tenants=(
            tenant("t1", 200, "a/t1", **LOAD, randseed=1),
            tenant("t2", 100, "a/t2", **LOAD, randseed=2),
            tenant("t3", 100, "b/t3", **LOAD, randseed=3),
        ),
        warmup_ns=100 * MS,
    )
    record = execute(make_job(spec, "", ""), default_bench, tmp_path).record
    assert record.reasons == []
    done = [one.ops["read"].meas_bytes for one in record.tenants]
    shares = [bytes_read / sum(done) for bytes_read in done]
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.03)


def test_a_weight_that_changes_in_mid_run_takes_effect(
    default_bench: Bench, tmp_path: Path
) -> None:
    spec = run_spec(
        "bfq",
        device=NullBlkDevice(),
        tenants=(
            tenant("t1", 300, **LOAD, randseed=1),
            tenant("t2", 100, **LOAD, randseed=2),
        ),
        events=(Event(at_ns=1000 * MS, tenant="t1", weight=50),),
        runtime_ns=2000 * MS,
    )
    run = execute(make_job(spec, "", ""), default_bench, tmp_path)
    windows = run.series().rows()

    def share(begin_ms: int, end_ms: int) -> float:
        done = {"t1": 0, "t2": 0}
        for name, t_ms, _, _, bytes_read in windows:
            if begin_ms <= t_ms < end_ms:
                done[name] += bytes_read
        return done["t1"] / sum(done.values())

    assert share(200, 1000) == pytest.approx(0.75, abs=0.05)
    assert share(1300, 2000) == pytest.approx(1 / 3, abs=0.05)


def test_a_disk_that_changes_in_mid_run_is_slower_from_then_on_and_feedbac_notices(
    default_bench: Bench, tmp_path: Path
) -> None:
    spec = run_spec(
        "feedbac",
        tenants=(
            tenant("t1", 300, **LOAD, randseed=1),
            tenant("t2", 100, **LOAD, randseed=2),
        ),
        device_events=(DeviceEvent(at_ns=1000 * MS, attributes={"servers": 8}),),
        runtime_ns=2000 * MS,
    )
    run = execute(make_job(spec, "", ""), default_bench, tmp_path)
    assert run.record.reasons == []
    ios = [0] * 21  # by window of 100 ms; the last requests end after the end
    for _, t_ms, _, count, _ in run.series().rows():
        ios[t_ms // 100] += count
    assert sum(ios[11:20]) / sum(ios[:9]) == pytest.approx(0.5, rel=0.05)
    predictions = run.predictions()
    assert len(predictions) >= 15, "a period is 100 ms, and the first have no prediction"
    first, last = (predictions["predicted"][k] for k in (5, -1))
    assert last / first == pytest.approx(0.5, rel=0.1)


def test_the_ideal_of_a_tenant_is_at_most_its_rate_alone(
    default_bench: Bench, tmp_path: Path
) -> None:
    # The prototype's disk serves 64 at once; a tenant has 32.
    study = tmp_path / "quick.toml"
    quick = (STUDIES / "quick.toml").read_text()
    study.write_text(quick.replace('device = "fast"', 'device = "prototype"'))
    results = run_file(study, default_bench, tmp_path / "results")
    alone = [
        run.record
        for run, planned in zip(results.runs, results.record.runs, strict=True)
        if run is not None and planned.planned.spec.kind == "alone"
    ]
    (only,) = alone
    (by_itself,) = only.tenants
    rate = by_itself.ops["read"].meas_bytes * 1e9 / by_itself.measured_ns
    capped = [
        one.ideal * metrics.total_bps
        for point in analyse(results).points
        for metrics in point.valid
        for one in metrics.tenants
    ]
    assert max(capped) == pytest.approx(rate, rel=0.001)


@pytest.mark.parametrize("scheduler", ["none", pytest.param("bfq", marks=pytest.mark.long)])
def test_1024_tenants(default_bench: Bench, tmp_path: Path, scheduler: str) -> None:
    tenants = tuple(
        tenant(f"t{i}", 100 + i % 4, rw="randread", iodepth=4, number_ios=8, randseed=i)
        for i in range(MANY)
    )
    spec = run_spec(scheduler, tenants=tenants, runtime_ns=0)
    run = execute(make_job(spec, "", ""), default_bench, tmp_path)
    assert run.record.reasons == []
    assert [one.ops["read"].ios for one in run.record.tenants] == [8] * MANY
    assert run.latency()["count"].sum() == 8 * MANY


def test_results_are_read_back_as_they_were_written(default_bench: Bench, tmp_path: Path) -> None:
    written = run_file(STUDIES / "quick.toml", default_bench, tmp_path)
    assert read_results(tmp_path) == written

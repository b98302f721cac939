# SPDX-License-Identifier: GPL-2.0-only
"""A tenant that replays a trace: its options in a study, the script of the guest, the id of a run,
and its lateness in the report."""

import errno
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import execute, here, make_job
from isoblk.campaign.study import run_study
from isoblk.errors import RunError, UserError
from isoblk.metrics.registry import metric_value
from isoblk.plan.plan import make_plan
from isoblk.programs.blkload import parse_results
from isoblk.report import rows
from isoblk.result.store import read_results
from isoblk.run.record import Lateness, ReplayTotals
from isoblk.run.spec import RunSpec, Trace, Workload
from isoblk.study.expand import expand
from isoblk.study.load import parse_study
from isoblk.study.model import Study
from isoblk.study.notes import notes
from isoblk.study.traces import ends_ns, file_of, find_trace
from tests.unit.fakes import FakeMachine, fake_bench
from tests.unit.isotrace import Rec, packed, write_trace
from tests.unit.resultgen import Made, tenant, write
from tests.unit.specs import MS, SECOND, run_spec
from tests.unit.specs import tenant as spec_tenant

SHA = "0123456789abcdef" * 4


def _trace(name: str = "web", span_ns: int = SECOND, sha256: str = SHA) -> Trace:
    return Trace(name=name, sha256=sha256, records=100, span_ns=span_ns, max_end=1 << 20)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A compact trace of a second."""
    return write_trace(tmp_path / "t.isotrace", [Rec(i * MS, i % 2, 4096 * i) for i in range(1001)])


def _study(file: Path | str, options: str = "", more: str = "") -> Study:
    return parse_study(
        f'name = "s"\ndevice = "fast"\n{more}\n'
        f'[[tenant]]\nname = "web"\ntrace = "{file}"\n{options}',
        "s.toml",
    )


def _load(study: Study, at: int = 0) -> Workload:
    (share,) = [run.spec for run in expand(study).runs if run.spec.kind == "share"]
    return share.tenants[at].workload


# -- studies --


def test_a_trace_is_looked_up_and_known_by_its_content(file: Path) -> None:
    trace = _load(_study(file)).trace
    assert trace is not None
    assert (trace.name, trace.records, trace.span_ns) == (str(file), 1001, SECOND)
    assert trace.max_end == 1001 * 4096
    copied = _load(_study(shutil.copy(file, file.with_name("copy.isotrace")))).trace
    assert copied is not None
    assert (copied.name != trace.name, copied.sha256) == (True, trace.sha256)


def test_options_of_a_replay_have_defaults_and_are_taken_over(file: Path) -> None:
    plain = _load(_study(file))
    assert (plain.replay, plain.speed, plain.trace_fit, plain.trace_loop) == (
        *("timed", 1000, "wrap"),
        False,
    )
    assert plain.iodepth == 1024, "what a trace has in flight is its own affair"
    assert _load(_study(file, "iodepth = 8")).iodepth == 8
    assert _load(_study(file, 'replay = "closed"')).iodepth == 1
    own = _load(_study(file, 'speed = 2.5\ntrace_fit = "scale"\ntrace_loop = true'))
    assert (own.speed, own.trace_fit, own.trace_loop) == (2500, "scale", True)


def test_a_pattern_for_all_does_not_change_a_tenant_with_a_trace(file: Path) -> None:
    more = '[workload]\nrw = "randwrite"\nbs = "1m"\nverify = false\nsize = "1g"\nspeed = 2'
    study = _study(file, '[[tenant]]\nname = "db"', more)
    web, db = _load(study, 0), _load(study, 1)
    assert (web.rw, web.bs, web.size, web.speed) == ("randread", 4096, 1 << 30, 2000)
    assert (db.rw, db.bs, db.trace, db.speed) == ("randwrite", 1 << 20, None, 1000)


def test_a_tenant_may_do_without_the_trace_of_all(file: Path) -> None:
    study = _study("", 'rw = "read"', f'[workload]\ntrace = "{file}"')
    assert _load(study).trace is None


@pytest.mark.parametrize(
    ("options", "where", "cause"),
    [
        ('rw = "read"', "tenant[0].rw", "does not go with a trace"),
        ("numjobs = 2", "tenant[0].numjobs", "does not go with a trace"),
        ("rate_iops = 5", "tenant[0].rate_iops", "does not go with a trace"),
        ("fsync = 1", "tenant[0].fsync", "does not go with a trace"),
        ("verify = true", "tenant[0].verify", "does not go with a trace"),
        ("speed = 0", "tenant[0].speed", "0 is not a speed"),
        ("speed = 1.00001", "tenant[0].speed", "1.00001 is not a speed"),
        ("speed = 1e10", "tenant[0].speed", "is not a speed"),
        ("speed = nan", "tenant[0].speed", "is not a speed"),
        ("speed = inf", "tenant[0].speed", "is not a speed"),
        ("speed = -2", "tenant[0].speed", "is not a speed"),
        ('replay = "asap"', "tenant[0].replay", "unknown value 'asap'"),
        ('replay = "closed"\nspeed = 2', "tenant[0].speed", "a closed loop has no times"),
        ('workload = "fio"', "tenant[0].trace", "only blkload replays one"),
        ("offset = 100", "tenant[0].offset", "not a multiple"),
    ],
)
def test_an_option_that_a_replay_does_not_allow_is_a_one_line_error(
    file: Path, options: str, where: str, cause: str
) -> None:
    with pytest.raises(UserError) as caught:
        _study(file, options)
    assert re.match(rf"s\.toml:[678]: {re.escape(where)}: [^\n]*{cause}", str(caught.value))
    assert "\n" not in str(caught.value)


def test_options_of_a_trace_need_one() -> None:
    with pytest.raises(UserError, match="there is no trace to replay"):
        _study("", "speed = 2")


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (None, "no such trace"),
        (packed([Rec(0)])[:-1], "87 bytes, but 1 records make 88"),
        (packed([]), "has no requests"),
    ],
)
def test_a_trace_that_cannot_be_had_is_one_line(
    tmp_path: Path, content: bytes | None, cause: str
) -> None:
    path = tmp_path / "bad.isotrace"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        _study(path)
    assert cause in str(caught.value)
    assert str(caught.value).startswith("s.toml:6: tenant[0].trace: ")
    assert "\n" not in str(caught.value)


def test_a_trace_that_ends_in_the_warm_up_is_refused(file: Path) -> None:
    long = '[run]\nwarmup = "2s"\nruntime = "1s"'
    with pytest.raises(UserError, match="ends after 1s, in the warm-up of 2s"):
        _study(file, more=long)
    assert _load(_study(file, "trace_loop = true", long)).trace_loop
    assert _load(_study(file, "speed = 0.4", long)).speed == 400


def test_a_trace_that_ends_early_is_noted(file: Path) -> None:
    def noted(options: str) -> list[str]:
        study = _study(file, options, '[run]\nruntime = "2s"')
        return notes(run.spec for run in expand(study).runs)

    assert noted("") == [
        f"trace {file} ends after 1s, before the run does; trace_loop = true repeats it"
    ]
    for enough in ("trace_loop = true", "speed = 0.5", 'runtime = "1s"', 'replay = "closed"'):
        assert noted(enough) == []


def test_stand_ins_are_called_so() -> None:
    def spec(stand_in: bool) -> RunSpec:
        trace = msgspec.structs.replace(_trace(), name="exchange", stand_in=stand_in)
        return run_spec(tenants=(spec_tenant(trace=trace, replay="closed"),))

    (note,) = notes([spec(True)])
    assert note.startswith("exchange: stand-ins made from published figures")
    assert notes([spec(False)]) == []


def test_the_end_of_a_replay_follows_speed_and_start() -> None:
    load = Workload(trace=_trace(), startdelay_ns=5, speed=2000)
    assert ends_ns(load) == 5 + SECOND // 2
    for other in (
        Workload(),
        Workload(trace=_trace(), replay="closed"),
        Workload(trace=_trace(), trace_loop=True),
    ):
        assert ends_ns(other) is None


def test_traces_may_be_varied(file: Path) -> None:
    other = write_trace(file.with_name("u.isotrace"), [Rec(0), Rec(SECOND)])
    study = parse_study(
        f'name = "s"\ndevice = "fast"\n[[tenant]]\nname = "web"\n'
        f'[matrix]\n"tenant.web.trace" = ["{file}", "{other}"]\n"tenant.web.speed" = [1, 2]\n',
        "s.toml",
    )
    shares = [run.spec for run in expand(study).runs if run.spec.kind == "share"]
    assert [(s.point["tenant.web.trace"], s.tenants[0].workload.speed) for s in shares] == [
        (str(name), speed) for name in (file, other) for speed in (1000, 2000)
    ]


def test_alone_a_timed_replay_is_at_the_same_place_and_a_closed_one_does_not_run_dry(
    file: Path,
) -> None:
    def alone(options: str) -> RunSpec:
        runs = expand(_study(file, options)).runs
        (one,) = [run.spec for run in runs if run.spec.kind == "alone"]
        return one

    times = 'startdelay = "200ms"\nruntime = "500ms"'
    timed = alone(times)
    load = timed.tenants[0].workload
    assert (load.startdelay_ns, load.runtime_ns, load.trace_loop) == (200 * MS, 500 * MS, False)
    assert timed.point["alone"].startswith(f"trace={file} iodepth=1024 startdelay_ns=")
    load = alone(times + '\nreplay = "closed"').tenants[0].workload
    assert (load.startdelay_ns, load.runtime_ns, load.trace_loop) == (0, 0, True)


# -- runs --


def _spec(**load: Any) -> RunSpec:
    return run_spec(tenants=(spec_tenant("t1", trace=_trace(), **load), spec_tenant("t2")))


def test_the_plan_names_the_trace_by_its_content() -> None:
    text = make_plan(_spec(iodepth=64, trace_loop=True, size=1 << 20)).text
    directory = "/sys/kernel/config/blkload/t1"
    for name, value in {
        "trace": f"/run/isoblk/traces/{SHA[:32]}.isotrace",
        "replay": "timed",
        "speed": "1000",
        "trace_fit": "wrap",
        "trace_loop": "1",
        "iodepth": "64",
        "size": str(1 << 20),
    }.items():
        assert f"echo {value} > {directory}/{name}\n" in text
    for name in ("rw", "bs", "randseed", "numjobs"):
        assert f"> {directory}/{name}\n" not in text
    assert "> /sys/kernel/config/blkload/t2/trace" not in text
    closed = make_plan(_spec(replay="closed")).text
    assert f"echo closed > {directory}/replay\n" in closed
    assert f"> {directory}/speed" not in closed


def test_a_run_is_known_by_the_content_of_its_trace_and_not_by_its_name() -> None:
    def run_id(trace: Trace) -> str:
        return make_job(run_spec(tenants=(spec_tenant("t1", trace=trace),)), "k", "m").id

    assert run_id(_trace("here/a.csv")) == run_id(_trace("there/b.csv"))
    assert run_id(_trace()) != run_id(_trace(sha256=SHA[::-1]))


@pytest.mark.parametrize("how", ["linked", "copied", "linked symbolic", "copied symbolic"])
def test_the_trace_is_in_the_runs_directory_while_it_runs(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if "symbolic" in how:
        (tmp_path / "elsewhere").mkdir()
        target = file.rename(tmp_path / "elsewhere" / file.name)
        file.symlink_to(target.relative_to(tmp_path))
    if "copied" in how:

        def refuse(*args: object, **kwargs: object) -> None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        monkeypatch.setattr("os.link", refuse)
    seen: list[bytes] = []
    results = tmp_path / "results"

    def look(text: str) -> None:
        (place,) = (results / "runs").glob(".*/traces/*.isotrace")
        assert f"echo /run/isoblk/traces/{place.name} > " in text
        assert not place.is_symlink()
        seen.append(place.read_bytes())

    trace = find_trace(str(file)).trace
    spec = run_spec(tenants=(spec_tenant("t1", trace=trace), spec_tenant("t2", trace=trace)))
    bench = fake_bench(FakeMachine(before=look))
    run = execute(make_job(spec, "k", "m"), bench, results)
    assert seen == [file.read_bytes()]
    assert sorted(path.name for path in run.dir.iterdir()) == [
        *("console.log", "latency.parquet", "plan.sh", "run.json", "series.parquet")
    ]
    assert run.record.spec.tenants[0].workload.trace == trace
    assert file.exists()


def test_a_failed_run_leaves_no_trace_behind(file: Path, tmp_path: Path) -> None:
    def fail(text: str) -> None:
        raise RunError("broken")

    spec = run_spec(tenants=(spec_tenant("t1", trace=find_trace(str(file)).trace),))
    with pytest.raises(RunError, match="broken"):
        execute(make_job(spec, "k", "m"), fake_bench(FakeMachine(before=fail)), tmp_path / "r")
    (left,) = (tmp_path / "r" / "runs").glob("*.failed")
    assert not (left / "traces").exists()


def test_another_trace_of_the_same_name_is_not_replayed(file: Path) -> None:
    planned = find_trace(str(file)).trace
    assert file_of(planned) == file
    with pytest.raises(UserError, match="has changed since the run was planned"):
        file_of(msgspec.structs.replace(planned, sha256=SHA))


def test_a_study_with_a_trace_runs_to_its_end(file: Path, tmp_path: Path) -> None:
    study = _study(file, 'trace_loop = true\n[matrix]\nscheduler = ["none", "bfq"]')
    with ThreadPoolExecutor(2) as executor:
        bench = fake_bench(FakeMachine())
        submit = here(executor, bench, tmp_path / "r")
        record = run_study(
            expand(study), "", bench, tmp_path / "r", submit, lambda index, run: None
        )
    assert [run.failure for run in record.runs] == [""] * 3
    assert all(run and run.record.status == "valid" for run in read_results(tmp_path / "r").runs)


# -- results --

HEAD = "tenant a jobs 1 start_ns 1 measure_from_ns 0 measure_to_ns 9 end_ns 9 error 0\n"
TRACE_LINE = "trace a records 5 passes 2 rounded 1 clipped 0 moved 3\n"
LATE_LINE = "late a ios 4 sum_ns 100 max_ns 60 above_1ms 0\n"


def test_the_generators_lines_are_read() -> None:
    totals = ReplayTotals(records=5, passes=2, rounded=1, clipped=0, moved=3)
    late = Lateness(ios=4, sum_ns=100, max_ns=60, above_1ms=0)
    assert parse_results(HEAD)["a"].replay is None
    assert parse_results(HEAD + TRACE_LINE)["a"].replay == totals
    assert parse_results(HEAD + TRACE_LINE + LATE_LINE)["a"].replay == msgspec.structs.replace(
        totals, late=late
    )


@pytest.mark.parametrize(
    "line", [LATE_LINE, "trace a records 5\n", "trace b records 5\n", "trace a records x\n"]
)
def test_a_line_that_is_not_the_generators_is_refused(line: str) -> None:
    with pytest.raises(RunError, match="not a result of blkload"):
        parse_results(HEAD + line)


def _reported(tmp_path: Path, replays: dict[str, ReplayTotals | None]) -> tuple[Any, Any]:
    made = Made(
        "none",
        {"a": 1000, "b": 1000},
        tenants=[tenant("a", 100), tenant("b", 100)],
        replays=replays,
    )
    analysis = analyse(read_results(write(tmp_path / "r", [made])))
    (metrics,) = analysis.points[0].valid
    return rows.summary(analysis), rows.tenants(metrics, 10)


def test_the_report_says_how_late_a_replay_was(tmp_path: Path) -> None:
    late = Lateness(ios=1000, sum_ns=1000 * 40_000, max_ns=31 * MS, above_1ms=12)
    totals = ReplayTotals(records=12_345, passes=3, rounded=0, clipped=1, moved=17, late=late)
    summary, tenants = _reported(tmp_path, {"a": totals, "b": None})
    assert "timed replay: requests are late by up to 31.0 ms (a, scheduler none)" in summary.notes
    assert tenants.notes == (
        "a: 12,345 requests of the trace issued, in 3 passes, 1 clipped, 17 moved,"
        " late by 40.0 µs on average and 31.0 ms at most, 1.2 % by more than 1 ms",
    )


def test_a_replay_that_was_in_time_is_said_to_be(tmp_path: Path) -> None:
    late = Lateness(ios=1000, sum_ns=1000, max_ns=511, above_1ms=0)
    totals = ReplayTotals(records=1000, passes=1, rounded=0, clipped=0, moved=0)
    summary, _ = _reported(tmp_path, {"a": msgspec.structs.replace(totals, late=late), "b": totals})
    assert "timed replay: every request was issued at its time" in summary.notes


def test_a_trace_that_ended_wants_nothing_more(tmp_path: Path) -> None:
    """The ideal after its end is the other tenant's alone."""
    load = {"trace": msgspec.to_builtins(_trace())}
    rates = [100.0] * 5 + [0.0] * 5
    made = Made(
        "none",
        {"a": rates, "b": [100.0] * 5 + [200.0] * 5},
        tenants=[tenant("a", 100, **load), tenant("b", 100)],
    )
    analysis = analyse(read_results(write(tmp_path / "r", [made])))
    (metrics,) = analysis.points[0].valid
    assert metric_value(metrics, "share_error") == pytest.approx(0, abs=1e-9)
    assert [change.what for change in metrics.changes] == ["a stops"]

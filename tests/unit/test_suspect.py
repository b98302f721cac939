# SPDX-License-Identifier: GPL-2.0-only
"""A figure that says something else than it seems to is called suspect, and decides no claim."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from isoblk.analysis.claims import ClaimResult, judge_all
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.report import rows, text
from isoblk.report.export import show_csv, show_json
from isoblk.result.store import read_results
from isoblk.run.record import Processors
from isoblk.run.spec import FlashModel, Tenant, VdiskDevice
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen
from tests.unit.resultgen import Made, tenant

MS = 1_000_000
TWO: list[Tenant] = [tenant("a", 300), tenant("b", 100)]
EVEN: Mapping[str, float] = {"a": 6000.0, "b": 2000.0}


def _analyse(directory: Path, made: Made, claims: Sequence[ClaimEntry] = ()) -> Analysis:
    return analyse(read_results(resultgen.write(directory, [made], claims)))


def _said(directory: Path, made: Made) -> list[str]:
    return _analyse(directory, made).points[0].runs[0].suspicions


def _judged(directory: Path, made: Made, metric: str, op: str, value: float) -> ClaimResult:
    claim = ClaimEntry(text="c", source="s", metric=metric, op=op, value=value)  # type: ignore[arg-type]
    (result,) = judge_all(_analyse(directory, made, [claim]))
    return result


def _arriving(rate: int, process: str = "linear", numjobs: int = 1) -> list[Tenant]:
    arriving = tenant("a", 100, rate_iops=rate, rate_process=process, numjobs=numjobs)
    return [arriving, tenant("b", 100)]


def test_nothing_is_said_of_a_run_that_says_something(tmp_path: Path) -> None:
    made = Made("bfq", EVEN, tenants=TWO)
    assert _said(tmp_path / "a", made) == []
    assert _judged(tmp_path / "b", made, "share_error", "<=", 0.01).verdict == "holds"


# -- served --


def test_a_rate_that_is_not_served_has_no_p99(tmp_path: Path) -> None:
    made = Made("none", {"a": 600.0, "b": 6000.0}, tenants=_arriving(1000))
    analysis = _analyse(tmp_path / "a", made)
    assert analysis.points[0].runs[0].suspicions == [
        "a: served 60.0 % of its requests: its latency has no bound"
    ]
    shown = rows.summary(analysis)
    titles = [column.title for column in shown.columns]
    ((state, cells),) = shown.rows
    assert state == "suspect"
    assert cells[titles.index("p99")].text == "unbounded (60.0 %)"
    result = _judged(tmp_path / "b", made, "p99.a", "<", 1e9)
    assert (result.verdict, result.reason[:8]) == ("undecided", "suspect:")
    # The figures of other tenants are not in doubt.
    assert _judged(tmp_path / "c", made, "p99.b", "<", 1e9).verdict == "holds"


def test_all_jobs_arrive(tmp_path: Path) -> None:
    made = Made("none", {"a": 1000.0, "b": 6000.0}, tenants=_arriving(1000, numjobs=2))
    assert _said(tmp_path, made) == ["a: served 50.0 % of its requests: its latency has no bound"]


@pytest.mark.parametrize(("rate", "seen"), [(940.0, 1), (960.0, 0)])
def test_a_twentieth_may_be_missing(tmp_path: Path, rate: float, seen: int) -> None:
    made = Made("none", {"a": rate, "b": 6000.0}, tenants=_arriving(1000))
    assert len(_said(tmp_path, made)) == seen


def test_chance_is_no_backlog(tmp_path: Path) -> None:
    """Of 100 random arrivals a second it may be 78 without anything being wrong."""
    made = Made("none", {"a": 80.0, "b": 6000.0}, tenants=_arriving(100, "poisson"))
    assert _said(tmp_path / "a", made) == []
    made = Made("none", {"a": 60.0, "b": 6000.0}, tenants=_arriving(100, "poisson"))
    assert len(_said(tmp_path / "b", made)) == 1


def test_a_backlog_that_grows_is_seen_before_a_twentieth_is_missing(tmp_path: Path) -> None:
    a = [1000.0] * 7 + [900.0] * 3
    made = Made("none", {"a": a, "b": 6000.0}, tenants=_arriving(1000))
    (said,) = (one for one in _said(tmp_path, made) if one.startswith("a: served"))
    assert "90.0 % of the requests of the last third" in said


def test_a_tenant_of_which_nothing_was_due_is_no_backlog(tmp_path: Path) -> None:
    made = Made("none", {"a": 0.0, "b": 6000.0}, tenants=_arriving(1))
    assert _said(tmp_path, made) == []


# -- time --


def test_a_p99_of_more_than_a_tenth_of_the_time_is_suspect(tmp_path: Path) -> None:
    made = Made("none", EVEN, tenants=TWO, latency={110 * MS: 2000})
    assert _said(tmp_path / "a", made) == ["a, b: p99 is above 10.0 % of the measured time"]
    assert _judged(tmp_path / "b", made, "p99.a", ">", 1.0).verdict == "undecided"
    assert _judged(tmp_path / "c", made, "share.a", ">", 0.5).verdict == "holds"
    short = Made("none", EVEN, tenants=TWO, latency={90 * MS: 2000})
    assert _said(tmp_path / "d", short) == []


# -- processors --


@pytest.mark.parametrize(("busy_ms", "seen"), [(1790, 0), (1900, 1)])
def test_processors_that_have_no_time_left_are_said(
    tmp_path: Path, busy_ms: int, seen: int
) -> None:
    busy = {"a": Processors(cpus=2, busy_ns=busy_ms * MS)}
    made = Made("none", EVEN, tenants=TWO, processors=busy)
    assert len(_said(tmp_path / "a", made)) == seen
    result = _judged(tmp_path / "b", made, "total_iops", ">", 1.0)
    assert result.verdict == ("undecided" if seen else "holds")


def test_a_machine_whose_processors_have_no_time_left_is_said(tmp_path: Path) -> None:
    made = Made("none", EVEN, tenants=TWO, tier="smp", busy=0.97)
    assert _said(tmp_path, made) == ["the machine: its processors are busy 97.0 % of the time"]


# -- settled --


def test_shares_that_move_are_not_settled(tmp_path: Path) -> None:
    moving = {"a": [6000.0] * 5 + [5000.0] * 5, "b": [2000.0] * 5 + [3000.0] * 5}
    made = Made("isoblk", moving, tenants=TWO)
    assert _said(tmp_path / "a", made) == [
        "b: share of 25.0 % in the first third, 37.5 % in the last: not settled"
    ]
    # 25 % on the whole, 0 in the first third, 50 % in the last.
    close = _judged(tmp_path / "b", made, "share_error", "<=", 0.3)
    assert (close.verdict, close.reason) == ("undecided", "suspect: shares have not settled")
    assert _judged(tmp_path / "c", made, "share_error", "<=", 0.6).verdict == "holds"
    assert _judged(tmp_path / "d", made, "total_iops", ">", 1.0).verdict == "holds"


def test_a_share_that_is_wrong_throughout_the_run_decides_a_claim(tmp_path: Path) -> None:
    moving = {"a": [4000.0] * 5 + [3500.0] * 5, "b": [4000.0] * 5 + [4500.0] * 5}
    made = Made("none", moving, tenants=TWO)
    assert _judged(tmp_path, made, "share_error", "<=", 0.01).verdict == "fails"


def test_a_few_requests_more_or_less_are_chance(tmp_path: Path) -> None:
    moving = {"a": [60.0] * 5 + [50.0] * 5, "b": [20.0] * 5 + [30.0] * 5}
    assert _said(tmp_path, Made("isoblk", moving, tenants=TWO)) == []


def test_a_tenant_that_begins_late_unsettles_nothing(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 100, startdelay_ns=500 * MS)]
    rates = {"a": [2000.0] * 5 + [1000.0] * 5, "b": [1000.0] * 10}
    assert _said(tmp_path, Made("isoblk", rates, tenants=tenants)) == []


# -- empty drives --


def test_a_drive_that_nothing_was_written_to_answers_no_question(tmp_path: Path) -> None:
    flash = VdiskDevice(model="flash", flash=FlashModel(precondition="none"))
    made = Made("none", EVEN, tenants=TWO, device=flash)
    assert _said(tmp_path / "a", made) == ["a, b: reads a drive that nothing was written to"]
    assert _judged(tmp_path / "b", made, "jain", ">", 0.0).verdict == "undecided"
    writers = [tenant("a", 300, rw="randwrite"), tenant("b", 100, rw="randwrite")]
    assert _said(tmp_path / "c", Made("none", EVEN, tenants=writers, device=flash)) == []


# -- where it is shown --


def test_it_is_shown_where_the_figures_are(tmp_path: Path) -> None:
    analysis = _analyse(tmp_path, Made("none", {"a": 600.0, "b": 6000.0}, tenants=_arriving(1000)))
    reason = "a: served 60.0 % of its requests: its latency has no bound"
    assert reason in show_json(analysis, [])
    assert reason in show_csv(analysis)
    assert [(state, why) for state, _, why in rows.troubles(analysis)] == [("suspect", reason)]
    assert text.status(analysis.points[0]) == "valid"

# SPDX-License-Identifier: GPL-2.0-only
"""feedbac's predictions are kept as it made them, and judged as docs/concepts/metrics.md says."""

import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.analysis.metrics import analyse
from isoblk.campaign.collect import collect
from isoblk.errors import RunError, UserError
from isoblk.machine import Ran
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.registry import metric_value
from isoblk.plan.plan import Plan
from isoblk.report.figures.make import make_figures
from isoblk.result.predictions import parse_predictions
from isoblk.result.store import PREDICTIONS, PREDICTIONS_SCHEMA, read_results
from isoblk.run.spec import DeviceEvent
from tests.unit import resultgen
from tests.unit.resultgen import PROVENANCE, Made, tenant
from tests.unit.specs import run_spec
from tests.unit.specs import tenant as spec_tenant

MS = 10**6
FIRST = "at_ns 5000000 predicted 0 used 640 error_permille 0 a_permille 200\n"
COUNT = st.integers(0, 2**40)


def _line(at_ns: int, predicted: int, used: int, permille: int = 1, a: int = 200) -> str:
    return (
        f"at_ns {at_ns} predicted {predicted} used {used}"
        f" error_permille {permille} a_permille {a}\n"
    )


@given(st.integers(0, 2**60), COUNT, st.integers(1, 2**40), st.integers(0, 1000))
def test_a_line_is_a_row(at_ns: int, predicted: int, used: int, a: int) -> None:
    table = parse_predictions(_line(at_ns, predicted, used, 1, a), 10**9)
    assert table.schema == PREDICTIONS_SCHEMA
    ((t_ms, *sectors, error, factor),) = table.rows()
    assert t_ms == pytest.approx((at_ns - 10**9) / 1e6)
    assert sectors == [predicted, used]
    assert error == pytest.approx(abs(predicted - used) / used)
    assert factor == pytest.approx(a / 1000)


def test_a_period_without_a_prediction_is_left_out_but_a_prediction_of_nothing_is_not() -> None:
    table = parse_predictions(FIRST + _line(10**9, 0, 640, 1000), 0)
    assert table.select("predicted", "error").rows() == [(0, 1.0)]


def test_no_prediction_is_an_empty_table() -> None:
    assert parse_predictions("", 0).schema == PREDICTIONS_SCHEMA


@pytest.mark.parametrize("text", ["nonsense", FIRST.replace("640", "x"), FIRST.replace("a_p", "p")])
def test_a_line_that_is_none_is_named(text: str) -> None:
    with pytest.raises(RunError, match="predictions:2: not a prediction of feedbac"):
        parse_predictions(FIRST + text, 0)


def test_times_count_from_the_barrier(tmp_path: Path) -> None:
    barrier = 3 * 10**9
    (tmp_path / "results").write_text(
        f"tenant t1 jobs 1 start_ns {barrier} measure_from_ns 0 measure_to_ns 1000000000"
        " end_ns 1 error 0\n"
    )
    (tmp_path / "knobs").write_text("")
    (tmp_path / "charged").write_text("")
    (tmp_path / "predictions").write_text(FIRST + _line(barrier + 200 * MS, 100, 100))
    spec = run_spec("feedbac", tenants=(spec_tenant(),))
    collect(tmp_path, "id", spec, Plan("", (), ()), Ran(0, 0), PROVENANCE)
    assert pl.read_parquet(tmp_path / PREDICTIONS)["t_ms"].to_list() == [200.0]
    assert not (tmp_path / "predictions").exists()


def _made(errors: dict[int, float], changes_ms: tuple[int, ...] = ()) -> Made:
    """1 s measured after 1 s; errors by the end of the period, ms."""
    return Made(
        "feedbac",
        {"a": 1000.0},
        tenants=[tenant("a", 100)],
        device_events=[DeviceEvent(at_ns=at * MS, attributes={"servers": 8}) for at in changes_ms],
        predictions=[(float(at), 100, 100, error, 0.2) for at, error in errors.items()],
        warmup_ms=1000,
        runtime_ms=1000,
    )


def _metrics(directory: Path, made: Made) -> RunMetrics:
    metrics = analyse(read_results(resultgen.write(directory, [made]))).points[0].runs[0].metrics
    assert metrics is not None
    return metrics


def test_the_errors_are_those_of_the_measured_time(tmp_path: Path) -> None:
    found = _metrics(tmp_path, _made({1000: 0.9, 1100: 0.02, 2000: 0.03, 2100: 0.8}))
    assert metric_value(found, "prediction_error") == 0.03
    assert metric_value(found, "prediction_error_mean") == pytest.approx(0.025)
    assert metric_value(found, "prediction_settled_ms") is None


def test_without_a_period_in_the_measured_time_there_is_no_error(tmp_path: Path) -> None:
    found = _metrics(tmp_path, _made({900: 0.5}))
    assert metric_value(found, "prediction_error") is None
    assert metric_value(found, "prediction_error_mean") is None


@pytest.mark.parametrize(
    ("errors", "changes_ms", "settled"),
    [
        ({1100: 0.001, 1200: 0.5, 1300: 0.02, 1400: 0.01}, (1150,), 150.0),
        # Good, bad again, good.
        ({1200: 0.5, 1300: 0.01, 1400: 0.011, 1500: 0.0}, (1150,), 250.0),
        # A bad prediction before the change does not count.
        ({1100: 0.5, 1200: 0.0}, (1150,), 0.0),
        # The longer of two.
        ({1200: 0.5, 1300: 0.5, 1400: 0.0, 1600: 0.5, 1700: 0.0}, (1100, 1500), 200.0),
        ({1200: 0.5, 1300: 0.5}, (1150,), math.inf),
        ({1200: 0.5, 1400: 0.0}, (1150, 1300), math.inf),
        ({1100: 0.0}, (1150,), math.inf),
    ],
)
def test_settled_is_when_the_last_bad_period_after_a_change_ends(
    tmp_path: Path, errors: dict[int, float], changes_ms: tuple[int, ...], settled: float
) -> None:
    found = _metrics(tmp_path, _made(errors, changes_ms))
    assert metric_value(found, "prediction_settled_ms") == settled


def test_others_predict_nothing(tmp_path: Path) -> None:
    found = _metrics(tmp_path, Made("bfq", {"a": 1000.0}, tenants=[tenant("a", 100)]))
    assert metric_value(found, "prediction_error") is None
    assert found.predictions is None


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    resultgen.write(tmp_path, [_made({1100: 0.0})])
    (tmp_path / "runs" / f"{0:016x}" / PREDICTIONS).write_bytes(b"no")
    with pytest.raises(UserError, match=PREDICTIONS):
        analyse(read_results(tmp_path))


def test_the_figure_shows_both_lines_the_error_and_the_change(tmp_path: Path) -> None:
    other = Made("bfq", {"a": 1000.0}, tenants=[tenant("a", 100)], warmup_ms=1000)
    made = _made({1100: 0.5, 1200: 0.1, 1300: 0.0}, (1050,))
    analysis = analyse(read_results(resultgen.write(tmp_path, [other, made])))
    (figure,) = [one for one in make_figures(analysis) if one.name == "prediction"]
    for text in ("predicted", "used", "error, %", "thousand sectors a period", "feedbac"):
        assert f">{text}<" in figure.svg
    assert ">bfq<" not in figure.svg


def test_without_predictions_there_is_no_figure(tmp_path: Path) -> None:
    analysis = analyse(read_results(resultgen.event_study(tmp_path)))
    assert "prediction" not in [figure.name for figure in make_figures(analysis)]

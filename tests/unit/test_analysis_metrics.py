# SPDX-License-Identifier: GPL-2.0-only
"""The numbers of a result set are the ones its makers put in."""

import math
from pathlib import Path

import polars as pl
import pytest

from isoblk.analysis.metrics import Analysis, PointView, analyse
from isoblk.errors import UserError
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.over_time import burst_ms
from isoblk.metrics.registry import NAMES, metric_value
from isoblk.result.store import read_results
from isoblk.run.spec import Group, Tenant
from tests.unit import resultgen
from tests.unit.resultgen import BS, Made, tenant


def _analyse(directory: Path) -> Analysis:
    return analyse(read_results(directory))


def _only(directory: Path, *runs: Made) -> RunMetrics:
    metrics = _analyse(resultgen.write(directory, runs)).points[-1].runs[0].metrics
    assert metrics is not None
    return metrics


def _point(analysis: Analysis, **point: str) -> PointView:
    wanted = {key.replace("_", "."): value for key, value in point.items()}
    return next(p for p in analysis.points if p.point == wanted)


def _alone(rate: float) -> Made:
    return Made("none", {"alone": rate}, kind="alone", tenants=[tenant("alone", 100)])


TWO: list[Tenant] = [tenant("a", 300), tenant("b", 100)]


def test_shares_totals_and_errors(tmp_path: Path) -> None:
    found = _only(tmp_path, Made("bfq", {"a": 6000, "b": 4000}, tenants=TWO))
    assert found.total_iops == pytest.approx(10_000)
    assert found.total_bps == pytest.approx(10_000 * BS)
    assert [t.share for t in found.tenants] == pytest.approx([0.6, 0.4])
    assert [t.ideal for t in found.tenants] == pytest.approx([0.75, 0.25])
    assert [t.share_error for t in found.tenants] == pytest.approx([0.2, 0.6])
    assert metric_value(found, "share_error") == pytest.approx(0.6)
    assert metric_value(found, "jain") == pytest.approx((0.8 + 1.6) ** 2 / (2 * (0.8**2 + 1.6**2)))
    assert metric_value(found, "share_error_100ms") == pytest.approx(0.6)
    assert not found.capped


@pytest.mark.parametrize("name", ["run[1]", "run?", "{run1}", "*", "[", "run\udcff"])
def test_the_tables_are_those_of_the_directory_whatever_it_is_called(
    tmp_path: Path, name: str
) -> None:
    """Not those of another one, whose name is what this one's would stand for in a shell."""
    _only(tmp_path / "run1", Made("bfq", {"a": 100, "b": 100}, tenants=[tenant("a", 1)]))
    metrics = _only(tmp_path / name, Made("bfq", {"a": 900}, tenants=[tenant("a", 1)]))
    assert metrics.windows.moved["a"][0] == 90 * resultgen.BS


def test_the_ideal_of_a_tenant_is_at_most_its_rate_alone(tmp_path: Path) -> None:
    found = _only(
        tmp_path, _alone(6000), Made("bfq", {"a": 6000, "b": 4000}, tenants=TWO, alone=[0, 0])
    )
    assert [t.ideal for t in found.tenants] == pytest.approx([0.6, 0.4])
    assert metric_value(found, "share_error") == pytest.approx(0, abs=1e-9)
    assert metric_value(found, "weight_ratio_error") == pytest.approx(0.6)
    assert [t.slowdown for t in found.tenants] == pytest.approx([1, 1.5])
    assert found.capped


def test_a_tenant_that_exceeds_its_rate_alone_could_use_the_excess(tmp_path: Path) -> None:
    """Alone a reached 6000 a second, here 7000: the excess was due to no other tenant."""
    heavy = [tenant("a", 700), tenant("b", 100)]
    found = _only(
        tmp_path, _alone(6000), Made("bfq", {"a": 7000, "b": 1000}, tenants=heavy, alone=[0, 0])
    )
    assert metric_value(found, "share_error") == pytest.approx(0, abs=1e-9)


def test_a_slower_scheduler_is_judged_by_shares_of_its_own_total(tmp_path: Path) -> None:
    found = _only(
        tmp_path, _alone(6000), Made("bfq", {"a": 3000, "b": 1000}, tenants=TWO, alone=[0, 0])
    )
    assert metric_value(found, "share_error") == pytest.approx(0, abs=1e-9)


def test_an_invalid_run_alone_is_no_cap(tmp_path: Path) -> None:
    alone = Made(
        "none", {"alone": 6000}, kind="alone", tenants=[tenant("alone", 100)], status="invalid"
    )
    found = _only(tmp_path, alone, Made("bfq", {"a": 3, "b": 1}, tenants=TWO, alone=[0, 0]))
    assert [t.ideal for t in found.tenants] == pytest.approx([0.75, 0.25])
    assert found.tenants[0].slowdown is None
    assert not found.capped


def test_the_ideal_follows_the_hierarchy(tmp_path: Path) -> None:
    tenants = [tenant("a", 100, "g/a"), tenant("b", 300, "g/b"), tenant("c", 100, "c")]
    found = _only(
        tmp_path,
        Made(
            "bfq",
            {"a": 1000, "b": 3000, "c": 4000},
            tenants=tenants,
            groups=[Group(path="g", weight=100)],
        ),
    )
    assert [t.ideal for t in found.tenants] == pytest.approx([0.125, 0.375, 0.5])
    assert metric_value(found, "share_error") == pytest.approx(0, abs=1e-9)


def test_a_tenant_that_starts_late_owns_nothing_before(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 100, startdelay_ns=500_000_000)]
    a = [2000.0] * 5 + [1000.0] * 5
    found = _only(tmp_path, Made("bfq", {"a": a, "b": 1000}, tenants=tenants))
    assert [t.ideal for t in found.tenants] == pytest.approx([0.75, 0.25])
    assert metric_value(found, "share_error") == pytest.approx(0, abs=1e-9)
    assert found.window_errors == pytest.approx([0] * 10, abs=1e-9)


def test_a_change_inside_a_window_counts_by_its_time(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 100, startdelay_ns=550_000_000)]
    found = _only(tmp_path, Made("bfq", {"a": 1000, "b": 1000}, tenants=tenants))
    # Window 5 (100 requests of a, 50 of b): half of it a's alone, half of it shared.
    assert found.window_ideal["a"][5] == pytest.approx(BS * 150 * 0.75)


def test_convergence_after_start_and_weight_change(tmp_path: Path) -> None:
    changes = _analyse(resultgen.event_study(tmp_path)).points[1].runs[0].metrics
    assert changes is not None
    assert [(c.at_ms, c.what, c.converged_ms) for c in changes.changes] == [
        (500, "b starts", 0),
        (1000, "b weighs 300", 300),
    ]


def test_no_convergence_is_said(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 900, startdelay_ns=500_000_000)]
    found = _only(tmp_path, Made("none", {"a": 1000, "b": 1000}, tenants=tenants))
    assert [c.converged_ms for c in found.changes] == [None]


def test_a_window_in_which_nothing_moved_is_neither_fair_nor_a_sign_of_convergence(
    tmp_path: Path,
) -> None:
    tenants = [tenant("a", 100), tenant("b", 100, startdelay_ns=300_000_000)]
    a, b = [1000.0] * 3 + [0.0] * 3 + [1000.0] * 4, [0.0] * 6 + [3000.0] * 4
    found = _only(tmp_path, Made("bfq", {"a": a, "b": b}, tenants=tenants))
    assert found.window_errors == [0, 0, 0, None, None, None, *[pytest.approx(0.5)] * 4]
    assert [c.converged_ms for c in found.changes] == [None]


def test_windows_without_demand_have_no_share_error(tmp_path: Path) -> None:
    tenants = [tenant("a", 100, runtime_ns=500_000_000), tenant("b", 100, runtime_ns=500_000_000)]
    found = _only(tmp_path, Made("bfq", {"a": 1000, "b": 1000}, tenants=tenants))
    assert metric_value(found, "share_error_100ms") == pytest.approx(0)
    assert found.changes == ()


def test_one_bad_window_of_many_is_the_worst_and_not_the_95th_percentile(tmp_path: Path) -> None:
    made = Made(
        "bfq", {"a": 1000, "b": 1000}, tenants=[tenant("a", 100), tenant("b", 100)], runtime_ms=3000
    )
    resultgen.write(tmp_path, [made])
    (path,) = tmp_path.glob("runs/*/series.parquet")
    series = pl.read_parquet(path)
    bad = (pl.col("tenant") == "a") & (pl.col("t_ms") == 700)
    less = pl.when(bad).then(pl.col("bytes") // 3).otherwise(pl.col("bytes"))
    series.with_columns(less.alias("bytes")).write_parquet(path)
    (point,) = _analyse(tmp_path).points
    (found,) = point.valid
    assert metric_value(found, "share_error_100ms") == pytest.approx(0)
    assert metric_value(found, "share_error_100ms_max") == pytest.approx(0.5, abs=0.01)


def test_a_tenant_without_a_series_is_judged_by_its_totals_alone(tmp_path: Path) -> None:
    # fio leaves no series: its windows would look empty.
    tenants = [
        tenant("a", 100, program="fio", number_ios=5),
        tenant("b", 100, startdelay_ns=500_000_000),
    ]
    made = Made("bfq", {"a": 3000, "b": 2000}, tenants=tenants)
    resultgen.write(tmp_path, [made])
    (path,) = tmp_path.glob("runs/*/series.parquet")
    series = pl.read_parquet(path)
    series.filter(series["tenant"] != "a").write_parquet(path)
    (point,) = _analyse(tmp_path).points
    (found,) = point.valid
    assert [t.share for t in found.tenants] == pytest.approx([0.75, 0.25])
    assert [t.ideal for t in found.tenants] == pytest.approx([0.75, 0.25])
    assert metric_value(found, "share_error_100ms") is None
    assert found.changes == ()


def test_total_is_relative_to_none_of_the_same_point_and_repeat(tmp_path: Path) -> None:
    analysis = _analyse(resultgen.weights_study(tmp_path, repeats=3))
    none = _point(analysis, scheduler="none", workload_rw="randread")
    bfq = _point(analysis, scheduler="bfq", workload_rw="randread")
    assert none.values("total_vs_none") == [1, 1, 1]
    assert bfq.values("total_vs_none") == pytest.approx([294 / 800] * 3, rel=1e-3)


def test_total_is_relative_to_the_better_of_none_and_kyber(tmp_path: Path) -> None:
    rates = {"none": 600.0, "kyber": 800.0, "bfq": 400.0}
    runs = [
        Made(name, {"a": rate, "b": rate}, tenants=TWO, reference=None if name == "none" else 0)
        for name, rate in rates.items()
    ]
    resultgen.write(tmp_path / "with", runs)
    points = {p.scheduler: p.valid[0] for p in _analyse(tmp_path / "with").points}
    assert {n: metric_value(m, "total_vs_best") for n, m in points.items()} == {
        "none": 0.75,
        "kyber": 1,
        "bfq": 0.5,
    }
    resultgen.write(tmp_path / "without", [runs[0], runs[2]])
    points = {p.scheduler: p.valid[0] for p in _analyse(tmp_path / "without").points}
    assert {n: metric_value(m, "total_vs_best") for n, m in points.items()} == {
        "none": None,
        "bfq": None,
    }


def test_an_invalid_kyber_is_not_compared_with(tmp_path: Path) -> None:
    analysis = _analyse(resultgen.weights_study(tmp_path))
    valid = _point(analysis, scheduler="bfq", workload_rw="randread").valid[0]
    assert metric_value(valid, "total_vs_best") == pytest.approx(294 / 800, rel=1e-3)
    assert (
        metric_value(
            _point(analysis, scheduler="bfq", workload_rw="randwrite").valid[0], "total_vs_best"
        )
        is None
    )


def test_the_longest_convergence_counts_and_none_at_all_is_without_end(tmp_path: Path) -> None:
    (point,) = _analyse(resultgen.event_study(tmp_path / "a")).points[1:]
    assert point.values("converged_ms") == [300]
    tenants = [tenant("a", 100), tenant("b", 900, startdelay_ns=500_000_000)]
    never = _only(tmp_path / "b", Made("none", {"a": 1000, "b": 1000}, tenants=tenants))
    assert metric_value(never, "converged_ms") == math.inf
    steady = _only(tmp_path / "c", Made("none", {"a": 1000, "b": 1000}, tenants=TWO))
    assert metric_value(steady, "converged_ms") is None


def test_a_share_that_is_6_percent_off_has_not_converged(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 100, startdelay_ns=500_000_000)]
    near = _only(tmp_path / "a", Made("bfq", {"a": 1000, "b": 1090}, tenants=tenants))
    far = _only(tmp_path / "b", Made("bfq", {"a": 1000, "b": 1130}, tenants=tenants))
    assert [metric_value(near, "converged_ms"), metric_value(far, "converged_ms")] == [0, math.inf]


def test_a_burst_is_the_service_beyond_the_share_in_ms_of_the_share(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 100, startdelay_ns=500_000_000)]
    # b has all of one window and three quarters of the next, each worth 100 ms of its half.
    a = [2000.0] * 5 + [0.0, 500.0] + [1000.0] * 3
    b = [0.0] * 5 + [2000.0, 1500.0] + [1000.0] * 3
    found = _only(tmp_path, Made("bfq", {"a": a, "b": b}, tenants=tenants))
    assert metric_value(found, "burst_ms.b") == pytest.approx(150)
    assert metric_value(found, "burst_ms.a") == pytest.approx(0)


def test_a_tenant_that_wants_nothing_is_not_behind() -> None:
    assert burst_ms([0, 0, 30, 0], [0, 0, 20, 20], 100) == pytest.approx(50)


def test_invalid_and_failed_runs_are_not_averaged(tmp_path: Path) -> None:
    analysis = _analyse(resultgen.weights_study(tmp_path))
    invalid = _point(analysis, scheduler="kyber", workload_rw="randwrite")
    assert invalid.runs[0].status == "invalid"
    assert invalid.estimate("total_iops") is None
    failed = _point(analysis, scheduler="io.latency", workload_rw="randrw")
    assert failed.runs[0].status == "failed"
    assert failed.estimate("total_iops") is None


def test_every_metric_that_a_claim_may_name_has_a_value(tmp_path: Path) -> None:
    analysis = _analyse(resultgen.weights_study(tmp_path))
    metrics = _point(analysis, scheduler="bfq", workload_rw="randread").valid[0]
    # Nothing changes in that study, nothing is predicted under bfq, no program runs, there is no
    # cache, each tenant has a cgroup of its own, and no tenant was alone at full speed.
    absent = (
        *("converged_ms", "prediction_error", "prediction_error_mean", "prediction_settled_ms"),
        *("says.<tenant>.<figure>", "cache.<figure>"),
        *("jain_in_group", "least_in_group", "service_error", "denied", "late.<tenant>"),
    )
    for name in NAMES.keys() - set(absent):
        assert metric_value(metrics, name.replace("<tenant>", "gold")) is not None, name
    with pytest.raises(KeyError):
        metric_value(metrics, "speed")


def test_latencies_are_exact_means_and_upper_bounds(tmp_path: Path) -> None:
    found = _only(
        tmp_path,
        Made("none", {"a": 1000, "b": 1000}, tenants=TWO, latency={1000: 980, 5000: 19, 90_000: 1}),
    )
    assert metric_value(found, "p50.a") == 1000
    assert metric_value(found, "p99.a") == 5000
    assert metric_value(found, "p99_9.a") == 5000
    assert metric_value(found, "p99_99.a") == 90_000
    assert metric_value(found, "mean_latency.a") == pytest.approx(1165)


def test_warmup_is_not_measured(tmp_path: Path) -> None:
    rates: dict[str, float | list[float]] = {"a": [9000.0] * 5 + [3000.0] * 10, "b": 1000}
    found = _only(tmp_path, Made("bfq", rates, tenants=TWO, warmup_ms=500))
    assert metric_value(found, "share_error") == pytest.approx(0, abs=1e-9)
    assert found.windows.count == 10
    assert found.windows.start_ns == 500_000_000


@pytest.mark.parametrize("name", ["series.parquet", "latency.parquet"])
@pytest.mark.parametrize("damage", ["cut", "text", "gone"])
def test_a_damaged_table_is_named(tmp_path: Path, name: str, damage: str) -> None:
    resultgen.write(tmp_path, [Made("none", {"a": 1, "b": 1}, tenants=TWO)])
    path = next(tmp_path.glob(f"runs/*/{name}"))
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "text":
        path.write_text("not a table")
    else:
        path.unlink()
    with pytest.raises(UserError, match=name) as caught:
        _analyse(tmp_path)
    assert "\n" not in str(caught.value)

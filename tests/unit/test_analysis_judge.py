# SPDX-License-Identifier: GPL-2.0-only
"""Criteria for a scheduler beyond bytes: service, waiting, tasks of one cgroup, lost throughput.

The numbers are those of made-up runs, worked out by hand.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from isoblk.analysis.metrics import analyse
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.registry import metric_value
from isoblk.result.store import read_results
from isoblk.run.spec import Tenant
from tests.unit import resultgen
from tests.unit.resultgen import Made, tenant

US = 1000
THREE: list[Tenant] = [tenant("light", 100), tenant("b", 200), tenant("c", 100)]


def _last(directory: Path, *runs: Made) -> RunMetrics:
    metrics = analyse(read_results(resultgen.write(directory, runs))).points[-1].runs[0].metrics
    assert metrics is not None
    return metrics


def _alone(rate: float, latency_ns: int = 50 * US) -> Made:
    return Made(
        "none",
        {"alone": rate},
        kind="alone",
        tenants=[tenant("alone", 100)],
        latency={latency_ns: round(rate)},
    )


def _with_alone(directory: Path, p99_ns: int, *alone: Made) -> RunMetrics:
    rates = dict.fromkeys((t.name for t in THREE), 1000.0)
    beside = Made(
        "bfq",
        rates,
        tenants=THREE,
        alone=range(len(alone)),
        latency={p99_ns: 1000},
    )
    return _last(directory, *alone, beside)


def test_a_light_tenant_may_wait_as_long_again_as_alone(tmp_path: Path) -> None:
    others = (_alone(10_000, 20 * US), _alone(10_000, 20 * US))
    found = _with_alone(tmp_path, 130 * US, _alone(500, 50 * US), *others)
    assert metric_value(found, "p99_excess.light") == pytest.approx(1.3)


def test_or_for_one_request_of_another_tenant(tmp_path: Path) -> None:
    """The longest: 10 ms between two of b's, which each take 12; c's are shorter than that."""
    others = (_alone(100, 12_000 * US), _alone(1000, 5 * US))
    found = _with_alone(tmp_path, 20_100 * US, _alone(500, 50 * US), *others)
    assert metric_value(found, "p99_excess.light") == pytest.approx(20_100 / 10_050)
    # Of b itself the longest other is that of the light one, which takes 50 us.
    assert metric_value(found, "p99_excess.b") == pytest.approx(20_100 / 24_000)


def test_the_excess_of_latency_is_unknown_without_a_run_alone(tmp_path: Path) -> None:
    found = _with_alone(tmp_path, 130 * US)
    assert metric_value(found, "p99_excess.light") is None


def _service(directory: Path, rates: Sequence[float], tenants: Sequence[Tenant]) -> float | None:
    """Whole speeds: 1000 a second for a's requests, 100 for b's, alone as much."""
    names = [one.name for one in tenants]
    run = Made(
        "bfq",
        dict(zip(names, rates, strict=True)),
        tenants=tenants,
        alone=(0, 1),
        full=(0, 1),
    )
    return metric_value(_last(directory, _alone(1000), _alone(100), run), "service_error")


def test_service_is_a_part_of_the_speed_for_such_requests(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 100)]
    assert _service(tmp_path / "even", [500, 50], tenants) == pytest.approx(0)
    # The same bytes for both: b has ten times a's service.
    assert _service(tmp_path / "bytes", [90, 90], tenants) == pytest.approx(0.99 / 0.495 / 1.1 - 1)
    assert _service(tmp_path / "off", [600, 40], tenants) == pytest.approx(0.2)


def test_no_service_is_owed_to_a_tenant_that_asks_for_no_more(tmp_path: Path) -> None:
    """a asks for 100 of 1000 a second; b has the remainder."""
    tenants = [tenant("a", 100), tenant("b", 100)]
    run = Made("bfq", {"a": 100, "b": 90}, tenants=tenants, alone=(0, 1), full=(2, 1))
    found = _last(tmp_path, _alone(100), _alone(100), _alone(1000), run)
    assert metric_value(found, "service_error") == pytest.approx(0)


def test_service_is_unknown_without_the_runs_alone_at_full_speed(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 100)]
    run = Made("bfq", {"a": 100, "b": 90}, tenants=tenants, alone=(0, 0))
    assert metric_value(_last(tmp_path, _alone(100), run), "service_error") is None


def test_lost_throughput_is_relative_to_the_bound(tmp_path: Path) -> None:
    tenants = [tenant("a", 300), tenant("b", 100)]
    none = Made("none", {"a": 500, "b": 500}, tenants=tenants)
    bound = _alone(800)
    under = Made("bfq", {"a": 540, "b": 180}, tenants=tenants, reference=1, bound=0)
    assert metric_value(_last(tmp_path / "bound", bound, none, under), "lost") == pytest.approx(0.1)
    free = Made("bfq", {"a": 540, "b": 180}, tenants=tenants, reference=0)
    assert metric_value(_last(tmp_path / "free", none, free), "lost") == pytest.approx(0.28)
    # A bound above what none does says nothing.
    assert metric_value(
        _last(tmp_path / "more", _alone(1200), none, under), "lost"
    ) == pytest.approx(0.28)
    assert metric_value(_last(tmp_path / "no none", free_of(free)), "lost") is None


def free_of(run: Made) -> Made:
    return Made(run.scheduler, run.rates, tenants=run.tenants)


def test_tasks_of_one_cgroup_are_compared_with_their_median(tmp_path: Path) -> None:
    tasks = [tenant(f"t{i}", 100, cgroup="web") for i in range(3)]
    run = Made("bfq", {"t0": 50, "t1": 100, "t2": 150, "x": 700}, tenants=[*tasks, tenant("x", 9)])
    found = _last(tmp_path, run)
    assert metric_value(found, "least_in_group") == pytest.approx(0.5)
    assert metric_value(found, "jain_in_group") == pytest.approx(
        300**2 / (3 * (50**2 + 100**2 + 150**2))
    )


def test_a_tenant_of_its_own_is_no_group(tmp_path: Path) -> None:
    found = _last(tmp_path, Made("bfq", {"a": 1, "b": 1}, tenants=[tenant("a", 1), tenant("b", 1)]))
    assert metric_value(found, "least_in_group") is None
    assert metric_value(found, "jain_in_group") is None


def test_a_task_without_service_is_the_least_of_its_cgroup(tmp_path: Path) -> None:
    tasks = [tenant(f"t{i}", 100, cgroup="web") for i in range(3)]
    run = Made("bfq", {"t0": 0, "t1": 100, "t2": 100}, tenants=tasks)
    assert metric_value(_last(tmp_path, run), "least_in_group") == 0

# SPDX-License-Identifier: GPL-2.0-only
"""Harm of a scheduler to a tenant is reported, except where an account excuses it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from isoblk.analysis.metrics import analyse
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.registry import metric_value
from isoblk.result.store import read_results
from isoblk.run.spec import Tenant
from tests.unit import resultgen
from tests.unit.resultgen import Made, tenant

TWO: list[Tenant] = [tenant("a", 100), tenant("b", 100)]
FULL = 10_000.0


def alone(rate: float, latency_ns: int = 100_000) -> Made:
    count = max(1, round(rate))
    return Made(
        "none",
        {"alone": rate},
        kind="alone",
        tenants=[tenant("alone", 100)],
        latency={latency_ns: count},
    )


def judged(
    directory: Path,
    got: Made,
    *,
    none: Made,
    alone_at: tuple[float, float] = (FULL, FULL),
    full: tuple[float, float] = (FULL, FULL),
) -> RunMetrics:
    """A run under bfq of two tenants, with all that it leans on."""
    runs = [*map(alone, alone_at), *map(alone, full), replace(none, kind="reference")]
    own = replace(got, alone=(0, 1), full=(2, 3), reference=4)
    made = resultgen.write(directory, [*runs, own])
    metrics = analyse(read_results(made)).points[-1].runs[0].metrics
    assert metrics is not None
    return metrics


def run(scheduler: str, a: float | list[float], b: float | list[float], p99_ns: int = 0) -> Made:
    latency = {p99_ns: 1000} if p99_ns else None
    return Made(scheduler, {"a": a, "b": b}, tenants=TWO, latency=latency)


EVEN = run("none", 5000, 5000)


def test_a_tenant_with_less_than_its_due_by_both_accounts_is_denied(tmp_path: Path) -> None:
    found = judged(tmp_path, run("bfq", 8000, 2000), none=EVEN)
    assert metric_value(found, "denied") == pytest.approx(0.6)


def test_a_tenant_with_its_share_of_the_time_is_not_denied_bytes(tmp_path: Path) -> None:
    """b's requests are four times as dear: a fifth of the bytes is half of the time."""
    found = judged(
        tmp_path, run("bfq", 4000, 1000), none=EVEN, alone_at=(8000, 2000), full=(8000, 2000)
    )
    assert metric_value(found, "denied") == pytest.approx(0, abs=1e-9)


def test_a_tenant_that_can_use_no_more_is_not_denied(tmp_path: Path) -> None:
    found = judged(tmp_path, run("bfq", 9000, 1000), none=EVEN, alone_at=(FULL, 1000))
    assert metric_value(found, "denied") == pytest.approx(0, abs=1e-9)


def test_a_light_tenant_is_late_only_beyond_its_latency_without_a_scheduler(
    tmp_path: Path,
) -> None:
    light = {"alone_at": (FULL, 1000.0)}
    slow = run("bfq", 9000, 1000, p99_ns=4_000_000)
    quick = judged(
        tmp_path / "1", slow, none=run("none", 9000, 1000, p99_ns=100_000), **light
    )  # twice its p99 alone, 100 us, or that and another's request
    assert metric_value(quick, "late.b") == pytest.approx(4_000 / 200)
    as_slow = judged(tmp_path / "2", slow, none=run("none", 9000, 1000, p99_ns=4_000_000), **light)
    assert metric_value(as_slow, "late.b") == pytest.approx(1)
    # A tenant that can use all of the disk queues for its own requests.
    assert metric_value(quick, "late.a") is None


def test_a_tenant_without_service_for_long_is_starved(tmp_path: Path) -> None:
    gap = [1000.0] * 2 + [0.0] * 6 + [1000.0] * 2
    found = judged(tmp_path, run("bfq", 5000, gap), none=EVEN)
    assert found.by_name["b"].longest_gap_ns == 600_000_000
    assert metric_value(found, "starved.b") == pytest.approx(6)
    assert metric_value(found, "starved.a") == 0


def test_a_tenant_without_any_service_is_starved_to_the_end(tmp_path: Path) -> None:
    found = judged(tmp_path, run("bfq", 5000, 0), none=EVEN)
    assert metric_value(found, "starved.b") == pytest.approx(10)
    assert metric_value(found, "denied") == pytest.approx(1)


def test_a_pause_that_it_has_without_a_scheduler_too_is_not_the_schedulers(
    tmp_path: Path,
) -> None:
    gap = [1000.0] * 2 + [0.0] * 6 + [1000.0] * 2
    found = judged(tmp_path, run("bfq", 5000, gap), none=run("none", 5000, gap))
    assert metric_value(found, "starved.b") == pytest.approx(1)


def test_all_are_slower_only_if_no_tenant_is_faster(tmp_path: Path) -> None:
    both = judged(tmp_path / "1", run("bfq", 2500, 1000), none=EVEN)
    assert metric_value(both, "all_slower") == pytest.approx(2)
    one = judged(tmp_path / "2", run("bfq", 2500, 6000), none=EVEN)
    assert metric_value(one, "all_slower") == pytest.approx(5 / 6)
    nothing = judged(tmp_path / "3", run("bfq", 0, 0), none=EVEN)
    assert metric_value(nothing, "all_slower") == math.inf


def test_whose_due_is_less_than_a_few_requests_is_not_denied_them(tmp_path: Path) -> None:
    """b's requests are of 4 KiB, and so few are due to it that chance decides."""
    tenants = [tenant("a", 10_000), tenant("b", 1)]
    found = judged(
        tmp_path,
        Made("bfq", {"a": 10_000, "b": 0}, tenants=tenants),
        none=Made("none", {"a": 9_000, "b": 1_000}, tenants=tenants),
    )
    assert metric_value(found, "denied") == pytest.approx(0, abs=1e-3)


def test_a_tenant_that_asks_for_more_bytes_than_its_share_is_not_light(tmp_path: Path) -> None:
    """By the device's time b asks for a tenth, by bytes for more than its half of the total."""
    slow = run("bfq", 500, 500, p99_ns=4_000_000)
    found = judged(
        tmp_path,
        slow,
        none=run("none", 500, 500, p99_ns=100_000),
        alone_at=(1000, 1000),
        full=(1000, FULL),
    )
    assert metric_value(found, "late.b") is None

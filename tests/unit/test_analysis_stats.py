# SPDX-License-Identifier: GPL-2.0-only
"""Intervals cover what they say, and agree with printed tables."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoblk.metrics.stats import estimate, jain, t_quantile, t_two_sided, welch_p


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (4, 2.7764), (9, 2.2622), (30, 2.0423), (120, 1.9799)],
)
def test_t_quantile_agrees_with_the_printed_table(freedom: int, expected: float) -> None:
    assert t_quantile(0.95, freedom) == pytest.approx(expected, abs=1e-4)


@settings(deadline=None)
@given(st.floats(0, 50))
def test_t_of_one_degree_of_freedom_is_cauchys(t: float) -> None:
    assert t_two_sided(t, 1) == pytest.approx(1 - 2 * math.atan(t) / math.pi, abs=1e-7)


def test_a_repeat_without_end_leaves_the_interval_open() -> None:
    found = estimate([100.0, math.inf])
    assert (found.low, found.high) == (100.0, math.inf)
    assert estimate([math.inf, math.inf]).low == math.inf


@pytest.mark.parametrize("repeats", [2, 3, 10])
def test_95_percent_of_the_intervals_hold_the_true_mean(repeats: int) -> None:
    rng = random.Random(repeats)
    tries = 2000
    hits = 0
    for _ in range(tries):
        found = estimate([rng.gauss(7, 3) for _ in range(repeats)])
        hits += found.low <= 7 <= found.high
    assert 0.93 < hits / tries < 0.97


@settings(deadline=None)
@given(st.floats(0, 20), st.floats(1, 60))
def test_t_is_the_integral_of_its_density(t: float, freedom: float) -> None:
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    scale /= math.sqrt(freedom * math.pi)
    steps = 4000
    width = t / steps
    weights = (1 if i in (0, steps) else 4 if i % 2 else 2 for i in range(steps + 1))
    heights = ((1 + (i * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1))
    inside = 2 * scale * width / 3 * sum(w * h for w, h in zip(weights, heights, strict=True))
    assert t_two_sided(t, freedom) == pytest.approx(1 - inside, abs=1e-7)


def test_welch_agrees_with_a_calculation_by_hand() -> None:
    # Variances 5/3 and 20/3, so t = 2.5 / sqrt(25/12) = sqrt(3) and v = 75/17.
    found = welch_p([1, 2, 3, 4], [2, 4, 6, 8])
    assert found == pytest.approx(t_two_sided(math.sqrt(3), 75 / 17))
    assert welch_p([1, 2, 3], [3, 1, 2]) == pytest.approx(1)


def test_welch_needs_repeats() -> None:
    assert welch_p([1.0], [2.0, 3.0]) is None


def test_welch_of_constants_is_certain() -> None:
    assert welch_p([1.0, 1.0], [2.0, 2.0]) == 0
    assert welch_p([1.0, 1.0], [1.0, 1.0]) == 1


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=50))
def test_jain_is_between_one_nth_and_one(values: list[float]) -> None:
    found = jain(values)
    if found is None:
        assert not any(values)
    else:
        assert 1 / len(values) * (1 - 1e-9) <= found <= 1 + 1e-9


def test_jain_of_equal_and_of_one_alone() -> None:
    assert jain([3.0] * 7) == pytest.approx(1)
    assert jain([0.0, 0.0, 5.0, 0.0]) == pytest.approx(1 / 4)

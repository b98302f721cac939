# SPDX-License-Identifier: GPL-2.0-only
"""Good and bad results, and two ends that do not differ enough to tell."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isoblk.bisect.threshold import between, parse, worst
from isoblk.errors import UserError
from isoblk.metrics.stats import Estimate, estimate


def exact(value: float) -> Estimate:
    return estimate([value])


values = st.floats(1e-3, 1e12)


@given(values, values)
def test_the_middle_has_the_ends_on_its_two_sides(good: float, bad: float) -> None:
    assume(abs(good - bad) > 0.06 * max(good, bad))
    threshold = between("p99.a", exact(good), exact(bad), None)
    assert threshold.bad(bad)
    assert not threshold.bad(good)


@given(values, values, st.floats(0.01, 0.99))
def test_a_threshold_that_is_asked_for_counts(good: float, bad: float, part: float) -> None:
    assume(good != bad)
    asked = good + (bad - good) * part
    assume(min(good, bad) < asked < max(good, bad))
    threshold = between("p99.a", exact(good), exact(bad), asked)
    assert threshold.value == asked
    assert threshold.bad(bad)
    assert not threshold.bad(good)


@pytest.mark.parametrize(
    ("metric", "good", "bad", "asked", "told"),
    [
        ("p99.a", 1e6, 1e6, None, "at both ends"),
        ("p99.a", 1e6, 1.04e6, None, "differ by less than 5%; add --threshold"),
        ("share_error", 0.0, 0.04, None, "differ by less than 5%"),
        ("p99.a", 1e6, 2e6, 3e6, "--threshold 3.00 ms is not between"),
        ("p99.a", 1e6, math.inf, None, "they have no middle; add --threshold"),
    ],
)
def test_ends_that_do_not_differ_are_refused(
    metric: str, good: float, bad: float, asked: float | None, told: str
) -> None:
    with pytest.raises(UserError, match=told):
        between(metric, exact(good), exact(bad), asked)


def test_a_small_difference_counts_if_it_is_asked_for() -> None:
    assert between("p99.a", exact(1e6), exact(1.04e6), 1.02e6).bad(1.04e6)


def test_repeats_that_vary_too_much_are_refused() -> None:
    good, bad = estimate([1e6, 3e6, 2e6]), estimate([2e6, 4e6, 3e6])
    with pytest.raises(UserError, match="their intervals overlap"):
        between("p99.a", good, bad, None)
    close = estimate([1e6, 1.1e6, 1.05e6]), estimate([3e6, 3.1e6, 3.05e6])
    assert between("p99.a", *close, None).value == pytest.approx(2.05e6)


@pytest.mark.parametrize(
    ("text", "metric", "value"),
    [
        ("1.2ms", "p99.a", 1.2e6),
        ("1200000", "p99.a", 1.2e6),
        ("5%", "share_error", 0.05),
        ("0.05", "share_error", 0.05),
        ("1e6", "total_bps", 1e6),
        ("7", "says.a.lat", 7.0),
    ],
)
def test_a_threshold_is_written_in_the_metrics_unit(text: str, metric: str, value: float) -> None:
    assert parse(text, metric) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "fast", "nan", "inf", "5 apples", "1.2ms"])
def test_a_threshold_that_is_not_a_value_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--threshold: .* is not a value of total_bps"):
        parse(text, "total_bps")


@given(st.text())
def test_no_threshold_breaks_the_parser(text: str) -> None:
    for metric in ("p99.a", "share_error", "total_bps"):
        try:
            assert math.isfinite(parse(text, metric))
        except UserError:
            continue


def test_the_worst_is_the_metrics_own() -> None:
    assert worst("p99.a", [1.0, 3.0, 2.0]) == 1
    assert worst("total_bps", [2.0, 1.0, 3.0]) == 1
    assert worst("share.a", [0.5]) == 0
    with pytest.raises(UserError, match="no better direction, and the study has 2 points"):
        worst("share.a", [0.5, 0.6])

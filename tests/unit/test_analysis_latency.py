# SPDX-License-Identifier: GPL-2.0-only
"""Percentiles are those of the requests, never too low."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoblk.metrics.latency import ALL, by_tenant, cdf, percentile, stats
from isoblk.result.store import LATENCY_SCHEMA

COUNTS = st.dictionaries(st.integers(1, 10**10), st.integers(1, 500), min_size=1, max_size=60)


@settings(deadline=None)
@given(COUNTS, st.sampled_from([1, 5000, 9900, 9990, 9999, 10000]))
def test_percentile_is_that_of_the_sorted_list(counts: dict[int, int], per_10000: int) -> None:
    buckets = sorted(counts.items())
    every = [upper for upper, count in buckets for _ in range(count)]
    at_least = Fraction(per_10000, 10000) * len(every)
    expected = next(x for i, x in enumerate(every, 1) if i >= at_least)
    assert percentile(buckets, per_10000) == expected


@settings(deadline=None)
@given(COUNTS)
def test_cdf_rises_to_one_and_is_exact_where_it_has_points(counts: dict[int, int]) -> None:
    buckets = sorted(counts.items())
    total = sum(counts.values())
    points = cdf(buckets)
    assert points[-1] == (buckets[-1][0], 1.0)
    assert [at for at, _ in points] == sorted({at for at, _ in points})
    for at, fraction in points:
        assert fraction == sum(c for u, c in buckets if u <= at) / total


def test_cdf_is_thinned() -> None:
    assert len(cdf([(i, 1) for i in range(1, 50_001)], points=100)) < 250


def test_all_ops_are_merged_without_flushes() -> None:
    rows = [
        ("a", "read", 10, 3),
        ("a", "write", 10, 1),
        ("a", "write", 30, 2),
        ("a", "flush", 99, 5),
    ]
    found = by_tenant(pl.DataFrame(rows, schema=LATENCY_SCHEMA, orient="row"))
    assert found["a"][ALL] == [(10, 4), (30, 2)]
    assert found["a"]["flush"] == [(99, 5)]


def test_nothing_counted_has_no_statistics() -> None:
    assert stats([], 0) is None
    with pytest.raises(ValueError, match="no latency"):
        percentile([], 5000)

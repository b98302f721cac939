# SPDX-License-Identifier: GPL-2.0-only
"""Percentiles from the generator's log-linear buckets.

A percentile is the upper bound of its bucket: never too low, and at most 1.6 % too high. Means are
exact, from the generator's sums.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

DATA_OPS = ("read", "write", "trim")  # "all" covers these; a flush has no data
ALL = "all"

Buckets = Sequence[tuple[int, int]]
"""(upper bound in ns, count), ascending."""

PERCENTILES = {"p50": 5000, "p99": 9900, "p99_9": 9990, "p99_99": 9999}
"""Metric to its rank in ten-thousandths."""


@dataclass(frozen=True)
class LatencyStats:
    """Of a tenant and op. All in ns; percentiles are upper bounds of buckets."""

    count: int
    mean: float
    p50: int
    p99: int
    p99_9: int
    p99_99: int


def percentile(buckets: Buckets, per_10000: int) -> int:
    """Return the upper bound of the bucket of the ceil(n * q)-th smallest latency (nearest rank),
    in ns.

    Raises:
        ValueError: the buckets are empty.
    """
    total = sum(count for _, count in buckets)
    rank = -(-total * per_10000 // 10000)
    seen = 0
    for upper, count in buckets:
        seen += count
        if seen >= rank and count:
            return upper
    raise ValueError("no latency was counted")


def stats(buckets: Buckets, sum_ns: int) -> LatencyStats | None:
    """Return the percentiles of `buckets`, and the mean from the exact sum; None if empty."""
    count = sum(n for _, n in buckets)
    if not count:
        return None
    return LatencyStats(
        count, sum_ns / count, *(percentile(buckets, rank) for rank in PERCENTILES.values())
    )


def merge(many: Iterable[Buckets]) -> list[tuple[int, int]]:
    """Merge several distributions."""
    counts: dict[int, int] = {}
    for buckets in many:
        for upper, count in buckets:
            counts[upper] = counts.get(upper, 0) + count
    return sorted(counts.items())


def by_tenant(table: "pl.DataFrame") -> dict[str, dict[str, list[tuple[int, int]]]]:
    """Return a run's latency table as tenant to op to buckets; "all" merges the ops with data."""
    result: dict[str, dict[str, list[tuple[int, int]]]] = {}
    columns = (table[name].to_list() for name in ("tenant", "op", "upper_ns", "count"))
    for tenant, op, upper, count in zip(*columns, strict=True):
        result.setdefault(tenant, {}).setdefault(op, []).append((upper, count))
    for ops in result.values():
        for buckets in ops.values():
            buckets.sort()
        data = [ops[op] for op in DATA_OPS if op in ops]
        ops[ALL] = data[0] if len(data) == 1 else merge(data)
    return result


def cdf(buckets: Buckets, points: int = 120) -> list[tuple[int, float]]:
    """Return (latency in ns, fraction at or below it), about `points` of them, denser towards the
    tail: where the rest 1 - F has shrunk by a constant factor, or F has grown by a constant step.
    Ends with fraction 1."""
    total = sum(count for _, count in buckets)
    result: list[tuple[int, float]] = []
    step = 2 / points
    shrink = 0.9
    seen = 0
    last = -1.0
    for upper, count in buckets:
        seen += count
        fraction = seen / total
        if seen == total or fraction - last >= step or 1 - fraction <= (1 - last) * shrink:
            result.append((upper, fraction))
            last = fraction
    return result

# SPDX-License-Identifier: GPL-2.0-only
"""Latencies of a tenant's requests, from their intended start."""

from collections.abc import Callable

from isoblk.metrics.base import PER_TENANT, Metric
from isoblk.metrics.facts import RunMetrics, TenantMetrics
from isoblk.metrics.latency import ALL


def _of(field: str) -> Callable[[RunMetrics, TenantMetrics], float | None]:
    """Return a function for a field of a tenant's latencies, all ops together."""

    def value(run: RunMetrics, tenant: TenantMetrics) -> float | None:
        if ALL not in tenant.latency:
            return None
        nanoseconds: float = getattr(tenant.latency[ALL], field)
        return nanoseconds

    return value


def _p99_excess(run: RunMetrics, tenant: TenantMetrics) -> float | None:
    alone, longest_other_ns = tenant.alone, tenant.longest_other_ns
    if ALL not in tenant.latency or alone is None or alone.p99 is None or longest_other_ns is None:
        return None
    return tenant.latency[ALL].p99 / max(2 * alone.p99, alone.p99 + longest_other_ns)


METRICS = (
    Metric(
        f"mean_latency{PER_TENANT}",
        "mean latency of all operations",
        "ns",
        "down",
        of_tenant=_of("mean"),
        compared=True,
    ),
    Metric(
        f"p50{PER_TENANT}",
        "median latency of all operations",
        "ns",
        "down",
        of_tenant=_of("p50"),
        compared=True,
    ),
    Metric(
        f"p99{PER_TENANT}",
        "99th percentile of latency",
        "ns",
        "down",
        of_tenant=_of("p99"),
        compared=True,
    ),
    Metric(
        f"p99_9{PER_TENANT}",
        "99.9th percentile of latency",
        "ns",
        "down",
        of_tenant=_of("p99_9"),
        compared=True,
    ),
    Metric(
        f"p99_99{PER_TENANT}",
        "99.99th percentile of latency",
        "ns",
        "down",
        of_tenant=_of("p99_99"),
    ),
    Metric(
        f"p99_excess{PER_TENANT}",
        "p99 / max(2 p99 alone, p99 alone + device time of another tenant's request)",
        "times",
        "down",
        of_tenant=_p99_excess,
    ),
)

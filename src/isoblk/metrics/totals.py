# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of the amount of I/O of a run and of a tenant."""

from isoblk.metrics.base import PER_TENANT, Metric
from isoblk.metrics.facts import RunMetrics, Total


def _total_vs_none(run: RunMetrics) -> float | None:
    return vs(run, run.none)


def _total_vs_best(run: RunMetrics) -> float | None:
    return vs(run, run.none, run.kyber)


def vs(run: RunMetrics, *others: Total | None) -> float | None:
    """Return the run's bytes over those of the best of the others; None if one of them is
    missing."""
    totals = [other.bytes for other in others if other is not None]
    if len(totals) < len(others) or not max(totals):
        return None
    return run.total.bytes / max(totals)


METRICS = (
    Metric(
        "total_iops",
        "requests a second, all tenants",
        "requests/s",
        "up",
        of_run=lambda run: run.total_iops,
        compared=True,
    ),
    Metric(
        "total_bps",
        "bytes a second, all tenants",
        "B/s",
        "up",
        of_run=lambda run: run.total_bps,
        compared=True,
    ),
    Metric(
        "total_vs_none",
        "total_bps / that of `none` at the same point",
        "ratio",
        "up",
        of_run=_total_vs_none,
        compared=True,
    ),
    Metric(
        "total_vs_best",
        "total_bps / the larger of those of `none` and `kyber` at the same point",
        "ratio",
        "up",
        of_run=_total_vs_best,
        compared=True,
    ),
    Metric(
        f"iops{PER_TENANT}",
        "requests / measured time, which ends with the tenant's work",
        "requests/s",
        "up",
        of_tenant=lambda run, tenant: tenant.own_iops,
    ),
    Metric(
        f"bps{PER_TENANT}",
        "bytes / measured time",
        "B/s",
        "up",
        of_tenant=lambda run, tenant: tenant.own_bps,
    ),
    Metric(
        f"slowdown{PER_TENANT}",
        "rate alone on the device / rate in this run",
        "times",
        "down",
        of_tenant=lambda run, tenant: tenant.slowdown,
    ),
)

# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of the shares over time."""

import math
from collections.abc import Sequence

from isoblk.metrics.base import PER_TENANT, Metric
from isoblk.metrics.facts import RunMetrics, TenantMetrics


def burst_ms(moved: Sequence[int], ideal: Sequence[float], width_ms: float) -> float:
    """Return the largest lead of a tenant over its ideal in consecutive windows, in ms at its ideal
    rate: the largest sum of width (moved / ideal - 1); 0 without a lead.

    A window without an ideal, because the tenant wants no I/O, ends a sequence.
    """
    most = ahead = 0.0
    for got, fair in zip(moved, ideal, strict=True):
        ahead = max(0.0, ahead + width_ms * (got / fair - 1)) if fair > 0 else 0.0
        most = max(most, ahead)
    return most


def _burst_ms(run: RunMetrics, tenant: TenantMetrics) -> float | None:
    if not run.windows.count:
        return None
    name = tenant.name
    return burst_ms(run.windows.moved[name], run.window_by_weight[name], run.windows.width_ns / 1e6)


def _errors(run: RunMetrics) -> list[float]:
    return sorted(error for error in run.window_errors if error is not None)


def _p95(run: RunMetrics) -> float | None:
    errors = _errors(run)
    return errors[math.ceil(0.95 * len(errors)) - 1] if errors else None


def _converged_ms(run: RunMetrics) -> float | None:
    """Return infinity if the shares did not follow a change; None without changes."""
    return max(
        (
            math.inf if change.converged_ms is None else change.converged_ms
            for change in run.changes
        ),
        default=None,
    )


METRICS = (
    Metric(
        "share_error_100ms",
        "95th percentile of the share error over windows of 100 ms",
        "ratio",
        "down",
        of_run=_p95,
        compared=True,
        deviation=True,
    ),
    Metric(
        "share_error_100ms_max",
        "the largest share error of a window of 100 ms",
        "ratio",
        "down",
        of_run=lambda run: max(_errors(run), default=None),
        compared=True,
        deviation=True,
    ),
    # Not compared, because it may be infinite.
    Metric(
        "converged_ms",
        "longest time until shares follow a change of demand or weight; infinite if they do not",
        "ms",
        "down",
        of_run=_converged_ms,
    ),
    Metric(
        f"burst_ms{PER_TENANT}",
        "the most beyond its share by weight in any stretch of 100 ms windows, in ms of that share",
        "ms",
        "down",
        of_tenant=_burst_ms,
    ),
)

# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of a run's division among its tenants."""

import math
from collections.abc import Sequence
from statistics import median

from isoblk.metrics import maxmin, stats
from isoblk.metrics.base import PER_TENANT, Metric
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.totals import vs

RATIO = "weight_ratio_error"
"""The metric that a claim may restrict to some of the tenants."""


def ratio_error(metrics: RunMetrics, among: Sequence[str]) -> float:
    """Return the maximum over some tenants of |share / plain weight share - 1|, both relative to
    the total of these tenants.

    Infinite if they got nothing. Raises KeyError for an unknown tenant.
    """
    tenants = [metrics.by_name[name] for name in among]
    got = sum(tenant.share for tenant in tenants)
    weights = sum(tenant.weight for tenant in tenants)
    if not got:
        return math.inf
    return max(abs(tenant.share / got * weights / tenant.weight - 1) for tenant in tenants)


def _weight_ratio_error(run: RunMetrics) -> float | None:
    return max((abs(t.share / t.weight_share - 1) for t in run.wanting), default=None)


def _share_error(run: RunMetrics) -> float | None:
    errors = [t.share_error for t in run.tenants if t.share_error is not None]
    return max(errors, default=None)


def parts_of_service(run: RunMetrics) -> dict[str, float]:
    """Return by tenant its device time relative to its ideal; empty if demand or weights change, or
    the runs for it are missing."""
    known = min(len(run.whole), len(run.caps))
    if len(run.phases) != 1 or known < len(run.tenants):
        return {}
    got = {tenant.name: tenant.bps / run.whole[tenant.name] for tenant in run.tenants}
    total = sum(got.values())
    if not total:
        return {}
    (phase,) = run.phases
    root = maxmin.tree(run.spec.tenants, run.spec.groups, phase.active, phase.weights)
    limits = {name: cap / run.whole[name] for name, cap in run.caps.items()}
    due = maxmin.shares(root, total, limits)
    return {name: got[name] / total / part for name, part in due.items() if part > 0}


def _service_error(run: RunMetrics) -> float | None:
    return max((abs(part - 1) for part in parts_of_service(run).values()), default=None)


def _jain(run: RunMetrics) -> float | None:
    return stats.jain([t.share / t.weight_share for t in run.wanting])


def _jain_in_group(run: RunMetrics) -> float | None:
    return min((stats.jain(group) or 0.0 for group in _in_groups(run, 2)), default=None)


def _least_in_group(run: RunMetrics) -> float | None:
    return min(
        (min(group) / median(group) for group in _in_groups(run, 3) if median(group)),
        default=None,
    )


def _in_groups(run: RunMetrics, least: int) -> list[list[float]]:
    """Return the shares relative to those by weight, for each cgroup with at least `least`
    tenants."""
    groups: dict[str, list[float]] = {}
    for one in run.wanting:
        groups.setdefault(one.cgroup, []).append(one.share / one.weight_share)
    return [group for group in groups.values() if len(group) >= least]


def _lost(run: RunMetrics) -> float | None:
    reached = vs(run, run.none)
    if reached is None or run.none is None or run.bound is None:
        return None if reached is None else 1 - reached
    most = min(run.bound.bps, run.none.rate)
    return 1 - run.total.rate / most if most else None


METRICS = (
    Metric(
        f"share{PER_TENANT}",
        "bytes / all tenants' bytes, in the measured time",
        "ratio",
        "neither",
        of_tenant=lambda run, tenant: tenant.share,
        compared=True,
    ),
    Metric(
        "share_error",
        "max over tenants of |share / ideal - 1|; the ideal is the weighted max-min fair share, "
        "capped at the rate alone",
        "ratio",
        "down",
        of_run=_share_error,
        compared=True,
        deviation=True,
    ),
    Metric(
        "service_error",
        "share_error of service, rate / rate of its kind of requests alone with iodepth 128, "
        "instead of bytes",
        "ratio",
        "down",
        of_run=_service_error,
        needs="full",
        compared=True,
        deviation=True,
    ),
    Metric(
        RATIO,
        "max over tenants of |share / share by weight - 1|",
        "ratio",
        "down",
        of_run=_weight_ratio_error,
        compared=True,
        deviation=True,
    ),
    Metric(
        "lost",
        "1 - total_bps / the most that exact shares allow: that of `none` at the same point, or "
        "less if tenants have too few requests",
        "ratio",
        "down",
        of_run=_lost,
        needs="bound",
        compared=True,
        deviation=True,
    ),
    Metric(
        "jain",
        "Jain's index (sum y)^2 / (n sum y^2) over y = bytes / share by weight; 1 is fair",
        "index",
        "up",
        of_run=_jain,
        compared=True,
    ),
    Metric(
        "jain_in_group",
        "the least Jain's index of a cgroup with several tenants",
        "index",
        "up",
        of_run=_jain_in_group,
        compared=True,
    ),
    Metric(
        "least_in_group",
        "min over cgroups of three tenants or more of the least rate / the median",
        "index",
        "up",
        of_run=_least_in_group,
        compared=True,
    ),
)

# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of isolation: behaviour that no fairness definition permits, so that a large value is a
defect of the scheduler."""

import math

from isoblk.metrics.base import PER_TENANT, Metric
from isoblk.metrics.facts import RunMetrics, TenantMetrics
from isoblk.metrics.latency import ALL
from isoblk.metrics.shares import parts_of_service
from isoblk.run.spec import Workload

# Fraction of its ideal service up to which a tenant's demand counts as light.
_LITTLE = 0.5

# Number of requests below which a denied service cannot be told from chance.
_FEW = 8

# Shortest pause that counts: a disk that collects garbage causes shorter ones.
_SHORTEST_PAUSE_NS = 100_000_000
# Multiple of the wait for a turn, by the tenant's weight, from which a pause counts.
_TURNS = 10


def _denied(run: RunMetrics) -> float | None:
    served = parts_of_service(run)
    if not served:
        return None
    least = 1.0
    seconds = run.spec.runtime_ns / 1e9
    for tenant in run.tenants:
        due = tenant.ideal * run.total_bps * seconds / _load(run, tenant).bs
        if tenant.name in served and tenant.ideal > 0 and due >= _FEW:
            least = min(least, max(tenant.share / tenant.ideal, served[tenant.name]))
    return 1 - least


def _load(run: RunMetrics, tenant: TenantMetrics) -> Workload:
    return next(one.workload for one in run.spec.tenants if one.name == tenant.name)


def _light(run: RunMetrics, tenant: TenantMetrics) -> bool:
    """Return whether the tenant can use only a small part of its ideal, in device time and in
    bytes."""
    if tenant.name not in run.whole or tenant.alone is None or run.none is None:
        return False
    little = _LITTLE * tenant.weight_share
    most = max(run.total_bps, run.none.rate)
    return tenant.alone.bps <= little * min(run.whole[tenant.name], most)


def _late(run: RunMetrics, tenant: TenantMetrics) -> float | None:
    alone, longest_other_ns, none = tenant.alone, tenant.longest_other_ns, tenant.none
    if not _light(run, tenant) or alone is None or alone.p99 is None or longest_other_ns is None:
        return None
    if none is None or none.p99 is None or ALL not in tenant.latency:
        return None
    allowed = max(2 * alone.p99, alone.p99 + longest_other_ns, none.p99)
    return tenant.latency[ALL].p99 / allowed


def _starved(run: RunMetrics, tenant: TenantMetrics) -> float | None:
    alone, gap_ns = tenant.alone, tenant.longest_gap_ns
    if gap_ns is None or not tenant.weight_share or alone is None or not alone.request_ns:
        return None
    load = _load(run, tenant)
    turn_ns = max(alone.request_ns, tenant.longest_other_ns or 0.0) / tenant.weight_share
    if run.total_bps:
        # In bytes: the amount that is sent until its turn.
        turn_ns = max(turn_ns, load.bs * 1e9 / run.total_bps / tenant.weight_share)
    own_ns = load.thinktime_ns + (1e9 / load.rate_iops if load.rate_iops else 0.0)
    none_ns = (tenant.none.longest_gap_ns if tenant.none else None) or 0
    return gap_ns / max(_SHORTEST_PAUSE_NS, _TURNS * turn_ns, _TURNS * own_ns, none_ns)


def _all_slower(run: RunMetrics) -> float | None:
    factors = []
    for tenant in run.tenants:
        if tenant.none is None or not tenant.none.bps:
            return None
        factors.append(tenant.none.bps / tenant.own_bps if tenant.own_bps else math.inf)
    return min(factors, default=None)


METRICS = (
    Metric(
        "denied",
        "max over tenants of 1 - received / due, by bytes or by device time, whichever is less; "
        "due is the weighted max-min fair share of the total, if eight requests or more",
        "ratio",
        "down",
        of_run=_denied,
        needs="full",
        deviation=True,
    ),
    Metric(
        f"late{PER_TENANT}",
        "of a tenant that can use at most half of its due, by bytes and by device time: p99 / "
        "max(2 p99 alone, p99 alone + device time of another tenant's request, p99 under `none`)",
        "times",
        "down",
        of_tenant=_late,
        needs="full",
    ),
    Metric(
        f"starved{PER_TENANT}",
        "the longest time without a completed request while it had work / max(100 ms, ten turns "
        "by weight, ten of its own pauses, that time under `none`)",
        "times",
        "down",
        of_tenant=_starved,
    ),
    Metric(
        "all_slower",
        "min over tenants of rate under `none` / rate; above 1 all tenants lose",
        "times",
        "down",
        of_run=_all_slower,
    ),
)

# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a run from which metrics are computed. isoblk.analysis prepares them, and explains
shares, ideals and windows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from isoblk.metrics.latency import ALL, Buckets, LatencyStats
from isoblk.run.record import ProgramReport, ReplayTotals
from isoblk.run.spec import RunSpec

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Phase:
    """A part of the measured time without a change; ns after the barrier."""

    start: int
    end: int
    active: frozenset[str]
    weights: Mapping[str, float]


@dataclass(frozen=True)
class Windows:
    """Bytes in the windows that are wholly inside the measured time.

    start_ns: of the first window, after the barrier. width_ns: of each. moved: tenant to bytes by
    window, for every tenant of the run.
    """

    start_ns: int
    width_ns: int
    count: int
    moved: Mapping[str, Sequence[int]]

    def totals(self) -> list[int]:
        """Return the bytes of all tenants by window."""
        return [sum(column) for column in zip(*self.moved.values(), strict=True)]


@dataclass(frozen=True)
class Change:
    """A change of the ideal, and the time that the shares took to follow.

    converged_ms: from the change to the start of the first whole window from which on the share
    error is below 5 % for 3 windows; None: not before the next change or the end.
    """

    at_ms: float
    what: str
    converged_ms: float | None


@dataclass(frozen=True)
class Alone:
    """A load alone. bps: bytes per second. p99: of its latency, ns. request_ns: the device's time
    for one of its requests: between two completions, or the latency if that is shorter, because the
    device may be idle between. Both are None if the load has no latency (a program's)."""

    bps: float
    p99: int | None
    request_ns: float | None


@dataclass(frozen=True)
class Undivided:
    """A tenant without a scheduler, at the same study point. bps: bytes per second, over its
    measured time. p99: of its latency, ns; None without one. longest_gap_ns: as of
    TenantMetrics."""

    bps: float
    p99: int | None
    longest_gap_ns: int | None


@dataclass(frozen=True)
class Total:
    """Total of all tenants of a run in the measured time. rate: the sum of their rates in bytes per
    second, each over its own measured time."""

    bytes: int
    rate: float


@dataclass(frozen=True)
class TenantMetrics:
    """A tenant in a run.

    share, ideal, weight_share: fractions of the run's bytes: measured; max-min fair; by weight
    alone among active tenants.
    bps, iops: over the run's measured time; own_bps, own_iops: over the tenant's measured time.
    alone: its load alone on the device, if that was run.
    longest_other_ns: the longest request_ns of another tenant alone; None unless all are known.
    longest_gap_ns: the longest active time without a completion, in whole windows of the run's
    series; None without a series.
    none: under `none`, if that was run. latency: by op, and "all". replay: of a tenant with a
    trace.
    says: of a tenant with a program, which has no latency.
    """

    name: str
    cgroup: str
    weight: int
    share: float
    ideal: float
    weight_share: float
    iops: float
    bps: float
    own_iops: float
    own_bps: float
    alone: Alone | None
    longest_other_ns: float | None
    longest_gap_ns: int | None
    none: Undivided | None
    latency: Mapping[str, LatencyStats]
    replay: ReplayTotals | None
    says: ProgramReport | None

    @property
    def share_error(self) -> float | None:
        """Return |share / ideal - 1|; None without an ideal, because the tenant wanted no I/O."""
        return abs(self.share / self.ideal - 1) if self.ideal > 0 else None

    @property
    def slowdown(self) -> float | None:
        """Return its rate alone over its rate here, each over its measured time; None if it never
        ran alone or got nothing."""
        if self.alone is None or not self.alone.bps or not self.own_bps:
            return None
        return self.alone.bps / self.own_bps


@dataclass(frozen=True)
class Suspicion:
    """Why figures of a tenant are misleading.

    about: its latencies, all shares of the run, or every figure. off: the change of the tenant's
    share, relative to its ideal. served: the served fraction of its requests, if that is the
    reason.
    """

    about: Literal["latency", "shares", "all"]
    tenant: str
    text: str
    off: float = math.inf
    served: float | None = None


@dataclass(frozen=True)
class RunMetrics:
    """The figures of a run.

    total: of this run. none, kyber: of the valid run under that scheduler at the same point, or
    None.
    bound: its load alone with as many requests as exact shares allow, if that was run. total_iops
    counts reads, writes and trims.
    caps: the highest rate that a tenant has shown that it can use, bytes per second. capped:
    whether the runs for the caps exist.
    whole: the rate of a tenant's kind of requests alone without end, if these were run.
    phases: parts without a change.
    windows, window_errors, window_ideal, window_by_weight: the shares over time, by 100 ms.
    changes: of demand and weights, with the time that the shares took to follow.
    predictions: feedbac's, PREDICTIONS_SCHEMA of isoblk.result.store; None under others.
    cache: figures of the cache, by their names in claims after "cache."; empty without one.
    suspicions: isoblk.analysis.suspect.
    """

    spec: RunSpec
    total: Total
    none: Total | None
    kyber: Total | None
    bound: Alone | None
    total_iops: float
    total_bps: float
    capped: bool
    caps: Mapping[str, float]
    whole: Mapping[str, float]
    tenants: tuple[TenantMetrics, ...]
    phases: Sequence[Phase]
    windows: Windows
    window_errors: Sequence[float | None]
    window_ideal: Mapping[str, Sequence[float]]
    window_by_weight: Mapping[str, Sequence[float]]
    changes: tuple[Change, ...]
    predictions: "pl.DataFrame | None" = field(repr=False)
    cache: Mapping[str, float]
    suspicions: tuple[Suspicion, ...]
    buckets: Mapping[str, Mapping[str, Buckets]] = field(repr=False)

    @cached_property
    def by_name(self) -> dict[str, TenantMetrics]:
        """Return the tenants by name."""
        return {tenant.name: tenant for tenant in self.tenants}

    @property
    def wanting(self) -> list[TenantMetrics]:
        """Return the tenants that wanted I/O."""
        return [tenant for tenant in self.tenants if tenant.weight_share > 0]

    def p99_worst(self) -> int | None:
        """Return the largest p99 of all tenants, all ops, in ns."""
        return max((t.latency[ALL].p99 for t in self.tenants if ALL in t.latency), default=None)

# SPDX-License-Identifier: GPL-2.0-only
"""A result set's numbers.

A share is a tenant's bytes in the measured time over everyone's. The *ideal* share is the
weighted max-min fair one (isoblk.analysis.maxmin): the run's own measured total is divided by
weight, nobody getting more than it reaches alone on the device. The run's own total, so that a
scheduler is judged here by how it divides what it moves; what it loses is total_vs_none.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

import polars as pl

from isoblk.analysis import latency, maxmin, prediction, stats, timeline
from isoblk.analysis.alone import Alone, AloneRuns
from isoblk.analysis.latency import ALL, DATA_OPS, LatencyStats
from isoblk.analysis.load import load
from isoblk.analysis.stats import Estimate
from isoblk.analysis.timeline import Change, Windows
from isoblk.result.store import ResultSet, Run
from isoblk.run.metrics import CACHE, CACHE_FIGURES, SAYS, split_says
from isoblk.run.record import ProgramReport, ReplayTotals, RunRecord, TenantResult
from isoblk.run.spec import SCHEDULER, PlannedRun, RunSpec
from isoblk.study.point import scheduler_of

Point = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TenantMetrics:
    """One tenant in one run.

    share, ideal, weight_share: fractions of the run's bytes: measured; max-min fair; by weight
    alone among those active. share_error: |share / ideal - 1|, None without an ideal (the
    tenant wanted nothing). bps, iops: over the run's measured time; own_bps,
    own_iops: over the time that the tenant was measured. slowdown: its rate alone
    over its rate here, each over the time it was measured; None if it never ran alone or got
    nothing. p99_excess: its p99 over the larger of twice its p99 alone and that plus the longest
    request_ns of another tenant alone; None without these. burst_ms: timeline.burst_ms()
    against its share by weight; None without windows. latency: by op, and "all". replay: of a
    tenant with a trace. says: of one that runs a program, which has no latency.
    """

    name: str
    weight: int
    share: float
    ideal: float
    weight_share: float
    share_error: float | None
    burst_ms: float | None
    iops: float
    bps: float
    own_iops: float
    own_bps: float
    slowdown: float | None
    p99_excess: float | None
    latency: Mapping[str, LatencyStats]
    replay: ReplayTotals | None
    says: ProgramReport | None


@dataclass(frozen=True)
class RunMetrics:
    """One run.

    total_iops counts reads, writes and trims. total_vs_none: bytes a second over those of the
    same point under `none`; None without that run. total_vs_best: over the larger of those
    under `none` and under `kyber`; None unless both are there. share_error: the largest of the
    tenants'. service_error: the same of service, a rate over that of such requests alone and
    without end; None without these runs, or where demand or weights change. weight_ratio_error:
    share_error against weight_share. lost: what is missing to the most that exact shares allow,
    as a fraction of it; None without `none`. jain: Jain's index of share /
    weight_share; jain_in_group: the least of those of each cgroup with several tenants, None
    without one; least_in_group: the least of the least / the median of it, in cgroups of three
    or more. capped: whether the runs that the caps come from were there. windows,
    window_errors, window_ideal: the shares over time, by 100 ms; share_error_100ms: the 95th
    percentile of window_errors, share_error_100ms_max the largest; None if no window has one.
    changes: those in demand and weights, with the time the shares took to follow. converged_ms:
    the longest of these, infinite if they did not follow one; None without changes. predictions:
    feedbac's, PREDICTIONS_SCHEMA of isoblk.result.store; prediction_error,
    prediction_error_mean and prediction_settled_ms: those of isoblk.analysis.prediction; None
    under others. cache: figures of the cache, by the names that claims have for them after
    "cache."; empty without one.
    """

    total_iops: float
    total_bps: float
    total_vs_none: float | None
    total_vs_best: float | None
    share_error: float | None
    service_error: float | None
    weight_ratio_error: float | None
    lost: float | None
    jain: float | None
    jain_in_group: float | None
    least_in_group: float | None
    share_error_100ms: float | None
    share_error_100ms_max: float | None
    converged_ms: float | None
    prediction_error: float | None
    prediction_error_mean: float | None
    prediction_settled_ms: float | None
    capped: bool
    tenants: tuple[TenantMetrics, ...]
    windows: Windows
    window_errors: Sequence[float | None]
    window_ideal: Mapping[str, Sequence[float]]
    changes: tuple[Change, ...]
    predictions: pl.DataFrame | None = field(repr=False)
    cache: Mapping[str, float]
    buckets: Mapping[str, Mapping[str, latency.Buckets]] = field(repr=False)

    @cached_property
    def by_name(self) -> dict[str, TenantMetrics]:
        """The tenants, by name."""
        return {tenant.name: tenant for tenant in self.tenants}

    def p99_worst(self) -> int | None:
        """The largest p99 of all tenants, all ops, in ns."""
        return max((t.latency[ALL].p99 for t in self.tenants if ALL in t.latency), default=None)


@dataclass(frozen=True)
class RunView:
    """One of the study's runs. metrics: None unless it has finished; those of an invalid run
    are there to be looked at, not to be averaged."""

    index: int
    planned: PlannedRun
    run: Run | None
    failure: str
    metrics: RunMetrics | None

    @property
    def spec(self) -> RunSpec:
        """What was to be run."""
        return self.planned.spec

    @property
    def status(self) -> str:
        """valid, invalid, failed or missing."""
        if self.run is not None:
            return self.run.record.status
        return "failed" if self.failure else "missing"


@dataclass(frozen=True)
class PointView:
    """The repeats of one study point (or of one reference or alone run)."""

    kind: str
    point: Mapping[str, str]
    runs: tuple[RunView, ...]

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """The point, to find the same one of another result set."""
        return tuple(sorted(self.point.items()))

    @property
    def scheduler(self) -> str:
        """The scheduler's name."""
        return self.runs[0].spec.scheduler.name

    @cached_property
    def valid(self) -> tuple[RunMetrics, ...]:
        """The metrics of the valid repeats."""
        return tuple(v.metrics for v in self.runs if v.metrics is not None and v.status == "valid")

    def values(self, metric: str, among: Sequence[str] = ()) -> list[float]:
        """The metric of every valid repeat that has it; among: the tenants it is about, if not
        all, for weight_ratio_error."""
        if among:
            return [ratio_error(metrics, among) for metrics in self.valid]
        found = (metric_value(metrics, metric) for metrics in self.valid)
        return [value for value in found if value is not None]

    def estimate(self, metric: str) -> Estimate | None:
        """Mean and interval over the valid repeats; None without any."""
        values = self.values(metric)
        return stats.estimate(values) if values else None


@dataclass(frozen=True)
class Analysis:
    """A result set, analysed. points: those of the study's matrix ("share"), in its order.
    others: the runs they lean on. keys: the matrix's keys, in its order."""

    results: ResultSet
    points: tuple[PointView, ...]
    others: tuple[PointView, ...]
    keys: tuple[str, ...]

    @cached_property
    def views(self) -> list[RunView]:
        """Every run of the study's matrix."""
        return [view for point in self.points for view in point.runs]


def ratio_error(metrics: RunMetrics, among: Sequence[str]) -> float:
    """max over some tenants of |share / plain weight share - 1|, both of what these tenants got.

    Infinite if they got nothing. Raises KeyError for an unknown tenant.
    """
    tenants = [metrics.by_name[name] for name in among]
    got = sum(tenant.share for tenant in tenants)
    weights = sum(tenant.weight for tenant in tenants)
    if not got:
        return math.inf
    return max(abs(one.share / got * weights / one.weight - 1) for one in tenants)


def metric_value(metrics: RunMetrics, name: str) -> float | None:
    """A metric as studies name it (isoblk.study.metrics); latencies in ns.

    None: the run does not have it. Raises KeyError for an unknown metric or tenant.
    """
    if name.startswith(SAYS):
        parts = split_says(name, metrics.by_name)
        if parts is None:
            raise KeyError(name)
        said = metrics.by_name[parts[0]].says
        figures = {figure.name: figure.value for figure in said.figures} if said else {}
        return figures.get(parts[1])
    kind, _, tenant_name = name.partition(".")
    if kind == CACHE:
        if tenant_name not in CACHE_FIGURES:
            raise KeyError(name)
        return metrics.cache.get(tenant_name)
    if not tenant_name:
        if kind not in RUN_METRICS:
            raise KeyError(name)
        value: float | None = getattr(metrics, kind)
        return value
    return _of_tenant(metrics.by_name[tenant_name], kind)


def _of_tenant(tenant: TenantMetrics, kind: str) -> float | None:
    """A metric of one tenant."""
    if kind in ("iops", "bps"):
        rate: float = getattr(tenant, f"own_{kind}")
        return rate
    if kind in ("share", "slowdown", "burst_ms", "p99_excess"):
        own: float | None = getattr(tenant, kind)
        return own
    if kind not in LATENCY_METRICS:
        raise KeyError(kind)
    if ALL not in tenant.latency:
        return None
    nanoseconds: float = getattr(tenant.latency[ALL], LATENCY_METRICS[kind])
    return nanoseconds


RUN_METRICS = (
    "total_iops",
    "total_bps",
    "total_vs_none",
    "total_vs_best",
    "share_error",
    "service_error",
    "weight_ratio_error",
    "lost",
    "jain",
    "jain_in_group",
    "least_in_group",
    "share_error_100ms",
    "share_error_100ms_max",
    "converged_ms",
    "prediction_error",
    "prediction_error_mean",
    "prediction_settled_ms",
)
LATENCY_METRICS = {"mean_latency": "mean", **{name: name for name in latency.PERCENTILES}}


def analyse(results: ResultSet) -> Analysis:
    """All numbers of a result set.

    Raises:
        UserError: a run's table is damaged.
    """
    views: list[RunView] = []
    alone_runs = AloneRuns(results.runs)
    under_kyber = {
        _elsewhere(entry.planned): run
        for entry, run in zip(results.record.runs, results.runs, strict=True)
        if entry.planned.spec.kind == "share" and entry.planned.spec.scheduler.name == "kyber"
    }
    for index, (entry, run) in enumerate(zip(results.record.runs, results.runs, strict=True)):
        planned = entry.planned
        metrics = None
        if run is not None and planned.spec.kind != "calibrate":
            kyber = under_kyber.get(_elsewhere(planned))
            metrics = _run_metrics(planned, run, results.runs, alone_runs, kyber)
        views.append(RunView(index, planned, run, entry.failure, metrics))
    grouped: dict[tuple[str, Point, str], list[RunView]] = {}
    for view in views:
        spec = view.spec
        who = spec.tenants[0].name if spec.kind == "alone" and spec.tenants else ""
        grouped.setdefault((spec.kind, tuple(spec.point.items()), who), []).append(view)
    points = [PointView(kind, dict(at), tuple(of)) for (kind, at, _), of in grouped.items()]
    keys = dict.fromkeys(key for p in points if p.kind == "share" for key in p.point)
    return Analysis(
        results,
        tuple(p for p in points if p.kind == "share"),
        tuple(p for p in points if p.kind != "share"),
        tuple(keys),
    )


def _elsewhere(planned: PlannedRun) -> tuple[Point, int]:
    """A run's point and repeat, the scheduler and what is about it aside."""
    point = planned.spec.point.items()
    others = (pair for pair in point if pair[0] != SCHEDULER and not scheduler_of(pair[0]))
    return tuple(sorted(others)), planned.spec.repeat


def _run_metrics(
    planned: PlannedRun,
    run: Run,
    runs: Sequence[Run | None],
    alone_runs: AloneRuns,
    kyber: Run | None,
) -> RunMetrics:
    """kyber: the run under kyber at the same point and repeat."""
    spec = run.record.spec
    tables = load(run)
    seconds = spec.runtime_ns / 1e9
    moved = {tenant.name: _bytes(tenant) for tenant in run.record.tenants}
    total = sum(moved.values())
    names = [tenant.name for tenant in spec.tenants]
    alone = dict(zip(names, alone_runs.of(planned.alone), strict=False))
    full = dict(zip(names, alone_runs.of(planned.full), strict=False))
    longest_other = _longest_other(alone)
    (bound,) = alone_runs.of(() if planned.bound is None else (planned.bound,)) or (None,)
    # Who got more than alone has shown that it can use it.
    rates = {tenant.name: _rate(tenant) for tenant in run.record.tenants}
    caps = {
        name: max(one.bps, rates.get(name, 0.0)) for name, one in alone.items() if one is not None
    }

    last_ms = dict(
        tables.series.filter(tables.series["ios"] > 0)
        .group_by("tenant")
        .max()
        .select("tenant", "t_ms")
        .iter_rows()
    )
    cut = timeline.phases(spec, last_ms)
    at = timeline.windows(spec, tables.series)
    window_ideal = timeline.ideal_bytes(spec, cut, at, caps)
    window_by_weight = timeline.ideal_bytes(spec, cut, at, {})
    ideal, by_weight = (
        _whole_run_shares(spec, cut, at, rate=total / seconds, caps=limits, over_time=over_time)
        for limits, over_time in ((caps, window_ideal), ({}, window_by_weight))
    )
    window_errors = timeline.share_errors(at, window_ideal)
    changes = tuple(timeline.changes(spec, last_ms, at, window_errors))

    buckets = latency.by_tenant(tables.latency)
    tenants = tuple(
        _tenant_metrics(
            tenant,
            seconds=seconds,
            total=total,
            ideal=ideal,
            by_weight=by_weight,
            alone=alone.get(tenant.name),
            longest_other_ns=longest_other.get(tenant.name),
            burst_ms=(
                timeline.burst_ms(
                    at.moved[tenant.name], window_by_weight[tenant.name], at.width_ns / 1e6
                )
                if at.count
                else None
            ),
            buckets=buckets,
        )
        for tenant in run.record.tenants
    )
    none = run if spec.scheduler.name == "none" else None
    if planned.reference is not None:
        none = runs[planned.reference]
    wanted = [t for t in tenants if t.weight_share > 0]
    errors = [t.share_error for t in tenants if t.share_error is not None]
    predictions = tables.predictions
    return RunMetrics(
        total_iops=sum(_ios(tenant) for tenant in run.record.tenants) / seconds,
        total_bps=total / seconds,
        total_vs_none=_vs(run, none),
        total_vs_best=_vs(run, none, kyber),
        share_error=max(errors, default=None),
        service_error=_service_error(spec, cut, tenants, caps, full),
        lost=_lost(run, none, bound),
        weight_ratio_error=max((abs(t.share / t.weight_share - 1) for t in wanted), default=None),
        jain=stats.jain([t.share / t.weight_share for t in wanted]),
        jain_in_group=min(
            (stats.jain(group) or 0.0 for group in _in_groups(spec, wanted, 2)), default=None
        ),
        least_in_group=min(
            (min(group) / median(group) for group in _in_groups(spec, wanted, 3) if median(group)),
            default=None,
        ),
        share_error_100ms=_p95([error for error in window_errors if error is not None]),
        share_error_100ms_max=max(
            (error for error in window_errors if error is not None), default=None
        ),
        capped=bool(alone) and len(caps) == len(alone),
        tenants=tenants,
        windows=at,
        window_errors=window_errors,
        window_ideal=window_ideal,
        changes=changes,
        predictions=predictions,
        cache=_cache_figures(run.record),
        prediction_error=(
            None if predictions is None else prediction.worst_error(spec, predictions)
        ),
        prediction_error_mean=(
            None if predictions is None else prediction.mean_error(spec, predictions)
        ),
        prediction_settled_ms=(
            None if predictions is None else prediction.settled_ms(spec, predictions)
        ),
        converged_ms=max(
            (math.inf if c.converged_ms is None else c.converged_ms for c in changes), default=None
        ),
        buckets=buckets,
    )


def _tenant_metrics(
    tenant: TenantResult,
    *,
    seconds: float,
    total: int,
    ideal: Mapping[str, float],
    by_weight: Mapping[str, float],
    alone: Alone | None,
    longest_other_ns: float | None,
    burst_ms: float | None,
    buckets: Mapping[str, Mapping[str, latency.Buckets]],
) -> TenantMetrics:
    share = _bytes(tenant) / total if total else 0.0
    fair = ideal.get(tenant.name, 0.0)
    rate = _rate(tenant)
    found: dict[str, LatencyStats] = {}
    for op, of in buckets.get(tenant.name, {}).items():
        ops = DATA_OPS if op == ALL else (op,)
        sum_ns = sum(tenant.ops[name].lat_sum_ns for name in ops if name in tenant.ops)
        if one := latency.stats(of, sum_ns):
            found[op] = one
    return TenantMetrics(
        name=tenant.name,
        weight=tenant.weight,
        share=share,
        ideal=fair,
        weight_share=by_weight.get(tenant.name, 0.0),
        share_error=abs(share / fair - 1) if fair > 0 else None,
        iops=_ios(tenant) / seconds,
        bps=_bytes(tenant) / seconds,
        own_iops=_ios(tenant) * 1e9 / tenant.measured_ns if tenant.measured_ns else 0.0,
        own_bps=rate,
        slowdown=alone.bps / rate if alone and alone.bps and rate else None,
        p99_excess=_p99_excess(found, alone, longest_other_ns),
        burst_ms=burst_ms,
        latency=found,
        replay=tenant.replay,
        says=tenant.says,
    )


def _whole_run_shares(
    spec: RunSpec,
    cut: Sequence[timeline.Phase],
    at: Windows,
    *,
    rate: float,
    caps: Mapping[str, float],
    over_time: Mapping[str, Sequence[float]],
) -> dict[str, float]:
    """Ideal shares of the whole measured time; over_time: those by window."""
    if len(cut) > 1 and at.count:
        amounts = {name: sum(part) for name, part in over_time.items()}
    else:
        # One phase; or several in less than a window, then each is worth its time.
        amounts = {}
        for phase in cut:
            root = maxmin.tree(spec.tenants, spec.groups, phase.active, phase.weights)
            shares = maxmin.shares(root, rate, caps) if phase.active else {}
            for name, share in shares.items():
                amounts[name] = amounts.get(name, 0.0) + share * (phase.end - phase.start)
    whole = sum(amounts.values())
    return {name: amount / whole for name, amount in amounts.items()} if whole else {}


def _p99_excess(
    found: Mapping[str, LatencyStats], alone: Alone | None, longest_other_ns: float | None
) -> float | None:
    """TenantMetrics.p99_excess."""
    if ALL not in found or alone is None or alone.p99 is None or longest_other_ns is None:
        return None
    return found[ALL].p99 / max(2 * alone.p99, alone.p99 + longest_other_ns)


def _longest_other(alone: Mapping[str, Alone | None]) -> dict[str, float]:
    """By tenant the longest request_ns of any other; empty unless all are known."""
    known = {
        name: one.request_ns
        for name, one in alone.items()
        if one is not None and one.request_ns is not None
    }
    if len(known) < len(alone):
        return {}
    *_, second, first = sorted([0.0, 0.0, *known.values()])
    return {name: second if own == first else first for name, own in known.items()}


def _service_error(
    spec: RunSpec,
    cut: Sequence[timeline.Phase],
    tenants: Sequence[TenantMetrics],
    caps: Mapping[str, float],
    full: Mapping[str, Alone | None],
) -> float | None:
    """RunMetrics.service_error."""
    whole = {name: one.bps for name, one in full.items() if one is not None and one.bps}
    if len(cut) != 1 or len(whole) < len(tenants) or len(caps) < len(tenants):
        return None
    got = {one.name: one.bps / whole[one.name] for one in tenants}
    total = sum(got.values())
    if not total:
        return None
    (phase,) = cut
    root = maxmin.tree(spec.tenants, spec.groups, phase.active, phase.weights)
    limits = {name: cap / whole[name] for name, cap in caps.items()}
    ideal = maxmin.shares(root, total, limits)
    return max(abs(got[name] / total / part - 1) for name, part in ideal.items() if part > 0)


def _lost(run: Run, none: Run | None, bound: Alone | None) -> float | None:
    """RunMetrics.lost."""
    reached = _vs(run, none)
    if reached is None or bound is None or none is None:
        return None if reached is None else 1 - reached
    total = sum(_rate(tenant) for tenant in run.record.tenants)
    most = min(bound.bps, sum(_rate(tenant) for tenant in none.record.tenants))
    return 1 - total / most if most else None


def _in_groups(spec: RunSpec, tenants: Sequence[TenantMetrics], least: int) -> list[list[float]]:
    """What tenants got / their part by weight, by cgroups that hold at least so many."""
    cgroup = {tenant.name: tenant.cgroup for tenant in spec.tenants}
    groups: dict[str, list[float]] = {}
    for one in tenants:
        groups.setdefault(cgroup[one.name], []).append(one.share / one.weight_share)
    return [group for group in groups.values() if len(group) >= least]


def _vs(run: Run, *others: Run | None) -> float | None:
    """The run's bytes over those of the best of the others; None if one of them is of no use."""
    totals = []
    for other in others:
        if other is None or (other is not run and other.record.status != "valid"):
            return None
        totals.append(sum(_bytes(tenant) for tenant in other.record.tenants))
    best = max(totals)
    return sum(_bytes(tenant) for tenant in run.record.tenants) / best if best else None


def _p95(values: Sequence[float]) -> float | None:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1] if values else None


def _cache_figures(record: RunRecord) -> dict[str, float]:
    """What was counted, and what follows from that and from what the tenants did."""
    if record.cache is None:
        return {}
    found = dict(record.cache.figures)
    written = found["ssd.write_bytes"]
    worked_ns = max((tenant.measured_ns for tenant in record.tenants), default=0)
    if worked_ns:
        found["ssd.write_bps"] = written * 1e9 / worked_ns
    for op in ("read", "write"):
        found[f"asked.{op}_bytes"] = sum(
            tenant.ops[op].meas_bytes for tenant in record.tenants if op in tenant.ops
        )
    if asked := found["asked.read_bytes"] + found["asked.write_bytes"]:
        for op in ("read", "write"):
            found[f"ssd.{op}_factor"] = found[f"ssd.{op}_bytes"] / asked
    return found


def _bytes(tenant: TenantResult) -> int:
    return sum(ops.meas_bytes for ops in tenant.ops.values())


def _ios(tenant: TenantResult) -> int:
    return sum(tenant.ops[op].meas_ios for op in DATA_OPS if op in tenant.ops)


def _rate(tenant: TenantResult) -> float:
    return _bytes(tenant) * 1e9 / tenant.measured_ns if tenant.measured_ns else 0.0

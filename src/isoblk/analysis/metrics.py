# SPDX-License-Identifier: GPL-2.0-only
"""Compute the metrics of a result set.

A share is a tenant's bytes in the measured time over those of all tenants. The *ideal* share is the
weighted max-min fair one (isoblk.metrics.maxmin): the run's own measured total is divided by
weight, and no tenant gets more than it reaches alone on the device. Because the total is the run's
own, the share error judges only the division; total_vs_none has the loss.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from isoblk.analysis import timeline
from isoblk.analysis.alone import AloneRuns
from isoblk.analysis.load import load
from isoblk.analysis.suspect import shown, suspicions
from isoblk.analysis.undivided import UndividedRuns
from isoblk.metrics import latency, maxmin, stats
from isoblk.metrics.facts import (
    Alone,
    Phase,
    RunMetrics,
    TenantMetrics,
    Total,
    Undivided,
    Windows,
)
from isoblk.metrics.latency import ALL, DATA_OPS, LatencyStats
from isoblk.metrics.registry import metric_value
from isoblk.metrics.shares import ratio_error
from isoblk.metrics.stats import Estimate
from isoblk.result.store import ResultSet, Run
from isoblk.run.record import RunRecord, TenantResult
from isoblk.run.spec import SCHEDULER, PlannedRun, RunSpec
from isoblk.study.notes import few
from isoblk.study.point import scheduler_of

Point = tuple[tuple[str, str], ...]

_MOST_CHANGES = 2  # changes of scheduler that are named


@dataclass(frozen=True)
class RunView:
    """A run of the study. metrics: None unless it has finished; those of an invalid run are for
    display, not for averages."""

    index: int
    planned: PlannedRun
    run: Run | None
    failure: str
    metrics: RunMetrics | None

    @property
    def spec(self) -> RunSpec:
        """Return the planned run."""
        return self.planned.spec

    @property
    def status(self) -> str:
        """Return valid, invalid, failed or missing."""
        if self.run is not None:
            return self.run.record.status
        return "failed" if self.failure else "missing"

    @property
    def suspicions(self) -> list[str]:
        """Return why figures of a valid run are suspect."""
        if self.metrics is None or self.status != "valid":
            return []
        texts: dict[str, list[str]] = {}
        for one in shown(self.metrics):
            texts.setdefault(one.text, []).append(one.tenant)
        return [f"{few(names)}: {text}" for text, names in texts.items()]

    @property
    def schedulers(self) -> str:
        """Return the scheduler's name, and those that the run changes to: "none then bfq"."""
        later = sorted(self.spec.scheduler_events, key=lambda event: event.at_ns)
        if len(later) > _MOST_CHANGES:
            return f"{self.spec.scheduler.name} with {len(later)} changes"
        names = [self.spec.scheduler.name, *(event.scheduler.name for event in later)]
        return " then ".join(names)


def value_of(metrics: RunMetrics, metric: str, among: Sequence[str] = ()) -> float | None:
    """Return a metric of a run; among: the tenants for weight_ratio_error, if not all."""
    return ratio_error(metrics, among) if among else metric_value(metrics, metric)


@dataclass(frozen=True)
class PointView:
    """The repeats of one study point (or of one reference or lone run)."""

    kind: str
    point: Mapping[str, str]
    runs: tuple[RunView, ...]

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """Return the point as a key, to match it in another result set."""
        return tuple(sorted(self.point.items()))

    @property
    def scheduler(self) -> str:
        """Return the scheduler's name."""
        return self.runs[0].spec.scheduler.name

    @property
    def schedulers(self) -> str:
        """Return the scheduler's name, and those that a run changes to: "none then bfq"."""
        return self.runs[0].schedulers

    @cached_property
    def valid(self) -> tuple[RunMetrics, ...]:
        """Return the metrics of the valid repeats."""
        return tuple(v.metrics for v in self.runs if v.metrics is not None and v.status == "valid")

    def values(self, metric: str, among: Sequence[str] = ()) -> list[float]:
        """Return the metric of every valid repeat that has it; among: as of value_of()."""
        found = (value_of(metrics, metric, among) for metrics in self.valid)
        return [value for value in found if value is not None]

    def estimate(self, metric: str) -> Estimate | None:
        """Return mean and interval over the valid repeats; None without any."""
        values = self.values(metric)
        return stats.estimate(values) if values else None


@dataclass(frozen=True)
class Analysis:
    """An analysed result set. points: those of the study's matrix ("share"), in its order. others:
    the runs that they depend on. keys: the matrix's keys, in its order."""

    results: ResultSet
    points: tuple[PointView, ...]
    others: tuple[PointView, ...]
    keys: tuple[str, ...]

    @cached_property
    def views(self) -> list[RunView]:
        """Return every run of the study's matrix."""
        return [view for point in self.points for view in point.runs]


def analyse(results: ResultSet) -> Analysis:
    """Compute all metrics of a result set.

    Raises:
        UserError: a run's table is damaged.
    """
    views: list[RunView] = []
    alone_runs = AloneRuns(results.runs)
    undivided_runs = UndividedRuns(results.runs)
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
            metrics = _run_metrics(planned, run, results.runs, alone_runs, undivided_runs, kyber)
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
    """Return a run's point and repeat without the scheduler and the keys that concern it."""
    point = planned.spec.point.items()
    others = (pair for pair in point if pair[0] != SCHEDULER and not scheduler_of(pair[0]))
    return tuple(sorted(others)), planned.spec.repeat


def _run_metrics(
    planned: PlannedRun,
    run: Run,
    runs: Sequence[Run | None],
    alone_runs: AloneRuns,
    undivided_runs: UndividedRuns,
    kyber: Run | None,
) -> RunMetrics:
    """Compute a run's metrics. kyber: the run under kyber at the same point and repeat."""
    spec = run.record.spec
    tables = load(run)
    seconds = spec.runtime_ns / 1e9
    total = _total(run)
    names = [tenant.name for tenant in spec.tenants]
    alone = dict(zip(names, alone_runs.of(planned.alone), strict=False))
    full = dict(zip(names, alone_runs.of(planned.full), strict=False))
    longest_other = _longest_other(alone)
    (bound,) = alone_runs.of(() if planned.bound is None else (planned.bound,)) or (None,)
    # A tenant that got more than alone has shown that it can use it.
    rates = {tenant.name: _rate(tenant) for tenant in run.record.tenants}
    caps = {
        name: max(one.bps, rates.get(name, 0.0)) for name, one in alone.items() if one is not None
    }

    last_ms = timeline.last_worked(tables.series)
    undivided = undivided_runs.of(planned.reference)
    gaps = timeline.longest_gaps(spec, last_ms, tables.series)
    cut = timeline.phases(spec, last_ms)
    at = timeline.windows(spec, tables.series)
    window_ideal = timeline.ideal_bytes(spec, cut, at, caps)
    window_by_weight = timeline.ideal_bytes(spec, cut, at, {})
    ideal, by_weight = (
        _whole_run_shares(
            spec, cut, at, rate=total.bytes / seconds, caps=limits, over_time=over_time
        )
        for limits, over_time in ((caps, window_ideal), ({}, window_by_weight))
    )
    window_errors = timeline.share_errors(at, window_ideal)

    buckets = latency.by_tenant(tables.latency)
    cgroups = {tenant.name: tenant.cgroup for tenant in spec.tenants}
    tenants = tuple(
        _tenant_metrics(
            tenant,
            cgroup=cgroups[tenant.name],
            seconds=seconds,
            total=total.bytes,
            ideal=ideal,
            by_weight=by_weight,
            alone=alone.get(tenant.name),
            longest_other_ns=longest_other.get(tenant.name),
            longest_gap_ns=gaps.get(tenant.name),
            none=undivided.get(tenant.name),
            buckets=buckets,
        )
        for tenant in run.record.tenants
    )
    none = run if spec.scheduler.name == "none" and not spec.scheduler_events else None
    if planned.reference is not None:
        none = runs[planned.reference]
    return RunMetrics(
        spec=spec,
        total=total,
        # A run under none is compared with itself, valid or not.
        none=total if none is run else _valid_total(none),
        kyber=total if kyber is run else _valid_total(kyber),
        bound=bound,
        total_iops=sum(_ios(tenant) for tenant in run.record.tenants) / seconds,
        total_bps=total.bytes / seconds,
        capped=bool(alone) and len(caps) == len(alone),
        caps=caps,
        whole={name: one.bps for name, one in full.items() if one is not None and one.bps},
        tenants=tenants,
        phases=cut,
        windows=at,
        window_errors=window_errors,
        window_ideal=window_ideal,
        window_by_weight=window_by_weight,
        changes=tuple(timeline.changes(spec, last_ms, at, window_errors)),
        predictions=tables.predictions,
        cache=_cache_figures(run.record),
        suspicions=suspicions(run.record, tenants, cut, at),
        buckets=buckets,
    )


def _total(run: Run) -> Total:
    tenants = run.record.tenants
    return Total(sum(map(_bytes, tenants)), sum(map(_rate, tenants)))


def _valid_total(run: Run | None) -> Total | None:
    return _total(run) if run is not None and run.record.status == "valid" else None


def _tenant_metrics(
    tenant: TenantResult,
    *,
    cgroup: str,
    seconds: float,
    total: int,
    ideal: Mapping[str, float],
    by_weight: Mapping[str, float],
    alone: Alone | None,
    longest_other_ns: float | None,
    longest_gap_ns: int | None,
    none: Undivided | None,
    buckets: Mapping[str, Mapping[str, latency.Buckets]],
) -> TenantMetrics:
    found: dict[str, LatencyStats] = {}
    for op, of in buckets.get(tenant.name, {}).items():
        ops = DATA_OPS if op == ALL else (op,)
        sum_ns = sum(tenant.ops[name].lat_sum_ns for name in ops if name in tenant.ops)
        if one := latency.stats(of, sum_ns):
            found[op] = one
    return TenantMetrics(
        name=tenant.name,
        cgroup=cgroup,
        weight=tenant.weight,
        share=_bytes(tenant) / total if total else 0.0,
        ideal=ideal.get(tenant.name, 0.0),
        weight_share=by_weight.get(tenant.name, 0.0),
        iops=_ios(tenant) / seconds,
        bps=_bytes(tenant) / seconds,
        own_iops=_ios(tenant) * 1e9 / tenant.measured_ns if tenant.measured_ns else 0.0,
        own_bps=_rate(tenant),
        alone=alone,
        longest_other_ns=longest_other_ns,
        longest_gap_ns=longest_gap_ns,
        none=none,
        latency=found,
        replay=tenant.replay,
        says=tenant.says,
    )


def _whole_run_shares(
    spec: RunSpec,
    cut: Sequence[Phase],
    at: Windows,
    *,
    rate: float,
    caps: Mapping[str, float],
    over_time: Mapping[str, Sequence[float]],
) -> dict[str, float]:
    """Return the ideal shares of the whole measured time; over_time: those by window."""
    if len(cut) > 1 and at.count:
        amounts = {name: sum(part) for name, part in over_time.items()}
    else:
        # One phase, or several in less than a window: weight each by its time.
        amounts = {}
        for phase in cut:
            root = maxmin.tree(spec.tenants, spec.groups, phase.active, phase.weights)
            shares = maxmin.shares(root, rate, caps) if phase.active else {}
            for name, share in shares.items():
                amounts[name] = amounts.get(name, 0.0) + share * (phase.end - phase.start)
    whole = sum(amounts.values())
    return {name: amount / whole for name, amount in amounts.items()} if whole else {}


def _longest_other(alone: Mapping[str, Alone | None]) -> dict[str, float]:
    """Return by tenant the longest request_ns of any other; empty unless all are known."""
    known = {
        name: one.request_ns
        for name, one in alone.items()
        if one is not None and one.request_ns is not None
    }
    if len(known) < len(alone):
        return {}
    *_, second, first = sorted([0.0, 0.0, *known.values()])
    return {name: second if own == first else first for name, own in known.items()}


def _cache_figures(record: RunRecord) -> dict[str, float]:
    """Return a cache's counters, and figures derived from them and from the tenants' I/O."""
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

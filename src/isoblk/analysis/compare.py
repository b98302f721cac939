# SPDX-License-Identifier: GPL-2.0-only
"""Two result sets, point by point."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

import msgspec

from isoblk.analysis.load import load
from isoblk.analysis.metrics import Analysis, PointView
from isoblk.metrics.registry import METRICS, SAYS
from isoblk.metrics.stats import welch_p

FEW_TENANTS = 8  # up to so many are compared one by one
SIGNIFICANT = 0.05
UNCHANGED = 0.00005  # a change that two decimals of a percentage do not show


@dataclass(frozen=True)
class Difference:
    """One metric of one point. change: (b - a) / a, None if a is 0 and b is not. p: of
    Welch's t test, None with single repeats."""

    metric: str
    a: float
    b: float
    change: float | None
    p: float | None

    @property
    def matters(self) -> bool:
        """Whether there is a change to speak of: more than UNCHANGED."""
        return self.change is None or abs(self.change) >= UNCHANGED


@dataclass(frozen=True)
class PointComparison:
    """One matrix point in both sets. identical: the series and latency tables of all repeats
    are the same byte for byte (or hold the same rows); differences is empty then.
    note: why there is nothing to compare, else ""."""

    point: Mapping[str, str]
    identical: bool
    differences: tuple[Difference, ...]
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """points: in both. only_a, only_b: points of one set alone. provenance: what differs:
    (what, in a, in b)."""

    points: tuple[PointComparison, ...]
    only_a: tuple[Mapping[str, str], ...]
    only_b: tuple[Mapping[str, str], ...]
    provenance: tuple[tuple[str, str, str], ...]


def compare(a: Analysis, b: Analysis) -> Comparison:
    """Match the study points of two result sets and compare every metric.

    Raises:
        UserError: a run's table is damaged.
    """
    in_b = {point.key: point for point in b.points}
    in_a = {point.key: point for point in a.points}
    return Comparison(
        tuple(_compare_point(p, in_b[key]) for key, p in in_a.items() if key in in_b),
        tuple(p.point for key, p in in_a.items() if key not in in_b),
        tuple(p.point for key, p in in_b.items() if key not in in_a),
        tuple(_provenance(a, b)),
    )


def metrics_of(point: PointView) -> list[str]:
    """The metrics that two sets are compared in."""
    compared = [metric for metric in METRICS.values() if metric.compared]
    names = [metric.name for metric in compared if metric.of_run]
    tenants = point.runs[0].spec.tenants
    if len(tenants) <= FEW_TENANTS:
        for metric in compared:
            if metric.of_tenant:
                names += [f"{metric.base}.{tenant.name}" for tenant in tenants]
    said = [(t.name, t.says) for metrics in point.valid for t in metrics.tenants if t.says]
    names += [f"{SAYS}{name}.{figure.name}" for name, one in said for figure in one.figures]
    return list(dict.fromkeys(names))


def _compare_point(a: PointView, b: PointView) -> PointComparison:
    for name, point in (("A", a), ("B", b)):
        if not point.valid:
            return PointComparison(a.point, False, (), f"no valid run in {name}")
    if _identical(a, b):
        return PointComparison(a.point, True, ())
    differences = []
    shared = set(metrics_of(b))
    for metric in metrics_of(a):
        if metric not in shared:
            continue
        xs, ys = a.values(metric), b.values(metric)
        if not xs or not ys:
            continue
        x, y = fmean(xs), fmean(ys)
        change = 0.0 if x == y else (y - x) / x if x else None
        differences.append(Difference(metric, x, y, change, welch_p(xs, ys)))
    return PointComparison(a.point, False, tuple(differences))


def _identical(a: PointView, b: PointView) -> bool:
    if len(a.runs) != len(b.runs):
        return False
    for view_a, view_b in zip(a.runs, b.runs, strict=True):
        if view_a.run is None or view_b.run is None or view_a.status != view_b.status:
            return False
        names = ("series.parquet", "latency.parquet")
        if all(
            (view_a.run.dir / n).read_bytes() == (view_b.run.dir / n).read_bytes() for n in names
        ):
            continue
        # The same rows may be packed differently by another Polars.
        one, other = load(view_a.run), load(view_b.run)
        if not (one.series.equals(other.series) and one.latency.equals(other.latency)):
            return False
    return True


def _provenance(a: Analysis, b: Analysis) -> list[tuple[str, str, str]]:
    def gather(analysis: Analysis) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for view in analysis.views:
            if view.run is None:
                continue
            found.setdefault("tier", set()).add(view.run.record.tier)
            for what, value in msgspec.structs.asdict(view.run.record.provenance).items():
                found.setdefault(what, set()).add(value)
        return found

    in_a, in_b = gather(a), gather(b)
    return [
        (what, ", ".join(sorted(in_a.get(what, ()))), ", ".join(sorted(in_b.get(what, ()))))
        for what in sorted(in_a.keys() | in_b.keys())
        if in_a.get(what) != in_b.get(what)
    ]

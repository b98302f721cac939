# SPDX-License-Identifier: GPL-2.0-only
"""Compare two result sets, point by point: differences of the inputs and their effects.

A metric's record determines what is *worse* (isoblk.metrics): nothing if it has no direction; for
deviations, which are 0 at best, the difference; else the change relative to the first figure.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from isoblk.analysis import inputs
from isoblk.analysis.inputs import Input
from isoblk.analysis.load import load
from isoblk.analysis.metrics import Analysis, PointView
from isoblk.errors import UserError
from isoblk.metrics.base import PER_TENANT, Better
from isoblk.metrics.cached import CACHE, FIGURES
from isoblk.metrics.registry import METRICS, SAYS, direction
from isoblk.metrics.stats import welch_p

SIGNIFICANT = 0.05
"""p-value from which a difference of repeats may be chance, and decides nothing."""

UNCHANGED = 0.00005  # a change that two decimals of a percentage do not show


@dataclass(frozen=True)
class Difference:
    """One metric of one point. unit: of a program's figure, else "". p: of Welch's t test, None
    with single repeats."""

    metric: str
    a: float
    b: float
    better: Better
    deviation: bool
    p: float | None
    unit: str = ""

    @property
    def change(self) -> float | None:
        """Return the change relative to a; of a deviation b - a. None: a is 0 and b is not."""
        if self.a == self.b:
            return 0.0
        if self.deviation:
            return self.b - self.a
        if math.isinf(self.a):
            return -1.0
        return (self.b - self.a) / abs(self.a) if self.a else None

    @property
    def matters(self) -> bool:
        """Return whether the change is more than UNCHANGED."""
        return self.change is None or abs(self.change) >= UNCHANGED

    @property
    def noise(self) -> bool:
        """Return whether the change may be chance, given the variation of repeats."""
        return self.p is not None and self.p >= SIGNIFICANT

    @property
    def worse(self) -> float | None:
        """Return how much worse b is than a, negative if it is better; None without a direction."""
        if self.better == "neither":
            return None
        change = math.copysign(math.inf, self.b) if self.change is None else self.change
        return change if self.better == "down" else -change


@dataclass(frozen=True)
class PointComparison:
    """One matrix point in both sets.

    Attributes:
        point: matrix key to value.
        identical: whether the tenants' results and weights are the same in all repeats, and so are
            the series and latency tables, or their rows; differences is then empty.
        differences: of all metrics that both have.
        tenants: those of one side, or with another weight: name, in A, in B.
        note: why there is nothing to compare, else "".
        lost: whether A has a valid run and B has none.
    """

    point: Mapping[str, str]
    identical: bool
    differences: tuple[Difference, ...]
    tenants: tuple[tuple[str, str, str], ...] = ()
    note: str = ""
    lost: bool = False


@dataclass(frozen=True)
class Comparison:
    """points: in both. only_a, only_b: points of one set. inputs: differences of the inputs."""

    points: tuple[PointComparison, ...]
    only_a: tuple[Mapping[str, str], ...]
    only_b: tuple[Mapping[str, str], ...]
    inputs: tuple[Input, ...]

    def changes(self) -> list[tuple[PointComparison, Difference]]:
        """Return all changes above UNCHANGED: worse ones first, then those without a direction,
        then better ones; within each, possible chance last, else the largest first."""
        found = [
            (point, difference)
            for point in self.points
            for difference in point.differences
            if difference.matters
        ]
        return sorted(found, key=lambda pair: _rank(pair[1]))

    def failed(self, limit: float) -> list[tuple[PointComparison, Difference]]:
        """Return what is worse by more than the limit (0.05: 5 %, or 5 percentage points), without
        possible chance; the worst first."""
        return [
            (point, one)
            for point, one in self.changes()
            if one.worse is not None and one.worse > limit and not one.noise
        ]


def _rank(one: Difference) -> tuple[int, bool, float]:
    worse = one.worse
    size = math.inf if one.change is None else abs(one.change)
    return (1 if worse is None else 0 if worse > 0 else 2), one.noise, -size


def compare(a: Analysis, b: Analysis, metrics: Sequence[str] = ()) -> Comparison:
    """Match the study points of two result sets and compare every metric.

    Args:
        a: the baseline.
        b: the other set.
        metrics: only these, as claims name them; a tenant's metric may be without the tenant.

    Raises:
        UserError: there is no common point, a run's table is damaged, or no point has one of the
            metrics.
    """
    in_b = {point.key: point for point in b.points}
    in_a = {point.key: point for point in a.points}
    common = [(p, in_b[key]) for key, p in in_a.items() if key in in_b]
    if not common:
        where = f"{a.results.dir} and {b.results.dir}"
        keys = [", ".join(one.keys) for one in (a, b)]
        of = f": of {keys[0]}; of {keys[1]}" if keys[0] != keys[1] else ""
        raise UserError(f"no study point in common{of}", where=where)
    if metrics:
        _require_known(metrics, common)
    return Comparison(
        tuple(_compare_point(x, y, metrics) for x, y in common),
        tuple(p.point for key, p in in_a.items() if key not in in_b),
        tuple(p.point for key, p in in_b.items() if key not in in_a),
        inputs.differences(a, b, common),
    )


def metrics_of(point: PointView) -> dict[str, str]:
    """Return the metrics to compare, and the units of programs' figures."""
    names = []
    for metric in METRICS.values():
        if metric.compared and metric.of_run:
            names.append(metric.name)
        elif metric.compared:
            names += [f"{metric.base}.{tenant.name}" for tenant in point.runs[0].spec.tenants]
    if any(metrics.cache for metrics in point.valid):
        names += [f"{CACHE}.{figure}" for figure in FIGURES]
    said = [(t.name, t.says) for metrics in point.valid for t in metrics.tenants if t.says]
    return dict.fromkeys(names, "") | {
        f"{SAYS}{name}.{figure.name}": figure.unit for name, one in said for figure in one.figures
    }


def _require_known(wanted: Sequence[str], common: list[tuple[PointView, PointView]]) -> None:
    known = dict.fromkeys(
        name for x, y in common for name in metrics_of(x) if name in metrics_of(y)
    )
    for one in wanted:
        if not any(_named(name, one) for name in known):
            shown = dict.fromkeys(
                name if name.partition(".")[0] + PER_TENANT not in METRICS else name.split(".")[0]
                for name in known
            )
            raise UserError(f"--metric: unknown metric {one!r}", next=f"known: {', '.join(shown)}")


def _named(metric: str, wanted: str) -> bool:
    """Return whether `wanted` is the metric, or the metric without its tenant."""
    return metric == wanted or (metric.startswith(f"{wanted}.") and wanted + PER_TENANT in METRICS)


def _compare_point(a: PointView, b: PointView, wanted: Sequence[str]) -> PointComparison:
    tenants = tuple(inputs.tenants(a, b))
    absent = [name for name, point in (("A", a), ("B", b)) if not point.valid]
    if absent:
        note = f"no valid run in {' nor in '.join(absent)}"
        return PointComparison(a.point, False, (), tenants, note, lost=absent == ["B"])
    if not tenants and _identical(a, b):
        return PointComparison(a.point, True, ())
    differences = []
    shared = metrics_of(b)
    for metric, unit in metrics_of(a).items():
        if metric not in shared or (wanted and not any(_named(metric, one) for one in wanted)):
            continue
        xs, ys = a.values(metric), b.values(metric)
        if xs and ys:
            better, deviation = direction(metric, unit)
            differences.append(
                Difference(metric, fmean(xs), fmean(ys), better, deviation, welch_p(xs, ys), unit)
            )
    return PointComparison(a.point, False, tuple(differences), tenants)


def _identical(a: PointView, b: PointView) -> bool:
    if len(a.runs) != len(b.runs):
        return False
    for view_a, view_b in zip(a.runs, b.runs, strict=True):
        if view_a.run is None or view_b.run is None or view_a.status != view_b.status:
            return False
        # Programs' figures are in no table.
        if view_a.run.record.tenants != view_b.run.record.tenants:
            return False
        names = ("series.parquet", "latency.parquet")
        if all(
            (view_a.run.dir / n).read_bytes() == (view_b.run.dir / n).read_bytes() for n in names
        ):
            continue
        # Another version of Polars may write the same rows differently.
        one, other = load(view_a.run), load(view_b.run)
        if not (one.series.equals(other.series) and one.latency.equals(other.latency)):
            return False
    return True

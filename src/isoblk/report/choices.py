# SPDX-License-Identifier: GPL-2.0-only
"""What a study lets its reader choose between, and what each choice comes to.

A choice is a scheduler over all its points; of a study with one scheduler, a point. It is judged by
its worst point, and ranked: first those that divide, then by what speed is kept, then by how long
a light tenant waits.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.metrics.facts import RunMetrics, TenantMetrics
from isoblk.metrics.latency import ALL
from isoblk.report import rows, text
from isoblk.run.spec import SCHEDULER

DIVIDES = 0.01
"""Up to this share error a scheduler divides by weight: less than a tenant would notice, and more
than requests in flight at a run's end move."""
NEARLY = 0.10
"""Up to this it still follows the weights."""
LIGHT = 0.5
"""A tenant that cannot use even this part of its share by weight is light: it wants little, and
what counts for it is how long it waits."""
SPEED_STEP = 0.01
"""Speeds that differ by less are alike: seeds and the ends of a run make as much."""


@dataclass(frozen=True)
class Worst:
    """A figure at the point where it is worst."""

    value: float
    point: PointView


@dataclass(frozen=True)
class Wait:
    """How long a light tenant waits, at the point where that is longest against its time alone.
    p99, alone, none: ns, without end if nothing was answered; none: under none at the same point,
    if that was measured."""

    tenant: str
    p99: float
    alone: float
    none: float | None
    point: PointView


@dataclass(frozen=True)
class Choice:
    """A scheduler, or a point of the only one. error, speed, wait: None where nothing measures
    it. errors: of every point."""

    name: str
    points: tuple[PointView, ...]
    error: Worst | None
    speed: Worst | None
    wait: Wait | None

    @property
    def divides(self) -> bool:
        """Whether it divides by weight at every point."""
        return self.error is not None and self.error.value <= DIVIDES

    @property
    def complete(self) -> bool:
        """Whether every run of every point is valid."""
        return all(view.status == "valid" for point in self.points for view in point.runs)

    def rank(self) -> tuple[float, ...]:
        """The better, the smaller."""
        error = self.error.value if self.error else float("inf")
        speed = round(self.speed.value / SPEED_STEP) if self.speed else 0
        wait = self.wait.p99 / self.wait.alone if self.wait else 0.0
        off = 0.0 if self.divides else error
        return (off, -speed, wait, error)


class Choices:
    """All of a study.

    Attributes:
        analysis: the study.
        by_scheduler: whether the choices are schedulers, else points.
        light: the tenants that want little.
        error: the metric that is judged: of shares, or of the disk's time where all of it was
            measured.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        schedulers = list(dict.fromkeys(point.schedulers for point in analysis.points))
        self.by_scheduler = len(schedulers) > 1
        self._keys = [key for key in rows.varying(analysis) if key != SCHEDULER]
        self._short = text.short_keys(analysis.keys)
        valid = [metrics for point in analysis.points for metrics in point.valid]
        self.light = _light(valid)
        timed = (
            bool(valid)
            and not self.light
            and all(point.estimate("service_error") for point in analysis.points if point.valid)
        )
        self.error = "service_error" if timed else "share_error"

    @property
    def division(self) -> bool:
        """Whether anything is divided: by two tenants or more at some point."""
        return any(len(view.spec.tenants) > 1 for view in self.analysis.views)

    @cached_property
    def all(self) -> list[Choice]:
        """Without none, which is what the others are held against, if there are others."""
        groups: dict[str, list[PointView]] = {}
        for point in self.analysis.points:
            if self.by_scheduler and point.schedulers == "none":
                continue
            name = point.schedulers if self.by_scheduler else self.where(point) or point.schedulers
            groups.setdefault(name, []).append(point)
        return [self._choice(name, points) for name, points in groups.items()]

    @cached_property
    def ranked(self) -> list[Choice]:
        """Those whose runs are all valid, the best first."""
        return sorted((one for one in self.all if one.complete), key=Choice.rank)

    @cached_property
    def none(self) -> Choice | None:
        """The scheduler none, beside others; None if it is not in the study, or not valid."""
        points = [point for point in self.analysis.points if point.schedulers == "none"]
        found = self._choice("none", points) if points and self.by_scheduler else None
        return found if found and found.complete else None

    def where(self, point: PointView) -> str:
        """What tells a point from others of its scheduler: "randread, iodepth 32"."""
        told = []
        for key in self._keys:
            value = point.point.get(key)
            if value is not None:
                says = value[:1].isalpha() or "-" in value
                told.append(value if says and value != "none" else f"{self._short[key]} {value}")
        return ", ".join(told)

    def reach(self, one: Choice) -> int:
        """Up to how many tenants a choice follows the weights nearly; 0 if their number does not
        vary, or not even the fewest."""
        worst: dict[int, float] = {}
        for point in one.points:
            error = self._error_of(point)
            tenants = len(point.runs[0].spec.tenants)
            worst[tenants] = max(worst.get(tenants, 0.0), math.inf if error is None else error)
        most = 0
        if len(worst) > 1:
            for tenants in sorted(worst):
                if worst[tenants] > NEARLY:
                    break
                most = tenants
        return most

    def _choice(self, name: str, points: Sequence[PointView]) -> Choice:
        return Choice(
            name,
            tuple(points),
            error=_worst(points, self._error_of, max),
            speed=_worst(points, lambda point: _mean(point, "total_vs_none"), min),
            wait=self._wait(points),
        )

    def _error_of(self, point: PointView) -> float | None:
        if not self.light:
            return _mean(point, self.error)
        # Who wants little is judged by its wait; the others by how they divide the rest.
        errors = [_error_beside(metrics, self.light) for metrics in point.valid]
        known = [error for error in errors if error is not None]
        return fmean(known) if known else None

    def _wait(self, points: Sequence[PointView]) -> Wait | None:
        waits = [
            found
            for point in points
            for name in self.light
            if (found := self._wait_of(point, name)) is not None
        ]
        return max(waits, key=lambda wait: wait.p99 / wait.alone, default=None)

    def _wait_of(self, point: PointView, name: str) -> Wait | None:
        together = _p99(point, name, _together)
        alone = _p99(point, name, lambda tenant: tenant.alone.p99 if tenant.alone else None)
        if not together or not alone:
            return None
        return Wait(name, together, alone, self._under_none(point, name), point)

    def p99_at(self, one: Choice, wait: Wait) -> float | None:
        """How long the tenant of a wait waits with another choice, at the same point if choices
        have several; ns, None if it is not known."""
        if not self.by_scheduler:
            return one.wait.p99 if one.wait and one.wait.tenant == wait.tenant else None
        here = {key: value for key, value in wait.point.point.items() if key != SCHEDULER}
        for point in one.points:
            at = {key: value for key, value in point.point.items() if key != SCHEDULER}
            if at == here:
                return _p99(point, wait.tenant, _together)
        return None

    def _under_none(self, point: PointView, name: str) -> float | None:
        if point.schedulers == "none":
            return None
        others = dict(point.point)
        others.pop(SCHEDULER, None)
        for other in self.analysis.points:
            at = {key: value for key, value in other.point.items() if key != SCHEDULER}
            if other.schedulers == "none" and _within(at, others):
                return _p99(other, name, _together)
        return None


def _within(part: Mapping[str, str], whole: Mapping[str, str]) -> bool:
    return part.items() <= whole.items()


def _mean(point: PointView, metric: str) -> float | None:
    found = point.estimate(metric)
    return found.mean if found else None


def _worst(
    points: Sequence[PointView],
    measure: Callable[[PointView], float | None],
    pick: Callable[..., Worst],
) -> Worst | None:
    """None unless all points have it."""
    found = [Worst(value, point) for point in points if (value := measure(point)) is not None]
    if not found or len(found) < len(points):
        return None
    return pick(found, key=lambda worst: worst.value)


def _error_beside(metrics: RunMetrics, light: Sequence[str]) -> float | None:
    errors = [
        tenant.share_error
        for tenant in metrics.tenants
        if tenant.name not in light and tenant.share_error is not None
    ]
    return max(errors, default=None)


def _light(valid: Sequence[RunMetrics]) -> tuple[str, ...]:
    """Tenants that are light in every run, and whose wait alone is known; () if all are."""
    if not valid:
        return ()
    names = [tenant.name for tenant in valid[0].tenants]
    light = [name for name in names if all(_is_light(metrics, name) for metrics in valid)]
    return tuple(light) if len(light) < len(names) else ()


def _is_light(metrics: RunMetrics, name: str) -> bool:
    tenant = metrics.by_name.get(name)
    if tenant is None or tenant.alone is None or not tenant.alone.p99 or not metrics.none:
        return False
    # Of what the disk moves with this load: a scheduler that loses most of it makes nobody heavy.
    return tenant.alone.bps < LIGHT * tenant.weight_share * metrics.none.rate


def _together(tenant: TenantMetrics) -> float:
    return tenant.latency[ALL].p99 if ALL in tenant.latency else math.inf


def _p99(point: PointView, name: str, of: Callable[[TenantMetrics], float | None]) -> float | None:
    """Mean over the valid repeats; None if one has none."""
    found = [
        value
        for metrics in point.valid
        if name in metrics.by_name and (value := of(metrics.by_name[name])) is not None
    ]
    return fmean(found) if found and len(found) == len(point.valid) else None

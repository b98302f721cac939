# SPDX-License-Identifier: GPL-2.0-only
"""The choices that a study offers its reader, and the result of each.

A choice is a scheduler over all its points, or a point if the study has one scheduler. It is judged
by its worst point. The order is: choices that divide by weight, then the retained bandwidth, then
the wait of a light tenant. The order of equal choices is the same in every study.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.metrics.facts import RunMetrics, TenantMetrics
from isoblk.metrics.latency import ALL
from isoblk.report import rows, text
from isoblk.report.words import setting
from isoblk.run.spec import SCHEDULER

DIVIDES = 0.01
"""Share error up to which a scheduler divides by weight: less than a tenant would notice, and more
than the effect of requests in flight at a run's end."""
NEARLY = 0.10
"""Share error up to which it nearly divides; used for the mark in figures."""
LIGHT = 0.5
"""A tenant is light if it cannot use this fraction of its share by weight: its wait counts, not its
share."""
ALIKE = 0.01
"""Relative difference up to which speeds, and errors above DIVIDES, are equal: the effect of seeds
and of the ends of a run."""
ALIKE_WAIT = 1.25
"""Ratio up to which waits are equal."""
_FEW = 3
_FIRST = ("isoblk", "kyber-fair", "feedbac", "cfq")  # of equal choices; then the study's order


@dataclass(frozen=True)
class Worst:
    """A figure at the point where it is worst."""

    value: float
    point: PointView


@dataclass(frozen=True)
class Wait:
    """The longest wait of a light tenant over all points. p99, alone, none: ns, infinite if no
    request was answered; none: under none at the same point, if measured."""

    tenant: str
    p99: float
    alone: float
    none: float | None
    point: PointView


@dataclass(frozen=True)
class Choice:
    """A scheduler, or a point of the only one. error, speed, wait: None if not measured. errors: of
    every point."""

    name: str
    points: tuple[PointView, ...]
    error: Worst | None
    speed: Worst | None
    wait: Wait | None

    @property
    def divides(self) -> bool:
        """Return whether it divides by weight at every point."""
        return self.error is not None and self.error.value <= DIVIDES

    @property
    def complete(self) -> bool:
        """Return whether every run of every point is valid."""
        return all(view.status == "valid" for point in self.points for view in point.runs)


class Choices:
    """All choices of a study.

    Attributes:
        analysis: the study.
        by_scheduler: whether the choices are schedulers, else points.
        light: the light tenants.
        watched: the tenants whose wait is shown: the light ones, else the tenant of small weight in
            the study's claims.
        error: the metric for the judgement: of shares, or of disk time if all of it was measured.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        schedulers = list(dict.fromkeys(point.schedulers for point in analysis.points))
        single = len(analysis.points) == 1 and schedulers != ["none"]
        self.by_scheduler = len(schedulers) > 1 or single
        self._keys = [key for key in rows.varying(analysis) if key != SCHEDULER]
        self._short = text.short_keys(analysis.keys)
        valid = [metrics for point in analysis.points for metrics in point.valid]
        self.light = _light(valid)
        self.watched = self.light or _claimed(analysis, valid)
        timed = (
            bool(valid)
            and not self.light
            and all(point.estimate("service_error") for point in analysis.points if point.valid)
        )
        self.error = "service_error" if timed else "share_error"

    @property
    def division(self) -> bool:
        """Return whether at least two tenants that are not light compete at some point."""
        light = len(self.light)
        return any(len(view.spec.tenants) - light > 1 for view in self.analysis.views)

    @cached_property
    def all(self) -> list[Choice]:
        """Return the choices without none, the baseline, if there are others."""
        groups: dict[str, list[PointView]] = {}
        for point in self.analysis.points:
            if self.by_scheduler and point.schedulers == "none":
                continue
            name = point.schedulers if self.by_scheduler else self.where(point) or point.schedulers
            groups.setdefault(name, []).append(point)
        return [self._choice(name, points) for name, points in groups.items()]

    @cached_property
    def ranked(self) -> list[Choice]:
        """Return the choices with only valid runs, the best first."""
        found = sorted((one for one in self.all if one.complete), key=_usual)
        off = _steps([_off(one) for one in found], ALIKE)
        slow = _steps([-one.speed.value if one.speed else 0.0 for one in found], ALIKE)
        waits = [one.wait.p99 if self.light and one.wait else 1.0 for one in found]
        late = _steps(waits, ALIKE_WAIT - 1)
        by = list(zip(off, slow, late, range(len(found)), found, strict=True))
        return [one for *_, one in sorted(by, key=lambda place: place[:-1])]

    @cached_property
    def none(self) -> Choice | None:
        """Return the choice none as the baseline; None if it was not run, is not valid, or is the
        only one. If the study does not include it, the reference runs."""
        points = [point for point in self.analysis.points if point.schedulers == "none"]
        asked = bool(points)
        points = points or self._references
        if not points or not self.by_scheduler:
            return None
        found = self._choice("none", points)
        if not asked and found.speed is None:
            found = replace(found, speed=Worst(1.0, points[0]))
        return found if found.complete else None

    @cached_property
    def _references(self) -> list[PointView]:
        return [
            point
            for point in self.analysis.others
            if point.schedulers == "none"
            and all(view.spec.kind == "reference" for view in point.runs)
        ]

    def where(self, point: PointView) -> str:
        """Return the keys that distinguish a point from others of its scheduler: "randread, iodepth
        32"."""
        told = []
        for key in self._keys:
            value = point.point.get(key)
            if value is not None:
                told.append(setting(key, value, self._short[key]))
        return ", ".join(told)

    def by_setting(self) -> dict[str, list[Choice]]:
        """Return the choices of the only scheduler by the value of the first varied key, as text;
        {} if it has another number than two or three values."""
        if self.by_scheduler or len(self._keys) < 2:
            return {}
        key = self._keys[0]
        found: dict[str, list[Choice]] = {}
        for choice in self.ranked:
            value = choice.points[0].point.get(key)
            if value is None:
                return {}
            found.setdefault(setting(key, value, self._short[key]), []).append(choice)
        return found if 1 < len(found) <= _FEW else {}

    def reach(self, one: Choice) -> int:
        """Return the largest number of tenants that a choice divides; 0 if the number does not
        vary, or the choice does not divide the smallest."""
        worst: dict[int, float] = {}
        for point in one.points:
            error = self._error_of(point)
            tenants = len(point.runs[0].spec.tenants)
            worst[tenants] = max(worst.get(tenants, 0.0), math.inf if error is None else error)
        most = 0
        if len(worst) > 1:
            for tenants in sorted(worst):
                if worst[tenants] > DIVIDES:
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
        # A light tenant is judged by its wait, all others by the division of the rest.
        errors = [_error_beside(metrics, self.light) for metrics in point.valid]
        known = [error for error in errors if error is not None]
        return fmean(known) if known else None

    def _wait(self, points: Sequence[PointView]) -> Wait | None:
        waits = [
            found
            for point in points
            for name in self.watched
            if (found := self._wait_of(point, name)) is not None
        ]
        return max(waits, key=lambda wait: (wait.p99, wait.p99 / wait.alone), default=None)

    def _wait_of(self, point: PointView, name: str) -> Wait | None:
        together = _p99(point, name, _together)
        alone = _p99(point, name, lambda tenant: tenant.alone.p99 if tenant.alone else None)
        if not together or not alone:
            return None
        return Wait(name, together, alone, self._under_none(point, name), point)

    def p99_at(self, one: Choice, wait: Wait) -> float | None:
        """Return the wait of a tenant under another choice, at the same point if choices have
        several; ns, None if unknown."""
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
        for other in (*self.analysis.points, *self._references):
            at = {key: value for key, value in other.point.items() if key != SCHEDULER}
            if other.schedulers == "none" and _within(at, others):
                return _p99(other, name, _together)
        return None


def _usual(one: Choice) -> int:
    """Return the order among equal choices; stable, so that the rest keeps the study's order."""
    return _FIRST.index(one.name) if one.name in _FIRST else len(_FIRST)


def _off(one: Choice) -> float:
    error = one.error.value if one.error else math.inf
    return 0.0 if one.divides else error


def _steps(values: Sequence[float], alike: float) -> list[int]:
    """Return the rank of each value, the smallest first; values within a relative difference
    `alike` of the smallest of them have the same rank."""
    places: dict[float, int] = {}
    first = -math.inf
    place = -1
    for value in sorted(set(values)):
        if place < 0 or value > first + alike * abs(first):
            first, place = value, place + 1
        places[value] = place
    return [places[value] for value in values]


def _claimed(analysis: Analysis, valid: Sequence[RunMetrics]) -> tuple[str, ...]:
    """Return the tenant that claims name, if it has the smallest weight and its p99 alone on the
    disk is known; else ()."""
    known = rows.names(analysis)
    named = {
        name
        for claim in analysis.results.record.study.claim
        for name in known
        if claim.metric.partition(".")[2] == name
    }
    if len(named) != 1 or not valid:
        return ()
    (name,) = named
    for metrics in valid:
        tenant = metrics.by_name.get(name)
        if tenant is None or tenant.alone is None or not tenant.alone.p99:
            return ()
        if any(o.weight_share <= tenant.weight_share for o in metrics.tenants if o is not tenant):
            return ()
    return (name,)


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
    """Return the worst value; None unless all points have one."""
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
    """Return the tenants that are light in every run, and whose p99 alone on the disk is known; ()
    if all tenants are."""
    if not valid:
        return ()
    names = [tenant.name for tenant in valid[0].tenants]
    light = [name for name in names if all(_is_light(metrics, name) for metrics in valid)]
    return tuple(light) if len(light) < len(names) else ()


def _is_light(metrics: RunMetrics, name: str) -> bool:
    tenant = metrics.by_name.get(name)
    if tenant is None or tenant.alone is None or not tenant.alone.p99 or not metrics.none:
        return False
    # Relative to the run under none: a scheduler that loses most bandwidth makes no tenant heavy.
    return tenant.alone.bps < LIGHT * tenant.weight_share * metrics.none.rate


def _together(tenant: TenantMetrics) -> float:
    return tenant.latency[ALL].p99 if ALL in tenant.latency else math.inf


def _p99(point: PointView, name: str, of: Callable[[TenantMetrics], float | None]) -> float | None:
    """Return the mean over the valid repeats; None if one has no value."""
    found = [
        value
        for metrics in point.valid
        if name in metrics.by_name and (value := of(metrics.by_name[name])) is not None
    ]
    return fmean(found) if found and len(found) == len(point.valid) else None

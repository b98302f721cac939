# SPDX-License-Identifier: GPL-2.0-only
"""The record of a metric."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from isoblk.metrics.facts import RunMetrics, TenantMetrics
from isoblk.run import numbers

PER_TENANT: Final = ".<tenant>"

MetricUnit = Literal[
    "requests/s", "B/s", "B", "ns", "ms", "times", "ratio", "index", "factor", "%", "count"
]
Better = Literal["up", "down", "neither"]
Needs = Literal["", "full", "bound"]


@dataclass(frozen=True)
class Metric:
    """A number of a run, or of each of its tenants.

    Attributes:
        name: in claims; that of a tenant's metric ends in ".<tenant>".
        text: its meaning, with its formula.
        unit: of its values.
        better: the better direction.
        of_run: returns its value, None without one; None for a tenant's metric.
        of_tenant: returns each tenant's value; None for a run's metric.
        needs: additional runs, which are made if a claim is about it: "full": each load alone as a
            closed loop without end; "bound": alone with as many requests as exact shares allow.
        compared: whether `isoblk compare` shows it, and `--fail-over` checks it if it has a better
            direction.
        deviation: whether 0 is ideal. Two deviations are compared by their difference in percentage
            points: a small one that has doubled is still small.
    """

    name: str
    text: str
    unit: MetricUnit
    better: Better
    of_run: Callable[[RunMetrics], float | None] | None = None
    of_tenant: Callable[[RunMetrics, TenantMetrics], float | None] | None = None
    needs: Needs = ""
    compared: bool = False
    deviation: bool = False

    @property
    def base(self) -> str:
        """Return its name without the tenant."""
        return self.name.removesuffix(PER_TENANT)


def show(value: float, unit: MetricUnit) -> str:
    """Format a value of that unit."""
    return _FORMS[unit](value)


def _milliseconds(value: float) -> str:
    return "never" if math.isinf(value) else numbers.time(value * 1e6)


def _part(value: float) -> str:
    return "without end" if math.isinf(value) else numbers.percent(value)


_FORMS: Mapping[MetricUnit, Callable[[float], str]] = {
    "requests/s": numbers.count,
    "count": numbers.count,
    "B/s": numbers.rate,
    "B": numbers.size,
    "ns": numbers.time,
    "ms": _milliseconds,
    "times": numbers.ratio,
    "ratio": _part,
    "index": numbers.index,
    "factor": "{:.3f}".format,
    "%": numbers.percent,
}

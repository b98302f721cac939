# SPDX-License-Identifier: GPL-2.0-only
"""What a metric is."""

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
    """One number of a run, or of each tenant of it.

    Attributes:
        name: as claims have it; one of each tenant ends in ".<tenant>".
        text: what it is, with its formula.
        unit: of its values.
        better: which way is better.
        of_run: its value; None where the run has none. Of a tenant's metric, None.
        of_tenant: likewise, of each tenant's.
        needs: runs of its own, which are made if a claim asks for it: "full": each load alone and
            without end; "bound": alone with as many requests as exact shares allow.
        compared: `isoblk compare` sets it side by side, and `--fail-over` watches it if one way is
            better.
        deviation: it is 0 where all is right. Of two of them the difference is told, in
            percentage points: a small one that has doubled is small still.
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
        """Its name without the place of the tenant's."""
        return self.name.removesuffix(PER_TENANT)


def show(value: float, unit: MetricUnit) -> str:
    """A value of that unit, as people read it."""
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

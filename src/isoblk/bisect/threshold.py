# SPDX-License-Identifier: GPL-2.0-only
"""The threshold that divides good values of a metric from bad."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from isoblk.errors import UserError
from isoblk.metrics.base import MetricUnit
from isoblk.metrics.registry import SAYS, direction, metric_text, metric_unit
from isoblk.metrics.stats import Estimate
from isoblk.run.units import TIME_SUFFIXES, parse_time

LEAST = 0.05
"""Smallest difference of the ends for which --threshold is optional, relative to the larger value;
for metrics whose ideal is 0 in the metric's unit."""


@dataclass(frozen=True)
class Threshold:
    """The bound between good and bad values.

    Attributes:
        value: the last good value.
        above: values above are bad; False: values below.
    """

    value: float
    above: bool

    def bad(self, value: float) -> bool:
        """Return whether a value is bad."""
        return value > self.value if self.above else value < self.value


def between(metric: str, good: Estimate, bad: Estimate, asked: float | None) -> Threshold:
    """Choose the threshold between two values.

    Args:
        metric: name of the metric.
        good, bad: values of the ends.
        asked: the user's threshold; None: the middle.

    Raises:
        UserError: the values are equal or may be, or `asked` is not between them.
    """
    texts = [text_of(metric, one.mean) for one in (good, bad)]
    both = f"{metric} is {texts[0]} for GOOD and {texts[1]} for BAD"
    if good.mean == bad.mean:
        raise UserError(
            f"{metric} is {texts[0]} at both ends",
            next="choose other versions, another metric or another point",
        )
    if asked is not None:
        if not min(good.mean, bad.mean) <= asked < max(good.mean, bad.mean):
            raise UserError(f"--threshold {text_of(metric, asked)} is not between: {both}")
    elif math.isinf(good.mean) or math.isinf(bad.mean):
        raise UserError(f"{both}: they have no middle", next="add --threshold")
    elif _apart(metric, good.mean, bad.mean) < LEAST:
        raise UserError(
            f"{both}: they differ by less than {LEAST:.0%}",
            next="add --threshold to accept the difference",
        )
    if max(good.low, bad.low) <= min(good.high, bad.high):
        raise UserError(
            f"{both}: their intervals overlap, so the change may be chance", next="add repeats"
        )
    middle = (good.mean + bad.mean) / 2
    return Threshold(middle if asked is None else asked, bad.mean > good.mean)


def _apart(metric: str, one: float, other: float) -> float:
    _, deviation = direction(metric)
    return abs(one - other) / (1 if deviation else max(abs(one), abs(other)))


def text_of(metric: str, value: float) -> str:
    """Format a value. Figures of programs have no unit, since theirs is not known here."""
    return f"{value:.4g}" if metric.startswith(SAYS) else metric_text(metric, value)


def parse(text: str, metric: str) -> float:
    """Parse a threshold.

    Args:
        text: a number in the metric's unit; for times also 1.2ms, for ratios also 5%.
        metric: name of the metric.

    Raises:
        UserError: it is not a value of the metric.
    """
    unit = None if metric.startswith(SAYS) else metric_unit(metric)
    try:
        return _number(text, unit)
    except ValueError:
        allowed = {"ns": "1.2ms", "ms": "200ms", "%": "5%", "ratio": "5%"}.get(unit or "", "")
        raise UserError(
            f"--threshold: {text!r} is not a value of {metric}",
            next=f"allowed: a number{f', or {allowed}' if allowed else ''}",
        ) from None


def _number(text: str, unit: MetricUnit | None) -> float:
    if unit in ("ns", "ms") and any(text.endswith(suffix) for suffix in TIME_SUFFIXES):
        return parse_time(text, "ns") / (1 if unit == "ns" else TIME_SUFFIXES["ms"])
    percent = unit in ("%", "ratio") and text.endswith("%")
    value = float(text.removesuffix("%") if percent else text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value / 100 if percent else value


def worst(metric: str, values: Sequence[float]) -> int:
    """Return the index of the worst value.

    Raises:
        UserError: there are several values, and the metric has no better direction.
    """
    better = "down" if len(values) == 1 else direction(metric)[0]
    if better == "neither":
        raise UserError(
            f"{metric} has no better direction, and the study has {len(values)} points",
            next="choose one with --only KEY=VALUE",
        )
    find = min if better == "up" else max
    return values.index(find(values))

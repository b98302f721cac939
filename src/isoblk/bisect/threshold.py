# SPDX-License-Identifier: GPL-2.0-only
"""Which value of a metric is good and which is bad."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from isoblk.errors import UserError
from isoblk.metrics.base import MetricUnit
from isoblk.metrics.registry import SAYS, direction, metric_text, metric_unit
from isoblk.metrics.stats import Estimate
from isoblk.run.units import TIME_SUFFIXES, parse_time

LEAST = 0.05
"""Two values that differ by less, as a part of the larger, are not told apart without a threshold;
of metrics that are 0 where all is right, by less in their own unit."""


@dataclass(frozen=True)
class Threshold:
    """What divides good from bad.

    Attributes:
        value: the last that is good, seen from there.
        above: what is above it is bad; else what is below.
    """

    value: float
    above: bool

    def bad(self, value: float) -> bool:
        """Whether a value is bad."""
        return value > self.value if self.above else value < self.value


def between(metric: str, good: Estimate, bad: Estimate, asked: float | None) -> Threshold:
    """The threshold between two values.

    Args:
        metric: whose they are.
        good, bad: of the two ends.
        asked: for; None for the middle.

    Raises:
        UserError: they are the same, or may be; what is asked for is not between them.
    """
    texts = [text_of(metric, one.mean) for one in (good, bad)]
    both = f"{metric} is {texts[0]} of the good one and {texts[1]} of the bad one"
    if good.mean == bad.mean:
        raise UserError(
            f"{metric} is {texts[0]} of both ends: nothing to look for",
            next="name other versions, another metric or point",
        )
    if asked is not None:
        if not min(good.mean, bad.mean) <= asked < max(good.mean, bad.mean):
            raise UserError(f"--threshold {text_of(metric, asked)} is not between: {both}")
    elif math.isinf(good.mean) or math.isinf(bad.mean):
        raise UserError(f"{both}: there is no middle", next="add --threshold")
    elif _apart(metric, good.mean, bad.mean) < LEAST:
        raise UserError(
            f"{both}: that is less than {LEAST:.0%} apart",
            next="add --threshold if the difference is meant",
        )
    if max(good.low, bad.low) <= min(good.high, bad.high):
        raise UserError(
            f"{both}, and their intervals overlap: that may be chance", next="add repeats"
        )
    middle = (good.mean + bad.mean) / 2
    return Threshold(middle if asked is None else asked, bad.mean > good.mean)


def _apart(metric: str, one: float, other: float) -> float:
    _, deviation = direction(metric)
    return abs(one - other) / (1 if deviation else max(abs(one), abs(other)))


def text_of(metric: str, value: float) -> str:
    """A value as people read it. What a program says has its own unit, which is not known here."""
    return f"{value:.4g}" if metric.startswith(SAYS) else metric_text(metric, value)


def parse(text: str, metric: str) -> float:
    """A threshold as a user writes it.

    Args:
        text: a number in the metric's unit; of a time also 1.2ms, of a part also 5%.
        metric: whose it is.

    Raises:
        UserError: it is none.
    """
    unit = None if metric.startswith(SAYS) else metric_unit(metric)
    try:
        return _number(text, unit)
    except ValueError:
        allowed = {"ns": "1.2ms", "ms": "200ms", "%": "5%", "ratio": "5%"}.get(unit or "", "")
        raise UserError(
            f"--threshold: {text!r} is no value of {metric}",
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
    """Where the worst of the values is.

    Raises:
        UserError: there are several, and neither way is better.
    """
    better = "down" if len(values) == 1 else direction(metric)[0]
    if better == "neither":
        raise UserError(
            f"of {metric} neither way is better, and there are {len(values)} points",
            next="choose one with --only KEY=VALUE",
        )
    find = min if better == "up" else max
    return values.index(find(values))

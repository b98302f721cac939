# SPDX-License-Identifier: GPL-2.0-only
"""Names, order and colours of points and tenants, common to all figures of an analysis."""

import math
from collections.abc import Iterable

import altair as alt

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.report import text
from isoblk.report.figures.drawing import PALETTE, cycle
from isoblk.report.lanes import lane_rule

PANEL_ROWS = 12
"""Largest number of panels in a figure; the tables have the rest."""


class Scene:
    """An analysis with at least one valid run, prepared for drawing.

    Attributes:
        analysis: the analysis.
        points: those with a valid run.
        schedulers: of these points, in order.
        short: the keys of the matrix, as short as they are unique.
        lanes: maps a run to its lanes: single tenants, or groups.
        lane_order: labels of all lanes.
        across: the key that is drawn in a row: the scheduler, or with one scheduler another key
            that varies.
        rest: the other keys that vary; a panel for each combination.
        scheduler_colors: the same in every figure, and in every report.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.points = [point for point in analysis.points if point.valid]
        self.schedulers = list(dict.fromkeys(p.scheduler for p in self.points))
        self.keys = analysis.keys
        self.short = text.short_keys(analysis.keys)
        self.lanes = lane_rule(analysis)
        labels: dict[str, None] = {}
        for point in self.points:
            labels.update(dict.fromkeys(lane.label for lane in self.lanes(point.valid[0])))
        self.lane_order = list(labels)
        varying = self.varying_but("scheduler")
        self.across = "scheduler" if len(self.schedulers) > 1 or not varying else varying[0]
        self.rest = tuple(key for key in varying if key != self.across)
        self.scheduler_colors = scheduler_colors(self.schedulers)

    @property
    def repeated(self) -> bool:
        """Return whether a point has several valid runs."""
        return any(len(point.valid) > 1 for point in self.points)

    def values(self, key: str) -> list[str]:
        """Return the values of a key of the matrix, in order."""
        return list(dict.fromkeys(p.point[key] for p in self.points if key in p.point))

    def varying_but(self, *keys: str) -> list[str]:
        """Return the keys that vary between points, without `keys`."""
        return [key for key in self.keys if key not in keys and len(self.values(key)) > 1]

    def cell(self, point: PointView, rest: Iterable[str] | None = None) -> str:
        """Return the label of a point's panel. rest: the keys that distinguish panels."""
        return text.label(point.point, self.rest if rest is None else rest, self.short)

    def cells(self) -> list[tuple[str, list[PointView]]]:
        """Return the points of each panel, with its label."""
        cells: dict[str, list[PointView]] = {}
        for point in self.points:
            cells.setdefault(self.cell(point), []).append(point)
        return list(cells.items())

    def where(self, point: PointView) -> dict[str, str]:
        """Return the fields of a row that identify its point."""
        across = point.point.get(self.across, point.scheduler)
        if self.across != "scheduler":
            across = f"{self.short[self.across]} {across}"
        return {"across": across, "cell": self.cell(point), "scheduler": point.scheduler}

    def order(self) -> list[str]:
        """Return all values of "across", in order."""
        return list(dict.fromkeys(self.where(point)["across"] for point in self.points))

    def lane_color(self) -> alt.Color:
        """Return a colour for each lane, the same in all figures."""
        return alt.Color(
            "lane:N",
            title=None,
            scale=alt.Scale(domain=self.lane_order, range=cycle(len(self.lane_order))),
        )


# The schedulers that are compared most have fixed colours.
_COLORED = (
    "isoblk",
    "bfq",
    "kyber-fair",
    "io.cost",
    "kyber",
    "feedbac",
    "none",
    "mq-deadline",
    "cfq",
)


def scheduler_colors(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each scheduler; others get free ones, and then all again."""
    fixed = dict(zip(_COLORED, PALETTE, strict=True))
    found = {name: fixed[name] for name in names if name in fixed}
    free = [color for color in PALETTE if color not in found.values()] + list(PALETTE)
    others = [name for name in names if name not in fixed]
    return found | {name: free[at % len(free)] for at, name in enumerate(others)}


def mean(point: PointView, metric: str) -> float:
    """Return the mean of a metric over a point's valid runs; 0 without a value."""
    value = point.estimate(metric)
    return value.mean if value else 0.0


def number(value: str) -> float | None:
    """Return a value of the matrix as a number; None if it is not one."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None

# SPDX-License-Identifier: GPL-2.0-only
"""Draw the latency distribution of all requests."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from isoblk.metrics import latency
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.latency import ALL
from isoblk.report.figures.drawing import (
    LATENCY_LABEL,
    Datasets,
    Draft,
    Rows,
    grid,
    log_ticks,
    numbered,
    spoken,
    titled,
)
from isoblk.report.figures.scene import PANEL_ROWS, Scene
from isoblk.report.lanes import Lane
from isoblk.run import numbers

_MAX_POINTS = 120
_DEEPEST_NINES = 5.0  # the axis ends at 99.999 %
_NINES = {
    0.0: "0",
    math.log10(2): "50",
    1.0: "90",
    2.0: "99",
    3.0: "99.9",
    4.0: "99.99",
    5.0: "99.999",
}  # -log10(1 - F) to F in percent
_NINES_LABEL = (
    " : ".join(f"datum.value < {at + 0.1:.3f} ? '{name}'" for at, name in _NINES.items()) + " : ''"
)


def draw(scene: Scene) -> Iterator[Draft]:
    """Draw cumulative latency, a panel per scheduler."""
    cells = scene.cells()
    for at, (label, points) in enumerate(cells[:PANEL_ROWS]):
        data: Rows = [
            {**scene.where(point), "lane": lane.label, "us": us, "nines": nines}
            for point in points
            for lane in scene.lanes(point.valid[0])
            for us, nines in _cdf(point.valid, lane)
        ]
        if not data:
            continue
        caption = (
            "Cumulative latency of each tenant, all its requests. The vertical axis gives each "
            "further nine the same height, so the tail is as visible as the median. "
            "Further left is faster; a curve that bends right near the top has a long tail."
        )
        datasets = Datasets()
        chart = _curves(scene, data, datasets)
        says = _quantiles(data)
        name, title = numbered("latency", at, cells), titled("Latency", label)
        yield Draft(name, title, caption, chart, datasets.named, says)


def _quantiles(data: Rows) -> list[str]:
    """Return each tenant's median and 99th percentile as text, if its curve reaches them."""
    curves: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in data:
        at = (row["across"], row["cell"], row["lane"])
        curves.setdefault(at, []).append((row["us"], row["nines"]))
    found: Rows = [
        {
            "across": across,
            "cell": cell,
            "lane": lane,
            "at": [
                next((us for us, nines in curve if nines >= least), curve[-1][0])
                for least in (math.log10(2), 2.0)
            ],
        }
        for (across, cell, lane), curve in curves.items()
    ]
    return spoken(
        found,
        lambda row: " and ".join(
            f"{name} {numbers.time(us * 1e3)}"
            for name, us in zip(("p50", "p99"), row["at"], strict=True)
        ),
    )


def _curves(scene: Scene, data: Rows, datasets: Datasets) -> Any:
    low, high = min(row["us"] for row in data) / 1.05, max(row["us"] for row in data) * 1.05
    top = max(row["nines"] for row in data)

    def panel(values: Rows, left: bool, bottom: bool) -> Any:
        return (
            alt.Chart(datasets.add(values))
            .mark_line(strokeWidth=2, interpolate="step-after")
            .encode(
                x=alt.X(
                    "us:Q",
                    title="latency (log)" if bottom else None,
                    scale=alt.Scale(type="log", domain=[low, high], nice=False),
                    axis=alt.Axis(values=log_ticks(low, high), labelExpr=LATENCY_LABEL),
                ),
                y=alt.Y(
                    "nines:Q",
                    title="requests at or below, %" if left else None,
                    scale=alt.Scale(domain=[0, top], nice=False),
                    axis=alt.Axis(
                        values=[at for at in _NINES if at <= top + 0.01],
                        labelExpr=_NINES_LABEL,
                        labelOverlap=False,
                    ),
                ),
                color=scene.lane_color(),
            )
            .properties(width=270, height=160)
        )

    return grid(data, "across", panel, 3)


def _cdf(valid: Sequence[RunMetrics], lane: Lane) -> list[tuple[float, float]]:
    """Return (latency in us, -log10 of the fraction above it) over all repeats."""
    buckets = latency.merge(
        found
        for metrics in valid
        for i in lane.members
        if (found := metrics.buckets.get(metrics.tenants[i].name, {}).get(ALL))
    )
    if not buckets:
        return []
    count = sum(n for _, n in buckets)
    points = [(buckets[0][0] / 1000, 0.0)]
    for upper, fraction in latency.cdf(buckets, _MAX_POINTS):
        # The slowest request ends the curve half a request below 100 %.
        above = max(1 - fraction, 0.5 / count)
        nines = -math.log10(above)
        points.append((upper / 1000, min(nines, _DEEPEST_NINES)))
        if nines >= _DEEPEST_NINES:
            break
    return points

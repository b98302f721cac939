# SPDX-License-Identifier: GPL-2.0-only
"""Draw shares over time."""

from collections.abc import Iterable, Iterator
from typing import Any

import altair as alt

from isoblk.metrics.facts import RunMetrics
from isoblk.report.figures.drawing import Datasets, Draft, Rows, grid, numbered, spoken, titled
from isoblk.report.figures.scene import PANEL_ROWS, Scene
from isoblk.report.lanes import Lane

_MAX_POINTS = 200  # windows drawn of a line; longer runs are averaged


def draw(scene: Scene) -> Iterator[Draft]:
    """Draw lines of the shares in windows, a panel per scheduler."""
    cells = scene.cells()
    for at, (label, points) in enumerate(cells[:PANEL_ROWS]):
        data: Rows = [
            {**scene.where(point), "lane": lane.label, "t": t, "share": got, "ideal": ideal}
            for point in points
            for lane in scene.lanes(point.valid[0])
            for t, got, ideal in _over_time(point.valid[0], lane)
        ]
        if not data:
            continue
        caption = (
            "Solid: measured, in windows of 100 ms or more. Dashed, same colour: the ideal. "
            "Solid on dashed is steady division by weight; saw teeth are long turns."
        )
        if any(len(point.runs) > 1 for point in points):
            caption += " The first valid repeat is shown."
        datasets = Datasets()
        chart = _lines(scene, data, datasets)
        says = _ranges(data)
        name, title = numbered("over-time", at, cells), titled("Share over time", label)
        yield Draft(name, title, caption, chart, datasets.named, says)


def _ranges(data: Rows) -> list[str]:
    """Return the range of each tenant's share as text."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in data:
        found.setdefault((row["across"], row["cell"], row["lane"]), []).append(row["share"])
    ends: Rows = [
        {"across": across, "cell": cell, "lane": lane, "low": min(shares), "high": max(shares)}
        for (across, cell, lane), shares in found.items()
    ]
    return spoken(ends, lambda row: f"{row['low']:.1f} to {row['high']:.1f} %")


def _lines(scene: Scene, data: Rows, datasets: Datasets) -> Any:
    top = min(100.0, 1.05 * max(max(row["share"], row["ideal"]) for row in data))
    span = [min(row["t"] for row in data), max(row["t"] for row in data)]

    def panel(values: Rows, left: bool, bottom: bool) -> Any:
        base = alt.Chart(datasets.add(values)).encode(
            x=alt.X(
                "t:Q",
                title="time since start, s" if bottom else None,
                scale=alt.Scale(domain=span, nice=False),
                axis=alt.Axis(grid=False, tickCount=5),
            ),
            color=scene.lane_color(),
        )
        y: dict[str, Any] = {
            "title": "share of bytes, %" if left else None,
            "scale": alt.Scale(domain=[0, top], nice=False),
        }
        return alt.layer(
            base.mark_line(strokeWidth=1.2, strokeDash=[4, 3], interpolate="step-after").encode(
                y=alt.Y("ideal:Q", **y)
            ),
            base.mark_line(strokeWidth=2, interpolate="step-after").encode(y=alt.Y("share:Q", **y)),
        ).properties(width=270, height=140)

    return grid(data, "across", panel, 3)


def _over_time(metrics: RunMetrics, lane: Lane) -> Iterable[tuple[float, float, float]]:
    """Yield (s after the barrier, share in percent, ideal in percent), the last value again at the
    end of its window. Windows are joined down to _MAX_POINTS."""
    at = metrics.windows
    names = [metrics.tenants[i].name for i in lane.members]
    totals = at.totals()
    joined = -(-at.count // _MAX_POINTS) if at.count else 1
    last: tuple[float, float] | None = None
    for k in range(0, at.count, joined):
        span = range(k, min(k + joined, at.count))
        total = sum(totals[i] for i in span)
        if not total:
            continue
        got = sum(at.moved[name][i] for name in names for i in span)
        ideal = sum(metrics.window_ideal[name][i] for name in names for i in span)
        last = (100 * got / total, 100 * ideal / total)
        yield ((at.start_ns + k * at.width_ns) / 1e9, *last)
    if last:
        yield ((at.start_ns + at.count * at.width_ns) / 1e9, *last)

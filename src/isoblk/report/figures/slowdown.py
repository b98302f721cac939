# SPDX-License-Identifier: GPL-2.0-only
"""Draw the slowdown of each tenant relative to running alone."""

from collections.abc import Iterator
from typing import Any

import altair as alt

from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.stats import estimate
from isoblk.report.figures.drawing import INK, Datasets, Draft, Rows, grid, log_ticks, spoken
from isoblk.report.figures.scene import Scene
from isoblk.report.lanes import Lane


def draw(scene: Scene) -> Iterator[Draft]:
    """Draw dots by scheduler and tenant; nothing without runs alone."""
    data: Rows = []
    for point in scene.points:
        for lane in scene.lanes(point.valid[0]):
            found = [v for m in point.valid if (v := _slowdown(m, lane)) is not None]
            if found:
                data.append(
                    {
                        **scene.where(point),
                        "lane": lane.label,
                        "slowdown": estimate(found).mean,
                        "n": len(point.valid[0].tenants),
                    }
                )
    if not data:
        return
    order = scene.order()
    low = min(min(row["slowdown"], row["n"]) for row in data) / 1.15
    high = max(max(row["slowdown"], row["n"]) for row in data) * 1.15
    datasets = Datasets()

    def panel(values: Rows, left: bool, bottom: bool) -> Any:
        x: dict[str, Any] = {
            "title": "slowdown, times (log)" if bottom else None,
            "scale": alt.Scale(type="log", domain=[low, high], nice=False),
            "axis": alt.Axis(values=log_ticks(low, high), format="~g"),
        }
        lines = [{"n": n} for n in dict.fromkeys(row["n"] for row in values)]
        return alt.layer(
            alt.Chart(datasets.add(lines))
            .mark_rule(strokeDash=[4, 3], color=INK)
            .encode(x=alt.X("n:Q", **x)),
            alt.Chart(datasets.add(values))
            .mark_point(filled=True, size=80, opacity=1)
            .encode(
                y=alt.Y(
                    "across:N",
                    sort=order,
                    title=None,
                    scale=alt.Scale(domain=order),
                    axis=alt.Axis(grid=True, ticks=False, domain=False, labels=left),
                ),
                x=alt.X("slowdown:Q", **x),
                color=scene.lane_color(),
                shape=alt.Shape("lane:N", title=None, scale=alt.Scale(domain=scene.lane_order)),
            ),
        ).properties(width=280, height=24 * len(order))

    caption = (
        "How many times slower each tenant is than alone on the device. The dashed line is "
        "the number of tenants N: N times slower is an equal N-th of what one reaches alone. "
        "With weights, the heavy belong left of it and the light right."
    )
    chart = grid(data, "cell", panel, 3)
    says = spoken(data, lambda row: f"{row['slowdown']:.2f} times")
    yield Draft("slowdown", "Slowdown against running alone", caption, chart, datasets.named, says)


def _slowdown(metrics: RunMetrics, lane: Lane) -> float | None:
    """Return the mean over the lane's tenants."""
    found = [s for i in lane.members if (s := metrics.tenants[i].slowdown) is not None]
    return sum(found) / len(found) if found else None

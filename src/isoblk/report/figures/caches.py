# SPDX-License-Identifier: GPL-2.0-only
"""Figures of a study that compares caches, or their options, under one load."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from isoblk.metrics.facts import TenantMetrics
from isoblk.report import cached
from isoblk.report.figures.drawing import (
    INK,
    LATENCY_LABEL,
    PALETTE,
    Datasets,
    Draft,
    Panel,
    Rows,
    grid,
    log_ticks,
    shades,
    spoken,
)
from isoblk.report.figures.scene import Scene, number
from isoblk.run import numbers


def draw_rates(scene: Scene) -> Iterator[Draft]:
    """Draw throughput by cache, grouped by a numeric key if there is one. (P4's Figures 1, 3 to
    5.)"""
    caption = "How fast each cache is, over the time that the load worked."
    yield from _by_cache(
        scene, "cached-throughput", "Throughput", caption, cached.throughput, _rate_bars
    )


def draw_latencies(scene: Scene) -> Iterator[Draft]:
    """Draw mean latency by cache, if it is known. (P4's Figure 2.)"""
    caption = "Mean latency of a request. The axis is logarithmic: further left is faster."
    yield from _by_cache(
        scene, "cached-latency", "Mean latency", caption, cached.mean_latency, _latency_dots
    )


@dataclass(frozen=True)
class _Grouped:
    """Rows of a panel: one for each cache, or for each of its groups. groups: [""] without groups.
    width: of a panel."""

    across: Sequence[str]
    groups: Sequence[str]
    width: int
    datasets: Datasets

    def height(self) -> int:
        """Return the height of a panel."""
        return len(self.across) * (15 * len(self.groups) + 9)

    def base(self, values: Rows, labels: bool) -> alt.Chart:
        """Return a chart with the rows' positions."""
        return alt.Chart(self.datasets.add(values)).encode(
            y=alt.Y(
                "across:N",
                sort=list(self.across),
                title=None,
                scale=alt.Scale(domain=list(self.across), paddingInner=0.22),
                axis=alt.Axis(ticks=False, domain=False, labels=labels, labelLimit=140),
            ),
            yOffset=alt.YOffset("group:N", sort=list(self.groups)),
        )

    def color(self) -> Any:
        """Return colours from pale to dark."""
        if len(self.groups) == 1:
            return alt.value(PALETTE[0])
        return alt.Color(
            "group:N",
            legend=None,
            sort=list(self.groups),
            scale=alt.Scale(domain=list(self.groups), range=shades(len(self.groups))),
        )


def _by_cache(
    scene: Scene,
    name: str,
    title: str,
    caption: str,
    measure: Callable[[TenantMetrics], float | None],
    draw: Callable[[Rows, _Grouped], Panel],
) -> Iterator[Draft]:
    """Draw a panel for each combination of the other keys."""
    group = _group_key(scene)
    rest = [key for key in scene.varying_but(scene.across) if key != group]
    data: Rows = []
    for point in scene.points:
        if (found := cached.of_first(point, measure)) is not None:
            data.append(
                {
                    "across": point.point.get(scene.across, point.scheduler),
                    "group": point.point.get(group, "") if group else "",
                    "cell": scene.cell(point, rest),
                    "value": found.mean,
                }
            )
    if not data:
        return
    values = scene.values(group) if group else [""]
    columns = 2 if len({row["cell"] for row in data}) in (2, 4) else 3
    across = list(dict.fromkeys(row["across"] for row in data))
    datasets = Datasets()
    panel = draw(data, _Grouped(across, values, 690 // columns, datasets))
    if group:
        title += f": {scene.short[group]} {', '.join(values)} from above"
    says = spoken(data, lambda row: f"{row['group']} {row['text']}".strip())
    chart = grid(data, "cell", panel, columns)
    yield Draft(name, title, caption, chart, datasets.named, says)


def _group_key(scene: Scene) -> str:
    """Return a key with at least three numbers; "" if there is none."""
    for key in scene.varying_but(scene.across):
        values = scene.values(key)
        if len(values) >= 3 and all(number(value) is not None for value in values):
            return key
    return ""


def _rate_bars(data: Rows, how: _Grouped) -> Panel:
    for row in data:
        row["text"] = numbers.rate(row["value"])
        row["value"] /= 1e6

    def panel(values: Rows, left: bool, bottom: bool) -> Any:
        top = max(row["value"] for row in values) * 1.5
        base = how.base(values, left)
        x = alt.X(
            "value:Q",
            title="MB/s" if bottom else None,
            scale=alt.Scale(domain=[0, top], nice=False),
            axis=alt.Axis(tickCount=4),
        )
        return alt.layer(
            base.mark_bar().encode(x=x, color=how.color()),
            base.mark_text(align="left", dx=3, fontSize=12, color=INK).encode(x=x, text="text:N"),
        ).properties(width=how.width, height=how.height())

    return panel


def _latency_dots(data: Rows, how: _Grouped) -> Panel:
    for row in data:
        row["text"] = numbers.time(row["value"])
        row["value"] /= 1e3

    def panel(values: Rows, left: bool, bottom: bool) -> Any:
        low = min(row["value"] for row in values)
        high = max(row["value"] for row in values)
        # Leave room for the text right of the last dot.
        span = [low / 1.3, high * 1.3 * (high / low * 2) ** 0.3]
        base = how.base(values, left)
        x = alt.X(
            "value:Q",
            title="latency (log)" if bottom else None,
            scale=alt.Scale(type="log", domain=span, nice=False),
            axis=alt.Axis(values=log_ticks(*span), labelExpr=LATENCY_LABEL),
        )
        return alt.layer(
            base.mark_point(filled=True, size=45, opacity=1).encode(x=x, color=how.color()),
            base.mark_text(align="left", dx=6, fontSize=12, color=INK).encode(x=x, text="text:N"),
        ).properties(width=how.width, height=how.height())

    return panel

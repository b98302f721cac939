# SPDX-License-Identifier: GPL-2.0-only
"""Draw a source's own figures next to those of the runs, as in a study's [compare]."""

from collections.abc import Iterator
from typing import Any

import altair as alt

from isoblk.report import published
from isoblk.report.figures.drawing import (
    MUTED,
    PALETTE,
    Datasets,
    Draft,
    Rows,
    grid,
    slug,
    titled,
)
from isoblk.report.figures.scene import Scene
from isoblk.report.published import Bar
from isoblk.study.model import CompareTable


def draw(scene: Scene) -> Iterator[Draft]:
    """Draw one figure per scheduler: bars by x, the source's next to the runs', a panel per
    series."""
    asked = scene.analysis.results.record.study.compare
    if asked is None:
        return
    bars = published.by_scheduler(published.bars(scene.analysis))
    for scheduler, found in bars.items():
        if any(bar.source is not None or bar.here is not None for bar in found):
            yield _of_scheduler(scene, asked, scheduler, found)


def _of_scheduler(scene: Scene, asked: CompareTable, scheduler: str, found: list[Bar]) -> Draft:
    title, unit = published.UNITS[asked.metric]
    source = asked.source
    axis = scene.short.get(asked.x, asked.x)
    data: Rows = [
        {"series": bar.series, "x": bar.x, "who": who, "value": value / unit}
        for bar in found
        for who, value in ((source, bar.source), ("here", bar.here))
        if value is not None
    ]
    order = list(dict.fromkeys(bar.x for bar in found))
    top = max(row["value"] for row in data)
    datasets = Datasets()

    def panel(values: Rows, left: bool, bottom: bool) -> Any:
        return (
            alt.Chart(datasets.add(values))
            .mark_bar()
            .encode(
                x=alt.X(
                    "x:N",
                    sort=order,
                    title=axis if bottom else None,
                    axis=alt.Axis(labelAngle=0, ticks=False),
                    scale=alt.Scale(domain=order, paddingInner=0.25),
                ),
                xOffset=alt.XOffset("who:N", sort=[source, "here"]),
                y=alt.Y(
                    "value:Q",
                    title=title if left else None,
                    scale=alt.Scale(domain=[0, top], nice=True),
                ),
                color=alt.Color(
                    "who:N",
                    title=None,
                    sort=[source, "here"],
                    scale=alt.Scale(domain=[source, "here"], range=[MUTED, PALETTE[0]]),
                ),
            )
            .properties(width=270, height=150)
        )

    caption = (
        f"{scheduler}: the runs of this study beside {source}. Difference: "
        f"{published.errors(found)}. Where a bar is missing, {source} has no figure."
    )
    chart = grid(data, "series", panel, 3)
    says = [
        f"{row['series']}, {axis} {row['x']}: {row['who']} {row['value']:,.1f} {title}"
        for row in data
    ]
    name = f"compare-{slug(scheduler)}"
    return Draft(name, titled(asked.title, scheduler), caption, chart, datasets.named, says)

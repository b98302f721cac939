# SPDX-License-Identifier: GPL-2.0-only
"""Draw the throughput of the whole device."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from isoblk.analysis.metrics import PointView
from isoblk.report.figures.drawing import INK, PALETTE, Datasets, Draft, Rows, spoken, titled_panel
from isoblk.report.figures.scene import PANEL_ROWS, Scene, mean
from isoblk.run import numbers

_WIDTH = 340


def draw(scene: Scene) -> Iterator[Draft]:
    """Draw bars of bandwidth and IOPS, with the line of none."""
    cells = scene.cells()
    most_mbps, most_kiops = (
        max(mean(p, metric) for p in scene.points) / unit or 1
        for metric, unit in (("total_bps", 1e6), ("total_iops", 1e3))
    )
    datasets = Datasets()
    stacked = []
    says: list[str] = []
    for label, points in cells[:PANEL_ROWS]:
        data = _rows(scene, points)
        rates = _panel(datasets, data, "bps", "bandwidth, MB/s", most_mbps * 1.4)
        iops = _panel(datasets, data, "iops", "thousand IOPS", most_kiops * 1.04)
        says += spoken(
            data, lambda row: f"{row['bps']:,.0f} MB/s, {row['iops']:,.1f} thousand IOPS"
        )
        if label:
            rates, iops = titled_panel(rates, label), titled_panel(iops, " ")
        stacked.append(alt.hconcat(rates, iops, spacing=24))
    caption = (
        "What a scheduler costs: the whole device's throughput. Without one (none) nothing is "
        "divided, which shows what the device can do with this load"
    )
    drawn = [point.scheduler for _, points in cells[:PANEL_ROWS] for point in points]
    caption += ": the dashed line." if "none" in drawn else "."
    left = len(cells) - PANEL_ROWS
    if left > 0:
        caption += f" {left} further combinations are in the table only."
    chart = alt.vconcat(*stacked, spacing=18)
    yield Draft("totals", "Total bandwidth and IOPS", caption, chart, datasets.named, says)


def _rows(scene: Scene, points: Sequence[PointView]) -> Rows:
    data: Rows = []
    for point in points:
        versus = point.estimate("total_vs_none")
        data.append(
            {
                **scene.where(point),
                "bps": mean(point, "total_bps") / 1e6,
                "iops": mean(point, "total_iops") / 1e3,
                "note": ""
                if versus is None or point.scheduler == "none"
                else f"{numbers.percent(versus.mean)} of none",
            }
        )
    return data


def _panel(datasets: Datasets, data: Rows, column: str, title: str, top: float) -> Any:
    """Return bars of one column; the first, of bandwidth, has the names and the notes."""
    first = column == "bps"
    base = alt.Chart(datasets.add(data)).encode(
        y=alt.Y(
            "across:N",
            sort=[row["across"] for row in data],
            title=None,
            axis=alt.Axis(ticks=False, domain=False, labels=first, labelLimit=140),
        )
    )
    x = alt.X(
        f"{column}:Q",
        title=title,
        axis=alt.Axis(tickCount=5),
        scale=alt.Scale(domain=[0, top], nice=False),
    )
    layers = [base.mark_bar(color=PALETTE[0], height={"band": 0.7}).encode(x=x)]
    if first:
        layers.append(
            base.mark_text(align="right", color=INK, fontSize=12).encode(
                x=alt.value(_WIDTH), text="note:N"
            )
        )
    none = [row for row in data if row["scheduler"] == "none"]
    if len(none) == 1:
        layers.append(
            alt.Chart(datasets.add(none))
            .mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=INK)
            .encode(x=x)
        )
    return alt.layer(*layers).properties(width=_WIDTH, height=22 * len(data))

# SPDX-License-Identifier: GPL-2.0-only
"""Draw shares of the device as bars."""

from collections.abc import Iterator
from typing import Any

import altair as alt

from isoblk.metrics.stats import estimate
from isoblk.report.beside import AGREE_TEXT, Beside, Share
from isoblk.report.figures.drawing import INK, Datasets, Draft, Rows, grid, spoken
from isoblk.report.figures.scene import Scene
from isoblk.report.lanes import lane_sum


def draw(scene: Scene) -> Iterator[Draft]:
    """Draw bars by scheduler and tenant, with the ideal; nothing for single tenants."""
    if all(len(point.valid[0].tenants) == 1 for point in scene.points):
        return
    data: Rows = []
    for point in scene.points:
        for lane in scene.lanes(point.valid[0]):
            got = estimate([lane_sum(m, lane, "share") for m in point.valid])
            ideal = estimate([lane_sum(m, lane, "ideal") for m in point.valid])
            data.append(
                {
                    **scene.where(point),
                    "lane": lane.label,
                    "share": got.mean * 100,
                    "low": max(0.0, got.low * 100),
                    "high": got.high * 100,
                    "tick": ideal.mean * 100,
                }
            )
    caption = (
        "Bars: what each tenant got. The line across each: the ideal, by weight, with nobody "
        "above what it reaches alone. A scheduler that divides by weight has every bar end at its "
        "line."
    )
    if scene.repeated:
        caption += " Thin lines: 95 % confidence intervals."
    yield _bars(scene, "shares", "Share against weight", caption, data)


def draw_beside(scene: Scene, beside: Beside) -> Iterator[Draft]:
    """Draw bars by scheduler and tenant, with those of another result set; nothing without a common
    point."""
    found: dict[str, list[Share]] = {}
    for share in beside.shares:
        found.setdefault(str(share.point), []).append(share)
    data: Rows = [
        {
            **scene.where(point),
            "lane": share.who,
            "share": share.here.mean * 100,
            "low": max(0.0, share.here.low * 100),
            "high": share.here.high * 100,
            "tick": share.there.mean * 100,
            "note": "" if share.agrees else share.difference_text(0),
        }
        for point in scene.points
        for share in found.get(str(point.point), ())
    ]
    if not data:
        return
    caption = (
        f"Bars: {beside.here}. The line across each: {beside.there}, {beside.load}. Written "
        f"above a bar: by how much it differs, where that is more than {AGREE_TEXT} "
        f"of what {beside.there} has."
    )
    if scene.repeated:
        caption += f" Thin lines: 95 % confidence intervals of {beside.here}."
    yield _bars(scene, "beside", f"Shares, {beside.here} beside {beside.there}", caption, data)


def _bars(scene: Scene, name: str, title: str, caption: str, data: Rows) -> Draft:
    """Return a bar and a tick for each row. A row has: across, cell, lane; share, low, high, tick
    in percent; and perhaps a note above the bar."""
    order = list(dict.fromkeys(row["across"] for row in data))
    cells = len({row["cell"] for row in data})
    width = max({1: 620, 2: 380}.get(cells, 220), len(order) * (len(scene.lane_order) * 9 + 14))
    if any(row.get("note") for row in data):
        # A note is wider than a bar.
        width = max(width, len(order) * len(scene.lane_order) * 46)
    thick = max(4.0, 0.75 * width / len(order) / len(scene.lane_order))
    top = 1.06 * max(max(row["high"], row["tick"]) for row in data)
    crowded = max(map(len, order)) * 6.5 > width / len(order)
    datasets = Datasets()

    def panel(values: Rows, left: bool, _: bool) -> Any:
        base = alt.Chart(datasets.add(values)).encode(
            x=alt.X(
                "across:N",
                sort=order,
                title=None,
                scale=alt.Scale(domain=order),
                axis=alt.Axis(
                    labelAngle=-35 if crowded else 0, ticks=False, labelLimit=120, grid=False
                ),
            ),
            xOffset=alt.XOffset(
                "lane:N", sort=scene.lane_order, scale=alt.Scale(domain=scene.lane_order)
            ),
        )
        y: dict[str, Any] = {
            "title": "share of bytes, %" if left else None,
            "scale": alt.Scale(domain=[0, top], nice=False),
        }
        layers = [
            base.mark_bar(size=thick).encode(y=alt.Y("share:Q", **y), color=scene.lane_color()),
            base.mark_tick(color="black", opacity=1, thickness=2, size=thick + 3).encode(
                y=alt.Y("tick:Q", **y)
            ),
        ]
        if scene.repeated:
            layers.append(
                base.mark_rule(color="#555555").encode(y=alt.Y("low:Q", **y), y2="high:Q")
            )
        if any(row.get("note") for row in values):
            layers.append(
                base.mark_text(dy=-8, fontSize=12, color=INK).encode(
                    y=alt.Y("high:Q", **y), text="note:N"
                )
            )
        return alt.layer(*layers).properties(width=width, height=190)

    chart = grid(data, "cell", panel, max(1, min(3, 1000 // (width + 50))))
    says = spoken(data, lambda row: f"{row['share']:.1f} % ({row['tick']:.1f} %)")
    return Draft(name, title, caption, chart, datasets.named, says)

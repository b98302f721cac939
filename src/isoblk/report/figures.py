# SPDX-License-Identifier: GPL-2.0-only
"""A report's figures: Altair charts, turned into SVG and PNG by vl-convert.

Only valid runs are drawn. Up to 8 tenants are drawn one by one; more are drawn as their
weight classes, or, with more than 8 of those, as the heaviest quarter and the others.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.metrics import latency
from isoblk.metrics.facts import RunMetrics, TenantMetrics
from isoblk.metrics.latency import ALL
from isoblk.metrics.stats import estimate
from isoblk.report import cached, compare, text
from isoblk.report.beside import AGREE_TEXT, Beside, Share
from isoblk.report.lanes import Lane, lane_rule, lane_sum
from isoblk.run import numbers

Rows = list[dict[str, Any]]

PNG_SCALE = 1.5
MAX_TIME_POINTS = 200  # windows drawn of a line; longer runs are averaged
MAX_CDF_POINTS = 120
DEEPEST_NINES = 5.0  # the latency axis ends at 99.999 %
PANEL_ROWS = 12  # so many panels of one kind make a figure; the rest is in the tables

# Okabe and Ito's palette, which the colour-blind tell apart, without its yellow (too pale on
# white), in an order that keeps neighbours apart in grey as well; the last two are P. Tol's.
# Nine: as many as there are schedulers and controllers.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#444444",
    "#999933",
    "#882255",
)
LEAST_ERROR = 0.1  # percent; where a logarithmic axis of errors begins
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
_LATENCY_LABEL = (
    "datum.value < 1 ? format(datum.value * 1000, '~g') + ' ns' : datum.value < 1000 ? "
    "format(datum.value, '~g') + ' us' : datum.value < 1e6 ? "
    "format(datum.value / 1000, '~g') + ' ms' : format(datum.value / 1e6, '~g') + ' s'"
)
INK = "#222222"
FAINT = "#6b6b6b"
MUTED = "#b9bec4"
GRID = "#e6e6e6"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Figure:
    """name: of its files. caption: what to look at."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes


@dataclass(frozen=True)
class Draft:
    """A chart before it is rendered."""

    name: str
    title: str
    caption: str
    chart: Any  # Altair's chart classes have no common public type
    datasets: Mapping[str, Rows]  # the charts name their data: Altair copies what it holds


def make_figures(analysis: Analysis, beside: Beside | None = None) -> list[Figure]:
    """All figures of a result set with at least one valid run; [] without one. The first is
    `beside`, what stands beside it."""
    if not any(point.valid for point in analysis.points):
        return []
    maker = _Maker(analysis)
    with alt.utils.schemapi.debug_mode(False):  # checking every part against the schema is slow
        if cached.is_bench(analysis):
            drafts = [*maker.compared(), maker.cached_rates(), maker.cached_latencies()]
        else:
            drafts = [
                *maker.compared(),
                maker.shares(),
                maker.totals(),
                *maker.scaling(),
                maker.slowdown(),
                *maker.over_time(),
                maker.prediction(),
                *maker.latencies(),
            ]
        figures = [render(draft, text.footer(analysis)) for draft in drafts if draft]
        if beside and (draft := maker.beside(beside)):
            figures.insert(0, render(draft, [text.footer(analysis), beside.provenance]))
        return figures


def render(draft: Draft, footer: str | list[str]) -> Figure:
    """Draw. footer: a line, or several, below the title.

    The ids inside the SVG start with the figure's name, so that several figures can stand in
    one page."""
    title = alt.TitleParams(
        draft.title,
        subtitle=footer,
        anchor="start",
        fontSize=15,
        fontWeight=600,
        color=INK,
        subtitleColor=FAINT,
        subtitleFontSize=11,
        subtitlePadding=5,
        offset=14,
    )
    chart = draft.chart.properties(title=title).configure(
        font=FONT,
        background="white",
        padding=8,
        axis=alt.AxisConfig(
            labelColor=INK,
            titleColor=INK,
            titleFontWeight="normal",
            labelFontSize=11,
            titleFontSize=11,
            gridColor=GRID,
            domainColor="#888888",
            tickColor="#888888",
            titlePadding=8,
        ),
        legend=alt.LegendConfig(
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            labelColor=INK,
            titleColor=INK,
            symbolStrokeWidth=2,
            orient="top",
            offset=10,
            labelLimit=240,
        ),
        view=alt.ViewConfig(stroke=None),
    )
    spec = chart.to_dict(validate=False) | {"datasets": draft.datasets}
    svg = _own_ids(vl_convert.vegalite_to_svg(spec, "6.4"), draft.name)
    png = vl_convert.svg_to_png(svg, scale=PNG_SCALE)
    return Figure(draft.name, draft.title, draft.caption, svg, png)


def _own_ids(svg: str, name: str) -> str:
    """Number the ids anew: vl-convert counts on from figure to figure."""
    ids = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    new = {old: f"{name}-{number}" for number, old in enumerate(ids)}
    svg = re.sub(r'\bid="([^"]+)"', lambda m: f'id="{new[m[1]]}"', svg)
    return re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{new.get(m[1], m[1])})", svg)


@dataclass(frozen=True)
class _Grouped:
    """Rows of a panel: one for each cache, or for each of its groups. groups: [""] if there are
    none. width: of a panel."""

    across: Sequence[str]
    groups: Sequence[str]
    width: int

    def height(self) -> int:
        """Of a panel."""
        return len(self.across) * (13 * len(self.groups) + 9)

    def base(self, chart: Any, labels: bool) -> Any:
        """The rows' places."""
        return chart.encode(
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
        """From pale to dark."""
        if len(self.groups) == 1:
            return alt.value(PALETTE[0])
        return alt.Color(
            "group:N",
            legend=None,
            sort=list(self.groups),
            scale=alt.Scale(domain=list(self.groups), range=_shades(len(self.groups))),
        )


class _Maker:
    """Draws one analysis; holds how its tenants and points are named and coloured."""

    def __init__(self, analysis: Analysis) -> None:
        self.points = [point for point in analysis.points if point.valid]
        self.datasets: dict[str, Rows] = {}
        self.keys = analysis.keys
        self.short = text.short_keys(analysis.keys)
        self.lanes = lane_rule(analysis)
        self.schedulers = list(dict.fromkeys(p.scheduler for p in self.points))
        labels: dict[str, None] = {}
        for point in self.points:
            labels.update(dict.fromkeys(lane.label for lane in self.lanes(point.valid[0])))
        self.lane_order = list(labels)
        # With one scheduler, what differs between runs is another key.
        varying = [k for k in self.keys if k != "scheduler" and len(self._values(k)) > 1]
        self.across = "scheduler" if len(self.schedulers) > 1 or not varying else varying[0]
        self.rest = tuple(key for key in varying if key != self.across)
        self.compare = analysis.results.record.study.compare
        self.bars = compare.by_scheduler(compare.bars(analysis))
        self.partial = any(view.status != "valid" for view in analysis.views)

    def compared(self) -> list[Draft]:
        """One figure a scheduler: bars by x, the source's beside the runs', a panel a series."""
        if self.compare is None:
            return []
        title, unit = compare.UNITS[self.compare.metric]
        source = self.compare.source
        axis = self.short.get(self.compare.x, self.compare.x)
        drafts = []
        for scheduler, found in self.bars.items():
            data: Rows = [
                {"series": bar.series, "x": bar.x, "who": who, "value": value / unit}
                for bar in found
                for who, value in ((source, bar.source), ("here", bar.here))
                if value is not None
            ]
            if not data:
                continue
            order = list(dict.fromkeys(bar.x for bar in found))
            top = max(row["value"] for row in data)

            def panel(
                values: Rows,
                left: bool,
                bottom: bool,
                order: list[str] = order,
                top: float = top,
            ) -> Any:
                return (
                    alt.Chart(self._data(values))
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
                    .properties(width=300, height=150)
                )

            caption = (
                f"{scheduler}: the runs of this study beside {source}. Difference: "
                f"{compare.errors(found)}. Where a bar is missing, {source} has no figure."
            )
            drafts.append(
                self._draft(
                    f"compare-{_slug(scheduler)}",
                    _titled(self.compare.title, scheduler),
                    caption,
                    self._grid(data, "series", panel, 3),
                )
            )
        return drafts

    def shares(self) -> Draft:
        """Bars by scheduler and tenant, with the ideal."""
        data: Rows = []
        for point in self.points:
            for lane in self.lanes(point.valid[0]):
                got = estimate([lane_sum(m, lane, "share") for m in point.valid])
                ideal = estimate([lane_sum(m, lane, "ideal") for m in point.valid])
                data.append(
                    {
                        **self._where(point),
                        "lane": lane.label,
                        "share": got.mean * 100,
                        "low": max(0.0, got.low * 100),
                        "high": got.high * 100,
                        "tick": ideal.mean * 100,
                    }
                )
        caption = (
            "Bars: what each tenant got. Black ticks: the ideal, by weight, with nobody above what "
            "it reaches alone. A scheduler that divides by weight has every bar end at its tick."
        )
        if self._repeated():
            caption += " Thin lines: 95 % confidence intervals."
        return self._draft("shares", "Share against weight", caption, self._share_bars(data))

    def beside(self, beside: Beside) -> Draft | None:
        """Bars by scheduler and tenant, with what another result set has there; None without a
        point in common."""
        found: dict[str, list[Share]] = {}
        for share in beside.shares:
            found.setdefault(str(share.point), []).append(share)
        data: Rows = [
            {
                **self._where(point),
                "lane": share.who,
                "share": share.here.mean * 100,
                "low": max(0.0, share.here.low * 100),
                "high": share.here.high * 100,
                "tick": share.there.mean * 100,
                "note": "" if share.agrees else share.difference_text(0),
            }
            for point in self.points
            for share in found.get(str(point.point), ())
        ]
        if not data:
            return None
        caption = (
            f"Bars: {beside.here}. Black ticks: {beside.there}, the same load and weights. Written "
            f"above a bar: by how much it differs, where that is more than {AGREE_TEXT} "
            f"of what {beside.there} has."
        )
        if self._repeated():
            caption += f" Thin lines: 95 % confidence intervals of {beside.here}."
        title = f"Shares, {beside.here} beside {beside.there}"
        return self._draft("beside", title, caption, self._share_bars(data))

    def _repeated(self) -> bool:
        return any(len(point.valid) > 1 for point in self.points)

    def _share_bars(self, data: Rows) -> Any:
        """A bar and a tick for each row, which has: across, cell, lane; share, low, high, tick in
        percent; and perhaps a note to stand above the bar."""
        order = list(dict.fromkeys(row["across"] for row in data))
        width = max(180, len(order) * (len(self.lane_order) * 9 + 14))
        if any(row.get("note") for row in data):
            # A note is wider than a bar.
            width = max(width, len(order) * len(self.lane_order) * 36)
        thick = max(4.0, 0.75 * width / len(order) / len(self.lane_order))
        top = 1.06 * max(max(row["high"], row["tick"]) for row in data)
        crowded = max(map(len, order)) * 6.5 > width / len(order)

        def panel(values: Rows, left: bool, _: bool) -> Any:
            base = alt.Chart(self._data(values)).encode(
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
                    "lane:N", sort=self.lane_order, scale=alt.Scale(domain=self.lane_order)
                ),
            )
            y: dict[str, Any] = {
                "title": "share of bytes, %" if left else None,
                "scale": alt.Scale(domain=[0, top], nice=False),
            }
            layers = [
                base.mark_bar(size=thick).encode(y=alt.Y("share:Q", **y), color=self._lane_color()),
                base.mark_tick(color="black", opacity=1, thickness=2, size=thick + 3).encode(
                    y=alt.Y("tick:Q", **y)
                ),
            ]
            if self._repeated():
                layers.append(
                    base.mark_rule(color="#555555").encode(y=alt.Y("low:Q", **y), y2="high:Q")
                )
            if any(row.get("note") for row in values):
                layers.append(
                    base.mark_text(dy=-8, fontSize=9, color=INK).encode(
                        y=alt.Y("high:Q", **y), text="note:N"
                    )
                )
            return alt.layer(*layers).properties(width=width, height=190)

        return self._grid(data, "cell", panel, max(1, min(3, 1000 // (width + 50))))

    def totals(self) -> Draft:
        """Bars of bandwidth and IOPS, with the line of none."""
        cells = self._cells()
        most = [
            max(_mean(p, metric) for p in self.points) / unit or 1
            for metric, unit in (("total_bps", 1e6), ("total_iops", 1e3))
        ]
        stacked = []
        for label, points in cells[:PANEL_ROWS]:
            data: Rows = []
            for point in points:
                versus = point.estimate("total_vs_none")
                data.append(
                    {
                        **self._where(point),
                        "bps": _mean(point, "total_bps") / 1e6,
                        "iops": _mean(point, "total_iops") / 1e3,
                        "note": ""
                        if versus is None or point.scheduler == "none"
                        else f"{numbers.percent(versus.mean)} of none",
                    }
                )
            none = [row for row in data if row["scheduler"] == "none"]
            order = [row["across"] for row in data]
            width = 340
            pair = []
            for column, title, top in (
                ("bps", "bandwidth, MB/s", most[0] * 1.32),
                ("iops", "thousand IOPS", most[1] * 1.04),
            ):
                first = column == "bps"
                base = alt.Chart(self._data(data)).encode(
                    y=alt.Y(
                        "across:N",
                        sort=order,
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
                        base.mark_text(align="right", color=INK, fontSize=11).encode(
                            x=alt.value(width), text="note:N"
                        )
                    )
                if len(none) == 1:
                    layers.append(
                        alt.Chart(self._data(none))
                        .mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=INK)
                        .encode(x=x)
                    )
                panel = alt.layer(*layers).properties(width=width, height=22 * len(points))
                if label:
                    panel = panel.properties(title=_panel_title(label if first else " "))
                pair.append(panel)
            stacked.append(alt.hconcat(*pair, spacing=24))
        caption = (
            "What a scheduler costs: the whole device's throughput. The dashed line is `none`, "
            "which does not divide at all and so shows what the device can do with this load."
        )
        left = len(cells) - PANEL_ROWS
        if left > 0:
            caption += f" {left} further combinations are in the table only."
        return self._draft(
            "totals", "Total bandwidth and IOPS", caption, alt.vconcat(*stacked, spacing=18)
        )

    def scaling(self) -> list[Draft]:
        """One figure for each matrix key with at least three numbers as its values."""
        drafts = []
        for key in self.keys:
            values = self._values(key)
            numbers = {value: number for value in values if (number := _number(value)) is not None}
            if len(numbers) >= 3 and len(numbers) == len(values):
                drafts.append(self._scaling_by(key, numbers))
        return drafts

    def _scaling_by(self, key: str, numbers: Mapping[str, float]) -> Draft:
        rest = [k for k in self.keys if k not in (key, "scheduler") and len(self._values(k)) > 1]
        data: Rows = [
            {
                "x": numbers[point.point[key]],
                "scheduler": point.scheduler,
                "cell": text.label(point.point, rest, self.short),
                "error": max(_mean(point, "share_error") * 100, LEAST_ERROR),
                "iops": _mean(point, "total_iops") / 1e3,
            }
            for point in self.points
            if key in point.point
        ]
        low, high = min(numbers.values()), max(numbers.values())
        log = low > 0 and high / low >= 8
        names = alt.Scale(domain=self.schedulers)
        color = alt.Color(
            "scheduler:N",
            title=None,
            scale=alt.Scale(domain=self.schedulers, range=_cycle(len(self.schedulers))),
        )
        ceiling = max(100.0, *(row["error"] for row in data)) * 1.1
        stacked = []
        for label in list(dict.fromkeys(row["cell"] for row in data))[:PANEL_ROWS]:
            here = self._data([row for row in data if row["cell"] == label])
            pair = []
            for y in (
                alt.Y(
                    "error:Q",
                    title="share error, % (log)",
                    scale=alt.Scale(type="log", domain=[LEAST_ERROR, ceiling], nice=False),
                    axis=alt.Axis(values=_decades(LEAST_ERROR, ceiling), format=","),
                ),
                alt.Y("iops:Q", title="total, thousand IOPS", scale=alt.Scale(zero=True)),
            ):
                base = alt.Chart(here).encode(
                    x=alt.X(
                        "x:Q",
                        title=key + (" (log)" if log else ""),
                        scale=alt.Scale(type="log" if log else "linear", nice=False),
                        axis=alt.Axis(values=sorted(numbers.values()), grid=False, format=","),
                    ),
                    y=y,
                    color=color,
                )
                panel = alt.layer(
                    base.mark_line(strokeWidth=2),
                    base.mark_point(filled=True, size=50, opacity=1).encode(
                        shape=alt.Shape("scheduler:N", title=None, scale=names)
                    ),
                ).properties(width=360, height=220)
                pair.append(panel.properties(title=_panel_title(label)) if label else panel)
            stacked.append(alt.hconcat(*pair, spacing=36))
        caption = (
            f"Left: the worst tenant's deviation from its ideal share as {self.short[key]} grows; "
            f"lower is better, values below {LEAST_ERROR:g} % are drawn there. Right: the total "
            "throughput at the same points."
        )
        return self._draft(
            f"scaling-{_slug(key)}",
            f"Share error and total against {key}",
            caption,
            alt.vconcat(*stacked, spacing=18),
        )

    def slowdown(self) -> Draft | None:
        """Dots by scheduler and tenant; None without runs alone."""
        data: Rows = []
        for point in self.points:
            for lane in self.lanes(point.valid[0]):
                found = [v for m in point.valid if (v := _slowdown(m, lane)) is not None]
                if found:
                    data.append(
                        {
                            **self._where(point),
                            "lane": lane.label,
                            "slowdown": estimate(found).mean,
                            "n": len(point.valid[0].tenants),
                        }
                    )
        if not data:
            return None
        order = self._order()
        low = min(min(row["slowdown"], row["n"]) for row in data) / 1.15
        high = max(max(row["slowdown"], row["n"]) for row in data) * 1.15

        def panel(values: Rows, left: bool, bottom: bool) -> Any:
            x: dict[str, Any] = {
                "title": "slowdown, times (log)" if bottom else None,
                "scale": alt.Scale(type="log", domain=[low, high], nice=False),
                "axis": alt.Axis(values=_log_ticks(low, high), format="~g"),
            }
            lines = [{"n": n} for n in dict.fromkeys(row["n"] for row in values)]
            return alt.layer(
                alt.Chart(self._data(lines))
                .mark_rule(strokeDash=[4, 3], color=INK)
                .encode(x=alt.X("n:Q", **x)),
                alt.Chart(self._data(values))
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
                    color=self._lane_color(),
                    shape=alt.Shape("lane:N", title=None, scale=alt.Scale(domain=self.lane_order)),
                ),
            ).properties(width=280, height=24 * len(order))

        caption = (
            "How many times slower each tenant is than alone on the device. The dashed line is "
            "the number of tenants N: N times slower is an equal N-th of what one reaches alone. "
            "With weights, the heavy belong left of it and the light right."
        )
        return self._draft(
            "slowdown",
            "Slowdown against running alone",
            caption,
            self._grid(data, "cell", panel, 3),
        )

    def over_time(self) -> list[Draft]:
        """Lines of the shares in windows, a panel a scheduler."""
        drafts = []
        cells = self._cells()
        for number, (label, points) in enumerate(cells[:PANEL_ROWS]):
            data: Rows = []
            for point in points:
                metrics = point.valid[0]
                for lane in self.lanes(metrics):
                    for at, got, ideal in _lane_over_time(metrics, lane):
                        data.append(
                            {
                                **self._where(point),
                                "lane": lane.label,
                                "t": at,
                                "share": got,
                                "ideal": ideal,
                            }
                        )
            if not data:
                continue
            top = min(100.0, 1.05 * max(max(row["share"], row["ideal"]) for row in data))
            span = [min(row["t"] for row in data), max(row["t"] for row in data)]

            def panel(
                values: Rows, left: bool, bottom: bool, top: float = top, span: Any = span
            ) -> Any:
                base = alt.Chart(self._data(values)).encode(
                    x=alt.X(
                        "t:Q",
                        title="time since start, s" if bottom else None,
                        scale=alt.Scale(domain=span, nice=False),
                        axis=alt.Axis(grid=False, tickCount=5),
                    ),
                    color=self._lane_color(),
                )
                y: dict[str, Any] = {
                    "title": "share of bytes, %" if left else None,
                    "scale": alt.Scale(domain=[0, top], nice=False),
                }
                return alt.layer(
                    base.mark_line(
                        strokeWidth=1.2, strokeDash=[4, 3], interpolate="step-after"
                    ).encode(y=alt.Y("ideal:Q", **y)),
                    base.mark_line(strokeWidth=2, interpolate="step-after").encode(
                        y=alt.Y("share:Q", **y)
                    ),
                ).properties(width=270, height=140)

            caption = (
                "Solid: measured, in windows of 100 ms or more. Dashed, same colour: the ideal. "
                "Solid on dashed is steady division by weight; saw teeth are long turns."
            )
            if any(len(point.runs) > 1 for point in points):
                caption += " The first valid repeat is shown."
            drafts.append(
                self._draft(
                    _numbered("over-time", number, cells),
                    _titled("Share over time", label),
                    caption,
                    self._grid(data, "across", panel, 3),
                )
            )
        return drafts

    def prediction(self) -> Draft | None:
        """Lines of what feedbac predicted and what was used, a panel a run; None if no run
        predicts. (P2's Figure 5.)"""
        data: Rows = []
        changes: dict[str, Rows] = {}
        for point in self.points:
            metrics = point.valid[0]
            if metrics.predictions is None or not len(metrics.predictions):
                continue
            where = self._where(point)
            run = where["across"] + (f", {where['cell']}" if where["cell"] else "")
            data += [
                {
                    "run": run,
                    "t": t_ms / 1e3,
                    "predicted": predicted / 1e3,
                    "used": used / 1e3,
                    "error": error * 100,
                }
                for t_ms, predicted, used, error, _ in metrics.predictions.iter_rows()
            ]
            events = point.runs[0].spec.device_events
            changes[run] = [{"t": event.at_ns / 1e9} for event in events]
        if not data:
            return None
        span = [0.0, max(row["t"] for row in data)]
        top = 1.05 * max(max(row["predicted"], row["used"]) for row in data)
        names = ["used", "predicted"]
        color = alt.Color(
            "what:N",
            title=None,
            scale=alt.Scale(domain=[*names, "error"], range=[PALETTE[0], PALETTE[1], PALETTE[5]]),
        )

        def panel(values: Rows, left: bool, bottom: bool) -> Any:
            def layer(what: Sequence[str], title: str, domain: list[float], height: int) -> Any:
                lines = [
                    {"t": row["t"], "what": name, "y": row[name]} for row in values for name in what
                ]
                x = alt.X(
                    "t:Q",
                    title="time since start, s" if bottom and "error" in what else None,
                    scale=alt.Scale(domain=span, nice=False),
                    axis=alt.Axis(grid=False, tickCount=5),
                )
                y = alt.Y(
                    "y:Q",
                    title=title if left else None,
                    scale=alt.Scale(domain=domain, nice=False),
                    axis=alt.Axis(tickCount=height // 30),
                )
                base = alt.Chart(self._data(lines)).encode(x=x, y=y, color=color)
                return alt.layer(
                    alt.Chart(self._data(changes[values[0]["run"]]))
                    .mark_rule(strokeDash=[4, 3], color=INK)
                    .encode(x=x),
                    base.mark_line(strokeWidth=1.5),
                    base.mark_point(filled=True, size=18, opacity=1),
                ).properties(width=420, height=height)

            worst = max(1.0, *(row["error"] for row in values))
            return alt.vconcat(
                layer(names, "thousand sectors a period", [0, top], 150),
                layer(["error"], "error, %", [0, 1.05 * worst], 60),
                spacing=8,
            )

        caption = (
            "What feedbac predicted that a prediction period would use, and what it used, at the "
            "period's end; below, the error of the prediction. Each period's prediction rests on "
            "those before it: after a change, which a dashed line marks, the first is wrong by "
            "all of the change."
        )
        return self._draft(
            "prediction", "Credit, predicted and used", caption, self._grid(data, "run", panel, 2)
        )

    def latencies(self) -> list[Draft]:
        """Cumulative latency, a panel a scheduler."""
        drafts = []
        cells = self._cells()
        for number, (label, points) in enumerate(cells[:PANEL_ROWS]):
            data: Rows = []
            for point in points:
                for lane in self.lanes(point.valid[0]):
                    for at, nines in _lane_cdf(point.valid, lane):
                        data.append(
                            {**self._where(point), "lane": lane.label, "us": at, "nines": nines}
                        )
            if not data:
                continue
            span = [min(row["us"] for row in data) / 1.05, max(row["us"] for row in data) * 1.05]
            top = max(row["nines"] for row in data)

            def panel(
                values: Rows, left: bool, bottom: bool, span: Any = span, top: float = top
            ) -> Any:
                return (
                    alt.Chart(self._data(values))
                    .mark_line(strokeWidth=2, interpolate="step-after")
                    .encode(
                        x=alt.X(
                            "us:Q",
                            title="latency (log)" if bottom else None,
                            scale=alt.Scale(type="log", domain=span, nice=False),
                            axis=alt.Axis(values=_log_ticks(*span), labelExpr=_LATENCY_LABEL),
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
                        color=self._lane_color(),
                    )
                    .properties(width=270, height=160)
                )

            caption = (
                "Cumulative latency of each tenant, all its requests. The vertical axis gives each "
                "further nine the same height, so the tail is as visible as the median. "
                "Further left is faster; a curve that bends right near the top has a long tail."
            )
            drafts.append(
                self._draft(
                    _numbered("latency", number, cells),
                    _titled("Latency", label),
                    caption,
                    self._grid(data, "across", panel, 3),
                )
            )
        return drafts

    def cached_rates(self) -> Draft | None:
        """Throughput by cache, grouped by a key of numbers if there is one. (P4's Figures 1, 3 to
        5.)"""
        caption = "How fast each cache is, over the time that the load worked."
        return self._by_cache(
            "cached-throughput", "Throughput", caption, cached.throughput, self._rate_bars
        )

    def cached_latencies(self) -> Draft | None:
        """Mean latency by cache; None if nobody tells it. (P4's Figure 2.)"""
        caption = "Mean latency of a request. The axis is logarithmic: further left is faster."
        return self._by_cache(
            "cached-latency", "Mean latency", caption, cached.mean_latency, self._latency_dots
        )

    def _by_cache(
        self,
        name: str,
        title: str,
        caption: str,
        measure: Callable[[TenantMetrics], float | None],
        draw: Callable[[Rows, "_Grouped"], Callable[[Rows, bool, bool], Any]],
    ) -> Draft | None:
        """A panel for each combination of the other keys."""
        group = self._group_key()
        rest = [key for key in self.rest_of(self.across) if key != group]
        data: Rows = []
        for point in self.points:
            if (found := cached.of_first(point, measure)) is not None:
                data.append(
                    {
                        "across": point.point.get(self.across, point.scheduler),
                        "group": point.point.get(group, "") if group else "",
                        "cell": text.label(point.point, rest, self.short),
                        "value": found.mean,
                    }
                )
        if not data:
            return None
        values = self._values(group) if group else [""]
        columns = 2 if len({row["cell"] for row in data}) in (2, 4) else 3
        across = list(dict.fromkeys(row["across"] for row in data))
        how = _Grouped(across, values, 690 // columns)
        if group:
            title += f": {self.short[group]} {', '.join(values)} from above"
        return self._draft(name, title, caption, self._grid(data, "cell", draw(data, how), columns))

    def rest_of(self, across: str) -> list[str]:
        """The keys that differ between points, but this."""
        return [key for key in self.keys if key != across and len(self._values(key)) > 1]

    def _group_key(self) -> str:
        """A key of at least three numbers; "" if there is none."""
        for key in self.rest_of(self.across):
            values = self._values(key)
            if len(values) >= 3 and all(_number(value) is not None for value in values):
                return key
        return ""

    def _rate_bars(self, data: Rows, how: "_Grouped") -> Callable[[Rows, bool, bool], Any]:
        for row in data:
            row["text"] = numbers.rate(row["value"])
            row["value"] /= 1e6

        def panel(values: Rows, left: bool, bottom: bool) -> Any:
            top = max(row["value"] for row in values) * 1.3
            base = how.base(alt.Chart(self._data(values)), left)
            x = alt.X(
                "value:Q",
                title="MB/s" if bottom else None,
                scale=alt.Scale(domain=[0, top], nice=False),
                axis=alt.Axis(tickCount=4),
            )
            return alt.layer(
                base.mark_bar().encode(x=x, color=how.color()),
                base.mark_text(align="left", dx=3, fontSize=9, color=INK).encode(
                    x=x, text="text:N"
                ),
            ).properties(width=how.width, height=how.height())

        return panel

    def _latency_dots(self, data: Rows, how: "_Grouped") -> Callable[[Rows, bool, bool], Any]:
        for row in data:
            row["text"] = numbers.time(row["value"])
            row["value"] /= 1e3

        def panel(values: Rows, left: bool, bottom: bool) -> Any:
            low = min(row["value"] for row in values)
            high = max(row["value"] for row in values)
            # Room for the text behind the last dot.
            span = [low / 1.3, high * 1.3 * (high / low * 2) ** 0.3]
            base = how.base(alt.Chart(self._data(values)), left)
            x = alt.X(
                "value:Q",
                title="latency (log)" if bottom else None,
                scale=alt.Scale(type="log", domain=span, nice=False),
                axis=alt.Axis(values=_log_ticks(*span), labelExpr=_LATENCY_LABEL),
            )
            return alt.layer(
                base.mark_point(filled=True, size=45, opacity=1).encode(x=x, color=how.color()),
                base.mark_text(align="left", dx=6, fontSize=9, color=INK).encode(
                    x=x, text="text:N"
                ),
            ).properties(width=how.width, height=how.height())

        return panel

    def _data(self, values: Rows) -> Any:
        name = f"d{len(self.datasets)}"
        self.datasets[name] = values
        return alt.NamedData(name)

    def _draft(self, name: str, title: str, caption: str, chart: Any) -> Draft:
        """A finished chart, with the data named since the one before."""
        datasets, self.datasets = self.datasets, {}
        if self.partial:
            caption += " Invalid and failed runs are not drawn."
        return Draft(name, title, caption, chart, datasets)

    def _grid(
        self, data: Rows, by: str, panel: Callable[[Rows, bool, bool], Any], columns: int
    ) -> Any:
        """One panel for each value of `by`. panel: takes its rows, and whether it stands in the
        first column, and in the last row of its column; axes are titled only there. (Facets
        would draw axes below empty places and none above them.)"""
        groups: dict[str, Rows] = {}
        for row in data:
            groups.setdefault(row[by], []).append(row)
        charts = []
        for place, (label, values) in enumerate(groups.items()):
            chart = panel(values, place % columns == 0, place + columns >= len(groups))
            charts.append(chart.properties(title=_panel_title(label)) if label else chart)
        return alt.concat(*charts, columns=columns, spacing=20)

    def _cells(self) -> list[tuple[str, list[PointView]]]:
        cells: dict[str, list[PointView]] = {}
        for point in self.points:
            cells.setdefault(text.label(point.point, self.rest, self.short), []).append(point)
        return list(cells.items())

    def _where(self, point: PointView) -> dict[str, str]:
        across = point.point.get(self.across, point.scheduler)
        if self.across != "scheduler":
            across = f"{self.short[self.across]} {across}"
        cell = text.label(point.point, self.rest, self.short)
        return {"across": across, "cell": cell, "scheduler": point.scheduler}

    def _order(self) -> list[str]:
        return list(dict.fromkeys(self._where(point)["across"] for point in self.points))

    def _values(self, key: str) -> list[str]:
        return list(dict.fromkeys(p.point[key] for p in self.points if key in p.point))

    def _lane_color(self) -> Any:
        return alt.Color(
            "lane:N",
            title=None,
            scale=alt.Scale(domain=self.lane_order, range=_cycle(len(self.lane_order))),
        )


def _lane_over_time(metrics: RunMetrics, lane: Lane) -> Iterable[tuple[float, float, float]]:
    """(s after the barrier, share in percent, ideal in percent), the last value once more at
    the end of its window; windows are joined until there are at most MAX_TIME_POINTS."""
    at = metrics.windows
    names = [metrics.tenants[i].name for i in lane.members]
    totals = at.totals()
    joined = -(-at.count // MAX_TIME_POINTS) if at.count else 1
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


def _lane_cdf(valid: Sequence[RunMetrics], lane: Lane) -> list[tuple[float, float]]:
    """(latency in us, -log10 of the fraction above it) over all repeats."""
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
    for upper, fraction in latency.cdf(buckets, MAX_CDF_POINTS):
        # The slowest request ends the curve half a request below 100 %.
        above = max(1 - fraction, 0.5 / count)
        nines = -math.log10(above)
        points.append((upper / 1000, min(nines, DEEPEST_NINES)))
        if nines >= DEEPEST_NINES:
            break
    return points


def _slowdown(metrics: RunMetrics, lane: Lane) -> float | None:
    found = [s for i in lane.members if (s := metrics.tenants[i].slowdown) is not None]
    return sum(found) / len(found) if found else None


def _mean(point: PointView, metric: str) -> float:
    value = point.estimate(metric)
    return value.mean if value else 0.0


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _cycle(count: int) -> list[str]:
    return [PALETTE[i % len(PALETTE)] for i in range(count)]


def _shades(count: int) -> list[str]:
    """Blues from pale to dark."""
    ends = ((0xB5, 0xD3, 0xE8), (0x00, 0x55, 0x88))
    steps = [at / max(1, count - 1) for at in range(count)]
    return [
        "#" + "".join(f"{round(a + (b - a) * at):02X}" for a, b in zip(*ends, strict=True))
        for at in steps
    ]


def _decades(low: float, high: float) -> list[float]:
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; on less than two decades 1, 2, 5 as well; else the two ends, rounded."""
    if high / low >= 100:
        return _decades(low, high)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (digit * 10.0**power for power in powers for digit in (1, 2, 5))
    ticks = [step for step in steps if low <= step <= high]
    if len(ticks) >= 2:
        return ticks
    inner = (high / low) ** 0.1  # a little away from the edges
    return sorted({float(f"{low * inner:.3g}"), float(f"{high / inner:.3g}")})


def _panel_title(label: str) -> Any:
    return alt.TitleParams(label, anchor="start", fontSize=12, fontWeight=600, color=INK)


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


def _numbered(name: str, number: int, cells: Sequence[object]) -> str:
    return f"{name}-{number + 1}" if len(cells) > 1 else name


def _titled(title: str, label: str) -> str:
    return f"{title}: {label}" if label else title

# SPDX-License-Identifier: GPL-2.0-only
"""The common look of all figures, and the conversion of a chart to SVG and PNG by vl-convert."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import vl_convert

from isoblk.report.figures.svg import finish

Rows = list[dict[str, Any]]
Panel = Callable[[Rows, bool, bool], Any]
"""Draws the rows of a panel, given whether it is in the first column, and in the last row of its
column: only there axes have titles."""

PNG_SCALE = 1.5

# Okabe and Ito's palette for the colour-blind, without its yellow (too pale on white), in an order
# that also distinguishes neighbours in grey; the last two are P. Tol's. Nine, the number of
# schedulers and controllers.
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
INK = "#222222"
FAINT = "#6b6b6b"
MUTED = "#878e96"
GRID = "#e6e6e6"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

LATENCY_LABEL = (
    "datum.value < 1 ? format(datum.value * 1000, '~g') + ' ns' : datum.value < 1000 ? "
    "format(datum.value, '~g') + ' µs' : datum.value < 1e6 ? "
    "format(datum.value / 1000, '~g') + ' ms' : format(datum.value / 1e6, '~g') + ' s'"
)
"""Vega's expression for the labels of an axis in microseconds."""

_MOST_SAID = 40  # values in a figure's description


@dataclass(frozen=True)
class Figure:
    """name: of its files. caption: what to look at. svg: the final SVG. drawn: the SVG before its
    texts were stretched to their widths. width: in pixels. narrow: the SVG for a narrow screen; ""
    if there is one for all."""

    name: str
    title: str
    caption: str
    svg: str
    drawn: str
    width: int
    narrow: str = ""

    def png(self) -> bytes:
        """Return the figure as PNG."""
        return vl_convert.svg_to_png(self.drawn, scale=PNG_SCALE)


@dataclass(frozen=True)
class Draft:
    """A chart before it is rendered. says: its main values as text, for screen readers. bare:
    without title and footer, which only its description has. narrow: the draft for a narrow screen,
    if it differs."""

    name: str
    title: str
    caption: str
    chart: Any  # Altair's chart classes have no common public type
    datasets: Mapping[str, Rows]  # the charts refer to data by name, because Altair copies its data
    says: Sequence[str] = ()
    bare: bool = False
    narrow: Any = None


@dataclass
class Datasets:
    """The data of one draft's charts, by name."""

    named: dict[str, Rows] = field(default_factory=dict)

    def add(self, values: Rows) -> Any:
        """Store rows, and return the reference for a chart."""
        name = f"d{len(self.named)}"
        self.named[name] = values
        return alt.NamedData(name)


def render(draft: Draft, footer: str | list[str]) -> Figure:
    """Render a draft. footer: one or more lines below the title."""
    title = alt.TitleParams(
        draft.title,
        subtitle=footer,
        anchor="start",
        fontSize=15,
        fontWeight=600,
        color=INK,
        subtitleColor=FAINT,
        subtitleFontSize=12,
        subtitlePadding=5,
        offset=14,
    )
    config = alt.Config(
        font=FONT,
        background="white",
        padding=8,
        axis=alt.AxisConfig(
            labelColor=INK,
            titleColor=INK,
            titleFontWeight="normal",
            labelFontSize=12,
            titleFontSize=12,
            gridColor=GRID,
            domainColor="#888888",
            tickColor="#888888",
            titlePadding=8,
        ),
        legend=alt.LegendConfig(
            labelFontSize=12,
            titleFontSize=12,
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
    described = _description(draft, footer)

    def drawn(chart: Any) -> str:
        spec = _plain(chart) | {"config": config.to_dict(), "datasets": draft.datasets}
        if not draft.bare:
            spec["title"] = title.to_dict()
        svg: str = vl_convert.vegalite_to_svg(spec, "6.4")
        return svg

    svg = drawn(draft.chart)
    named = finish(svg, draft.name, draft.title, described)
    narrow = ""
    if draft.narrow is not None:
        narrow = finish(drawn(draft.narrow), f"{draft.name}-narrow", draft.title, described)
    wide = round(float(re.findall(r'\bwidth="([\d.]+)"', svg)[0]))
    return Figure(draft.name, draft.title, draft.caption, named, svg, wide, narrow)


def _description(draft: Draft, footer: str | list[str]) -> str:
    said = list(draft.says[:_MOST_SAID])
    if left := len(draft.says) - len(said):
        said.append(f"and {left} more")
    made = footer if isinstance(footer, str) else "; ".join(footer)
    values = f" {'; '.join(said)}." if said else ""
    return f"{draft.caption}{values} {made}."


def spoken(data: Rows, value: Callable[[dict[str, Any]], str]) -> list[str]:
    """Format values as text, by point: "bfq, rw randread: t1 54.1 %, t2 27.0 %". Rows have
    "across", "cell" and perhaps "lane"."""
    groups: dict[str, list[str]] = {}
    for row in data:
        point = ", ".join(filter(None, (row["across"], row["cell"])))
        lane = row.get("lane", "")
        groups.setdefault(point, []).append(f"{lane} {value(row)}".strip())
    return [f"{point}: {', '.join(values)}" for point, values in groups.items()]


def grid(data: Rows, by: str, panel: Panel, columns: int) -> Any:
    """Return one panel for each value of `by`. (Facets would draw axes below empty cells and none
    above them.)"""
    groups: dict[str, Rows] = {}
    for row in data:
        groups.setdefault(row[by], []).append(row)
    panels = []
    for place, (label, values) in enumerate(groups.items()):
        chart = panel(values, place % columns == 0, place + columns >= len(groups))
        panels.append(_plain(titled_panel(chart, label)))
    # alt.concat() would copy each panel several times, which takes longer than drawing.
    return {"concat": panels, "columns": columns, "spacing": 20}


def _plain(chart: Any) -> dict[str, Any]:
    """Return a chart as a dictionary; one from grid() is returned unchanged."""
    if isinstance(chart, dict):
        return chart
    of_a_whole = ("$schema", "config", "datasets")
    spec = chart.to_dict(validate=False)
    return {name: part for name, part in spec.items() if name not in of_a_whole}


def titled_panel(chart: Any, label: str) -> Any:
    """Return the panel with its title, if it has one."""
    if not label:
        return chart
    title = alt.TitleParams(label, anchor="start", fontSize=12, fontWeight=600, color=INK)
    return chart.properties(title=title)


def cycle(count: int) -> list[str]:
    """Return `count` colours of the palette, repeated from its start."""
    return [PALETTE[i % len(PALETTE)] for i in range(count)]


def shades(count: int) -> list[str]:
    """Return blues from pale to dark."""
    ends = ((0xB5, 0xD3, 0xE8), (0x00, 0x55, 0x88))
    steps = [at / max(1, count - 1) for at in range(count)]
    return [
        "#" + "".join(f"{round(a + (b - a) * at):02X}" for a, b in zip(*ends, strict=True))
        for at in steps
    ]


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten from low to high."""
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten; below two decades also 1, 2, 5; else the two ends, rounded."""
    if high / low >= 100:
        return decades(low, high)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (digit * 10.0**power for power in powers for digit in (1, 2, 5))
    ticks = [step for step in steps if low <= step <= high]
    if len(ticks) >= 2:
        return ticks
    inner = (high / low) ** 0.1  # a distance from the edges
    return sorted({float(f"{low * inner:.3g}"), float(f"{high / inner:.3g}")})


def slug(label: str) -> str:
    """Return the label as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


def numbered(name: str, number: int, cells: Sequence[object]) -> str:
    """Return the name of one of several figures; without a number for a single one."""
    return f"{name}-{number + 1}" if len(cells) > 1 else name


def titled(title: str, label: str) -> str:
    """Return the title of one of several figures."""
    return f"{title}: {label}" if label else title

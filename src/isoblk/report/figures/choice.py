# SPDX-License-Identifier: GPL-2.0-only
"""The answer as a figure: the result of each choice, the best first."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt

from isoblk.analysis.metrics import Analysis
from isoblk.report.choices import DIVIDES, NEARLY, Choice, Choices
from isoblk.report.figures.drawing import (
    INK,
    MUTED,
    PALETTE,
    Datasets,
    Draft,
    Rows,
    decades,
)
from isoblk.report.figures.svg import width
from isoblk.report.undivided import ranking
from isoblk.run import numbers

NAME = "choice"
_MOST = 11  # choices
_ROW, _FONT = 24, 12
_PANEL, _NARROW = 132, 250  # widths: of panels in a row, and of panels in a column
_BENCH = 336  # of the only panel
_LEAST = 0.0005  # a smaller error is drawn here
_MOST_TIMES = 1e6  # a longer wait is drawn here
_TICKS = 3
_ROOM = 8  # between a mark and its text


def draw(choices: Choices) -> Draft | None:
    """Draw a panel each for error, speed and the light tenant's wait; None without choices."""
    none = [choices.none] if choices.none else []
    found = [*choices.ranked[: _MOST - len(none)], *none]
    if len(found) < 2:
        return None
    datasets = Datasets()
    beside = _panels(datasets, found, choices, _PANEL)
    if not beside:
        return None
    below = _panels(datasets, found, choices, _NARROW)
    caption = "The best first."
    if any(one.divides for one in found if one is not choices.none) and choices.division:
        caption += f" Blue: divides within {DIVIDES * 100:g} %."
    if any(len(one.points) > 1 for one in found):
        caption += " Each at the point where it is worst."
    left = len(choices.ranked) + len(none) - len(found)
    if left > 0:
        caption += f" {left} more are in the tables."
    return Draft(
        NAME,
        "What each comes to",
        caption,
        alt.hconcat(*beside, spacing=14),
        datasets.named,
        _said(found),
        bare=True,
        narrow=alt.vconcat(*below, spacing=14),
    )


def _panels(datasets: Datasets, found: list[Choice], choices: Choices, wide: int) -> list[Any]:
    """Return the panels; of panels in a row the first has the names."""
    names = [one.name for one in found]
    panels = [
        *(_errors(datasets, found, choices.none, wide) if choices.division else ()),
        *_speeds(datasets, found, choices.none, wide),
        *_waits(datasets, found, choices, wide),
    ]
    return [
        alt.layer(
            *(layer.encode(y=_places(names, labels=at == 0 or wide == _NARROW)) for layer in layers)
        ).properties(width=wide, height=_ROW * len(found))
        for at, layers in enumerate(panels)
    ]


def draw_caches(analysis: Analysis) -> Draft | None:
    """Draw the throughput of each cache relative to the fastest; None without several."""
    found = ranking(analysis)
    if found is None:
        return None
    names = found.names[:_MOST]
    data: Rows = [
        {
            "name": name,
            "value": found.of_best[name],
            "text": numbers.percent(found.of_best[name]),
            "color": PALETTE[0] if name in found.caches else MUTED,
        }
        for name in names
    ]
    datasets = Datasets()
    layers = _bars(datasets, data, ["throughput, % of the fastest"], _BENCH)
    chart = alt.layer(*(layer.encode(y=_places(names, labels=True)) for layer in layers))
    chart = chart.properties(width=_BENCH, height=_ROW * len(names))
    caption = (
        "Throughput over that of the fastest at the same point: the geometric mean over all points."
        " Grey: without a cache."
    )
    says = [f"{row['name']}: {row['text']}" for row in data]
    return Draft(NAME, "How fast each is", caption, chart, datasets.named, says, bare=True)


def _places(names: list[str], *, labels: bool) -> Any:
    return alt.Y(
        "name:N",
        sort=names,
        title=None,
        scale=alt.Scale(domain=names),
        axis=alt.Axis(
            labels=labels,
            ticks=False,
            domain=False,
            grid=False,
            labelFontSize=_FONT,
            labelLimit=230,
            labelPadding=8,
        ),
    )


def _said(found: list[Choice]) -> list[str]:
    told = []
    for one in found:
        parts = []
        if one.error:
            parts.append(f"off by {numbers.percent(one.error.value)}")
        if one.speed:
            parts.append(f"{numbers.percent(one.speed.value)} of none")
        if one.wait and math.isfinite(one.wait.p99):
            parts.append(f"{one.wait.tenant} waits {numbers.time(one.wait.p99)}")
        told.append(f"{one.name}: {', '.join(parts)}")
    return told


def _errors(
    datasets: Datasets, found: list[Choice], none: Choice | None, wide: int
) -> Iterator[list[Any]]:
    """Draw errors: dots on a logarithmic axis."""
    values = {one.name: one.error.value for one in found if one.error}
    texts = {name: _percent(value) for name, value in values.items()}
    if not values:
        return
    data = _rows(found, none, {name: max(value, _LEAST) for name, value in values.items()}, texts)
    high = max(NEARLY * 10, *(row["value"] for row in data))
    yield _dots(datasets, data, ["share error,", "% (log)"], (_LEAST, high), DIVIDES, "%", wide)


def _waits(
    datasets: Datasets, found: list[Choice], choices: Choices, wide: int
) -> Iterator[list[Any]]:
    """Draw the light tenant's wait relative to its wait alone."""
    waits = {one.name: one.wait for one in found if one.wait}
    if not waits:
        return
    values = {name: min(wait.p99 / wait.alone, _MOST_TIMES) for name, wait in waits.items()}
    texts = {
        name: numbers.time(wait.p99) if math.isfinite(wait.p99) else "never"
        for name, wait in waits.items()
    }
    who = choices.watched[0] if len(choices.watched) == 1 else "the light"
    title = [f"p99 of {who},", "times alone (log)"]
    data = _rows(found, choices.none, values, texts)
    low, high = min(values.values()), max(values.values())
    yield _dots(datasets, data, title, (min(0.9, low), max(10.0, high)), None, "x", wide)


def _percent(value: float) -> str:
    return "< 0.1 %" if value < _LEAST else numbers.percent(value)


def _rows(
    found: list[Choice], none: Choice | None, values: Mapping[str, float], texts: Mapping[str, str]
) -> Rows:
    return [
        {
            "name": one.name,
            "value": values[one.name],
            "text": texts[one.name],
            "color": PALETTE[0] if one.divides and one is not none else MUTED,
        }
        for one in found
        if one.name in values
    ]


def _ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, thinned so that their labels fit."""
    powers = decades(low, high * 1.001)
    return powers[:: math.ceil(len(powers) / _TICKS)]


def _dots(
    datasets: Datasets,
    data: Rows,
    title: list[str],
    span: tuple[float, float],
    limit: float | None,
    unit: str,
    wide: int,
) -> list[Any]:
    low, high = span
    column = max(width(row["text"], _FONT) for row in data) + _ROOM
    # The figures have their own column, so that no mark overlaps one.
    end = low * (high / low) ** (wide / (wide - column - _ROOM))
    times = "* 100" if unit == "%" else ""
    x: dict[str, Any] = {
        "title": title,
        "scale": alt.Scale(type="log", domain=[low * 0.8, end], nice=False),
        "axis": alt.Axis(
            values=_ticks(low, high),
            labelExpr=f"format(datum.value {times}, '{'~g' if times else '~s'}')",
            labelFontSize=_FONT,
        ),
    }
    base = alt.Chart(datasets.add([row | {"from": low * 0.8} for row in data]))
    layers = [
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("from:Q", **x), x2="value:Q", color=alt.Color("color:N", scale=None)
        ),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x=alt.X("value:Q", **x), color=alt.Color("color:N", scale=None)
        ),
        base.mark_text(align="right", fontSize=_FONT, color=INK).encode(
            x=alt.value(wide), text="text:N"
        ),
    ]
    if limit is not None:
        # One mark per row, so that the layer has the rows' axis.
        lines = alt.Chart(datasets.add([{"name": row["name"], "limit": limit} for row in data]))
        tick = lines.mark_tick(thickness=1, size=_ROW, color="#888888", opacity=1)
        layers.insert(0, tick.encode(x=alt.X("limit:Q", **x)))
    return layers


def _speeds(
    datasets: Datasets, found: list[Choice], none: Choice | None, wide: int
) -> Iterator[list[Any]]:
    """Draw the retained bandwidth as bars."""
    values = {one.name: one.speed.value for one in found if one.speed}
    if not values:
        return
    texts = {name: numbers.percent(value) for name, value in values.items()}
    data = _rows(found, none, values, texts)
    yield _bars(datasets, data, ["bandwidth,", "% of none"], wide)


def _bars(datasets: Datasets, data: Rows, title: list[str], wide: int) -> list[Any]:
    """Return bars of fractions, and their figures in a column."""
    high = max(1.0, *(row["value"] for row in data))
    column = max(width(row["text"], _FONT) for row in data) + _ROOM
    x: dict[str, Any] = {
        "title": title,
        "scale": alt.Scale(domain=[0, high * wide / (wide - column)], nice=False),
        "axis": alt.Axis(values=[0, 0.5, 1], labelExpr="datum.value * 100", labelFontSize=_FONT),
    }
    base = alt.Chart(datasets.add(data))
    return [
        base.mark_bar(height=10).encode(
            x=alt.X("value:Q", **x), color=alt.Color("color:N", scale=None)
        ),
        base.mark_text(align="right", fontSize=_FONT, color=INK).encode(
            x=alt.value(wide), text="text:N"
        ),
    ]

# SPDX-License-Identifier: GPL-2.0-only
"""Draw a trace: rate over time, sizes, addresses over time, hot blocks."""

import math
from typing import Any

import altair as alt

from isoblk.report.figures.drawing import PALETTE, Draft, Figure, Rows, render
from isoblk.trace.info import MAP_COLUMNS, MAP_ROWS, TraceInfo
from isoblk.trace.record import SECOND

_WIDTH, _HEIGHT = 560, 220
_POINTS = 300
_MOST_SIZES = 16
_COLORS = dict(zip(("read", "write", "trim"), PALETTE, strict=False))


def make_figures(info: TraceInfo, name: str) -> list[Figure]:
    """Return the figures of a trace. name: its title, for the footer."""
    footer = f"{name}: {info.records:,} records, {info.span_ns / SECOND:,.1f} s"
    with alt.utils.schemapi.debug_mode(False):  # checking against the schema is slow
        drafts = [_rate(info), _sizes(info), _map(info), _hot(info)]
        return [render(draft, footer) for draft in drafts]


def _rate(info: TraceInfo) -> Draft:
    joined = -(-len(info.reads_by_slice) // _POINTS)
    width = joined * info.slice_ns / SECOND
    data: Rows = [
        {"s": at * info.slice_ns / SECOND, "op": op, "iops": sum(slices[at : at + joined]) / width}
        for op, slices in (("read", info.reads_by_slice), ("write", info.writes_by_slice))
        for at in range(0, len(slices), joined)
    ]
    chart = (
        alt.Chart(alt.NamedData("d"))
        .mark_line(interpolate="step-after", strokeWidth=1)
        .encode(
            x=alt.X("s:Q", title="time, s", scale=alt.Scale(nice=False)),
            y=alt.Y("iops:Q", title="requests a second"),
            color=_color(["read", "write"]),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    caption = f"Requests in windows of {width:g} s; trims and flushes count as writes."
    return Draft("rate", "Rate over time", caption, chart, {"d": data})


def _sizes(info: TraceInfo) -> Draft:
    data: Rows = []
    for op in info.ops:
        if op.op == "flush":
            continue
        exact = len(op.sizes) <= _MOST_SIZES
        bins: dict[int, int] = {}
        for size, count in op.sizes:
            key = size if exact else 1 << math.ceil(math.log2(size))
            bins[key] = bins.get(key, 0) + count
        data += [
            {"op": op.op, "size": size, "label": _bytes(size), "share": 100 * count / info.records}
            for size, count in bins.items()
        ]
    present = [op.op for op in info.ops if op.op != "flush"]
    order = list(dict.fromkeys(row["label"] for row in sorted(data, key=lambda r: r["size"])))
    chart = (
        alt.Chart(alt.NamedData("d"))
        .mark_bar()
        .encode(
            x=alt.X("label:N", title="request size", sort=order, axis=alt.Axis(labelAngle=-35)),
            xOffset=alt.XOffset("op:N", scale=alt.Scale(domain=present)),
            y=alt.Y("share:Q", title="of all records, %"),
            color=_color(present),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    caption = "Sizes; with many different ones, the power of two that holds them."
    return Draft("sizes", "Request sizes", caption, chart, {"d": data})


def _color(ops: list[str]) -> Any:
    scale = alt.Scale(domain=ops, range=[_COLORS[op] for op in ops])
    return alt.Color("op:N", title=None, scale=scale)


def _map(info: TraceInfo) -> Draft:
    seconds = info.span_ns / SECOND / MAP_COLUMNS
    unit, factor = ("GB", 1e9) if info.max_end >= 1e9 else ("MB", 1e6)
    height = info.max_end / factor / MAP_ROWS
    data: Rows = [
        {
            "s": column * seconds,
            "s2": (column + 1) * seconds,
            "at": row * height,
            "at2": (row + 1) * height,
            "count": count,
        }
        for row, counts in enumerate(info.map)
        for column, count in enumerate(counts)
        if count
    ]
    chart = (
        alt.Chart(alt.NamedData("d"))
        .mark_rect()
        .encode(
            x=alt.X("s:Q", title="time, s", scale=alt.Scale(nice=False, zero=False)),
            x2="s2:Q",
            y=alt.Y("at:Q", title=f"address, {unit}", scale=alt.Scale(nice=False)),
            y2="at2:Q",
            color=alt.Color(
                "count:Q",
                title="requests",
                scale=alt.Scale(type="log", scheme="blues"),
                legend=alt.Legend(orient="right"),
            ),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    caption = "Where requests start, and when. Volumes lie one above the other."
    return Draft("addresses", "Addresses over time", caption, chart, {"d": data})


def _hot(info: TraceInfo) -> Draft:
    points = [(0.0, 0.0), *info.hot, (1.0, 1.0)]
    data: Rows = [{"blocks": 100 * part, "requests": 100 * got} for part, got in points]
    axis = alt.Scale(domain=[0, 100], nice=False)
    base = alt.Chart(alt.NamedData("d")).encode(
        x=alt.X("blocks:Q", title="hottest blocks, % of those touched", scale=axis),
    )
    line: Any = base.mark_line(point=True, color=PALETTE[0]).encode(
        y=alt.Y("requests:Q", title="of the requests, %", scale=axis)
    )
    even = base.mark_line(strokeDash=[4, 3], color="#888888").encode(
        y=alt.Y("blocks:Q", scale=axis)
    )
    chart = alt.layer(even, line).properties(width=300, height=_HEIGHT)
    caption = (
        f"How much of the load the hottest blocks of {_bytes(info.block_bytes)} take; the dashed "
        "line is a load that is the same everywhere."
    )
    return Draft("hot-spots", "Hot spots", caption, chart, {"d": data})


def _bytes(size: int) -> str:
    for unit, factor in (("M", 1 << 20), ("k", 1 << 10)):
        if size >= factor and size % (factor // 2) == 0:
            return f"{size / factor:g}{unit}"
    return str(size)

# SPDX-License-Identifier: GPL-2.0-only
"""Draw share error and total over a numeric key of the matrix."""

from collections.abc import Iterator, Mapping

import altair as alt

from isoblk.report.figures.drawing import (
    Datasets,
    Draft,
    Rows,
    decades,
    slug,
    spoken,
    titled_panel,
)
from isoblk.report.figures.scene import PANEL_ROWS, Scene, mean, number

_LEAST_ERROR = 0.1  # percent; start of the logarithmic axis of errors


def draw(scene: Scene) -> Iterator[Draft]:
    """Draw one figure for each matrix key with at least three numbers."""
    for key in scene.keys:
        values = scene.values(key)
        numbers = {value: found for value in values if (found := number(value)) is not None}
        if len(numbers) >= 3 and len(numbers) == len(values):
            yield _by(scene, key, numbers)


def _by(scene: Scene, key: str, numbers: Mapping[str, float]) -> Draft:
    rest = scene.varying_but(key, "scheduler")
    data: Rows = [
        {
            "x": numbers[point.point[key]],
            "scheduler": point.scheduler,
            "cell": scene.cell(point, rest),
            "error": max(mean(point, "share_error") * 100, _LEAST_ERROR),
            "iops": mean(point, "total_iops") / 1e3,
        }
        for point in scene.points
        if key in point.point
    ]
    low, high = min(numbers.values()), max(numbers.values())
    log = low > 0 and high / low >= 8
    names = alt.Scale(domain=scene.schedulers)
    color = alt.Color(
        "scheduler:N",
        title=None,
        scale=alt.Scale(
            domain=scene.schedulers, range=[scene.scheduler_colors[s] for s in scene.schedulers]
        ),
    )
    ceiling = max(100.0, *(row["error"] for row in data)) * 1.1
    datasets = Datasets()
    stacked = []
    for label in list(dict.fromkeys(row["cell"] for row in data))[:PANEL_ROWS]:
        here = datasets.add([row for row in data if row["cell"] == label])
        pair = []
        for y in (
            alt.Y(
                "error:Q",
                title="share error, % (log)",
                scale=alt.Scale(type="log", domain=[_LEAST_ERROR, ceiling], nice=False),
                axis=alt.Axis(values=decades(_LEAST_ERROR, ceiling), format=","),
            ),
            alt.Y("iops:Q", title="total, thousand IOPS", scale=alt.Scale(zero=True)),
        ):
            base = alt.Chart(here).encode(
                x=alt.X(
                    "x:Q",
                    title=key + (" (log)" if log else ""),
                    scale=alt.Scale(type="log" if log else "linear", nice=False),
                    # The axis' default format rounds 100 to 1e+2.
                    axis=alt.Axis(
                        values=sorted(numbers.values()),
                        grid=False,
                        labelExpr="format(datum.value, ',')",
                    ),
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
            pair.append(titled_panel(panel, label))
        stacked.append(alt.hconcat(*pair, spacing=36))
    caption = (
        f"Left: the worst tenant's deviation from its ideal share as {scene.short[key]} grows; "
        f"lower is better, values below {_LEAST_ERROR:g} % are drawn there. Right: the total "
        "throughput at the same points."
    )
    return Draft(
        f"scaling-{slug(key)}",
        f"Share error and total against {key}",
        caption,
        alt.vconcat(*stacked, spacing=18),
        datasets.named,
        _said(data),
    )


def _said(data: Rows) -> list[str]:
    points: Rows = [
        {
            "across": row["scheduler"],
            "cell": row["cell"],
            "text": f"at {row['x']:g} {row['error']:.1f} % and {row['iops']:,.1f} thousand IOPS",
        }
        for row in data
    ]
    return spoken(points, lambda row: str(row["text"]))

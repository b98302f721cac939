# SPDX-License-Identifier: GPL-2.0-only
"""Draw a scheduler's predictions and the actual use."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from isoblk.report.figures.drawing import INK, PALETTE, Datasets, Draft, Rows, grid
from isoblk.report.figures.scene import Scene

_NAMES = ("used", "predicted")


def draw(scene: Scene) -> Iterator[Draft]:
    """Draw lines of feedbac's predictions and of the actual use, a panel per run with predictions.
    (P2's Figure 5.)"""
    data: Rows = []
    changes: dict[str, Rows] = {}
    for point in scene.points:
        metrics = point.valid[0]
        if metrics.predictions is None or not len(metrics.predictions):
            continue
        where = scene.where(point)
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
        return
    span = [0.0, max(row["t"] for row in data)]
    top = 1.05 * max(max(row["predicted"], row["used"]) for row in data)
    color = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=[*_NAMES, "error"], range=[PALETTE[0], PALETTE[1], PALETTE[5]]),
    )
    datasets = Datasets()

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
            base = alt.Chart(datasets.add(lines)).encode(x=x, y=y, color=color)
            return alt.layer(
                alt.Chart(datasets.add(changes[values[0]["run"]]))
                .mark_rule(strokeDash=[4, 3], color=INK)
                .encode(x=x),
                base.mark_line(strokeWidth=1.5),
                base.mark_point(filled=True, size=18, opacity=1),
            ).properties(width=420, height=height)

        worst = max(1.0, *(row["error"] for row in values))
        return alt.vconcat(
            layer(_NAMES, "thousand sectors a period", [0, top], 150),
            layer(["error"], "error, %", [0, 1.05 * worst], 60),
            spacing=8,
        )

    caption = (
        "What feedbac predicted that a prediction period would use, and what it used, at the "
        "period's end; below, the error of the prediction. Each period's prediction rests on "
        "those before it: after a change, which a dashed line marks, the first is wrong by "
        "all of the change."
    )
    chart = grid(data, "run", panel, 2)
    runs = dict.fromkeys(row["run"] for row in data)
    worst = {run: max(row["error"] for row in data if row["run"] == run) for run in runs}
    says = [f"{run}: wrong by {error:.1f} % at most" for run, error in worst.items()]
    yield Draft("prediction", "Credit, predicted and used", caption, chart, datasets.named, says)

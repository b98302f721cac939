# SPDX-License-Identifier: GPL-2.0-only
"""Select and make a report's figures. Each kind has its own file.

Only valid runs are drawn. Up to 8 tenants are drawn individually; more are drawn as their weight
classes, or, with more than 8 classes, as the heaviest quarter and the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import altair as alt

from isoblk.analysis.metrics import Analysis
from isoblk.report import cached, disks
from isoblk.report.beside import Beside
from isoblk.report.choices import Choices
from isoblk.report.figures import (
    caches,
    choice,
    latency,
    over_time,
    prediction,
    published,
    scaling,
    shares,
    slowdown,
    totals,
)
from isoblk.report.figures.drawing import Draft, Figure, render
from isoblk.report.figures.scene import Scene

_Draw = Callable[[Scene], Iterator[Draft]]

_OF_BENCH: tuple[_Draw, ...] = (published.draw, caches.draw_rates, caches.draw_latencies)
_OF_TENANTS: tuple[_Draw, ...] = (
    published.draw,
    shares.draw,
    totals.draw,
    scaling.draw,
    slowdown.draw,
    over_time.draw,
    prediction.draw,
    latency.draw,
)


def silent(_: str) -> None:
    """Discard the message."""


def make_figures(
    analysis: Analysis, beside: Beside | None = None, say: Callable[[str], None] = silent
) -> list[Figure]:
    """Return all figures of a result set; [] without a valid run. The first is the comparison with
    `beside`, then the choices.

    Args:
        analysis: the result set.
        beside: shares of another result set to compare with.
        say: called with each figure's name before it is drawn.
    """
    if not any(point.valid for point in analysis.points):
        return []
    scene = Scene(analysis)
    footer = disks.footer(analysis)
    figures: list[Figure] = []

    def add(draft: Draft, below: str | list[str] = footer) -> None:
        say(f"drawing figure {len(figures) + 1}: {draft.title}")
        figures.append(render(_complete(draft, analysis), below))

    with alt.utils.schemapi.debug_mode(False):  # checking every part against the schema is slow
        if beside:
            for draft in shares.draw_beside(scene, beside):
                add(draft, [footer, beside.provenance])
        bench = cached.is_bench(analysis)
        if chosen := choice.draw_caches(analysis) if bench else choice.draw(Choices(analysis)):
            add(chosen)
        for draw in _OF_BENCH if bench else _OF_TENANTS:
            for draft in draw(scene):
                add(draft)
    return figures


def _complete(draft: Draft, analysis: Analysis) -> Draft:
    """Return the draft with a caption that names omitted runs."""
    if all(view.status == "valid" for view in analysis.views):
        return draft
    return replace(draft, caption=f"{draft.caption} Invalid and failed runs are not drawn.")

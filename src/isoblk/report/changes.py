# SPDX-License-Identifier: GPL-2.0-only
"""Show the differences of two result sets in the terminal."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from rich.console import Group, RenderableType
from rich.text import Text

from isoblk.analysis.compare import SIGNIFICANT, Comparison, Difference, PointComparison
from isoblk.analysis.inputs import Input
from isoblk.errors import printable
from isoblk.metrics.registry import SAYS, metric_text
from isoblk.report import tables, text
from isoblk.run import numbers
from isoblk.run.record import Unit

_MOST_INPUTS = 12
_MOST_POINTS = 4
_LONGEST = 40  # characters of an input's value
_HASHES = ("kernel build", "modules")


def comparison(
    result: Comparison, names: tuple[str, str], most: int | None = None
) -> RenderableType:
    """Return the differences of the inputs of A and B, the number of changed figures, and the
    changes, the worst first.

    Args:
        result: of isoblk.analysis.compare.
        names: names of A and B.
        most: maximum number of changes, and of lines of other long lists; None: all.
    """
    everything = most is None
    parts: list[RenderableType] = [
        *(Text(f"{side}: {printable(name)}") for side, name in zip("AB", names, strict=True)),
        *_inputs(result.inputs, everything),
        *_points(result, everything),
        *(Text(line) for line in _tally(result)),
    ]
    changes = result.changes()
    shown = changes if most is None else _first(changes, most)
    if shown:
        short = text.short_keys(list(dict.fromkeys(k for p in result.points for k in p.point)))
        keys = _varying([point.point for point in result.points], short)
        table = tables.new_table()
        for key in keys:
            table.add_column(short[key], no_wrap=True)
        table.add_column("metric", overflow="fold")
        for title in ("A", "B", "change"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        for point, one in shown:
            form = _form(one)
            table.add_row(
                *(point.point.get(key, "") for key in keys),
                one.metric,
                form(one.a),
                form(one.b),
                change_text(one),
                _verdict(one),
                style=_style(one),
            )
        if left := len(changes) - len(shown):
            table.caption = Text(
                f"{left} more: --all; --metric NAME and --only KEY=VALUE choose", style="dim"
            )
        parts.append(table)
    if any(one.p is not None for _, one in shown):
        parts.append(
            Text(f"p: Welch's t test of the repeats; {SIGNIFICANT:g} or more may be chance.", "dim")
        )
    return Group(*parts)


_Change = tuple[PointComparison, Difference]


def _first(changes: list[_Change], most: int) -> list[_Change]:
    """Return `most` changes, mostly the worst, and some of the better ones."""
    if len(changes) <= most:
        return changes
    better = [pair for pair in changes if (pair[1].worse or 0) < 0]
    kept = min(len(better), most // 4)
    return [*changes[: most - kept], *better[:kept]]


def change_text(one: Difference) -> str:
    """Format a change with its sign: "+12.0 %", of a deviation "+3.4 points"."""
    if one.change is None:
        return "new"
    if math.isinf(one.a) or math.isinf(one.b):
        return "without end" if one.b > one.a else "has an end"
    shown = f"{one.change * 100:+,.1f}" if abs(one.change) >= 0.001 else f"{one.change * 100:+.3f}"
    return f"{shown} {'points' if one.deviation else '%'}"


def _inputs(found: Sequence[Input], everything: bool) -> list[Text]:
    if not found:
        return [Text("The inputs are the same: software, device, tenants, study.")]
    shown = found if everything else found[:_MOST_INPUTS]
    lines = [Text("What differs in the inputs:", style="bold")]
    for one in shown:
        a, b = (_value(one.what, value) for value in (one.a, one.b))
        at = ""
        if one.several:
            at = f" at {one.at or 'one point'}; other values at others of {one.points}"
        lines.append(Text(f"  {one.what}: A {a}, B {b}{at}"))
    if left := len(found) - len(shown):
        lines.append(Text(f"  and {left} more: --all", style="dim"))
    return lines


def _value(what: str, value: str) -> str:
    if what in _HASHES:
        value = ", ".join(one.rpartition("-")[2] for one in value.split(", "))
    line = " ".join(value.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _points(result: Comparison, everything: bool) -> list[Text]:
    """Return lines on the points without a comparison."""
    lines = []
    notes = [
        (" ".join(point.point.values()) or "the only point", point.note)
        for point in result.points
        if point.note
    ]
    for side, points in (("A", result.only_a), ("B", result.only_b)):
        notes += [(" ".join(point.values()), f"only in {side}") for point in points]
    by_note: dict[str, list[str]] = {}
    for place, note in notes:
        by_note.setdefault(note, []).append(place)
    for note, where in by_note.items():
        shown = where if everything else where[:_MOST_POINTS]
        more = f" and {len(where) - len(shown)} more" if len(where) > len(shown) else ""
        lines.append(Text(f"{note}: {', '.join(shown)}{more}", style="yellow"))
    return lines


def _tally(result: Comparison) -> list[str]:
    identical = sum(point.identical for point in result.points)
    every = [difference for point in result.points for difference in point.differences]
    changed = [one for one in every if one.matters]
    counts = {
        "worse": sum(one.worse is not None and one.worse > 0 for one in changed),
        "better": sum(one.worse is not None and one.worse < 0 for one in changed),
        "neither": sum(one.worse is None for one in changed),
        "unchanged": len(every) - len(changed),
    }
    of = "point" if len(result.points) == 1 else "points"
    lines = [f"{len(result.points)} {of} in both, {identical} of them identical."]
    if every:
        figures = ", ".join(f"{count} {what}" for what, count in counts.items())
        lines.append(f"Figures of points that differ: {figures}.")
    return lines


def _varying(points: Sequence[Mapping[str, str]], short: Mapping[str, str]) -> list[str]:
    """Return the matrix's keys that distinguish these points; for a single point the first key."""
    keys = [key for key in short if len({point.get(key) for point in points}) > 1]
    return keys or list(short)[:1]


def _form(one: Difference) -> Callable[[float], str]:
    """Return the function that formats the values."""
    if one.metric.startswith(SAYS):
        return partial(numbers.figure, unit=cast(Unit, one.unit))
    return partial(metric_text, one.metric)


def _verdict(one: Difference) -> str:
    worse = one.worse
    told = "" if worse is None else "worse" if worse > 0 else "better"
    if one.p is None:
        return told
    return f"{told} {'p < 0.001' if one.p < 0.001 else f'p = {one.p:.3f}'}".strip()


def _style(one: Difference) -> str:
    if one.noise:
        return "dim"
    return "" if one.worse is None else "red" if one.worse > 0 else "green"

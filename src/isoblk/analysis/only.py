# SPDX-License-Identifier: GPL-2.0-only
"""Select some of a study's points by the matrix's keys."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from isoblk.analysis.metrics import Analysis
from isoblk.errors import UserError


def only(analyses: Sequence[Analysis], wanted: Sequence[str]) -> list[Analysis]:
    """Return the analyses with the selected points only.

    Args:
        analyses: of result sets that are shown together.
        wanted: "KEY=VALUE"; a repeated key matches any of its values, and every key must match. A
            key may be without its table ("rw" for "workload.rw") where that is unambiguous.

    Raises:
        UserError: a key or a value that no point has.
    """
    matches = matching([p.point for analysis in analyses for p in analysis.points], wanted)
    chosen = [
        replace(analysis, points=tuple(p for p in analysis.points if matches(p.point)))
        for analysis in analyses
    ]
    if not any(one.points for one in chosen):
        raise UserError(f"--only: no point is all of {', '.join(wanted)}")
    return chosen


def matching(
    points: Iterable[Mapping[str, str]], wanted: Sequence[str]
) -> Callable[[Mapping[str, str]], bool]:
    """Return a predicate for the selected points.

    Args:
        points: all points.
        wanted: as of only().

    Raises:
        UserError: a key or a value that no point has.
    """
    known: dict[str, dict[str, None]] = {}
    for point in points:
        for key, value in point.items():
            known.setdefault(key, {})[value] = None
    asked: dict[str, set[str]] = {}
    for text in wanted:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--only: {text!r} is not KEY=VALUE", next="as in scheduler=bfq")
        key = _key(name, known)
        if value not in known[key]:
            raise UserError(
                f"--only: no point has {key} {value!r}",
                next=f"known: {', '.join(known[key])}",
            )
        asked.setdefault(key, set()).add(value)
    return partial(_matches, asked=asked)


def _key(name: str, known: Collection[str]) -> str:
    if name in known:
        return name
    of_that_name = [key for key in known if key.rpartition(".")[2] == name]
    if len(of_that_name) != 1:
        raise UserError(f"--only: unknown key {name!r}", next=f"known: {', '.join(known)}")
    return of_that_name[0]


def _matches(point: Mapping[str, str], asked: Mapping[str, set[str]]) -> bool:
    return all(point.get(key) in values for key, values in asked.items())

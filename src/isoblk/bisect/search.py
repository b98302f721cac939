# SPDX-License-Identifier: GPL-2.0-only
"""Search for the first bad candidate, independent of kernels and metrics."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["good", "bad", "skipped"]

Order = Callable[[Collection[str], str], Sequence[str]]
"""Maps the good candidates and a bad one to those that may be the first bad one, perhaps including
the bad one. The candidate whose verdict halves the list best comes first."""


@dataclass(frozen=True)
class Found:
    """Result of a search.

    Attributes:
        good: good candidates, in the order of trials.
        bad: the first known bad candidate.
        open: skipped candidates that may also be the first bad one.
    """

    good: tuple[str, ...]
    bad: str
    open: tuple[str, ...]


def search(order: Order, good: str, bad: str, verdict_of: Callable[[str], Verdict]) -> Found:
    """Find the first bad candidate.

    Args:
        order: returns the candidates between the ends, the next to try first.
        good, bad: candidates with a known verdict.
        verdict_of: tries a candidate.
    """
    goods = [good]
    skipped: set[str] = set()
    while True:
        open_ = [one for one in order(goods, bad) if one != bad]
        untried = [one for one in open_ if one not in skipped]
        if not untried:
            return Found(tuple(goods), bad, tuple(open_))
        match verdict_of(untried[0]):
            case "good":
                goods.append(untried[0])
            case "bad":
                bad = untried[0]
            case "skipped":
                skipped.add(untried[0])


def line(names: Sequence[str]) -> Order:
    """Return the order of candidates in a linear history."""
    place = {name: at for at, name in enumerate(names)}

    def order(goods: Collection[str], bad: str) -> list[str]:
        first, last = max(place[one] for one in goods) + 1, place[bad]
        middle = (first + last - 1) / 2
        return sorted(names[first:last], key=lambda name: (abs(place[name] - middle), place[name]))

    return order


def steps(count: int) -> int:
    """Return the largest number of trials among so many candidates, if none is skipped."""
    return math.ceil(math.log2(count + 1))

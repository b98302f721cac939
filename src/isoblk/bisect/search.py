# SPDX-License-Identifier: GPL-2.0-only
"""The search: which candidate is the first that is bad. It knows of no kernel and no metric."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["good", "bad", "skipped"]

Order = Callable[[Collection[str], str], Sequence[str]]
"""From the candidates that are good and the one that is bad to those that may be the first bad one,
the bad one itself perhaps among them: those first whose verdict would halve them best."""


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes:
        good: candidates that are good, from the first that was given on.
        bad: the first that is bad, as far as is known.
        open: that were skipped, and may be the first bad one as well.
    """

    good: tuple[str, ...]
    bad: str
    open: tuple[str, ...]


def search(order: Order, good: str, bad: str, verdict_of: Callable[[str], Verdict]) -> Found:
    """Find the first bad candidate.

    Args:
        order: what is between, and which to try next.
        good, bad: candidates of which that is known.
        verdict_of: tries one.
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
    """The order of candidates of which each follows the one before."""
    place = {name: at for at, name in enumerate(names)}

    def order(goods: Collection[str], bad: str) -> list[str]:
        first, last = max(place[one] for one in goods) + 1, place[bad]
        middle = (first + last - 1) / 2
        return sorted(names[first:last], key=lambda name: (abs(place[name] - middle), place[name]))

    return order


def steps(count: int) -> int:
    """How many of so many candidates have to be tried at most, if none is skipped."""
    return math.ceil(math.log2(count + 1))

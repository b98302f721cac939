# SPDX-License-Identifier: GPL-2.0-only
"""From a find to the simplest study that still shows it."""

from collections.abc import Callable

from isoblk.hunt.space import Candidate, Space


def shrink(candidate: Candidate, space: Space, shows: Callable[[Candidate], bool]) -> Candidate:
    """The simplest candidate to be had from one by single steps, each of which still shows what it
    did (A. Zeller, R. Hildebrandt, Simplifying and isolating failure-inducing input, IEEE
    Transactions on Software Engineering 28, 2002: no single step is left that does).

    Args:
        candidate: shows it.
        shows: whether another one does.
    """
    while True:
        before = candidate
        for place in space.places(candidate):
            for simpler in space.simpler(candidate, place):
                if shows(simpler):
                    candidate = simpler
                    break
        if candidate == before:
            return candidate

# SPDX-License-Identifier: GPL-2.0-only
"""Simplify a find to the simplest study that still shows it."""

from collections.abc import Callable

from isoblk.hunt.space import Candidate, Space


def shrink(candidate: Candidate, space: Space, shows: Callable[[Candidate], bool]) -> Candidate:
    """Return the simplest candidate that single steps reach, each of which still shows the find.

    In the result no single step is left that does. Source: A. Zeller, R. Hildebrandt, "Simplifying
    and isolating failure-inducing input", IEEE Transactions on Software Engineering 28, 2002.

    Args:
        candidate: a candidate that shows the find.
        space: its space.
        shows: returns whether another candidate shows the find.
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

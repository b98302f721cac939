# SPDX-License-Identifier: GPL-2.0-only
"""The search names the first bad candidate, in a line and in a history with merges, and never one
that a skipped one hides."""

import random
from collections.abc import Collection, Sequence

from hypothesis import given
from hypothesis import strategies as st

from isoblk.bisect.search import Found, Verdict, line, search, steps


def verdicts(names: Sequence[str], first_bad: int, skipped: Collection[int]) -> list[Verdict]:
    return [
        "skipped" if at in skipped else "bad" if at >= first_bad else "good"
        for at in range(len(names))
    ]


@given(st.data(), st.integers(2, 60))
def test_the_first_bad_of_a_line_is_found_in_as_few_steps_as_said(
    data: st.DataObject, count: int
) -> None:
    names = [f"v{at}" for at in range(count)]
    first_bad = data.draw(st.integers(1, count - 1))
    of = dict(zip(names, verdicts(names, first_bad, ()), strict=True))
    tried: list[str] = []

    def verdict_of(name: str) -> Verdict:
        tried.append(name)
        return of[name]

    found = search(line(names), names[0], names[-1], verdict_of)
    assert found.bad == names[first_bad]
    assert found.good[-1] in names[:first_bad]
    assert found.open == ()
    assert len(tried) == len(set(tried)) <= steps(count - 2)


@given(st.data(), st.integers(2, 30))
def test_a_skipped_candidate_that_may_be_the_first_bad_is_reported(
    data: st.DataObject, count: int
) -> None:
    names = [f"v{at}" for at in range(count)]
    first_bad = data.draw(st.integers(1, count - 1))
    skipped = data.draw(st.sets(st.integers(1, max(1, count - 2)))) - {0, count - 1}
    of = dict(zip(names, verdicts(names, first_bad, skipped), strict=True))
    found = search(line(names), names[0], names[-1], of.__getitem__)
    suspects = {found.bad, *found.open}
    assert names[first_bad] in suspects
    assert {names.index(one) for one in found.open} <= skipped
    assert (found.open == ()) == (first_bad - 1 not in skipped and first_bad not in skipped)


class History:
    """Commits, each with its parents, and the order of git rev-list --bisect-all."""

    def __init__(self, parents: Sequence[Sequence[int]]) -> None:
        self.below: list[set[int]] = []
        for own in parents:
            self.below.append({len(self.below)}.union(*(self.below[one] for one in own)))

    def order(self, goods: Collection[str], bad: str) -> list[str]:
        known = set[int]().union(*(self.below[int(one)] for one in goods))
        left = self.below[int(bad)] - known

        def halves(at: int) -> int:
            reached = len(self.below[at] & left)
            return min(reached, len(left) - reached)

        return [str(at) for at in sorted(left, key=lambda at: (-halves(at), at))]


@st.composite
def histories(draw: st.DrawFn) -> list[list[int]]:
    count = draw(st.integers(2, 40))
    rng = random.Random(draw(st.integers()))
    parents: list[list[int]] = [[]]
    for at in range(1, count):
        # The last commit, or a merge of it with another, or a branch.
        chosen = {at - 1} if rng.random() < 0.6 else {rng.randrange(at)}
        if rng.random() < 0.3:
            chosen.add(rng.randrange(at))
        parents.append(sorted(chosen))
    return parents


@given(st.data(), histories())
def test_the_first_bad_of_a_history_with_merges_is_found(
    data: st.DataObject, parents: list[list[int]]
) -> None:
    history = History(parents)
    tip = str(len(parents) - 1)
    culprit = data.draw(st.sampled_from(sorted(history.below[-1] - {0} or {0})))
    if culprit == 0:
        return

    def verdict_of(name: str) -> Verdict:
        return "bad" if culprit in history.below[int(name)] else "good"

    assert search(history.order, "0", tip, verdict_of).bad == str(culprit)


def test_neighbours_need_nothing_tried() -> None:
    def refuse(name: str) -> Verdict:
        raise AssertionError(name)

    assert search(line(["a", "b"]), "a", "b", refuse) == Found(("a",), "b", ())

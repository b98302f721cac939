# SPDX-License-Identifier: GPL-2.0-only
"""io.isoblk.weight follows io.weight, and a weight written there manually stays."""

from hypothesis import given
from hypothesis import strategies as st

from isoblk.weights.lines import DEFAULT, UNSET, Several, Weights, parse, parse_several, written
from isoblk.weights.mirror import Change, plan, wanted

KEYS = st.sampled_from([DEFAULT, "8:0", "259:1"])
WEIGHTS = st.dictionaries(KEYS, st.integers(1, 10_000).filter(lambda weight: weight != UNSET))


def apply(have: Weights, changes: tuple[Change, ...]) -> Weights:
    """The content of the file after these texts were written one after the other."""
    after = dict(have)
    for change in changes:
        key, _, value = change.text.partition(" ")
        if value == DEFAULT or (key == DEFAULT and int(value) == UNSET):
            after.pop(key, None)
        else:
            after[key] = int(value)
    return after


def test_a_default_weight_is_not_a_weight_that_was_set() -> None:
    assert parse("default 100\n") == {}
    assert parse("100\n") == {}
    assert parse("default 300\n8:0 100\n") == {DEFAULT: 300, "8:0": 100}


@given(st.text())
def test_whatever_a_file_holds_it_is_read(text: str) -> None:
    parse(text)


@given(st.dictionaries(KEYS, st.lists(st.integers(1, 10_000), min_size=1).map(tuple)))
def test_a_recorded_weight_is_read_back(several: Several) -> None:
    assert parse_several(written(several)) == several


def test_the_weight_of_systemd_takes_precedence_over_the_one_derived_for_bfq() -> None:
    assert wanted({DEFAULT: 400}, {DEFAULT: 127, "8:0": 50}) == {DEFAULT: 400, "8:0": 50}
    assert wanted({}, {DEFAULT: 400}) == {DEFAULT: 400}


@given(WEIGHTS, WEIGHTS)
def test_an_untouched_cgroup_has_the_wanted_weights(want: Weights, later: Weights) -> None:
    first = plan(want, {}, {})
    have = apply({}, first.changes)
    assert have == want
    second = plan(later, have, first.ours)
    assert apply(have, second.changes) == later
    assert plan(later, later, second.ours).changes == ()


@given(WEIGHTS, WEIGHTS, WEIGHTS)
def test_a_weight_written_manually_stays_until_it_is_given_back(
    want: Weights, hand: Weights, later: Weights
) -> None:
    first = plan(want, {}, {})
    have = apply({}, first.changes) | hand
    second = plan(later, have, first.ours)
    after = apply(have, second.changes)
    for key, weight in hand.items():
        if weight != want.get(key):
            assert after[key] == weight
            assert key not in second.ours
    # "default" gives it back.
    given_back = {key: weight for key, weight in after.items() if key not in hand}
    third = plan(later, given_back, second.ours)
    assert apply(given_back, third.changes) == later


@given(WEIGHTS, WEIGHTS, st.integers(0, 6))
def test_a_kill_at_any_point_leaves_nothing_that_looks_written_by_hand(
    want: Weights, later: Weights, cut: int
) -> None:
    first = plan(want, {}, {})
    have = apply({}, first.changes)
    second = plan(later, have, first.ours)
    # The note was made, some lines were written, and then it ended.
    torn = apply(have, second.changes[:cut])
    third = plan(later, torn, second.ahead)
    assert apply(torn, third.changes) == later
    # Or it ended before the note.
    assert apply(have, plan(later, have, first.ours).changes) == later


@given(WEIGHTS, WEIGHTS)
def test_modules_that_were_loaded_anew_are_told_again(want: Weights, hand: Weights) -> None:
    first = plan(want, hand, {})
    assert apply({}, plan(want, {}, first.ours).changes) == want


@given(WEIGHTS, WEIGHTS)
def test_only_weights_that_the_mirror_wrote_are_removed(want: Weights, hand: Weights) -> None:
    first = plan(want, hand, {})
    have = apply(hand, first.changes)
    assert apply(have, plan({}, have, first.ours).changes) == hand

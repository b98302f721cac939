# SPDX-License-Identifier: GPL-2.0-only
"""A value that is written as TOML is read back unchanged."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from isoblk.toml import written

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(TEXTS, st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), st.lists(TEXTS))


@given(VALUES)
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    assert tomllib.loads(f"x = {written(value)}\n") == {"x": value}


def test_a_surrogate_pair_of_json_is_written_as_one_character() -> None:
    text = "\U0001f4be \x7f"
    assert tomllib.loads(f"x = {written(text)}") == {"x": text}

# SPDX-License-Identifier: GPL-2.0-only
"""Sizes and times mean what fio's mean, and other text is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.run.units import (
    LARGEST,
    SIZE_SUFFIXES,
    TIME_SUFFIXES,
    format_size,
    format_time,
    parse_size,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4k", 4096),
        ("1m", 1 << 20),
        ("4G", 4 << 30),
        ("1t", 1 << 40),
        ("512", 512),
        ("4kb", 4096),
        ("4KiB", 4096),
        (" 8 k ", 8192),
        ("0", 0),
        (7, 7),
    ],
)
def test_a_size_is_in_powers_of_1024(text: int | str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "k", "4x", "1.5k", "4kk", "0x10", "four", "4 096", "٤k", "9" * 5000]
)
def test_text_that_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize("value", [-1, "-4k"])
def test_a_negative_size_is_refused(value: int | str) -> None:
    with pytest.raises(ValueError, match="is negative"):
        parse_size(value)


@pytest.mark.parametrize(
    ("value", "unit", "ns"),
    [
        ("200ms", "s", 200_000_000),
        ("1s", "us", 10**9),
        ("10us", "s", 10_000),
        ("80ns", "s", 80),
        ("2m", "s", 120 * 10**9),
        ("1h", "s", 3600 * 10**9),
        ("1d", "s", 86_400 * 10**9),
        ("1.5s", "us", 1_500_000_000),
        ("0.1", "s", 100_000_000),
        (0.1, "s", 100_000_000),
        (1e-9, "s", 1),
        (3, "us", 3_000),
        (0, "s", 0),
    ],
)
def test_a_time_is_exact(value: int | float | str, unit: str, ns: int) -> None:
    assert parse_time(value, unit) == ns


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("soon", "is not a time"),
        ("5 parsecs", "unknown unit 'parsecs'"),
        ("1e3s", "is not a time"),
        (float("nan"), "is not a time"),
        (float("inf"), "is not a time"),
        (-1, "is negative"),
        ("-10ms", "is negative"),
        ("0.5ns", "whole number of nanoseconds"),
        (10**12, "too large"),
    ],
)
def test_a_value_that_is_not_a_time_is_refused(value: int | float | str, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        parse_time(value, "s")


@given(st.integers(0, LARGEST))
def test_a_formatted_size_reads_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(0, LARGEST))
def test_a_formatted_time_reads_back(ns: int) -> None:
    assert parse_time(format_time(ns), "s") == ns


@given(st.integers(0, 10**6), st.sampled_from(sorted(SIZE_SUFFIXES)))
def test_a_suffix_multiplies_a_size(number: int, suffix: str) -> None:
    assert parse_size(f"{number}{suffix}") == number * SIZE_SUFFIXES[suffix]


@given(st.integers(0, 10**4), st.sampled_from(sorted(TIME_SUFFIXES)))
def test_a_number_is_in_the_given_unit(number: int, unit: str) -> None:
    assert parse_time(number, unit) == parse_time(f"{number}{unit}", "s")


@given(st.text(max_size=12))
def test_any_text_gives_a_number_or_a_reason(text: str) -> None:
    for parse in (parse_size, lambda value: parse_time(value, "s")):
        try:
            assert parse(text) >= 0
        except ValueError as error:
            assert str(error)

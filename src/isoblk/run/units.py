# SPDX-License-Identifier: GPL-2.0-only
"""Sizes and times as fio writes them: '4k', '1m', '200ms', '1.5s'."""

import re
from decimal import Decimal, InvalidOperation, Overflow

SIZE_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

TIME_SUFFIXES = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3600 * 1_000_000_000,
    "d": 86_400 * 1_000_000_000,
}

SIZE_HINT = "allowed: a number of bytes, or text such as '4k', '1m', '4g' (powers of 1024)"
TIME_HINT = "allowed: a number, or text such as '10us', '200ms', '1.5s', '2m', '1h'"

# The kernel modules store bytes and nanoseconds as signed 64-bit numbers.
LARGEST = (1 << 63) - 1

# Python converts at most some thousand digits.
_SIZE = re.compile(r"(-?\d{1,100})\s*([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_TIME = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-zµμ]*)", re.ASCII | re.IGNORECASE)


def parse_size(value: int | str) -> int:
    """Parse a size, bytes.

    Args:
        value: bytes, or text: a whole number and k, m, g or t (powers of 1024, either case, 'kb'
            and 'KiB' mean the same).

    Raises:
        ValueError: not a size, negative, or above 2^63 - 1; the text is fit for a user.
    """
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{value!r} is not a size")
        size = int(match[1]) * SIZE_SUFFIXES[match[2].lower()]
    else:
        size = value
    return _in_range(size, value)


def parse_time(value: int | float | str, unit: str) -> int:
    """Parse a time, nanoseconds.

    Args:
        value: a number of `unit`, or text: a decimal number and optionally ns, us (or µs), ms, s, m
            (minutes), h or d.
        unit: unit of a number without suffix; a key of TIME_SUFFIXES.

    Raises:
        ValueError: not a time, negative, not a whole number of nanoseconds, or above 2^63 - 1 ns;
            the text is fit for a user.
    """
    if isinstance(value, str):
        match = _TIME.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{value!r} is not a time")
        # Unicode has two characters for the prefix micro.
        suffix = match[2].lower().replace("µ", "u").replace("μ", "u")
        number, suffix = match[1], suffix or unit
        if suffix not in TIME_SUFFIXES:
            raise ValueError(f"{value!r} is not a time: unknown unit {match[2]!r}")
    else:
        # repr() is the shortest decimal of the float: 0.1 is exactly a tenth.
        number, suffix = repr(value), unit
    try:
        exact = Decimal(number) * TIME_SUFFIXES[suffix]
    except (InvalidOperation, Overflow):
        raise ValueError(f"{value!r} is not a time") from None
    if not exact.is_finite():
        raise ValueError(f"{value!r} is not a time")
    if exact < 0 or exact > LARGEST:
        _in_range(int(exact), value)
    if exact != int(exact):
        raise ValueError(f"{value!r} is not a whole number of nanoseconds")
    return int(exact)


def _in_range(number: int, value: int | float | str) -> int:
    if number < 0:
        raise ValueError(f"{value!r} is negative")
    if number > LARGEST:
        raise ValueError(f"{value!r} is too large")
    return number


def format_size(size: int) -> str:
    """Return the shortest text that parse_size reads as `size` bytes: 4096 is '4k'."""
    for suffix in ("t", "g", "m", "k"):
        if size and size % SIZE_SUFFIXES[suffix] == 0:
            return f"{size // SIZE_SUFFIXES[suffix]}{suffix}"
    return str(size)


def format_time(ns: int) -> str:
    """Format nanoseconds in the largest of s, ms, us, ns that divides them: '200ms'."""
    for suffix in ("s", "ms", "us"):
        if ns % TIME_SUFFIXES[suffix] == 0:
            return f"{ns // TIME_SUFFIXES[suffix]}{suffix}"
    return f"{ns}ns"

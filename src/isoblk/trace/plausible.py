# SPDX-License-Identifier: GPL-2.0-only
"""Check whether a trace's times are plausible, because their unit is easily mistaken."""

from math import log10

SECOND = 1_000_000_000
_YEAR = 366 * 86_400 * SECOND
_FEWEST = 10  # fewest requests for a judgement
_LEAST, _MOST = 1 / 60, 1e8  # requests per second of a disk in use
_USUAL = 100.0  # mean of a recorded day
# Ratios between the units of times, as powers of ten.
_POWERS = (-9, -6, -3, 3, 6, 9)
_WORDS = {3: "a thousand", 6: "a million", 9: "a billion"}
_UNITS = (("years", _YEAR), ("days", 86_400 * SECOND), ("h", 3600 * SECOND), ("min", 60 * SECOND),
          ("s", SECOND), ("ms", 1_000_000), ("µs", 1000), ("ns", 1))  # fmt: skip


def doubt(records: int, span_ns: int) -> str | None:
    """Return a line about implausible times: years, fewer than a request per minute, or more than
    10^8 per second; with a better unit. None for plausible times."""
    if records < _FEWEST or not span_ns or _plausible(records, span_ns):
        return None
    text = f"{records:,} requests in {_span(span_ns)}: are the times in another unit?"
    powers = [p for p in _POWERS if _plausible(records, span_ns * 10.0**p)]
    if not powers:
        return text
    best = min(powers, key=lambda p: abs(log10(_rate(records, span_ns * 10.0**p) / _USUAL)))
    than = "longer" if best > 0 else "shorter"
    text += f" {_WORDS[abs(best)]} times {than} it would be {_span(span_ns * 10.0**best)};"
    text += " import it with --time-unit"
    # Replays are not slowed down more than a thousandfold.
    return text if best > 3 else f"{text}, or replay it with speed = {10.0**-best:g}"


def _plausible(records: int, span_ns: float) -> bool:
    return span_ns <= _YEAR and _LEAST <= _rate(records, span_ns) <= _MOST


def _rate(records: int, span_ns: float) -> float:
    """Return requests per second."""
    return (records - 1) * SECOND / span_ns


def _span(ns: float) -> str:
    for unit, size in _UNITS:
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"

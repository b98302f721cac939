# SPDX-License-Identifier: GPL-2.0-only
"""Whether a trace's times can be what they are taken for: their unit is easily mistaken."""

from math import log10

SECOND = 1_000_000_000
_YEAR = 366 * 86_400 * SECOND
_FEWEST = 10  # requests that say anything
_LEAST, _MOST = 1 / 60, 1e8  # requests a second, of a disk that is used
_USUAL = 100.0  # in the mean of a recorded day
# Between the units that times have.
_POWERS = (-9, -6, -3, 3, 6, 9)
_WORDS = {3: "a thousand", 6: "a million", 9: "a billion"}
_UNITS = (("years", _YEAR), ("days", 86_400 * SECOND), ("h", 3600 * SECOND), ("min", 60 * SECOND),
          ("s", SECOND), ("ms", 1_000_000), ("µs", 1000), ("ns", 1))  # fmt: skip


def doubt(records: int, span_ns: int) -> str | None:
    """One line about times that no trace has: years, or fewer than a request a minute, or more
    than 10^8 a second; and what they would be in another unit. None: they may well be right."""
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
    # Slower than a thousandth nobody replays.
    return text if best > 3 else f"{text}, or replay it with speed = {10.0**-best:g}"


def _plausible(records: int, span_ns: float) -> bool:
    return span_ns <= _YEAR and _LEAST <= _rate(records, span_ns) <= _MOST


def _rate(records: int, span_ns: float) -> float:
    """Requests a second."""
    return (records - 1) * SECOND / span_ns


def _span(ns: float) -> str:
    for unit, size in _UNITS:
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"

# SPDX-License-Identifier: GPL-2.0-only
"""Parse a table's figure, so that a page can sort by it."""

import re

_FIGURE = re.compile(r"^[<~≤]?\s*([+-]?[\d,]+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([A-Za-zµ%/]*)")
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_NEVER = "never"


def magnitude(text: str) -> float | None:
    """Parse "785 K" as 785000.0, "10.4 ms" as 10400000.0; None if the text does not begin with a
    figure. The first of several figures counts."""
    if text == _NEVER:
        return 1e300
    found = _FIGURE.match(text.strip())
    if found is None:
        return None
    value = float(found[1].replace(",", "")) if found[1].strip("+-,") else None
    if value is None:
        return None
    unit = found[2]
    if unit in _TIMES:
        return value * _TIMES[unit]
    return value * _PREFIXES.get(unit[:1], 1.0)

# SPDX-License-Identifier: GPL-2.0-only
"""Counters of a cache and its two disks in the measured pass, and figures derived from them."""

from collections.abc import Mapping
from typing import Final

from isoblk.metrics.base import MetricUnit

CACHE: Final = "cache"
# Of a disk.
_COUNTED: Final[tuple[tuple[str, MetricUnit, str], ...]] = (
    ("reads", "count", "reads"),
    ("read_bytes", "B", "bytes read"),
    ("writes", "count", "writes"),
    ("write_bytes", "B", "bytes written"),
)
FIGURES: Final[Mapping[str, tuple[MetricUnit, str]]] = {
    "read_hit_ratio": ("%", "reads that the SSD answered, by the cache's count"),
    "bypassed_bytes": ("B", "not cached by choice or for lack of room, if the cache reports it"),
    "ssd.write_bps": ("B/s", "ssd.write_bytes / time of the load"),
    "ssd.read_factor": ("factor", "ssd.read_bytes / bytes that tenants read or wrote"),
    "ssd.write_factor": ("factor", "ssd.write_bytes / bytes that tenants read or wrote"),
    "asked.read_bytes": ("B", "bytes that tenants read"),
    "asked.write_bytes": ("B", "bytes that tenants wrote"),
    **{
        f"{where}.{what}": (unit, f"{words} {of}")
        for where, of in (
            ("top", "of the cached device"),
            ("origin", "of the slow disk"),
            ("ssd", "of the SSD"),
        )
        for what, unit, words in _COUNTED
    },
}
"""Figure, without the prefix "cache." of claims, to its unit and meaning."""

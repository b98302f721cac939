# SPDX-License-Identifier: GPL-2.0-only
"""Words of a report's sentences: numbers, lists, and the meanings of a table's columns."""

from collections.abc import Sequence
from typing import Final

_NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def counted(number: int) -> str:
    """Format 3 as "three", 30 as "30"."""
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def listed(names: Sequence[str]) -> str:
    """Format a list: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def several(number: int, one: str, many: str = "") -> str:
    """Format a count: "1 run", "3 runs"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


_SETTINGS: Final = {
    ("precondition", "none"): "fresh",
    ("precondition", "random"): "used",
    ("precondition", "sequential"): "filled in order",
    ("nomerges", "0"): "with merging",
    ("nomerges", "1"): "with simple merging",
    ("nomerges", "2"): "without merging",
    ("gate", "0"): "gate off",
    ("gate", "1"): "gate on",
}


def setting(key: str, value: str, name: str) -> str:
    """Format a value of the matrix: "randread", "iodepth 32", "used".

    Args:
        key: of the matrix.
        value: in the matrix.
        name: of the key, if the value needs it.
    """
    last = key.rpartition(".")[2]
    if told := _SETTINGS.get((last, value)):
        return told
    if last == "count" and value.isdigit():
        return several(int(value), "tenant")
    if key == "run.runtime" and value.replace(".", "").isdigit():
        return f"{value} s long"
    says = value[:1].isalpha() or "-" in value
    return value if says and value != "none" else f"{name} {value}"


MEANINGS: Final[dict[str, str]] = {
    "status": "valid: all that was set up took effect, and the run's own checks agree. Only valid "
    "runs are counted and drawn.",
    "IOPS": "Reads, writes and trims a second, of all tenants together, in the measured time.",
    "bandwidth": "Bytes a second, of all tenants together, in the measured time.",
    "throughput": "Bytes a second, over the time that the load was active.",
    "of none": "Bandwidth relative to the same point under none, the scheduler that only passes "
    "requests on. 100 % costs nothing.",
    "B/s of none": "Bytes a second relative to the same point under none, the scheduler that only "
    "passes requests on. With requests of several sizes IOPS would give another figure.",
    "bandwidth, of none": "Bandwidth relative to the same case without a scheduler (none, which "
    "only passes requests on). 100 % costs nothing; merging can make it more.",
    "share error": "The largest |share / ideal - 1| of a tenant. The ideal divides the "
    "run's own total by weight, no tenant above its rate alone (weighted max-min).",
    "time error": "The share error of disk time instead of bytes: the bytes of each tenant "
    "over those that it would move alone and without end.",
    "Jain": "Jain's index of share over weight: 1 is fair, 1/N is one tenant of N with all.",
    "p99": "99 of 100 requests are answered within it, for the worst tenant; an upper "
    "bound, at most 1.6 % too high.",
    "shares, %": "Each tenant's share of all bytes, in the order that is named below.",
    "top 1/4, %": "The share of the heaviest quarter of the tenants in all bytes (and its ideal).",
    "mean latency": "Mean time from the intended start of a request to its answer.",
    "read hits": "Reads that the SSD answered, by the cache's own count.",
    "of the fastest": "Throughput over that of the fastest cache at the same point; the geometric "
    "mean over all points.",
    "valid points": "Points of the study's matrix all of whose runs are valid.",
    "weight": "The tenant's weight.",
    "share, %": "The tenant's share of all bytes in the measured time.",
    "ideal, %": "Its weighted max-min fair share: by weight among the tenants at work, none above"
    " its rate alone.",
    "by weight, %": "Its share by weight alone, even if it cannot use it.",
    "error": "|share / ideal - 1|.",
    "slowdown": "Its rate alone on the disk over its rate here.",
    "bypassed": "Bytes not cached by choice or for lack of room, by the cache's own count.",
    "p50": "Half of the requests are answered within it.",
    "p99.9": "999 of 1,000 requests are answered within it.",
    "p99.99": "9,999 of 10,000 requests are answered within it.",
    "difference": "Share on the first over share on the second, less one.",
}
"""Meaning of a column, by its title; other titles are self-explanatory."""


def meaning(title: str) -> str:
    """Return the meaning of a column; "" if its title needs none. "p99 of reader" is a p99."""
    if title in MEANINGS:
        return MEANINGS[title]
    if title.startswith("p99 of "):
        return (
            f"99 of 100 requests of {title.removeprefix('p99 of ')} are answered within it, in the "
            "case where that is longest. An upper bound, at most 1.6 % too high."
        )
    if title.startswith("share error without "):
        who = title.removeprefix("share error without ")
        return f"As share error, of the tenants other than {who}: how they share the rest."
    base = title.partition(", ")[0]
    return MEANINGS.get(base, "")

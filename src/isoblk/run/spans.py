# SPDX-License-Identifier: GPL-2.0-only
"""When a load is to work: once, or again and again."""

from collections.abc import Sequence

from isoblk.run.spec import Workload

Span = tuple[int, int]
"""From when to when, ns after the barrier; the end is not part of it."""


def spans(load: Workload, end_ns: int) -> list[Span]:
    """When a load is to work in a run that ends then, in order; at least one, which may be
    empty."""
    begin = min(load.startdelay_ns, end_ns)
    stop = end_ns
    if load.runtime_ns:
        stop = min(stop, load.startdelay_ns + load.runtime_ns)
    if not load.off_ns or begin >= stop:
        return [(begin, stop)]
    turn = load.on_ns + load.off_ns
    return [(at, min(at + load.on_ns, stop)) for at in range(begin, stop, turn)]


def length(of: Sequence[Span], begin: int, end: int) -> int:
    """How much of the time from `begin` to `end` they cover, ns."""
    return sum(max(0, min(stop, end) - max(start, begin)) for start, stop in of)

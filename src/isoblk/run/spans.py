# SPDX-License-Identifier: GPL-2.0-only
"""The time spans in which a load is active: one, or periodic ones."""

from collections.abc import Sequence

from isoblk.run.spec import Workload

Span = tuple[int, int]
"""Start and end, ns after the barrier; excludes the end."""


def spans(load: Workload, end_ns: int) -> list[Span]:
    """Return the spans in which a load is active in a run that ends at `end_ns`, in order. At least
    one, which may be empty."""
    begin = min(load.startdelay_ns, end_ns)
    stop = end_ns
    if load.runtime_ns:
        stop = min(stop, load.startdelay_ns + load.runtime_ns)
    if not load.off_ns or begin >= stop:
        return [(begin, stop)]
    turn = load.on_ns + load.off_ns
    return [(at, min(at + load.on_ns, stop)) for at in range(begin, stop, turn)]


def length(of: Sequence[Span], begin: int, end: int) -> int:
    """Return how much of the time from `begin` to `end` the spans cover, ns."""
    return sum(max(0, min(stop, end) - max(start, begin)) for start, stop in of)

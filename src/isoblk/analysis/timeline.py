# SPDX-License-Identifier: GPL-2.0-only
"""Split a run's measured time into phases and windows, and compute the ideal in each.

Between two changes (a tenant starts or stops, an event sets a weight) demand and weights are
constant: a phase. The ideal of a run with one phase divides the measured total once. With more
phases it is computed for every 100 ms window (for its parts, if a change falls inside) and added
up.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import polars as pl

from isoblk.metrics import maxmin
from isoblk.metrics.facts import Change, Phase, Windows
from isoblk.run.spans import Span, spans
from isoblk.run.spec import HostDevice, RunSpec

WINDOW_MS = 100
CONVERGED_BELOW = 0.05  # share error of convergence
CONVERGED_WINDOWS = 3  # consecutive windows below it
_MS = 1_000_000


def demand(spec: RunSpec, name: str, last_ms: Mapping[str, int]) -> list[Span]:
    """Return when a tenant wants I/O, in ns after the barrier, within the run.

    last_ms: start of its last window with I/O, which ends a tenant with `number_ios`, or with a
    trace that is not repeated. A tenant without a series (of fio) counts to the end.
    """
    work = next(tenant.workload for tenant in spec.tenants if tenant.name == name)
    wanted = spans(work, spec.warmup_ns + spec.runtime_ns)
    ends = work.number_ios or (work.trace is not None and not work.trace_loop)
    if not ends or name not in last_ms:
        return wanted
    last = (last_ms[name] + spec.window_ms) * _MS
    return [(start, min(stop, last)) for start, stop in wanted if start < last] or wanted[:1]


def phases(spec: RunSpec, last_ms: Mapping[str, int]) -> list[Phase]:
    """Return the measured time, cut at every change."""
    begin, end = spec.warmup_ns, spec.warmup_ns + spec.runtime_ns
    wanted = {tenant.name: demand(spec, tenant.name, last_ms) for tenant in spec.tenants}
    cuts = {at for of in wanted.values() for span in of for at in span}
    cuts |= {event.at_ns for event in spec.events}
    cuts |= {event.at_ns for event in spec.scheduler_events}
    edges = [begin, *sorted(at for at in cuts if begin < at < end), end]
    weights = {tenant.name: float(tenant.weight) for tenant in spec.tenants}
    events = sorted(spec.events, key=lambda event: event.at_ns)
    result = []
    for start, stop in pairwise(edges):
        while events and events[0].at_ns <= start:
            weights[events[0].tenant] = float(events[0].weight)
            events = events[1:]
        active = frozenset(
            name for name, of in wanted.items() if any(a <= start and b >= stop for a, b in of)
        )
        result.append(Phase(start, stop, active, dict(weights)))
    return result


def last_worked(series: pl.DataFrame) -> dict[str, int]:
    """Return by tenant the start of the last window of its series with a completion, ms."""
    worked = series.filter(pl.col("ios") > 0)
    return dict(worked.group_by("tenant").max().select("tenant", "t_ms").iter_rows())


def longest_gaps(spec: RunSpec, last_ms: Mapping[str, int], series: pl.DataFrame) -> dict[str, int]:
    """Return by tenant the longest active time without a completion, in ns: whole windows of the
    series within the measured time. Omits tenants without a series."""
    width = spec.window_ms * _MS
    begin = -(-spec.warmup_ns // width) * width
    end = (spec.warmup_ns + spec.runtime_ns) // width * width
    kept = set(series["tenant"].unique())
    ended: dict[str, list[int]] = {tenant.name: [] for tenant in spec.tenants}
    worked = series.filter(pl.col("ios") > 0).select("tenant", "t_ms").unique().sort("t_ms")
    for name, t_ms in worked.iter_rows():
        if name in ended:
            ended[name].append(t_ms * _MS)
    gaps = {}
    for name, starts in ended.items():
        if not starts and kept:
            # Others have a series: this tenant completed nothing.
            kept.add(name)
        if name not in kept:
            continue
        longest = 0
        for start, stop in demand(spec, name, last_ms):
            low = -(-max(start, begin) // width) * width
            high = min(stop, end) // width * width
            edges = [at for at in starts if low <= at < high]
            for before, after in pairwise([low - width, *edges, high]):
                longest = max(longest, after - before - width)
        gaps[name] = longest
    return gaps


def windows(spec: RunSpec, series: pl.DataFrame) -> Windows:
    """Return bytes by tenant and 100 ms window. If the run's own window is wider, or does not
    divide 100 ms, the width is the next multiple of it. No window if a tenant has no series."""
    width_ms = spec.window_ms * -(-WINDOW_MS // spec.window_ms)
    first_ms = spec.window_ms * -(-spec.warmup_ns // (spec.window_ms * _MS))
    end_ms = (spec.warmup_ns + spec.runtime_ns) // _MS
    count = max(0, (end_ms - first_ms) // width_ms)
    # In a guest fio's series is not recorded.
    in_guest = not isinstance(spec.device, HostDevice)
    if in_guest and any(tenant.workload.program == "fio" for tenant in spec.tenants):
        count = 0
    moved = {tenant.name: [0] * count for tenant in spec.tenants}
    within = series.filter(
        (pl.col("t_ms") >= first_ms) & (pl.col("t_ms") < first_ms + count * width_ms)
    )
    grouped = within.group_by("tenant", ((pl.col("t_ms") - first_ms) // width_ms).alias("k")).agg(
        pl.col("bytes").sum()
    )
    for tenant, k, amount in grouped.iter_rows():
        if tenant in moved:
            moved[tenant][k] = amount
    return Windows(first_ms * _MS, width_ms * _MS, count, moved)


def ideal_bytes(
    spec: RunSpec, cut: Sequence[Phase], at: Windows, caps: Mapping[str, float]
) -> dict[str, list[float]]:
    """Return the ideal in bytes by tenant and window: each window's own total, divided.

    caps: bytes per second by tenant. A window's total is assumed to be spread evenly over its time.
    """
    result = {tenant.name: [0.0] * at.count for tenant in spec.tenants}
    trees = [maxmin.tree(spec.tenants, spec.groups, p.active, p.weights) for p in cut]
    for k, total in enumerate(at.totals()):
        start = at.start_ns + k * at.width_ns
        rate = total * 1e9 / at.width_ns
        for phase, root in zip(cut, trees, strict=True):
            overlap = min(phase.end, start + at.width_ns) - max(phase.start, start)
            if overlap <= 0 or not phase.active:
                continue
            for name, share in maxmin.shares(root, rate, caps).items():
                result[name][k] += share * total * overlap / at.width_ns
    return result


def share_errors(at: Windows, ideal: Mapping[str, Sequence[float]]) -> list[float | None]:
    """Return the largest |share / ideal - 1| of each window, over the tenants with an ideal; None
    without an ideal, because nothing moved or no tenant wanted I/O."""
    return [
        max(
            (abs(at.moved[name][k] / ideal[name][k] - 1) for name in ideal if ideal[name][k] > 0),
            default=None,
        )
        for k in range(at.count)
    ]


def changes(
    spec: RunSpec, last_ms: Mapping[str, int], at: Windows, errors: Sequence[float | None]
) -> list[Change]:
    """Return every change inside the measured time after which a tenant wants I/O, in order, with
    its convergence time. None without windows."""
    if not at.count:
        return []
    begin, end = spec.warmup_ns, spec.warmup_ns + spec.runtime_ns
    found: dict[int, list[str]] = {}
    wanted = [demand(spec, tenant.name, last_ms) for tenant in spec.tenants]
    for tenant, of in zip(spec.tenants, wanted, strict=True):
        for start, stop in of:
            found.setdefault(start, []).append(f"{tenant.name} starts")
            found.setdefault(stop, []).append(f"{tenant.name} stops")
    for event in spec.events:
        found.setdefault(event.at_ns, []).append(f"{event.tenant} weighs {event.weight}")
    for switch in spec.scheduler_events:
        found.setdefault(switch.at_ns, []).append(f"the scheduler is {switch.scheduler.name}")
    times = sorted(time for time in found if begin < time < end)
    result = []
    for time, until in pairwise([*times, end]):
        if not any(start <= time < stop for of in wanted for start, stop in of):
            continue
        first = max(0, -(-(time - at.start_ns) // at.width_ns))
        last = min(at.count, (until - at.start_ns) // at.width_ns)
        settled = None
        for k in range(first, last - CONVERGED_WINDOWS + 1):
            if all(
                error is not None and error < CONVERGED_BELOW
                for error in errors[k : k + CONVERGED_WINDOWS]
            ):
                settled = (at.start_ns + k * at.width_ns - time) / _MS
                break
        result.append(Change(time / _MS, ", ".join(found[time]), settled))
    return result

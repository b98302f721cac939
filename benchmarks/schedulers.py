# SPDX-License-Identifier: GPL-2.0-only
"""Measure the CPU time that a request costs under each scheduler.

The CPU time is that of the whole UML process, user and system: the load generator, the
block layer, the scheduler and the disk. A run's set-up is measured by itself, with a run of one
request a tenant, and taken off. Two things are compared by running them in turn, PAIRS times, and
the figure is the median of the pairs' ratios: what else the machine does then weighs on both.
Nothing here passes or fails.

    python benchmarks/schedulers.py [--pairs N]
"""

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

from common import FAST, requests, run, spec, uml_bench, write_table

from isoblk.campaign.execute import Bench
from isoblk.run.spec import RunSpec, VdiskDevice

PAIRS, LEAST_PAIRS = 9, 7
BASE: str = "kyber"
OURS: tuple[str, ...] = ("isoblk", "kyber-fair", "feedbac")
OTHERS: tuple[str, ...] = ("none", "mq-deadline", "bfq")
VIRTUAL_S = 3
# In virtual time what `fast` begins at one instant it ends at one instant: 16 requests and one
# interrupt. Behind a link that is not the limit they end one by one, as on hardware.
DEVICES = {"`fast`": FAST, "`fast`, a link of 4 GB/s": VdiskDevice(read_bps=4_000_000_000)}
FEW, MANY, NR_REQUESTS = 4, 1024, 2048
SETUP_RUNS = 3
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Load:
    """A run, and the same with next to no requests, whose CPU time is the set-up's."""

    full: RunSpec
    empty: RunSpec


@dataclass(frozen=True)
class Compared:
    """a, b: medians, CPU nanoseconds a request. ratio: median of the pairs' a / b; low, high:
    its interval."""

    a: float
    b: float
    ratio: float
    low: float
    high: float


def _load(scheduler: str, device: str, tenants: int, nr_requests: int | None = None) -> Load:
    full, empty = (
        spec(scheduler, DEVICES[device], tenants, virtual_s=length, nr_requests=nr_requests)
        for length in (VIRTUAL_S, 0)
    )
    return Load(full, empty)


def _setup_s(load: Load, bench: Bench) -> float:
    return statistics.median(run(load.empty, bench).record.cpu_s for _ in range(SETUP_RUNS))


def _request_ns(load: Load, bench: Bench, setup_s: float) -> float:
    made = run(load.full, bench)
    return (made.record.cpu_s - setup_s) / requests(made) * 1e9


def _compare(a: Load, b: Load, bench: Bench, pairs: int) -> Compared:
    """a beside b, in turn; every other pair the other way round."""
    setup = {id(load): _setup_s(load, bench) for load in (a, b)}
    found: list[tuple[float, float]] = []
    for number in range(pairs):
        order = (a, b) if number % 2 == 0 else (b, a)
        cost = {id(load): _request_ns(load, bench, setup[id(load)]) for load in order}
        found.append((cost[id(a)], cost[id(b)]))
    ratios = sorted(one / other for one, other in found)
    outer = _outer(pairs)
    return Compared(
        statistics.median(one for one, _ in found),
        statistics.median(other for _, other in found),
        statistics.median(ratios),
        ratios[outer],
        ratios[-1 - outer],
    )


def _outer(n: int) -> int:
    """How many of n sorted values may be left out at each end for the rest to hold the median
    with CONFIDENCE: the interval of the sign test, which asks nothing of the distribution."""
    outside, k = 2.0 / 2**n, 0
    while (outside := outside + 2 * comb(n, k + 1) / 2**n) <= 1 - CONFIDENCE:
        k += 1
    return k


def _text(what: str, wanted: str, found: Compared) -> str:
    return (
        f"| {what} | {found.a:.0f} ns | {found.b:.0f} ns | {wanted} "
        f"| {found.ratio:.3f} | {found.low:.3f} to {found.high:.3f} |"
    )


def _rows(bench: Bench, pairs: int) -> Iterator[str]:
    for device in DEVICES:
        base = _load(BASE, device, FEW)
        yield f"| {device}, {FEW} groups | a request | {BASE} | wanted | ratio | 95 % interval |"
        yield "|---|---|---|---|---|---|"
        for name in (*OTHERS, *OURS):
            wanted = "at most 1.15" if name in OURS else ""
            yield _text(name, wanted, _compare(_load(name, device, FEW), base, bench, pairs))
        yield ""
    for device in DEVICES:
        yield (
            f"| {device}, `nr_requests` {NR_REQUESTS:,} | {MANY:,} groups | {FEW} groups | wanted"
            " | ratio | 95 % interval |"
        )
        yield "|---|---|---|---|---|---|"
        for name in (BASE, *OURS):
            many, few = (_load(name, device, groups, NR_REQUESTS) for groups in (MANY, FEW))
            wanted = "at most 1.25" if name in OURS else ""
            yield _text(name, wanted, _compare(many, few, bench, pairs))
        yield ""


def main() -> None:
    """Measure, print, and put the tables into docs/findings/speed.md."""
    parser = argparse.ArgumentParser(description="CPU time a request, by scheduler")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"at least {LEAST_PAIRS}")
    pairs = parser.parse_args().pairs
    if pairs < LEAST_PAIRS:
        parser.error(f"fewer than {LEAST_PAIRS} pairs give no interval worth the name")
    lines = []
    with uml_bench() as bench:
        for line in _rows(bench, pairs):
            lines.append(line)
            print(line, flush=True)
        write_table("schedulers", bench, lines[:-1])


if __name__ == "__main__":
    main()

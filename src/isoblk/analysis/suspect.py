# SPDX-License-Identifier: GPL-2.0-only
"""Find figures of a valid run that are misleading.

A run is valid if it did as planned. Its figures may still not answer the question: a p99 of the
served requests has no meaning if a third was not served, and shares do not describe a scheduler
that has not settled. Such a figure is shown with the reason, and decides no claim.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from isoblk.metrics import latencies, shares
from isoblk.metrics.facts import Phase, RunMetrics, Suspicion, TenantMetrics, Windows
from isoblk.metrics.latency import ALL
from isoblk.programs.registry import program_of
from isoblk.run import numbers
from isoblk.run.record import RunRecord, TenantResult
from isoblk.run.spec import RUNNING, RunSpec, Tenant
from isoblk.study.model import ClaimEntry
from isoblk.study.notes import reads_empty

SERVED = 0.95
"""Fraction of a tenant's arrivals that must be served."""
BUSY = 0.9
"""Utilisation above which the processors, not the disk and its scheduler, determine a tenant's
rate."""
OF_TIME = 0.1
"""Largest p99, as fraction of the measured time: with longer requests, the run has too few
generations of them."""
SETTLED = 0.05
"""Largest difference between the shares of the first and of the last third, relative to the ideal,
if no claim states its own error."""

_THIRDS = 3
_LATENCIES = {one.base for one in latencies.METRICS} | {"late"}
_SHARES = {one.base for one in shares.METRICS} | {"denied"}
# A difference is significant above this number of standard deviations of chance.
_DEVIATIONS = 3


def suspicions(
    record: RunRecord, tenants: Sequence[TenantMetrics], phases: Sequence[Phase], at: Windows
) -> tuple[Suspicion, ...]:
    """Return the doubts about a run's figures.

    Args:
        record: the run.
        tenants: its figures.
        phases: its phases without a change.
        at: bytes of the tenants over time.
    """
    spec = record.spec
    found: list[Suspicion] = []
    if record.busy is not None and record.busy > BUSY:
        text = f"its processors are busy {numbers.percent(record.busy)} of the time"
        found.append(Suspicion("all", "the machine", text))
    for asked, result, metrics in zip(spec.tenants, record.tenants, tenants, strict=True):
        found += _unserved(asked, result, spec, at)
        found += _busy(result)
        found += _long(result, metrics)
    empty = reads_empty(spec)
    found += [
        Suspicion("all", tenant.name, "reads a drive that nothing was written to")
        for tenant in tenants
        if tenant.name in empty and "read" in tenant.latency
    ]
    return (*found, *_unsettled(spec, tenants, phases, at))


def shown(metrics: RunMetrics) -> list[Suspicion]:
    """Return the doubts that a reader of the run's figures sees."""
    return [suspicion for suspicion in metrics.suspicions if suspicion.off > SETTLED]


def unbounded(metrics: RunMetrics, tenant: str | None) -> float | None:
    """Return the served fraction of the requests of a tenant (of the worst, for None), if its
    latency has no bound; else None."""
    return min(
        (
            suspicion.served
            for suspicion in metrics.suspicions
            if suspicion.served is not None and tenant in (None, suspicion.tenant)
        ),
        default=None,
    )


def doubt(metrics: RunMetrics, claim: ClaimEntry) -> str:
    """Return why a claim cannot be judged by this run; "" if it can."""
    base, _, tenant = claim.metric.partition(".")
    for suspicion in metrics.suspicions:
        of_tenant = (
            suspicion.about == "latency" and base in _LATENCIES and suspicion.tenant == tenant
        )
        if suspicion.about == "all" or of_tenant:
            return f"{suspicion.tenant}: {suspicion.text}"
    return ""


def thirds(metrics: RunMetrics, claim: ClaimEntry) -> list[RunMetrics]:
    """Return the run with the shares of its first and of its last third, if they differ by more
    than the error of a claim about shares, which must then hold in both. Else empty."""
    exact = claim.tolerance if claim.op == "~" else claim.value
    moved = any(
        suspicion.about == "shares" and suspicion.off > exact for suspicion in metrics.suspicions
    )
    if not moved or claim.metric.partition(".")[0] not in _SHARES:
        return []
    return [_with(metrics, part) for part in _first_and_last(metrics.windows)]


def _with(metrics: RunMetrics, shares_of: Mapping[str, float]) -> RunMetrics:
    return replace(
        metrics,
        tenants=tuple(
            replace(
                tenant,
                share=shares_of[tenant.name],
                bps=shares_of[tenant.name] * metrics.total_bps,
            )
            for tenant in metrics.tenants
        ),
    )


def _first_and_last(at: Windows) -> list[dict[str, float]]:
    """Return the shares of the first and of the last third; empty if a third has no window or no
    bytes."""
    part = at.count // _THIRDS
    if not part:
        return []
    totals = at.totals()
    ends = (slice(0, part), slice(at.count - part, at.count))
    if not all(sum(totals[end]) for end in ends):
        return []
    return [
        {name: sum(moved[end]) / sum(totals[end]) for name, moved in at.moved.items()}
        for end in ends
    ]


def _unserved(
    asked: Tenant, result: TenantResult, spec: RunSpec, at: Windows
) -> Iterator[Suspicion]:
    """Yield tenants whose requests arrive at a rate and are not served at it."""
    load = asked.workload
    if not load.rate_iops or program_of(load) or not result.measured_ns:
        return
    ended = sum(one.meas_ios for one in result.ops.values())
    size = sum(one.meas_bytes for one in result.ops.values())
    parts: list[tuple[float, int, str]] = [(ended, result.measured_ns, "its requests")]
    always = not load.off_ns and result.measured_ns >= spec.runtime_ns
    if size and always and at.count >= _THIRDS:
        # The series has bytes; requests are assumed to have their mean size.
        last = at.moved[asked.name][-(at.count // _THIRDS) :]
        what = "the requests of the last third, so ever more wait"
        parts.append((sum(last) * ended / size, len(last) * at.width_ns, what))
    for done, ns, what in parts:
        arrived = load.rate_iops * load.numjobs * ns / 1e9
        served = _served(done, arrived, random=load.rate_process == "poisson")
        if served is not None:
            text = f"served {numbers.percent(served)} of {what}: its latency has no bound"
            yield Suspicion("latency", asked.name, text, served=served)
            return


def _served(ended: float, arrived: float, *, random: bool) -> float | None:
    """Return the served fraction of the arrivals, if it is too small to be chance: a Poisson
    process of n arrivals has a standard deviation of sqrt(n)."""
    slack = max((1 - SERVED) * arrived, 1.0) + random * _DEVIATIONS * math.sqrt(arrived)
    return ended / arrived if ended < arrived - slack else None


def _busy(result: TenantResult) -> Iterator[Suspicion]:
    processors = result.processors
    if processors is None or not result.measured_ns:
        return
    busy = processors.busy_ns / processors.cpus / result.measured_ns
    if busy > BUSY:
        what = "its processor is" if processors.cpus == 1 else "its processors are"
        yield Suspicion(
            "all",
            result.name,
            f"{what} busy {numbers.percent(busy)} of the time: it would ask for more",
        )


def _long(result: TenantResult, metrics: TenantMetrics) -> Iterator[Suspicion]:
    found = metrics.latency.get(ALL)
    if found is not None and found.p99 > OF_TIME * result.measured_ns:
        yield Suspicion(
            "latency",
            result.name,
            f"p99 is above {numbers.percent(OF_TIME)} of the measured time",
        )


def _unsettled(
    spec: RunSpec, tenants: Sequence[TenantMetrics], phases: Sequence[Phase], at: Windows
) -> Iterator[Suspicion]:
    """Yield the tenant whose share changes most within a phase, relative to its ideal. Programs and
    traces are skipped, whose load itself changes."""
    of_programs = any(
        program_of(tenant.workload) or tenant.workload.trace or tenant.workload.program == RUNNING
        for tenant in spec.tenants
    )
    ends = _first_and_last(at)
    if not ends or len(phases) != 1 or of_programs or spec.device_events:
        return
    first, last = ends
    found = []
    for one in tenants:
        ended = one.iops * spec.runtime_ns / 1e9
        move = abs(last[one.name] - first[one.name])
        if ended and move > _DEVIATIONS * one.share * math.sqrt(2 * _THIRDS / ended) and one.ideal:
            found.append((move / one.ideal, one.name))
    if found:
        off, name = max(found)
        text = (
            f"share of {numbers.percent(first[name])} in the first third,"
            f" {numbers.percent(last[name])} in the last: not settled"
        )
        yield Suspicion("shares", name, text, off=off)

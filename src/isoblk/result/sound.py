# SPDX-License-Identifier: GPL-2.0-only
"""Check values of result files beyond their types, because results may come from other people."""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from isoblk.caches.registry import CACHES
from isoblk.layers.registry import LAYERS
from isoblk.result.study import StudyRecord
from isoblk.run import limits
from isoblk.run.record import OpTotals, RunRecord, TenantResult
from isoblk.run.spec import PlannedRun, RunSpec, Tenant, schedulers_of
from isoblk.schedulers.registry import SCHEDULERS

_SECOND = 1_000_000_000
_MILLISECOND = 1_000_000
_MOST = (1 << 63) - 1


def wrong_in_study(record: StudyRecord) -> str:
    """Return the first invalid value of a study.json; "" if all are valid."""
    return next((text for run in record.runs for text in _of_planned(run.planned, record)), "")


def wrong_in_run(record: RunRecord, planned: RunSpec) -> str:
    """Return the first invalid value of a run.json, for a run that was planned so; "" if all are
    valid."""
    return next(_of_run(record, planned), "")


def _of_planned(planned: PlannedRun, record: StudyRecord) -> Iterator[str]:
    others = [*planned.calibrate.values(), *planned.alone, *planned.full]
    others += [one for one in (planned.reference, planned.bound) if one is not None]
    if not all(0 <= index < len(record.runs) for index in others):
        yield "depends on a run that does not exist"
    tenants = len(planned.spec.tenants)
    if any(indexes and len(indexes) != tenants for indexes in (planned.alone, planned.full)):
        yield "has other tenants than runs of them alone"
    yield from _of_spec(planned.spec)


def _of_spec(spec: RunSpec) -> Iterator[str]:
    names = [tenant.name for tenant in spec.tenants]
    if len(set(names)) < len(names):
        yield "has two tenants of one name"
    weights = [tenant.weight for tenant in spec.tenants]
    weights += [group.weight for group in spec.groups]
    weights += [event.weight for event in spec.events]
    if not all(weight in limits.WEIGHT for weight in weights):
        yield "has an invalid weight"
    for scheduler in schedulers_of(spec):
        if scheduler.elsewhere is UNSET and scheduler.name not in SCHEDULERS:
            yield f"unknown scheduler: {scheduler.name!r}"
    if spec.caching is not None and spec.caching.cache not in CACHES:
        yield f"unknown cache: {spec.caching.cache!r}"
    if not LAYERS.keys() >= set(spec.stack):
        yield f"has an unknown layer in its stack: {' '.join(spec.stack)!r}"
    longest = limits.RUN_SECONDS * _SECOND
    if not (0 <= spec.warmup_ns <= longest and 0 < spec.runtime_ns <= longest):
        yield "has an invalid duration"
    most = spec.window_ms * limits.WINDOWS_MAX * _MILLISECOND
    if spec.window_ms <= 0 or spec.warmup_ns + spec.runtime_ns > most:
        yield "has invalid windows"


def _of_run(record: RunRecord, planned: RunSpec) -> Iterator[str]:
    yield from _of_spec(record.spec)
    who = [_who(tenant) for tenant in planned.tenants]
    if [_who(tenant) for tenant in record.spec.tenants] != who:
        yield "has other tenants than its study"
    if [(tenant.name, tenant.weight) for tenant in record.tenants] != who:
        yield "has results of other tenants"
    for tenant in record.tenants:
        numbers = [tenant.measured_ns, *(n for one in tenant.ops.values() for n in _numbers(one))]
        if not all(0 <= number <= _MOST for number in numbers):
            yield "has an invalid count or time"


def _who(tenant: Tenant | TenantResult) -> tuple[str, int]:
    return tenant.name, tenant.weight


def _numbers(totals: OpTotals) -> tuple[int, ...]:
    return msgspec.structs.astuple(totals)

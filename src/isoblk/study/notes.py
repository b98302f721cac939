# SPDX-License-Identifier: GPL-2.0-only
"""Notes on a study for its author before the runs, and for the reader of its report."""

from collections.abc import Iterable, Sequence

from isoblk.layers.registry import layers_of
from isoblk.programs.registry import program_of
from isoblk.run.field import nearest
from isoblk.run.record import RunRecord, TenantResult
from isoblk.run.spans import length, spans
from isoblk.run.spec import RunSpec, Tenant, VdiskDevice, Workload, schedulers_of
from isoblk.run.units import format_time
from isoblk.schedulers.own import OwnElevator
from isoblk.schedulers.registry import kind_of
from isoblk.study.capability import too_much
from isoblk.study.point import NR_REQUESTS
from isoblk.study.presets import hardware_tags
from isoblk.study.traces import ends_ns
from isoblk.trace.plausible import doubt

# blk-mq gives a scheduler twice the device's tags, counting at most BLKDEV_DEFAULT_RQ of them, and
# allows MAX_SCHED_RQ (block/blk-mq-sched.[ch]).
_DEFAULT_RQ = 128
_MOST_TAGS = 2048
# With fewer, the tags of a group are too coarse to follow the weights:
# docs/findings/many-groups.md.
TAGS_A_GROUP = 2
_STARVED = "starved of the disk"
_FEW = 3  # names in a line
_PRECONDITION = "device.flash.precondition"


def notes(specs: Iterable[RunSpec]) -> list[str]:
    """Return notes, a line each.

    One line if a run divides its scheduler tags among too many groups; one with the stand-ins; one
    for each trace that ends before its run, or whose times, at its replay speed, no disk has; one
    for each tenant with a higher rate than the disk can do; one if data are read that were never
    written; one for each tunable that resembles another; and one for each tenant whose pause lasts
    longer than its run.

    Args:
        specs: the study's runs; the line on tags is about the one that needs most.
    """
    specs = list(specs)
    return [
        *(*_tags(specs), *_stand_ins(specs), *_traces(specs), *_doubts(specs)),
        *(*_rates(specs), *_empty(specs), *_tunables(specs), *_pauses(specs)),
    ]


def idle(records: Iterable[RunRecord]) -> list[str]:
    """Return a line for the tenants without a request in the measured time, for each reason and its
    schedulers.

    Args:
        records: valid runs of the study's points.
    """
    found: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        for tenant, result in zip(record.spec.tenants, record.tenants, strict=True):
            if _did_nothing(result):
                where = found.setdefault((tenant.name, _why_idle(record.spec, tenant, result)), {})
                where[record.spec.scheduler.name] = None
    names: dict[tuple[str, str], list[str]] = {}
    for (name, why), schedulers in found.items():
        names.setdefault((", ".join(schedulers), why), []).append(name)
    return [
        f"{few(tenants)} did nothing in the measured time under {schedulers}: {why}"
        for (schedulers, why), tenants in names.items()
    ]


def starved(record: RunRecord) -> set[str]:
    """Return the tenants that submitted requests in the measured time, and had none completed."""
    return {
        tenant.name
        for tenant, result in zip(record.spec.tenants, record.tenants, strict=True)
        if _did_nothing(result) and _why_idle(record.spec, tenant, result) == _STARVED
    }


def _did_nothing(result: TenantResult) -> bool:
    return not any(one.meas_ios for one in result.ops.values())


def _why_idle(spec: RunSpec, tenant: Tenant, result: TenantResult) -> str:
    load, end_ns = tenant.workload, spec.warmup_ns + spec.runtime_ns
    if not length(spans(load, end_ns), spec.warmup_ns, end_ns):
        return "its on and off, startdelay and runtime leave nothing of it"
    ended = sum(one.ios + one.errors for one in result.ops.values())
    if load.number_ios and ended:
        return "its number_ios ended in the warm-up"
    if result.measured_ns == 0:
        return "it ended in the warm-up"
    return _STARVED


def few(names: Sequence[str]) -> str:
    """Return names, or the first of many and the number of the rest."""
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more


def _tags(specs: list[RunSpec]) -> list[str]:
    short = [
        (len(spec.tenants), scheduler.name, tags)
        for spec in specs
        for scheduler in schedulers_of(spec)
        if kind_of(scheduler).divides_tags
        and (tags := _scheduler_tags(spec)) < TAGS_A_GROUP * len(spec.tenants)
        and tags < _MOST_TAGS
    ]
    if not short:
        return []
    groups, scheduler, tags = max(short)
    wanted = min(_MOST_TAGS, _power_of_two(TAGS_A_GROUP * groups))
    return [
        f"{groups} groups under {scheduler} divide {tags} scheduler tags, fewer than"
        f" {TAGS_A_GROUP} each, and weights may not hold; set nr_requests = {wanted} in [queue]"
    ]


def _stand_ins(specs: list[RunSpec]) -> list[str]:
    loads = [tenant.workload.trace for spec in specs for tenant in spec.tenants]
    names = sorted({trace.name for trace in loads if trace and trace.stand_in})
    if not names:
        return []
    return [
        f"{', '.join(names)}: stand-ins made from published figures, not the traces themselves"
        " (docs/guides/traces.md)"
    ]


def _traces(specs: list[RunSpec]) -> list[str]:
    early: dict[str, int] = {}
    for spec in specs:
        for tenant in spec.tenants:
            load, until = tenant.workload, spec.warmup_ns + spec.runtime_ns
            if load.runtime_ns:
                until = load.startdelay_ns + load.runtime_ns
            end = ends_ns(load)
            if load.trace and end is not None and end < until - spec.window_ms * 1_000_000:
                early.setdefault(load.trace.name, end)
    return [
        f"trace {name} ends after {format_time(round(end, -6))}, before the run does;"
        " trace_loop = true repeats it"
        for name, end in early.items()
    ]


def _doubts(specs: list[RunSpec]) -> list[str]:
    loads = [tenant.workload for spec in specs for tenant in spec.tenants]
    told = {}
    for load in loads:
        if load.trace and load.replay == "timed":
            records, span_ns = load.trace.records, load.trace.span_ns
            # About the trace itself, for which a speed can be recommended.
            if text := doubt(records, span_ns * 1000 // load.speed):
                told[load.trace.name] = doubt(records, span_ns) or text
    return [f"trace {name}: {text}" for name, text in told.items()]


def _rates(specs: list[RunSpec]) -> list[str]:
    # The run of a lone tenant has the same load under another name.
    own = [spec for spec in specs if spec.kind == "share"]
    return list(dict.fromkeys(text for spec in own for text in too_much(spec)))


def _empty(specs: list[RunSpec]) -> list[str]:
    readers = dict.fromkeys(
        name
        for spec in specs
        # A study that varies it does so on purpose.
        if spec.kind == "share" and _PRECONDITION not in spec.point
        for name in reads_empty(spec)
    )
    if not readers:
        return []
    reads = "reads" if len(readers) == 1 else "read"
    return [
        f"{few(list(readers))} {reads} from an empty drive, which touches none of its dies; for"
        ' one in use remove fresh = true, or set flash = { precondition = "random" }, in [device]'
    ]


def _tunables(specs: list[RunSpec]) -> list[str]:
    """Return a note for each unknown tunable of isoblk's schedulers that resembles a known one.

    It is not an error: `isoblk run --sources` may build a scheduler that has it.
    """
    found = {}
    for spec in specs:
        for scheduler in schedulers_of(spec):
            kind = kind_of(scheduler)
            if not isinstance(kind, OwnElevator):
                continue
            known = {*(kind.tunables or {}), *kind.tunable_words}
            for name in scheduler.iosched.keys() - known:
                if near := nearest(name, known):
                    found[kind.name, name] = near
    return [
        f"{scheduler} has no tunable {name}; did you mean {near!r}?"
        for (scheduler, name), near in sorted(found.items())
    ]


def _pauses(specs: list[RunSpec]) -> list[str]:
    found = {
        tenant.name: (tenant.workload.off_ns, spec.warmup_ns + spec.runtime_ns)
        for spec in specs
        if spec.kind == "share"
        for tenant in spec.tenants
        if tenant.workload.off_ns >= spec.warmup_ns + spec.runtime_ns
    }
    return [
        f"{name}: its pause (off) of {format_time(off_ns)} is as long as the run of"
        f" {format_time(end_ns)} or longer; a number without a unit is in seconds"
        for name, (off_ns, end_ns) in found.items()
    ]


def reads_empty(spec: RunSpec) -> list[str]:
    """Return the tenants that read a drive that was not written before the run. Files, and data of
    a cache, are written first."""
    fresh = (
        spec.caching is None
        and not any(layer.keeps for layer in layers_of(spec.stack))
        and isinstance(spec.device, VdiskDevice)
        and spec.device.model == "flash"
        and spec.device.flash.precondition == "none"
    )
    return [
        tenant.name
        for tenant in spec.tenants
        if fresh and not program_of(tenant.workload) and _reads(tenant.workload)
    ]


def _reads(load: Workload) -> bool:
    return load.trace is not None or load.rw in ("read", "randread", "rw", "randrw")


def _scheduler_tags(spec: RunSpec) -> int:
    """Return nr_requests of a run with an elevator."""
    written = spec.queue.get(NR_REQUESTS)
    if isinstance(written, int):
        return written
    return 2 * min(hardware_tags(spec.device), _DEFAULT_RQ)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()

# SPDX-License-Identifier: GPL-2.0-only
"""Check that a study can run, at every point of its matrix."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec import UNSET

from isoblk.layers.registry import size_of
from isoblk.metrics.base import PER_TENANT
from isoblk.metrics.registry import NAMES, places, split_metric
from isoblk.metrics.shares import RATIO
from isoblk.programs.registry import program_of
from isoblk.run import limits
from isoblk.run.field import Field, FieldError, FieldErrors, nearest, suggest, within
from isoblk.run.limits import Range
from isoblk.run.load import LOAD_OPTIONS
from isoblk.run.spec import (
    RUNNING,
    SCHEDULER,
    DeviceEvent,
    Event,
    HostDevice,
    MatrixValue,
    NullBlkDevice,
    RunSpec,
    Scheduler,
    SchedulerEvent,
    VdiskDevice,
    label,
    schedulers_of,
)
from isoblk.run.tier import ICOUNT_CPUS_MAX, QEMU
from isoblk.run.typed import without
from isoblk.run.units import format_size, format_time
from isoblk.schedulers.registry import ELEVATORS, SCHEDULERS, kind_of, kinds
from isoblk.study.check_cache import check_cache
from isoblk.study.check_load import check_load
from isoblk.study.check_stack import check_stack
from isoblk.study.filesystem import check_options
from isoblk.study.model import ClaimEntry, CompareTable, Study
from isoblk.study.point import (
    TARGET,
    Point,
    Slot,
    applies,
    build_run,
    is_target,
    origin,
    points,
    program_name,
    refuse_unknown_cache,
    scheduler_kind,
    scheduler_of,
    slots,
    targets,
)
from isoblk.study.text import Source

# Wrong points after the last new mistake: all later ones probably repeat the same.
_REPEATS_MAX = 50
# Characters of the name of a cgroup outside the study.
_CGROUP_NAME = re.compile(r"[A-Za-z0-9_.:@+=,-]+")


def check_study(study: Study, source: Source | None = None) -> None:
    """Find the errors in a study.

    Args:
        study: as decoded.
        source: its file, for the lines.

    Raises:
        UserError: the cause, its place (FILE:LINE and field), and the allowed values, for each
            error (SeveralError); without a source the first error.
    """
    if errors := _find_errors(study):
        raise next(iter(errors)) if source is None else source.locate_all(errors)


def _find_errors(study: Study) -> FieldErrors:
    errors = FieldErrors()
    for check in (scheduler_kind, refuse_unknown_cache, _check_tenant_names):
        with errors.kept():
            check(study)
    errors.add_all(_check_matrix(study))
    if errors:
        # There are no points to look at.
        return errors
    for check in (_check_targets, _check_name, _check_repeats, _check_group_paths):
        with errors.kept():
            check(study)
    for key in study.matrix:
        with errors.kept():
            targets(study, key)
    matched = _find_errors_at_points(study, errors)
    # A claim on what is wrong in the matrix is no second mistake.
    wrong = {str(one.field[1]) for one in errors if one.field[0] == "matrix" and one.field[1:]}
    for index, runs in enumerate(matched):
        with errors.kept():
            _check_claim_runs(study, index, wrong)
        with errors.kept():
            _check_claim_metric(study, index, runs, wrong)
        with errors.kept():
            _check_claim_value(study, index)
    if study.compare is not None:
        with errors.kept():
            _check_compare(study, study.compare, wrong)
    return errors


def _find_errors_at_points(study: Study, errors: FieldErrors) -> list[list[list[str]]]:
    """Add the errors of all points. Returns for each claim the tenants' names of each run that
    matches it."""
    matched: list[list[list[str]]] = [[] for _ in study.claim]
    named: set[tuple[Field, str]] = set()
    repeated = 0
    with errors.kept():
        for number, point in enumerate(points(study)):
            found, before = _find_errors_at(point), len(errors)
            for error in found:
                key = _overriding(error.field, point)
                # The same field is wrong at other points as well.
                if (place := (error.field, point.labels.get(key, ""))) not in named:
                    named.add(place)
                    errors.add(_in_point(error, point, number, key))
            repeated = 0 if len(errors) > before else repeated + bool(found)
            if errors.full or repeated > _REPEATS_MAX:
                break
            with FieldErrors().kept():  # they are in `found`
                names = [slot.name for slot in slots(point.study)]
                for claim, runs in zip(study.claim, matched, strict=True):
                    where = {key: label(value) for key, value in claim.where.items()}
                    if where.items() <= point.labels.items():
                        runs.append(names)
    return matched


def _find_errors_at(point: Point) -> FieldErrors:
    study, errors = point.study, FieldErrors()
    spec = _build_or_find_errors(point, errors)
    if spec is None or errors:
        return errors
    loads = {
        slot.entry: tenant.workload for slot, tenant in zip(slots(study), spec.tenants, strict=True)
    }
    for entry, load in loads.items():
        with errors.kept():
            check_load(study, entry, spec, load)
    for check in _CHECKS:
        with errors.kept():
            errors.add_all(check(study, spec) or ())
    return errors


def _build_or_find_errors(point: Point, errors: FieldErrors) -> RunSpec | None:
    """Return the run of a point. A malformed value is an error, and is left out to find others."""
    while True:
        try:
            return build_run(point, repeat=0)
        except FieldError as error:
            # Of a table from which something was left out it is no second mistake.
            if errors.inside(error.field):
                return None
            errors.add(error)
            study = without(point.study, error.field)
            if study is None or errors.full:
                return None
            point = replace(point, study=study)


def _overriding(field: Field, point: Point) -> str:
    """Return the matrix key that set the field, "" if none did."""
    keys = (point.overridden.get(field[:end], "") for end in range(len(field), 0, -1))
    return next(filter(None, keys), "")


def _in_point(error: FieldError, point: Point, number: int, key: str) -> FieldError:
    """Return the error with the matrix value that causes it, or with the point, unless the matrix
    has a single point."""
    if key:
        return FieldError(("matrix", key), f"{point.labels[key]}: {error.cause}", next=error.next)
    if number == 0:
        return error
    at = ", ".join(f"{key}={value}" for key, value in point.labels.items())
    return FieldError(error.field, f"{error.cause} (at {at})", next=error.next)


# ---- the study as a whole ------------------------------------------------------------


def _check_matrix(study: Study) -> Iterator[FieldError]:
    for key, values in study.matrix.items():
        field = ("matrix", key)
        if not values:
            yield FieldError(field, "the list is empty", next="give it a value, or remove it")
        labels = [label(value) for value in values]
        if twice := next((text for text in labels if labels.count(text) > 1), None):
            yield FieldError(field, f"{twice} is there twice", next="keep one of them")
        about = scheduler_of(key)
        if about and about not in study.matrix.get(SCHEDULER, [study.scheduler]):
            yield FieldError(field, f"no run is under {about}", next=f"add {about} to scheduler")
        name = key.removeprefix("workload.")
        if name != key and name in LOAD_OPTIONS and _unused(study, name):
            yield FieldError(
                field,
                f"every tenant sets its own {name}",
                next=f'use "tenant.*.{name}", or remove {name} from the tenants',
            )
    shares = study.run.repeats * math.prod(len(values) for values in study.matrix.values())
    if shares > limits.SHARES_MAX:
        yield FieldError(("matrix",), f"{shares} runs", next=f"allowed: up to {limits.SHARES_MAX}")


def _check_targets(study: Study) -> None:
    """Check that a latency target of a tenant is read by a scheduler."""
    known = kinds(study.schedulers)
    having = [name for name, kind in known.items() if kind.target_file]
    names = [str(name) for name in study.matrix.get(SCHEDULER, [study.scheduler])]
    if set(having) & set(names):
        return
    fields: list[Field] = [
        ("tenant", index, TARGET)
        for index, entry in enumerate(study.tenant)
        if entry.latency_target
    ]
    fields += [("matrix", key) for key in study.matrix if is_target(key)]
    for field in fields:
        raise FieldError(
            field,
            f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} no latency targets",
            next=f"remove it, or add {' or '.join(having)} to scheduler",
        )


def _unused(study: Study, name: str) -> bool:
    return bool(study.tenant) and all(
        origin(study, index, name) == ("tenant", index, name) for index in range(len(study.tenant))
    )


def _check_tenant_names(study: Study) -> None:
    if not study.tenant:
        raise FieldError(("tenant",), "there is no tenant", next="add a [[tenant]]")
    _unique(("tenant",), "name", [entry.name for entry in study.tenant])


def _check_name(study: Study) -> None:
    _name(("name",), study.name, "a study's name")


def _check_repeats(study: Study) -> None:
    within(("run", "repeats"), study.run.repeats, limits.REPEATS)


def _check_group_paths(study: Study) -> None:
    _unique(("group",), "path", [entry.path for entry in study.group])


def _check_claim_runs(study: Study, index: int, wrong: Collection[str]) -> None:
    """Check which runs a claim concerns. wrong: matrix keys that are an error."""
    claim, field = study.claim[index], ("claim", index)
    _check_at_points(study, (*field, "where"), claim.where, wrong)
    _check_at_points(study, (*field, "than"), claim.than, wrong)
    if not wrong:
        _check_schedulers(study, field, claim)


def _check_claim_metric(
    study: Study, index: int, runs: Sequence[Sequence[str]], wrong: Collection[str]
) -> None:
    """Check what a claim measures. runs: tenants' names of each run that matches it. wrong: matrix
    keys that are an error."""
    claim, field = study.claim[index], ("claim", index)
    schedulers = study.matrix.get(SCHEDULER, [])
    if claim.metric == "total_vs_best" and "kyber" not in schedulers and not wrong:
        raise FieldError(
            (*field, "metric"),
            "total_vs_best compares with kyber too, which is not in the matrix",
            next='add "kyber" to scheduler, or use total_vs_none',
        )
    for names in runs:
        try:
            split_metric(claim.metric, names)
        except ValueError as error:
            raise FieldError(
                (*field, "metric"), str(error), next=_suggest_metric(claim.metric, names)
            ) from None
        _check_why(claim, field, names)
        if strangers := [name for name in claim.among if name not in names]:
            raise FieldError(
                (*field, "among"),
                f"no tenant is called {strangers[0]!r}",
                next=suggest(strangers[0], names),
            )
    if claim.among and claim.metric != RATIO:
        raise FieldError(
            (*field, "among"), f"has no meaning with {claim.metric}", next=f"use {RATIO}"
        )
    if len(claim.among) == 1:
        raise FieldError((*field, "among"), "a single tenant has no ratio", next="name two or more")


def _check_claim_value(study: Study, index: int) -> None:
    claim, field = study.claim[index], ("claim", index)
    if not math.isfinite(claim.value):
        raise FieldError((*field, "value"), f"{claim.value} is not a number to compare with")
    if not 0 <= claim.tolerance < math.inf:
        raise FieldError((*field, "tolerance"), f"{claim.tolerance} is negative or not finite")
    if claim.tolerance and claim.op != "~":
        raise FieldError((*field, "tolerance"), f"has no meaning with {claim.op!r}", next='use "~"')


def _suggest_metric(metric: str, tenants: Collection[str]) -> str:
    """Return a replacement for an unknown metric, or for the unknown tenant of a known one."""
    name, _, tenant = metric.partition(".")
    return (
        suggest(tenant, tenants)
        if tenant and name + PER_TENANT in NAMES
        else suggest(metric, NAMES)
    )


def _check_schedulers(study: Study, field: Field, claim: ClaimEntry) -> None:
    """Check that a matrix key of one scheduler is used with that scheduler, and given where it is
    needed."""
    own = study.matrix.get(SCHEDULER, [study.scheduler])
    under = [claim.where[SCHEDULER]] if SCHEDULER in claim.where else own
    for key in claim.where:
        if not any(applies(key, str(one)) for one in under):
            raise FieldError(
                (*field, "where", key),
                f"has no meaning under {', '.join(str(one) for one in under)}",
                next="remove it",
            )
    other = str(claim.than.get(SCHEDULER, ""))
    for key in study.matrix:
        if not other or not scheduler_of(key):
            continue
        if key in claim.than and not applies(key, other):
            raise FieldError(
                (*field, "than", key), f"has no meaning under {other}", next="remove it"
            )
        # The compared run does not determine the key, unless all of these schedulers have it.
        said = key in claim.than or all(
            applies(key, str(one))
            for one in under
            if all(applies(named, str(one)) for named in claim.where)
        )
        if applies(key, other) and not said:
            raise FieldError(
                (*field, "than"), f"does not say which run under {other}", next=f"add {key}"
            )


def _check_why(claim: ClaimEntry, field: Field, names: Sequence[str]) -> None:
    for metric, of_other in places(claim.why):
        try:
            split_metric(metric, names)
        except ValueError as error:
            raise FieldError(
                (*field, "why"), f"{{{metric}}}: {error}", next=_suggest_metric(metric, names)
            ) from None
        if of_other and not claim.than:
            raise FieldError(
                (*field, "why"), f"{{than.{metric}}}: there is no other run", next="set than"
            )


def _check_compare(study: Study, compare: CompareTable, wrong: Collection[str]) -> None:
    if compare.x not in study.matrix:
        if nearest(compare.x, wrong):
            return
        raise FieldError(
            ("compare", "x"), "not a matrix key", next=suggest(compare.x, study.matrix)
        )
    if not 0 < compare.scale < math.inf:
        raise FieldError(
            ("compare", "scale"), f"{compare.scale} is out of range", next="allowed: more than 0"
        )
    wanted = len(study.matrix[compare.x])
    for index, series in enumerate(compare.series):
        field = ("compare", "series", index)
        _check_at_points(study, (*field, "where"), series.where, wrong)
        if len(series.values) != wanted:
            raise FieldError(
                (*field, "values"),
                f"{len(series.values)} values for {wanted} of {compare.x}",
                next="give one each, 0 where the source has none",
            )
        if not all(0 <= value < math.inf for value in series.values):
            raise FieldError((*field, "values"), "one is negative or not finite")


def _check_at_points(
    study: Study, field: Field, at: dict[str, MatrixValue], wrong: Collection[str]
) -> None:
    """Check `where` or `than`: keys and values of the matrix. wrong: matrix keys that are an
    error."""
    keys = {SCHEDULER, *study.matrix}
    for key, value in at.items():
        if key in wrong or (key not in study.matrix and nearest(key, wrong)):
            continue
        if key not in keys:
            raise FieldError((*field, key), "not a matrix key", next=suggest(key, keys))
        known = [label(v) for v in study.matrix.get(key, [study.scheduler])]
        if label(value) not in known:
            raise FieldError(
                (*field, key),
                f"the matrix has no {label(value)}",
                next="allowed: " + ", ".join(known),
            )


# ---- one point -----------------------------------------------------------------------


def _check_filesystem(study: Study, spec: RunSpec) -> None:
    """Check that the file system fits the device, that the device keeps data, and that no tenant
    writes there."""
    filesystem, device = spec.filesystem, spec.device
    if filesystem is None:
        return
    check_options(filesystem.type, filesystem.mkfs, filesystem.mount)
    for name in ("offset", "size"):
        if getattr(filesystem, name) % limits.PHYSICAL_BLOCK:
            raise FieldError(
                ("filesystem", name),
                f"{getattr(filesystem, name)} is not a multiple of {limits.PHYSICAL_BLOCK}",
            )
    if spec.caching is not None:
        if filesystem.size < limits.FILESYSTEM_BYTES[filesystem.type]:
            raise FieldError(("filesystem",), f"{format_size(filesystem.size)} is too small")
        return
    end = filesystem.offset + filesystem.size
    least = limits.FILESYSTEM_BYTES[filesystem.type]
    room = size_of(spec.stack, device.size)
    if filesystem.offset >= room or end > room:
        raise FieldError(
            ("filesystem", "size" if filesystem.offset < room else "offset"),
            "goes beyond the device",
            next=f"the device has {format_size(room)}",
        )
    if filesystem.size < least:
        raise FieldError(
            ("filesystem", "size"),
            f"{format_size(filesystem.size)} is too small for {filesystem.type}",
            next=f"allowed: {format_size(least)} and more",
        )
    if isinstance(device, VdiskDevice) and device.store == "none":
        raise FieldError(
            ("filesystem",),
            "this vdisk does not store written data",
            next='set device.store = "memory"',
        )
    if isinstance(device, NullBlkDevice) and not device.memory_backed:
        raise FieldError(
            ("filesystem",),
            "this null_blk does not store written data",
            next="set device.memory_backed = true",
        )
    for slot, tenant in zip(slots(study), spec.tenants, strict=True):
        load = tenant.workload
        if program_of(load) or (not load.trace and load.rw in ("read", "randread")):
            continue
        upper = load.offset + load.size if load.size else room
        if load.offset < end and filesystem.offset < upper:
            raise FieldError(
                ("tenant", slot.entry, "offset"),
                f"{tenant.name!r} writes to where the file system is",
                next=f"keep out of {format_size(filesystem.offset)}..{format_size(end)} with offset"
                " and size, or give [filesystem] a size",
            )


def _check_verified_regions(study: Study, spec: RunSpec) -> None:
    """Check that no other tenant writes to a region that a tenant verifies."""
    room = size_of(spec.stack, spec.device.size)
    regions = {
        tenant.name: (
            tenant.workload.offset,
            tenant.workload.offset + (tenant.workload.size or room - tenant.workload.offset),
        )
        for tenant in spec.tenants
    }
    writers = [
        tenant.name
        for tenant in spec.tenants
        if not program_of(tenant.workload)
        and (tenant.workload.trace or tenant.workload.rw not in ("read", "randread"))
    ]
    for slot, tenant in zip(slots(study), spec.tenants, strict=True):
        if not tenant.workload.verify:
            continue
        begin, end = regions[tenant.name]
        for other in writers:
            if other != tenant.name and regions[other][0] < end and begin < regions[other][1]:
                raise FieldError(
                    ("tenant", slot.entry, "verify"),
                    f"{tenant.name!r} verifies a region that {other!r} writes too",
                    next="give each its own with offset and size",
                )


def _check_zones(study: Study, spec: RunSpec) -> None:
    """Check that a disk with zones has no file system, no layers, and one writer per zone."""
    device = spec.device
    if not isinstance(device, NullBlkDevice) or not device.zone_size:
        return
    for name in ("filesystem", "stack"):
        if getattr(spec, name):
            raise FieldError((name,), "not on a disk with zones", next="set device.zone_size = 0")
    ends: list[tuple[int, int, str]] = []
    for slot, tenant in zip(slots(study), spec.tenants, strict=True):
        load = tenant.workload
        if load.rw in ("read", "randread"):
            continue
        begin, end = load.offset, load.offset + (load.size or device.size - load.offset)
        for other_begin, other_end, other in ends:
            if begin < other_end and other_begin < end:
                raise FieldError(
                    origin(study, slot.entry, "offset"),
                    f"{tenant.name!r} writes to zones of {other!r}",
                    next="give each its own with offset_increment and size",
                )
        ends.append((begin, end, tenant.name))


def _check_device(_study: Study, spec: RunSpec) -> None:
    if isinstance(spec.device, VdiskDevice) and spec.device.hw_queues > ICOUNT_CPUS_MAX:
        raise FieldError(
            ("device", "hw_queues"),
            f"{spec.device.hw_queues} hardware queues: no machine of the lab has so many CPUs",
            next=f"allowed: 1, up to {QEMU.cpus} with --machine qemu, up to {ICOUNT_CPUS_MAX} with"
            f" --machine icount --cpus {ICOUNT_CPUS_MAX}",
        )


def _check_times(_study: Study, spec: RunSpec) -> None:
    times = (("warmup", spec.warmup_ns), ("runtime", spec.runtime_ns))
    for name, value in times:
        if value > limits.RUN_SECONDS * 1_000_000_000:
            raise FieldError(
                ("run", name),
                f"{format_time(value)} is too long",
                next=f"allowed: up to {limits.RUN_SECONDS}s",
            )
    if spec.runtime_ns == 0:
        raise FieldError(("run", "runtime"), "0 measures nothing", next="allowed: more than 0")
    window = spec.window_ms * 1_000_000
    for name, value in times:
        if value % window:
            fits = math.gcd(spec.runtime_ns, spec.warmup_ns, window)
            fits -= fits % 1_000_000
            hint = f", as {format_time(fits)} does" if fits else ""
            raise FieldError(
                ("run", "window"),
                f"{spec.window_ms}ms does not divide run.{name} = {format_time(value)}",
                next=f"choose a window of whole milliseconds that divides both{hint}",
            )
    if (spec.warmup_ns + spec.runtime_ns) // window > limits.WINDOWS_MAX:
        raise FieldError(
            ("run", "window"),
            f"{spec.window_ms}ms makes more than {limits.WINDOWS_MAX} windows",
            next="choose a wider one",
        )
    within(("run", "seed"), spec.seed, limits.SEED)


def _check_tenants(study: Study, spec: RunSpec) -> None:
    places = slots(study)
    if len(places) > limits.TENANTS_MAX:
        raise FieldError(
            ("tenant",), f"{len(places)} tenants", next=f"allowed: up to {limits.TENANTS_MAX}"
        )
    names: dict[str, int] = {}
    cgroups: dict[str, str] = {}
    for slot in places:
        field: Field = ("tenant", slot.entry, "name")
        _name(field, slot.name, "a tenant's name")
        if slot.name in limits.TENANT_RESERVED:
            raise FieldError(
                field,
                f"{slot.name!r} is the name of one of the generator's own files",
                next="choose another; reserved: " + ", ".join(sorted(limits.TENANT_RESERVED)),
            )
        if slot.name in names:
            raise FieldError(field, f"{slot.name!r} is there twice", next="choose another name")
        names[slot.name] = slot.entry
        at: Field = ("tenant", slot.entry, "cgroup")
        if program_name(study, slot.entry) == RUNNING:
            _check_running(study, slot, spec)
        else:
            _cgroup(at, slot.cgroup)
        if slot.cgroup in cgroups:
            raise FieldError(
                at,
                f"tenants {cgroups[slot.cgroup]!r} and {slot.name!r} are both in {slot.cgroup!r}",
                next="give each a cgroup of its own",
            )
        cgroups[slot.cgroup] = slot.name
    inner = {group.path for group in spec.groups}
    for slot in places:
        if slot.cgroup in inner:
            _check_inner(slot, spec.scheduler)
    for index, entry in enumerate(study.group):
        if entry.path in cgroups:
            raise FieldError(
                ("group", index, "path"),
                f"tenant {cgroups[entry.path]!r} is in {entry.path!r} and gives it its weight",
                next="remove the [[group]]",
            )
        if entry.path not in inner:
            raise FieldError(
                ("group", index, "path"),
                f"no tenant's cgroup is inside {entry.path!r}",
                next=suggest(entry.path, inner) if inner else "remove the [[group]]",
            )


def _check_inner(slot: Slot, scheduler: Scheduler) -> None:
    """Check a tenant whose cgroup contains those of others."""
    if kind_of(scheduler).fixed_weights:
        raise FieldError(
            ("tenant", slot.entry, "cgroup"),
            f"{slot.cgroup!r} holds the cgroups of other tenants,"
            f" and what {scheduler.name} sets there is for all of them together",
            next=f"choose a cgroup without children, or remove {scheduler.name}",
        )


def _check_weights(study: Study, spec: RunSpec) -> Iterator[FieldError]:
    weights: list[tuple[Field, int]] = [
        (("tenant", slot.entry, "weight"), slot.weight) for slot in slots(study)
    ]
    weights += [(("group", i, "weight"), entry.weight) for i, entry in enumerate(study.group)]
    weights += [
        (("event", i, "weight"), entry.weight)
        for i, entry in enumerate(study.event)
        if entry.weight is not UNSET
    ]
    for scheduler in schedulers_of(spec):
        allowed = kind_of(scheduler).weights
        who = "" if allowed == limits.WEIGHT else f" of {scheduler.name}"
        for field, weight in weights:
            if weight not in allowed:
                yield FieldError(
                    field, f"{weight} is out of the range{who}", next=f"allowed: {allowed}"
                )


def _check_events(study: Study, spec: RunSpec) -> Iterator[FieldError]:
    names = {tenant.name for tenant in spec.tenants}
    end = spec.warmup_ns + spec.runtime_ns
    weights, devices = iter(spec.events), iter(spec.device_events)
    schedulers = iter(spec.scheduler_events)
    for index, entry in enumerate(study.event):
        field = ("event", index)
        event: Event | DeviceEvent | SchedulerEvent
        if entry.scheduler is not UNSET:
            event = next(schedulers)
            _check_switch(spec, (*field, "scheduler"))
        else:
            event = next(devices) if entry.device else next(weights)
        if isinstance(event, Event) and event.tenant not in names:
            yield FieldError(
                (*field, "tenant"),
                f"no tenant is called {event.tenant!r}",
                next=suggest(event.tenant, names),
            )
        if event.at_ns >= end:
            yield FieldError(
                (*field, "at"),
                f"{format_time(event.at_ns)} is after the end of the run",
                next=f"allowed: 0 to less than {format_time(end)} (warm-up and runtime)",
            )
        if isinstance(event, Event) and kind_of(spec.scheduler).fixed_weights:
            yield FieldError(
                field,
                f"{spec.scheduler.name} has no weights",
                next=f"remove the event, or {spec.scheduler.name}",
            )


def _check_switch(spec: RunSpec, field: Field) -> None:
    """Check that the disk can change to another scheduler during the run."""
    if spec.scheduler.name not in ELEVATORS:
        raise FieldError(
            field, f"{spec.scheduler.name} is not an elevator", next=f"remove {spec.scheduler.name}"
        )
    if isinstance(spec.device, HostDevice):
        raise FieldError(field, "the host machine has one scheduler a run", next="remove the event")
    if spec.caching is not None or spec.cgroup != "v2":
        raise FieldError(
            field, "only without an SSD, and on cgroup v2", next='remove [ssd], set run.cgroup "v2"'
        )


def _check_scheduler(study: Study, spec: RunSpec) -> None:
    name = spec.scheduler.name
    if kind_of(spec.scheduler).v2_only and spec.cgroup != "v2":
        raise FieldError(
            ("run", "cgroup"), f"{name} needs cgroup v2", next=f'set "v2", or remove {name}'
        )
    kind = kind_of(spec.scheduler)
    if (
        spec.scheduler.elsewhere is not UNSET
        and kind.weight_files
        and (spec.cgroup not in kind.weight_files)
    ):
        raise FieldError(
            ("schedulers", name, "weight_file"),
            f"{spec.scheduler.elsewhere.weight_file} is not a file of cgroup {spec.cgroup}",
            next='"io.NAME.weight" is one of v2, "blkio.NAME.weight" of v1',
        )
    for one in SCHEDULERS.values():
        if one.table:
            one.check(getattr(study, one.table))
    for slot in slots(study):
        if spec.scheduler.io_latency_us.get(slot.name, 0) <= limits.LATENCY_US:
            continue
        if study.tenant[slot.entry].latency_target:
            raise FieldError(
                ("tenant", slot.entry, "latency_target"),
                f"{study.tenant[slot.entry].latency_target!r} is too long",
                next=f"allowed: up to {limits.LATENCY_US}us",
            )
        raise FieldError(
            ("io_latency", "target"),
            f"{study.io_latency.target!r} gives a tenant a target that is too long",
            next=f"allowed: up to {limits.LATENCY_US}us",
        )


def _check_tunables(study: Study, _spec: RunSpec) -> Iterator[FieldError]:
    if SCHEDULER in study.queue:
        yield FieldError(
            ("queue", SCHEDULER), "is not set here", next="use the study's field 'scheduler'"
        )
    tunables = {
        name: kind.tunables
        for name, kind in kinds(study.schedulers).items()
        if kind.tunables is not None
    }
    for scheduler, own in study.iosched.items():
        if scheduler not in tunables:
            yield FieldError(
                ("iosched", scheduler), "has no tunables", next=suggest(scheduler, tunables)
            )
            continue
        if scheduler in SCHEDULERS:
            SCHEDULERS[scheduler].check_tunables(own)
    tables: list[tuple[Field, dict[str, int | str], Mapping[str, Range]]] = [
        (("queue",), study.queue, limits.QUEUE_TUNABLES)
    ]
    tables += [
        (("iosched", name), table, tunables[name])
        for name, table in study.iosched.items()
        if name in tunables
    ]
    for field, table, ranges in tables:
        for key, value in table.items():
            if not limits.TUNABLE_NAME.fullmatch(key):
                yield FieldError((*field, key), "is not the name of a file below queue")
                continue
            if not limits.TUNABLE_VALUE.fullmatch(str(value)):
                yield FieldError(
                    (*field, key),
                    f"{value!r} is not a value of a setting",
                    next="allowed: letters, digits, blanks and _.,:=/+-; a '-' in front of a digit",
                )
                continue
            number = _whole(value)
            allowed = ranges.get(key, limits.TUNABLE)
            if number is not None and number not in allowed:
                yield FieldError(
                    (*field, key), f"{number} is out of range", next=f"allowed: {allowed}"
                )


_CHECKS: tuple[Callable[[Study, RunSpec], Iterable[FieldError] | None], ...] = (
    _check_times,
    check_stack,
    _check_tenants,
    _check_weights,
    check_cache,
    _check_filesystem,
    _check_verified_regions,
    _check_device,
    _check_zones,
    _check_events,
    _check_scheduler,
    _check_tunables,
)
"""The rules for the run of a point, but for those of its loads."""


# ---- small rules ---------------------------------------------------------------------


def _whole(value: int | str) -> int | None:
    """Return the number that a file would take the value for; None if it is not a number."""
    text = str(value).strip()
    # More digits than any file accepts, and few enough for int().
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,40}", text) else None


def _unique(table: Field, name: str, values: Sequence[str]) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise FieldError(
                (*table, index, name), f"{value!r} is there twice", next="choose another"
            )


def _name(field: Field, name: str, what: str) -> None:
    if len(name) > limits.NAME_MAX or not limits.TENANT_NAME.fullmatch(name):
        raise FieldError(
            field,
            f"{name!r} is not {what}",
            next=f"allowed: letters, digits, '_', '.', '-', up to {limits.NAME_MAX}, "
            "a letter, digit or '_' first",
        )


def _check_running(study: Study, slot: Slot, spec: RunSpec) -> None:
    """Check a tenant that is already running, and the rest of the study, which must not disturb the
    disk in use."""
    entry = study.tenant[slot.entry]
    field: Field = ("tenant", slot.entry, "cgroup")
    if entry.count is not UNSET:
        raise FieldError(
            ("tenant", slot.entry, "count"), "a running tenant has no count", next="remove it"
        )
    if slot.cgroup.startswith("/"):
        for part in slot.cgroup[1:].split("/"):
            if part in ("", ".", "..") or not _CGROUP_NAME.fullmatch(part):
                raise FieldError(
                    field,
                    f"{slot.cgroup!r} is not the path of a cgroup",
                    next="allowed: letters, digits and _.:@+=,- between slashes; else pid:N",
                )
    elif not re.fullmatch(r"pid:[1-9][0-9]{0,9}", slot.cgroup):
        raise FieldError(
            field,
            "a tenant that is running needs its cgroup",
            next='allowed: "/PATH" from the root of the hierarchy, as "/system.slice/web.service",'
            ' or "pid:N"',
        )
    kind_of(spec.scheduler).check_beside_running(spec.scheduler, ("tenant", slot.entry))
    if spec.filesystem:
        raise FieldError(
            ("filesystem",), "the disk is in use by a tenant that is running", next="remove it"
        )
    for index, other in enumerate(spec.tenants):
        load = other.workload
        if load.program != RUNNING and load.rw not in ("read", "randread"):
            raise FieldError(
                origin(study, slots(study)[index].entry, "rw"),
                f"{other.name} writes to the disk, which is in use by {slot.name}",
                next="make it read only, or start it outside the study and measure it as running",
            )


def _cgroup(field: Field, path: str) -> None:
    for part in path.split("/"):
        if (
            len(path) > limits.PATH_MAX
            or len(part) > limits.NAME_MAX
            or not limits.TENANT_NAME.fullmatch(part)
            or part in limits.CGROUP_FILES
            or ("." in part and part.split(".")[0] in limits.CGROUP_PREFIXES)
        ):
            raise FieldError(
                field,
                f"{path!r} is not the path of a cgroup",
                next="allowed: names separated by '/', relative to the root of the hierarchy, "
                "no '..', none like a file of cgroupfs",
            )

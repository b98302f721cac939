# SPDX-License-Identifier: GPL-2.0-only
"""Resolve the points of a study's matrix, and the run of each point."""

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from isoblk.caches.registry import CACHES
from isoblk.errors import UserError
from isoblk.layers.registry import LAYERS, NO_STACK, size_of
from isoblk.run import limits
from isoblk.run.extent import usable_bytes
from isoblk.run.field import Field, FieldError, nearest, suggest
from isoblk.run.load import LOAD_OPTIONS
from isoblk.run.seeds import pass_seed, tenant_seed
from isoblk.run.shares import effective_shares, parent_of
from isoblk.run.spec import (
    RUNNING,
    SCHEDULER,
    Caching,
    Device,
    DeviceEvent,
    Event,
    Filesystem,
    Group,
    NullBlkDevice,
    Options,
    RunSpec,
    Scheduler,
    SchedulerEvent,
    Tenant,
    Trace,
    VdiskDevice,
    Workload,
    label,
)
from isoblk.run.typed import convert
from isoblk.run.units import SIZE_HINT, TIME_HINT, parse_size, parse_time
from isoblk.schedulers.base import Asked, SchedulerKind
from isoblk.schedulers.registry import ELEVATORS, SCHEDULERS, kinds
from isoblk.study.model import (
    CachingTable,
    EventEntry,
    FilesystemTable,
    RunTable,
    Study,
    TenantEntry,
)
from isoblk.study.presets import hardware_tags, load_change, load_device
from isoblk.study.traces import find_trace

OPTIONS = "options"
NR_REQUESTS = "nr_requests"
# Tables of a study that only one scheduler reads.
_TABLES_OF = {kind.table: kind.name for kind in SCHEDULERS.values() if kind.table}
TARGET = "latency_target"

_BLOCK_FIELDS = ("bs", "bsrange", "bssplit")  # each sets the block size
# Options that a trace determines, and options that only a trace has.
_OF_A_PATTERN, _OF_A_TRACE = (
    tuple(name for name, one in LOAD_OPTIONS.items() if one.option.about == about)
    for about in ("pattern", "trace")
)
# Above the tags of any disk: the trace determines the number in flight.
_REPLAY_IODEPTH = 1024
_OF_A_RUNNING = frozenset({"workload"})
# Next to running tenants, the parent cgroup of all others.
_OWN_GROUP = "isoblk"
# Options of a program with its own options.
_OF_A_PROGRAM = frozenset(name for name, one in LOAD_OPTIONS.items() if one.option.of_programs)
_PLAIN_KEYS = (
    *(SCHEDULER, "device", "cache", "ssd", "stack"),
    *("io_cost.model", "io_max.scale", "io_latency.target"),
)
_MATRIX_EXAMPLES = (
    'allowed: "scheduler", "device", "device.X", "run.X", "workload.X", "tenant.NAME.X", '
    '"tenant.*.X", "tenant.NAME.options.X", "filesystem.X", '
    '"cache", "ssd", "ssd.X", "caching.X", "caches.CACHE.X", "stack", '
    '"group.PATH.weight", "queue.X", "iosched.SCHEDULER.X", "io_cost.qos.X", '
    '"io_max.scale", "io_latency.target"'
)


@dataclass(frozen=True)
class Point:
    """A point of the matrix. labels: matrix key to value as text, always with "scheduler".

    study: the study with the values of the point in place, and without a matrix.
    overridden: fields that the matrix set, to the matrix key.
    """

    labels: dict[str, str]
    study: Study
    overridden: dict[Field, str]


def scheduler_of(key: str) -> str:
    """Return the only scheduler that a matrix key concerns, "" if it concerns all."""
    head, _, rest = key.partition(".")
    return rest.partition(".")[0] if head == "iosched" else _TABLES_OF.get(head, "")


def is_target(key: str) -> bool:
    """Return whether a matrix key concerns tenants' latency targets."""
    return key.startswith("tenant.") and key.endswith(f".{TARGET}")


def applies(key: str, scheduler: str) -> bool:
    """Return whether a matrix key has an effect under a scheduler."""
    if is_target(key):
        return scheduler in SCHEDULERS and bool(SCHEDULERS[scheduler].target_file)
    return scheduler_of(key) in ("", scheduler)


def scheduler_kind(study: Study) -> SchedulerKind:
    """Return the scheduler's kind of a study without a matrix.

    Raises:
        FieldError: the scheduler is unknown.
    """
    known = kinds(study.schedulers)
    if study.scheduler not in known:
        raise FieldError(
            (SCHEDULER,),
            f"unknown value {study.scheduler!r}",
            next=suggest(study.scheduler, known),
        )
    return known[study.scheduler]


def refuse_unknown_cache(study: Study) -> None:
    """Check that the study's cache exists.

    Raises:
        FieldError: it does not.
    """
    if study.cache not in CACHES:
        raise FieldError(
            ("cache",), f"unknown value {study.cache!r}", next=suggest(study.cache, CACHES)
        )


def points(study: Study) -> Iterator[Point]:
    """Yield every point of the matrix, the last key fastest. A key that concerns another scheduler
    than the point's is not part of the point.

    Raises:
        FieldError: a matrix key names no field, or a value is not of its field's type.
    """
    fields = {key: targets(study, key) for key in study.matrix}
    # "device" before "device.servers", "tenant.*.rw" before "tenant.web.rw".
    order = sorted(study.matrix, key=lambda key: (key.count("."), "*" not in key))
    bare = msgspec.structs.replace(study, matrix={}, claim=[])
    made: set[tuple[tuple[str, str], ...]] = set()
    for values in itertools.product(*study.matrix.values()):
        chosen = dict(zip(study.matrix, values, strict=True))
        scheduler = str(chosen.get(SCHEDULER, study.scheduler))
        chosen = {key: value for key, value in chosen.items() if applies(key, scheduler)}
        labels = {key: label(value) for key, value in chosen.items()}
        if tuple(labels.items()) in made:
            continue
        made.add(tuple(labels.items()))
        own = [key for key in order if key in chosen]
        overridden = {field: key for key in own for field in fields[key]}
        document: dict[str, Any] = msgspec.to_builtins(bare)
        for key in own:
            for field in fields[key]:
                _put(document, field, chosen[key])
        try:
            resolved = convert(document, Study)
            scheduler_kind(resolved)
            refuse_unknown_cache(resolved)
        except FieldError as error:
            if error.field not in overridden:
                raise
            key = overridden[error.field]
            raise FieldError(
                ("matrix", key), f"{chosen[key]!r}: {error.cause}", next=error.next
            ) from None
        if SCHEDULER not in labels:
            labels = {SCHEDULER: study.scheduler, **labels}
        yield Point(labels, resolved, overridden)


def targets(study: Study, key: str) -> list[Field]:  # noqa: PLR0912
    """Return the fields that a matrix key sets.

    Raises:
        FieldError: it names no field.
    """
    head, _, rest = key.partition(".")
    fields: list[Field] = []
    if head == "tenant":
        fields = _tenant_targets(study, key, rest)
    elif head == "group":
        fields = [_group_target(study, key, rest)]
    elif head == "run":
        names = set(RunTable.__struct_fields__) - {"repeats"}
        fields = [(head, _known(key, rest, names))]
    elif head == "workload":
        name, dot, option = rest.partition(".")
        if name != OPTIONS or not dot:
            name, option = _known(key, rest, LOAD_OPTIONS), ""
        fields = [(head, name, option) if option else (head, name)]
    elif head == "filesystem":
        fields = [(head, _known(key, rest, FilesystemTable.__struct_fields__))]
    elif head in ("caching", "caches"):
        fields = _cache_targets(key, rest)
    elif head in ("device", "ssd") and rest:
        fields = [(head, *rest.split(".", 1))]
    elif head == "queue" and rest:
        fields = [(head, rest)]
    elif head == "iosched" and rest.partition(".")[2]:
        fields = [(head, *rest.split(".", 1))]
    elif key.startswith(("io_cost.qos.", "io_cost.model.")):
        fields = [tuple(key.split(".", 2))]
    elif key in _PLAIN_KEYS:
        fields = [tuple(key.split("."))]
    if not fields:
        near = nearest(key, _PLAIN_KEYS)
        raise FieldError(
            ("matrix", key),
            "is not a field of a run",
            next=f"did you mean {near!r}?" if near else _MATRIX_EXAMPLES,
        )
    return fields


def _cache_targets(key: str, rest: str) -> list[Field]:
    if key.startswith("caching."):
        return [("caching", _known(key, rest, CachingTable.__struct_fields__))]
    name, _, option = rest.partition(".")
    return [("caches", _known(key, name, CACHES), option)] if option else []


def _tenant_targets(study: Study, key: str, rest: str) -> list[Field]:
    name, of_options, option = rest.rpartition(f".{OPTIONS}.")
    if of_options and option:
        field: Field = (OPTIONS, option)
    else:
        name, _, last = rest.rpartition(".")
        field = (_known(key, last, set(TenantEntry.__struct_fields__) - {"name"}),)
    names = [entry.name for entry in study.tenant]
    if name == "*":
        return [("tenant", index, *field) for index in range(len(names))]
    if name not in names:
        raise FieldError(
            ("matrix", key), f"no [[tenant]] is called {name!r}", next=suggest(name, names)
        )
    return [("tenant", names.index(name), *field)]


def _group_target(study: Study, key: str, rest: str) -> Field:
    path, _, field = rest.rpartition(".")
    _known(key, field, ["weight"])
    paths = [entry.path for entry in study.group]
    if path not in paths:
        raise FieldError(("matrix", key), f"no [[group]] has path {path!r}", next="add a [[group]]")
    return ("group", paths.index(path), field)


def _known(key: str, name: str, names: Collection[str]) -> str:
    if name not in names:
        raise FieldError(("matrix", key), f"unknown field {name!r}", next=suggest(name, names))
    return name


def _put(document: dict[str, Any], field: Field, value: object) -> None:
    at: Any = document
    *outer, last = field
    for part in outer:
        inner = at[part] if isinstance(part, int) else at.get(part)
        if part in ("device", "ssd") and isinstance(inner, str):
            inner = at[part] = {"preset": inner}
        elif not isinstance(inner, dict | list):
            inner = at[part] = {}
        at = inner
    at[last] = value


# ---- a point as a run ----------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """Position of a tenant. entry: index of its [[tenant]]. number: within its `count`."""

    entry: int
    number: int
    name: str
    cgroup: str
    weight: int


def slots(study: Study) -> list[Slot]:
    """Return the study's tenants, with `count` applied.

    Raises:
        FieldError: a count or a list of weights is invalid.
    """
    places: list[Slot] = []
    for index, entry in enumerate(study.tenant):
        weights = entry.weight if isinstance(entry.weight, list) else [entry.weight]
        if not weights:
            raise FieldError(("tenant", index, "weight"), "the list is empty")
        cgroup = entry.cgroup or entry.name
        if entry.count is UNSET:
            if len(weights) > 1:
                raise FieldError(
                    ("tenant", index, "weight"),
                    "a list of weights for one tenant",
                    next="add 'count', or give one weight",
                )
            places.append(Slot(index, 0, entry.name, cgroup, weights[0]))
            continue
        if not 1 <= entry.count <= limits.TENANTS_MAX:
            raise FieldError(
                ("tenant", index, "count"),
                f"{entry.count} is out of range",
                next=f"allowed: 1..{limits.TENANTS_MAX}",
            )
        places += [
            Slot(index, n, f"{entry.name}{n + 1}", f"{cgroup}{n + 1}", weights[n % len(weights)])
            for n in range(entry.count)
        ]
    return places


def origin(study: Study, entry: int, name: str) -> Field:
    """Return the field where a workload option of the tenants of [[tenant]] `entry` was written."""
    if getattr(study.tenant[entry], name) is not UNSET:
        return ("tenant", entry, name)
    if getattr(study.workload, name) is not UNSET:
        return ("workload", name)
    return ("tenant", entry)


def build_run(point: Point, repeat: int) -> RunSpec:
    """Return the point's run of kind "share". Results of other runs are None.

    Raises:
        FieldError: a value is malformed, or the device is unknown.
    """
    study, run = point.study, point.study.run
    warmup_ns = _time(("run", "warmup"), run.warmup, "s")
    runtime_ns = _time(("run", "runtime"), run.runtime, "s")
    window_ms = _window_ms(run.window)
    seed = run.seed + repeat
    places = slots(study)
    loads = [_workload(study, index) for index in range(len(study.tenant))]
    steps = [_offset_increment(study, index) for index in range(len(study.tenant))]
    paths = _own_paths(study, places)
    tenants = tuple(
        Tenant(
            name=slot.name,
            cgroup=paths[i],
            weight=slot.weight,
            workload=msgspec.structs.replace(
                loads[slot.entry],
                offset=loads[slot.entry].offset + slot.number * steps[slot.entry],
                randseed=tenant_seed(seed, i),
            ),
        )
        for i, slot in enumerate(places)
    )
    groups = _groups(study, tenants)
    device = load_device(study.device)
    caching = _caching(study, device)
    stack = _stack(study)
    if caching is not None:
        tenants = tuple(_in_pass(tenant, caching.passes) for tenant in tenants)
    why_not = _no_calibration(study, device, caching)
    scheduler = _scheduler(study, scheduler_kind(study), tenants, groups, why_not)
    events = [
        _event(i, entry, device, lambda kind: _scheduler(study, kind, tenants, groups, why_not))
        for i, entry in enumerate(study.event)
    ]
    return RunSpec(
        kind="share",
        point=point.labels,
        repeat=repeat,
        device=device,
        scheduler=scheduler,
        cgroup=run.cgroup,
        queue=queue_tunables(study.queue, scheduler, device),
        groups=groups,
        filesystem=_filesystem(study, size_of(stack, usable_bytes(device, caching))),
        caching=caching,
        stack=stack,
        tenants=tenants,
        events=tuple(event for event in events if isinstance(event, Event)),
        device_events=tuple(event for event in events if isinstance(event, DeviceEvent)),
        scheduler_events=tuple(
            msgspec.structs.replace(
                event, queue=queue_tunables(study.queue, event.scheduler, device)
            )
            for event in events
            if isinstance(event, SchedulerEvent)
        ),
        warmup_ns=warmup_ns,
        runtime_ns=runtime_ns,
        window_ms=window_ms,
        seed=seed,
    )


def _window_ms(window: int | float | str) -> int:
    field = ("run", "window")
    window_ns = _time(field, window, "ms")
    if window_ns % 1_000_000 or not window_ns:
        raise FieldError(
            field,
            f"{window!r} is not a whole number of milliseconds",
            next="allowed: 1ms and more",
        )
    return window_ns // 1_000_000


def runs_already(study: Study) -> bool:
    """Return whether a tenant of the study is already running."""
    return any(program_name(study, entry) == RUNNING for entry in range(len(study.tenant)))


def _own_paths(study: Study, places: Sequence[Slot]) -> list[str]:
    """Return the tenants' cgroups. Next to running tenants, those of isoblk are below one cgroup of
    weight 100, so that they weigh as one."""
    if not runs_already(study):
        return [slot.cgroup for slot in places]
    return [
        slot.cgroup if program_name(study, slot.entry) == RUNNING else f"{_OWN_GROUP}/{slot.cgroup}"
        for slot in places
    ]


def queue_tunables(
    tunables: dict[str, int | str], scheduler: Scheduler, device: Device
) -> dict[str, int | str]:
    """Return the values to write below queue/.

    Without an elevator requests use the device's own tags, and the kernel refuses an nr_requests
    above their number; that number is then written.
    """
    wanted = tunables.get(NR_REQUESTS)
    if scheduler.elevator != "none" or not isinstance(wanted, int):
        return tunables
    return tunables | {NR_REQUESTS: min(wanted, hardware_tags(device))}


def _event(
    index: int,
    entry: EventEntry,
    device: Device,
    make: Callable[[SchedulerKind], Scheduler],
) -> Event | DeviceEvent | SchedulerEvent:
    """Build an event. make: returns the run's scheduler of a kind."""
    field = ("event", index)
    at_ns = _time((*field, "at"), entry.at, "s")
    weighs = (entry.tenant is not UNSET, entry.weight is not UNSET)
    changes = [any(weighs), bool(entry.device), entry.scheduler is not UNSET]
    if sum(changes) != 1 or any(weighs) != all(weighs):
        raise FieldError(
            field,
            "is not one change",
            next="give it tenant and weight, or device, or scheduler, and not both",
        )
    if entry.tenant is not UNSET and entry.weight is not UNSET:
        return Event(at_ns=at_ns, tenant=entry.tenant, weight=entry.weight)
    if entry.scheduler is not UNSET:
        if entry.scheduler not in ELEVATORS:
            raise FieldError(
                (*field, "scheduler"),
                f"{entry.scheduler!r} is not an elevator that an event can set",
                next="allowed: " + ", ".join(ELEVATORS),
            )
        return SchedulerEvent(at_ns=at_ns, scheduler=make(SCHEDULERS[entry.scheduler]), queue={})
    try:
        return DeviceEvent(at_ns=at_ns, attributes=load_change(device, entry.device))
    except FieldError as error:
        raise FieldError((*field, *error.field), error.cause, next=error.next) from None


def _size(field: Field, value: int | str) -> int:
    try:
        return parse_size(value)
    except ValueError as error:
        raise FieldError(field, str(error), next=SIZE_HINT) from None


def _time(field: Field, value: int | float | str, unit: str) -> int:
    try:
        return parse_time(value, unit)
    except ValueError as error:
        raise FieldError(field, str(error), next=TIME_HINT) from None


def _workload(study: Study, entry: int) -> Workload:
    """Return the load of the tenants of [[tenant]] `entry`: its options over those of
    [workload]."""
    own, shared = study.tenant[entry], study.workload
    own_block = [name for name in _BLOCK_FIELDS if getattr(own, name) is not UNSET]
    values: dict[str, Any] = {}
    unused = _unused_options(study, entry)
    options = _program_options(study, entry)
    if options is not None:
        known = _OF_A_RUNNING if program_name(study, entry) == RUNNING else _OF_A_PROGRAM
        unused = [name for name in LOAD_OPTIONS if name not in known]
        values[OPTIONS] = options
    for name in LOAD_OPTIONS:
        if name in unused or name == OPTIONS:
            continue
        value = getattr(own, name)
        if value is UNSET and not (name in _BLOCK_FIELDS and own_block):
            value = getattr(shared, name)
        if value is UNSET:
            continue
        field = origin(study, entry, name)
        described = LOAD_OPTIONS[name]
        # An option that only determines how another is parsed keeps its own name.
        kept = described.field or name
        if described.option.read == "size":
            values[kept] = _size(field, value)
        elif described.option.read == "time":
            values[kept] = _time(field, value, described.option.unit)
        elif name in _READERS:
            values[kept] = _READERS[name](field, value)
        else:
            values[kept] = value
    block = [name for name in _BLOCK_FIELDS if name in values]
    if len(block) > 1:
        raise FieldError(
            origin(study, entry, block[1]), f"{block[0]!r} is set too", next="keep one of them"
        )
    stream = values.pop("trace_stream", None)
    if "trace" in values:
        field = origin(study, entry, "trace" if stream is None else "trace_stream")
        values["trace"] = _trace(field, values["trace"], stream)
    if values.get("trace") and values.get("replay") != "closed":
        values.setdefault("iodepth", _REPLAY_IODEPTH)
    values.pop("offset_increment", None)
    return Workload(**values)


def program_name(study: Study, entry: int) -> str:
    """Return the program of the tenants of [[tenant]] `entry`."""
    chosen = [one.workload for one in (study.tenant[entry], study.workload)]
    return next((name for name in chosen if name is not UNSET), Workload().program)


def _program_options(study: Study, entry: int) -> Options | None:
    """Return a program's own options, over those of [workload] if its program is the same; None for
    blkload and fio, whose options are fields."""
    own, shared = study.tenant[entry], study.workload
    program = program_name(study, entry)
    fields = program in ("blkload", "fio")
    allowed = _OF_A_RUNNING if program == RUNNING else _OF_A_PROGRAM
    for name in LOAD_OPTIONS:
        foreign = name in (OPTIONS, "memory") if fields else name not in allowed
        if foreign and getattr(own, name) is not UNSET:
            raise FieldError(
                ("tenant", entry, name),
                f"does not go with workload = {program!r}",
                next="remove it"
                if fields or program == RUNNING
                else f"remove it, or see what {OPTIONS} it has",
            )
    if fields:
        return None
    if program == RUNNING:
        return {}
    from_shared = shared.options if shared.options is not UNSET else {}
    if shared.workload is not UNSET and shared.workload != program:
        from_shared = {}
    return {**from_shared, **(own.options if own.options is not UNSET else {})}


def _in_pass(tenant: Tenant, passes: int) -> Tenant:
    """Return the tenant in the last of `passes` passes, independent of the number of later ones."""
    load = tenant.workload
    seeded = msgspec.structs.replace(load, randseed=pass_seed(load.randseed, passes - 1))
    return msgspec.structs.replace(tenant, workload=seeded)


def _caching(study: Study, device: Device) -> Caching | None:
    table = study.caching
    if study.ssd is None:
        if study.cache != "none":
            raise FieldError(("cache",), "there is no SSD", next="add [ssd]")
        return None
    try:
        ssd = load_device(study.ssd)
    except FieldError as error:
        raise FieldError(("ssd", *error.field[1:]), error.cause, next=error.next) from None
    if not isinstance(ssd, VdiskDevice) or not isinstance(device, VdiskDevice):
        raise FieldError(("ssd",), "a cache needs two vdisks", next="use vdisk presets")
    return Caching(
        cache=study.cache,
        options=study.caches.get(study.cache, {}),
        ssd=ssd,
        origin_bytes=_size(("caching", "origin"), table.origin) or device.size,
        ssd_bytes=_size(("caching", "ssd"), table.ssd) or ssd.size,
        files=table.files,
        passes=table.passes,
        placement=table.placement,
        working_set=(
            _size(("caching", "working_set"), table.working_set)
            if table.placement == "scattered"
            else 0
        ),
        piece=_size(("caching", "piece"), table.piece),
        scheduler_on=table.scheduler_on,
    )


def _stack(study: Study) -> tuple[str, ...]:
    if study.stack == NO_STACK:
        return ()
    stack = tuple(study.stack.split())
    for name in stack or ("",):
        if name not in LAYERS:
            raise FieldError(
                ("stack",), f"unknown layer {name!r}", next=suggest(name, (NO_STACK, *LAYERS))
            )
    return stack


def _filesystem(study: Study, device_bytes: int) -> Filesystem | None:
    table = study.filesystem
    if table is None:
        return None
    offset = _size(("filesystem", "offset"), table.offset)
    size = _size(("filesystem", "size"), table.size)
    return Filesystem(
        type=table.type,
        offset=offset,
        size=size or device_bytes - offset,
        mkfs=tuple(table.mkfs),
        mount=table.mount,
    )


def _offset_increment(study: Study, entry: int) -> int:
    """Return the distance between the starts of the tenants of [[tenant]] `entry`, bytes."""
    if program_name(study, entry) not in ("blkload", "fio"):
        return 0
    for table in (study.tenant[entry], study.workload):
        if table.offset_increment is not UNSET:
            return _size(origin(study, entry, "offset_increment"), table.offset_increment)
    return 0


def _unused_options(study: Study, entry: int) -> Sequence[str]:
    """Return options that the load of [[tenant]] `entry` does not use: those of a pattern with a
    trace, or those of a trace without one.

    They are an error next to the deciding option, or nearer to the tenant; in [workload] they are
    for other tenants.
    """
    place = origin(study, entry, "trace")
    name = study.tenant[entry].trace
    if name is UNSET:
        name = study.workload.trace
    if not name:
        for option in _OF_A_TRACE:
            if getattr(study.tenant[entry], option) is not UNSET:
                raise FieldError(
                    ("tenant", entry, option), "there is no trace to replay", next="set trace"
                )
        return _OF_A_TRACE
    for option in _OF_A_PATTERN:
        written = origin(study, entry, option)
        if written[-1] == option and (written[0] == "tenant" or written[0] == place[0]):
            raise FieldError(
                written,
                "does not go with a trace, which has its own requests",
                next='remove it, or set trace = ""',
            )
    return _OF_A_PATTERN


def _trace(field: Field, name: str, stream: int | None) -> Trace | None:
    if not name:
        return None
    if stream is not None and stream not in limits.STREAM:
        raise FieldError(field, f"{stream} is not a stream", next=f"allowed: {limits.STREAM}")
    try:
        return find_trace(name, stream).trace
    except UserError as error:
        where = "" if error.where in ("", name) else f"{error.where}: "
        raise FieldError(field, f"{name}: {where}{error.cause}", next=error.next) from None
    except OSError as error:
        raise FieldError(field, f"{name}: {error.strerror}") from None


def _speed(field: Field, factor: int | float) -> int:
    """Return a factor in thousandths."""
    thousandths = factor * 1000
    if thousandths not in limits.SPEED or abs(thousandths - round(thousandths)) > 1e-6:
        raise FieldError(
            field,
            f"{factor} is not a speed",
            next="allowed: 0.001..1e9, at most three decimals; 2 is twice the recorded speed",
        )
    return round(thousandths)


def _bsrange(field: Field, text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    if not dash:
        raise FieldError(field, f"{text!r} is not a range", next="allowed: LOW-HIGH, as in 4k-64k")
    return _size(field, low), _size(field, high)


def _bssplit(field: Field, text: str) -> tuple[tuple[int, int], ...]:
    parts: list[tuple[int, int]] = []
    for part in text.split(":"):
        size, _, percent = part.partition("/")
        if not percent.isascii() or not percent.isdigit():
            raise FieldError(
                field,
                f"{text!r} is not a split",
                next="allowed: SIZE/PERCENT:SIZE/PERCENT, as in 4k/60:64k/40",
            )
        parts.append((_size(field, size), int(percent)))
    return tuple(parts)


_READERS: dict[str, Callable[[Field, Any], object]] = {
    "bsrange": _bsrange,
    "bssplit": _bssplit,
    "speed": _speed,
}


def _groups(study: Study, tenants: tuple[Tenant, ...]) -> tuple[Group, ...]:
    """Return all inner cgroups of the tenants' paths, parents first, else in the tenants' order."""
    own = f"{_OWN_GROUP}/" if runs_already(study) else ""
    weights = {
        entry.path if entry.path.startswith("/") else f"{own}{entry.path}": entry.weight
        for entry in study.group
    }
    weights |= {tenant.cgroup: tenant.weight for tenant in tenants}
    inner: dict[str, None] = {}
    for tenant in tenants:
        above = []
        path = parent_of(tenant.cgroup)
        while path and path not in inner:
            above.append(path)
            path = parent_of(path)
        inner.update(dict.fromkeys(reversed(above)))
    return tuple(
        Group(path=path, weight=weights.get(path, limits.DEFAULT_WEIGHT)) for path in inner
    )


def _no_calibration(study: Study, device: Device, caching: Caching | None) -> str:
    """Return why the scheduler's disk cannot be calibrated, "" if it can."""
    if runs_already(study):
        return "a tenant that is running uses it"
    if isinstance(device, NullBlkDevice) and device.zone_size:
        return "it has zones, which are written in order"
    if caching is not None and caching.scheduler_on == "both":
        return "the scheduler is on two that differ"
    return ""


def _scheduler(
    study: Study,
    kind: SchedulerKind,
    tenants: tuple[Tenant, ...],
    groups: tuple[Group, ...],
    no_calibration: str,
) -> Scheduler:
    return kind.make(
        Asked(
            table=getattr(study, kind.table) if kind.table else None,
            iosched={} if kind.tunables is None else study.iosched.get(kind.name, {}),
            targets=lambda: _latency_targets(study, tenants),
            shares=lambda: effective_shares(tenants, groups),
            no_calibration=no_calibration,
        )
    )


def _latency_targets(study: Study, tenants: tuple[Tenant, ...]) -> dict[str, int]:
    """Return the tenants' own targets, microseconds."""
    targets: dict[str, int] = {}
    for slot, tenant in zip(slots(study), tenants, strict=True):
        written = study.tenant[slot.entry].latency_target
        if target_ns := _time(("tenant", slot.entry, TARGET), written, "us"):
            targets[tenant.name] = max(1, round(target_ns / 1000))
    return targets

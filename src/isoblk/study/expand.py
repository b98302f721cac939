# SPDX-License-Identifier: GPL-2.0-only
"""A study's runs: its points, and the runs that these are judged by or set up with.

A share run leans on
- what its scheduler has to be told of the device: the six calibrations of io.cost, or of isoblk,
  with a model that is "calibrated";
- the run under `none` at the same point: the matrix's own if there is one, else one of
  kind "reference";
- each of its tenants alone on the device;
- for service_error, each of its loads alone with as many requests as the device can use;
- for lost, its load alone with as many requests as exact shares allow in the device.
Every such run is made once, however many lean on it, and comes before them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from isoblk.metrics.registry import wants
from isoblk.programs.registry import program_of
from isoblk.run.limits import DEFAULT_WEIGHT
from isoblk.run.shares import effective_shares
from isoblk.run.spec import (
    RUNNING,
    SCHEDULER,
    Device,
    HostDevice,
    PlannedRun,
    RunSpec,
    Scheduler,
    Tenant,
    VdiskDevice,
    Workload,
    schedulers_of,
)
from isoblk.run.units import format_size
from isoblk.schedulers.base import Measured, Measurement
from isoblk.schedulers.registry import kind_of
from isoblk.study.model import Expansion, Study
from isoblk.study.point import build_run, points, queue_tunables
from isoblk.study.presets import logical_block

_NONE = Scheduler(name="none", elevator="none")

# Same seed for every tenant alone, so that equal loads are one run.
_ALONE_SEED = 1

_CALIBRATION_NS = 1_000_000_000
_CALIBRATION_WINDOW_MS = 100

# More than any of our models has servers or dies, and less than tags.
_FULL_DEPTH = 128


def expand(
    study: Study,
    metrics: Collection[str] = (),
    wanted: Callable[[Mapping[str, str]], bool] = lambda point: True,
) -> Expansion:
    """All runs of a study, in an order in which they can be made.

    Repeats are outermost: a study that is stopped half-way has whole repeats. Tenants alone
    and calibrations are made once, not for every repeat.

    Args:
        metrics: that are asked for besides those of the study's claims.
        wanted: whether a point is; of the others there is only what these lean on.

    Raises:
        FieldError: the study is wrong; check_study() finds more than this does.
    """
    expander = _Expander({claim.metric for claim in study.claim} | set(metrics))
    every = list(points(study))
    for repeat in range(study.run.repeats):
        specs = [build_run(point, repeat) for point in every]
        # The matrix's own runs under none serve as references, wherever they stand.
        own = {_key(spec): spec for spec in reversed(specs) if _is_none(spec)}
        for spec in specs:
            if wanted(spec.point):
                expander.share(spec, own)
    return Expansion(study=study, runs=tuple(expander.runs))


def _is_none(spec: RunSpec) -> bool:
    return spec.scheduler.name == "none" and not spec.scheduler_events


def _key(spec: RunSpec) -> bytes:
    """Equal for runs that do the same, whatever point they were made for."""
    return msgspec.json.encode(msgspec.structs.replace(spec, kind="share", point={}))


class _Expander:
    """The runs so far, and where each is."""

    def __init__(self, metrics: Collection[str]) -> None:
        self._metrics = metrics
        self.runs: list[PlannedRun] = []
        self._placed: dict[tuple[str, bytes], int] = {}
        self._alone: dict[tuple[bytes, bytes], int] = {}

    def _add(self, run: PlannedRun) -> int:
        self.runs.append(run)
        return len(self.runs) - 1

    def share(self, spec: RunSpec, own: Mapping[bytes, RunSpec]) -> int:
        """Place a share or reference run, after what it leans on; where it is."""
        place = (f"{spec.kind} {spec.point}" if spec.kind == "share" else "reference", _key(spec))
        if place in self._placed:
            return self._placed[place]
        calibrate = self._calibrate(spec)
        reference = None
        if spec.scheduler.name != "none" or spec.scheduler_events:
            twin = msgspec.structs.replace(
                _under_none(spec), kind="reference", point={**spec.point, SCHEDULER: "none"}
            )
            reference = self.share(own.get(_key(twin), twin), own)
        index = self._add(
            PlannedRun(
                spec=spec,
                calibrate=calibrate,
                reference=reference,
                alone=self._alone_runs(spec),
                full=self._full_runs(spec),
                bound=self._bound_run(spec),
            )
        )
        self._placed[place] = index
        return index

    def _alone_runs(self, spec: RunSpec) -> tuple[int, ...]:
        if any(tenant.workload.program == RUNNING for tenant in spec.tenants):
            # Who is running already goes on meanwhile: nobody is alone.
            return ()
        if spec.caching is not None and len(spec.tenants) == 1:
            # It is alone as it is, and what a cache gives depends on what came before.
            return ()
        return self._runs_of(spec, [tenant.workload for tenant in spec.tenants])

    def _full_runs(self, spec: RunSpec) -> tuple[int, ...]:
        if not wants(self._metrics, "full"):
            return ()
        return self._runs_of(spec, [_load_full(tenant.workload) for tenant in spec.tenants])

    def _bound_run(self, spec: RunSpec) -> int | None:
        if not wants(self._metrics, "bound"):
            return None
        if (depth := exact_depth(spec)) is not None:
            load = msgspec.structs.replace(spec.tenants[0].workload, iodepth=depth)
            return self._runs_of(spec, [load])[0]
        if (depths := exact_depths(spec)) is not None:
            return self._run_with(spec, depths)
        return None

    def _run_with(self, spec: RunSpec, depths: Sequence[int]) -> int:
        """Where the run of all tenants without a scheduler, each with its iodepth of these, is."""
        run = msgspec.structs.replace(
            _under_none(spec),
            kind="alone",
            point={"alone": f"all, iodepth {':'.join(map(str, depths))}", **_setting(spec)},
            repeat=0,
            events=(),
            tenants=tuple(
                msgspec.structs.replace(
                    one, workload=msgspec.structs.replace(one.workload, iodepth=depth)
                )
                for one, depth in zip(spec.tenants, depths, strict=True)
            ),
            seed=_ALONE_SEED,
        )
        place = ("bound", _key(run))
        if place not in self._placed:
            self._placed[place] = self._add(PlannedRun(spec=run))
        return self._placed[place]

    def _runs_of(self, spec: RunSpec, loads: Sequence[Workload]) -> tuple[int, ...]:
        """Where the runs of each of these loads alone are."""
        base = msgspec.structs.replace(
            _under_none(spec),
            kind="alone",
            point={},
            repeat=0,
            groups=(),
            tenants=(),
            events=(),
            seed=_ALONE_SEED,
        )
        indexes = []
        for load in (_load_alone(one, spec.device) for one in loads):
            # Who works on the device itself leaves the file system alone.
            filesystem = spec.filesystem if program_of(load) else None
            own_base = msgspec.structs.replace(base, filesystem=filesystem)
            place = (msgspec.json.encode(own_base), msgspec.json.encode(load))
            if place not in self._alone:
                alone = msgspec.structs.replace(
                    own_base,
                    point={"alone": _describe(load), **_setting(spec)},
                    tenants=(
                        Tenant(name="alone", cgroup="alone", weight=DEFAULT_WEIGHT, workload=load),
                    ),
                )
                self._alone[place] = self._add(PlannedRun(spec=alone))
            indexes.append(self._alone[place])
        return tuple(indexes)

    def _calibrate(self, spec: RunSpec) -> dict[str, int]:
        indexes = {}
        bare = _scheduled_alone(spec)
        for name, (scheduler, wanted) in _measurements(spec).items():
            load = _calibration_load(wanted.load, bare.device)
            run = msgspec.structs.replace(
                bare,
                kind="calibrate",
                point={"calibrate": f"{scheduler} {name}", **_setting(spec)},
                repeat=0,
                queue={**bare.queue, "nomerges": 1},
                groups=(),
                filesystem=None,
                stack=(),
                tenants=(
                    Tenant(
                        name="calibrate", cgroup="calibrate", weight=DEFAULT_WEIGHT, workload=load
                    ),
                ),
                events=(),
                device_events=(),
                warmup_ns=wanted.warmup_ns,
                runtime_ns=_CALIBRATION_NS,
                window_ms=_CALIBRATION_WINDOW_MS,
                seed=_ALONE_SEED,
            )
            # Equal loads of two schedulers are two runs here, and one in the results.
            place = (f"calibrate {scheduler}", _key(run))
            if place not in self._placed:
                self._placed[place] = self._add(PlannedRun(spec=run))
            indexes[name] = self._placed[place]
        return indexes


def measurements(spec: RunSpec) -> dict[str, Measurement]:
    """What is to be measured of the device before the run can be made, by name."""
    return {name: wanted for name, (_, wanted) in _measurements(spec).items()}


def _measurements(spec: RunSpec) -> dict[str, tuple[str, Measurement]]:
    """The same, each with the scheduler that wants it. Of all that a disk changes to in a run, one
    at most is measured for."""
    return {
        name: (scheduler.name, wanted)
        for scheduler in schedulers_of(spec)
        for name, wanted in kind_of(scheduler).measurements(scheduler).items()
    }


def _scheduled_alone(spec: RunSpec) -> RunSpec:
    """The run without a scheduler, on the disk that has it, without a cache."""
    if spec.caching is None:
        return _under_none(spec)
    device = spec.caching.ssd if spec.caching.scheduler_on == "ssd" else spec.device
    return _under_none(msgspec.structs.replace(spec, device=device, caching=None))


def _under_none(spec: RunSpec) -> RunSpec:
    """The same run without a scheduler."""
    return msgspec.structs.replace(
        spec,
        scheduler=_NONE,
        queue=queue_tunables(spec.queue, _NONE, spec.device),
        scheduler_events=(),
    )


def _setting(spec: RunSpec) -> dict[str, str]:
    """That part of a point that is about the device, not about tenants and schedulers."""
    return {
        key: value
        for key, value in spec.point.items()
        if key in ("device", "cache", "ssd", "stack")
        or key.startswith(("device.", "queue.", "ssd.", "caching.", "caches."))
    }


def _load_alone(load: Workload, device: Device) -> Workload:
    """What a tenant does alone: its load all the time. A trace is not alike everywhere: a
    timed replay is at the same place as beside others, a closed loop does not run dry. Where
    on the device a pattern is matters to a hard disk only; else tenants set apart are alike."""
    alone = msgspec.structs.replace(load, randseed=_ALONE_SEED, on_ns=0, off_ns=0)
    if load.trace is None and not (isinstance(device, VdiskDevice) and device.model == "disk"):
        alone = msgspec.structs.replace(alone, offset=0)
    if load.trace is not None and load.replay == "timed":
        return alone
    return msgspec.structs.replace(
        alone, startdelay_ns=0, runtime_ns=0, trace_loop=load.trace is not None
    )


def _load_full(load: Workload) -> Workload:
    """The same kind of requests, as many as keep the device busy."""
    return msgspec.structs.replace(
        load,
        iodepth=max(load.iodepth, _FULL_DEPTH),
        rate_iops=0,
        thinktime_ns=0,
        on_ns=0,
        off_ns=0,
    )


def exact_depth(spec: RunSpec) -> int | None:
    """How many requests may be in the device if every tenant's part of them is to be its share.

    Requests at random places, all of one kind, wait in the device for the same places, whoever
    sent them: a tenant gets its part of those that are there. So nobody can have more there than
    the tenant allows whose requests are fewest for its share. The bound is explained in
    docs/findings/p2-p3.md.

    Returns:
        that number; None where the tenants' loads are not alike, or not at random places.
    """
    if not _alike(spec) or not spec.tenants[0].workload.rw.startswith("rand"):
        return None
    everybody = sum(one.workload.iodepth * one.workload.numjobs for one in spec.tenants)
    return max(1, min(round(_allowed(spec)), everybody))


def exact_depths(spec: RunSpec) -> tuple[int, ...] | None:
    """How many requests each tenant may have in the device if its part is to be its share.

    As exact_depth(), for streams: which places they wait for depends on where each is, so all
    of them are needed, each with its part of the whole; of at least one request, so that
    the bound is too high rather than too low where the whole is small.

    Returns:
        a number a tenant; None where the loads are not alike, or are not streams.
    """
    if not _alike(spec) or spec.tenants[0].workload.rw not in ("read", "write"):
        return None
    if any(one.workload.numjobs > 1 for one in spec.tenants):
        return None
    shares = effective_shares(spec.tenants, spec.groups)
    allowed = _allowed(spec)
    return tuple(
        max(1, min(round(allowed * shares[one.name]), one.workload.iodepth)) for one in spec.tenants
    )


def _alike(spec: RunSpec) -> bool:
    """Whether all tenants send the same kind of requests, the next as soon as one ends."""
    kinds = {
        msgspec.json.encode(msgspec.structs.replace(one.workload, iodepth=1, randseed=1, offset=0))
        for one in spec.tenants
    }
    load = spec.tenants[0].workload if spec.tenants else Workload()
    pauses = load.rate_iops or load.thinktime_ns or load.off_ns
    closed = not (load.trace or pauses or program_of(load))
    return len(kinds) == 1 and closed


def _allowed(spec: RunSpec) -> float:
    """The requests of all, if the tenant whose requests are fewest for its share has all of its."""
    shares = effective_shares(spec.tenants, spec.groups)
    return min(
        one.workload.iodepth * one.workload.numjobs / shares[one.name] for one in spec.tenants
    )


def _describe(load: Workload) -> str:
    """A load in fio's words: its rw and block size, and what is not the default."""
    if program_of(load):
        return " ".join((load.program, *(f"{k}={_word(v)}" for k, v in load.options.items())))
    default = Workload()
    words: list[str] = [f"trace={load.trace.name}" if load.trace else load.rw]
    if load.trace and load.trace.stream is not None:
        words.append(f"trace_stream={load.trace.stream}")
    for name in load.__struct_fields__:
        value = getattr(load, name)
        if load.trace and name in ("rw", "bs", "trace"):
            continue
        if name == "bs" and load.bsrange is None and load.bssplit is None:
            words.append(f"bs={format_size(load.bs)}")
        elif name not in ("rw", "bs") and value != getattr(default, name):
            words.append(f"{name}={_word(value)}")
    return " ".join(words)


def _word(value: object) -> str:
    if value is True:
        return "1"
    if isinstance(value, tuple | list):
        return ":".join(_word(item) for item in value)
    return str(value)


def _calibration_load(load: Workload, device: Device) -> Workload:
    """A load that measures the device, and no processor."""
    if isinstance(device, HostDevice):
        load = msgspec.structs.replace(load, program="fio")
    block = logical_block(device)
    fits = min(load.bs, device.size) // block * block
    return msgspec.structs.replace(load, bs=fits, cputime_ns=0)


def resolve(
    spec: RunSpec,
    calibration: Mapping[str, int] | None,
    reference_totals: tuple[int, int] | None,
) -> RunSpec:
    """The run with what the runs it leans on have measured.

    Args:
        spec: as planned.
        calibration: what the scheduler's measurements gave, by their names; needed if it has any.
        reference_totals: bytes read and written a second in the measured time of the run
            under `none` at the same point; needed for schedulers that take figures from it.

    Returns:
        The run with its scheduler completed; other runs as they are.

    Raises:
        ValueError: what is needed was not given.
    """
    measured = Measured(calibration, reference_totals, effective_shares(spec.tenants, spec.groups))
    scheduler = kind_of(spec.scheduler).complete(spec.scheduler, measured)
    events = tuple(
        msgspec.structs.replace(
            event, scheduler=kind_of(event.scheduler).complete(event.scheduler, measured)
        )
        for event in spec.scheduler_events
    )
    return msgspec.structs.replace(spec, scheduler=scheduler, scheduler_events=events)

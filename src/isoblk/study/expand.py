# SPDX-License-Identifier: GPL-2.0-only
"""Expand a study into its runs: those of its points, and the runs that these depend on.

A share run depends on
- the calibration of its scheduler: the six measurements of io.cost, or those of isoblk with a model
  that is "calibrated";
- the run under `none` at the same point: the matrix's own if there is one, else one of kind
  "reference";
- each of its tenants alone on the device;
- for service_error, each of its loads alone with as many requests as the device can use;
- for lost, its load alone with the number in flight that exact shares permit.
Each such run is made once for all runs that depend on it, and comes before them.
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

# More than the servers or dies of any model, and less than the tags.
_FULL_DEPTH = 128


def expand(
    study: Study,
    metrics: Collection[str] = (),
    wanted: Callable[[Mapping[str, str]], bool] = lambda point: True,
) -> Expansion:
    """Return all runs of a study, in an order in which they can be made.

    Repeats are outermost, so that an interrupted study has whole repeats. Runs of lone tenants and
    calibrations are made once, not per repeat.

    Args:
        study: the study.
        metrics: requested in addition to those of the study's claims.
        wanted: selects points; other points have only the runs that selected points depend on.

    Raises:
        FieldError: the study is invalid; check_study() finds more errors.
    """
    expander = _Expander({claim.metric for claim in study.claim} | set(metrics))
    every = list(points(study))
    for repeat in range(study.run.repeats):
        specs = [build_run(point, repeat) for point in every]
        # The matrix's own runs under none serve as references, at any index.
        own = {_key(spec): spec for spec in reversed(specs) if _is_none(spec)}
        for spec in specs:
            if wanted(spec.point):
                expander.share(spec, own)
    return Expansion(study=study, runs=tuple(expander.runs))


def _is_none(spec: RunSpec) -> bool:
    return spec.scheduler.name == "none" and not spec.scheduler_events


def _key(spec: RunSpec) -> bytes:
    """Return a key that is equal for runs with equal behaviour, whatever their points."""
    return msgspec.json.encode(msgspec.structs.replace(spec, kind="share", point={}))


class _Expander:
    """The runs so far, and the index of each."""

    def __init__(self, metrics: Collection[str]) -> None:
        self._metrics = metrics
        self.runs: list[PlannedRun] = []
        self._placed: dict[tuple[str, bytes], int] = {}
        self._alone: dict[tuple[bytes, bytes], int] = {}

    def _add(self, run: PlannedRun) -> int:
        self.runs.append(run)
        return len(self.runs) - 1

    def share(self, spec: RunSpec, own: Mapping[bytes, RunSpec]) -> int:
        """Add a share or reference run after the runs that it depends on. Returns its index."""
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
            # Tenants that are already running continue during any run: no tenant can be alone.
            return ()
        if spec.caching is not None and len(spec.tenants) == 1:
            # A single tenant is alone already. With a cache, the result depends on earlier
            # requests.
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
        """Return the index of the run of all tenants without a scheduler and with these
        iodepths."""
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
        """Return the indices of the runs of each load alone."""
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
        for load in (_load_alone(load, spec.device) for load in loads):
            # A program that uses the device directly does not use the file system.
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
            # Equal loads of two schedulers are two runs in this list, and one in the results.
            place = (f"calibrate {scheduler}", _key(run))
            if place not in self._placed:
                self._placed[place] = self._add(PlannedRun(spec=run))
            indexes[name] = self._placed[place]
        return indexes


def measurements(spec: RunSpec) -> dict[str, Measurement]:
    """Return the measurements of the device that the run needs, by name."""
    return {name: wanted for name, (_, wanted) in _measurements(spec).items()}


def _measurements(spec: RunSpec) -> dict[str, tuple[str, Measurement]]:
    """Return the measurements, each with the scheduler that needs it. Of the schedulers that a run
    switches to, at most one needs any."""
    return {
        name: (scheduler.name, wanted)
        for scheduler in schedulers_of(spec)
        for name, wanted in kind_of(scheduler).measurements(scheduler).items()
    }


def _scheduled_alone(spec: RunSpec) -> RunSpec:
    """Return the run without a scheduler, on the scheduler's disk, without a cache."""
    if spec.caching is None:
        return _under_none(spec)
    device = spec.caching.ssd if spec.caching.scheduler_on == "ssd" else spec.device
    return _under_none(msgspec.structs.replace(spec, device=device, caching=None))


def _under_none(spec: RunSpec) -> RunSpec:
    """Return the same run without a scheduler."""
    return msgspec.structs.replace(
        spec,
        scheduler=_NONE,
        queue=queue_tunables(spec.queue, _NONE, spec.device),
        scheduler_events=(),
    )


def _setting(spec: RunSpec) -> dict[str, str]:
    """Return the part of a point that concerns the device, not tenants and schedulers."""
    return {
        key: value
        for key, value in spec.point.items()
        if key in ("device", "cache", "ssd", "stack")
        or key.startswith(("device.", "queue.", "ssd.", "caching.", "caches."))
    }


def _load_alone(load: Workload, device: Device) -> Workload:
    """Return a tenant's load alone, without pauses.

    The position in a trace matters: a timed replay is at the same position as in the share run, and
    a closed loop does not reach the end. The region of a pattern matters only on a hard disk;
    elsewhere tenants that differ only in it share a run.
    """
    alone = msgspec.structs.replace(load, randseed=_ALONE_SEED, on_ns=0, off_ns=0)
    if load.trace is None and not (isinstance(device, VdiskDevice) and device.model == "disk"):
        alone = msgspec.structs.replace(alone, offset=0)
    if load.trace is not None and load.replay == "timed":
        return alone
    return msgspec.structs.replace(
        alone, startdelay_ns=0, runtime_ns=0, trace_loop=load.trace is not None
    )


def _load_full(load: Workload) -> Workload:
    """Return the same kind of requests, in a number that keeps the device busy."""
    return msgspec.structs.replace(
        load,
        iodepth=max(load.iodepth, _FULL_DEPTH),
        rate_iops=0,
        thinktime_ns=0,
        on_ns=0,
        off_ns=0,
    )


def exact_depth(spec: RunSpec) -> int | None:
    """Return the largest number of requests in flight at which every tenant's part of them can be
    its share.

    Random requests of one kind wait for the same servers of the device, so a tenant gets its part
    of those in flight. The bound is set by the tenant with the fewest requests relative to its
    share. See docs/findings/p2-p3.md.

    Returns:
        None if the tenants' loads differ, or are not random.
    """
    if not _alike(spec) or not spec.tenants[0].workload.rw.startswith("rand"):
        return None
    everybody = sum(tenant.workload.iodepth * tenant.workload.numjobs for tenant in spec.tenants)
    return max(1, min(round(_allowed(spec)), everybody))


def exact_depths(spec: RunSpec) -> tuple[int, ...] | None:
    """Return the number of requests that each tenant may have in flight if its part is to be its
    share.

    As exact_depth(), for sequential loads: which servers they wait for depends on each position, so
    all tenants are needed, each with its part of the total. Each has at least one request, so that
    the bound errs on the high side for a small total.

    Returns:
        A number per tenant; None if the loads differ, or are not sequential.
    """
    if not _alike(spec) or spec.tenants[0].workload.rw not in ("read", "write"):
        return None
    if any(tenant.workload.numjobs > 1 for tenant in spec.tenants):
        return None
    shares = effective_shares(spec.tenants, spec.groups)
    allowed = _allowed(spec)
    return tuple(
        max(1, min(round(allowed * shares[tenant.name]), tenant.workload.iodepth))
        for tenant in spec.tenants
    )


def _alike(spec: RunSpec) -> bool:
    """Return whether all tenants send the same kind of requests in a closed loop."""
    kinds = {
        msgspec.json.encode(
            msgspec.structs.replace(tenant.workload, iodepth=1, randseed=1, offset=0)
        )
        for tenant in spec.tenants
    }
    load = spec.tenants[0].workload if spec.tenants else Workload()
    pauses = load.rate_iops or load.thinktime_ns or load.off_ns
    closed = not (load.trace or pauses or program_of(load))
    return len(kinds) == 1 and closed


def _allowed(spec: RunSpec) -> float:
    """Return the total number of requests at which the tenant with the fewest for its share has all
    of its requests in flight."""
    shares = effective_shares(spec.tenants, spec.groups)
    return min(
        tenant.workload.iodepth * tenant.workload.numjobs / shares[tenant.name]
        for tenant in spec.tenants
    )


def _describe(load: Workload) -> str:
    """Format a load in fio's words: its rw and block size, and options that differ from the
    default."""
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
    """Return a load that measures the device, without processor time."""
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
    """Return the run with the results of the runs that it depends on.

    Args:
        spec: as planned.
        calibration: results of the scheduler's measurements by name; required if it has any.
        reference_totals: bytes read and written per second in the measured time of the run under
            `none` at the same point; required by schedulers that use it.

    Returns:
        The run with its scheduler completed; other runs unchanged.

    Raises:
        ValueError: a required argument is None.
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

# SPDX-License-Identifier: GPL-2.0-only
"""Measure a device of the lab: one run for the figures of each load."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import chain
from math import gcd
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import UNSET

from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.errors import RunError, UserError
from isoblk.metrics.latency import ALL, PERCENTILES, by_tenant, percentile
from isoblk.result.store import Run
from isoblk.run.limits import DEFAULT_WEIGHT, IODEPTH, NUMJOBS, PERCENT
from isoblk.run.seeds import tenant_seed
from isoblk.run.spec import Device, RunSpec, Scheduler, Tenant, VdiskDevice, Workload
from isoblk.run.units import parse_size, parse_time
from isoblk.study.model import ExpectEntry, ExpectLoad, ExpectMetric

TOLERANCE = 0.05
"""Relative error that a fitted figure may have."""

TAIL_TOLERANCE = 0.15
"""The same for a 99th percentile: sources differ by as much in their method of counting."""

UNFITTED: dict[ExpectMetric, float] = {
    "iops": 1.15,
    "bps": 1.15,
    "lat_mean_ns": 1.15,
    "lat_p50_ns": 1.5,
    "lat_p99_ns": 1.5,
    "lat_p99_9_ns": 2,
}
"""Factor, up or down, by which a figure that was not fitted may differ."""

UNFITTED_WRITE_P99 = 2
"""The same for the 99th percentile of writes: that of stalls, whose time drives choose."""

_MS = 1_000_000
# (warm-up, measured time) in ns: at least a thousand requests of a flash disk at iodepth 1, some
# hundred of a hard disk; garbage collection needs longer to reach its mean.
_TIMES = {"fixed": (20 * _MS, 100 * _MS), "flash": (50 * _MS, 200 * _MS)}
_COLLECTION_TIMES = (200 * _MS, 1_000 * _MS)
_HARD_DISK_TIMES = (2_000 * _MS, 20_000 * _MS)
# Scheduler tags of a hardware queue: the kernel's default, and the maximum.
_SCHEDULER_TAGS, _SCHEDULER_TAGS_MAX = 256, 2048


@dataclass(frozen=True)
class Measured:
    """A figure of a preset. value: the model's, in the metric's unit."""

    expect: ExpectEntry
    value: float

    @property
    def error(self) -> float:
        """Return the model's error relative to the source; 0.05 is 5 % too much."""
        return self.value / self.expect.value - 1

    @property
    def allowed(self) -> tuple[float, float]:
        """Return the least and the greatest error within the tolerance."""
        metric = self.expect.metric
        if self.expect.fitted:
            most = TAIL_TOLERANCE if metric in ("lat_p99_ns", "lat_p99_9_ns") else TOLERANCE
            return -most, most
        writes = self.expect.rw in ("write", "randwrite")
        factor = UNFITTED_WRITE_P99 if writes and metric == "lat_p99_ns" else UNFITTED[metric]
        return 1 / factor - 1, factor - 1

    @property
    def ok(self) -> bool:
        """Return whether the error is within the tolerance."""
        least, most = self.allowed
        return least <= self.error <= most

    @property
    def fails(self) -> bool:
        """Return whether the model was fitted to the figure, and misses it."""
        return self.expect.fitted and not self.ok


def measure(
    device: Device,
    expect: Sequence[ExpectEntry],
    bench: Bench,
    executor: Executor,
    on_end: Callable[[], None] = lambda: None,
) -> list[Measured]:
    """Measure each figure. Figures of one load are of one run.

    Args:
        device: the device.
        expect: the figures.
        bench: kernel and modules of the runs.
        executor: makes the runs.
        on_end: called in any thread when a run ends.

    Raises:
        UserError: a figure cannot be measured.
        RunError: a run failed.
    """
    loads: dict[bytes, tuple[RunSpec, list[int]]] = {}
    for place, entry in enumerate(expect):
        spec = make_spec(device, entry)
        loads.setdefault(msgspec.json.encode(spec), (spec, []))[1].append(place)

    def one(spec: RunSpec, places: Sequence[int]) -> list[tuple[int, Measured]]:
        with TemporaryDirectory() as results:
            job = make_job(spec, bench.kernel.key, bench.modules_key, bench.machine.tier)
            run = execute(job, bench, Path(results))
            if run.record.status == "invalid":
                raise RunError(run.record.reasons[0], where=expect[places[0]].what)
            values = [figure(run, expect[place]) for place in places]
        for _ in places:
            on_end()
        return [
            (place, Measured(expect[place], value))
            for place, value in zip(places, values, strict=True)
        ]

    made = executor.map(one, *zip(*loads.values(), strict=True)) if loads else ()
    return [measured for _, measured in sorted(chain.from_iterable(made), key=itemgetter(0))]


def make_spec(device: Device, expect: ExpectEntry) -> RunSpec:
    """Return the run that measures a figure.

    It has a tenant and, if the figure has a competing load, a second one, on the device in the
    source's state.

    Raises:
        UserError: the figure's load is not possible.
    """
    try:
        size = parse_size(expect.size)
        cputime = parse_time(expect.cputime, "ns")
        warmup, runtime = _times(device, expect)
        loads = {"load": _workload(expect, expect.what, 0, size=size, cputime_ns=cputime)}
        if expect.beside is not UNSET:
            loads["beside"] = _workload(expect.beside, expect.what, 1)
    except ValueError as error:
        raise UserError(str(error), where=expect.what) from None
    if expect.fill not in PERCENT:
        raise UserError(
            f"fill {expect.fill} is out of range", where=expect.what, next=f"allowed: {PERCENT}"
        )
    found = in_state(device, expect)
    in_flight = sum(load.iodepth * load.numjobs for load in loads.values())
    elevator = expect.scheduler
    if elevator != "none" and in_flight > _SCHEDULER_TAGS_MAX:
        raise UserError(
            f"{in_flight} requests in flight under {elevator}",
            where=expect.what,
            next=f"{_SCHEDULER_TAGS_MAX} at most",
        )
    if expect.beside is not UNSET and isinstance(found, VdiskDevice):
        # On the source's host no request waited for a tag: each CPU had its own hardware queue.
        found = msgspec.structs.replace(found, queue_depth=max(found.queue_depth, in_flight))
    return RunSpec(
        kind="share",
        point={"scheduler": elevator},
        repeat=0,
        device=found,
        scheduler=Scheduler(name=elevator, elevator=elevator, iosched=dict(expect.iosched)),
        cgroup="v2",
        queue={"nr_requests": _SCHEDULER_TAGS_MAX}
        if elevator != "none" and in_flight > _SCHEDULER_TAGS
        else {},
        groups=(),
        tenants=tuple(
            Tenant(name=name, cgroup=name, weight=DEFAULT_WEIGHT, workload=load)
            for name, load in loads.items()
        ),
        events=(),
        warmup_ns=warmup,
        runtime_ns=runtime,
        window_ms=gcd(warmup, runtime) // _MS,
        seed=1,
    )


def _workload(
    load: ExpectEntry | ExpectLoad, what: str, place: int, size: int = 0, cputime_ns: int = 0
) -> Workload:
    """Return the load of a figure for tenant number `place` of a run.

    Raises:
        UserError: the load is not possible.
        ValueError: its block size is malformed.
    """
    for name, value, allowed in (
        ("iodepth", load.iodepth, IODEPTH),
        ("numjobs", load.numjobs, NUMJOBS),
    ):
        if value not in allowed:
            raise UserError(
                f"{name} {value} is out of range", where=what, next=f"allowed: {allowed}"
            )
    return Workload(
        rw=load.rw,
        bs=parse_size(load.bs),
        iodepth=load.iodepth,
        numjobs=load.numjobs,
        size=size,
        cputime_ns=cputime_ns,
        randseed=tenant_seed(1, place),
    )


def _times(device: Device, expect: ExpectEntry) -> tuple[int, int]:
    """Return warm-up and measured time, in whole ms.

    Raises:
        ValueError: they are not whole ms.
    """
    model = device.model if isinstance(device, VdiskDevice) else "fixed"
    warmup, runtime = _TIMES.get(model, _HARD_DISK_TIMES)
    writes = expect.rw not in ("read", "randread") or expect.beside is not UNSET
    if model == "flash" and expect.state == "steady" and writes:
        warmup, runtime = _COLLECTION_TIMES
    if expect.warmup is not UNSET:
        warmup = parse_time(expect.warmup, "s")
    if expect.runtime is not UNSET:
        runtime = parse_time(expect.runtime, "s")
    if warmup % _MS or runtime % _MS or not runtime:
        raise ValueError("warmup and runtime are not whole ms")
    return warmup, runtime


def in_state(device: Device, expect: ExpectEntry) -> Device:
    """Return the device in the state before the load. Only flash depends on earlier writes."""
    if not isinstance(device, VdiskDevice) or device.model != "flash":
        return device
    if expect.state == "steady":
        flash = msgspec.structs.replace(device.flash, precondition="random", fill=expect.fill)
    elif expect.rw in ("read", "randread"):
        flash = msgspec.structs.replace(device.flash, precondition="sequential", fill=expect.fill)
    else:
        flash = msgspec.structs.replace(device.flash, precondition="none")
    return msgspec.structs.replace(device, flash=flash)


def figure(run: Run, expect: ExpectEntry) -> float:
    """Return the figure's metric of a run, over all data operations of its load.

    Raises:
        RunError: no request was measured.
    """
    tenant = next(tenant for tenant in run.record.tenants if tenant.name == "load")
    data = [totals for op, totals in tenant.ops.items() if op != "flush"]
    ios = sum(totals.meas_ios for totals in data)
    if not ios or not tenant.measured_ns:
        raise RunError("no request ended in the measured time", where=expect.what)
    match expect.metric:
        case "iops":
            return ios * 1e9 / tenant.measured_ns
        case "bps":
            return sum(totals.meas_bytes for totals in data) * 1e9 / tenant.measured_ns
        case "lat_mean_ns":
            return sum(totals.lat_sum_ns for totals in data) / ios
        case "lat_p50_ns" | "lat_p99_ns" | "lat_p99_9_ns":
            rank = PERCENTILES[expect.metric.removeprefix("lat_").removesuffix("_ns")]
            return percentile(by_tenant(run.latency())[tenant.name][ALL], rank)

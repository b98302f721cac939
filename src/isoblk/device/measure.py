# SPDX-License-Identifier: GPL-2.0-only
"""What a device of the lab does, beside what its source says. Each figure is measured in a run."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from math import gcd
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
from isoblk.study.model import ExpectEntry

TOLERANCE = 0.05
"""How far a model may be from its source, relative."""

TAIL_TOLERANCE = 0.15
"""The same of a 99th percentile: sources differ as much among each other in what they count."""

_MS = 1_000_000
# (warm-up, measured time) in ns: at least a thousand requests of a flash disk at iodepth 1,
# and of a hard disk some hundred; garbage collection takes longer to have its mean.
_TIMES = {"fixed": (20 * _MS, 100 * _MS), "flash": (50 * _MS, 200 * _MS)}
_COLLECTION_TIMES = (200 * _MS, 1_000 * _MS)
_HARD_DISK_TIMES = (2_000 * _MS, 20_000 * _MS)


@dataclass(frozen=True)
class Measured:
    """A figure of a preset. value: the model's, in the metric's unit."""

    expect: ExpectEntry
    value: float

    @property
    def error(self) -> float:
        """Of the model, relative to the source; 0.05 is 5 % too much."""
        return self.value / self.expect.value - 1

    @property
    def tolerance(self) -> float:
        """How large the error may be."""
        return TAIL_TOLERANCE if self.expect.metric == "lat_p99_ns" else TOLERANCE

    @property
    def ok(self) -> bool:
        """Whether that is within the tolerance."""
        return abs(self.error) <= self.tolerance

    @property
    def fails(self) -> bool:
        """Whether the model was made to meet it, and does not."""
        return self.expect.fitted and not self.ok


def measure(
    device: Device,
    expect: Sequence[ExpectEntry],
    bench: Bench,
    executor: Executor,
    on_end: Callable[[], None] = lambda: None,
) -> list[Measured]:
    """Measure each figure, a run each.

    Args:
        executor: where runs are made.
        on_end: called when one has ended, in whichever thread.

    Raises:
        UserError: a figure that cannot be measured.
        RunError: a run failed.
    """
    specs = [make_spec(device, one) for one in expect]

    def one(entry: ExpectEntry, spec: RunSpec) -> Measured:
        with TemporaryDirectory() as results:
            job = make_job(spec, bench.kernel.key, bench.modules_key, bench.machine.tier)
            run = execute(job, bench, Path(results))
            if run.record.status == "invalid":
                raise RunError(run.record.reasons[0], where=entry.what)
            value = figure(run, entry)
        on_end()
        return Measured(entry, value)

    return list(executor.map(one, expect, specs))


def make_spec(device: Device, expect: ExpectEntry) -> RunSpec:
    """The run that measures a figure: one tenant, no scheduler, the device in the state of
    which the source speaks.

    Raises:
        UserError: the figure's load cannot be made.
    """
    try:
        block, size = parse_size(expect.bs), parse_size(expect.size)
        cputime = parse_time(expect.cputime, "ns")
        warmup, runtime = _times(device, expect)
    except ValueError as error:
        raise UserError(str(error), where=expect.what) from None
    for name, value, allowed in (
        ("iodepth", expect.iodepth, IODEPTH),
        ("numjobs", expect.numjobs, NUMJOBS),
        ("fill", expect.fill, PERCENT),
    ):
        if value not in allowed:
            raise UserError(
                f"{name} {value} is out of range", where=expect.what, next=f"allowed: {allowed}"
            )
    load = Workload(
        rw=expect.rw,
        bs=block,
        iodepth=expect.iodepth,
        numjobs=expect.numjobs,
        size=size,
        cputime_ns=cputime,
        randseed=tenant_seed(1, 0),
    )
    return RunSpec(
        kind="share",
        point={"scheduler": "none"},
        repeat=0,
        device=in_state(device, expect),
        scheduler=Scheduler(name="none", elevator="none"),
        cgroup="v2",
        queue={},
        groups=(),
        tenants=(Tenant(name="load", cgroup="load", weight=DEFAULT_WEIGHT, workload=load),),
        events=(),
        warmup_ns=warmup,
        runtime_ns=runtime,
        window_ms=gcd(warmup, runtime) // _MS,
        seed=1,
    )


def _times(device: Device, expect: ExpectEntry) -> tuple[int, int]:
    """Warm-up and measured time, whole ms.

    Raises:
        ValueError: they are not.
    """
    model = device.model if isinstance(device, VdiskDevice) else "fixed"
    warmup, runtime = _TIMES.get(model, _HARD_DISK_TIMES)
    if model == "flash" and expect.state == "steady" and expect.rw not in ("read", "randread"):
        warmup, runtime = _COLLECTION_TIMES
    if expect.warmup is not UNSET:
        warmup = parse_time(expect.warmup, "s")
    if expect.runtime is not UNSET:
        runtime = parse_time(expect.runtime, "s")
    if warmup % _MS or runtime % _MS or not runtime:
        raise ValueError("warmup and runtime are not whole ms")
    return warmup, runtime


def in_state(device: Device, expect: ExpectEntry) -> Device:
    """The device as the load finds it. Only flash remembers what was written before."""
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
    """The run's value of the figure's metric, all data ops together.

    Raises:
        RunError: nothing was measured.
    """
    (tenant,) = run.record.tenants
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
        case "lat_p50_ns" | "lat_p99_ns":
            rank = PERCENTILES[expect.metric.removeprefix("lat_").removesuffix("_ns")]
            return percentile(by_tenant(run.latency())[tenant.name][ALL], rank)

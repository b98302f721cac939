# SPDX-License-Identifier: GPL-2.0-only
"""Writes synthetic result directories with known numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import msgspec
import polars as pl

from isoblk.result.store import (
    FORMAT,
    LATENCY_SCHEMA,
    PREDICTIONS,
    PREDICTIONS_SCHEMA,
    SERIES_SCHEMA,
    write_study,
    write_table,
)
from isoblk.result.study import StudyRecord, StudyRun
from isoblk.run.record import (
    CacheReport,
    Knob,
    OpTotals,
    Processors,
    ProgramReport,
    Provenance,
    ReplayTotals,
    RunRecord,
    TenantResult,
)
from isoblk.run.spec import (
    Device,
    DeviceEvent,
    Event,
    Group,
    PlannedRun,
    RunKind,
    RunSpec,
    Scheduler,
    Tenant,
    VdiskDevice,
    Workload,
)
from isoblk.study.model import ClaimEntry, Study, TenantEntry

BS = 4096
PROVENANCE = Provenance(
    isoblk="0.1.0",
    kernel="6.12.0",
    kernel_key="k" * 16,
    kernel_source="linux-source-6.12",
    compiler="gcc 12.2.0",
    modules_key="m" * 16,
)


@dataclass(frozen=True)
class Made:
    """One run to write. rates: I/Os a second by tenant, constant while it is active, or a
    list: one for each 100 ms after the barrier. latencies_ns: rank-weighted buckets.
    predictions: (t_ms, predicted, used, error, a)."""

    scheduler: str
    rates: Mapping[str, float | Sequence[float]]
    kind: RunKind = "share"
    point: Mapping[str, str] = field(default_factory=dict)
    repeat: int = 0
    tenants: Sequence[Tenant] = ()
    groups: Sequence[Group] = ()
    events: Sequence[Event] = ()
    device_events: Sequence[DeviceEvent] = ()
    predictions: Sequence[tuple[float, int, int, float, float]] | None = None
    status: str = "valid"
    reasons: Sequence[str] = ()
    failure: str = ""
    missing: bool = False
    reference: int | None = None
    alone: Sequence[int] = ()
    full: Sequence[int] = ()
    bound: int | None = None
    warmup_ms: int = 0
    runtime_ms: int = 1000
    tier: str = "uml"
    latency: Mapping[int, int] | None = None  # upper_ns to count, every tenant's
    provenance: Provenance = PROVENANCE
    replays: Mapping[str, ReplayTotals | None] = field(default_factory=dict)
    says: Mapping[str, ProgramReport] = field(default_factory=dict)
    cache: CacheReport | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes of a request, if not BS
    processors: Mapping[str, Processors] = field(default_factory=dict)
    device: Device = field(default_factory=VdiskDevice)
    busy: float | None = None


def tenant(name: str, weight: int, cgroup: str = "", **workload: object) -> Tenant:
    load = msgspec.convert(workload, Workload)
    return Tenant(name=name, cgroup=cgroup or name, weight=weight, workload=load)


def four() -> list[Tenant]:
    return [
        tenant(name, weight, iodepth=32)
        for name, weight in (("gold", 1000), ("silver", 500), ("bronze", 250), ("tin", 100))
    ]


def write(
    directory: Path,
    runs: Sequence[Made],
    claims: Sequence[ClaimEntry] = (),
    title: str = "",
    ssd: str | None = None,
) -> Path:
    """Write a result directory of `runs`."""
    directory.mkdir(parents=True, exist_ok=True)
    study = Study(
        name="synthetic",
        title=title or "A synthetic study",
        device="fast",
        ssd=ssd,
        claim=list(claims),
        tenant=[TenantEntry(name=t.name, weight=t.weight) for t in runs[0].tenants],
        description="Made up, to test the <report>.",
    )
    entries = []
    for index, made in enumerate(runs):
        spec = _spec(made)
        run_id = "" if made.failure or made.missing else f"{index:016x}"
        planned = PlannedRun(
            spec=spec,
            reference=made.reference,
            alone=tuple(made.alone),
            full=tuple(made.full),
            bound=made.bound,
        )
        entries.append(StudyRun(planned=planned, id=run_id, failure=made.failure))
        if run_id:
            _write_run(directory / "runs" / run_id, run_id, made, spec)
    write_study(directory, StudyRecord(format=FORMAT, study=study, source="", runs=entries))
    return directory


def _spec(made: Made) -> RunSpec:
    point = dict(made.point)
    if made.kind == "share":
        point = {"scheduler": made.scheduler, **point}
    return RunSpec(
        kind=made.kind,
        point=point,
        repeat=made.repeat,
        device=made.device,
        scheduler=Scheduler(name=made.scheduler, elevator=made.scheduler),
        cgroup="v2",
        queue={},
        groups=tuple(made.groups),
        tenants=tuple(made.tenants),
        events=tuple(made.events),
        device_events=tuple(made.device_events),
        warmup_ns=made.warmup_ms * 10**6,
        runtime_ns=made.runtime_ms * 10**6,
        window_ms=100,
        seed=1 + made.repeat,
    )


def _write_run(directory: Path, run_id: str, made: Made, spec: RunSpec) -> None:
    directory.mkdir(parents=True)
    series: list[tuple[str, int, str, int, int]] = []
    buckets: list[tuple[str, str, int, int]] = []
    tenants = []
    end_ms = made.warmup_ms + made.runtime_ms
    for one in spec.tenants:
        work = one.workload
        start = work.startdelay_ns // 10**6
        stop = min(end_ms, start + work.runtime_ns // 10**6) if work.runtime_ns else end_ms
        rate = made.rates[one.name]
        op = "write" if "write" in work.rw else "read"
        size = made.sizes.get(one.name, BS)
        ios = measured = 0
        for t_ms in range(0, end_ms, 100):
            now = rate if isinstance(rate, (int, float)) else rate[t_ms // 100]
            part = max(0, min(stop, t_ms + 100) - max(start, t_ms))
            count = round(now * part / 1000)
            if count:
                series.append((one.name, t_ms, op, count, count * size))
            ios += count
            measured += count if t_ms >= made.warmup_ms else 0
        own = made.latency or _latencies(measured, one.weight)
        buckets += [(one.name, op, upper, count) for upper, count in sorted(own.items())]
        totals = OpTotals(
            ios=ios,
            bytes=ios * size,
            errors=0,
            verify_errors=0,
            meas_ios=measured,
            meas_bytes=measured * size,
            lat_sum_ns=sum(u * c for u, c in own.items()),
            lat_min_ns=min(own),
            lat_max_ns=max(own),
        )
        span = max(0, stop - max(start, made.warmup_ms)) * 10**6
        tenants.append(
            TenantResult(
                name=one.name,
                cgroup=one.cgroup,
                weight=one.weight,
                measured_ns=span,
                error=0,
                ops={op: totals} if measured else {},
                io_stat=None,
                processors=made.processors.get(one.name),
                replay=made.replays.get(one.name),
                says=made.says.get(one.name),
            )
        )
    record = RunRecord(
        format=FORMAT,
        id=run_id,
        tier=made.tier,  # type: ignore[arg-type]
        status=made.status,  # type: ignore[arg-type]
        reasons=list(made.reasons),
        spec=spec,
        provenance=made.provenance,
        tenants=tenants,
        knobs=[
            Knob(
                path="/sys/block/disk0/queue/scheduler",
                asked=made.scheduler,
                got=f"[{made.scheduler}]",
                ok=made.status == "valid",
            )
        ],
        cache=made.cache,
        busy=made.busy,
        wall_s=0.5,
        cpu_s=0.4,
    )
    if made.predictions is not None:
        predictions = pl.DataFrame(made.predictions, schema=PREDICTIONS_SCHEMA, orient="row")
        write_table(directory / PREDICTIONS, predictions)
    (directory / "run.json").write_bytes(msgspec.json.encode(record))
    (directory / "plan.sh").write_text(
        "#!/bin/sh\n# made up & <escaped>\n"
        f"echo {made.scheduler} > /sys/block/disk0/queue/scheduler\n"
    )
    table = pl.DataFrame(series, schema=SERIES_SCHEMA, orient="row")
    write_table(directory / "series.parquet", table)
    table = pl.DataFrame(buckets, schema=LATENCY_SCHEMA, orient="row")
    write_table(directory / "latency.parquet", table)


def _latencies(count: int, weight: int) -> dict[int, int]:
    """A log-normal-like spread of `count` requests around a median of 40 ms / weight."""
    median = 40e6 / weight
    cuts = [-2.0 + 0.05 * i for i in range(120)]
    below = [0.5 * (1 + math.erf(c / math.sqrt(2) / 0.6)) for c in cuts]
    result: dict[int, int] = {}
    taken = 0
    for cut, fraction in zip(cuts, below, strict=True):
        upto = round(fraction * count)
        if upto > taken:
            result[round(median * math.exp(cut))] = upto - taken
            taken = upto
    return result or {round(median): max(count, 1)}


# Results of each scheduler for four tenants of weights 1000/500/250/100: share, total IOPS.
BEHAVIOUR: dict[str, tuple[tuple[float, ...], int]] = {
    "none": ((0.26, 0.25, 0.25, 0.24), 800_000),
    "mq-deadline": ((0.25, 0.25, 0.25, 0.25), 785_000),
    "kyber": ((0.25, 0.25, 0.25, 0.25), 795_000),
    "bfq": ((0.541, 0.270, 0.136, 0.053), 294_000),
    "io.cost": ((0.31, 0.28, 0.24, 0.17), 640_000),
    "io.max": ((0.54, 0.27, 0.135, 0.055), 770_000),
    "io.latency": ((0.40, 0.27, 0.19, 0.14), 700_000),
}


def weights_study(
    directory: Path,
    *,
    repeats: int = 1,
    claims: Sequence[ClaimEntry] = (),
    scale: float = 1.0,
    provenance: Provenance = PROVENANCE,
    tier: str = "uml",
) -> Path:
    """Seven schedulers x three rw, four tenants; kyber/randwrite is invalid, io.latency/randrw
    failed; each tenant reaches 600,000 IOPS alone."""
    tenants = four()
    alone = [
        Made(
            "none",
            {"alone": 600_000},
            kind="alone",
            tenants=[tenant("alone", 100, iodepth=32)],
            point={"alone": "randread bs=4k iodepth=32"},
            tier=tier,
        )
    ]
    runs: list[Made] = list(alone)
    for rw, slower in (("randread", 1.0), ("randwrite", 0.8), ("randrw", 0.9)):
        first = len(runs)
        own = [
            replaced
            for t in tenants
            for replaced in [
                msgspec.structs.replace(t, workload=msgspec.structs.replace(t.workload, rw=rw))
            ]
        ]
        for name, repeat in product(BEHAVIOUR, range(repeats)):
            shares, total = BEHAVIOUR[name]
            noise = 1 + 0.004 * (repeat - (repeats - 1) / 2)
            rates = {
                t.name: total * slower * share * noise * scale
                for t, share in zip(own, shares, strict=True)
            }
            made = Made(
                name,
                rates,
                point={"workload.rw": rw},
                repeat=repeat,
                tenants=own,
                reference=None if name == "none" else first + repeat,
                alone=[0] * 4,
                warmup_ms=200,
                runtime_ms=1000,
                provenance=provenance,
                tier=tier,
            )
            if (name, rw) == ("kyber", "randwrite"):
                made = replace(made, status="invalid", reasons=["io.weight of gold did not take"])
            if (name, rw) == ("io.latency", "randrw"):
                made = replace(made, failure="kernel panic: <made up>")
            runs.append(made)
    return write(directory, runs, claims, title="Weights on a fast disk")


def count_study(directory: Path, counts: Sequence[int] = (4, 8, 16, 32, 64, 128)) -> Path:
    """Group counts x four schedulers, weights 100/200/400/800 repeated."""
    runs: list[Made] = []
    for count in counts:
        tenants = [
            tenant(f"t{i + 1}", (100, 200, 400, 800)[i % 4], iodepth=32) for i in range(count)
        ]
        whole = sum(t.weight for t in tenants)
        first = len(runs)
        for name in ("none", "kyber", "bfq", "io.cost"):
            total = {"none": 800e3, "kyber": 790e3, "bfq": 1.2e6 / count, "io.cost": 650e3}[name]
            blend = {"none": 0.0, "kyber": 0.02, "bfq": min(1.0, 8 / count), "io.cost": 0.5}[name]
            rates = {
                t.name: total * (blend * t.weight / whole + (1 - blend) / count) for t in tenants
            }
            runs.append(
                Made(
                    name,
                    rates,
                    point={"tenant.t.count": str(count)},
                    tenants=tenants,
                    reference=None if name == "none" else first,
                )
            )
    return write(directory, runs, title="Number of groups")


def event_study(directory: Path) -> Path:
    """Two tenants: the second starts at 500 ms; at 1000 ms its weight goes from 100 to 300,
    which the scheduler follows 300 ms late."""
    tenants = [tenant("a", 100), tenant("b", 100, startdelay_ns=500 * 10**6)]
    a = [100e3] * 5 + [50e3] * 5 + [50e3] * 3 + [25e3] * 7
    b = [0.0] * 5 + [50e3] * 5 + [50e3] * 3 + [75e3] * 7
    events = [Event(at_ns=10**9, tenant="b", weight=300)]
    return write(
        directory,
        [
            Made(
                name,
                {"a": a, "b": b},
                tenants=tenants,
                events=events,
                runtime_ms=2000,
                reference=None if name == "none" else 0,
            )
            for name in ("none", "bfq")
        ],
        title="A weight changes",
    )

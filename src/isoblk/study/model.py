# SPDX-License-Identifier: GPL-2.0-only
"""What a study is, as a user writes it: decoded from TOML. What its runs are is run/spec.py."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from isoblk.run.spec import (
    AttributeValue,
    CacheName,
    CgroupVersion,
    FilesystemType,
    IoPrio,
    MadeOn,
    MatrixValue,
    Options,
    Placement,
    PlannedRun,
    Program,
    ReplayMode,
    RwMode,
    ScheduledOn,
    TraceFit,
)
from isoblk.schedulers.io_cost import IoCostTable
from isoblk.schedulers.io_latency import IoLatencyTable
from isoblk.schedulers.io_max import IoMaxTable
from isoblk.schedulers.other import OtherTable

DeviceTable = dict[str, AttributeValue | dict[str, AttributeValue]]
"""A device as written: its attributes, and a table of them for each part that has its own."""


class WorkloadFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """fio's options, with fio's meanings. Unset: taken from [workload], else the default.

    Sizes are bytes, or text with a suffix (k, m, g: powers of 1024). Times are text with a
    suffix (us, ms, s) or a number in fio's unit: seconds, but microseconds for thinktime.
    cputime is not fio's: CPU time that issuing a request takes, nanoseconds or text.
    Nor are meta, background and relay: how requests are marked, and who submits them.
    trace: what to replay instead of a pattern: a file, or a stand-in's name; "": nothing.
    trace_stream: only the requests of that stream, at their times in the whole trace.
    replay: at the recorded times, which are divided by `speed`, or one request when another
    ends. trace_fit: how addresses beyond the region come to lie in it. trace_loop: begin anew
    after the last request.
    options: those of a program other than blkload and fio (docs/guides/programs.md); in [workload],
    for tenants that run the program named there. memory: what such a program, with its part of the
    page cache, may use.
    """

    workload: Program | UnsetType = UNSET
    rw: RwMode | UnsetType = UNSET
    rwmixread: int | UnsetType = UNSET
    bs: int | str | UnsetType = UNSET
    bsrange: str | UnsetType = UNSET
    bssplit: str | UnsetType = UNSET
    iodepth: int | UnsetType = UNSET
    numjobs: int | UnsetType = UNSET
    rate_iops: int | UnsetType = UNSET
    rate_process: Literal["linear", "poisson"] | UnsetType = UNSET
    thinktime: int | str | UnsetType = UNSET
    thinktime_blocks: int | UnsetType = UNSET
    cputime: int | str | UnsetType = UNSET
    startdelay: int | float | str | UnsetType = UNSET
    runtime: int | float | str | UnsetType = UNSET
    number_ios: int | UnsetType = UNSET
    offset: int | str | UnsetType = UNSET
    offset_increment: int | str | UnsetType = UNSET
    size: int | str | UnsetType = UNSET
    random_distribution: str | UnsetType = UNSET
    fsync: int | UnsetType = UNSET
    fua: bool | UnsetType = UNSET
    meta: bool | UnsetType = UNSET
    background: bool | UnsetType = UNSET
    relay: bool | UnsetType = UNSET
    ioprio: IoPrio | UnsetType = UNSET
    verify: bool | UnsetType = UNSET
    trace: str | UnsetType = UNSET
    trace_stream: int | UnsetType = UNSET
    replay: ReplayMode | UnsetType = UNSET
    speed: int | float | UnsetType = UNSET
    trace_fit: TraceFit | UnsetType = UNSET
    trace_loop: bool | UnsetType = UNSET
    options: Options | UnsetType = UNSET
    memory: int | str | UnsetType = UNSET


class TenantEntry(WorkloadFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[tenant]]: one tenant, or `count` of them named NAME1, NAME2, ...

    weight: 1..10000, or a list that is repeated over the count.
    latency_target: for isoblk, kyber-fair, feedbac and io.latency, by when a request of it is to
    have ended: text, or a number in microseconds; 0: whenever.
    cgroup: path below the root of the hierarchy, default the tenant's name; with a count,
    the number is appended, as it is to the name.
    Of a tenant that is already running (workload = "running", on the host machine): its own
    cgroup, from the root of the hierarchy ("/system.slice/web.service"), or "pid:N" for that of
    a process.
    """

    name: str
    count: int | UnsetType = UNSET
    weight: int | list[int] = 100
    latency_target: int | float | str = 0
    cgroup: str = ""


class GroupEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[group]]: an inner cgroup that holds tenants' cgroups. Those not named weigh 100."""

    path: str
    weight: int = 100


class EventEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[event]]: something changes while the load runs, `at` after the barrier: a tenant's
    weight (tenant and weight), or attributes of a vdisk (device) that may then be changed."""

    at: int | float | str
    tenant: str | UnsetType = UNSET
    weight: int | UnsetType = UNSET
    device: DeviceTable = {}


class FilesystemTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[filesystem]: made on a partition of the device, for the tenants whose programs work on
    files. mkfs: further arguments of mkfs.TYPE. mount: options, as of mount -o."""

    type: FilesystemType = "ext4"
    offset: int | str = 0
    size: int | str = 0
    mkfs: list[str] = []
    mount: str = ""


class CachingTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[caching]: how the SSD is used, whatever the cache.

    origin, ssd: how much of the device, and of the SSD, from the start; 0: all.
    files: what the tenants find there is made on the origin before it has an SSD, so that nothing
    is cached ("origin"), or by way of the cache ("cache"): files, or, without [filesystem], zeros
    on the tenants' regions, written in order. "read", without [filesystem]: zeros made on the
    origin, then read in order by way of the cache.
    passes: how often the load runs, from the start to its end; the last is measured. The page
    cache is dropped before each.
    placement: the tenants' device is the cached one ("contiguous"), or `working_set` bytes of it
    in pieces that lie anywhere on it ("scattered").
    scheduler_on: which disk's queue has the scheduler; the other has none.
    """

    origin: int | str = 0
    ssd: int | str = 0
    files: MadeOn = "origin"
    passes: int = 1
    placement: Placement = "contiguous"
    working_set: int | str = 0
    piece: int | str = "2m"
    scheduler_on: ScheduledOn = "origin"


class RunTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[run]: warmup is not measured; the measured time is runtime; both for every run.

    window: width of the time series' windows, a number in milliseconds; it divides both.
    Repeat r has seed + r.
    """

    warmup: int | float | str = 0
    runtime: int | float | str = 1
    window: str | int | float = "100ms"
    repeats: int = 1
    seed: int = 1
    cgroup: CgroupVersion = "v2"


class ClaimEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[claim]]: `metric` of the runs that match `where` compares to `value`.

    where: matrix key to value; every run that matches must satisfy the comparison.
    than: matrix key to value; the metric is then a ratio: over that of the run of the same
    point and repeat with these values in place.
    among: weight_ratio_error of these tenants only, as if there were no others.
    why: what explains the verdict, for the report. {METRIC} is that of the run, {than.METRIC} that
    of the run it is compared with.
    op: "<", "<=", ">", ">=", or "~" (within `tolerance`, relative).
    """

    text: str
    source: str
    metric: str
    op: Literal["<", "<=", ">", ">=", "~"]
    value: float
    tolerance: float = 0.0
    where: dict[str, MatrixValue] = {}
    than: dict[str, MatrixValue] = {}
    among: list[str] = []
    why: str = ""


class CompareSeries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[compare.series]]: figures of a source, one for each value of [compare] x; 0: it has none.

    where: matrix key to value: the runs they belong to.
    """

    text: str
    where: dict[str, MatrixValue] = {}
    values: list[float]


class CompareTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[compare]: a source's own figures, which the report draws beside those of the runs.

    x: the matrix key whose values stand along the axis. scale: of a value, in the metric's unit.
    """

    title: str
    source: str
    metric: Literal["total_bps", "total_iops"]
    x: str
    scale: float = 1.0
    series: list[CompareSeries]


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study file. device: a preset's name, or a table with `preset` and/or `driver`.

    queue: files below /sys/block/DISK/queue to write (nr_requests, nomerges, ...).
    iosched: for a scheduler, files below queue/iosched to write when it is in use.
    schedulers: elevators of others, by the names that the study calls them.
    matrix: dotted field ("scheduler", "run.cgroup", "workload.rw", "tenant.NAME.iodepth",
    "queue.nr_requests", "device.servers") over a list of values; the runs are the product.
    A value of "tenant.NAME.weight" may be a list, as the field itself.
    ssd: a second device; `cache` puts it in front of the first. caches: options, by cache.
    scale: what sizes written as "8g/scale" are divided by.
    """

    name: str
    title: str = ""
    description: str = ""
    scheduler: str = "none"
    device: str | DeviceTable
    scale: int = 1
    cache: CacheName = "none"
    ssd: str | DeviceTable | None = None
    caching: CachingTable = CachingTable()
    caches: dict[str, Options] = {}
    run: RunTable = RunTable()
    workload: WorkloadFields = WorkloadFields()
    filesystem: FilesystemTable | None = None
    tenant: list[TenantEntry]
    group: list[GroupEntry] = []
    event: list[EventEntry] = []
    queue: dict[str, int | str] = {}
    iosched: dict[str, dict[str, int | str]] = {}
    schedulers: dict[str, OtherTable] = {}
    io_cost: IoCostTable = IoCostTable()
    io_max: IoMaxTable = IoMaxTable()
    io_latency: IoLatencyTable = IoLatencyTable()
    matrix: dict[str, list[MatrixValue]] = {}
    claim: list[ClaimEntry] = []
    compare: CompareTable | None = None


ExpectMetric = Literal["iops", "bps", "lat_mean_ns", "lat_p50_ns", "lat_p99_ns"]


class ExpectEntry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """[[expect]] of a preset: what its source says that the device does.

    rw, bs, iodepth, numjobs, size, cputime: the load, as fio has them (see WorkloadFields).
    state: "fresh": reads find what was written in order, writes an erased device; "steady":
    it has been overwritten at random until its throughput no longer changes.
    fill: how much of the device holds data then, per cent.
    warmup, runtime: virtual time, when the model's own will not do.
    value: in the metric's unit: requests a second, bytes a second, nanoseconds.
    """

    what: str
    rw: RwMode
    metric: ExpectMetric
    value: float
    source: str
    bs: int | str = 4096
    iodepth: int = 1
    numjobs: int = 1
    size: int | str = 0
    cputime: int | str = 0
    state: Literal["fresh", "steady"] = "fresh"
    fill: int = 100
    warmup: int | float | str | UnsetType = UNSET
    runtime: int | float | str | UnsetType = UNSET


# ---- what a run is -------------------------------------------------------------------


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of a study; what a run leans on comes before it."""

    study: Study
    runs: tuple[PlannedRun, ...]

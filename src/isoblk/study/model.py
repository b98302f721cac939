# SPDX-License-Identifier: GPL-2.0-only
"""A study as the user writes it, decoded from TOML. For its runs see run/spec.py."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from isoblk.layers.registry import NO_STACK
from isoblk.metrics.registry import NAMES
from isoblk.run import limits
from isoblk.run.limits import Range
from isoblk.run.load import LOAD_OPTIONS, Described
from isoblk.run.options import SECONDS, SIZE, said
from isoblk.run.spec import (
    AttributeValue,
    CgroupVersion,
    FilesystemType,
    MadeOn,
    MatrixValue,
    Options,
    Placement,
    PlannedRun,
    RwMode,
    ScheduledOn,
)
from isoblk.schedulers.io_cost import IoCostTable
from isoblk.schedulers.io_latency import IoLatencyTable
from isoblk.schedulers.io_max import IoMaxTable
from isoblk.schedulers.other import OtherTable

DeviceTable = dict[str, AttributeValue | dict[str, AttributeValue]]
"""A device as written: its attributes, and a table for each part with attributes of its own."""


def _of_load(one: Described) -> msgspec.Meta:
    """Return the schema of an option. A range applies where the option is written as the field
    is."""
    as_it_is = one.option.read == "as it is"
    return said(one.option.text, one.option.allowed if as_it_is else None)


if TYPE_CHECKING:

    class _LoadFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """To a type checker, options have any type."""

        def __getattr__(self, name: str) -> Any: ...

else:
    # A field for each option of a load, unset unless it is written.
    _LoadFields = msgspec.defstruct(
        "_LoadFields",
        [
            (name, Annotated[one.kind | UnsetType, _of_load(one)], UNSET)
            for name, one in LOAD_OPTIONS.items()
        ],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


class WorkloadFields(_LoadFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """fio's options, with fio's meanings. Unset: taken from [workload], else the default.

    Sizes are bytes, or text with a suffix (k, m, g: powers of 1024). Times are text with a suffix
    (us, ms, s) or a number in fio's unit: seconds, but microseconds for thinktime. Options that fio
    does not have: cputime, the processor time of a request in nanoseconds or text; meta, background
    and relay, the marks of requests and the task that submits them.
    trace: a file or a stand-in to replay instead of a pattern; "": none.
    trace_stream: only the requests of that stream, at their times in the whole trace.
    replay: at the recorded times divided by `speed`, or as a closed loop. trace_fit: how addresses
    beyond the region are mapped into it. trace_loop: restart after the last request.
    options: of a program other than blkload and fio (docs/guides/programs.md); in [workload], for
    tenants of the program named there. memory: limit of such a program, with its part of the page
    cache.
    """


class TenantEntry(WorkloadFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[tenant]]: one tenant, or `count` of them named NAME1, NAME2, ...

    weight: 1..10000, or a list that is repeated over the count.
    latency_target: for io.latency, the target latency of a request: text, or a number in
    microseconds; 0: no target.
    cgroup: path below the root of the hierarchy, by default the tenant's name; with a count, the
    number is appended, as it is to the name. For a tenant that is already running (workload =
    "running", on the host machine): its own cgroup, from the root of the hierarchy
    ("/system.slice/web.service"), or "pid:N" for that of a process.
    """

    name: Annotated[str, said("Name; with a count, NAME1, NAME2, ...")]
    count: Annotated[
        int | UnsetType, said("Number of equal tenants.", Range(1, limits.TENANTS_MAX))
    ] = UNSET
    weight: Annotated[
        int | list[int], said("1..10000 (bfq: 1..1000), or a list repeated over the count.")
    ] = limits.DEFAULT_WEIGHT
    latency_target: Annotated[
        int | float | str,
        said("For io.latency: target latency of a request; 0: none. us, or text with us, ms or s."),
    ] = 0
    cgroup: Annotated[str, said("Path below the root of the hierarchy; default: the name.")] = ""


class GroupEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[group]]: an inner cgroup that contains tenants' cgroups. All other inner cgroups weigh
    100."""

    path: Annotated[str, said("Path of a cgroup that contains tenants' cgroups.")]
    weight: Annotated[int, said("1..10000 (bfq: 1..1000).", limits.WEIGHT)] = limits.DEFAULT_WEIGHT


class EventEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[event]]: a change during the load, `at` after the barrier: a tenant's weight (tenant and
    weight), attributes of a vdisk that may then be changed (device), or the disk's scheduler."""

    at: Annotated[int | float | str, said("Time after the start of all tenants. " + SECONDS)]
    tenant: Annotated[str | UnsetType, said("The tenant's name.")] = UNSET
    weight: Annotated[
        int | UnsetType, said("The new weight, 1..10000 (bfq: 1..1000).", limits.WEIGHT)
    ] = UNSET
    device: Annotated[
        DeviceTable, said("Attributes of a vdisk: servers, read_ns, flash.program_ns, ...")
    ] = {}
    scheduler: Annotated[str | UnsetType, said("The new elevator.")] = UNSET


class FilesystemTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[filesystem]: made on a partition of the device, for tenants whose programs use files. mkfs:
    further arguments of mkfs.TYPE. mount: options, as of mount -o."""

    type: Annotated[FilesystemType, said("Type of the file system.")] = "ext4"
    offset: Annotated[int | str, said("First byte on the device. " + SIZE)] = 0
    size: Annotated[int | str, said("Bytes from offset; 0: to the end of the device. " + SIZE)] = 0
    mkfs: Annotated[list[str], said("Further arguments of mkfs.")] = []
    mount: Annotated[str, said("Options of mount -o.")] = ""


class CachingTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[caching]: use of the SSD, for any cache.

    origin, ssd: bytes of the device, and of the SSD, from the start; 0: all.
    files: how the tenants' data are made: on the origin before it has an SSD, so that nothing is
    cached ("origin"), or through the cache ("cache"). The data are files or, without [filesystem],
    zeros on the tenants' regions, written sequentially. "read", without [filesystem]: zeros made on
    the origin, then read sequentially through the cache.
    passes: number of times that the load runs, from start to end; the last is measured. The page
    cache is dropped before each.
    placement: the tenants' device is the cached one ("contiguous"), or `working_set` bytes of it in
    pieces anywhere on it ("scattered").
    scheduler_on: the disk whose queue has the scheduler; the other has none.
    """

    origin: Annotated[int | str, said("Bytes of the device to use; 0: all. " + SIZE)] = 0
    ssd: Annotated[int | str, said("Bytes of the SSD to use; 0: all. " + SIZE)] = 0
    files: Annotated[
        MadeOn, said("Make files before the SSD is attached, or through the cache.")
    ] = "origin"
    passes: Annotated[int, said("Number of runs of the load; the last is measured.")] = 1
    placement: Annotated[
        Placement, said("Placement of the tenants' data on the cached device.")
    ] = "contiguous"
    working_set: Annotated[int | str, said("Scattered: bytes of the tenants' device. " + SIZE)] = 0
    piece: Annotated[int | str, said("Scattered: size of a piece. " + SIZE)] = "2m"
    scheduler_on: Annotated[ScheduledOn, said("The disk whose queue has the scheduler.")] = "origin"


class RunTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[run]: warmup is not measured; runtime is the measured time. Both apply to every run.

    window: width of the time series' windows, a number in milliseconds; it divides both. Repeat r
    has seed + r.
    """

    warmup: Annotated[int | float | str, said("Time before the measured time. " + SECONDS)] = 0
    runtime: Annotated[int | float | str, said("The measured time. " + SECONDS)] = 1
    window: Annotated[
        str | int | float, said("Width of the time series' windows, in ms, or text with ms or s.")
    ] = "100ms"
    repeats: Annotated[
        int, said("Number of runs of each point, each with another seed.", limits.REPEATS)
    ] = 1
    seed: Annotated[int, said("Seed of the first repeat; repeat r has seed + r.", limits.SEED)] = 1
    cgroup: Annotated[
        CgroupVersion, said("Version of cgroups; io.cost, io.max and io.latency need v2.")
    ] = "v2"


class ClaimEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[claim]]: `metric` of the runs that match `where` compares to `value`.

    where: matrix key to value; every matching run must satisfy the comparison.
    than: matrix key to value; the metric is then a ratio over that of the run of the same point and
    repeat with these values in place.
    among: weight_ratio_error of these tenants only, without all others.
    why: explanation of the verdict, for the report. {METRIC} is that of the run, {than.METRIC} that
    of the compared run.
    op: "<", "<=", ">", ">=", or "~" (within `tolerance`, relative).
    """

    text: Annotated[str, said("The claim as a sentence.")]
    source: Annotated[str, said("Source of the claim.")]
    metric: Annotated[str, said("One of: " + ", ".join(NAMES) + ".")]
    op: Annotated[
        Literal["<", "<=", ">", ">=", "~"],
        said('Comparison of metric and value; "~": within the tolerance.'),
    ]
    value: Annotated[float, said("The value to compare with.")]
    tolerance: Annotated[float, said('For "~": relative to the value.')] = 0.0
    where: Annotated[
        dict[str, MatrixValue], said("Matrix key to value: the runs that the claim concerns.")
    ] = {}
    than: Annotated[
        dict[str, MatrixValue], said("Matrix key to value: the metric is a ratio to that run's.")
    ] = {}
    among: Annotated[list[str], said("For weight_ratio_error: the tenants that count.")] = []
    why: Annotated[
        str, said("Explanation of the verdict; {METRIC}, {than.METRIC}: the runs' figures.")
    ] = ""


class CompareSeries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[compare.series]]: figures of a source, one for each value of [compare] x; 0: the source has
    none.

    where: matrix key to value: the runs they belong to.
    """

    text: Annotated[str, said("Title of its panel.")]
    where: Annotated[
        dict[str, MatrixValue], said("Matrix key to value: the runs it belongs to.")
    ] = {}
    values: Annotated[list[float], said("One for each value of x; 0: the source has none.")]


class CompareTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[compare]: a source's own figures, which the report draws next to those of the runs.

    x: the matrix key on the axis. scale: factor of a value, to the metric's unit.
    """

    title: Annotated[str, said("Title of the figures.")]
    source: Annotated[str, said("Source of the figures, in a word.")]
    metric: Annotated[Literal["total_bps", "total_iops"], said("Metric of the figures.")]
    x: Annotated[str, said("Matrix key of the axis.")]
    scale: Annotated[float, said("Factor from the source's unit to the metric's.")] = 1.0
    series: Annotated[list[CompareSeries], said("The figures.")]


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study file. device: a preset's name, or a table with `preset` and/or `driver`.

    queue: files below /sys/block/DISK/queue to write (nr_requests, nomerges, ...).
    iosched: for a scheduler, files below queue/iosched to write when it is in use.
    schedulers: elevators from outside isoblk, by their names in the study.
    matrix: dotted field ("scheduler", "run.cgroup", "workload.rw", "tenant.NAME.iodepth",
    "queue.nr_requests", "device.servers") over a list of values; the runs are the product. A value
    of "tenant.NAME.weight" may be a list, as the field itself.
    ssd: a second device; `cache` puts it in front of the first. caches: options, by cache.
    stack: block layers between the disk and the tenants.
    scale: divisor of sizes written as "8g/scale".
    """

    name: Annotated[str, said("Name of the study and of its result directory.")]
    title: Annotated[str, said("One line, the title of the report.")] = ""
    description: Annotated[
        str, said("The question, and the reason for this device and these loads.")
    ] = ""
    scheduler: Annotated[str, said("Scheduler, or controller on top of none.")] = "none"
    device: Annotated[
        str | DeviceTable, said("A preset, or a table with preset driver, fresh and attributes.")
    ]
    scale: Annotated[int, said('Divisor of sizes and counts written as "8g/scale".')] = 1
    cache: Annotated[str, said("The cache that puts the SSD in front of the device.")] = "none"
    ssd: Annotated[
        str | DeviceTable | None,
        said("The SSD: a preset, or a table with preset and/or driver and attributes."),
    ] = None
    caching: Annotated[CachingTable, said("Use of the SSD, for any cache.")] = CachingTable()
    caches: Annotated[dict[str, Options], said("Options of each cache.")] = {}
    stack: Annotated[
        str, said('Block layers from the disk up, as "raid1 crypt"; "none": no layer.')
    ] = NO_STACK
    run: Annotated[RunTable, said("Duration, repeats and version of cgroups.")] = RunTable()
    workload: Annotated[WorkloadFields, said("Options of all tenants that do not set them.")] = (
        WorkloadFields()
    )
    filesystem: Annotated[
        FilesystemTable | None,
        said("For tenants whose programs use files: a partition of the device."),
    ] = None
    tenant: Annotated[list[TenantEntry], said("The cgroups under test and their loads.")]
    group: Annotated[list[GroupEntry], said("Weights of inner cgroups; by default 100.")] = []
    event: Annotated[
        list[EventEntry],
        said("Changes of a tenant's weight, of the device or of its scheduler, under load."),
    ] = []
    queue: Annotated[dict[str, int | str], said("Files below /sys/block/DISK/queue to write.")] = {}
    iosched: Annotated[
        dict[str, dict[str, int | str]],
        said("For each scheduler, files below queue/iosched to write."),
    ] = {}
    schedulers: Annotated[
        dict[str, OtherTable], said("Elevators from outside isoblk, by their names in the study.")
    ] = {}
    io_cost: Annotated[
        IoCostTable, said("For scheduler io.cost: the device's model and the qos.")
    ] = IoCostTable()
    io_max: Annotated[IoMaxTable, said("For scheduler io.max: derivation of the caps.")] = (
        IoMaxTable()
    )
    io_latency: Annotated[IoLatencyTable, said("For scheduler io.latency: the target.")] = (
        IoLatencyTable()
    )
    matrix: Annotated[
        dict[str, list[MatrixValue]],
        said("Dotted field to list of values; the runs are the product."),
    ] = {}
    claim: Annotated[list[ClaimEntry], said("Claims that the results are checked against.")] = []
    compare: Annotated[
        CompareTable | None,
        said("A source's own figures, which the report draws next to the runs'."),
    ] = None


ExpectMetric = Literal["iops", "bps", "lat_mean_ns", "lat_p50_ns", "lat_p99_ns", "lat_p99_9_ns"]


class ExpectLoad(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """The load that competes with the measured one of an [[expect]]; see ExpectEntry."""

    rw: RwMode
    bs: int | str = 4096
    iodepth: int = 1
    numjobs: int = 1


class ExpectEntry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """[[expect]] of a preset: a figure of the device in its source.

    rw, bs, iodepth, numjobs, size, cputime: the load, as in fio (see WorkloadFields).
    state: "fresh": reads find sequentially written data, writes an erased device; "steady": it was
    overwritten at random until its throughput became constant.
    fill: per cent of the device with data in that state.
    warmup, runtime: virtual time, to replace the model's own.
    value: in the metric's unit: requests per second, bytes per second, nanoseconds.
    beside: the load that competes with it.
    scheduler, iosched: the elevator, and its tunables.
    fitted: whether the model's attributes were fitted to this figure. A figure that was not fitted
    shows how well the model generalises, and fails no check.
    """

    what: str
    rw: RwMode
    metric: ExpectMetric
    value: Annotated[float, msgspec.Meta(gt=0, le=1e18)]
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
    beside: ExpectLoad | UnsetType = UNSET
    scheduler: Literal["none", "mq-deadline", "kyber", "bfq"] = "none"
    iosched: dict[str, int] = {}
    fitted: bool = True


# ---- a study's runs ------------------------------------------------------------------


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of a study; a run comes after those that it depends on."""

    study: Study
    runs: tuple[PlannedRun, ...]

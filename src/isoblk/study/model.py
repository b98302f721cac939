# SPDX-License-Identifier: GPL-2.0-only
"""What a study is, as a user writes it (the *Entry and *Table types, decoded from TOML)
and as the rest of isoblk sees it (RunSpec and what it holds, fully resolved).

Nothing here knows how a machine works or how a result is drawn.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

# ---- what the user writes ------------------------------------------------------------

RwMode = Literal["read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"]
Program = Literal["blkload", "fio", "running", "dd", "sysbench", "iozone", "db_bench", "ycsb"]
FilesystemType = Literal["ext4", "xfs"]
OptionValue = str | int | float | bool | list[str | int | float]
Options = dict[str, OptionValue]
"""A program's own options, by the names that it has for them."""
RealTimePrio = Literal["rt/0", "rt/1", "rt/2", "rt/3", "rt/4", "rt/5", "rt/6", "rt/7"]
BestEffortPrio = Literal["be/0", "be/1", "be/2", "be/3", "be/4", "be/5", "be/6", "be/7"]
IoPrio = Literal["none", "idle", RealTimePrio, BestEffortPrio]
CgroupVersion = Literal["v1", "v2"]
ReplayMode = Literal["timed", "closed"]
TraceFit = Literal["wrap", "scale"]
SchedulerName = Literal[
    "none",
    "mq-deadline",
    "kyber",
    "bfq",
    "io.cost",
    "isoblk",
    "io.max",
    "io.latency",
    "kyber-fair",
    "feedbac",
    "cfq",
]
CacheName = Literal[
    "none",
    "ssd",
    "bcache",
    "dm-cache",
    "dm-writecache",
    "setcache",
    "flashcache",
    "enhanceio",
]
MadeOn = Literal["origin", "cache", "read"]
Placement = Literal["contiguous", "scattered"]
ScheduledOn = Literal["origin", "ssd", "both"]
MatrixValue = str | int | float | bool | list[int]
AttributeValue = str | int | bool
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
    options: those of a program other than blkload and fio (docs/programs.md); in [workload], for
    tenants that run the program named there. memory: what such a program, with its part of the
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


class IoCostTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[io_cost]: model "calibrated" (measured on the device first, as the kernel's
    iocost_coef_gen.py does) or the six coefficients; qos as io.cost.qos takes it."""

    model: Literal["calibrated"] | dict[str, int] = "calibrated"
    qos: dict[str, int | float | str] = {}


class IoMaxTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[io_max]: each tenant is capped at its weight's share of the total that `none`
    reaches in the same study point, times `scale`."""

    scale: float = 1.0


class IoLatencyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[io_latency]: the heaviest tenant's target, a number in microseconds; a lighter one's
    is longer in proportion. If tenants have a latency_target, these count, and only these."""

    target: int | float | str = "100us"


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
    matrix: dotted field ("scheduler", "run.cgroup", "workload.rw", "tenant.NAME.iodepth",
    "queue.nr_requests", "device.servers") over a list of values; the runs are the product.
    A value of "tenant.NAME.weight" may be a list, as the field itself.
    ssd: a second device; `cache` puts it in front of the first. caches: options, by cache.
    scale: what sizes written as "8g/scale" are divided by.
    """

    name: str
    title: str = ""
    description: str = ""
    scheduler: SchedulerName = "none"
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


VdiskModel = Literal["fixed", "flash", "disk"]


class FlashModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes of a vdisk's model "flash"; kernel/README.md has their meaning."""

    channels: int = 8
    dies: int = 4
    planes: int = 2
    page_size: int = 16384
    block_pages: int = 64
    spare: int = 70
    read_ns: int = 60_000
    program_ns: int = 600_000
    erase_ns: int = 4_000_000
    bus_bps: int = 800_000_000
    cmd_ns: int = 1_000
    read_latency_ns: int = 5_000
    write_latency_ns: int = 8_000
    buffer: int = 16 << 20
    gc_low: int = 2
    gc_high: int = 4
    wear_gap: int = 100
    copyback: bool = False
    slc: int = 0
    slc_read_ns: int = 30_000
    slc_program_ns: int = 200_000
    fill: int = 100
    precondition: Literal["none", "sequential", "random"] = "none"


class DiskModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes of a vdisk's model "disk"; kernel/README.md has their meaning."""

    rpm: int = 7200
    seek_min_ns: int = 1_000_000
    seek_avg_ns: int = 8_500_000
    seek_max_ns: int = 18_000_000
    head_switch_ns: int = 800_000
    heads: int = 2
    zones: int = 16
    outer_bps: int = 180_000_000
    inner_bps: int = 90_000_000
    cache: int = 64 << 20
    write_pieces: int = 256
    readahead: int = 1 << 20
    ncq: int = 32
    cmd_ns: int = 30_000


class VdiskDevice(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag="vdisk",
    tag_field="driver",
):
    """isoblk_vdisk's attributes; kernel/README.md has their meaning.

    servers and the *_ns count for model "fixed" only; flash and disk for the model of that
    name. jitter: per mille of every service time.
    """

    model: VdiskModel = "fixed"
    size: int = 4 << 30
    logical_block_size: int = 512
    queue_depth: int = 1023
    hw_queues: int = 1
    servers: int = 16
    read_ns: int = 20_000
    write_ns: int = 20_000
    trim_ns: int = 20_000
    flush_ns: int = 20_000
    read_bps: int = 0
    write_bps: int = 0
    write_cache: bool = False
    store: Literal["none", "memory"] = "none"
    jitter: int = 0
    seed: int = 1
    flash: FlashModel = FlashModel()
    disk: DiskModel = DiskModel()


class NullBlkDevice(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag="null_blk",
    tag_field="driver",
):
    """null_blk with timer completions. size in bytes, a multiple of 1 MiB."""

    size: int = 4 << 30
    blocksize: int = 512
    completion_nsec: int = 80_000
    hw_queue_depth: int = 64
    memory_backed: bool = False


class HostDevice(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag="host",
    tag_field="driver",
):
    """A disk of the machine that isoblk runs on, as the command line names it: not part of a
    study file.

    name: the kernel's, but "loop" for a loop device that isoblk makes. what: its model.
    queue_depth: tags of a hardware queue.
    """

    name: str
    what: str
    size: int
    logical_block_size: int = 512
    queue_depth: int = 128
    hw_queues: int = 1
    rotational: bool = False
    discard: bool = False


Device = VdiskDevice | NullBlkDevice | HostDevice


class Trace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A compact trace. name: as the study has it, of no meaning elsewhere. sha256: of the
    file's content. span_ns: time of its last request. max_end: highest byte + 1. stand_in:
    made here, in place of the published trace of that name. stream: all the rest is of that
    stream's requests."""

    name: str
    sha256: str
    records: int
    span_ns: int
    max_end: int
    stand_in: bool = False
    stream: int | None = None


class Filesystem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file system on the bytes offset to offset + size of the device."""

    type: FilesystemType
    offset: int
    size: int
    mkfs: tuple[str, ...] = ()
    mount: str = ""


class Caching(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cache in front of the first origin_bytes of the device: CachingTable, resolved."""

    cache: CacheName
    options: Options
    ssd: VdiskDevice
    origin_bytes: int
    ssd_bytes: int
    files: MadeOn
    passes: int
    placement: Placement
    working_set: int
    piece: int
    scheduler_on: ScheduledOn


class Installed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program as it was found: its name, and the SHA-256 of the file."""

    name: str
    sha256: str


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant's load, resolved: bytes, and nanoseconds. startdelay and runtime are
    relative to the barrier; runtime 0: as long as the run. With a trace, what describes a
    pattern (rw to iodepth, rates, pauses) has no meaning, but iodepth: the most requests in
    flight. speed: thousandths. options and memory (0: no limit), installed and startdelay,
    runtime, randseed are all that counts for a program other than blkload and fio; installed is
    empty until the run is to be made."""

    program: Program = "blkload"
    rw: RwMode = "randread"
    rwmixread: int = 50
    bs: int = 4096
    bsrange: tuple[int, int] | None = None
    bssplit: tuple[tuple[int, int], ...] | None = None
    iodepth: int = 1
    numjobs: int = 1
    rate_iops: int = 0
    rate_process: Literal["linear", "poisson"] = "linear"
    thinktime_ns: int = 0
    thinktime_blocks: int = 1
    cputime_ns: int = 0
    startdelay_ns: int = 0
    runtime_ns: int = 0
    number_ios: int = 0
    offset: int = 0
    size: int = 0
    random_distribution: str = "random"
    fsync: int = 0
    fua: bool = False
    meta: bool = False
    background: bool = False
    relay: bool = False
    verify: bool = False
    randseed: int = 1
    ioprio: IoPrio = "none"
    trace: Trace | None = None
    replay: ReplayMode = "timed"
    speed: int = 1000
    trace_fit: TraceFit = "wrap"
    trace_loop: bool = False
    options: Options = {}
    memory: int = 0
    installed: tuple[Installed, ...] = ()


class Tenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant: its cgroup (path below the root, no leading slash; with one: a cgroup that was
    there before, and runs what it runs), weight and load.

    The weight is the cgroup's. Where the cgroup holds other tenants' cgroups too, the
    tenant's own requests weigh OWN_WEIGHT among those."""

    name: str
    cgroup: str
    weight: int
    workload: Workload


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An inner cgroup; parents come before children. The weight of one that a tenant is in
    is that tenant's."""

    path: str
    weight: int


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A weight change, at_ns after the barrier."""

    at_ns: int
    tenant: str
    weight: int


class DeviceEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of the device, at_ns after the barrier. attributes: those that change, by their
    files in the device's directory ("servers", "flash/program_ns")."""

    at_ns: int
    attributes: dict[str, int]


class Scheduler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scheduler or controller, with what it needs.

    elevator: what goes to queue/scheduler. io_cost_model: the six coefficients, or None
    while the calibration has not run. io_max: tenant to (rbps, wbps); None while the run
    it is taken from has not ended. io_latency_us: tenant to target, of io.latency or of the
    elevators that know targets.
    """

    name: SchedulerName
    elevator: str
    iosched: dict[str, int | str] = {}
    io_cost_qos: dict[str, int | float | str] = {}
    io_cost_model: dict[str, int] | None = None
    io_max: dict[str, tuple[int, int]] | None = None
    io_max_scale: float = 1.0
    io_latency_us: dict[str, int] = {}


RunKind = Literal["share", "reference", "alone", "calibrate"]


class RunSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run, fully resolved.

    kind: "share" is a point of the study's matrix; "reference" is such a point under `none`
    that the matrix itself does not hold; "alone" is one tenant of it alone on the device
    under `none`, for the slowdown and the ideal; "calibrate" measures one io.cost
    coefficient, named by point["calibrate"].
    point: matrix key to value, as text, in the matrix's order (always holds "scheduler"
    for kind "share").
    repeat: 0.., seeds differ between repeats.
    """

    kind: RunKind
    point: dict[str, str]
    repeat: int
    device: Device
    scheduler: Scheduler
    cgroup: CgroupVersion
    queue: dict[str, int | str]
    groups: tuple[Group, ...]
    filesystem: Filesystem | None = None
    caching: Caching | None = None
    tenants: tuple[Tenant, ...]
    events: tuple[Event, ...]
    device_events: tuple[DeviceEvent, ...] = ()
    warmup_ns: int
    runtime_ns: int
    window_ms: int
    seed: int


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run and the runs it leans on, as indexes into the expansion.

    calibrate: the six that give spec.scheduler.io_cost_model, by coefficient; empty when
    not needed. reference: the run under `none` at the same point (None for itself, for
    "alone" and for "calibrate"); needed before this one if the scheduler is io.max, else
    only to compare with. alone: one a tenant, in the tenants' order; empty for kinds other
    than "share" and "reference". Tenants with the same load share one. full: likewise, with
    enough requests to keep the device busy; empty unless a claim is about service_error.
    bound: alone, with as many requests as all tenants may have in the device if their parts of
    it are to be exact; or all streams, each with its part of those; None unless a claim is
    about lost and that number is known.
    """

    spec: RunSpec
    calibrate: dict[str, int] = {}
    reference: int | None = None
    alone: tuple[int, ...] = ()
    full: tuple[int, ...] = ()
    bound: int | None = None


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of a study; what a run leans on comes before it."""

    study: Study
    runs: tuple[PlannedRun, ...]

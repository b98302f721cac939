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
Program = Literal["blkload", "fio"]
CgroupVersion = Literal["v1", "v2"]
SchedulerName = Literal[
    "none",
    "mq-deadline",
    "kyber",
    "bfq",
    "io.cost",
    "io.max",
    "io.latency",
    "kyber-fair",
    "feedbac",
]
MatrixValue = str | int | float | bool | list[int]


class WorkloadFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """fio's options, with fio's meanings. Unset: taken from [workload], else the default.

    Sizes are bytes, or text with a suffix (k, m, g: powers of 1024). Times are text with a
    suffix (us, ms, s) or a number in fio's unit: seconds, but microseconds for thinktime.
    cputime is not fio's: CPU time that issuing a request takes, nanoseconds or text.
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
    size: int | str | UnsetType = UNSET
    random_distribution: str | UnsetType = UNSET
    fsync: int | UnsetType = UNSET
    fua: bool | UnsetType = UNSET
    verify: bool | UnsetType = UNSET


class TenantEntry(WorkloadFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[tenant]]: one tenant, or `count` of them named NAME1, NAME2, ...

    weight: 1..10000, or a list that is repeated over the count.
    cgroup: path below the root of the hierarchy, default the tenant's name; with a count,
    the number is appended, as it is to the name.
    """

    name: str
    count: int | UnsetType = UNSET
    weight: int | list[int] = 100
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
    device: dict[str, str | int | bool] = {}


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
    is longer in proportion."""

    target: int | float | str = "100us"


class ClaimEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[claim]]: `metric` of the runs that match `where` compares to `value`.

    where: matrix key to value; every run that matches must satisfy the comparison.
    than: matrix key to value; the metric is then a ratio: over that of the run of the same
    point and repeat with these values in place.
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


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study file. device: a preset's name, or a table with `preset` and/or `driver`.

    queue: files below /sys/block/DISK/queue to write (nr_requests, nomerges, ...).
    iosched: for a scheduler, files below queue/iosched to write when it is in use.
    matrix: dotted field ("scheduler", "run.cgroup", "workload.rw", "tenant.NAME.iodepth",
    "queue.nr_requests", "device.servers") over a list of values; the runs are the product.
    A value of "tenant.NAME.weight" may be a list, as the field itself.
    """

    name: str
    title: str = ""
    description: str = ""
    scheduler: SchedulerName = "none"
    device: str | dict[str, str | int | bool]
    run: RunTable = RunTable()
    workload: WorkloadFields = WorkloadFields()
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


# ---- what a run is -------------------------------------------------------------------


class VdiskDevice(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag="vdisk",
    tag_field="driver",
):
    """isoblk_vdisk's attributes; kernel/README.md has their meaning."""

    model: Literal["fixed"] = "fixed"
    size: int = 4 << 30
    logical_block_size: int = 512
    queue_depth: int = 1023
    hw_queues: int = 1
    servers: int = 16
    read_ns: int = 20_000
    write_ns: int = 20_000
    trim_ns: int = 20_000
    read_bps: int = 0
    write_bps: int = 0


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


Device = VdiskDevice | NullBlkDevice


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant's load, resolved: bytes, and nanoseconds. startdelay and runtime are
    relative to the barrier; runtime 0: as long as the run."""

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
    verify: bool = False
    randseed: int = 1


class Tenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant: its cgroup (path below the root, no leading slash), weight and load.

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
    """A change of the device, at_ns after the barrier. attributes: those that change."""

    at_ns: int
    attributes: dict[str, int]


class Scheduler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scheduler or controller, with what it needs.

    elevator: what goes to queue/scheduler. io_cost_model: the six coefficients, or None
    while the calibration has not run. io_max: tenant to (rbps, wbps); None while the run
    it is taken from has not ended.
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
    than "share" and "reference". Tenants with the same load share one.
    """

    spec: RunSpec
    calibrate: dict[str, int] = {}
    reference: int | None = None
    alone: tuple[int, ...] = ()


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of a study; what a run leans on comes before it."""

    study: Study
    runs: tuple[PlannedRun, ...]

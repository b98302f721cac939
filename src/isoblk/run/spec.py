# SPDX-License-Identifier: GPL-2.0-only
"""The specification of a run, fully resolved: RunSpec and its parts.

This module does not depend on study files, machines or reports.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from isoblk.run import limits
from isoblk.run.limits import Range
from isoblk.run.options import SECONDS, SIZE, LoadOption

SCHEDULER = "scheduler"
RUNNING = "running"
RwMode = Literal["read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"]
Program = Literal["blkload", "fio", "running", "dd", "sysbench", "iozone", "db_bench", "ycsb"]
FilesystemType = Literal["ext4", "xfs", "btrfs"]
OptionValue = str | int | float | bool | list[str | int | float]
Options = dict[str, OptionValue]
"""A program's own options, by the program's names."""
RealTimePrio = Literal["rt/0", "rt/1", "rt/2", "rt/3", "rt/4", "rt/5", "rt/6", "rt/7"]
BestEffortPrio = Literal["be/0", "be/1", "be/2", "be/3", "be/4", "be/5", "be/6", "be/7"]
IoEngine = Literal["libaio", "io_uring", "psync"]
IoPrio = Literal["none", "idle", RealTimePrio, BestEffortPrio]
CgroupVersion = Literal["v1", "v2"]
ReplayMode = Literal["timed", "closed"]
TraceFit = Literal["wrap", "scale"]
MadeOn = Literal["origin", "cache", "read"]
Placement = Literal["contiguous", "scattered"]
ScheduledOn = Literal["origin", "ssd", "both"]
MatrixValue = str | int | float | bool | list[int]
AttributeValue = str | int | bool
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
    cell_bits: int = 1
    read_step: int = 130
    program_ns: int = 600_000
    erase_ns: int = 4_000_000
    bus_bps: int = 800_000_000
    cmd_ns: int = 1_000
    window: int = 0
    table_updates: int = 0
    table_ns: int = 10_000_000
    read_latency_ns: int = 5_000
    write_latency_ns: int = 8_000
    readahead: int = 0
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


class VolumeModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes of a vdisk that is a cloud volume; kernel/README.md has their meaning."""

    iops: int = 0
    bps: int = 0
    burst_ns: int = 0
    net_ns: int = 0
    net_spread: int = 0


class VdiskDevice(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag="vdisk",
    tag_field="driver",
):
    """isoblk_vdisk's attributes; kernel/README.md has their meaning.

    servers, the *_ns and volume apply to model "fixed" only; flash and disk to the model of that
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
    volume: VolumeModel = VolumeModel()
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
    """null_blk with timer completions. size in bytes, a multiple of 1 MiB.

    zone_size: bytes of a zone, which is written sequentially from its start; a power of two; 0: no
    zones.
    """

    size: int = 4 << 30
    blocksize: int = 512
    completion_nsec: int = 80_000
    hw_queue_depth: int = 64
    memory_backed: bool = False
    zone_size: int = 0


class HostDevice(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag="host",
    tag_field="driver",
):
    """A disk of the machine that isoblk runs on, from the command line: not part of a study file.

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
    """A compact trace. name: in the study, without meaning elsewhere. sha256: of the file's
    content. span_ns: time of its last request. max_end: highest byte + 1. stand_in: a synthetic
    replacement of the published trace of that name. stream: all other fields describe that stream's
    requests."""

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

    cache: str
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
    """An installed program: its name, and the SHA-256 of its file."""

    name: str
    sha256: str


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant's load, resolved, in bytes and nanoseconds.

    startdelay and runtime are relative to the barrier; runtime 0: that of the run. With a trace,
    the fields of a pattern (rw to iodepth, rates, pauses) have no meaning except iodepth, the bound
    of requests in flight. speed: thousandths. A program other than blkload and fio uses only
    options and memory (0: no limit), installed and startdelay, runtime, randseed. installed is
    empty until the run is to be made.
    """

    program: Annotated[
        Program, LoadOption("The program that makes the load.", name="workload", of_programs=True)
    ] = "blkload"
    rw: Annotated[RwMode, LoadOption("Access pattern.", about="pattern")] = "randread"
    rwmixread: Annotated[
        int,
        LoadOption(
            "Percentage of reads of rw and randrw.", about="pattern", allowed=limits.PERCENT
        ),
    ] = 50
    bs: Annotated[
        int,
        LoadOption("Size of a request. " + SIZE, written=int | str, read="size", about="pattern"),
    ] = 4096
    bsrange: Annotated[
        tuple[int, int] | None,
        LoadOption(
            "LOW-HIGH: every multiple of LOW equally likely.",
            written=str,
            read="otherwise",
            about="pattern",
        ),
    ] = None
    bssplit: Annotated[
        tuple[tuple[int, int], ...] | None,
        LoadOption(
            "SIZE/PERCENT:SIZE/PERCENT, adding up to 100.",
            written=str,
            read="otherwise",
            about="pattern",
        ),
    ] = None
    iodepth: Annotated[int, LoadOption("Requests in flight per job.", allowed=limits.IODEPTH)] = 1
    numjobs: Annotated[
        int,
        LoadOption(
            "Jobs, each with its own iodepth.",
            about="pattern",
            blkload="if set",
            allowed=limits.NUMJOBS,
        ),
    ] = 1
    rate_iops: Annotated[
        int,
        LoadOption(
            "Arrivals per second and job; 0: the next request when one ends.",
            about="pattern",
            blkload="if set",
            allowed=limits.COUNTER,
        ),
    ] = 0
    rate_process: Annotated[
        Literal["linear", "poisson"],
        LoadOption("How arrivals are spaced.", about="pattern", blkload="if set"),
    ] = "linear"
    thinktime_ns: Annotated[
        int,
        LoadOption(
            "Pause after thinktime_blocks requests: us, or text with a suffix.",
            name="thinktime",
            written=int | str,
            read="time",
            unit="us",
            about="pattern",
        ),
    ] = 0
    thinktime_blocks: Annotated[
        int,
        LoadOption(
            "Requests between two pauses.",
            about="pattern",
            blkload="if set",
            allowed=Range(1, limits.COUNTER.high),
        ),
    ] = 1
    on_ns: Annotated[
        int,
        LoadOption(
            "With off: length of a period of load, from startdelay on, alternating with off. "
            + SECONDS,
            name="on",
            written=int | float | str,
            read="time",
            unit="s",
            about="pattern",
            blkload_only=True,
        ),
    ] = 0
    off_ns: Annotated[
        int,
        LoadOption(
            "With on: length of a pause. " + SECONDS,
            name="off",
            written=int | float | str,
            read="time",
            unit="s",
            about="pattern",
            blkload_only=True,
        ),
    ] = 0
    cputime_ns: Annotated[
        int,
        LoadOption(
            "Processor time of a request, in virtual time: ns, or text with a suffix.",
            name="cputime",
            written=int | str,
            read="time",
            unit="ns",
            allowed=limits.CPUTIME_NS,
            blkload_only=True,
        ),
    ] = 1_000
    cpus: Annotated[
        int,
        LoadOption(
            "Processors of the tenant in virtual time, on which its jobs spend cputime; 0: one per"
            " job.",
            blkload="if set",
            allowed=limits.CPUS,
            blkload_only=True,
        ),
    ] = 0
    startdelay_ns: Annotated[
        int,
        LoadOption(
            "Pause after the start of all tenants. " + SECONDS,
            name="startdelay",
            written=int | float | str,
            read="time",
            unit="s",
            of_programs=True,
        ),
    ] = 0
    runtime_ns: Annotated[
        int,
        LoadOption(
            "Duration, warm-up included; 0: to the end of the run. " + SECONDS,
            name="runtime",
            written=int | float | str,
            read="time",
            unit="s",
            of_programs=True,
        ),
    ] = 0
    number_ios: Annotated[
        int,
        LoadOption(
            "Requests a job; 0: no limit.", blkload="if set", fio_takes=True, allowed=limits.COUNTER
        ),
    ] = 0
    offset: Annotated[
        int,
        LoadOption(
            "First byte on the device. " + SIZE,
            written=int | str,
            read="size",
            blkload="if set",
            fio_takes=True,
        ),
    ] = 0
    size: Annotated[
        int,
        LoadOption(
            "Bytes from offset; 0: to the end of the device. " + SIZE,
            written=int | str,
            read="size",
            blkload="if set",
            fio_takes=True,
        ),
    ] = 0
    random_distribution: Annotated[
        str, LoadOption("random, zipf:THETA or pareto:H.", about="pattern", blkload="if set")
    ] = "random"
    fsync: Annotated[
        int,
        LoadOption(
            "Number of writes between flushes; 0: no flushes.",
            about="pattern",
            blkload="if set",
            fio_takes=True,
            allowed=limits.COUNTER,
        ),
    ] = 0
    fua: Annotated[bool, LoadOption("Every write is FUA.", blkload="mark")] = False
    meta: Annotated[
        bool,
        LoadOption(
            "Mark requests as metadata, as file systems do (REQ_META).",
            blkload_only=True,
            blkload="mark",
        ),
    ] = False
    background: Annotated[
        bool,
        LoadOption(
            "Mark writes as writeback, for which no task waits (no REQ_SYNC).",
            blkload_only=True,
            blkload="mark",
        ),
    ] = False
    relay: Annotated[
        bool,
        LoadOption(
            "Submit through one thread for all such tenants, as dm-crypt does.",
            blkload_only=True,
            blkload="mark",
        ),
    ] = False
    verify: Annotated[
        bool,
        LoadOption(
            "Write address and generation into blocks, and check them in reads.",
            about="pattern",
            blkload="mark",
        ),
    ] = False
    randseed: int = 1
    ioprio: Annotated[
        IoPrio,
        LoadOption(
            "I/O priority of the tenant's threads; none: derived from their nice value, as be/4.",
            blkload="if set",
        ),
    ] = "none"
    ioengine: Annotated[
        IoEngine,
        LoadOption("System call of a tenant's fio; psync: one request in flight per job."),
    ] = "libaio"
    trace: Annotated[
        Trace | None,
        LoadOption(
            'A trace to replay: a file, or the name of a stand-in; "": none.',
            written=str,
            read="otherwise",
        ),
    ] = None
    replay: Annotated[
        ReplayMode,
        LoadOption("At the recorded times, or as a closed loop.", about="trace"),
    ] = "timed"
    speed: Annotated[
        int,
        LoadOption(
            "Factor of a timed replay; 2: half the recorded time. 0.001..1e9.",
            written=int | float,
            read="otherwise",
            about="trace",
        ),
    ] = 1000
    trace_fit: Annotated[
        TraceFit,
        LoadOption(
            "Addresses beyond the region: modulo its size, or all scaled to it.",
            about="trace",
        ),
    ] = "wrap"
    trace_loop: Annotated[
        bool, LoadOption("Restart after the last request.", about="trace", blkload="mark")
    ] = False
    options: Annotated[
        Options,
        LoadOption(
            "Options of a program other than blkload and fio.",
            written=Options,
            of_programs=True,
            read="otherwise",
        ),
    ] = {}
    memory: Annotated[
        int,
        LoadOption(
            "For such a program: memory.max of its cgroup, and 7/8 of it memory.high; 0: no limit. "
            + SIZE,
            written=int | str,
            read="size",
            of_programs=True,
        ),
    ] = 0
    installed: tuple[Installed, ...] = ()


class Tenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant: its cgroup, weight and load.

    The cgroup is a path below the root without a leading slash; with a leading slash, an existing
    cgroup with its own processes. The weight is the cgroup's. If the cgroup also contains other
    tenants' cgroups, the tenant's own requests weigh OWN_WEIGHT among those.
    """

    name: str
    cgroup: str
    weight: int
    workload: Workload


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An inner cgroup; parents come before children. The weight of one that contains a tenant is
    that tenant's."""

    path: str
    weight: int


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A weight change, at_ns after the barrier."""

    at_ns: int
    tenant: str
    weight: int


class DeviceEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of the device, at_ns after the barrier. attributes: the changed ones, by their files
    in the device's directory ("servers", "flash/program_ns")."""

    at_ns: int
    attributes: dict[str, int]


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Origin of an elevator that is neither the kernel's nor isoblk's. module: name of its kernel
    module, or "". sha256: of the module, once it is found. weight_file: the cgroup's file for its
    weight, or ""."""

    module: str
    weight_file: str
    sha256: str = ""


class Scheduler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scheduler or controller, with its parameters.

    elevator: value of queue/scheduler. io_cost_model: the six coefficients; None before the
    calibration. io_max: tenant to (rbps, wbps); None before the run that it is taken from has
    ended. io_latency_us: tenant to target. elsewhere: of an elevator that the study brings along.
    """

    name: str
    elevator: str
    iosched: dict[str, int | str] = {}
    io_cost_qos: dict[str, int | float | str] = {}
    io_cost_model: dict[str, int] | None = None
    io_max: dict[str, tuple[int, int]] | None = None
    io_max_scale: float = 1.0
    io_latency_us: dict[str, int] = {}
    elsewhere: Elsewhere | UnsetType = UNSET


class SchedulerEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of the disk's elevator, at_ns after the barrier. queue: files below queue/ to write
    then, because a new elevator begins with the kernel's defaults."""

    at_ns: int
    scheduler: Scheduler
    queue: dict[str, int | str]


RunKind = Literal["share", "reference", "alone", "calibrate"]


class RunSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run, fully resolved.

    kind: "share" is a point of the study's matrix; "reference" is such a point under `none` that is
    not in the matrix; "alone" is one tenant alone on the device under `none`, for the slowdown and
    the ideal; "calibrate" measures one coefficient of io.cost or isoblk, named by
    point["calibrate"].
    point: matrix key to value, as text, in the matrix's order (has "scheduler" for kind "share").
    repeat: from 0; seeds differ between repeats.
    stack: block layers between the disk and the tenants, from the disk up (isoblk.layers).
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
    stack: tuple[str, ...] = ()
    tenants: tuple[Tenant, ...]
    events: tuple[Event, ...]
    device_events: tuple[DeviceEvent, ...] = ()
    scheduler_events: tuple[SchedulerEvent, ...] = ()
    warmup_ns: int
    runtime_ns: int
    window_ms: int
    seed: int


def schedulers_of(spec: RunSpec) -> list[Scheduler]:
    """Return all schedulers of a run's disk in order: at the start, and by the events."""
    later = sorted(spec.scheduler_events, key=lambda event: event.at_ns)
    return [spec.scheduler, *(event.scheduler for event in later)]


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run and the runs that it depends on, as indices into the expansion.

    calibrate: the runs that give the model of io.cost or isoblk, by coefficient; empty if not
    needed.
    reference: the run under `none` at the same point (None for itself, for "alone" and for
    "calibrate"). io.max needs it before this run; all others only for comparison.
    alone: one run per tenant, in the tenants' order; empty for kinds other than "share" and
    "reference". Tenants with the same load share a run.
    full: as alone, with enough requests to keep the device busy; empty unless a claim is about
    service_error.
    bound: alone, with the number of requests that all tenants may have in flight if their parts of
    it are to be exact; or all sequential loads, each with its part. None unless a claim is about
    lost and that number is known.
    """

    spec: RunSpec
    calibrate: dict[str, int] = {}
    reference: int | None = None
    alone: tuple[int, ...] = ()
    full: tuple[int, ...] = ()
    bound: int | None = None


def label(value: MatrixValue) -> str:
    """Format a matrix value as text: as in a run's `point` and in a claim's `where`."""
    if isinstance(value, list):
        return "/".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)

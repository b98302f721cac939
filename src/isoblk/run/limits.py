# SPDX-License-Identifier: GPL-2.0-only
"""The ranges of a study's values, and the source of each limit."""

import re
from typing import NamedTuple


class Range(NamedTuple):
    """From `low` to `high`, both allowed."""

    low: int
    high: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


# Linux: io.weight and most weights of cgroup v2.
WEIGHT = Range(1, 10_000)
DEFAULT_WEIGHT = 100  # of a cgroup without a set weight
# Weight of a cgroup's own requests relative to its children (kernel/sched/share/share.c): that of a
# cgroup without a set weight.
OWN_WEIGHT = DEFAULT_WEIGHT

# The load generator (kernel/README.md).
IODEPTH = Range(1, 4096)
NUMJOBS = Range(1, 64)
PERCENT = Range(0, 100)
MAX_BLOCK = 32 << 20
BSSPLIT_MAX = 16
DISTRIBUTIONS = {"zipf": (0.01, 10.0), "pareto": (0.01, 0.99)}  # at most six decimals
PATH_MAX = 1000  # of a cgroup
CPUTIME_NS = Range(0, 1_000_000)
CPUS = Range(0, NUMJOBS.high)
# Shorter pauses are set with thinktime.
TURN_NS = Range(1_000_000, 10**15)  # on and off, if they are set
TURNS_MAX = 10_000  # of a run
STREAM = Range(0, 65_535)  # of a trace
SPEED = Range(1, 10**12)  # of a replay, thousandths
COUNTER = Range(0, (1 << 32) - 1)  # number_ios, fsync, thinktime_blocks, rate_iops
NAME_MAX = 63
TENANT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
TENANT_RESERVED = frozenset({"start", "stop", "wait", "state", "align"})  # its root's files

# The virtual disk (kernel/README.md) and null_blk.
LOGICAL_BLOCK = Range(512, 4096)
QUEUE_DEPTH = Range(1, 10_240)
HW_QUEUES = Range(1, 4096)  # the machine's CPUs decide; this bound catches typing errors
SERVERS = Range(1, 65_536)
SERVICE_NS = Range(1, 10**10)
PHYSICAL_BLOCK = 4096
BPS = Range(0, 10**12)
JITTER = Range(0, 1_000)
FLASH = {
    "channels": Range(1, 64),
    "dies": Range(1, 64),
    "planes": Range(1, 16),
    "page_size": Range(4096, 65_536),
    "block_pages": Range(1, 65_535),
    "spare": Range(0, 10_000),
    **dict.fromkeys(
        ("read_ns", "program_ns", "erase_ns", "slc_read_ns", "slc_program_ns"), SERVICE_NS
    ),
    **dict.fromkeys(
        ("cmd_ns", "table_ns", "read_latency_ns", "write_latency_ns"), Range(0, 10**10)
    ),
    "window": Range(0, 65_536),
    "table_updates": Range(0, (1 << 32) - 1),
    "cell_bits": Range(1, 4),
    "read_step": Range(0, 300),
    "bus_bps": BPS,
    "readahead": Range(0, 64 << 20),
    "buffer": Range(4096, 2 << 30),
    "gc_low": Range(1, 1_024),
    "gc_high": Range(2, 1_024),
    "wear_gap": Range(0, (1 << 32) - 1),
    "slc": Range(0, ((1 << 32) - 1) * 4096),
    "fill": PERCENT,
}
FLASH_CHANGEABLE = (
    *("read_ns", "read_step", "program_ns", "erase_ns", "bus_bps", "cmd_ns", "read_latency_ns"),
    *("table_updates", "table_ns", "write_latency_ns", "wear_gap", "copyback"),
    *("slc_read_ns", "slc_program_ns"),
)
FLASH_MAP_BYTES = 6  # of memory, per 4 KiB of data
FLASH_BLOCK_UNITS = 65_535  # of 4 KiB, in a block of all planes
DISK = {
    "rpm": Range(1_000, 30_000),
    **dict.fromkeys(
        ("seek_min_ns", "seek_avg_ns", "seek_max_ns", "head_switch_ns"), Range(0, 10**9)
    ),
    "cmd_ns": Range(1, 10**9),
    "heads": Range(1, 64),
    "zones": Range(1, 64),
    "outer_bps": Range(10**6, 4 * 10**9),
    "inner_bps": Range(10**6, 4 * 10**9),
    "cache": Range(0, 4 << 30),
    "write_pieces": Range(1, 65_536),
    "readahead": Range(0, 64 << 20),
    "ncq": Range(1, 256),
}
DISK_CHANGEABLE = ("cmd_ns",)
VOLUME = {
    "iops": Range(0, 10**9),
    "bps": BPS,
    "burst_ns": Range(0, 86_400 * 10**9),
    "net_ns": Range(0, 10**10),
    "net_spread": Range(0, 1_000),
}
MEBIBYTE = 1 << 20
PASSES = Range(1, 100)
# Minimum of mkfs (xfsprogs since 5.19: 300 MiB; btrfs: 109 MiB); for ext4 a sensible minimum.
FILESYSTEM_BYTES = {"ext4": 16 * MEBIBYTE, "xfs": 300 * MEBIBYTE, "btrfs": 128 * MEBIBYTE}

# Least size of a disk with layers; it catches typing errors.
STACK_BYTES = 16 * MEBIBYTE

# A cgroup's directory must not have the name of a file that the kernel makes in its parent.
CGROUP_PREFIXES = frozenset(
    {"cgroup", "io", "blkio", "bfq", "cpu", "cpuset", "memory", "pids", "hugetlb", "rdma", "misc"}
)
CGROUP_FILES = frozenset({"tasks", "notify_on_release", "release_agent"})

# Far above what a study needs; it catches typing errors.
RUN_SECONDS = 86_400
LATENCY_US = 60_000_000  # target of io.latency
WINDOWS_MAX = 1_000_000
REPEATS = Range(1, 1_000)
SEED = Range(0, (1 << 32) - 1)
TENANTS_MAX = 4096
SHARES_MAX = 10_000

# File names below queue/ and queue/iosched/, and their values: numbers and words.
TUNABLE_NAME = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
TUNABLE_VALUE = re.compile(r"(?:-[0-9]|[A-Za-z0-9_+])[A-Za-z0-9_.,:=/+ -]*", re.ASCII)

# Ranges of these files: block/blk-sysfs.c. All other files: unsigned 32 bits.
TUNABLE = Range(0, (1 << 32) - 1)
SWITCH = Range(0, 1)
QUEUE_TUNABLES = {
    "nr_requests": Range(4, 2048),  # BLKDEV_MIN_RQ, MAX_SCHED_RQ
    "nomerges": Range(0, 2),
    "rq_affinity": Range(0, 2),
    "max_sectors_kb": Range(4, 1 << 22),  # a page, and the 32 bits of a request's size
    **dict.fromkeys(("add_random", "iostats", "rotational", "stable_writes"), SWITCH),
    "wbt_lat_usec": Range(-1, (1 << 31) - 1),  # -1: the default
    "discard_max_bytes": Range(0, (1 << 63) - 1),
}

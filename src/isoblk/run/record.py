# SPDX-License-Identifier: GPL-2.0-only
"""The records of a run and of a study. docs/reference/results.md describes the files.

A result directory:

    study.json              StudyRecord: the study, and its runs in order
    runs/<id>/run.json      RunRecord
    runs/<id>/plan.sh       the script that the guest ran
    runs/<id>/console.log
    runs/<id>/series.parquet    tenant: str, t_ms: u32, op: str, ios: u64, bytes: u64
    runs/<id>/latency.parquet   tenant: str, op: str, upper_ns: u64, count: u64
    runs/<id>.failed/       plan.sh and console.log of a failed run
    runs/<id>/predictions.parquet  feedbac's: t_ms: f64, predicted: u64, used: u64, error: f64,
                                a: f64; a row a prediction period, t_ms its end, in sectors
    runs/<id>/programs/NAME.out    output of the program of tenant NAME
    report.html figures/    made by `isoblk report`

Windows and buckets without a count have no row; rows are sorted by (tenant's index in the study,
op, t_ms or upper_ns). t_ms is the start of a window after the barrier (warm-up included); latency
covers only the measured time.
"""

from typing import Literal

import msgspec

from isoblk.run.spec import RunSpec
from isoblk.run.tier import TierName

Status = Literal["valid", "invalid"]


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that was written and read back. path: in the guest."""

    path: str
    asked: str
    got: str
    ok: bool


class OpTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of one op of a tenant. meas_*, lat_*: of the measured time."""

    ios: int
    bytes: int
    errors: int
    verify_errors: int
    meas_ios: int
    meas_bytes: int
    lat_sum_ns: int
    lat_min_ns: int
    lat_max_ns: int


class IoStat(msgspec.Struct, frozen=True, kw_only=True):
    """The kernel's charges to the tenant's cgroup: io.stat, or blkio's files on v1."""

    rbytes: int
    wbytes: int
    rios: int
    wios: int
    dbytes: int = 0
    dios: int = 0


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """Delays of a timed replay's requests after their times, for those due in the measured time. A
    request is late if iodepth requests were in flight, or the scheduler or the disk had no room."""

    ios: int
    sum_ns: int
    max_ns: int
    above_1ms: int


class ReplayTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of a replay, warm-up included. records: requests issued. passes: number of times it
    was begun. rounded: requests rounded to logical blocks. clipped: requests shortened to fit the
    region or the generator. moved: requests at another address than in the trace. late: of a timed
    replay."""

    records: int
    passes: int
    rounded: int
    clipped: int
    moved: int
    late: Lateness | None = None


Unit = Literal["B/s", "B", "ops/s", "ops", "ns", ""]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure in a program's output. name: dotted, the operation first: "read.throughput",
    "latency.p99". A claim calls it "says.TENANT.NAME"."""

    name: str
    value: float
    unit: Unit


class ProgramReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a tenant's program; its whole output is in programs/TENANT.out. program: its name
    in the study. used: the program that ran, which may be an equivalent one. status: its exit
    status. end_ns: its end, after the barrier."""

    program: str
    used: list[str]
    status: int
    end_ns: int
    figures: list[Figure]


class Processors(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's virtual processors. busy_ns: their total busy time within the measured time."""

    cpus: int
    busy_ns: int


class TenantResult(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a tenant. ops: read, write, trim, flush; only those that occurred.
    measured_ns: length of its measured time (less than the run's runtime if it began late or ended
    early).
    error: errno of the generator's end, 0 if none. processors: of a tenant with cputime, in virtual
    time. replay: of a tenant with a trace.
    says: of a tenant with a program, whose ops are those that the disk completed for its cgroup or,
    if these are unknown, its charges; without latency."""

    name: str
    cgroup: str
    weight: int
    measured_ns: int
    error: int
    ops: dict[str, OpTotals]
    io_stat: IoStat | None
    processors: Processors | None = None
    replay: ReplayTotals | None = None
    says: ProgramReport | None = None


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Two figures that are equal if a cache counts correctly. slack: allowed difference beyond one
    in a thousand of the larger."""

    text: str
    left: int
    right: int
    slack: int = 0

    @property
    def holds(self) -> bool:
        """Return whether they are equal."""
        off = abs(self.left - self.right)
        return off <= self.slack + max(abs(self.left), abs(self.right)) // 1000


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a cache and its two disks. before, after: the measured pass, after the requests
    in flight have completed. figures: a claim's "cache.NAME"."""

    before: dict[str, int]
    after: dict[str, int]
    figures: dict[str, float]
    identities: list[Identity]


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Software of the run. key: hash of all that determines a kernel's build."""

    isoblk: str
    kernel: str
    kernel_key: str
    kernel_source: str
    compiler: str
    modules_key: str


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """run.json. status "invalid": the reasons name settings that did not take effect, byte counts
    that disagree, or errors.
    cpus: processors of the machine; None in results of an isoblk that did not record it.
    busy: utilisation of the processors during the load, warm-up included; None in virtual time.
    wall_s, cpu_s: of the machine's process."""

    format: int
    id: str
    tier: TierName
    status: Status
    reasons: list[str]
    spec: RunSpec
    provenance: Provenance
    tenants: list[TenantResult]
    knobs: list[Knob]
    cache: CacheReport | None = None
    cpus: int | None = None
    busy: float | None = None
    wall_s: float
    cpu_s: float

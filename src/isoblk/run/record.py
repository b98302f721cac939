# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of a run, and of a study. docs/reference/results.md describes the files.

A result directory:

    study.json              StudyRecord: the study, and its runs in order
    runs/<id>/run.json      RunRecord
    runs/<id>/plan.sh       the script that the guest ran
    runs/<id>/console.log
    runs/<id>/series.parquet    tenant: str, t_ms: u32, op: str, ios: u64, bytes: u64
    runs/<id>/latency.parquet   tenant: str, op: str, upper_ns: u64, count: u64
    runs/<id>.failed/       what a failed run left: plan.sh and console.log
    runs/<id>/predictions.parquet  feedbac's: t_ms: f64, predicted: u64, used: u64, error: f64,
                                a: f64; a row a prediction period, t_ms its end, in sectors
    runs/<id>/programs/NAME.out    what the program of tenant NAME printed
    report.html figures/    made by `isoblk report`

Only windows and buckets with a count are rows; rows are sorted by (tenant's place in the
study, op, t_ms or upper_ns). t_ms is the start of a window after the barrier (warm-up
included); latency holds the measured time only.
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
    """What one tenant did with one op. meas_*: within the measured time, as lat_*."""

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
    """What the kernel charged the tenant's cgroup with: io.stat, or blkio's files on v1."""

    rbytes: int
    wbytes: int
    rios: int
    wios: int
    dbytes: int = 0
    dios: int = 0


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """By how much requests of a timed replay were issued after their time: those that were due
    in the measured time. A request is late if as many as iodepth were in flight, or the
    scheduler or the disk had no room for one more."""

    ios: int
    sum_ns: int
    max_ns: int
    above_1ms: int


class ReplayTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a trace, warm-up included. records: requests issued. passes: times it was
    begun. rounded: requests made of whole logical blocks; clipped: that lost their end, too
    long for the region or the generator; moved: that lie elsewhere than in the trace. late:
    of a timed replay."""

    records: int
    passes: int
    rounded: int
    clipped: int
    moved: int
    late: Lateness | None = None


Unit = Literal["B/s", "B", "ops/s", "ops", "ns", ""]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a program says of what it did. name: dotted, what was done first:
    "read.throughput", "latency.p99". A claim calls it "says.TENANT.NAME"."""

    name: str
    value: float
    unit: Unit


class ProgramReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant's program said; its whole output is in programs/TENANT.out. program: as
    the study calls it. used: what ran, which may be another program that does the same. status:
    its exit status. end_ns: when it ended, after the barrier."""

    program: str
    used: list[str]
    status: int
    end_ns: int
    figures: list[Figure]


class Processors(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's virtual processors. busy_ns: how long they worked in the measured time, all
    together."""

    cpus: int
    busy_ns: int


class TenantResult(msgspec.Struct, frozen=True, kw_only=True):
    """ops: read, write, trim, flush; only those that occurred. measured_ns: how long this
    tenant was measured (shorter than the run's runtime if it began late or ended early).
    error: errno the generator ended with, 0 if none. processors: of a tenant with cputime, in
    virtual time. replay: of a tenant with a trace. says: of
    one that runs a program: its ops are what the disk completed for its cgroup, or, where that is
    not known, what that was charged with; without latency."""

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
    """Two figures that are equal if a cache counts right. slack: by how much they may differ
    beyond one in a thousand of the larger."""

    text: str
    left: int
    right: int
    slack: int = 0

    @property
    def holds(self) -> bool:
        """Whether they are equal."""
        off = abs(self.left - self.right)
        return off <= self.slack + max(abs(self.left), abs(self.right)) // 1000


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache and its two disks counted. before, after: the measured pass, once what was
    under way has ended. figures: what a claim calls "cache.NAME"."""

    before: dict[str, int]
    after: dict[str, int]
    figures: dict[str, float]
    identities: list[Identity]


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What the run was made with. key: hash of all that determines a kernel's build."""

    isoblk: str
    kernel: str
    kernel_key: str
    kernel_source: str
    compiler: str
    modules_key: str


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """run.json. status "invalid": reasons say which knob did not take, which bytes do not
    agree, which errors occurred. cpus: processors of the machine; None in results of a time when
    that was not recorded. busy: the part of their time that they worked while the load ran, warm-up
    included; None in virtual time. wall_s, cpu_s: of the machine's process."""

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

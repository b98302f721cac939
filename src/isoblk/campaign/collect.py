# SPDX-License-Identifier: GPL-2.0-only
"""Convert a guest's output to a RunRecord and its tables, and check whether the run is valid."""

import errno
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import polars as pl

from isoblk.caches.base import TABLE
from isoblk.campaign.charged import parse_charged
from isoblk.campaign.physics import impossible
from isoblk.campaign.sampled import Samples, parse_samples, sampled_output, since_first
from isoblk.errors import RunError
from isoblk.machine import Ran
from isoblk.plan import cached, processes, target
from isoblk.plan.plan import BEGIN, END, Plan, charged_files, predicts, switch_file
from isoblk.programs import barrier, blkload, fio
from isoblk.programs import registry as programs
from isoblk.programs.blkload import TenantOutput
from isoblk.programs.registry import Said, program_of
from isoblk.result.predictions import parse_predictions
from isoblk.result.store import FORMAT, LATENCY_SCHEMA, PREDICTIONS, SERIES_SCHEMA, write_table
from isoblk.run.record import (
    CacheReport,
    IoStat,
    Knob,
    ProgramReport,
    Provenance,
    RunRecord,
    TenantResult,
)
from isoblk.run.setting import check, parse_read_back
from isoblk.run.spans import length, spans
from isoblk.run.spec import RUNNING, RunSpec, Tenant
from isoblk.run.tier import HOST, UML, Place

# Tolerance between the bytes that the generator counted and those charged to the cgroup, relative
# to the larger.
CHARGE_TOLERANCE = 0.01
_UNCHARGED = IoStat(rbytes=0, wbytes=0, rios=0, wios=0)
_RAW_FILES = ("results", "knobs", "charged", "predictions", BEGIN, END, cached.COUNTERS, TABLE)
_OPS = ("read", "write", "trim", "flush")


def collect(
    directory: Path, run_id: str, spec: RunSpec, plan: Plan, ran: Ran, provenance: Provenance
) -> RunRecord:
    """Read the guest's output, write run.json and the tables next to it, remove the raw files.

    Raises:
        RunError: the output is incomplete or malformed.
    """
    read_back = parse_read_back(
        _read(directory, "knobs"), (setting.path for setting in plan.settings)
    )
    charged = parse_read_back(_read(directory, "charged"), charged_files(spec, plan.place))
    device = charged.get(target.number_file(spec, plan.place), "")
    said = {
        tenant.name: programs.read_report(directory / barrier.DIRECTORY, tenant, spec)
        for tenant in spec.tenants
        if program_of(tenant.workload)
    }
    outputs = _read_outputs(directory, spec, plan, device, said)
    # On v2 a cgroup with an empty file was charged nothing; on v1 perhaps no policy counted.
    uncharged = _UNCHARGED if spec.cgroup == "v2" else None
    tenants = [
        _tenant_result(
            tenant,
            outputs[tenant.name],
            parse_charged(charged, plan.place.cgroup_of(tenant.cgroup), device) or uncharged,
            said[tenant.name].report if tenant.name in said else None,
        )
        for tenant in spec.tenants
    ]
    # With a cache or layers, tenants are charged for another device than the configured one.
    knobs = check(plan.settings, read_back, "" if spec.caching or spec.stack else device)
    knobs += _knobs_of_switches(directory, plan)
    cache = _cache_report(directory, spec, plan)
    reasons = [
        *_knob_reasons(knobs),
        *_tenant_reasons(spec, tenants),
        *(f"{name}: {one.trouble}" for name, one in said.items() if one.trouble),
        *_cache_reasons(cache),
        *impossible(spec, outputs),
    ]
    record = RunRecord(
        format=FORMAT,
        id=run_id,
        tier=plan.tier,
        status="invalid" if reasons else "valid",
        reasons=reasons,
        spec=spec,
        provenance=provenance,
        tenants=tenants,
        knobs=knobs,
        cache=cache,
        cpus=plan.cpus,
        busy=None if plan.tier == UML.name else _busy(directory),
        wall_s=round(ran.wall_s, 3),
        cpu_s=round(ran.cpu_s, 3),
    )
    write_table(directory / "series.parquet", _series(spec, outputs))
    write_table(directory / "latency.parquet", _latency(spec, outputs))
    if predicts(spec):
        barrier_ns = next(o.start_ns for o in outputs.values() if o.start_ns is not None)
        predictions = parse_predictions(_read(directory, "predictions"), barrier_ns)
        write_table(directory / PREDICTIONS, predictions)
    for name in (*_RAW_FILES, *map(switch_file, range(len(plan.later)))):
        (directory / name).unlink(missing_ok=True)
    _keep_only([f"{name}.out" for name in said], directory / barrier.DIRECTORY)
    data = msgspec.json.format(msgspec.json.encode(record), indent=1)
    (directory / "run.json").write_bytes(data)
    return record


def _knobs_of_switches(directory: Path, plan: Plan) -> list[Knob]:
    """Compare the values written at a change of scheduler with those read then."""
    return [
        knob
        for index, settings in enumerate(plan.later)
        for knob in check(
            settings,
            parse_read_back(
                _read(directory, switch_file(index)), (setting.path for setting in settings)
            ),
            "",
        )
    ]


def _busy(directory: Path) -> float | None:
    """Return the utilisation of the processors between two lines of /proc/stat; None if no time
    passed."""
    begin, end = (_read(directory, name).split()[1:] for name in (BEGIN, END))
    try:
        spent = [int(after) - int(before) for before, after in zip(begin, end, strict=True)]
        # proc_stat(5): user nice system idle iowait irq softirq steal. User includes guests'.
        idle, whole = sum(spent[3:5]), sum(spent[:8])
    except ValueError:
        raise RunError("not the processors' line of /proc/stat", where=END) from None
    return round(1 - idle / whole, 4) if whole > 0 else None


def _cache_report(directory: Path, spec: RunSpec, plan: Plan) -> CacheReport | None:
    if spec.caching is None:
        return None
    try:
        return cached.report(_read(directory, cached.COUNTERS), spec.caching, plan.place)
    except (ValueError, IndexError) as error:
        raise RunError(f"malformed counters of a cache: {error}", where=cached.COUNTERS) from None


def _cache_reasons(report: CacheReport | None) -> Iterator[str]:
    for one in report.identities if report else ():
        if not one.holds:
            yield f"the cache's figures do not agree: {one.text}: {one.left} and {one.right}"


def _read(directory: Path, name: str) -> str:
    try:
        return (directory / name).read_text("utf-8", errors="replace")
    except FileNotFoundError:
        raise RunError(f"the guest left no {name}", where=str(directory)) from None


def _keep_only(names: Sequence[str], directory: Path) -> None:
    """Keep only these files of a directory, or remove it; it may be absent."""
    if not names:
        shutil.rmtree(directory, ignore_errors=True)
        return
    for path in directory.iterdir():
        if path.name not in names:
            path.unlink()


def _read_outputs(
    directory: Path, spec: RunSpec, plan: Plan, device: str, said: Mapping[str, Said]
) -> dict[str, TenantOutput]:
    by_blkload = plan.tier != HOST.name
    outputs = blkload.parse_results(_read(directory, "results")) if by_blkload else {}
    own = directory / barrier.DIRECTORY
    samples = None
    if watched := processes.sampled(spec):
        start_ns = int(_read(own, barrier.START))
        files = processes.sampled_files(watched, spec, plan.place)
        samples = parse_samples(_read(own, barrier.SAMPLES), start_ns, files)
    for tenant in spec.tenants:
        if tenant.workload.program == "fio":
            outputs[tenant.name] = fio.read_output(own, tenant, spec)
        elif samples and (tenant.name in said or tenant.workload.program == RUNNING):
            charges = _charges(samples, tenant, spec, plan.place, device)
            if tenant.name in said:
                end_ns = said[tenant.name].report.end_ns
            else:
                end_ns = spec.warmup_ns + spec.runtime_ns
                charges = since_first(charges, tenant.name)
            outputs[tenant.name] = sampled_output(samples.times_ns, charges, end_ns, spec)
        elif tenant.name not in outputs:
            raise RunError(f"the generator left no result of tenant {tenant.name}")
    return outputs


def _charges(
    samples: Samples, tenant: Tenant, spec: RunSpec, place: Place, device: str
) -> list[IoStat]:
    """Return the charges to a tenant's cgroup at the time of each sample."""
    cgroup = place.cgroup_of(tenant.cgroup)
    if processes.counts_completed(spec, place):
        return samples.completed(cgroup.removeprefix(place.hierarchy), blkload.COMPLETED)
    return samples.charges(cgroup, device)


def _tenant_result(
    tenant: Tenant, output: TenantOutput, charged: IoStat | None, says: ProgramReport | None
) -> TenantResult:
    begin, end = output.measured_ns
    wanted = spans(tenant.workload, end)
    return TenantResult(
        name=tenant.name,
        cgroup=tenant.cgroup,
        weight=tenant.weight,
        # Pauses are not measured.
        measured_ns=length(wanted, begin, end) if tenant.workload.off_ns else end - begin,
        error=output.error,
        ops=output.ops,
        io_stat=charged,
        processors=output.processors,
        replay=output.replay,
        says=says,
    )


def _knob_reasons(knobs: list[Knob]) -> Iterator[str]:
    for knob in knobs:
        if not knob.ok:
            got = knob.got.replace("\n", " / ") or "nothing"
            yield f"setting without effect: {knob.path}: asked {knob.asked!r}, reads {got!r}"


def _tenant_reasons(spec: RunSpec, tenants: list[TenantResult]) -> Iterator[str]:
    inner = {group.path for group in spec.groups}
    for asked, tenant in zip(spec.tenants, tenants, strict=True):
        if tenant.error:
            code = abs(tenant.error)
            yield f"{tenant.name}: ended with {errno.errorcode.get(code, code)}"
        if not tenant.ops and not (tenant.says and tenant.says.status):
            yield f"{tenant.name}: did no I/O"
        for op, totals in tenant.ops.items():
            if totals.errors:
                yield f"{tenant.name}: {totals.errors} {op} errors"
            if totals.verify_errors:
                yield f"{tenant.name}: {totals.verify_errors} {op}s failed verification"
        # fio does not count I/O in its ramp_time; the kernel does.
        forgets = asked.workload.program == "fio" and spec.warmup_ns > 0
        # On v2 a cgroup's counters include its descendants; on v1 they do not.
        counted = [tenant]
        if spec.cgroup == "v2" and tenant.cgroup in inner:
            counted += [one for one in tenants if one.cgroup.startswith(f"{tenant.cgroup}/")]
        if tenant.says is None and asked.workload.program != RUNNING:
            yield from _charge_reasons(tenant, counted, forgets=forgets)


def _charge_reasons(
    tenant: TenantResult, counted_in: Sequence[TenantResult], *, forgets: bool
) -> Iterator[str]:
    """Yield disagreements between a tenant's bytes and charges. counted_in: tenants whose bytes the
    cgroup's counters include. forgets: whether the generator counts less than it did, so that
    charges may be larger."""
    if tenant.io_stat is None:
        return
    charged = {
        "read": tenant.io_stat.rbytes,
        "write": tenant.io_stat.wbytes,
        "trim": tenant.io_stat.dbytes,
    }
    if tenant.io_stat == _UNCHARGED:
        # The kernel shows a cgroup's discards only after it has read or written.
        del charged["trim"]
    for op, bytes_charged in charged.items():
        counted = sum(one.ops[op].bytes for one in counted_in if op in one.ops)
        if forgets and bytes_charged > counted:
            continue
        if abs(counted - bytes_charged) > CHARGE_TOLERANCE * max(counted, bytes_charged):
            yield (
                f"{tenant.name}: generator counted {counted} bytes ({op}),"
                f" its cgroup was charged {bytes_charged}"
            )


def _rows(spec: RunSpec, outputs: Mapping[str, TenantOutput]) -> Iterator[tuple[str, TenantOutput]]:
    return ((tenant.name, outputs[tenant.name]) for tenant in spec.tenants)


def _series(spec: RunSpec, outputs: Mapping[str, TenantOutput]) -> pl.DataFrame:
    rows = [
        (name, t_ms, op, *output.windows[op, t_ms])
        for name, output in _rows(spec, outputs)
        for op, t_ms in sorted(output.windows, key=_by_op)
    ]
    return pl.DataFrame(rows, schema=SERIES_SCHEMA, orient="row")


def _latency(spec: RunSpec, outputs: Mapping[str, TenantOutput]) -> pl.DataFrame:
    rows = [
        (name, op, upper, output.latency[op, upper])
        for name, output in _rows(spec, outputs)
        for op, upper in sorted(output.latency, key=_by_op)
    ]
    return pl.DataFrame(rows, schema=LATENCY_SCHEMA, orient="row")


def _by_op(key: tuple[str, int]) -> tuple[int, int]:
    op, position = key
    return _OPS.index(op), position

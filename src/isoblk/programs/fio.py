# SPDX-License-Identifier: GPL-2.0-only
"""fio as a tenant's program: its command line, its json+ output, and its logs.

Every job waits for a common start (its option exec_prerun), and logs the bytes of each window. On
the host machine fio is the load; in the lab a system call is expensive.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import msgspec

from isoblk.errors import RunError
from isoblk.programs import barrier
from isoblk.programs.blkload import TenantOutput, ramp_and_runtime
from isoblk.run.load import LOAD_OPTIONS
from isoblk.run.record import OpTotals
from isoblk.run.shell import Form, Statement, fill, render, run
from isoblk.run.spec import Device, NullBlkDevice, RunSpec, Tenant
from isoblk.run.tier import UML, Place

# fio's log-linear buckets have 64 steps per octave (FIO_IO_U_PLAT_BITS). json+ names a bucket by
# its middle, blkload by its upper bound.
_STEPS = 64

# A measured time of more windows than this must have a line in a log.
_UNLOGGED = 3
_OPS = ("read", "write", "trim")  # data directions of its logs: 0, 1, 2
_PRIOCLASS = {"rt": 1, "be": 2, "idle": 3}


class _Line(Form):
    START = "(echo 0 > {processes} && exec {fio}) & {pid}=$!"
    WAIT_LONGER = "{wait}; sleep {delay}"


def start(tenant: Tenant, place: Place, device: str, spec: RunSpec) -> Statement:
    """Return the command that starts a tenant's fio in its cgroup, in the background, where it
    waits. On the host machine it ends with the script; in a guest with the guest."""
    index = spec.tenants.index(tenant)
    options = _options(tenant, spec)
    wait = barrier.wait(tenant.name, place)
    if delay := options.pop("startdelay", None):
        wait = fill(_Line.WAIT_LONGER, wait=wait, delay=f"{str(delay).removesuffix('us')}e-6")
    options |= {
        "write_bw_log": tenant.name,
        "write_iops_log": tenant.name,
        # In ms, without a unit, with which fio parses another number.
        **dict.fromkeys(("log_avg_msec", "bwavgtime", "iopsavgtime"), spec.window_ms),
        "log_unix_epoch": 1,
        # A script of its own, as one word without data from the study.
        "exec_prerun": render([wait]),
    }
    tie = () if place == UML.place else ("setpriv", "--pdeathsig", "KILL")
    fio = run(
        *(*tie, "fio", f"--name={tenant.name}", f"--filename={device}"),
        *(f"--{name}={value}" for name, value in options.items()),
        f"--output={tenant.name}.json",
    )
    processes = f"{place.cgroup_of(tenant.cgroup)}/cgroup.procs"
    return fill(_Line.START, processes=processes, fio=fio, pid=barrier.pid_name(index))


def _options(tenant: Tenant, spec: RunSpec) -> dict[str, str | int]:
    load = tenant.workload
    ramp, runtime = ramp_and_runtime(load, spec)
    options: dict[str, str | int] = {
        "ioengine": load.ioengine,
        "direct": 1,
        # The calibration of fio's own CPU clock fails in virtual time.
        "clocksource": "clock_gettime",
        "output-format": "json+",
        "group_reporting": 1,
        # From submission on, which takes long if a device splits a request.
        "lat_percentiles": 1,
        "clat_percentiles": 0,
        "thread": 1,
        "rw": load.rw,
        "rwmixread": load.rwmixread,
        "bs": load.bs,
        "iodepth": load.iodepth,
        "numjobs": load.numjobs,
        "randseed": load.randseed,
        "time_based": 1,
        "ramp_time": _us(ramp),
        "runtime": _us(runtime),
        **_zones(spec.device),
    }
    if load.bssplit:
        options["bssplit"] = ":".join(f"{size}/{share}" for size, share in load.bssplit)
    elif load.bsrange:
        options["bsrange"] = f"{load.bsrange[0]}-{load.bsrange[1]}"
    if load.rate_iops:
        options |= {"rate_iops": load.rate_iops, "rate_process": load.rate_process}
    if load.number_ios:
        del options["time_based"]
    for name, one in LOAD_OPTIONS.items():
        if one.option.fio_takes and (value := getattr(load, one.field)):
            options[name] = value
    if load.thinktime_ns:
        options |= {
            "thinktime": _us(load.thinktime_ns),
            "thinktime_blocks": load.thinktime_blocks,
        }
    if load.startdelay_ns:
        options["startdelay"] = _us(load.startdelay_ns)
    if load.random_distribution != "random":
        options["random_distribution"] = load.random_distribution
    if load.fua:
        # For direct I/O on a block device: writes with REQ_FUA.
        options["sync"] = "dsync"
    if load.ioprio != "none":
        kind, _, level = load.ioprio.partition("/")
        options["prioclass"] = _PRIOCLASS[kind]
        if level:
            options["prio"] = level
    return options


def _zones(device: Device) -> dict[str, str | int]:
    """Return the options for a disk with zones: writes at a zone's write pointer, and resets."""
    zoned = isinstance(device, NullBlkDevice) and device.zone_size
    return {"zonemode": "zbd"} if zoned else {}


def _us(time_ns: int) -> str:
    """Format a time for fio, whose clock counts microseconds."""
    return f"{time_ns // 1000}us"


def parse_output(name: str, data: bytes) -> TenantOutput:
    """Parse fio's json+ of one tenant.

    Raises:
        RunError: it is not json+ of fio.
    """
    # fio may print warnings before the JSON.
    text = data[data.find(b"{") :]
    try:
        (job,) = msgspec.json.decode(text)["jobs"]
        output = TenantOutput(
            jobs=int(job["job options"].get("numjobs", 1)),
            error=int(job["error"]),
            measured_ns=(0, 0),
        )
        for op in ("read", "write", "trim"):
            if job[op]["total_ios"]:
                _add_op(output, op, job[op])
    except (msgspec.DecodeError, ValueError, KeyError, TypeError):
        raise RunError("not fio's json+ output", where=f"{name}.json") from None
    return output


def _add_op(output: TenantOutput, op: str, section: dict[str, Any]) -> None:
    latency = section["lat_ns"]
    # If all requests ended in the ramp_time, there is no latency, and the counters still include
    # the ramp.
    measured = latency["N"] > 0
    output.ops[op] = OpTotals(
        ios=section["total_ios"],
        bytes=section["io_bytes"],
        errors=0,
        verify_errors=0,
        meas_ios=section["total_ios"] if measured else 0,
        meas_bytes=section["io_bytes"] if measured else 0,
        lat_sum_ns=round(latency["mean"] * latency["N"]),
        lat_min_ns=latency["min"],
        lat_max_ns=latency["max"],
    )
    if not measured:
        return
    for middle, count in latency["bins"].items():
        if count:
            output.latency[op, _upper_bound(int(middle))] = count
    output.measured_ns = (0, max(output.measured_ns[1], section["runtime"] * 1_000_000))


def _upper_bound(middle_ns: int) -> int:
    """Return the upper bound (exclusive) of the bucket with a value."""
    shift = max(0, middle_ns.bit_length() - 1 - _STEPS.bit_length() + 1)
    return ((middle_ns >> shift) + 1) << shift


def read_output(directory: Path, tenant: Tenant, spec: RunSpec) -> TenantOutput:
    """Read the output of a tenant's fio in `directory`, series included.

    Raises:
        RunError: a file is missing or is not fio's.
    """
    output = parse_output(tenant.name, _read(directory / f"{tenant.name}.json"))
    try:
        start_ms = int(_read(directory / barrier.START)) // 1_000_000
    except ValueError:
        raise RunError("not a time", where=barrier.START) from None
    ramp_ns, _ = ramp_and_runtime(tenant.workload, spec)
    begin_ns = tenant.workload.startdelay_ns + ramp_ns
    end_ns = begin_ns + output.measured_ns[1]
    output.measured_ns = (begin_ns, end_ns)
    for op, totals in output.ops.items():
        if not totals.meas_ios:
            continue
        ios, size = (
            _windows(
                [_points(path, op, start_ms, unit) for path in directory.glob(pattern)],
                total,
                (begin_ns / 1e6, end_ns / 1e6),
                spec.window_ms,
            )
            for pattern, unit, total in (
                (f"{tenant.name}_iops.*.log", 1, totals.meas_ios),
                (f"{tenant.name}_bw.*.log", 1024, totals.meas_bytes),
            )
        )
        for t_ms in sorted(ios.keys() | size.keys()):
            output.windows[op, t_ms] = (ios.get(t_ms, 0), size.get(t_ms, 0))
    return output


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise RunError(f"fio left no {path.name}") from None


def _points(path: Path, op: str, start_ms: int, unit: int) -> list[tuple[float, float]]:
    """Return (ms after the barrier, rate per second since the entry before), of one job's log."""
    points = []
    for number, line in enumerate(_read(path).decode(errors="replace").splitlines(), 1):
        try:
            at, rate, direction = (int(word) for word in line.split(",")[:3])
        except ValueError:
            raise RunError(
                f"not a line of fio's log: {line[:80]!r}", where=f"{path.name}:{number}"
            ) from None
        if _OPS[direction] == op:
            points.append((float(at - start_ms), float(rate * unit)))
    return points


def _windows(
    logs: Sequence[Sequence[tuple[float, float]]],
    total: int,
    measured_ms: tuple[float, float],
    window_ms: int,
) -> dict[int, int]:
    """Spread `total` over windows according to the logs: start of the window in ms -> count.

    A log has averages over times that are not aligned with the windows, and lacks the I/O after its
    last entry. fio counts the total exactly, so the difference belongs to that time.

    Args:
        logs: one per job: (ms after the barrier, rate per second since the entry before).
        total: of all jobs in the measured time.
        measured_ms: from and to.
        window_ms: a window's width.

    Raises:
        RunError: an entry is missing.
    """
    begin, end = measured_ms
    if not any(logs) and end - begin > _UNLOGGED * window_ms:
        raise RunError("fio logged no window")
    last = max((log[-1][0] for log in logs if log), default=begin)
    moved = [0.0] * (int(max(last, end) // window_ms) + 1)
    for log in logs:
        before = begin
        for at, rate in log:
            _spread(moved, (before, at), rate * (at - before) / 1000, window_ms)
            before = at
    missing = total - sum(moved)
    if missing > 0 and last < end:
        _spread(moved, (last, end), missing, window_ms)
    edges = list(accumulate(moved, initial=0.0))
    # Corrects fio's rounding of each rate.
    counts = [round(edge * total / edges[-1]) if edges[-1] else 0 for edge in edges]
    return {
        index * window_ms: after - before
        for index, (before, after) in enumerate(pairwise(counts))
        if after > before
    }


def _spread(
    moved: list[float], interval: tuple[float, float], amount: float, window_ms: int
) -> None:
    """Add an amount to the windows that an interval overlaps, in proportion to the overlap."""
    begin, end = interval
    if end <= begin:
        return
    for index in range(int(begin // window_ms), min(len(moved), int(end // window_ms) + 1)):
        inside = min(end, (index + 1) * window_ms) - max(begin, index * window_ms)
        moved[index] += amount * max(0.0, inside) / (end - begin)

# SPDX-License-Identifier: GPL-2.0-only
"""fio as a tenant's program: its command line, and its json+ output.

For small checks and comparison: a system call is dear in the guest, and fio's own clock is
not the barrier's. Its time series is not kept.
"""

from typing import Any

import msgspec

from isoblk.errors import RunError
from isoblk.result.model import OpTotals
from isoblk.study.model import RunSpec, Tenant
from isoblk.workload.blkload import TenantOutput, ramp_and_runtime

# fio's log-linear buckets have 64 steps an octave (FIO_IO_U_PLAT_BITS) and json+ names a
# bucket by its middle; blkload names it by its upper bound.
_STEPS = 64


def pid_variable(index: int) -> str:
    """Shell variable that holds the process id of the tenant at `index`."""
    return f"fio_{index}"


def start(tenant: Tenant, device: str, cgroup_root: str, output_dir: str, spec: RunSpec) -> str:
    """The command that starts a tenant's fio in its cgroup, in the background."""
    index = spec.tenants.index(tenant)
    options = " ".join(f"--{name}={value}" for name, value in _options(tenant, spec).items())
    return (
        f"(echo 0 > {cgroup_root}/{tenant.cgroup}/cgroup.procs && exec fio --name={tenant.name}"
        f" --filename={device} {options} --output={output_dir}/{tenant.name}.json) &"
        f" {pid_variable(index)}=$!"
    )


def _options(tenant: Tenant, spec: RunSpec) -> dict[str, str | int]:
    load = tenant.workload
    ramp, runtime = ramp_and_runtime(load, spec)
    options: dict[str, str | int] = {
        "ioengine": "libaio",
        "direct": 1,
        # The calibration of the CPU's own clock fails in virtual time.
        "clocksource": "clock_gettime",
        "output-format": "json+",
        "group_reporting": 1,
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
    }
    if load.bssplit:
        options["bssplit"] = ":".join(f"{size}/{share}" for size, share in load.bssplit)
    elif load.bsrange:
        options["bsrange"] = f"{load.bsrange[0]}-{load.bsrange[1]}"
    if load.rate_iops:
        options |= {"rate_iops": load.rate_iops, "rate_process": load.rate_process}
    if load.number_ios:
        del options["time_based"]
    for name in ("number_ios", "offset", "size", "fsync"):
        if value := getattr(load, name):
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
    return options


def _us(time_ns: int) -> str:
    """A time as fio takes it, whose clock counts microseconds."""
    return f"{time_ns // 1000}us"


def parse_output(name: str, data: bytes) -> TenantOutput:
    """fio's json+ of one tenant.

    Raises:
        RunError: it is not json+ of fio.
    """
    # fio may print warnings ahead of the JSON.
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
    latency = section["clat_ns"]
    output.ops[op] = OpTotals(
        ios=section["total_ios"],
        bytes=section["io_bytes"],
        errors=0,
        verify_errors=0,
        meas_ios=section["total_ios"],
        meas_bytes=section["io_bytes"],
        lat_sum_ns=round(latency["mean"] * latency["N"]),
        lat_min_ns=latency["min"],
        lat_max_ns=latency["max"],
    )
    for middle, count in latency["bins"].items():
        if count:
            output.latency[op, _upper_bound(int(middle))] = count
    output.measured_ns = (0, max(output.measured_ns[1], section["runtime"] * 1_000_000))


def _upper_bound(middle_ns: int) -> int:
    """Upper bound (exclusive) of the bucket that holds a value."""
    shift = max(0, middle_ns.bit_length() - 1 - _STEPS.bit_length() + 1)
    return ((middle_ns >> shift) + 1) << shift

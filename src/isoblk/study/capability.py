# SPDX-License-Identifier: GPL-2.0-only
"""Compare the load that a study requests with the most that its disk can do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isoblk.programs.registry import program_of
from isoblk.run import numbers
from isoblk.run.spec import Device, HostDevice, NullBlkDevice, RunSpec, Tenant, VdiskDevice

_SECOND = 1_000_000_000
_NO_LIMIT = float("inf")
# The speed of a replay is in thousandths.
_SPEED_UNIT = 1000


@dataclass(frozen=True)
class Asked:
    """The load that a tenant requests, served or not: requests and bytes per second, on average if
    it pauses. merges: whether its requests may be merged on their way to the disk."""

    tenant: str
    ios: float
    read_bps: float
    write_bps: float
    merges: bool


def asked(tenant: Tenant) -> Asked | None:
    """Return the load that a tenant requests; None for a closed loop."""
    load = tenant.workload
    if program_of(load):
        return None
    if load.trace is not None:
        if load.replay != "timed" or not load.trace.span_ns:
            return None
        ios = (load.trace.records - 1) * _SECOND / load.trace.span_ns * load.speed / _SPEED_UNIT
        return Asked(tenant.name, ios, 0, 0, merges=False)
    if not load.rate_iops:
        return None
    ios = float(load.rate_iops * load.numjobs)
    if load.off_ns:
        ios *= load.on_ns / (load.on_ns + load.off_ns)
    size: float = load.bs
    if load.bsrange:
        size = sum(load.bsrange) / 2
    elif load.bssplit:
        size = sum(one * percent for one, percent in load.bssplit) / 100
    reads = {"read": 1.0, "randread": 1.0, "rw": load.rwmixread / 100}
    reads["randrw"] = reads["rw"]
    writes = {"write": 1.0, "randwrite": 1.0, "rw": 1 - reads["rw"], "randrw": 1 - reads["rw"]}
    return Asked(
        tenant.name,
        ios,
        ios * size * reads.get(load.rw, 0),
        ios * size * writes.get(load.rw, 0),
        merges=not load.rw.startswith("rand"),
    )


def most_ios(device: Device, run_ns: int) -> float:
    """Return the most requests per second of the cheapest kind that the disk can do in a run of
    that length."""
    match device:
        case NullBlkDevice():
            return device.hw_queue_depth * _SECOND / device.completion_nsec
        case VdiskDevice(model="fixed"):
            quickest = min(device.read_ns, device.write_ns, device.trim_ns)
            return min(
                device.servers * _SECOND / quickest, _held_to(device, device.volume.iops, run_ns)
            )
        case VdiskDevice(model="flash"):
            return _SECOND / device.flash.cmd_ns if device.flash.cmd_ns else _NO_LIMIT
        case VdiskDevice():
            return _SECOND / device.disk.cmd_ns
        case HostDevice():
            return _NO_LIMIT


def _held_to(device: VdiskDevice, limit: int, run_ns: int) -> float:
    """Return a limit of a cloud volume, with the credit that it has when the run begins."""
    return limit * (1 + device.volume.burst_ns / run_ns) if limit else _NO_LIMIT


def too_much(spec: RunSpec) -> Iterator[str]:
    """Yield a line for each tenant whose rate the disk can never serve; or one line for all
    tenants, if only their sum is too high."""
    device = spec.device
    if isinstance(device, HostDevice) or spec.device_events:
        return
    if spec.caching is not None or spec.stack:
        return
    loads = [one for tenant in spec.tenants if (one := asked(tenant)) is not None]
    run_ns = spec.warmup_ns + spec.runtime_ns
    alone = [
        text for load in loads if (text := _above([load], device, run_ns, load.tenant, "asks"))
    ]
    yield from alone
    if not alone and len(loads) > 1 and (text := _above(loads, device, run_ns, "all rates", "ask")):
        yield text


def _above(loads: Sequence[Asked], device: Device, run_ns: int, who: str, verb: str) -> str:
    """Return the first limit of the disk that the loads exceed; "" if there is none."""
    links = device if isinstance(device, VdiskDevice) else VdiskDevice()
    ios = sum(load.ios for load in loads if not load.merges)
    most = most_ios(device, run_ns)
    if ios > most:
        wanted = f"{numbers.count(ios)} requests a second"
        return f"{who} {verb} for {wanted}: the disk does {numbers.count(most)}"
    reads = ("read", sum(load.read_bps for load in loads), links.read_bps)
    writes = ("written", sum(load.write_bps for load in loads), links.write_bps)
    both = ("", reads[1] + writes[1], _held_to(links, links.volume.bps, run_ns))
    for done, value, most_bps in (reads, writes, both):
        if most_bps and value > most_bps:
            wanted = f"{numbers.rate(value)} {done}".rstrip()
            return f"{who} {verb} for {wanted}: the disk does {numbers.rate(most_bps)}"
    return ""

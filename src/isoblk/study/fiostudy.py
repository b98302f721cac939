# SPDX-License-Identifier: GPL-2.0-only
"""Write the jobs of a fio job file as a study, with a drive and with schedulers to compare."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isoblk.run import limits
from isoblk.run.spec import Device, NullBlkDevice
from isoblk.run.units import format_size, format_time
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.study.presets import load_device
from isoblk.toml import written

_DEVICE = "p4500-1t"
_DEFAULT_RUNTIME_NS = 1_000_000_000
_GIB = 1 << 30
# The map of a larger drive's flash takes much of a machine's memory.
_LARGEST_DRIVE = 128 * _GIB
_BFQ_WEIGHTS = SCHEDULERS["bfq"].weights
_SCHEDULERS = (
    *("none", "mq-deadline", "kyber", "bfq", "io.cost"),
    *("kyber-fair", "feedbac", "isoblk"),
)


@dataclass(frozen=True)
class Extent:
    """Bytes, or a percentage: of the disk, for io_size of the region."""

    value: int
    percent: bool = False

    def bytes_of(self, whole: int) -> int:
        """Return the number of bytes; a percentage is rounded to pages."""
        if not self.percent:
            return self.value
        return whole * self.value // 100 // limits.PHYSICAL_BLOCK * limits.PHYSICAL_BLOCK


@dataclass
class FioTenant:
    """A job as a tenant. Times are in ns. runtime: after startdelay, without warm-up. region:
    offset, size and io_size, if given. mean_size: of a request, bytes."""

    name: str
    cgroup: str = ""
    weight: int = 100
    fields: dict[str, str | int | bool] = field(default_factory=dict)
    region: dict[str, Extent] = field(default_factory=dict)
    mean_size: float = 4096
    runtime_ns: int = 0
    warmup_ns: int = 0
    startdelay_ns: int = 0
    seed: int | None = None


def write_study(path: Path, tenants: Sequence[FioTenant], warnings: list[str]) -> str:
    """Return the study as TOML, with the warnings as comments on top.

    Args:
        path: of the job file.
        tenants: of its jobs; regions that depend on the disk are set here.
        warnings: so far; more are appended.
    """
    warmup = max(tenant.warmup_ns for tenant in tenants)
    runtime = max(tenant.startdelay_ns + tenant.runtime_ns for tenant in tenants)
    if endless := [tenant.startdelay_ns for tenant in tenants if tenant.runtime_ns == 0]:
        # A tenant with a late start must also do something.
        if runtime <= max(endless):
            runtime = max(endless) + _DEFAULT_RUNTIME_NS
        warnings.append(f"a job has no runtime: it runs for the run's {format_time(runtime)}")
    if len({tenant.warmup_ns for tenant in tenants}) > 1:
        warnings.append(f"ramp_time differs between jobs: {format_time(warmup)} for all")
    seeds = {tenant.seed for tenant in tenants if tenant.seed is not None}
    if len(seeds) > 1:
        warnings.append(f"randseed differs between jobs: run.seed is {min(seeds)}")
    schedulers = list(_SCHEDULERS)
    if heavy := [tenant.name for tenant in tenants if tenant.weight not in _BFQ_WEIGHTS]:
        schedulers.remove("bfq")
        warnings.append(f"{heavy[0]}: BFQ takes weights {_BFQ_WEIGHTS}: it is left out")
    device_lines, device = _device(tenants)
    for tenant in tenants:
        _place(tenant, device.size, warnings)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).lstrip("-.")[: limits.NAME_MAX]
    lines = [f"# Imported from the fio job file {_printable(path.name)}."]
    lines += [f"# {_printable(warning)}" for warning in warnings]
    lines += [
        "",
        f"name = {_value(name or 'fio')}",
        f"title = {_value(f'fio job {path.name}')}",
        "",
        *device_lines,
        "",
        "[run]",
        f"warmup = {_value(format_time(warmup))}",
        f"runtime = {_value(format_time(runtime))}",
    ]
    if window := _window(warmup, runtime):
        lines.append(f"window = {_value(window)}")
    if seeds:
        lines.append(f"seed = {min(seeds)}")
    for tenant in tenants:
        lines += ["", *_tenant(tenant, warmup, runtime)]
    lines += ["", "[matrix]", f"scheduler = {written(schedulers)}"]
    lines += ["", "[io_cost]", "qos = { min = 90, max = 90 }    # per cent of what is measured", ""]
    return "\n".join(lines)


def _tenant(tenant: FioTenant, warmup: int, runtime: int) -> list[str]:
    lines = ["[[tenant]]", f"name = {_value(tenant.name)}"]
    if tenant.cgroup and tenant.cgroup != tenant.name:
        lines.append(f"cgroup = {_value(tenant.cgroup)}")
    lines.append(f"weight = {tenant.weight}")
    lines += [f"{key} = {_value(value)}" for key, value in tenant.fields.items()]
    if tenant.startdelay_ns:
        lines.append(f"startdelay = {_value(format_time(tenant.startdelay_ns))}")
    if tenant.runtime_ns and tenant.startdelay_ns + tenant.runtime_ns != runtime:
        # A tenant's runtime includes the warm-up, fio's excludes ramp_time.
        own = format_time(warmup + tenant.runtime_ns)
        lines.append(f"runtime = {_value(own)}")
    return lines


def _place(tenant: FioTenant, disk: int, warnings: list[str]) -> None:
    """Set the tenant's region on a disk of `disk` bytes, and the bytes that it does there."""
    offset = tenant.region.get("offset", Extent(0)).bytes_of(disk)
    behind = max(disk - offset, 0)
    size = tenant.region.get("size", Extent(0)).bytes_of(disk)
    if size > behind:
        if not tenant.region["size"].percent:
            warnings.append(f"{tenant.name}: the disk has {format_size(behind)} for it")
        size = 0
    if offset:
        tenant.fields["offset"] = format_size(offset)
    if size and size != behind:
        tenant.fields["size"] = format_size(size)
    if "io_size" in tenant.region:
        wanted = tenant.region["io_size"].bytes_of(size or behind)
        ios = max(1, min(round(wanted / tenant.mean_size), limits.COUNTER.high))
        if wanted:
            earlier = int(tenant.fields.get("number_ios", 0)) or ios
            tenant.fields["number_ios"] = min(ios, earlier)


def _device(tenants: Sequence[FioTenant]) -> tuple[list[str], Device]:
    """Return the disk as TOML and as a device: as large as the jobs need, up to a bound."""
    needed = max(
        sum(
            one.value
            for name, one in tenant.region.items()
            if name != "io_size" and not one.percent
        )
        for tenant in tenants
    )
    if any("verify" in tenant.fields for tenant in tenants):
        # Verification needs a disk that keeps data.
        return ['device = { driver = "null_blk", memory_backed = true }'], NullBlkDevice()
    table: dict[str, object] = {"preset": _DEVICE}
    lines = [
        "[device]    # isoblk device list has others",
        f"preset = {_value(_DEVICE)}",
    ]
    if needed > load_device(_DEVICE).size:
        table["size"] = min(-(-needed // _GIB) * _GIB, _LARGEST_DRIVE)
        lines.append(f"size = {_value(format_size(int(str(table['size']))))}")
    lines.append('flash = { precondition = "random" }    # a drive in use')
    return lines, load_device(table)


def _window(warmup: int, runtime: int) -> str:
    """Return "" if the default of 100 ms divides both times, else the first width that does."""
    for ms in (100, 50, 20, 10, 5, 2, 1):
        if warmup % (ms * 1_000_000) == 0 and runtime % (ms * 1_000_000) == 0:
            return "" if ms == 100 else f"{ms}ms"
    return "1ms"


def _printable(text: str) -> str:
    """Replace control characters, which TOML allows in no comment."""
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))


def _value(value: str | int | bool) -> str:
    """Return a TOML value on one line."""
    return written(_printable(value) if isinstance(value, str) else value)

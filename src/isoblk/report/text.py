# SPDX-License-Identifier: GPL-2.0-only
"""Format points and provenance for reading, equally in terminal, page and figure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from isoblk.analysis.metrics import Analysis, PointView, RunView
from isoblk.layers.registry import disks_of
from isoblk.metrics.stats import Estimate
from isoblk.run.numbers import count, time
from isoblk.run.record import RunRecord
from isoblk.run.spec import Device, HostDevice, VdiskDevice
from isoblk.run.tier import ICOUNT, QEMU, SMP

_IN_HEAD = ("scheduler", "alone", "calibrate")
NOTHING = "–"  # noqa: RUF001 (an en dash is what a table's empty cell holds)


def spread(estimate: Estimate | None, form: Callable[[float], str]) -> str:
    """Format the least and the greatest of the repeats, "" if both read as the median."""
    if estimate is None or estimate.n < 2:
        return ""
    least, most = form(estimate.least), form(estimate.most)
    return "" if least == most == form(estimate.median) else f"{least} to {most}"


def short_keys(keys: Sequence[str]) -> dict[str, str]:
    """Return matrix keys without their table ("workload.rw" -> "rw") where that is unique."""
    last = {key: key.rpartition(".")[2] for key in keys}
    names = list(last.values())
    return {key: name if names.count(name) == 1 else key for key, name in last.items()}


def label(point: Mapping[str, str], keys: Iterable[str], names: Mapping[str, str]) -> str:
    """Format the chosen keys of a point: "rw randread, iodepth 32"."""
    return ", ".join(f"{names[key]} {point[key]}" for key in keys if key in point)


def kind_label(view: RunView, names: Mapping[str, str]) -> str:
    """Describe a run in one line."""
    spec = view.spec
    known = {**short_keys(list(spec.point)), **names}
    at = label(spec.point, [k for k in spec.point if k not in _IN_HEAD], known)
    heads = {
        "alone": f"alone: {spec.point.get('alone', '')}",
        "calibrate": f"calibration: {spec.point.get('calibrate', '')}",
        "reference": "reference (none)",
    }
    head = heads.get(spec.kind, spec.scheduler.name)
    repeat = f"repeat {spec.repeat + 1}" if spec.repeat else ""
    return " · ".join(part for part in (head, at, repeat) if part)


def machine(record: RunRecord) -> str:
    """Return the tier, and the number of processors if it was chosen."""
    return f"icount, {record.cpus} CPU" if record.tier == ICOUNT.name else record.tier


def device(record: RunRecord) -> str:
    """Describe the device in a few words, with the layers on it."""
    stack, one = record.spec.stack, _device(record.spec.device, record)
    disks = disks_of(stack)
    parts = [f"{disks} x {one}" if disks > 1 else one]
    return ", ".join([*parts, *(["below " + " and ".join(stack)] if stack else [])])


def ssd(record: RunRecord) -> str:
    """Describe the caching SSD in a few words; "" without one."""
    caching = record.spec.caching
    return _device(caching.ssd, record) if caching else ""


def is_fresh(d: Device) -> bool:
    """Return whether it is flash that was never written."""
    return isinstance(d, VdiskDevice) and d.model == "flash" and d.flash.precondition == "none"


def _device(d: Device, record: RunRecord) -> str:
    if isinstance(d, HostDevice):
        several = f"{d.hw_queues} queues of " if d.hw_queues > 1 else ""
        return f"{d.name} ({d.what}), {count(d.size)}B, {several}{d.queue_depth} tags"
    if isinstance(d, VdiskDevice):
        queues = d.hw_queues
    else:
        queues = record.cpus or {SMP.name: SMP.cpus, QEMU.name: QEMU.cpus}.get(record.tier, 1)
    of_queues = f"{queues} queues of " if queues > 1 else ""
    if isinstance(d, VdiskDevice) and d.model == "flash":
        dies = d.flash.channels * d.flash.dies
        fresh = ", fresh" if is_fresh(d) else ""
        return f"vdisk, flash{fresh}, {dies} dies, {of_queues}{d.queue_depth} tags"
    if isinstance(d, VdiskDevice) and d.model == "disk":
        return f"vdisk, disk, {d.disk.rpm} rpm, {of_queues}{d.queue_depth} tags"
    if isinstance(d, VdiskDevice):
        times = (
            time(d.read_ns)
            if d.read_ns == d.write_ns
            else (f"{time(d.read_ns)} read, {time(d.write_ns)} write")
        )
        return f"vdisk, {d.servers} servers of {times}, {of_queues}{d.queue_depth} tags"
    return f"null_blk, {time(d.completion_nsec)}, {of_queues}{d.hw_queue_depth} tags"


def provenance(analysis: Analysis) -> list[tuple[str, str]]:
    """Return (name, value) of the provenance of all finished runs of the study; several values are
    joined."""
    found: dict[str, dict[str, None]] = {}
    for view in analysis.views:
        if view.run is None:
            continue
        record = view.run.record
        origin = record.provenance
        for what, value in (
            ("tier", machine(record)),
            ("kernel", f"Linux {origin.kernel}"),
            ("kernel source", f"{origin.kernel_source} (build {_hash(origin.kernel_key)})"),
            ("modules", _hash(origin.modules_key)),
            ("compiler", origin.compiler),
            ("isoblk", origin.isoblk),
            ("device", device(record)),
            *([("SSD", ssd(record))] if record.spec.caching else []),
        ):
            found.setdefault(what, {})[value] = None
    return [(what, "; ".join(values)) for what, values in found.items()]


def _hash(key: str) -> str:
    """Return the end of a key, which distinguishes builds of one version."""
    return key.rpartition("-")[2]


def status(point: PointView) -> str:
    """Return valid, invalid, failed or missing; for repeats, the number of valid ones."""
    states = [view.status for view in point.runs]
    if len(set(states)) == 1:
        return states[0]
    bad = next(state for state in states if state != "valid")
    return f"{states.count('valid')}/{len(states)} valid, {bad}"

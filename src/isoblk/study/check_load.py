# SPDX-License-Identifier: GPL-2.0-only
"""Check that the generator can make a tenant's load on the device."""

import re

from msgspec import UNSET

from isoblk.layers.registry import size_of
from isoblk.programs.base import Program
from isoblk.programs.registry import program_of
from isoblk.run import limits
from isoblk.run.field import Field, FieldError
from isoblk.run.load import LOAD_OPTIONS
from isoblk.run.options import OptionError
from isoblk.run.spec import RUNNING, HostDevice, NullBlkDevice, RunSpec, Trace, Workload
from isoblk.run.units import format_size, format_time
from isoblk.study.model import Study
from isoblk.study.point import OPTIONS, origin
from isoblk.study.presets import logical_block
from isoblk.study.traces import ends_ns

_DISTRIBUTION = re.compile(r"(zipf|pareto):(\d+(?:\.\d{1,6})?)", re.ASCII)
_DISTRIBUTION_HINT = "allowed: random, " + ", ".join(
    f"{name}:X with X in {low}..{high}" for name, (low, high) in limits.DISTRIBUTIONS.items()
)

_DEFAULT = Workload()


def check_load(study: Study, entry: int, spec: RunSpec, load: Workload) -> None:
    """Check the load of the tenants of [[tenant]] `entry`.

    Args:
        study: the study at one point of its matrix.
        entry: index of the [[tenant]].
        spec: the run of that point.
        load: the load there.

    Raises:
        FieldError: an option is out of its range, or does not fit the device or the run.
    """
    _Load(study, entry, spec, load).check()


class _Load:
    """The load of the tenants of one [[tenant]], and the origin of its options."""

    def __init__(self, study: Study, entry: int, spec: RunSpec, load: Workload) -> None:
        self._study, self._entry, self._spec, self._load = study, entry, spec, load

    def check(self) -> None:
        load = self._load
        if load.program == RUNNING:
            return
        if program := program_of(load):
            self._check_times()
            self._check_program(program)
            return
        self._check_options()
        if load.trace is not None:
            self._check_trace(load.trace)
        self._check_block_sizes()
        self._check_region()
        self._check_times()
        self._check_turns()
        self._check_distribution()
        self._check_device()

    def _check_options(self) -> None:
        """Check each option by its own record."""
        for name, one in LOAD_OPTIONS.items():
            value = getattr(self._load, one.field) if one.field else None
            if one.option.allowed is not None and value not in one.option.allowed:
                raise self._error(
                    name, f"{value} is out of range", f"allowed: {one.option.allowed}"
                )
            if not one.option.blkload_only or self._load.program == "blkload":
                continue
            if value == (getattr(_DEFAULT, one.field) if one.field else None):
                continue
            if isinstance(self._spec.device, HostDevice):
                raise self._error(name, "the host machine has no such load", "use another machine")
            raise self._error(name, "only blkload has it", 'set workload = "blkload"')

        engine = self._load.ioengine
        if self._load.program != "fio" and engine != Workload().ioengine:
            raise self._error("ioengine", "only fio has it", 'set workload = "fio"')
        if engine == "psync" and self._load.iodepth > 1:
            raise self._error(
                "iodepth",
                f"{self._load.iodepth}, and psync has one request in flight",
                "set iodepth = 1 and numjobs, or another ioengine",
            )

    def _error(self, name: str, cause: str, hint: str) -> FieldError:
        return FieldError(origin(self._study, self._entry, name), cause, next=hint)

    def _block_sizes(self) -> tuple[str, tuple[int, ...]]:
        load = self._load
        if load.bsrange is not None:
            return "bsrange", load.bsrange
        if load.bssplit is not None:
            return "bssplit", tuple(size for size, _ in load.bssplit)
        return "bs", (load.bs,)

    def _check_block_sizes(self) -> None:
        load, unit = self._load, logical_block(self._spec.device)
        if load.trace:
            return
        name, sizes = self._block_sizes()
        for size in sizes:
            if size == 0 or size % unit or size > limits.MAX_BLOCK:
                raise self._error(
                    name,
                    f"a block of {size} bytes",
                    f"allowed: multiples of the device's logical block, {unit}, "
                    f"up to {format_size(limits.MAX_BLOCK)}",
                )
        if load.bsrange is not None:
            low, high = load.bsrange
            if high < low:
                raise self._error(
                    name,
                    f"{format_size(low)}-{format_size(high)} is not a range",
                    "allowed: LOW-HIGH, LOW the smaller",
                )
        if load.bssplit is not None:
            if len(load.bssplit) > limits.BSSPLIT_MAX:
                raise self._error(
                    name, f"{len(load.bssplit)} sizes", f"allowed: up to {limits.BSSPLIT_MAX}"
                )
            if any(percent == 0 for _, percent in load.bssplit):
                raise self._error(name, "0 per cent of a size", "allowed: 1..100")
            total = sum(percent for _, percent in load.bssplit)
            if total != 100:
                raise self._error(name, f"adds up to {total} per cent", "allowed: 100")

    def _check_region(self) -> None:
        load, room = self._load, size_of(self._spec.stack, self._spec.device.size)
        unit = logical_block(self._spec.device)
        # Requests of a trace are fitted to the region.
        largest = unit if load.trace else max(self._block_sizes()[1])
        for name, offset in (("offset", load.offset), ("size", load.size)):
            if offset % unit:
                raise self._error(
                    name,
                    f"{offset} is not a multiple of the device's logical block",
                    f"allowed: multiples of {unit}",
                )
        if load.offset + load.size > room or load.offset >= room:
            raise self._error(
                "size" if load.size and load.offset < room else "offset",
                f"offset {format_size(load.offset)} and size {format_size(load.size)} "
                "go beyond the device",
                f"the device has {format_size(room)}",
            )
        region = load.size or room - load.offset
        if region < largest:
            raise self._error(
                "size" if load.size else "offset",
                f"leaves {format_size(region)}, less than one block of {format_size(largest)}",
                f"the device has {format_size(room)}",
            )

    def _check_times(self) -> None:
        load, end = self._load, self._spec.warmup_ns + self._spec.runtime_ns
        if load.startdelay_ns >= end:
            raise self._error(
                "startdelay",
                f"{format_time(load.startdelay_ns)} is after the end of the run",
                f"allowed: less than {format_time(end)} (warm-up and runtime)",
            )
        if load.startdelay_ns + load.runtime_ns > end:
            raise self._error(
                "runtime",
                f"startdelay + runtime = {format_time(load.startdelay_ns + load.runtime_ns)} "
                "ends after the run",
                f"allowed: up to {format_time(end)} (warm-up and runtime)",
            )
        if load.runtime_ns and load.startdelay_ns + load.runtime_ns <= self._spec.warmup_ns:
            raise self._error(
                "runtime",
                f"startdelay + runtime = {format_time(load.startdelay_ns + load.runtime_ns)} "
                "ends in the warm-up",
                f"allowed: more than {format_time(self._spec.warmup_ns)}",
            )

    def _check_turns(self) -> None:
        """Check that both or neither of on and off are set."""
        load, end = self._load, self._spec.warmup_ns + self._spec.runtime_ns
        turns = {"on": load.on_ns, "off": load.off_ns}
        if not any(turns.values()):
            return
        for name, value in turns.items():
            if not value:
                other = "off" if name == "on" else "on"
                raise self._error(
                    other, f"there is no {name}", f"set {name} too, or remove {other}"
                )
            if value not in limits.TURN_NS:
                low, high = (format_time(ns) for ns in limits.TURN_NS)
                raise self._error(name, f"{format_time(value)}", f"allowed: {low}..{high}")
        if end > limits.TURNS_MAX * sum(turns.values()):
            raise self._error(
                "on",
                f"more than {limits.TURNS_MAX} times in {format_time(end)}",
                "make on and off longer, or use thinktime",
            )

    def _check_program(self, program: Program) -> None:
        study, entry, load = self._study, self._entry, self._load
        try:
            program.check(load.options)
        except OptionError as error:
            own = study.tenant[entry].options
            written = own if own is not UNSET and error.option in own else study.workload.options
            field: Field = ("tenant", entry, OPTIONS)
            if written is not UNSET and error.option in written:
                field = (*(field if written is own else ("workload", OPTIONS)), error.option)
            elif error.option:
                field = (*field, error.option)
            raise FieldError(field, error.cause, next=error.next) from None
        if self._spec.filesystem is None:
            raise self._error(
                "workload", f"{load.program} works on files", 'add [filesystem] type = "ext4"'
            )
        if load.memory and self._spec.cgroup != "v2":
            raise self._error(
                "memory", "needs cgroup v2, where io and memory go together", 'set run.cgroup "v2"'
            )
        if load.memory % limits.PHYSICAL_BLOCK:
            raise self._error(
                "memory", f"{load.memory} is not whole pages", "allowed: multiples of 4096"
            )

    def _check_trace(self, trace: Trace) -> None:
        load = self._load
        if load.program != "blkload":
            raise self._error("trace", "only blkload replays one", 'set workload = "blkload"')
        if load.replay == "closed" and load.speed != 1000:
            raise self._error(
                "speed", "a closed loop has no times", 'remove it, or set replay = "timed"'
            )
        if load.replay == "timed" and load.trace_loop and not trace.span_ns:
            raise self._error(
                "trace_loop",
                "all requests of the trace have one time",
                'remove it, or set replay = "closed"',
            )
        end = ends_ns(load)
        if end is not None and end < self._spec.warmup_ns:
            raise self._error(
                "trace",
                f"{trace.name} ends after {format_time(round(end, -6))}, in the warm-up"
                f" of {format_time(self._spec.warmup_ns)}",
                "set trace_loop = true, a lower speed, or a shorter warmup",
            )

    def _check_distribution(self) -> None:
        text = self._load.random_distribution
        if text == "random":
            return
        match = _DISTRIBUTION.fullmatch(text)
        low, high = limits.DISTRIBUTIONS[match[1]] if match else (1.0, 0.0)
        if not match or not low <= float(match[2]) <= high:
            raise self._error("random_distribution", f"{text!r}", _DISTRIBUTION_HINT)

    def _check_device(self) -> None:
        load, device = self._load, self._spec.device
        if isinstance(device, HostDevice):
            self._check_host(device)
            return
        if load.verify and load.program != "blkload":
            raise self._error("verify", "only blkload verifies", 'set workload = "blkload"')
        if not isinstance(device, NullBlkDevice):
            if load.verify and device.store == "none":
                raise self._error(
                    "verify",
                    "this vdisk does not store written data",
                    'set device.store = "memory"',
                )
            return
        if load.rw in ("trim", "randtrim"):
            raise self._error(
                "rw", f"{load.rw}: null_blk is set up without discard", "use driver vdisk"
            )
        if load.verify and not device.memory_backed:
            raise self._error(
                "verify",
                "this null_blk does not store written data",
                "set device.memory_backed = true",
            )
        if device.zone_size:
            self._check_zones(device.zone_size)

    def _check_zones(self, zone: int) -> None:
        """Check that zones are written sequentially from their start. fio handles zones itself."""
        load = self._load
        if load.program == "fio":
            return
        if load.trace is not None:
            raise self._error("trace", "a disk with zones replays none", "set device.zone_size = 0")
        if load.rw in ("read", "randread"):
            return
        if load.rw != "write" or load.numjobs > 1:
            raise self._error(
                "rw" if load.rw != "write" else "numjobs",
                "a zone is written in order, by one job",
                'set rw = "write" and numjobs = 1, or workload = "fio"',
            )
        for name in ("offset", "size"):
            if getattr(load, name) % zone:
                raise self._error(
                    name,
                    f"{format_size(getattr(load, name))} is not whole zones",
                    f"allowed: multiples of {format_size(zone)}",
                )

    def _check_host(self, device: HostDevice) -> None:
        load = self._load
        remedy = "remove it, or use another machine"
        if load.program == "blkload":
            raise self._error(
                "workload", "blkload is the lab's generator", 'set workload = "fio" for the host'
            )
        if load.trace is not None:
            raise self._error("trace", "the host machine replays none", remedy)
        if load.verify:
            raise self._error("verify", "the host machine does not verify", remedy)
        if load.rw in ("trim", "randtrim") and not device.discard:
            raise self._error("rw", f"{load.rw}: the device takes no discards", remedy)

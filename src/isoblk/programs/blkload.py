# SPDX-License-Identifier: GPL-2.0-only
"""The load generator in the kernel: its settings, and the parser of its results.

kernel/README.md is the contract.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from isoblk.errors import RunError
from isoblk.run.load import LOAD_OPTIONS
from isoblk.run.record import Lateness, OpTotals, Processors, ReplayTotals
from isoblk.run.setting import Setting
from isoblk.run.shell import Command, To, run
from isoblk.run.spec import RunSpec, Tenant, Trace, Workload
from isoblk.run.typed import build

ROOT = "/sys/kernel/config/blkload"
RESULTS = "/sys/kernel/debug/blkload/results"
# I/O that the disk completed, by cgroup, since 1 was written to the file.
COMPLETED = "/sys/kernel/debug/blkload/completed"

_DEFAULT = Workload()

# Attributes that are omitted at their default, which is also blkload's, and flags, which are
# omitted unless set.
_SELDOM = [one for one in LOAD_OPTIONS.values() if one.option.blkload == "if set"]
_MARKS = [one for one in LOAD_OPTIONS.values() if one.option.blkload == "mark"]


def make(tenants: Sequence[Tenant]) -> list[Command]:
    """Return the commands that make the tenants' directories."""
    names = [f"{ROOT}/{tenant.name}" for tenant in tenants if tenant.workload.program == "blkload"]
    return [run("mkdir", *names)] if names else []


def wait() -> Command:
    """Return the command that waits for the end of all tenants."""
    return run("cat", f"{ROOT}/wait", To("/dev/null"))


def trace_file(trace: Trace) -> str:
    """Return a trace's name in the run's directory, which depends only on its content."""
    return f"traces/{trace.sha256[:32]}.isotrace"


def settings(tenant: Tenant, device: str, run_dir: str, spec: RunSpec) -> Iterator[Setting]:
    """Yield a tenant's attributes, without those at blkload's default.

    The run's warm-up is a time after the barrier, common to all tenants; ramp_time counts from a
    tenant's own start. The same applies to the end.

    Args:
        tenant: the tenant.
        device: the device's path.
        run_dir: the run's directory in the guest.
        spec: the run.
    """
    directory = f"{ROOT}/{tenant.name}"
    values = {
        "device": device,
        "cgroup": f"/{tenant.cgroup}",
        **_requests(tenant.workload, run_dir),
        **_times(tenant.workload, spec),
    }
    for name, value in values.items():
        yield Setting(f"{directory}/{name}", str(value))


def _requests(load: Workload, run_dir: str) -> dict[str, str | int]:
    """Return the attributes of the requests, and the number in flight."""
    if load.trace is None:
        return _pattern(load)
    values: dict[str, str | int] = {
        "trace": f"{run_dir}/{trace_file(load.trace)}",
        "replay": load.replay,
        "trace_fit": load.trace_fit,
        "iodepth": load.iodepth,
    }
    if load.replay == "timed":
        values["speed"] = load.speed
    return values | _of_options(load, but="pattern")


def _pattern(load: Workload) -> dict[str, str | int]:
    values: dict[str, str | int] = {"rw": load.rw}
    if load.rw in ("rw", "randrw"):
        values["rwmixread"] = load.rwmixread
    if load.bssplit:
        values["bssplit"] = ":".join(f"{size}/{share}" for size, share in load.bssplit)
    elif load.bsrange:
        values["bsrange"] = f"{load.bsrange[0]}-{load.bsrange[1]}"
    else:
        values["bs"] = load.bs
    values["iodepth"] = load.iodepth
    values |= _of_options(load, but="trace")
    if "random_distribution" in values:
        values["random_distribution"] = _as_read_back(load.random_distribution)
    values["randseed"] = load.randseed
    return values


def _as_read_back(distribution: str) -> str:
    """Normalise zipf:1.20 to zipf:1.2, zipf:1 to zipf:1.0."""
    shape, _, argument = distribution.partition(":")
    return f"{shape}:{float(argument)}"


def _of_options(load: Workload, but: str) -> dict[str, str | int]:
    """Return the attributes that the options' records define. but: the kind of load that does not
    apply."""
    values: dict[str, str | int] = {
        one.option.name: getattr(load, one.field)
        for one in _SELDOM
        if one.option.about != but and getattr(load, one.field) != getattr(_DEFAULT, one.field)
    }
    marks = {
        one.option.name: 1 for one in _MARKS if one.option.about != but and getattr(load, one.field)
    }
    return values | marks


def ramp_and_runtime(load: Workload, spec: RunSpec) -> tuple[int, int]:
    """Return a tenant's time before the measurement, and its measured time: ns from its own
    start."""
    ramp = max(0, spec.warmup_ns - load.startdelay_ns)
    end = spec.warmup_ns + spec.runtime_ns
    if load.runtime_ns:
        end = min(end, load.startdelay_ns + load.runtime_ns)
    return ramp, end - load.startdelay_ns - ramp


def _times(load: Workload, spec: RunSpec) -> dict[str, str]:
    ramp, runtime = ramp_and_runtime(load, spec)
    times = {
        "thinktime": (load.thinktime_ns, 1_000),
        "on": (load.on_ns, 1_000_000_000),
        "off": (load.off_ns, 1_000_000_000),
        "cputime": (load.cputime_ns, 1),
        "startdelay": (load.startdelay_ns, 1_000_000_000),
        "ramp_time": (ramp, 1_000_000_000),
        "runtime": (runtime, 1_000_000_000),
        "window": (spec.window_ms * 1_000_000, 1_000_000),
    }
    return {name: _in_unit(value, unit) for name, (value, unit) in times.items() if value}


def _in_unit(value_ns: int, unit_ns: int) -> str:
    """Format a time as its attribute reads back: in its own unit if that is exact."""
    whole, rest = divmod(value_ns, unit_ns)
    return f"{value_ns}ns" if rest else str(whole)


@dataclass
class TenantOutput:
    """A tenant's part of `results`.

    start_ns: time of the barrier, by the guest's monotonic clock; None without one. windows: (op,
    start ms) -> (ios, bytes). latency: (op, upper bound ns) -> count. measured: from and to, ns
    after the barrier. processors: of a tenant with cputime, in virtual time. replay: of a tenant
    with a trace.
    """

    jobs: int
    error: int
    measured_ns: tuple[int, int]
    start_ns: int | None = None
    processors: Processors | None = None
    replay: ReplayTotals | None = None
    ops: dict[str, OpTotals] = field(default_factory=dict)
    windows: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    latency: dict[tuple[str, int], int] = field(default_factory=dict)


def parse_results(text: str) -> dict[str, TenantOutput]:
    """Parse `results` into tenant -> output, in the file's order.

    Raises:
        RunError: a line violates the contract.
    """
    tenants: dict[str, TenantOutput] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            _parse_line(line.split(), tenants)
        except (ValueError, KeyError, IndexError, msgspec.ValidationError):
            raise RunError(
                f"not a result of blkload: {line[:80]!r}", where=f"results:{number}"
            ) from None
    return tenants


def _parse_line(words: list[str], tenants: dict[str, TenantOutput]) -> None:
    match words:
        case ["win", name, op, start, ios, size]:
            tenants[name].windows[op, int(start)] = (int(ios), int(size))
        case ["lat", name, op, upper, count]:
            tenants[name].latency[op, int(upper)] = int(count)
        case ["op", name, op, *rest]:
            pairs = _numbers(rest)
            tenants[name].ops[op] = build(pairs, OpTotals)
        case ["cpu", name, *rest]:
            tenants[name].processors = build(_numbers(rest), Processors)
        case ["trace", name, *rest]:
            tenants[name].replay = build(_numbers(rest), ReplayTotals)
        case ["late", name, *rest]:
            late = build(_numbers(rest), Lateness)
            replay = tenants[name].replay
            if replay is None:
                raise ValueError
            tenants[name].replay = msgspec.structs.replace(replay, late=late)
        case ["tenant", name, *rest]:
            pairs = _numbers(rest)
            tenants[name] = TenantOutput(
                jobs=pairs["jobs"],
                error=pairs["error"],
                measured_ns=(pairs["measure_from_ns"], pairs["measure_to_ns"]),
                start_ns=pairs["start_ns"],
            )
        case _:
            raise ValueError


def _numbers(words: list[str]) -> dict[str, int]:
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))

# SPDX-License-Identifier: GPL-2.0-only
"""Script lines for disks and tenants, and what the kernel tells about them.

The reader of the results is not the product's: it is strict, and reads all that the file says.
"""

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoblk.run.spec import CgroupVersion
from tests.lab.guest import Guest, Left

BLKLOAD = "/sys/kernel/config/blkload"
RESULTS = "/sys/kernel/debug/blkload/results"
VDISK = "/sys/kernel/config/isoblk_vdisk"
STATS = "/sys/kernel/debug/isoblk_vdisk"
NULLB = "/sys/kernel/config/nullb"
CGROUP = "/sys/fs/cgroup"
TRACING = "/sys/kernel/tracing"

TICK = 256  # ns: the step of UML's clock
# A completion is late by less than a tick, then UML's least timer is 500 ns away.
LATE = 4 * TICK

MS = 1_000_000
SECOND = 1_000_000_000

Value = str | int
Load = dict[str, Value]  # a tenant's attributes

# `put VALUE FILE` writes, `try COMMAND...` runs; both print "ok", or the error's text and no more.
SHELL = """
export LC_ALL=C
put() { if said=$(/bin/echo "$1" 2>&1 > "$2"); then echo ok; else echo "${said##*: }"; fi; }
try() { if said=$("$@" 2>&1 > /dev/null); then echo ok; else echo "${said##*: }"; fi; }
"""


def text(number: int) -> str:
    """The text that put and try print for an errno."""
    return os.strerror(number)


EINVAL, ERANGE, EBUSY = text(errno.EINVAL), text(errno.ERANGE), text(errno.EBUSY)
ENOENT, EEXIST = text(errno.ENOENT), text(errno.EEXIST)


def script(*parts: str) -> str:
    """Lines of a script, with put and try."""
    return "\n".join((SHELL, *parts))


def vdisk(name: str = "disk0", /, **attributes: Value) -> str:
    """Make a virtual disk, /dev/NAME."""
    values = {**attributes, "power": 1}
    return "\n".join((f"mkdir {VDISK}/{name}", *_write(f"{VDISK}/{name}", values)))


def nullb(name: str = "nullb0", /, **attributes: Value) -> str:
    """Make a disk of the kernel's null_blk, /dev/NAME, that completes by timer."""
    values: Load = {
        "size": 64,
        "blocksize": 512,
        "queue_mode": 2,
        "irqmode": 2,
        "completion_nsec": 20_000,
        "submit_queues": 1,
        "memory_backed": 1,
        "discard": 1,
        **attributes,
        "power": 1,
    }
    return "\n".join((f"mkdir {NULLB}/{name}", *_write(f"{NULLB}/{name}", values)))


def tenant(name: str, /, **attributes: Value) -> str:
    """Make a tenant; device is /dev/disk0 if not given."""
    values = {"device": "/dev/disk0", **attributes}
    return "\n".join((f"mkdir {BLKLOAD}/{name}", *_write(f"{BLKLOAD}/{name}", values)))


def cgroup(path: str) -> str:
    """Make a cgroup of version 2, with io counted in it."""
    parent = Path(CGROUP + path).parent
    return f"echo +io > {parent}/cgroup.subtree_control; mkdir {CGROUP}{path}"


def _write(directory: str, values: Mapping[str, Value]) -> list[str]:
    return [f"echo '{value}' > {directory}/{name}" for name, value in values.items()]


START = f"echo 1 > {BLKLOAD}/start"
STOP = f"echo 1 > {BLKLOAD}/stop"
WAIT = f"cat {BLKLOAD}/wait > /dev/null"


def save(label: str) -> str:
    """Keep the results as they are now."""
    return f"cat {RESULTS} > /run/isoblk/{label}"


def run(label: str) -> str:
    """Start all tenants, wait until they are done, and keep their results."""
    return "\n".join((START, WAIT, save(label)))


@dataclass(frozen=True, kw_only=True)
class Op:
    """The figures of one op of a tenant. lat: upper bound ns -> count; win: ms -> ios, bytes."""

    issued: int
    ios: int
    bytes: int
    errors: int
    verify_errors: int
    meas_ios: int
    meas_bytes: int
    lat_sum_ns: int
    lat_min_ns: int
    lat_max_ns: int
    lat: dict[int, int] = field(default_factory=dict)
    win: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """A tenant's last run. cpu: of one with cputime. trace, late: of one that replays a trace."""

    jobs: int
    start_ns: int
    measure_from_ns: int
    measure_to_ns: int
    end_ns: int
    error: int
    cpu: dict[str, int] = field(default_factory=dict)
    trace: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    ops: dict[str, Op] = field(default_factory=dict)

    @property
    def op(self) -> Op:
        """The only op."""
        (op,) = self.ops.values()
        return op


def results(left: Left, label: str) -> dict[str, Tenant]:
    """Tenants by name, in the file's order; fails unless every sum is that of its parts."""
    tenants = parse(left.read(label))
    for name, done in tenants.items():
        for kind, op in done.ops.items():
            _adds_up(f"{label}: {name} {kind}", done, op)
    return tenants


def parse(content: str) -> dict[str, Tenant]:
    """The results file, of which no line may be unknown."""
    tenants: dict[str, Tenant] = {}
    for line in content.splitlines():
        kind, name, *rest = line.split(" ")
        if kind == "tenant":
            assert name not in tenants, line
            tenants[name] = Tenant(**_numbers(rest))
            continue
        if kind in ("cpu", "trace", "late"):
            counts: dict[str, int] = getattr(tenants[name], kind)
            assert not counts and not tenants[name].ops, line
            counts.update(_numbers(rest))
            continue
        op, *rest = rest
        if kind == "op":
            tenants[name].ops[op] = Op(**_numbers(rest))
        elif kind == "lat":
            upper, count = map(int, rest)
            tenants[name].ops[op].lat[upper] = count
        else:
            assert kind == "win", line
            start, ios, size = map(int, rest)
            tenants[name].ops[op].win[start] = (ios, size)
    return tenants


def served(done: Mapping[str, Tenant]) -> dict[str, float]:
    """Each tenant's part of the requests."""
    ios = {name: sum(op.meas_ios for op in one.ops.values()) for name, one in done.items()}
    return {name: n / sum(ios.values()) for name, n in ios.items()}


def percentile(op: Op, percent: float) -> int:
    """Latency, ns: the bucket's upper bound."""
    below = 0
    for upper, count in op.lat.items():
        below += count
        if below >= op.meas_ios * percent / 100:
            return upper
    raise AssertionError


def _numbers(words: list[str]) -> dict[str, Any]:
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def _adds_up(what: str, done: Tenant, op: Op) -> None:
    assert op.issued == op.ios + op.errors, what
    assert sum(ios for ios, _ in op.win.values()) == op.ios, what
    assert sum(size for _, size in op.win.values()) == op.bytes, what
    assert sum(op.lat.values()) == op.meas_ios <= op.ios, what
    assert op.meas_bytes <= op.bytes, what
    assert list(op.lat) == sorted(op.lat), what
    assert list(op.win) == sorted(op.win), what
    assert all(op.lat.values()), what
    assert all(ios for ios, _ in op.win.values()), what
    assert all(start * MS <= done.end_ns for start in op.win), what
    if op.meas_ios:
        # Empty buckets are left out, so the outermost hold the extremes.
        assert min(op.lat) > op.lat_min_ns, what
        assert max(op.lat) > op.lat_max_ns, what
        assert op.meas_ios * op.lat_min_ns <= op.lat_sum_ns <= op.meas_ios * op.lat_max_ns, what


@dataclass(frozen=True)
class Request:
    """A bio as it reaches the block layer. flags: R, W or D and what goes with it (F S ...)."""

    thread: str
    flags: str
    sector: int
    sectors: int

    @property
    def end(self) -> int:
        """The sector behind its last."""
        return self.sector + self.sectors


_EVENT = re.compile(
    r"^ +(blkload/\S+)-\d+ .*block_bio_queue: \S+ (\S+) (\d+) \+ (\d+) \[", re.MULTILINE
)


def trace_on(event: str = "block_bio_queue") -> str:
    """Trace a block event. The trace's clock is a counter, which takes no virtual time."""
    return (
        f"mount -t tracefs tracefs {TRACING}; echo counter > {TRACING}/trace_clock;"
        f" echo 16384 > {TRACING}/buffer_size_kb; echo 1 > {TRACING}/events/block/{event}/enable"
    )


def trace_save(label: str) -> str:
    """Keep the trace as it is now, and go on with an empty one."""
    return f"cat {TRACING}/trace > /run/isoblk/{label}.trace; echo > {TRACING}/trace"


def requests(left: Left, label: str) -> list[Request]:
    """The requests of blkload in a trace, in order."""
    trace = left.read(f"{label}.trace")
    assert re.search(r"entries-written: (\d+)/\1 ", trace), "the trace's buffer was too small"
    return [Request(t, f, int(at), int(n)) for t, f, at, n in _EVENT.findall(trace)]


@dataclass(frozen=True)
class Measured:
    """One tenant's run, alone. requests: only if traced."""

    result: Tenant
    requests: list[Request]


def measure(
    guest: Guest,
    cases: Mapping[str, Mapping[str, Value]],
    *,
    disk: str = "",
    trace: bool = False,
    modules: tuple[str, ...] = ("isoblk_vdisk", "blkload"),
    cgroup: CgroupVersion = "v2",
) -> dict[str, Measured]:
    """Run tenants one after the other in one guest, each alone: name -> attributes."""
    lines = [disk or vdisk()]
    if trace:
        lines.append(trace_on())
    for name, attributes in cases.items():
        lines += [tenant(name, **attributes), run(name)]
        if trace:
            lines.append(trace_save(name))
        lines.append(f"rmdir {BLKLOAD}/{name}")
    left = guest.run(script(*lines), modules=modules, cgroup=cgroup)
    return {
        name: Measured(results(left, name)[name], requests(left, name) if trace else [])
        for name in cases
    }


def numbers(content: str) -> dict[str, int]:
    """A file of `name value` lines."""
    return {name: int(value) for name, value in map(str.split, content.splitlines())}


def io_stat(content: str) -> dict[str, int]:
    """io.stat of a cgroup that used one device."""
    (line,) = content.splitlines()
    return {name: int(value) for name, value in (word.split("=") for word in line.split()[1:])}

# SPDX-License-Identifier: GPL-2.0-only
"""Detect results that exceed the limits of the disk: such a run is invalid."""

from collections import Counter
from collections.abc import Iterator, Mapping

from isoblk.programs.blkload import TenantOutput
from isoblk.programs.registry import program_of
from isoblk.run import limits
from isoblk.run.spec import RunSpec, VdiskDevice

# For requests that begin before the measured time and complete in it, and for rounded figures.
_TOLERANCE = 0.01
_BEGUN_BEFORE = 4 << 20
# The disk splits larger requests, and a generator counts them with the last part.
_LARGEST_REQUEST = 1 << 20
_LINKS = {"read": "read_bps", "write": "write_bps"}
_SECOND = 1_000_000_000


def impossible(spec: RunSpec, outputs: Mapping[str, TenantOutput]) -> Iterator[str]:
    """Yield a sentence for each direction in which all tenants together exceed the disk's limit, in
    the measured time or in a window.

    Args:
        spec: the run. Only a vdisk without a cache or layers has known limits.
        outputs: by the tenants' names.
    """
    if spec.caching is not None or spec.stack or not isinstance(spec.device, VdiskDevice):
        return
    for op, attribute in _LINKS.items():
        limit = _limit(spec, attribute)
        if not limit:
            continue
        before = _begun_before(spec)
        moved = [*_windows(spec, op, outputs), (spec.runtime_ns, _measured(op, outputs))]
        excess = [
            (size / most, size, ns)
            for ns, size in moved
            if size > (most := limit * ns / _SECOND * (1 + _TOLERANCE) + before)
        ]
        if excess:
            _, size, ns = max(excess)
            yield (
                f"tenants have {size} bytes ({op}) of {ns / 1e6:g} ms, and the disk can do"
                f" {round(limit * ns / _SECOND)}"
            )


def _limit(spec: RunSpec, attribute: str) -> int:
    """Return the disk's highest limit per second during the run; 0: no limit."""
    values = [getattr(spec.device, attribute)]
    values += [
        event.attributes[attribute] for event in spec.device_events if attribute in event.attributes
    ]
    return 0 if 0 in values else max(values)


def _begun_before(spec: RunSpec) -> int:
    """Return the most bytes that were served before a span and count in it."""
    begun = _BEGUN_BEFORE
    for load in (tenant.workload for tenant in spec.tenants if not program_of(tenant.workload)):
        sizes = [load.bs, *(load.bsrange or ()), *(size for size, _ in load.bssplit or ())]
        largest = limits.MAX_BLOCK if load.trace else max(sizes)
        if largest > _LARGEST_REQUEST:
            begun += largest * load.iodepth * load.numjobs
    return begun


def _measured(op: str, outputs: Mapping[str, TenantOutput]) -> int:
    return sum(one.ops[op].meas_bytes for one in outputs.values() if op in one.ops)


def _windows(
    spec: RunSpec, op: str, outputs: Mapping[str, TenantOutput]
) -> Iterator[tuple[int, int]]:
    """Yield the width in ns, and the bytes of all tenants, of every window."""
    sizes: Counter[int] = Counter()
    for output in outputs.values():
        for (kind, t_ms), (_, size) in output.windows.items():
            if kind == op:
                sizes[t_ms] += size
    return ((spec.window_ms * 1_000_000, size) for size in sizes.values())

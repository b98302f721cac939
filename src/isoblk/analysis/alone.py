# SPDX-License-Identifier: GPL-2.0-only
"""The results of each load alone on the device, for comparison with shared runs."""

from collections.abc import Sequence
from functools import lru_cache

from isoblk.analysis.load import load
from isoblk.metrics import latency
from isoblk.metrics.facts import Alone
from isoblk.metrics.latency import ALL
from isoblk.result.store import Run


class AloneRuns:
    """The runs of lone tenants in a result set; each is read once."""

    def __init__(self, runs: Sequence[Run | None]) -> None:
        self._runs = runs
        self._read = lru_cache(maxsize=None)(self._of)

    def of(self, indexes: Sequence[int]) -> tuple[Alone | None, ...]:
        """Return those of a run's tenants; None for a missing or invalid run."""
        return tuple(self._read(index) for index in indexes)

    def _of(self, index: int) -> Alone | None:
        run = self._runs[index]
        if run is None or run.record.status != "valid":
            return None
        totals = [ops for tenant in run.record.tenants for ops in tenant.ops.values()]
        measured = max((tenant.measured_ns for tenant in run.record.tenants), default=0)
        moved = sum(ops.meas_bytes for ops in totals)
        buckets = latency.merge(
            one[ALL] for one in latency.by_tenant(load(run).latency).values() if ALL in one
        )
        count = sum(n for _, n in buckets)
        spent = sum(ops.lat_sum_ns for ops in totals)
        return Alone(
            bps=moved * 1e9 / measured if measured else 0.0,
            p99=latency.percentile(buckets, latency.PERCENTILES["p99"]) if count else None,
            request_ns=min(measured, spent) / count if count else None,
        )

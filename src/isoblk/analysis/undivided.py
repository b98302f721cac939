# SPDX-License-Identifier: GPL-2.0-only
"""The results of each tenant without a scheduler, for comparison with runs under a scheduler."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from isoblk.analysis import timeline
from isoblk.analysis.load import load
from isoblk.metrics import latency
from isoblk.metrics.facts import Undivided
from isoblk.metrics.latency import ALL
from isoblk.result.store import Run


class UndividedRuns:
    """The runs under `none` of a result set; each is read once."""

    def __init__(self, runs: Sequence[Run | None]) -> None:
        self._runs = runs
        self._read = lru_cache(maxsize=None)(self._of)

    def of(self, index: int | None) -> Mapping[str, Undivided]:
        """Return the tenants of the run at that index, by name; empty for a missing or invalid
        run."""
        return {} if index is None else self._read(index)

    def _of(self, index: int) -> Mapping[str, Undivided]:
        run = self._runs[index]
        if run is None or run.record.status != "valid":
            return {}
        tables = load(run)
        buckets = latency.by_tenant(tables.latency)
        last_ms = timeline.last_worked(tables.series)
        gaps = timeline.longest_gaps(run.record.spec, last_ms, tables.series)
        found = {}
        for tenant in run.record.tenants:
            moved = sum(ops.meas_bytes for ops in tenant.ops.values())
            own = buckets.get(tenant.name, {}).get(ALL)
            found[tenant.name] = Undivided(
                bps=moved * 1e9 / tenant.measured_ns if tenant.measured_ns else 0.0,
                p99=latency.percentile(own, latency.PERCENTILES["p99"]) if own else None,
                longest_gap_ns=gaps.get(tenant.name),
            )
        return found

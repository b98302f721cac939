# SPDX-License-Identifier: GPL-2.0-only
"""Results as tables for Polars (or pandas, by to_pandas()).

Each table has the matrix's keys, `scheduler` among them, and `repeat`, so that it can be grouped
and joined by them. Units are those of docs/reference/metrics.md: times in ns, sizes in bytes,
shares and errors as fractions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from isoblk.analysis.metrics import Analysis, RunView, analyse
from isoblk.metrics.registry import OF_RUN, OF_TENANT, metric_value
from isoblk.result.store import LATENCY_SCHEMA, SERIES_SCHEMA, Run, read_results

_REPEAT = "repeat"
_Types = dict[str, type[pl.DataType]]


@dataclass(frozen=True)
class Results:
    """A result directory.

    Attributes:
        analysis: all runs with their metrics, for what the tables do not have.
    """

    analysis: Analysis

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row for each run of the matrix: status, run id, seed, and the metrics of the run; null
        where the run has no such metric."""
        about: _Types = {"status": pl.String, "id": pl.String, "seed": pl.Int64}
        return self._table(self._run_rows(), about, OF_RUN)

    @cached_property
    def tenants(self) -> pl.DataFrame:
        """A row for each tenant of each valid run: cgroup, weight, ideal, and its metrics."""
        about: _Types = {"tenant": pl.String, "cgroup": pl.String, "weight": pl.Int64}
        return self._table(self._tenant_rows(), about, ("ideal", *OF_TENANT))

    @cached_property
    def series(self) -> pl.DataFrame:
        """Requests and bytes of each tenant, a row for each span of `run.window` from t_ms on."""
        return self._joined(Run.series, SERIES_SCHEMA)

    @cached_property
    def latency(self) -> pl.DataFrame:
        """Buckets of the latency of each tenant: how many requests took at most upper_ns."""
        return self._joined(Run.latency, LATENCY_SCHEMA)

    def _table(
        self,
        rows: Iterator[dict[str, Any]],
        about: _Types,
        figures: Sequence[str],
    ) -> pl.DataFrame:
        schema = self._place_schema | about | dict.fromkeys(figures, pl.Float64)
        return self._with_numbers(pl.DataFrame(list(rows), schema=schema))

    @property
    def _place_schema(self) -> _Types:
        """Types of the columns with which each table begins."""
        return {**dict.fromkeys(self.analysis.keys, pl.String), _REPEAT: pl.Int64}

    def _place(self, view: RunView) -> dict[str, str | int | None]:
        """Return the run's values of these columns. A key that concerns another scheduler has
        none."""
        point = view.planned.spec.point
        return {**{key: point.get(key) for key in self.analysis.keys}, _REPEAT: view.spec.repeat}

    def _with_numbers(self, table: pl.DataFrame) -> pl.DataFrame:
        return table.with_columns(_typed(table[key]) for key in self.analysis.keys)

    def _run_rows(self) -> Iterator[dict[str, Any]]:
        for view in self.analysis.views:
            yield {
                **self._place(view),
                "status": view.status,
                "id": view.run.record.id if view.run else None,
                "seed": view.spec.seed,
                **{
                    name: metric_value(view.metrics, name) if view.metrics else None
                    for name in OF_RUN
                },
            }

    def _tenant_rows(self) -> Iterator[dict[str, Any]]:
        for view in self._valid():
            assert view.metrics is not None  # valid
            for tenant in view.spec.tenants:
                own = view.metrics.by_name[tenant.name]
                yield {
                    **self._place(view),
                    "tenant": tenant.name,
                    "cgroup": tenant.cgroup,
                    "weight": tenant.weight,
                    "ideal": own.ideal,
                    **{
                        base: metric_value(view.metrics, f"{base}.{tenant.name}")
                        for base in OF_TENANT
                    },
                }

    def _valid(self) -> Iterator[RunView]:
        return (view for view in self.analysis.views if view.status == "valid")

    def _joined(self, read: Callable[[Run], pl.DataFrame], schema: pl.Schema) -> pl.DataFrame:
        """Return the tables of all valid runs below each other, with keys and repeat before. They
        were checked when the results were analysed."""
        place = self._place_schema
        found = [
            read(view.run).select(
                *(pl.lit(value, place[key]).alias(key) for key, value in self._place(view).items()),
                pl.all(),
            )
            for view in self._valid()
            if view.run
        ]
        return self._with_numbers(pl.concat(found or [pl.DataFrame(schema={**place, **schema})]))


def load(results: str | Path) -> Results:
    """Read a result directory, finished or not.

    Raises:
        UserError: it is not a result directory, or is damaged.
    """
    return Results(analyse(read_results(Path(results))))


def _typed(column: pl.Series) -> pl.Series:
    """Return a column of a key's values as numbers, if all of them are."""
    for kind in (pl.Int64, pl.Float64):
        numbers = column.cast(kind, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    return column

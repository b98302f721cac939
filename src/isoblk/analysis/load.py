# SPDX-License-Identifier: GPL-2.0-only
"""Read and check a run's tables."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from isoblk.errors import UserError
from isoblk.result.store import LATENCY_SCHEMA, PREDICTIONS, PREDICTIONS_SCHEMA, SERIES_SCHEMA, Run


@dataclass(frozen=True)
class Tables:
    """SERIES_SCHEMA, LATENCY_SCHEMA and PREDICTIONS_SCHEMA of isoblk.result.store; the last is None
    without predictions."""

    series: pl.DataFrame
    latency: pl.DataFrame
    predictions: pl.DataFrame | None


def load(run: Run) -> Tables:
    """Read a run's tables.

    Raises:
        UserError: a file is missing or damaged.
    """
    return Tables(
        _read(run, "series.parquet", run.series, SERIES_SCHEMA),
        _read(run, "latency.parquet", run.latency, LATENCY_SCHEMA),
        _read(run, PREDICTIONS, run.predictions, PREDICTIONS_SCHEMA)
        if (run.dir / PREDICTIONS).exists()
        else None,
    )


def _read(run: Run, name: str, read: Callable[[], pl.DataFrame], schema: pl.Schema) -> pl.DataFrame:
    path = run.dir / name
    fix = "remove its directory and run the study again"
    try:
        table = read()
    except FileNotFoundError:
        raise UserError("missing", where=str(path), next=fix) from None
    except (pl.exceptions.PolarsError, OSError) as error:
        cause = (str(error).splitlines() or ["unreadable"])[0]
        raise UserError(f"damaged: {cause}", where=str(path), next=fix) from None
    if table.schema != schema:
        raise UserError("damaged: not the columns that belong there", where=str(path), next=fix)
    return table

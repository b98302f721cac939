# SPDX-License-Identifier: GPL-2.0-only
"""The tables of caches in a report: throughput of each, and its counters."""

from collections.abc import Callable

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.metrics.facts import TenantMetrics
from isoblk.metrics.latency import ALL
from isoblk.metrics.stats import Estimate, estimate
from isoblk.report import text
from isoblk.report.rows import Cell, Column, Table, cell, read_hits, state, varying
from isoblk.run import numbers

CACHE = "cache"
"""Key of the matrix."""
_BYTES = [f"{where}.{op}_bytes" for where in ("asked", "origin", "ssd") for op in ("read", "write")]

_DONE = ("read", "written")


def has_caches(analysis: Analysis) -> bool:
    """Return whether the study has an SSD."""
    return analysis.results.record.study.ssd is not None


def is_bench(analysis: Analysis) -> bool:
    """Return whether the study compares caches, or their options, under one load, without a
    division."""
    return has_caches(analysis) and all(len(view.spec.tenants) == 1 for view in analysis.views)


def throughput(tenant: TenantMetrics) -> float:
    """Return bytes per second over the tenant's active time, or its program's figure."""
    said = [
        figure.value
        for figure in (tenant.says.figures if tenant.says else ())
        if figure.unit == "B/s" and figure.name.rpartition(".")[2] == "throughput"
    ]
    return sum(said) or tenant.own_bps


def mean_latency(tenant: TenantMetrics) -> float | None:
    """Return nanoseconds, or the program's figure if there is no other."""
    if ALL in tenant.latency:
        return tenant.latency[ALL].mean
    said = tenant.says.figures if tenant.says else ()
    return next((figure.value for figure in said if figure.name == "latency.mean"), None)


def of_first(point: PointView, measure: Callable[[TenantMetrics], float | None]) -> Estimate | None:
    """Return mean and interval of a figure of the first tenant, over the valid repeats."""
    found = [value for m in point.valid if (value := measure(m.tenants[0])) is not None]
    return estimate(found) if found else None


def summary(analysis: Analysis) -> Table:
    """Return the table of runs of a bench: throughput, and the part of it from the SSD."""
    short, keys = text.short_keys(analysis.keys), varying(analysis)
    columns = (
        *(Column(short[key], numeric=False) for key in keys),
        Column("status", numeric=False),
        Column("IOPS"),
        Column("throughput"),
        Column("mean latency"),
        Column("p99"),
        Column("read hits"),
    )
    rows = []
    for point in analysis.points:
        cells = [
            *(Cell(point.point.get(key, "")) for key in keys),
            Cell(text.status(point)),
            cell(of_first(point, _iops), numbers.count),
            cell(of_first(point, throughput), numbers.rate),
            cell(of_first(point, mean_latency), numbers.time),
            cell(of_first(point, _p99), numbers.time),
            cell(read_hits(point), numbers.percent),
        ]
        rows.append((state(point), tuple(cells)))
    notes = (
        "rates: over the time that the load worked",
        "read hits: reads that the SSD answered, by the cache's own count",
    )
    return _without_empty(Table(columns, tuple(rows), notes))


def counters(analysis: Analysis) -> Table:
    """Return a table with a row for each study point: bytes of each disk in the measured pass, and
    bypassed bytes."""
    short, keys = text.short_keys(analysis.keys), varying(analysis)
    columns = (
        *(Column(short[key], numeric=False) for key in keys),
        *(Column(f"{who} {done}") for who in ("asked:", "disk:", "SSD:") for done in _DONE),
        *(Column(f"SSD/asked: {done}") for done in _DONE),
        Column("bypassed"),
    )
    rows = []
    for point in analysis.points:
        cells = [
            *(Cell(point.point.get(key, "")) for key in keys),
            *(cell(_figure(point, name), bytes_text) for name in _BYTES),
            *(cell(_figure(point, f"ssd.{op}_factor"), factor_text) for op in ("read", "write")),
            cell(_figure(point, "bypassed_bytes"), bytes_text),
        ]
        rows.append((state(point), tuple(cells)))
    return _without_empty(Table(columns, tuple(rows), ()))


def bytes_text(value: float) -> str:
    """Format 67108864 as "67.1 MB"."""
    return numbers.figure(value, "B")


def factor_text(value: float) -> str:
    """Format 1.0488 as "1.05"."""
    return f"{value:.2f}"


def _without_empty(table: Table) -> Table:
    """Return the table without empty columns."""
    kept = [
        at
        for at in range(len(table.columns))
        if any(cells[at].text != text.NOTHING for _, cells in table.rows)
    ]
    rows = tuple((state, tuple(cells[at] for at in kept)) for state, cells in table.rows)
    return Table(tuple(table.columns[at] for at in kept), rows, table.notes)


def _figure(point: PointView, name: str) -> Estimate | None:
    return point.estimate(f"{CACHE}.{name}")


def _iops(tenant: TenantMetrics) -> float | None:
    """Return requests per second; None for a program, whose requests are only known after splits
    and merges."""
    return None if tenant.says else tenant.own_iops


def _p99(tenant: TenantMetrics) -> float | None:
    return tenant.latency[ALL].p99 if ALL in tenant.latency else None

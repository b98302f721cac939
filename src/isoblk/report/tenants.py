# SPDX-License-Identifier: GPL-2.0-only
"""Each tenant's figures at each study point, as text."""

from collections.abc import Callable

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.metrics.facts import TenantMetrics
from isoblk.metrics.stats import estimate
from isoblk.report import cached, text
from isoblk.report.rows import Cell, Column, Table, cell, sizes_differ, state, waits
from isoblk.run import numbers


def count(analysis: Analysis) -> int:
    """Return the number of rows; 0 if the table would repeat the table of runs."""
    if cached.is_bench(analysis):
        return 0
    return sum(len(point.runs[0].spec.tenants) for point in analysis.points if point.valid)


def by_point(analysis: Analysis) -> Table:
    """Return a row for each tenant at each point with valid runs."""
    short = text.short_keys(analysis.keys)
    with_bytes = sizes_differ(analysis)
    columns = (
        *(Column(short[key], numeric=False) for key in analysis.keys),
        Column("tenant", numeric=False),
        Column("weight"),
        Column("share"),
        Column("ideal"),
        Column("IOPS"),
        *([Column("bandwidth")] if with_bytes else []),
        Column("p50"),
        Column("p99"),
    )
    rows = []
    for point in analysis.points:
        for place, tenant in enumerate(point.runs[0].spec.tenants if point.valid else ()):
            here = [point.point.get(key, "") if place == 0 else "" for key in analysis.keys]
            cells = [
                *map(Cell, here),
                Cell(tenant.name),
                Cell(str(tenant.weight)),
                _figure(point, place, lambda one: one.share, numbers.percent),
                _figure(point, place, lambda one: one.ideal, numbers.percent),
                _figure(point, place, lambda one: one.iops, numbers.count),
            ]
            if with_bytes:
                cells.append(_figure(point, place, lambda one: one.bps, numbers.rate))
            cells += [
                waits(point, tenant.name, point.estimate(f"{metric}.{tenant.name}"))
                for metric in ("p50", "p99")
            ]
            rows.append((state(point), tuple(cells)))
    return Table(columns, tuple(rows), ())


def _figure(
    point: PointView,
    place: int,
    measure: Callable[[TenantMetrics], float],
    form: Callable[[float], str],
) -> Cell:
    """Return the mean over the valid repeats."""
    return cell(estimate([measure(metrics.tenants[place]) for metrics in point.valid]), form)

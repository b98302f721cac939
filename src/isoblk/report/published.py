# SPDX-License-Identifier: GPL-2.0-only
"""Compare a source's own figures with those of the runs: a study's [compare]."""

from dataclasses import dataclass
from statistics import median

from isoblk.analysis.metrics import Analysis
from isoblk.report import text
from isoblk.report.rows import Cell, Column, Table
from isoblk.run import numbers
from isoblk.run.spec import SCHEDULER, label
from isoblk.study.model import CompareTable

UNITS = {"total_bps": ("MB/s", 1e6), "total_iops": ("thousand a second", 1e3)}
"""By metric: title of the axis, and value of its unit."""


@dataclass(frozen=True)
class Bar:
    """One figure. x: value of the matrix key on the axis; here, source: in the metric's unit, None
    without a valid run, or without a figure in the source."""

    scheduler: str
    series: str
    x: str
    here: float | None
    source: float | None

    @property
    def error(self) -> float | None:
        """Return the run's error relative to the source."""
        if self.here is None or self.source is None:
            return None
        return self.here / self.source - 1


def bars(analysis: Analysis) -> list[Bar]:
    """Return the study's [compare], in its order; [] without one."""
    study = analysis.results.record.study
    compare = study.compare
    if compare is None:
        return []
    found = []
    for series in compare.series:
        where = {SCHEDULER: study.scheduler} | {k: label(v) for k, v in series.where.items()}
        for x, value in zip(map(label, study.matrix[compare.x]), series.values, strict=True):
            at = (where | {compare.x: x}).items()
            estimates = [
                p.estimate(compare.metric) for p in analysis.points if at <= p.point.items()
            ]
            here = next((e.mean for e in estimates if e is not None), None)
            source = value * compare.scale or None
            found.append(Bar(where[SCHEDULER], series.text, x, here, source))
    return found


def by_scheduler(found: list[Bar]) -> dict[str, list[Bar]]:
    """Return the bars of each scheduler, in order."""
    groups: dict[str, list[Bar]] = {}
    for bar in found:
        groups.setdefault(bar.scheduler, []).append(bar)
    return groups


def errors(found: list[Bar]) -> str:
    """Summarise the runs' errors relative to the source: "median 2.1 %, at most 13 %"."""
    sizes = [abs(bar.error) for bar in found if bar.error is not None]
    if not sizes:
        return "nothing to compare"
    return f"median {numbers.percent(median(sizes))}, at most {numbers.percent(max(sizes))}"


def table(analysis: Analysis, compare: CompareTable) -> Table:
    """Return a table with a row for each series and value on the axis."""
    form = numbers.rate if compare.metric == "total_bps" else numbers.count
    found = bars(analysis)
    rows = [
        (
            "missing" if bar.here is None else "valid",
            (
                Cell(bar.scheduler),
                Cell(bar.series),
                Cell(bar.x),
                *(
                    Cell(text.NOTHING if value is None else form(value), value=value)
                    for value in (bar.source, bar.here)
                ),
                Cell(text.NOTHING if bar.error is None else f"{bar.error:+.1%}", value=bar.error),
            ),
        )
        for bar in found
    ]
    columns = (
        *(Column(name, numeric=False) for name in ("scheduler", "", compare.x)),
        Column(compare.source),
        Column("here"),
        Column("difference"),
    )
    notes = [f"{name}: {errors(ones)}" for name, ones in by_scheduler(found).items()]
    return Table(columns, tuple(rows), tuple(notes))

# SPDX-License-Identifier: GPL-2.0-only
"""The tables of a report as text, before the layout for terminal or page."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from isoblk.analysis.claims import ClaimResult, Judged
from isoblk.analysis.metrics import Analysis, PointView, RunView
from isoblk.analysis.suspect import unbounded
from isoblk.metrics.cached import CACHE
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.latency import ALL
from isoblk.metrics.registry import SAYS, fill
from isoblk.metrics.stats import Estimate, estimate
from isoblk.programs.registry import PROGRAMS
from isoblk.report import text, values
from isoblk.run import numbers
from isoblk.run.record import ProgramReport, ReplayTotals
from isoblk.study.notes import idle, starved
from isoblk.study.notes import notes as study_notes

FEW_TENANTS = 8  # most tenants that are shown individually
IN_TIME_NS = 1_000  # granularity of User Mode Linux's clock
SAME_SIZE = 1.01  # ratio below which sizes of requests count as equal
_NAMES_ITSELF = ("scheduler", "cache")  # keys whose value needs no name
_FEW_READS = 0.01  # of all bytes: with fewer reads the hit rate has no meaning
RANGE = ", and their range"
NEVER = "never"
UNBOUNDED = "unbounded ({})"
LIMITED = 0.005  # relative difference of ideal and share by weight that is mentioned


@dataclass(frozen=True)
class Cell:
    """text, and the range of the repeats ("" without). value: orders the rows of a table; None
    without a figure."""

    text: str
    spread: str = ""
    value: float | None = None


@dataclass(frozen=True)
class Column:
    """numeric columns are aligned to the right."""

    title: str
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """rows: one per study point, with its status and its cells. notes: below the table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...]


def few(analysis: Analysis) -> bool:
    """Return whether tenants are shown individually."""
    return all(len(view.spec.tenants) <= FEW_TENANTS for view in analysis.views)


def varying(analysis: Analysis) -> list[str]:
    """Return the matrix's keys with more than one value."""
    return [
        key for key in analysis.keys if len({point.point.get(key) for point in analysis.points}) > 1
    ]


def sizes_differ(analysis: Analysis) -> bool:
    """Return whether request sizes differ between points or tenants, so that IOPS and bandwidth
    differ too."""
    sizes = [
        tenant.own_bps / tenant.own_iops
        for point in analysis.points
        for metrics in point.valid
        for tenant in metrics.tenants
        if tenant.own_iops and tenant.own_bps
    ]
    return bool(sizes) and max(sizes) > min(sizes) * SAME_SIZE


def of_none_title(analysis: Analysis) -> str:
    """Return the title of total_vs_none, which is relative bandwidth: it names the unit if relative
    IOPS would differ."""
    return "B/s of none" if sizes_differ(analysis) else "of none"


def names(analysis: Analysis) -> list[str]:
    """Return all tenants of the study, in order."""
    return list(dict.fromkeys(t.name for view in analysis.views for t in view.spec.tenants))


def summary(analysis: Analysis) -> Table:
    """Return the table of runs: repeats in one row, invalid and failed runs without figures."""
    short = text.short_keys(analysis.keys)
    one_by_one = few(analysis)
    cached = analysis.results.record.study.ssd is not None
    columns = [
        *(Column(short[key], numeric=False) for key in analysis.keys),
        Column("status", numeric=False),
        Column("IOPS"),
        Column("bandwidth"),
        Column(of_none_title(analysis)),
        Column("share error"),
        Column("Jain"),
        Column("p99"),
        *([Column("read hits")] if cached else []),
        Column("shares, %" if one_by_one else "top 1/4, %"),
    ]
    rows = []
    for point in analysis.points:
        cells = [Cell(point.point.get(key, "")) for key in analysis.keys]
        cells.append(Cell("suspect" if state(point) == "suspect" else text.status(point)))
        cells += [
            cell(point.estimate("total_iops"), numbers.count),
            cell(point.estimate("total_bps"), numbers.rate),
            cell(point.estimate("total_vs_none"), numbers.percent),
            cell(point.estimate("share_error"), numbers.percent),
            cell(point.estimate("jain"), numbers.index),
            waits(point, None, _over(point, RunMetrics.p99_worst)),
            *([cell(read_hits(point), numbers.percent)] if cached else []),
            _shares(point) if one_by_one else _top_quarter(point),
        ]
        rows.append((state(point), tuple(cells)))
    return Table(tuple(columns), tuple(rows), tuple(_notes(analysis, one_by_one)))


def glance(analysis: Analysis) -> Table:
    """Return a row for each scheduler with the range over the study's points. Empty if it would
    equal the table of runs."""
    schedulers = dict.fromkeys(point.scheduler for point in analysis.points)
    if len(schedulers) == len(analysis.points):
        return Table((), (), ())
    rows = []
    for name in schedulers:
        points = [p for p in analysis.points if p.scheduler == name]
        valid = sum(bool(p.valid) for p in points)
        cells = [Cell(name), Cell(f"{valid} of {len(points)}", value=valid)]
        for metric, form in (
            ("total_vs_none", numbers.percent),
            ("share_error", numbers.percent),
            ("jain", numbers.index),
        ):
            found = [e.mean for p in points if (e := p.estimate(metric)) is not None]
            cells.append(_range(found, form))
        rows.append(("valid" if valid else "invalid", tuple(cells)))
    columns = (
        Column("scheduler", numeric=False),
        Column("valid points"),
        Column(of_none_title(analysis)),
        Column("share error"),
        Column("Jain"),
    )
    return Table(columns, tuple(rows), ())


def tenants(metrics: RunMetrics, limit: int) -> Table:
    """Return one run's tenants, the first `limit` of them; a row per op if there are several."""
    rows = []
    for tenant in metrics.tenants[:limit]:
        ops = [op for op in tenant.latency if op != ALL]
        for op in [ALL, *ops] if len(ops) > 1 else [ALL]:
            found = tenant.latency.get(op)
            first = op == ALL
            latencies = (
                [found.mean, found.p50, found.p99, found.p99_9, found.p99_99] if found else []
            )
            error = tenant.share_error
            own = [
                tenant.name,
                str(tenant.weight),
                f"{tenant.share * 100:.2f}",
                f"{tenant.ideal * 100:.2f}",
                f"{tenant.weight_share * 100:.2f}",
                text.NOTHING if error is None else numbers.percent(error),
                numbers.count(tenant.iops),
                text.NOTHING if tenant.slowdown is None else numbers.ratio(tenant.slowdown),
            ]
            cells = own if first else [""] * len(own)
            cells.append(op if first is False or len(ops) != 1 else ops[0])
            cells += [numbers.time(value) for value in latencies] or [text.NOTHING] * 5
            rows.append(("valid", tuple(map(Cell, cells))))
    columns = (
        Column("tenant", numeric=False),
        Column("weight"),
        Column("share, %"),
        Column("ideal, %"),
        Column("by weight, %"),
        Column("error"),
        Column("IOPS"),
        Column("slowdown"),
        Column("op", numeric=False),
        Column("mean"),
        Column("p50"),
        Column("p99"),
        Column("p99.9"),
        Column("p99.99"),
    )
    left = len(metrics.tenants) - limit
    notes = [f"{left} more tenants are not listed"] if left > 0 else []
    notes += [
        f"{tenant.name}: {_replayed(tenant.replay)}"
        for tenant in metrics.tenants[:limit]
        if tenant.replay
    ]
    return Table(columns, tuple(rows), tuple(notes))


def said(analysis: Analysis) -> list[tuple[str, Table]]:
    """Return the programs' own figures: for each tenant with a program, a title and a table with a
    row for each study point. Figures that are 0 everywhere are omitted."""
    tables = []
    short = text.short_keys(analysis.keys)
    keys = [Column(short[key], numeric=False) for key in analysis.keys]
    for name in names(analysis):
        reports = _reports(analysis, name)
        units = {
            figure.name: figure.unit
            for report in reports
            for figure in report.figures
            if any(_figure(report, figure.name) for report in reports)
        }
        rows = []
        for point in analysis.points:
            if not any(_says(metrics, name) for metrics in point.valid):
                continue
            cells = [Cell(point.point.get(key, "")) for key in analysis.keys]
            cells += [
                cell(point.estimate(f"{SAYS}{name}.{figure}"), partial(numbers.figure, unit=unit))
                for figure, unit in units.items()
            ]
            rows.append((state(point), tuple(cells)))
        if rows:
            programs = " or ".join(dict.fromkeys(map(_program, reports)))
            columns = (*keys, *(Column(figure.replace(".", " ")) for figure in units))
            tables.append((f"{name}: {programs}", Table(columns, tuple(rows), ())))
    return tables


def _reports(analysis: Analysis, tenant: str) -> list[ProgramReport]:
    found = (_says(metrics, tenant) for point in analysis.points for metrics in point.valid)
    return [report for report in found if report]


def _says(metrics: RunMetrics, tenant: str) -> ProgramReport | None:
    return metrics.by_name[tenant].says if tenant in metrics.by_name else None


def _figure(report: ProgramReport, name: str) -> float:
    return next((figure.value for figure in report.figures if figure.name == name), 0.0)


def _program(report: ProgramReport) -> str:
    """Return the program, and its replacement if it is not installed."""
    program = PROGRAMS.get(report.program)
    instead = program.instead({}) if program else {}
    by = [name for name in report.used if name in instead]
    return f"{report.program}, not installed: its tests by {by[0]}" if by else report.program


def _replayed(replay: ReplayTotals) -> str:
    """Return the totals of a replay in one line."""
    parts = [f"{replay.records:,} requests of the trace issued"]
    if replay.passes > 1:
        parts.append(f"in {replay.passes} passes")
    changed = {"rounded": replay.rounded, "clipped": replay.clipped, "moved": replay.moved}
    parts += [f"{count:,} {how}" for how, count in changed.items() if count]
    if (late := replay.late) and late.ios:
        parts.append(
            f"late by {numbers.time(late.sum_ns / late.ios)} on average and"
            f" {numbers.time(late.max_ns)} at most,"
            f" {numbers.percent(late.above_1ms / late.ios)} by more than 1 ms"
        )
    return ", ".join(parts)


def troubles(analysis: Analysis) -> list[tuple[str, str, str]]:
    """Return (status, run, reason) of every suspect, invalid or failed run; the last line is about
    unfinished runs."""
    short = text.short_keys(analysis.keys)
    everything = sorted(
        [v for p in (*analysis.points, *analysis.others) for v in p.runs], key=lambda v: v.index
    )
    result = []
    missing = 0
    for view in everything:
        if view.status == "missing":
            missing += 1
        elif view.suspicions and view.spec.kind == "share":
            result.append(("suspect", text.kind_label(view, short), "; ".join(view.suspicions)))
        elif view.status != "valid":
            result.append((view.status, text.kind_label(view, short), why(view)))
    if missing:
        result.append(("missing", f"{missing} runs", "not finished; isoblk run resumes the study"))
    return result


def why(view: RunView) -> str:
    """Return why a run does not count, in one line; "" if it is valid."""
    return view.failure or ("; ".join(view.run.record.reasons) if view.run else "")


def because(result: ClaimResult, analysis: Analysis) -> list[str]:
    """Return the explanations of a verdict with the runs' own figures: once, or per point if these
    differ."""
    claim = result.claim
    found = []
    for one in result.points:

        def value(metric: str, of_other: bool, one: Judged = one) -> str:
            point = one.than if of_other else one.at
            figure = point.estimate(metric) if point else None
            return values.form(metric, analysis)(figure.mean) if figure else "nothing"

        found.append(fill(claim.why, value))
    return list(dict.fromkeys(filter(None, found)))


def measured(result: ClaimResult, analysis: Analysis) -> list[tuple[str, str]]:
    """Return the values for a claim's verdict: (point, value or why there is none)."""
    short = text.short_keys(analysis.keys)
    differ = varying(analysis)
    differ += [k for k in analysis.keys if len({point.point.get(k) for point in result.points}) > 1]
    keys = [key for key in analysis.keys if key in differ] or analysis.keys
    lines = []
    for one in result.points:
        where = ", ".join(
            one.point[key] if key in _NAMES_ITSELF else f"{short[key]} {one.point[key]}"
            for key in keys
            if key in one.point
        )
        value = one.reason
        if one.measured is not None:
            form = values.against(result, analysis)
            value = form(one.measured.mean)
            if one.measured.n > 1:
                low, high = (form(end) for end in (one.measured.low, one.measured.high))
                value += f" ({low} to {high})"
            if one.reason:
                value += f", {one.reason}"
        lines.append((where, value))
    return lines


def tally(results: Sequence[ClaimResult]) -> str:
    """Return "3 claims hold, 1 fails, 0 are undecided"."""

    def number(verdict: str) -> int:
        return sum(result.verdict == verdict for result in results)

    holds, fails, undecided = number("holds"), number("fails"), number("undecided")
    return (
        f"{holds} {'claim holds' if holds == 1 else 'claims hold'}, "
        f"{fails} {'fails' if fails == 1 else 'fail'}, "
        f"{undecided} undecided"
    )


def state(point: PointView) -> str:
    """Return a row's status: valid if all repeats are, and suspect if a figure of one is."""
    states = {view.status for view in point.runs}
    if states == {"valid"} and any(view.suspicions for view in point.runs):
        return "suspect"
    return states.pop() if len(states) == 1 else "invalid"


def read_hits(point: PointView) -> Estimate | None:
    """Return the fraction of reads that the SSD served; None if almost nothing was read, such as a
    file system's own blocks."""
    read, written = (point.estimate(f"{CACHE}.asked.{op}_bytes") for op in ("read", "write"))
    if not read or not written or read.mean <= (read.mean + written.mean) * _FEW_READS:
        return None
    return point.estimate(f"{CACHE}.read_hit_ratio")


def cell(value: Estimate | None, form: Callable[[float], str]) -> Cell:
    """Format a figure; of repeats their median and range."""
    if value is None:
        return Cell(text.NOTHING)
    return Cell(form(value.median), text.spread(value, form), value.median)


def waits(point: PointView, tenant: str | None, found: Estimate | None) -> Cell:
    """Format a tenant's latency, or for None the worst; "never" if no request was served, and the
    served fraction if the queue grows without bound."""
    for view in point.runs:
        who = starved(view.run.record) if view.run and view.status == "valid" else set()
        if tenant in who or (who and tenant is None):
            return Cell(NEVER, value=math.inf)
    served = [one for metrics in point.valid if (one := unbounded(metrics, tenant)) is not None]
    if served:
        return Cell(UNBOUNDED.format(numbers.percent(min(served))))
    return cell(found, numbers.time)


def _over(point: PointView, measure: Callable[[RunMetrics], float | None]) -> Estimate | None:
    found = [value for m in point.valid if (value := measure(m)) is not None]
    return estimate(found) if found else None


def _shares(point: PointView) -> Cell:
    if not point.valid:
        return Cell(text.NOTHING)
    by_tenant = zip(*([t.share for t in m.tenants] for m in point.valid), strict=True)
    shares = [fmean(of_repeats) for of_repeats in by_tenant]
    return Cell(" ".join(f"{share * 100:.1f}" for share in shares), value=shares[0])


def _top_quarter(point: PointView) -> Cell:
    if not point.valid:
        return Cell(text.NOTHING)
    share, ideal = (fmean(values) for values in zip(*map(top_quarter, point.valid), strict=True))
    return Cell(f"{share * 100:.1f} ({ideal * 100:.1f})", value=share)


def top_quarter(metrics: RunMetrics) -> tuple[float, float]:
    """Return share and ideal share of the heaviest quarter of the tenants."""
    heavy = sorted(metrics.tenants, key=lambda t: -t.weight)[: max(1, len(metrics.tenants) // 4)]
    return sum(t.share for t in heavy), sum(t.ideal for t in heavy)


def _range(values: Sequence[float], form: Callable[[float], str]) -> Cell:
    if not values:
        return Cell(text.NOTHING)
    low, high = form(min(values)), form(max(values))
    return Cell(low if low == high else f"{low} to {high}", value=min(values))


def _notes(analysis: Analysis, one_by_one: bool) -> list[str]:
    notes = []
    valid = [m for point in analysis.points for m in point.valid]
    if one_by_one and valid:
        texts = {
            (
                " ".join(t.name for t in m.tenants),
                " ".join(f"{t.ideal * 100:.1f}" for t in m.tenants),
            )
            for m in valid
        }
        who = " ".join(names(analysis))
        if len(texts) == 1:
            notes.append(f"shares: {who}; ideal {texts.pop()[1]}")
        else:
            notes.append(f"shares: {who}; the ideal differs between points")
    elif valid:
        notes.append("top 1/4: share of the heaviest quarter of the tenants (its ideal)")
    if valid and not all(m.capped for m in valid):
        notes.append("the ideal is the share by weight where a run of a tenant alone is missing")
    repeats = max((len(point.runs) for point in analysis.points), default=1)
    if repeats > 1:
        notes.append(f"median of {repeats} repeats, each with its own seed{RANGE}")
    if valid and sizes_differ(analysis):
        notes.append(
            "B/s of none: bandwidth / that under none. Sizes differ, so it depends on which"
            " tenants are served: read it together with share error and p99"
        )
    never = any(
        starved(view.run.record) for view in analysis.views if view.run and view.status == "valid"
    )
    notes.append(
        "p99: of the tenant that has the worst, from when a request arrived or could have begun to"
        " its end; upper bound, at most 1.6 % too high"
        + (f"; {NEVER}: nothing that it asked for was answered in the measured time" * never)
    )
    if any(unbounded(m, None) is not None for m in valid):
        notes.append("unbounded: that part of its requests was served, the others wait ever longer")
    notes += _lateness(analysis)
    notes += [*_limited(analysis), *study_notes(view.spec for view in analysis.views)]
    notes += idle(v.run.record for v in analysis.views if v.run and v.status == "valid")
    return notes


def _lateness(analysis: Analysis) -> list[str]:
    """Return a line on the latest request of all timed replays, if it was late by more than the
    clock's granularity."""
    short = text.short_keys(analysis.keys)
    late = [
        (tenant.replay.late.max_ns, tenant.name, text.label(point.point, analysis.keys, short))
        for point in analysis.points
        for metrics in point.valid
        for tenant in metrics.tenants
        if tenant.replay and tenant.replay.late
    ]
    if not late:
        return []
    worst, name, where = max(late)
    if worst < IN_TIME_NS:
        return ["timed replay: every request was issued at its time"]
    return [f"timed replay: requests are late by up to {numbers.time(worst)} ({name}, {where})"]


def _limited(analysis: Analysis) -> list[str]:
    """Return lines on the tenants whose own load limits them below their share by weight."""
    limited = dict.fromkeys(
        tenant.name
        for point in analysis.points
        for metrics in point.valid
        for tenant in metrics.tenants
        if tenant.ideal < tenant.weight_share * (1 - LIMITED)
    )
    if not limited:
        return []
    shown = list(limited)[:FEW_TENANTS]
    more = f" and {len(limited) - len(shown)} more" if len(limited) > len(shown) else ""
    return [
        "cannot use its share by weight at every point (its load alone reaches less):"
        f" {' '.join(shown)}{more}"
    ]

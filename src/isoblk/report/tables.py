# SPDX-License-Identifier: GPL-2.0-only
"""The tables in the terminal."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from isoblk.analysis.claims import ClaimResult, judge_all
from isoblk.analysis.compare import SIGNIFICANT, Comparison, Difference
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.metrics.registry import metric_text
from isoblk.report import cached, rows, text
from isoblk.result.store import ResultSet

_STYLES = {
    "valid": "",
    "invalid": "yellow",
    "failed": "red",
    "missing": "dim",
    "holds": "green",
    "fails": "red",
    "undecided": "yellow",
}
_WITH_SPREAD = {"IOPS", "share error"}  # the others' intervals are in the page
_FIGURES = 6  # of a program
_NOT_IN_TERMINAL = {"bandwidth", "status"}


def summary_table(result_set: ResultSet) -> Table:
    """What `isoblk run` prints at its end: one row a study point."""
    return points_table(analyse(result_set))


def points_table(analysis: Analysis) -> Table:
    """The table of runs, fit for 80 to 100 columns."""
    bench = cached.is_bench(analysis)
    content = cached.summary(analysis) if bench else rows.summary(analysis)
    chosen = [i for i, c in enumerate(content.columns) if c.title not in _NOT_IN_TERMINAL]
    first = "throughput" if bench else "IOPS"
    table = _table()
    for i in chosen:
        column = content.columns[i]
        table.add_column(
            escape(column.title),
            justify="right" if column.numeric else "left",
            no_wrap=column is not content.columns[-1],
        )
    for state, cells in content.rows:
        shown = {content.columns[i].title: cells[i].text for i in chosen}
        for i in chosen:
            title = content.columns[i].title
            if cells[i].spread and title in _WITH_SPREAD:
                shown[title] += f" {cells[i].spread}"
        if state != "valid":
            titles = [column.title for column in content.columns]
            status = cells[titles.index("status")].text
            known = shown[first] != text.NOTHING
            shown[first] = f"{shown[first]} ({status})" if known else status
        table.add_row(*map(escape, shown.values()), style=_STYLES[state])
    table.caption = Text("\n".join(content.notes), style="dim")
    return table


def said_tables(analysis: Analysis) -> Iterator[RenderableType]:
    """What the programs say; of many figures the first."""
    for who, content in rows.said(analysis):
        keys = len(analysis.keys)
        shown = content.columns[: keys + _FIGURES]
        table = _table()
        table.title = Text(f"what {who}, says")
        table.title_justify = "left"
        for column in shown:
            table.add_column(escape(column.title), justify="right" if column.numeric else "left")
        for _, cells in content.rows:
            table.add_row(*(escape(cell.text) for cell in cells[: len(shown)]))
        if more := len(content.columns) - len(shown):
            table.caption = Text(f"{more} more figures are in the page", style="dim")
        yield table


def claims_table(results: list[ClaimResult], analysis: Analysis) -> Table:
    """Claim, expected, measured, verdict."""
    table = _table()
    table.add_column("claim", ratio=3)
    table.add_column("expected", ratio=2)
    table.add_column("measured", ratio=3)
    table.add_column("verdict", no_wrap=True)
    for result in results:
        lines = rows.measured(result, analysis)
        values = "\n".join(f"{where}: {value}" for where, value in lines[:4])
        if len(lines) > 4:
            values += f"\nand {len(lines) - 4} more"
        table.add_row(
            escape(f"{result.claim.text} [{result.claim.source}]"),
            escape(result.expected()),
            escape(values or result.reason),
            result.verdict,
            style=_STYLES[result.verdict],
        )
    return table


def show(analysis: Analysis) -> RenderableType:
    """All of a result set that fits a terminal."""
    study = analysis.results.record.study
    known = dict(text.provenance(analysis))
    parts: list[RenderableType] = [
        Text(study.title or study.name, style="bold"),
        Text(text.footer(analysis) if known else "no run has finished", style="dim"),
        points_table(analysis),
    ]
    parts += said_tables(analysis)
    for state, which, why in rows.troubles(analysis):
        parts.append(Text(f"{state}: {which}: {why}", style=_STYLES[state]))
    if study.claim:
        results = judge_all(analysis)
        parts += [Text(), claims_table(results, analysis), Text(rows.tally(results) + ".")]
    return Group(*parts)


def comparison(result: Comparison) -> RenderableType:
    """What changed from A to B."""
    table = _table()
    for title in ("point", "metric"):
        table.add_column(title)
    for title in ("A", "B", "difference"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("confidence")
    for point in result.points:
        where = escape(" ".join(point.point.values()))
        if point.identical:
            table.add_row(where, "all", "", "", "0 %", "identical", style="dim")
        elif point.note:
            table.add_row(where, "", "", "", "", point.note, style="yellow")
        changed = [one for one in point.differences if one.matters]
        for place, one in enumerate(changed):
            table.add_row(
                where if place == 0 else "",
                escape(one.metric),
                metric_text(one.metric, one.a),
                metric_text(one.metric, one.b),
                _change(one),
                _confidence(one),
                style="bold" if one.p is not None and one.p < SIGNIFICANT else "",
            )
        if same := len(point.differences) - len(changed):
            table.add_row(
                "" if changed else where, f"{same} metrics", "", "", "0 %", "unchanged", style="dim"
            )
        table.add_section()
    parts: list[RenderableType] = [
        Text(f"{what} differs: A {a or '(none)'}, B {b or '(none)'}")
        for what, a, b in result.provenance
    ] or [Text("Same tier, kernel and modules.")]
    if result.points:
        parts.append(table)
    for side, points in (("A", result.only_a), ("B", result.only_b)):
        parts += [Text(f"only in {side}: {' '.join(point.values())}") for point in points]
    if any(one.p is not None for point in result.points for one in point.differences):
        parts.append(
            Text(f"p: Welch's t test; below {SIGNIFICANT:g} the difference is bold.", style="dim")
        )
    elif any(point.differences for point in result.points):
        parts.append(
            Text(
                "n/a: no repeats, so no interval; on the uml tier any difference is a real one.",
                style="dim",
            )
        )
    return Group(*parts)


def plain_or_rich() -> Console:
    """A console that is plain, and 100 columns wide, when its output is not a terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100, no_color=True)


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left")


def _change(one: Difference) -> str:
    return "new" if one.change is None else f"{one.change * 100:+.2f} %"


def _confidence(one: Difference) -> str:
    if one.p is None:
        return "n/a"
    return "p < 0.001" if one.p < 0.001 else f"p = {one.p:.3f}"

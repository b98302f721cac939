# SPDX-License-Identifier: GPL-2.0-only
"""The tables in the terminal."""

from collections.abc import Iterator, Set

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from isoblk.analysis.claims import ClaimResult, judge_all
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.console import new_console
from isoblk.report import cached, disks, rows, tenants, text, values
from isoblk.report.answer import answer
from isoblk.result.store import ResultSet

_STYLES = {
    "valid": "",
    "suspect": "yellow",
    "invalid": "yellow",
    "failed": "red",
    "missing": "dim",
    "holds": "green",
    "fails": "red",
    "undecided": "yellow",
}
_WITH_SPREAD = {"IOPS", "share error"}  # columns with intervals; others have them in the page
_FIGURES = 6  # of a program
_ANY_WIDTH = 10_000
_LAST_COLUMN = 24  # least width of the last column
MOST_TENANTS = 24  # rows of tenants that are shown by default


def summary_table(result_set: ResultSet) -> RenderableType:
    """Return the table that `isoblk run` prints at its end: a row for each study point."""
    return PointsTable(analyse(result_set))


class PointsTable:
    """The table of runs, in as many columns as fit.

    Bandwidth is included if it is not IOPS times one size; the index is then omitted, because the
    share error has the same information.
    """

    def __init__(self, analysis: Analysis) -> None:
        bench = cached.is_bench(analysis)
        self._content = cached.summary(analysis) if bench else rows.summary(analysis)
        self._first = "throughput" if bench else "IOPS"
        said_twice = "Jain" if rows.sizes_differ(analysis) and not bench else "bandwidth"
        self._left_out = {"status", said_twice}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the fullest table that fits the terminal."""
        last = self._content.columns[-1].title
        # Columns are dropped from the least important on; the page and --json have the intervals.
        table = self._table(_WITH_SPREAD, self._left_out)
        for spread, without in (
            ({"share error"}, set()),
            (set(), set()),
            (set(), {"Jain"}),
            (set(), {"Jain", last}),
        ):
            if _width(console, options, table) <= options.max_width:
                break
            table = self._table(spread, self._left_out | without)
        yield table

    def _table(self, with_spread: Set[str], left_out: Set[str]) -> Table:
        content = self._content
        chosen = [i for i, column in enumerate(content.columns) if column.title not in left_out]
        table = new_table()
        for i in chosen:
            column = content.columns[i]
            table.add_column(
                column.title,
                justify="right" if column.numeric else "left",
                no_wrap=column is not content.columns[-1],
            )
        for state, cells in content.rows:
            shown = {content.columns[i].title: cells[i].text for i in chosen}
            for i in chosen:
                title = content.columns[i].title
                if cells[i].spread and title in with_spread:
                    shown[title] += f" {cells[i].spread}"
            if state != "valid":
                titles = [column.title for column in content.columns]
                status = cells[titles.index("status")].text
                known = shown[self._first] != text.NOTHING
                shown[self._first] = f"{shown[self._first]} ({status})" if known else status
            table.add_row(*shown.values(), style=_STYLES[state])
        notes = content.notes
        if not with_spread:
            notes = tuple(note.replace(rows.RANGE, "; ranges: --json") for note in notes)
        if content.columns[-1].title in left_out:
            notes = tuple(note for note in notes if not note.startswith(("shares: ", "top 1/4: ")))
        table.caption = Text("\n".join(notes), style="dim")
        return table


def _width(console: Console, options: ConsoleOptions, table: Table) -> int:
    """Return the width of a table with a readable last column."""
    last = table.columns[-1]
    widest = max((cell_len(str(one)) for one in (last.header, *last.cells)), default=0)
    least = max((cell_len(word) for one in last.cells for word in str(one).split()), default=0)
    measured = Measurement.get(console, options.update(width=_ANY_WIDTH), table)
    return measured.maximum - (0 if last.no_wrap else max(0, widest - max(_LAST_COLUMN, least)))


def tenants_table(analysis: Analysis) -> Table:
    """Return a row for each tenant at each point: its throughput and latencies."""
    content = tenants.by_point(analysis)
    table = new_table()
    for column in content.columns:
        table.add_column(column.title, justify="right" if column.numeric else "left", no_wrap=True)
    for state, cells in content.rows:
        table.add_row(*(cell.text for cell in cells), style=_STYLES[state])
    table.caption = Text("\n".join(content.notes), style="dim")
    return table


def said_tables(analysis: Analysis) -> Iterator[RenderableType]:
    """Yield the programs' own figures; of many figures the first."""
    for who, content in rows.said(analysis):
        keys = len(analysis.keys)
        shown = content.columns[: keys + _FIGURES]
        table = new_table()
        table.title = Text(f"what {who}, says")
        table.title_justify = "left"
        for column in shown:
            table.add_column(column.title, justify="right" if column.numeric else "left")
        for _, cells in content.rows:
            table.add_row(*(cell.text for cell in cells[: len(shown)]))
        if more := len(content.columns) - len(shown):
            table.caption = Text(f"{more} more figures are in the page", style="dim")
        yield table


def claims_table(results: list[ClaimResult], analysis: Analysis) -> Table:
    """Return a table of claim, expected, measured, verdict."""
    table = new_table()
    table.add_column("claim", ratio=3)
    table.add_column("expected", ratio=2)
    table.add_column("measured", ratio=3)
    table.add_column("verdict", no_wrap=True)
    for result in results:
        lines = rows.measured(result, analysis)
        judged_by = "\n".join(f"{where}: {value}" for where, value in lines[:4])
        if len(lines) > 4:
            judged_by += f"\nand {len(lines) - 4} more"
        table.add_row(
            f"{result.claim.text} [{result.claim.source}]",
            values.expected(result, analysis),
            judged_by or result.reason,
            result.verdict,
            style=_STYLES[result.verdict],
        )
    return table


def show(
    analysis: Analysis,
    claims: list[ClaimResult] | None = None,
    *,
    tenant_rows: bool | None = None,
) -> RenderableType:
    """Return all of a result set that fits a terminal.

    Args:
        analysis: the points to show.
        claims: those to show, judged; None: all, judged by these points.
        tenant_rows: whether to show each tenant's figures; None: if they are few.
    """
    study = analysis.results.record.study
    known = dict(text.provenance(analysis))
    judged = judge_all(analysis) if claims is None else claims
    parts: list[RenderableType] = [
        Text(study.title or study.name, style="bold"),
        Text(disks.footer(analysis) if known else "no run has finished", style="dim"),
        Text(),
        Text(answer(analysis, judged).text),
        PointsTable(analysis),
    ]
    count = tenants.count(analysis)
    if tenant_rows or (tenant_rows is None and 0 < count <= MOST_TENANTS):
        parts.append(tenants_table(analysis))
    elif count > MOST_TENANTS:
        parts.append(Text(f"p50 and p99 of each tenant ({count} rows): --tenants", style="dim"))
    parts += said_tables(analysis)
    for state, which, why in rows.troubles(analysis):
        parts.append(Text(f"{state}: {which}: {why}", style=_STYLES[state]))
    if judged:
        parts += [Text(), claims_table(judged, analysis), Text(rows.tally(judged) + ".")]
    return Group(*parts)


def plain_or_rich() -> Console:
    """Return a console that is plain and 100 columns wide when its output is not a terminal."""
    console = new_console()
    return console if console.is_terminal else new_console(width=100, color=False)


def new_table() -> Table:
    """Return an empty table in the common style."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left")

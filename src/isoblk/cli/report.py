# SPDX-License-Identifier: GPL-2.0-only
"""The commands show, report and compare."""

from pathlib import Path
from typing import Annotated

import typer

from isoblk.analysis.compare import compare as compare_results
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.errors import UserError
from isoblk.report import tables
from isoblk.result import earlier
from isoblk.result.store import read_results

ResultDir = Annotated[Path, typer.Argument(metavar="DIR", help="A result directory.")]


def show(directory: ResultDir) -> None:
    """Print a result directory's tables: runs, and claims with their verdicts."""
    tables.plain_or_rich().print(tables.show(_analyse(directory)))
    for note in earlier.notes(directory):
        typer.echo(f"note: {note}", err=True)


def report(
    directory: ResultDir,
    beside: Annotated[
        Path | None,
        typer.Option(metavar="DIR2", help="Set its shares beside these: of another machine, say."),
    ] = None,
) -> None:
    """Write DIR/report.html, one page that opens offline, and DIR/figures/ (SVG and PNG)."""
    # Drawing takes a second to import; the other commands need none of it.
    from isoblk.report.page import write_report  # noqa: PLC0415

    other = _analyse(beside) if beside else None
    typer.echo(write_report(_analyse(directory), other))


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A result directory.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
) -> None:
    """Print how result directory B differs from A, and how sure that is."""
    result = compare_results(_analyse(a), _analyse(b))
    if not result.points:
        raise UserError("no study point in common", where=f"{a} and {b}")
    tables.plain_or_rich().print(tables.comparison(result))


def _analyse(directory: Path) -> Analysis:
    results = read_results(directory)
    analysis = analyse(results)
    if not any(view.run is not None for view in analysis.views):
        failures = [run.failure for run in results.record.runs if run.failure]
        why = f"; {len(failures)} failed, the first: {failures[0]}" if failures else ""
        raise UserError(
            f"no finished run{why}", where=str(directory), next="resume it: isoblk run STUDY"
        )
    return analysis

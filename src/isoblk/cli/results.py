# SPDX-License-Identifier: GPL-2.0-only
"""What the commands that read result directories have in common."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoblk.cli import completing
from isoblk.errors import UserError

if TYPE_CHECKING:
    from isoblk.analysis.metrics import Analysis

ResultDir = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="A result directory.", autocompletion=completing.result_directories
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="KEY=VALUE",
        help="Only points with this value of a matrix key; may be repeated.",
        autocompletion=completing.points_from(os.environ),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print all figures as CSV.")]


def analysed(directory: Path) -> "Analysis":
    """A result directory's numbers.

    Raises:
        UserError: it is none, is damaged, or no run of it has finished.
    """
    # What reads tables takes a moment to import, and Tab needs none of it.
    from isoblk.analysis.metrics import analyse  # noqa: PLC0415
    from isoblk.result.store import read_results  # noqa: PLC0415

    results = read_results(directory)
    analysis = analyse(results)
    if not any(view.run is not None for view in analysis.views):
        failures = [run.failure for run in results.record.runs if run.failure]
        why = f"; {len(failures)} failed, the first: {failures[0]}" if failures else ""
        raise UserError(
            f"no finished run{why}", where=str(directory), next="resume it: isoblk run STUDY"
        )
    return analysis


def refuse_two_forms(as_json: bool, as_csv: bool) -> None:
    """Raises UserError: both are asked for."""
    if as_json and as_csv:
        raise UserError("--json and --csv exclude each other", next="leave out one of them")

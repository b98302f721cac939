# SPDX-License-Identifier: GPL-2.0-only
"""Options and functions of the commands that read result directories."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoblk.cli import completing
from isoblk.errors import UserError, printable

if TYPE_CHECKING:
    from isoblk.analysis.metrics import Analysis

ResultDir = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Result directory.", autocompletion=completing.result_directories
    ),
]
AnyResultDir = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR",
        help="Result directory; without it, list the result directories in results/.",
        autocompletion=completing.result_directories,
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="KEY=VALUE",
        help="Only points with this value of a matrix key. May be repeated.",
        autocompletion=completing.points_from(os.environ),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print all figures as CSV.")]


RESULTS = Path("results")
"""Parent of the result directories of `isoblk run`."""


def list_results(below: Path = RESULTS) -> list[str]:
    """Return a line for each result directory: path, number of finished runs, study's title.

    Raises:
        UserError: there is no result directory.
    """
    found = []
    for path in sorted(below.glob("*/study.json")):
        try:
            record: Any = json.loads(path.read_bytes())
            runs, study = record["runs"], record["study"]
            done = sum(bool(run["id"]) for run in runs)
            title = str(study.get("title") or study["name"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            found.append((str(path.parent), "", "cannot read study.json"))
            continue
        found.append((str(path.parent), f"{done} of {len(runs)} runs", title))
    if not found:
        raise UserError(
            "no result directory found",
            where=f"{below}/",
            next="name a directory elsewhere, or run a study: isoblk run STUDY",
        )
    wide, long = (max(len(one[at]) for one in found) for at in (0, 1))
    return [printable(f"{one[0]:{wide}}  {one[1]:>{long}}  {one[2]}") for one in found]


def analysed(directory: Path) -> "Analysis":
    """Analyse a result directory.

    Raises:
        UserError: it is not a result directory, is damaged, or has no finished run.
    """
    # Imported here, because shell completion imports this module at each Tab.
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
    """Raise UserError if both --json and --csv are given."""
    if as_json and as_csv:
        raise UserError("--json and --csv exclude each other", next="remove one of them")

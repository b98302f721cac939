# SPDX-License-Identifier: GPL-2.0-only
"""What the commands that read result directories have in common."""

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
        metavar="DIR", help="A result directory.", autocompletion=completing.result_directories
    ),
]
AnyResultDir = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR",
        help="A result directory; without one, those in results/ are listed.",
        autocompletion=completing.result_directories,
        show_default=False,
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


RESULTS = Path("results")
"""Where `isoblk run` puts result directories."""


def list_results(below: Path = RESULTS) -> list[str]:
    """A line for each result directory there: its path, how many of its runs have finished, and the
    study's title.

    Raises:
        UserError: there is none.
    """
    found = []
    for path in sorted(below.glob("*/study.json")):
        try:
            record: Any = json.loads(path.read_bytes())
            runs, study = record["runs"], record["study"]
            done = sum(bool(run["id"]) for run in runs)
            title = str(study.get("title") or study["name"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            found.append((str(path.parent), "", "its study.json cannot be read"))
            continue
        found.append((str(path.parent), f"{done} of {len(runs)} runs", title))
    if not found:
        raise UserError(
            "holds no result directory",
            where=f"{below}/",
            next="name one that is elsewhere, or make one: isoblk run STUDY",
        )
    wide, long = (max(len(one[at]) for one in found) for at in (0, 1))
    return [printable(f"{one[0]:{wide}}  {one[1]:>{long}}  {one[2]}") for one in found]


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

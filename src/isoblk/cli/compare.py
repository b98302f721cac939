# SPDX-License-Identifier: GPL-2.0-only
"""isoblk compare: two result directories."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoblk.cli import completing
from isoblk.cli.help import examples
from isoblk.cli.results import Csv, Json, Only, analysed, refuse_two_forms
from isoblk.errors import RunError, UserError

if TYPE_CHECKING:
    from isoblk.analysis.compare import Comparison

_MOST_LINES = 20

app = typer.Typer()


@app.command(
    epilog=examples(
        "isoblk compare results/before results/after",
        "isoblk compare results/before results/after --only scheduler=bfq --all",
        "isoblk compare results/before results/after --fail-over 5% --metric p99",
    )
)
def compare(
    a: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="Result directory.", autocompletion=completing.result_directories
        ),
    ],
    b: Annotated[
        Path,
        typer.Argument(
            metavar="B",
            help="Result directory to compare with A.",
            autocompletion=completing.result_directories,
        ),
    ],
    only: Only = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this metric: total_bps, p99.t1, or p99 of all tenants. May be repeated.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help=f"Show all changes, not only the {_MOST_LINES} worst.")
    ] = False,
    fail_over: Annotated[
        str | None,
        typer.Option(
            metavar="N%",
            help="Exit 1 if a metric is worse by more than N %, or a point of A has no valid run"
            " in B.",
        ),
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Compare the inputs and the metrics of two result directories.

    Prints the inputs that differ (device, tenants, weights, kernel, modules, study), then the
    figures that changed, the worst first. docs/reference/metrics.md says which direction of a
    metric is better. Changes of errors are in percentage points. With repeats, --fail-over ignores
    changes that may be chance (Welch's t test, p of 0.05 or more).
    """
    # Imported here, because shell completion imports this module at each Tab.
    from isoblk.analysis.compare import compare as compared  # noqa: PLC0415
    from isoblk.analysis.only import only as chosen  # noqa: PLC0415
    from isoblk.report import changes, export, tables  # noqa: PLC0415

    refuse_two_forms(as_json, as_csv)
    limit = None if fail_over is None else _limit(fail_over)
    first = analysed(a)
    if a.resolve() == b.resolve():
        raise UserError("A and B are the same directory", where=str(a), next="name two directories")
    both = [first, analysed(b)]
    if only:
        both = chosen(both, only)
    result = compared(both[0], both[1], metric or ())
    if as_json:
        typer.echo(export.compare_json(result, a, b, limit))
    elif as_csv:
        typer.echo(export.compare_csv(result), nl=False)
    else:
        tables.plain_or_rich().print(
            changes.comparison(result, (str(a), str(b)), None if everything else _MOST_LINES)
        )
    if limit is not None:
        _require(result, limit, fail_over or "")


def _limit(text: str) -> float:
    """Parse a percentage; return it as a fraction.

    Raises:
        UserError: it is not a percentage.
    """
    number, percent, rest = text.partition("%")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not percent or rest or not 0 <= value < math.inf:
        raise UserError(f"--fail-over: {text!r} is not a percentage", next="allowed: 5%, 0.5%, ...")
    return value / 100


def _require(result: "Comparison", limit: float, shown: str) -> None:
    """Raise RunError if a metric is worse by more than the limit, or a point has no valid run."""
    from isoblk.report import changes  # noqa: PLC0415

    lost = [" ".join(point.point.values()) for point in result.points if point.lost]
    if lost:
        more = f" and of {len(lost) - 1} more points" if len(lost) > 1 else ""
        raise RunError(f"B has no valid run of {lost[0] or 'the only point'}{more}")
    if failed := result.failed(limit):
        point, worst = failed[0]
        where = " ".join(point.point.values()) or "the only point"
        figures = "1 figure is" if len(failed) == 1 else f"{len(failed)} figures are"
        raise RunError(
            f"{figures} worse by more than {shown}; the worst: {worst.metric} at {where},"
            f" {changes.change_text(worst)}"
        )

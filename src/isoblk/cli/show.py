# SPDX-License-Identifier: GPL-2.0-only
"""isoblk show: a result directory's tables in the terminal."""

from typing import Annotated

import typer

from isoblk.analysis.claims import ClaimResult, judge_all
from isoblk.analysis.metrics import Analysis
from isoblk.analysis.only import only as chosen
from isoblk.cli.help import examples
from isoblk.cli.results import Csv, Json, Only, ResultDir, analysed, refuse_two_forms
from isoblk.report import export, tables
from isoblk.result import earlier

app = typer.Typer()


@app.command(
    epilog=examples(
        "isoblk show results/weights",
        "isoblk show results/weights --only scheduler=bfq --only rw=randread --tenants",
        "isoblk show results/weights --json",
        "isoblk show results/weights --csv > weights.csv",
    )
)
def show(
    directory: ResultDir,
    only: Only = None,
    tenants: Annotated[
        bool | None,
        typer.Option(
            "--tenants/--no-tenants",
            help="Each tenant's share, p50 and p99 as well.",
            show_default=f"if these are {tables.MOST_TENANTS} rows at most",
        ),
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Print a result directory's tables: runs, and claims with their verdicts.

    What --json and --csv print is described in docs/reference/results.md.
    """
    refuse_two_forms(as_json, as_csv)
    whole = analysed(directory)
    analysis = chosen([whole], only)[0] if only else whole
    claims = _claims(whole, analysis)
    if as_json:
        typer.echo(export.show_json(analysis, claims))
    elif as_csv:
        typer.echo(export.show_csv(analysis), nl=False)
    else:
        tables.plain_or_rich().print(tables.show(analysis, claims, tenant_rows=tenants))
    for note in earlier.notes(directory):
        typer.echo(f"note: {note}", err=True)


def _claims(whole: Analysis, shown: Analysis) -> list[ClaimResult]:
    """Those that speak of a point that is shown, judged by all that they speak of."""
    keys = {point.key for point in shown.points}
    return [
        result
        for result in judge_all(whole)
        if whole is shown or any(one.at.key in keys for one in result.points)
    ]

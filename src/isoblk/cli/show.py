# SPDX-License-Identifier: GPL-2.0-only
"""isoblk show: print the tables of a result directory."""

from typing import Annotated

import typer

from isoblk.cli.help import examples
from isoblk.cli.results import (
    AnyResultDir,
    Csv,
    Json,
    Only,
    analysed,
    list_results,
    refuse_two_forms,
)
from isoblk.errors import UserError

app = typer.Typer()


@app.command(
    epilog=examples(
        "isoblk show",
        "isoblk show results/weights",
        "isoblk show results/weights --only scheduler=bfq --only rw=randread --tenants",
        "isoblk show results/weights --json",
        "isoblk show results/weights --csv > weights.csv",
    )
)
def show(
    directory: AnyResultDir = None,
    only: Only = None,
    tenants: Annotated[
        bool | None,
        typer.Option(
            "--tenants/--no-tenants",
            help="Show or hide share, p50 and p99 of each tenant.",
            show_default="shown if there are few tenants",
        ),
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Print the runs and claims of a result directory as tables.

    docs/reference/results.md describes the output of --json and --csv.
    """
    if directory is None:
        if as_json or as_csv or only:
            raise UserError(
                "no result directory given", next="name one; isoblk show lists results/"
            )
        typer.echo("\n".join(list_results()))
        return
    # Imported here, because shell completion imports this module at each Tab.
    from isoblk.analysis.claims import judge_shown  # noqa: PLC0415
    from isoblk.analysis.only import only as chosen  # noqa: PLC0415
    from isoblk.report import export, tables  # noqa: PLC0415
    from isoblk.result import earlier  # noqa: PLC0415

    refuse_two_forms(as_json, as_csv)
    whole = analysed(directory)
    analysis = chosen([whole], only)[0] if only else whole
    claims = judge_shown(whole, analysis)
    if as_json:
        typer.echo(export.show_json(analysis, claims))
    elif as_csv:
        typer.echo(export.show_csv(analysis), nl=False)
    else:
        tables.plain_or_rich().print(tables.show(analysis, claims, tenant_rows=tenants))
    for note in earlier.notes(directory):
        typer.echo(f"note: {note}", err=True)

# SPDX-License-Identifier: GPL-2.0-only
"""isoblk report: the page."""

from pathlib import Path
from typing import Annotated

import typer

from isoblk.cli.help import examples
from isoblk.cli.results import ResultDir, analysed

app = typer.Typer()


@app.command(
    epilog=examples(
        "isoblk report results/weights", "isoblk report results/my-host --beside results/my"
    )
)
def report(
    directory: ResultDir,
    beside: Annotated[
        Path | None,
        typer.Option(metavar="DIR2", help="Set its shares beside these: of another machine, say."),
    ] = None,
) -> None:
    """Write DIR/report.html, one page that opens offline, and DIR/figures/ (SVG and PNG)."""
    # Drawing takes a second to import; what is wrong with the results is told before.
    from isoblk.report.page import write_report  # noqa: PLC0415

    other = analysed(beside) if beside else None
    typer.echo(write_report(analysed(directory), other))

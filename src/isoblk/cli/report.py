# SPDX-License-Identifier: GPL-2.0-only
"""isoblk report: write the report page of a result directory."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from isoblk.cli import completing
from isoblk.cli.help import examples
from isoblk.cli.results import ResultDir, analysed
from isoblk.console import working
from isoblk.errors import printable

app = typer.Typer()


@app.command(
    epilog=examples(
        "isoblk report results/weights --open",
        "isoblk report results/weights -o weights.html",
        "isoblk report results/my-host --beside results/my",
    )
)
def report(
    directory: ResultDir,
    beside: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR2",
            help="Result directory whose shares are shown for comparison.",
            autocompletion=completing.result_directories,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write only the page, to FILE.",
            show_default="DIR/report.html",
        ),
    ] = None,
    show_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write a result directory's report: one page that opens offline, and figures.

    The page is DIR/report.html; the figures are in DIR/figures/ (SVG and PNG).
    """
    # Imported here, because figures take a second to import.
    from isoblk.report.page import check_page, write_page, write_report  # noqa: PLC0415

    if output is not None:
        # Refuse an invalid output before figures are drawn.
        check_page(output)
    with working("") as say:
        say("reading the runs")
        analysis = analysed(directory)
        other = analysed(beside) if beside else None
        if output is None:
            page = write_report(analysis, other, say)
        else:
            page = output
            write_page(analysis, page, other, say)
    typer.echo(printable(str(page)))
    if show_it and not _opens(page):
        typer.echo("note: no browser could be started; open the file manually", err=True)


def _opens(page: Path) -> bool:
    """Open the page in a browser; return whether that worked."""
    try:
        return webbrowser.open(page.absolute().as_uri())
    except webbrowser.Error:
        return False

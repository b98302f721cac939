# SPDX-License-Identifier: GPL-2.0-only
"""isoblk report: the page."""

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
            help="Set its shares beside these: of another machine, say.",
            autocompletion=completing.result_directories,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the page alone, to FILE.",
            show_default="DIR/report.html",
        ),
    ] = None,
    show_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write DIR/report.html, one page that opens offline, and DIR/figures/ (SVG and PNG)."""
    # Drawing takes a second to import; what is wrong with the results is told before.
    from isoblk.report.page import check_page, write_page, write_report  # noqa: PLC0415

    if output is not None:
        # What is refused in the end is refused before all is drawn.
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
        typer.echo("note: no browser could be started; open the file by hand", err=True)


def _opens(page: Path) -> bool:
    """Whether a browser shows the page."""
    try:
        return webbrowser.open(page.absolute().as_uri())
    except webbrowser.Error:
        return False

# SPDX-License-Identifier: GPL-2.0-only
"""isoblk show: a result directory's tables in the terminal."""

import typer

from isoblk.cli.help import examples
from isoblk.cli.results import ResultDir, analysed
from isoblk.report import tables
from isoblk.result import earlier

app = typer.Typer()


@app.command(epilog=examples("isoblk show results/weights"))
def show(directory: ResultDir) -> None:
    """Print a result directory's tables: runs, and claims with their verdicts."""
    tables.plain_or_rich().print(tables.show(analysed(directory)))
    for note in earlier.notes(directory):
        typer.echo(f"note: {note}", err=True)

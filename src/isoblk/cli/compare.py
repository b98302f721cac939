# SPDX-License-Identifier: GPL-2.0-only
"""isoblk compare: two result directories."""

from pathlib import Path
from typing import Annotated

import typer

from isoblk.analysis.compare import compare as compare_results
from isoblk.cli.help import examples
from isoblk.cli.results import analysed
from isoblk.errors import UserError
from isoblk.report import tables

app = typer.Typer()


@app.command(epilog=examples("isoblk compare results/before results/after"))
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A result directory.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
) -> None:
    """Say what differs between two result directories, and what that changed."""
    result = compare_results(analysed(a), analysed(b))
    if not result.points:
        raise UserError("no study point in common", where=f"{a} and {b}")
    tables.plain_or_rich().print(tables.comparison(result))

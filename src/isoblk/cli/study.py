# SPDX-License-Identifier: GPL-2.0-only
"""isoblk study: list, check, describe and import studies."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isoblk.cli import completing
from isoblk.cli.help import examples
from isoblk.cli.options import Force
from isoblk.console import new_console
from isoblk.errors import UserError, printable
from isoblk.files import new_file
from isoblk.run.spec import label
from isoblk.study.expand import expand
from isoblk.study.fiojob import from_fio
from isoblk.study.fromreplay import from_replay
from isoblk.study.load import load_study
from isoblk.study.model import Expansion
from isoblk.study.new import new_study
from isoblk.study.notes import notes
from isoblk.study.schema import study_schema
from isoblk.study.shipped import choose, shipped

app = typer.Typer(help="List, check, describe and import studies.")
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="File to write.", show_default="standard output"
    ),
]


@app.command("list", epilog=examples("isoblk study list"))
def list_() -> None:
    """List the shipped studies. `isoblk run NAME` runs a study."""
    rows = Table(box=None, pad_edge=False)
    for heading in ("name", "title"):
        rows.add_column(heading, overflow="fold")
    for one in shipped():
        rows.add_row(one.name, one.title)
    new_console().print(rows)


@app.command(epilog=examples("isoblk study check my.toml", "isoblk study check weights"))
def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY",
            help="Study file (TOML), or the name of a shipped study.",
            autocompletion=completing.studies,
        ),
    ],
) -> None:
    """Check a study, and show its matrix and number of runs."""
    chosen = choose(file)
    if chosen.note:
        typer.echo(f"note: {printable(chosen.note)}", err=True)
    study, _ = load_study(chosen.path)
    expansion = expand(study)
    console = new_console(soft_wrap=True)
    console.print(f"ok: {len(expansion.runs)} runs ({_kinds(expansion)})")
    if study.matrix:
        table = Table("field", "values", box=None, pad_edge=False)
        for key, values in study.matrix.items():
            table.add_row(key, " ".join(label(value) for value in values))
        console.print(table)
    for note in notes(planned.spec for planned in expansion.runs):
        typer.echo(f"note: {note}", err=True)


def _kinds(expansion: Expansion) -> str:
    counts = Counter(run.spec.kind for run in expansion.runs)
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())


@app.command(epilog=examples("isoblk study schema > study.schema.json"))
def schema() -> None:
    """Print the JSON schema of study files."""
    typer.echo(json.dumps(study_schema(), indent=2))


@app.command(epilog=examples("isoblk study new my.toml", "isoblk run my.toml"))
def new(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Study to write.")] = Path(
        "study.toml"
    ),
    force: Force = False,
) -> None:
    """Write a commented example study to edit."""
    with new_file(file, force=force) as written:
        written.write_text(new_study(file), encoding="utf-8")
    typer.echo(f"{printable(str(file))}: edit it; next: isoblk run {printable(str(file))}")


@app.command("from-fio", epilog=examples("isoblk study from-fio my.fio -o my.toml"))
def import_fio(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="fio job file.")],
    output: Output = None,
    force: Force = False,
) -> None:
    """Make a study from a fio job file, and warn of options that have no equivalent."""
    _write(*from_fio(job), output, [job], force)


@app.command("from-capture", epilog=examples("isoblk study from-capture db.isotrace -o db.toml"))
def import_capture(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="Trace written by isoblk capture.")
    ],
    output: Output = None,
    force: Force = False,
) -> None:
    """Make a study from a captured trace: a tenant for each cgroup, with its weight."""
    # Imported here, because the other commands do not read traces.
    from isoblk.study.fromcapture import from_capture  # noqa: PLC0415
    from isoblk.trace.names import names_file  # noqa: PLC0415

    if not trace.is_file():
        raise UserError("no such trace", where=str(trace), next="see: isoblk capture --help")
    _write(*from_capture(trace), output, [trace, names_file(trace)], force)


@app.command("from-replay", epilog=examples("isoblk study from-replay config.cfg -o replay.toml"))
def import_replay(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            help="config.cfg of trace-replay-with-cgroup: lines of WEIGHT TRACEFILE.",
        ),
    ],
    output: Output = None,
    force: Force = False,
) -> None:
    """Make a study from a trace-replay-with-cgroup configuration: a tenant for each line."""
    text, warnings, traces = from_replay(config)
    _write(text, warnings, output, [config, *traces], force)


def _write(
    text: str, warnings: list[str], output: Path | None, inputs: list[Path], force: bool
) -> None:
    """Print a study, or write and check it."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        with new_file(output, inputs=inputs, force=force) as new:
            new.write_text(text, encoding="utf-8")
        try:
            load_study(output)
        except UserError as error:
            warnings.append(f"the study cannot run as it is: {error}")
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)

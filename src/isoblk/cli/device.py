# SPDX-License-Identifier: GPL-2.0-only
"""isoblk device: list, show, check and fit device presets."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isoblk.cli.help import examples
from isoblk.cli.options import Force, Jobs
from isoblk.cli.progress import progress_bar
from isoblk.console import new_console
from isoblk.device import show, text
from isoblk.device.fiojson import State, read_fio
from isoblk.device.fit import Fit, estimate, refine
from isoblk.device.hwdb import expect_entries
from isoblk.device.measure import Measured, measure
from isoblk.device.text import figure
from isoblk.errors import RunError, UserError, printable
from isoblk.files import new_file
from isoblk.kernel import DEFAULT_VERSION
from isoblk.lab.lab import Lab
from isoblk.machine.iocost_hwdb import FIGURES, Database, databases, read_hwdb
from isoblk.study.model import ExpectEntry
from isoblk.study.presets import load_device, load_preset, preset_names

# Wall-clock time after which a run counts as hung; the longest takes seconds.
_TIME_LIMIT_S = 300
_ANY_WIDTH = 10_000
_BEFORE_TITLE = 33  # columns before the title in a list
_PIPE = 200  # columns without a terminal: no line is cut

app = typer.Typer(help="List, check and make device presets.")
KernelVersion = Annotated[
    str, typer.Option("--kernel", metavar="VERSION", help="Version of the lab's kernel.")
]


@app.command("list", epilog=examples("isoblk device list"))
def list_() -> None:
    """List the presets."""
    console = new_console()
    rows = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for title in ("preset", "model", "written"):
        rows.add_column(title, no_wrap=True)
    rows.add_column("title")
    for name in preset_names():
        device = load_device(name)
        kind = show.kind(device).removeprefix("vdisk ")
        title = load_preset(name).title
        if console.is_terminal and len(title) > console.width - _BEFORE_TITLE:
            # `isoblk device show` prints the whole title.
            title = title[: max(1, console.width - _BEFORE_TITLE - 1)] + "…"
        rows.add_row(name, kind, show.written(device), title)
    if not console.is_terminal:
        console = new_console(width=_PIPE)
    console.print(rows)
    console.print(f"\n{show.LIST_KEY}")


@app.command("show", epilog=examples("isoblk device show 980pro-1t"))
def show_(
    preset: Annotated[
        str,
        typer.Argument(
            metavar="PRESET",
            help="Name of a preset, or a preset's file.",
            autocompletion=lambda: list(preset_names()),
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a preset: source, state, attributes, and published figures."""
    found, device = load_preset(preset), load_device(preset)
    if as_json:
        typer.echo(json.dumps(show.record(preset, found, device)))
        return
    console = new_console(soft_wrap=True)
    console.print(printable(found.title))
    state = show.state(device)
    console.print(show.kind(device) + (f", {state}" if state else ""))
    console.print()
    for line in found.source.strip().splitlines():
        console.print(printable(line))
    console.print()
    console.print(show.attribute_table(device))
    if note := show.size_note(device):
        console.print(note)
    if found.expect:
        console.print(
            "\nPublished figures of the drive (`isoblk device check` compares the model with them):"
        )
        console.print(show.expect_table(found.expect))


@app.command(epilog=examples("isoblk device check", "isoblk device check 980pro-1t -j 2"))
def check(
    presets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PRESET]...",
            help="Names of presets, or their files.",
            show_default="all",
            autocompletion=lambda: list(preset_names()),
        ),
    ] = None,
    jobs: Jobs = 1,
    kernel: KernelVersion = DEFAULT_VERSION,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure each published figure of a preset in the lab.

    Exit 1 if a figure that the preset was fitted to is off by more than 5 %, a 99th percentile by
    more than 15 %. Other figures do not change the exit status. Their tolerance is 15 %, for
    medians and 99th percentiles a factor of 1.5, for higher percentiles and the 99th percentile of
    writes a factor of 2.
    """
    wanted = {name: load_preset(name) for name in presets or preset_names()}
    if presets:
        for name, preset in wanted.items():
            if not preset.expect:
                raise UserError(
                    "the preset has no figures to check", where=name, next="add an [[expect]]"
                )
    figures = {name: list(preset.expect) for name, preset in wanted.items() if preset.expect}
    devices = {name: load_device(name) for name in figures}
    total = sum(map(len, figures.values()))
    with (
        Lab.open(version=kernel, jobs=jobs, time_limit_s=_TIME_LIMIT_S) as lab,
        _progress(total) as advance,
    ):
        measured = {
            name: measure(devices[name], expect, lab.bench, lab.executor, advance)
            for name, expect in figures.items()
        }
    if as_json:
        typer.echo(json.dumps([_record(n, one) for n, ones in measured.items() for one in ones]))
    else:
        console = new_console(soft_wrap=True)
        for one_table in text.tables(measured):
            console.print(one_table)
    held = sum(one.expect.fitted for ones in measured.values() for one in ones)
    off = [(name, one) for name, ones in measured.items() for one in ones if one.fails]
    if off:
        off.sort(key=lambda pair: -abs(pair[1].error))
        said = "; ".join(f"{name}: {one.expect.what}, {one.error:+.1%}" for name, one in off)
        raise RunError(f"{len(off)} of {held} figures are off by more than the tolerance: {said}")


@app.command(
    epilog=examples(
        "isoblk device fit randread.json write.json -o mine.toml",
        "isoblk device fit --iocost",
        "isoblk device fit --iocost --model KXG50ZNV256G_TOSHIBA -o kxg5.toml",
    )
)
def fit(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Results of fio --output-format=json; with --iocost a database of udev.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Preset to write (TOML)."),
    ] = None,
    state: Annotated[
        State,
        typer.Option(
            help="State of the drive when fio measured random writes: steady or erased (fresh)."
        ),
    ] = "steady",
    iocost: Annotated[
        bool,
        typer.Option(
            "--iocost",
            help="Fit the figures that io.cost has of --model; without it list the models.",
        ),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="With --iocost: drive model, as the kernel names it."),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=20, help="Number of corrections by measurements in the lab."
        ),
    ] = 5,
    jobs: Jobs = 1,
    kernel: KernelVersion = DEFAULT_VERSION,
    force: Force = False,
) -> None:
    """Fit a preset to measurements of a drive, and print the errors of the fit."""
    files = results or []
    if model is not None and not iocost:
        raise UserError("--model needs io.cost's database", next="add --iocost")
    if iocost:
        files = files or databases()
        database = read_hwdb(files)
        for line in database.left_out:
            typer.echo(f"omitted: {printable(line)}", err=True)
        if model is None:
            _list_models(database)
            return
        known = database.model(model)
        title = known.model
        of = f"io.cost's figures of {known.model}"
    elif not files:
        raise UserError("no results of fio given", next="name fio's JSON files, or add --iocost")
    if output is None:
        raise UserError("no output file given", next="add -o FILE.toml")
    with new_file(output, inputs=files, force=force) as new:
        if iocost:
            expect = list(expect_entries(known, files[-1].name))
        else:
            title, of = output.stem, ", ".join(path.name for path in files)
            expect = _measured_by_fio(files, state)
        best = _fit(expect, rounds, jobs, kernel)
        source = f"Fitted by isoblk device fit to {of}"
        rows = [one.expect for one in best.measured]
        new.write_text(text.preset_toml(title, source, best.device, rows), encoding="utf-8")
    console = new_console(soft_wrap=True)
    for shown in text.tables({output.stem: best.measured}):
        console.print(shown)
    console.print(f'wrote {output}; use it as: device = "{output}"')


def _list_models(database: Database) -> None:
    rows = Table("model", "solution", box=None, pad_edge=False)
    for name in FIGURES:
        rows.add_column(name, justify="right", no_wrap=True)
    for one in database.known:
        figures = [
            figure(one.figures[name], "bps" if name.endswith("bps") else "iops") for name in FIGURES
        ]
        rows.add_row(printable(one.model), printable(one.solution), *figures)
    # Never wrapped: --model needs the whole name.
    new_console(soft_wrap=True, width=_ANY_WIDTH).print(rows)


def _measured_by_fio(results: list[Path], state: State) -> list[ExpectEntry]:
    """Return the figures in fio's results.

    Raises:
        UserError: no job can be used.
    """
    found = [read_fio(path, state) for path in results]
    for line in (line for one in found for line in one.left_out):
        typer.echo(f"omitted: {printable(line)}", err=True)
    expect = _distinct([entry for one in found for entry in one.figures])
    if not expect:
        raise UserError(
            "no usable job",
            where=", ".join(map(str, results)),
            next="measure sequential and random reads and writes, one job at a time, with direct=1",
        )
    return expect


def _fit(expect: list[ExpectEntry], rounds: int, jobs: int, kernel: str) -> Fit:
    """Return the device that comes nearest to the figures."""
    device = estimate(expect)
    with (
        Lab.open(version=kernel, jobs=jobs, time_limit_s=_TIME_LIMIT_S) as lab,
        _progress(len(expect) * (rounds + 1)) as advance,
    ):
        return refine(
            device,
            expect,
            lambda one: measure(one, expect, lab.bench, lab.executor, advance),
            rounds,
        )


def _distinct(figures: list[ExpectEntry]) -> list[ExpectEntry]:
    """Keep the last entry of each figure."""
    return list({(one.what, one.metric): one for one in figures}.values())


def _record(name: str, one: Measured) -> dict[str, object]:
    expect = one.expect
    return {
        "preset": name,
        "what": expect.what,
        "state": expect.state,
        "metric": expect.metric,
        "source": expect.source,
        "fitted": expect.fitted,
        "expected": expect.value,
        "model": one.value,
        "error": one.error,
        "allowed": one.allowed,
        "ok": one.ok,
    }


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar; yield the function that advances it by one run."""
    console = new_console(stderr=True)
    with progress_bar(console, transient=True, disable=not console.is_terminal) as bar:
        yield partial(bar.advance, bar.add_task("runs", total=total))

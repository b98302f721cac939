# SPDX-License-Identifier: GPL-2.0-only
"""isoblk device: the presets, whether they do what their sources say, and one's own."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isoblk.campaign.execute import Bench, make_bench
from isoblk.cli.help import examples
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
from isoblk.kernel import DEFAULT_VERSION, find, hold, host_library
from isoblk.machine.iocost_hwdb import FIGURES, Database, databases, read_hwdb
from isoblk.machine.uml import Uml
from isoblk.study.model import ExpectEntry
from isoblk.study.presets import load_device, load_preset, preset_names

# The longest figure of the presets takes seconds; this one hangs.
_TIME_LIMIT_S = 300
_ANY_WIDTH = 10_000
_BEFORE_TITLE = 33  # columns of a list's line
_PIPE = 200  # columns of a list that no terminal shows: nothing of it is cut off

app = typer.Typer(help="List, check and make device presets.")
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Machines side by side.")]
KernelVersion = Annotated[str, typer.Option("--kernel", help="Version of the lab's kernel.")]


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
            # `isoblk device show` has all of it.
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
            help="A preset, or its file.",
            autocompletion=lambda: list(preset_names()),
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a preset is: its source, state, attributes, and the figures it is held to."""
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
        console.print("\nPublished of the drive (`isoblk device check` holds the model to it):")
        console.print(show.expect_table(found.expect))


@app.command(epilog=examples("isoblk device check", "isoblk device check 980pro-1t -j 2"))
def check(
    presets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PRESET]...",
            help="Presets, or their files; all if none.",
            autocompletion=lambda: list(preset_names()),
        ),
    ] = None,
    jobs: Jobs = 1,
    kernel: KernelVersion = DEFAULT_VERSION,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure each figure of a preset's source in the lab.

    Exit 1 if one that a preset was fitted to is off by over 5 %, or 15 % of a 99th percentile.
    Others judge the model, and change no exit status: they may differ by 15 %, medians and 99th
    percentiles by a factor of 1.5, the tail beyond, and the 99th percentile of writes, by 2.
    """
    wanted = {name: load_preset(name) for name in presets or preset_names()}
    if presets:
        for name, preset in wanted.items():
            if not preset.expect:
                raise UserError("has no [[expect]]: nothing to check", where=name)
    figures = {name: list(preset.expect) for name, preset in wanted.items() if preset.expect}
    devices = {name: load_device(name) for name in figures}
    total = sum(map(len, figures.values()))
    with (
        _bench(kernel) as bench,
        ThreadPoolExecutor(max_workers=jobs) as executor,
        _progress(total) as advance,
    ):
        measured = {
            name: measure(devices[name], expect, bench, executor, advance)
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
        raise RunError(f"{len(off)} of {held} figures are off by more than is allowed: {said}")


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
            help="fio's --output-format=json; with --iocost a database of udev's.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The preset's file (TOML).")
    ] = None,
    state: Annotated[
        State,
        typer.Option(
            help="The drive's when random writes were measured: long overwritten, or erased."
        ),
    ] = "steady",
    iocost: Annotated[
        bool,
        typer.Option("--iocost", help="Fit io.cost's figures of a drive model; list the models."),
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="With --iocost: the drive model, as the kernel names it.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=0, max=20, help="Corrections after runs in the lab; 0: none.")
    ] = 5,
    jobs: Jobs = 1,
    kernel: KernelVersion = DEFAULT_VERSION,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the preset's file if it is there.")
    ] = False,
) -> None:
    """Make a preset of what was measured on a drive, and print how well it fits."""
    files = results or []
    if model is not None and not iocost:
        raise UserError("--model is of io.cost's database", next="add --iocost, or leave it out")
    if iocost:
        files = files or databases()
        database = read_hwdb(files)
        for line in database.left_out:
            typer.echo(f"left out: {printable(line)}", err=True)
        if model is None:
            _list_models(database)
            return
        known = database.model(model)
        title = known.model
        of = f"io.cost's figures of {known.model}"
    elif not files:
        raise UserError("no file of fio's named", next="name its JSON, or add --iocost")
    if output is None:
        raise UserError("nowhere to write the preset", next="add -o FILE.toml")
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
    console.print(f'{output} is written; use it as: device = "{output}"')


def _list_models(database: Database) -> None:
    rows = Table("model", "solution", box=None, pad_edge=False)
    for name in FIGURES:
        rows.add_column(name, justify="right", no_wrap=True)
    for one in database.known:
        figures = [
            figure(one.figures[name], "bps" if name.endswith("bps") else "iops") for name in FIGURES
        ]
        rows.add_row(printable(one.model), printable(one.solution), *figures)
    # As wide as it is: --model needs a whole name.
    new_console(soft_wrap=True, width=_ANY_WIDTH).print(rows)


def _measured_by_fio(results: list[Path], state: State) -> list[ExpectEntry]:
    """What fio measured. Raises UserError: nothing of it can be used."""
    found = [read_fio(path, state) for path in results]
    for line in (line for one in found for line in one.left_out):
        typer.echo(f"left out: {printable(line)}", err=True)
    expect = _distinct([entry for one in found for entry in one.figures])
    if not expect:
        raise UserError(
            "no job that can be used",
            where=", ".join(map(str, results)),
            next="measure reads and writes, sequential and random, each alone, with direct=1",
        )
    return expect


def _fit(expect: list[ExpectEntry], rounds: int, jobs: int, kernel: str) -> Fit:
    """The device that comes nearest to the figures."""
    device = estimate(expect)
    with (
        _bench(kernel) as bench,
        ThreadPoolExecutor(max_workers=jobs) as executor,
        _progress(len(expect) * (rounds + 1)) as advance,
    ):
        return refine(
            device, expect, lambda one: measure(one, expect, bench, executor, advance), rounds
        )


def _distinct(figures: list[ExpectEntry]) -> list[ExpectEntry]:
    """The last of those that measure the same."""
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
def _bench(version: str) -> Iterator[Bench]:
    kernel = find(version)
    with hold(kernel):
        machine = Uml(kernel, host_library(kernel), time_limit_s=_TIME_LIMIT_S)
        try:
            yield make_bench(machine, kernel)
        finally:
            machine.stop()


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar; what it gives is called when a run has ended."""
    console = new_console(stderr=True)
    with progress_bar(console, transient=True, disable=not console.is_terminal) as bar:
        yield partial(bar.advance, bar.add_task("runs", total=total))

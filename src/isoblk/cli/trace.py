# SPDX-License-Identifier: GPL-2.0-only
"""isoblk trace: describe, import, export, cut and make traces."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich import box
from rich.table import Table

from isoblk.cli.help import examples
from isoblk.cli.options import Force
from isoblk.errors import UserError
from isoblk.files import new_file, new_files
from isoblk.report.tables import plain_or_rich
from isoblk.run import numbers
from isoblk.run.units import parse_size, parse_time
from isoblk.trace import formats
from isoblk.trace.batch import TIME_UNITS
from isoblk.trace.compact import SUFFIX, Header, writing
from isoblk.trace.convert import Imported, import_trace
from isoblk.trace.cut import Part
from isoblk.trace.cut import cut as cut_trace
from isoblk.trace.export import TARGETS, export
from isoblk.trace.formats.columns import (
    SEPARATORS,
    Columns,
    parse_columns,
    parse_ops,
    unit_bytes,
)
from isoblk.trace.info import TraceInfo, describe
from isoblk.trace.names import keep_names, names_file
from isoblk.trace.plausible import doubt
from isoblk.trace.resolve import resolve, source_file, title
from isoblk.trace.synth import load_recipe, synthesize

_FEW = 8  # number of streams, sizes or places that are printed

app = typer.Typer(
    help="Describe, import, export, cut and make traces of block I/O.\n\n"
    f"Input formats: {formats.NAMES}. Output formats: {' '.join(TARGETS)}."
)
Output = Annotated[
    Path, typer.Option("-o", "--output", metavar=f"FILE{SUFFIX}", help="File to write.")
]
TimeUnit = Annotated[
    Literal["ns", "us", "ms", "s"] | None,
    typer.Option(help="Unit of times in the input.", show_default="set by the format"),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="Trace file of any input format, recipe (.toml), or name of a stand-in.",
    ),
]


@app.command(
    "import",
    help=f"Convert trace files to a compact trace. Formats: {formats.NAMES}.",
    epilog=examples(
        "isoblk trace import usr_0.csv.gz -o usr_0.isotrace",
        "isoblk trace import sda.blktrace.0 sda.blktrace.1 -o sda.isotrace",
        "isoblk trace import ns.csv --format spc --time-unit ns -o ns.isotrace",
        "isoblk trace import my.csv --columns time,op,offset,size --time-unit us -o my.isotrace",
        "isoblk trace import my.csv --columns time=ts,op=rw,offset=lba,size=len --time-unit s"
        " --offset-unit sector --ops 0=read,1=write -o my.isotrace",
    ),
)
def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Trace files, also compressed (gzip, xz, zstd). All must share one clock.",
        ),
    ],
    output: Output,
    name: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format of the files.",
            show_default="detected from the content",
        ),
    ] = None,
    skip_bad: Annotated[
        int,
        typer.Option("--skip-bad", metavar="N", min=0, help="Skip up to N damaged records."),
    ] = 0,
    time_unit: TimeUnit = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help='Columns of a table, in order: time,op,offset,size ("-" skips a column); or by'
            " name or position: time=ts,op=4,offset=lba,size=6."
            " Optional: volume or stream, flags.",
        ),
    ] = None,
    offset_unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="Unit of the offset column: byte, sector or a size as 4k.",
            show_default="byte",
        ),
    ] = None,
    size_unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="Unit of the size column: byte, sector or a size as 4k.",
            show_default="byte",
        ),
    ] = None,
    separator: Annotated[
        Literal["comma", "semicolon", "tab", "bar", "space"] | None,
        typer.Option(help="Separator of the columns.", show_default="detected from the first line"),
    ] = None,
    ops: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Spellings of operations: 0=read,1=write."),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN=TEXT", help="Only lines with this text in the column: disk=0."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Import."""
    words = {
        "--offset-unit": offset_unit,
        "--size-unit": size_unit,
        "--separator": separator,
        "--ops": ops,
        "--only": only,
    }
    table = _columns(columns, name, time_unit, words)
    with _new_trace(output, files, force) as new:
        imported = import_trace(
            files,
            new,
            name=name,
            skip_bad=skip_bad,
            time_unit=None if table else time_unit,
            columns=table,
        )
    for place in imported.skipped[:_FEW]:
        typer.echo(f"skipped: {place}", err=True)
    if len(imported.skipped) > _FEW:
        typer.echo(f"skipped: {len(imported.skipped) - _FEW} more", err=True)
    typer.echo(_written(output, imported.header))
    for line in _account(imported):
        typer.echo(line)
    _say_doubt(imported.header.records, imported.header.span_ns)


def _columns(
    columns: str | None, name: str | None, time_unit: str | None, words: Mapping[str, str | None]
) -> Columns | None:
    """Return the columns that the options describe; None without --columns.

    Raises:
        UserError: options are invalid or exclude each other.
    """
    if columns is None:
        if given := [option for option, word in words.items() if word is not None]:
            raise UserError(f"{given[0]} needs --columns", next="see: isoblk trace import -h")
        return None
    if name not in (None, "csv"):
        raise UserError(f"--format {name} has fixed columns", next="remove --columns")
    if time_unit is None:
        raise UserError("no unit of times given", next="add --time-unit ns, us, ms or s")
    places, in_order = parse_columns(columns)
    only = words["--only"]
    column, equals, text = (only or "").partition("=")
    if only is not None and not (column.strip() and equals):
        raise UserError(f"--only {only}: not COLUMN=TEXT", next="as in --only disk=0")
    chosen = words["--separator"]
    return Columns(
        places,
        in_order,
        time_ns=TIME_UNITS[time_unit],
        offset_bytes=unit_bytes("--offset-unit", words["--offset-unit"] or "byte"),
        size_bytes=unit_bytes("--size-unit", words["--size-unit"] or "byte"),
        separator=SEPARATORS[chosen] if chosen else None,
        ops=parse_ops(words["--ops"]) if words["--ops"] is not None else {},
        only=(column.strip(), text.strip()) if only is not None else None,
    )


def _say_doubt(records: int, span_ns: int) -> None:
    if text := doubt(records, span_ns):
        typer.echo(f"note: {text}", err=True)


def _account(imported: Imported) -> list[str]:
    lines = [f"format: {' '.join(imported.formats)}"]
    if imported.left_out:
        lines.append(f"omitted records that are not requests: {imported.left_out:,}")
    if imported.runs > 1:
        lines.append(f"records were not in order of time: merged {imported.runs} sorted parts")
    for volume in sorted(imported.volumes, key=lambda volume: volume.base)[:_FEW]:
        lines.append(
            f"volume {volume.number}: stream {volume.stream}, from byte {volume.base:,},"
            f" {numbers.count(volume.size)}B, {volume.records:,} records"
        )
    if len(imported.volumes) > _FEW:
        lines.append(f"and {len(imported.volumes) - _FEW} more volumes")
    return lines


def _written(path: Path, header: Header) -> str:
    return (
        f"{path}: {header.records:,} records, {header.span_ns / 1e9:,.3f} s,"
        f" addresses up to {numbers.count(header.max_end)}B"
    )


@app.command(
    epilog=examples(
        "isoblk trace info usr_0.csv.gz", "isoblk trace info exchange --figures figures"
    )
)
def info(
    trace: Source,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write figures (SVG) to this directory.")
    ] = None,
    time_unit: TimeUnit = None,
    force: Annotated[bool, typer.Option("--force", help="Replace figures that exist.")] = False,
) -> None:
    """Describe a trace: rate, mix, sizes, footprint, sequentiality, hot spots, bursts."""
    found = describe(resolve(trace, time_unit))
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
    else:
        console = plain_or_rich()
        console.print(_summary(title(trace), found))
        if len(found.streams) > 1 or any(stream.name for stream in found.streams):
            console.print(_streams(found))
    _say_doubt(found.records, found.span_ns)
    if figures:
        _draw(found, title(trace), figures, force)


def _draw(found: TraceInfo, name: str, directory: Path, force: bool) -> None:
    # Imported here, because figures take a second to import.
    from isoblk.report.figures.traces import make_figures  # noqa: PLC0415

    drawn = make_figures(found, name)
    paths = [directory / f"{figure.name}.svg" for figure in drawn]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write: {error.strerror}", where=str(directory)) from None
    with new_files(paths, force=force) as new:
        for figure, path in zip(drawn, new, strict=True):
            path.write_text(figure.svg)
    for path in paths:
        typer.echo(path, err=True)


def _summary(name: str, found: TraceInfo) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))

    def row(name: str, *parts: str) -> None:
        table.add_row(name, ", ".join(parts))

    row("trace", name)
    row("records", f"{found.records:,}")
    row("time", f"{found.span_ns / 1e9:,.3f} s")
    row("rate", f"{numbers.count(found.iops)} requests/s", numbers.rate(found.bytes_a_second))
    mix = [f"{numbers.percent(op.share)} {op.op}" for op in found.ops]
    ratio = found.read_write
    row("mix", *mix, *([f"read:write {ratio:.3g}"] if ratio else []))
    if found.fua:
        row("FUA", f"{found.fua:,}")
    for op in found.ops:
        if op.bytes:
            common = sorted(op.sizes, key=lambda size: -size[1])[:_FEW]
            row(
                f"{op.op} sizes",
                f"mean {numbers.count(op.mean_bytes)}B",
                *(f"p{percent:g} {size:,}" for percent, size in op.percentiles if percent >= 50),
                "most common " + " ".join(f"{size:,}" for size, _ in common),
            )
    row("addresses", f"up to {numbers.count(found.max_end)}B")
    row(
        "footprint",
        f"{numbers.count(found.footprint)}B in blocks of {found.block_bytes:,}",
        f"{numbers.count(found.written)}B written",
    )
    row(
        "sequential",
        f"{numbers.percent(found.sequential)} of requests",
        f"mean run {numbers.count(found.mean_run_bytes)}B",
    )
    row("hot spots", *(f"{numbers.percent(p)} take {numbers.percent(got)}" for p, got in found.hot))
    row(
        "inter-arrival",
        f"mean {numbers.time(found.gap_mean_ns)}",
        f"cv {found.gap_cv:.3g}",
        *(f"p{percent:g} {numbers.time(ns)}" for percent, ns in found.gaps),
    )
    row(
        "bursts",
        *(
            f"{numbers.time(burst.window_ns)}: dispersion {burst.dispersion:.3g}, peak"
            f" {burst.peak:.3g}x"
            for burst in found.bursts
        ),
    )
    return table


def _streams(found: TraceInfo) -> Table:
    named = any(stream.name for stream in found.streams)
    columns = ("stream", *(["cgroup"] if named else []), "records", "bytes", "from", "to")
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for stream in sorted(found.streams, key=lambda stream: -stream.records)[:_FEW]:
        table.add_row(
            str(stream.stream),
            *([stream.name] if named else []),
            f"{stream.records:,}",
            f"{stream.bytes:,}",
            f"{stream.lowest:,}",
            f"{stream.end:,}",
        )
    if len(found.streams) > _FEW:
        table.caption = f"and {len(found.streams) - _FEW} more"
    return table


@app.command(
    epilog=examples("isoblk trace cut usr_0.isotrace -o hour.isotrace --time 2h:3h --move")
)
def cut(
    trace: Source,
    output: Output,
    records: Annotated[
        str | None, typer.Option(metavar="A:B", help="Records A to B - 1, counted from 0.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="A:B", help="Time since the first record: 10s:1m.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="A:B", help="Address range: 0:64g.")
    ] = None,
    stream: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="Number of a stream. May be repeated."),
    ] = None,
    move: Annotated[
        bool, typer.Option("--move", help="Shift addresses so that the lowest is 0.")
    ] = False,
    force: Force = False,
) -> None:
    """Write the records of a trace that meet all given conditions."""
    part = Part(
        records=_range("--records", records, int),
        times=_range("--time", time, lambda value: parse_time(value, "s")),
        addresses=_range("--address", address, parse_size),
        streams=tuple(stream or ()),
        move=move,
    )
    source = resolve(trace)
    with _new_trace(output, [source_file(trace), source], force) as new:
        header = cut_trace(source, new, part)
        keep_names(source, new, part.streams)
    typer.echo(_written(output, header))


@app.command(
    "export",
    epilog=examples(
        "isoblk trace export usr_0.isotrace --format iolog -o usr_0.log",
        "isoblk trace export exchange --format csv | head",
    ),
)
def export_file(
    trace: Source,
    to: Annotated[
        Literal["iolog", "blkparse", "disksim", "csv"],
        typer.Option(
            "--format",
            help="iolog: fio's, version 3. blkparse: its text output. disksim: DiskSim's ASCII,"
            " which trace-replay reads. csv: all fields of a trace.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="File to write.", show_default="standard output"
        ),
    ] = None,
    time_unit: TimeUnit = None,
    force: Force = False,
) -> None:
    """Write a trace as text for other tools, and note fields that the format lacks."""
    target = TARGETS[to]
    source = resolve(trace, time_unit)
    if output is None:
        done = export(source, target, partial(typer.echo, nl=False))
    else:
        with (
            new_file(output, inputs=[source_file(trace), source], force=force) as new,
            writing(output),
            new.open("w") as file,
        ):
            done = export(source, target, file.write)
        typer.echo(f"{output}: {done.records:,} records")
    if lost := done.losses(target):
        typer.echo(f"note: not in {target.name}: {'; '.join(lost)}", err=True)


@contextmanager
def _new_trace(output: Path, inputs: Iterable[Path], force: bool) -> Iterator[Path]:
    """Yield the path of a new compact trace; its file of stream names is replaced with it."""
    sources = list(inputs)
    sources += [names_file(source) for source in sources]
    with new_files([output, names_file(output)], inputs=sources, force=force) as (new, _):
        yield new


def _range(
    option: str, value: str | None, parse: Callable[[str], int]
) -> tuple[int | None, int | None]:
    """Parse "A:B"; either may be missing.

    Raises:
        UserError: it is not a range, or is empty.
    """
    if value is None:
        return None, None
    try:
        first, last = (parse(part) if part else None for part in value.split(":"))
    except ValueError:
        raise UserError(f"{option} {value}: not a range", next="give A:B, A: or :B") from None
    if first is not None and (first < 0 or (last is not None and last <= first)):
        raise UserError(f"{option} {value}: empty range", next="give A:B with A below B")
    return first, last


@app.command(epilog=examples("isoblk trace synth my-recipe.toml -o made.isotrace"))
def synth(
    recipe: Annotated[
        Path,
        typer.Argument(metavar="RECIPE", help="Recipe (TOML), see docs/guides/traces.md."),
    ],
    output: Output,
    force: Force = False,
) -> None:
    """Make a trace with the statistics of a recipe."""
    with _new_trace(output, [recipe], force) as new:
        header = synthesize(load_recipe(recipe), new)
    typer.echo(_written(output, header))

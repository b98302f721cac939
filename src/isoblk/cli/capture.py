# SPDX-License-Identifier: GPL-2.0-only
"""isoblk capture: the requests of a disk of this machine, with the cgroup of each."""

from pathlib import Path
from typing import Annotated

import typer

from isoblk.capture.backend import Backend, open_source
from isoblk.capture.session import Captured, Wanted, alone, capture, refuse_output
from isoblk.capture.target import find_target
from isoblk.cli.help import examples
from isoblk.errors import INTERRUPTED, RunError, UserError, printable
from isoblk.run import numbers
from isoblk.run.units import parse_size
from isoblk.trace.compact import SUFFIX

_FEW = 8  # streams that are printed
_LEAST_BUFFER, _MOST_BUFFER = 1 << 16, 1 << 30


app = typer.Typer()


@app.command(
    "capture",
    epilog=examples(
        "isoblk capture /dev/nvme0n1 -o day.isotrace --seconds 60",
        "isoblk capture /dev/nvme0n1 -o db.isotrace -- ./my-load.sh",
    ),
)
def command(
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="A disk or a partition.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar=f"FILE{SUFFIX}", help="File to write.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="Capture while this runs."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0.01, help="Capture for so long.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Exit 0 even if events were lost.")
    ] = False,
    buffer: Annotated[
        str, typer.Option(metavar="SIZE", help="Of the kernel's buffer of events.")
    ] = "64m",
    backend: Annotated[
        Backend,
        typer.Option(help="How the kernel is asked: bpf if it can, else blktrace."),
    ] = "auto",
) -> None:
    """Record the block trace of a device, with the cgroup of every request.

    Until COMMAND ends, for --seconds, or until Ctrl-C. Needs root. docs/guides/capture.md.
    """
    target = find_target(device)
    refuse_output(output, target, force=force)
    try:
        with alone(target), open_source(target, _buffer(buffer), backend) as source:
            wanted = Wanted(target, output, force, seconds, tuple(words or ()))
            done = capture(wanted, source, _say_begun)
    except KeyboardInterrupt:
        # Before it had begun, or when it was being written.
        raise typer.Exit(INTERRUPTED) from None
    if done.output != output:
        typer.echo(
            f"note: {output} has come to exist; what was captured is in {done.output}", err=True
        )
    for line in _account(done):
        typer.echo(line)
    if done.names.lost and not allow_loss:
        raise RunError(
            f"{done.names.lost:,} events were lost: the trace has gaps",
            where=str(done.output),
            next="capture again with a larger --buffer, or keep it with --allow-loss",
        )
    if done.status:
        raise RunError(
            f"ended with status {done.status}; what it did was captured",
            where=(words or [""])[0],
        )
    if done.interrupted and (words or seconds is not None):
        raise typer.Exit(INTERRUPTED)


def _say_begun(wanted: Wanted) -> None:
    """Told at once, so that whoever waits for it can begin a load."""
    if wanted.command:
        end = f"until {wanted.command[0]} ends"
    elif wanted.seconds is not None:
        end = f"for {wanted.seconds:g} s"
    else:
        end = "until Ctrl-C"
    typer.echo(f"capturing {wanted.target.path} {end}", err=True)


def _buffer(value: str) -> int:
    """A power of two. Raises UserError."""
    try:
        size = parse_size(value)
    except ValueError as error:
        raise UserError(f"--buffer: {error}", next="allowed: 64k, 64m, ...") from None
    if not _LEAST_BUFFER <= size <= _MOST_BUFFER or size & (size - 1):
        raise UserError(
            f"--buffer: {value} is not a power of two from 64k to 1g",
            next="allowed: 64k, 64m, ...",
        )
    return size


def _account(done: Captured) -> list[str]:
    names, header = done.names, done.header
    lines = [
        f"{done.output}: {header.records:,} requests in {names.seconds:,.3f} s,"
        f" {names.lost:,} lost, scheduler {names.scheduler}"
    ]
    if names.left_out:
        lines.append(f"left out, because they move nothing: {names.left_out:,}")
    ordered = sorted(names.streams, key=lambda one: -one.requests)
    for one in ordered[:_FEW]:
        weights = "".join(f", {file} {weight}" for file, weight in one.weights.items())
        busiest = one.processes[0].name if one.processes else ""
        share = numbers.percent(one.requests / header.records)
        lines.append(f"stream {one.stream}: {one.cgroup}, {share}, {busiest}{weights}")
    if len(ordered) > _FEW:
        lines.append(f"and {len(ordered) - _FEW} more streams")
    # A cgroup, and a process, is called what its owner likes.
    return [printable(line) for line in lines]

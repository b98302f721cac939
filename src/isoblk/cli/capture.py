# SPDX-License-Identifier: GPL-2.0-only
"""isoblk capture: the requests of a disk of this machine, with the cgroup of each."""

from pathlib import Path
from typing import Annotated

import typer

from isoblk.capture.backend import Backend, open_source
from isoblk.capture.session import Captured, Wanted, alone, capture, refuse_output
from isoblk.capture.target import find_target
from isoblk.cli.help import examples
from isoblk.cli.options import Force
from isoblk.errors import INTERRUPTED, RunError, UserError, printable
from isoblk.run import numbers
from isoblk.run.units import parse_size
from isoblk.trace.compact import SUFFIX

_FEW = 8  # number of streams that are printed
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
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="Disk or partition.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar=f"FILE{SUFFIX}", help="File to write.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="Capture while this command runs."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.01, help="Duration of the capture."),
    ] = None,
    force: Force = False,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Exit 0 even if events were lost.")
    ] = False,
    buffer: Annotated[
        str, typer.Option(metavar="SIZE", help="Size of the kernel's event buffer.")
    ] = "64m",
    backend: Annotated[
        Backend,
        typer.Option(help="Capture method; auto: bpf where the kernel has it, else blktrace."),
    ] = "auto",
) -> None:
    """Record the block trace of a device, with the cgroup of each request.

    Records until COMMAND ends, for --seconds, or until Ctrl-C. Needs root. See
    docs/guides/capture.md.
    """
    target = find_target(device)
    refuse_output(output, target, force=force)
    try:
        with alone(target), open_source(target, _buffer(buffer), backend) as source:
            wanted = Wanted(target, output, force, seconds, tuple(words or ()))
            done = capture(wanted, source, _say_begun)
    except KeyboardInterrupt:
        # Interrupted before the capture began, or while the file was written.
        raise typer.Exit(INTERRUPTED) from None
    if done.output != output:
        typer.echo(
            f"note: {output} was created during the capture; the capture is in {done.output}",
            err=True,
        )
    for line in _account(done):
        typer.echo(line)
    if done.names.lost and not allow_loss:
        raise RunError(
            f"{done.names.lost:,} events were lost: the trace has gaps",
            where=str(done.output),
            next="capture again with a larger --buffer, or accept the loss with --allow-loss",
        )
    if done.status:
        raise RunError(
            f"ended with status {done.status}; its requests were captured",
            where=(words or [""])[0],
        )
    if done.interrupted and (words or seconds is not None):
        raise typer.Exit(INTERRUPTED)


def _say_begun(wanted: Wanted) -> None:
    """Print that the capture has begun, so that a waiting script can start a load."""
    if wanted.command:
        end = f"until {wanted.command[0]} ends"
    elif wanted.seconds is not None:
        end = f"for {wanted.seconds:g} s"
    else:
        end = "until Ctrl-C"
    typer.echo(f"capturing {wanted.target.path} {end}", err=True)


def _buffer(value: str) -> int:
    """Parse the size of the buffer, bytes.

    Raises:
        UserError: it is not a power of two within the bounds.
    """
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
        lines.append(f"omitted requests without data: {names.left_out:,}")
    ordered = sorted(names.streams, key=lambda one: -one.requests)
    for one in ordered[:_FEW]:
        weights = "".join(f", {file} {weight}" for file, weight in one.weights.items())
        busiest = one.processes[0].name if one.processes else ""
        share = numbers.percent(one.requests / header.records)
        lines.append(f"stream {one.stream}: {one.cgroup}, {share}, {busiest}{weights}")
    if len(ordered) > _FEW:
        lines.append(f"and {len(ordered) - _FEW} more streams")
    # Names of cgroups and processes may hold any character.
    return [printable(line) for line in lines]

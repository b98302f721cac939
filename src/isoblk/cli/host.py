# SPDX-License-Identifier: GPL-2.0-only
"""isoblk host: what the host machine changed, changed back."""

from pathlib import Path

import typer

from isoblk import paths
from isoblk.cli.help import examples
from isoblk.errors import UserError
from isoblk.machine import journal
from isoblk.machine.host import Loop
from isoblk.run.units import parse_size

# Of a loop device: less holds no load, and whole pages are what a file system gives.
_LEAST = 1 << 20

app = typer.Typer(help="This machine as the lab: change back what a killed run left.")


@app.callback()
def _host() -> None:
    pass


@app.command(epilog=examples("isoblk host restore"))
def restore() -> None:
    """Change back what runs on this machine changed and could not change back, being killed."""
    told = journal.restore(paths.state_dir())
    for line in told:
        typer.echo(line)
    if not told:
        typer.echo("nothing to change back")


def target(device: str | None, loop: str | None, loop_dir: Path) -> str | Loop:
    """The disk that the options of `isoblk run` name.

    Raises:
        UserError: they name none, or two, or no size.
    """
    if device and loop:
        raise UserError("--device and --loop name two disks", next="leave out one of them")
    if not device and not loop:
        raise UserError(
            "the host machine needs one disk",
            next="add --device /dev/X, or --loop SIZE for one in memory",
        )
    if device:
        return device
    try:
        size = parse_size(loop or "")
    except ValueError as error:
        raise UserError(f"--loop: {error}", next="allowed: 1g, 512m, ...") from None
    if size < _LEAST or size % _LEAST:
        raise UserError(f"--loop: {loop} is not whole MiB", next="allowed: 1g, 512m, ...")
    return Loop(size, loop_dir)

# SPDX-License-Identifier: GPL-2.0-only
"""isoblk host: restore settings of this machine; the disk options of isoblk run."""

from pathlib import Path

import typer

from isoblk import paths
from isoblk.cli.help import examples
from isoblk.errors import UserError
from isoblk.machine import journal
from isoblk.machine.host import Loop
from isoblk.run.units import parse_size

# Smallest size and unit of a loop device, bytes: it has room for a load, and is whole pages.
_LEAST = 1 << 20

app = typer.Typer(help="Restore settings of this machine that a killed run left changed.")


@app.callback()
def _host() -> None:
    pass


@app.command(epilog=examples("isoblk host restore"))
def restore() -> None:
    """Restore all settings that killed runs on this machine left changed."""
    told = journal.restore(paths.state_dir())
    for line in told:
        typer.echo(line)
    if not told:
        typer.echo("nothing to restore")


def target(device: str | None, loop: str | None, loop_dir: Path) -> str | Loop:
    """Return the disk that the options of `isoblk run` name.

    Raises:
        UserError: the options name no disk or two, or the size is invalid.
    """
    if device and loop:
        raise UserError("--device and --loop exclude each other", next="remove one of them")
    if not device and not loop:
        raise UserError(
            "the host machine needs a disk",
            next="add --device /dev/X, or --loop SIZE for a disk in memory",
        )
    if device:
        return device
    try:
        size = parse_size(loop or "")
    except ValueError as error:
        raise UserError(f"--loop: {error}", next="allowed: 1g, 512m, ...") from None
    if size < _LEAST or size % _LEAST:
        raise UserError(f"--loop: {loop} is not a multiple of 1 MiB", next="allowed: 1g, 512m, ...")
    return Loop(size, loop_dir)

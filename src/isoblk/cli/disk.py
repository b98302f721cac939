# SPDX-License-Identifier: GPL-2.0-only
"""isoblk disk: the scheduler that a disk has, now and after the next boot."""

from typing import Annotated

import typer
from rich.table import Table

from isoblk.cli.help import examples
from isoblk.console import new_console
from isoblk.errors import UserError, printable
from isoblk.machine.blockdev import elevators
from isoblk.schedulers.isoblk import AUTO, Isoblk
from isoblk.weights import cost, others, settings

app = typer.Typer(help="The scheduler of a disk of this machine, for good.")

DiskName = Annotated[str, typer.Argument(metavar="DISK", help="Its name: nvme0n1.")]


@app.command(
    epilog=examples(
        "isoblk disk use isoblk nvme0n1",
        "isoblk disk use isoblk nvme0n1 --tags 1024",
        "isoblk disk use isoblk nvme0n1 --cost-model bytes",
    )
)
def use(
    scheduler: Annotated[
        str, typer.Argument(metavar="SCHEDULER", help="isoblk, none, bfq or another.")
    ],
    disk: DiskName,
    tags: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=4,
            help="nr_requests: requests at a time that a hardware queue takes.",
            show_default="the kernel's",
        ),
    ] = None,
    cost_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="What requests cost under isoblk: auto, bytes, or six coefficients NAME=N.",
            show_default="the drive model's, else auto",
        ),
    ] = None,
) -> None:
    """Give a disk a scheduler, now and at each boot: a udev rule."""
    found = settings.find(disk)
    model = None
    if scheduler == Isoblk.name:
        named = settings.model_of(found)
        model = cost.find(named) if cost_model is None else cost.parse(cost_model)
    elif cost_model is not None:
        raise UserError(
            f"{scheduler} has no cost model",
            where="--cost-model",
            next="leave it out, or use isoblk",
        )
    if scheduler not in (known := elevators(found)):
        missing = settings.why_missing(scheduler)
        raise UserError(
            f"this kernel has no scheduler {scheduler}",
            next=missing or f"allowed: {', '.join(sorted(known))}",
        )
    settings.use(found, scheduler, tags, model.text if model else AUTO)
    typer.echo(f"{found.name}: {settings.describe(found)}, also after the next boot")
    if model:
        typer.echo(f"{found.name}: {printable(model.source)}")
    if shared := settings.sharing(found):
        typer.echo(
            f"note: the rule is for {', '.join(shared)} as well, which udev takes for the same",
            err=True,
        )
    _warn()


@app.command(epilog=examples("isoblk disk show", "isoblk disk show nvme0n1"))
def show(
    disk: Annotated[
        str | None, typer.Argument(metavar="[DISK]", help="Its name.", show_default="all")
    ] = None,
) -> None:
    """Show which scheduler disks have, which they will have, and who else sets it."""
    found = [settings.find(disk)] if disk else settings.all_disks()
    shown = Table(box=None, pad_edge=False)
    for heading in ("disk", "model", "scheduler", "cost", "tags", "at boot"):
        shown.add_column(heading, overflow="fold")
    for one in found:
        shown.add_row(*map(printable, settings.row(one)))
    # A model's name is whatever the disk says.
    new_console().print(shown)
    for one in found:
        if note := settings.not_as_kept(one):
            typer.echo(f"note: {note}", err=True)
    _warn()


@app.command(epilog=examples("isoblk disk reset nvme0n1"))
def reset(disk: DiskName) -> None:
    """Give a disk back the scheduler that it had before `isoblk disk use`, and forget it."""
    found = settings.find(disk)
    settings.reset(found)
    typer.echo(f"{found.name}: {settings.describe(found)}")


def _warn() -> None:
    for sentence in others.others():
        typer.echo(f"note: {printable(sentence)}", err=True)

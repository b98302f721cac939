# SPDX-License-Identifier: GPL-2.0-only
"""isoblk disk: show, set and reset a disk's scheduler, now and at each boot."""

from typing import Annotated

import typer
from rich.table import Table

from isoblk.cli.help import examples
from isoblk.console import new_console
from isoblk.errors import UserError, printable
from isoblk.machine.blockdev import elevators
from isoblk.run.field import suggest
from isoblk.schedulers.isoblk import AUTO, Isoblk
from isoblk.weights import cost, others, settings

app = typer.Typer(help="Show or persistently set the I/O scheduler of a disk.")

DiskName = Annotated[str, typer.Argument(metavar="DISK", help="Name of the disk, such as nvme0n1.")]


@app.command(
    epilog=examples(
        "isoblk disk use isoblk nvme0n1",
        "isoblk disk use isoblk nvme0n1 --tags 1024",
        "isoblk disk use isoblk nvme0n1 --cost-model bytes",
    )
)
def use(
    scheduler: Annotated[
        str, typer.Argument(metavar="SCHEDULER", help="Scheduler, such as isoblk, none or bfq.")
    ],
    disk: DiskName,
    tags: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=4,
            help="Tags of each hardware queue (nr_requests).",
            show_default="set by the kernel",
        ),
    ] = None,
    cost_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Cost model of isoblk: auto, bytes, or six coefficients NAME=N.",
            show_default="that of the drive's model, or auto",
        ),
    ] = None,
) -> None:
    """Set a disk's scheduler, now and at each boot, by a udev rule."""
    if settings.is_disk(scheduler) and not settings.is_disk(disk):
        raise UserError(
            f"{scheduler} is a disk; the scheduler comes first",
            next=f"run: isoblk disk use {disk} {scheduler}",
        )
    found = settings.find(disk)
    model = None
    if scheduler == Isoblk.name:
        named = settings.model_of(found)
        model = cost.find(named) if cost_model is None else cost.parse(cost_model)
    elif cost_model is not None:
        raise UserError(
            f"{scheduler} has no cost model",
            where="--cost-model",
            next="remove it, or choose isoblk",
        )
    if scheduler not in (known := elevators(found)):
        missing = settings.why_missing(scheduler)
        raise UserError(
            f"this kernel has no scheduler {scheduler}",
            next=missing or suggest(scheduler, known),
        )
    settings.use(found, scheduler, tags, model.text if model else AUTO)
    typer.echo(f"{found.name}: {settings.describe(found)}, also after the next boot")
    if model:
        typer.echo(f"{found.name}: {printable(model.source)}")
    if shared := settings.sharing(found):
        typer.echo(
            f"note: the rule also matches {', '.join(shared)}, which udev cannot tell from"
            f" {found.name}",
            err=True,
        )
    _warn()


@app.command(epilog=examples("isoblk disk show", "isoblk disk show nvme0n1"))
def show(
    disk: Annotated[
        str | None, typer.Argument(metavar="[DISK]", help="Name of the disk.", show_default="all")
    ] = None,
) -> None:
    """Show the scheduler of each disk, now and at the next boot, and competing udev rules."""
    found = [settings.find(disk)] if disk else settings.all_disks()
    shown = Table(box=None, pad_edge=False)
    for heading in ("disk", "model", "scheduler", "cost", "tags", "at boot"):
        shown.add_column(heading, overflow="fold")
    for one in found:
        shown.add_row(*map(printable, settings.row(one)))
    # The disk reports its model's name: any text.
    new_console().print(shown)
    for one in found:
        if note := settings.not_as_kept(one):
            typer.echo(f"note: {note}", err=True)
    _warn()


@app.command(epilog=examples("isoblk disk reset nvme0n1"))
def reset(disk: DiskName) -> None:
    """Restore the scheduler that a disk had before `isoblk disk use`, and remove its rule."""
    found = settings.find(disk)
    settings.reset(found)
    typer.echo(f"{found.name}: {settings.describe(found)}")


def _warn() -> None:
    for sentence in others.others():
        typer.echo(f"note: {printable(sentence)}", err=True)

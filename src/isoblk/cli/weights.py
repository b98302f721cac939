# SPDX-License-Identifier: GPL-2.0-only
"""isoblk weights: show promised and actual shares of cgroups; mirror weights."""

import os
import socket
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from isoblk.cli.help import examples
from isoblk.console import new_console
from isoblk.errors import UserError, printable
from isoblk.run import numbers
from isoblk.weights import disk as disks
from isoblk.weights import follow as following
from isoblk.weights import hierarchy, settings, tree, why

app = typer.Typer(help="Show the share that each cgroup's weight promises, and the share it gets.")

_SECONDS = 2.0
_LONGEST = 86_400.0


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "isoblk weights",
        "isoblk weights --disk nvme0n1 --watch",
        "isoblk weights --json",
        "isoblk weights follow",
    ),
)
def weights(
    context: typer.Context,
    disk: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Disk to show.", show_default="all disks that obey weights"
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option("--for", metavar="SECONDS", min=0.1, help="Duration of the measurement."),
    ] = _SECONDS,
    watch: Annotated[
        bool, typer.Option("--watch", help="Repeat the measurement until Ctrl-C.")
    ] = False,
    everyone: Annotated[
        bool, typer.Option("--all", help="Also show cgroups without a weight and without I/O.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with --watch one line per measurement.")
    ] = False,
) -> None:
    """Show the share that each cgroup's weight promises, and the share it gets.

    Without a command: show the tree of cgroups for each disk.
    """
    if context.invoked_subcommand is not None:
        return
    if seconds > _LONGEST:
        raise UserError(
            f"{seconds:g} s is more than a day",
            where="--for",
            next="measure for less, and repeat with --watch",
        )
    root = hierarchy.unified()
    names = [settings.find(disk).name] if disk else disks.with_weights(root)
    if not names:
        raise UserError(
            "no disk of this machine has a scheduler with weights",
            next="choose one: isoblk disk use isoblk DISK",
        )
    try:
        if as_json:
            _print_json(root, names, seconds, watch=watch)
        else:
            _print(root, names, seconds, everyone=everyone, watch=watch)
    except KeyboardInterrupt:
        if not watch:
            raise


def _print(root: Path, names: list[str], seconds: float, *, everyone: bool, watch: bool) -> None:
    # Names of cgroups and disks are not markup.
    console = new_console()
    if not watch or not console.is_terminal:
        # Without a terminal, Live prints nothing until it ends.
        while True:
            console.print(*_views(root, names, seconds, everyone=everyone), sep="\n")
            if not watch:
                return
            console.print()
            console.file.flush()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            shown = Table.grid()
            for view in _views(root, names, seconds, everyone=everyone):
                shown.add_row(view)
            live.update(shown, refresh=True)


def _measured(
    root: Path, names: list[str], seconds: float
) -> list[tuple[disks.Chosen, tree.Share]]:
    chosen = [disks.find(name, root) for name in names]
    # Reading thousands of cgroups takes as long as the measurement: use the time of the start.
    before = [(time.monotonic(), tree.read(root, one)) for one in chosen]
    time.sleep(seconds)
    found = []
    for one, (began, was) in zip(chosen, before, strict=True):
        lasted = time.monotonic() - began
        found.append((one, tree.shares(was, tree.read(root, one), lasted, one)))
    return found


def _views(root: Path, names: list[str], seconds: float, *, everyone: bool) -> list[Any]:
    views: list[Any] = []
    for disk, top in _measured(root, names, seconds):
        views += [_table(disk, top, everyone=everyone), *_reasons(disk, top), Text()]
    return views[:-1]


def _table(disk: disks.Chosen, top: tree.Share, *, everyone: bool) -> Table:
    shown = Table(
        box=None,
        pad_edge=False,
        title=f"{disk.name}: {disk.scheduler}, which divides {disk.divides}"
        if disk.file
        else f"{disk.name}: {disk.scheduler}",
        title_justify="left",
        title_style="bold",
    )
    shown.add_column("cgroup", overflow="fold")
    for heading in ("weight", "promised", "got"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("set by", no_wrap=True)
    shown.add_column("why", overflow="fold")
    for depth, share in _rows(top, everyone=everyone):
        group = share.group
        shown.add_row(
            Text("  " * depth + (printable(group.name) or "/")),
            "" if group.weight is None else str(group.weight),
            "" if share.promised is None else numbers.percent(share.promised),
            numbers.percent(share.got) if share.got else "",
            group.set_by,
            why.of_group(share, top),
        )
    return shown


def _rows(top: tree.Share, *, everyone: bool) -> list[tuple[int, tree.Share]]:
    """Return depth and share of each cgroup to show: those with data, and their ancestors."""
    every: list[tuple[int, tree.Share]] = []
    waiting = [(0, top)]
    while waiting:
        depth, share = waiting.pop()
        every.append((depth, share))
        waiting += [(depth + 1, child) for child in reversed(share.children)]
    found: list[tuple[int, tree.Share]] = []
    for depth, share in reversed(every):
        told = everyone or not depth or share.promised is not None or share.group.set_by
        # A deeper entry that follows is a descendant.
        if told or (found and found[-1][0] > depth):
            found.append((depth, share))
    return found[::-1]


def _reasons(disk: disks.Chosen, top: tree.Share) -> list[Text]:
    return [
        Text(f"{what}; run: {todo}" if todo else what, style="yellow")
        for what, todo in why.of_disk(disk, top)
    ]


def _print_json(root: Path, names: list[str], seconds: float, *, watch: bool) -> None:
    while True:
        found = [_plain(disk, top) for disk, top in _measured(root, names, seconds)]
        # As bytes: JSON is UTF-8 in every locale.
        typer.echo(msgspec.json.encode({"disks": found}))
        if not watch:
            return


def _plain(disk: disks.Chosen, top: tree.Share) -> dict[str, Any]:
    return {
        "disk": disk.name,
        "scheduler": disk.scheduler,
        "file": disk.file,
        "divides": disk.divides,
        "tags": disk.nr_requests,
        "notes": [{"what": what, "next": todo} for what, todo in why.of_disk(disk, top)],
        "cgroups": [
            {
                # JSON consists of characters, a path of bytes.
                "path": os.fsencode(share.group.path).decode(errors="backslashreplace"),
                "weight": share.group.weight,
                "set_by": share.group.set_by,
                "promised": share.promised,
                "got": share.got,
                "waiting": share.waiting,
                "why": why.of_group(share, top),
            }
            for share in top.each()
        ],
    }


@app.command(
    epilog=examples(
        "isoblk weights follow",
        "isoblk weights follow --undo",
    )
)
def follow(
    undo: Annotated[
        bool, typer.Option("--undo", help="Remove all mirrored weights, and exit.")
    ] = False,
) -> None:
    """Mirror io.weight, which systemd and containers write, to io.isoblk.weight.

    Runs until Ctrl-C. A weight that was written to io.isoblk.weight manually stays until "default"
    is written there.
    """
    root = hierarchy.unified()
    if undo:
        count = following.give_back(root)
        typer.echo(f"removed the mirrored weights of {count} cgroups")
        return
    try:
        following.run(root, lambda line: typer.echo(printable(line), err=True), _ready)
    except KeyboardInterrupt:
        return


def _ready(count: int) -> None:
    typer.echo(f"following the weights of {count} cgroups")
    _notify("READY=1")


def _notify(state: str) -> None:
    """Notify systemd of a state: sd_notify(3)."""
    if not (address := os.environ.get("NOTIFY_SOCKET", "")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as told:
        try:
            # A name that begins with @ is an abstract socket.
            told.connect("\0" + address[1:] if address.startswith("@") else address)
            told.sendall(state.encode())
        except OSError as error:
            # If systemd waits for the message it ends this process; else nothing is lost.
            typer.echo(f"cannot notify systemd: {error.strerror or error}", err=True)

# SPDX-License-Identifier: GPL-2.0-only
"""isoblk cache: cache a slow disk of this machine on an SSD, by dm-setcache."""

import dataclasses
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from isoblk.cachectl import live, manage, volumes
from isoblk.cachectl.manage import State
from isoblk.cachectl.unit import unit, unit_name
from isoblk.cachectl.volumes import open_ssd
from isoblk.caches.ondisk import fsck as checking
from isoblk.caches.ondisk.fsck import Cure, Report
from isoblk.caches.setcache import PERSONALITIES, TARGET, Line, Personality
from isoblk.cli.help import examples
from isoblk.console import new_console, working
from isoblk.errors import RunError, UserError
from isoblk.machine import origins, system
from isoblk.machine.blockdev import Disk, find_volume, node_of
from isoblk.machine.claim import ORIGIN, SSD, Claim, claim
from isoblk.machine.detached import refuse_newer_elsewhere
from isoblk.machine.mapper import dmsetup
from isoblk.machine.users import refuse_rivals
from isoblk.run.field import suggest
from isoblk.run.spec import Options

# Messages of the target.
_OTHER_ORIGIN = re.compile(r"the cache of another origin, (\S+), not of (.+)$")
_NO_IDENTITY = "no identity of the origin"
# Number of damages that are printed.
_MOST_LINES = 100

app = typer.Typer(
    help="Cache a slow disk of this machine on an SSD, by dm-setcache. See docs/guides/cache.md."
)

Like = Annotated[
    str,
    typer.Option(
        "--like",
        metavar="flashcache|enhanceio|setcache",
        help="Program whose defaults and words apply.",
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="writeback, writethrough, writearound, readonly or writeonly; in flashcache's words"
        " back, thru or around, in enhanceio's wb, wt or ro.",
    ),
]
Policy = Annotated[str | None, typer.Option(metavar="fifo|lru|random", help="Replacement policy.")]
Block = Annotated[str | None, typer.Option(metavar="SIZE", help="Size of a block, as 4k.")]
Assoc = Annotated[int | None, typer.Option(metavar="N", help="Number of blocks in a set.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="OPTION=N", help="Option of dm-setcache, as set_high=80."),
]
Wipe = Annotated[
    str | None, typer.Option(metavar="SSD", help="Allow overwriting existing data on the SSD.")
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Keep clean blocks from an earlier boot if a sample of them equals the origin. Safe"
        " only if the origin is never written without the cache.",
    ),
]
OriginId = Annotated[
    str | None,
    typer.Option(
        "--origin-id",
        metavar="WORD",
        help="Identity of the origin, if the kernel has none for it.",
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the cache: /dev/mapper/NAME.")]
Ssd = Annotated[str, typer.Argument(metavar="SSD", help="Fast device.")]


@app.command(
    epilog=examples(
        "isoblk cache create --like enhanceio fast /dev/sdb /dev/nvme0n1p3",
        "isoblk cache create --like flashcache --mode thru fast /dev/sdb /dev/nvme0n1p3",
    )
)
def create(
    name: Name,
    origin: Annotated[
        str, typer.Argument(metavar="ORIGIN", help="Slow device. Its data are kept.")
    ],
    ssd: Ssd,
    like: Like,
    mode: Mode = None,
    policy: Policy = None,
    block: Block = None,
    assoc: Assoc = None,
    set_: Set = None,
    wipe: Wipe = None,
    trust: Trust = False,
    origin_id: OriginId = None,
) -> None:
    """Create a cache, /dev/mapper/NAME, to use in place of ORIGIN.

    If the SSD holds a cache of this origin, its blocks are used again.
    """
    line = _line(like, mode, policy, block, assoc, [*(set_ or []), *["trust=1"] * trust])
    if origin_id is not None:
        origins.refuse_word(origin_id)
    manage.refuse_name(name, dmsetup)
    slow, fast = find_volume(origin), find_volume(ssd)
    volumes.refuse_overlap(slow, fast)
    with claim(slow, ORIGIN) as below, claim(fast, SSD, wipe) as above:
        refuse_newer_elsewhere(slow, dmsetup, but=fast)
        manage.refuse_without_target(dmsetup, _load_module)
        if origin_id is None and (above.cached or line.mode in manage.DIRTYING):
            origins.refuse_alike(slow.sys, origin, dmsetup)
        line = dataclasses.replace(line, origin_id=origin_id or _word(slow, above))
        _hand_over(above, wipe)
        # Released for the target, which claims the device itself.
        below.release()
        with _told_of_origins(ssd):
            made = manage.create(name, volumes.volume(below), volumes.volume(above), line, dmsetup)
        verb = "again" if above.cached else "made"
    typer.echo(f"{verb}: /dev/mapper/{name}, {made.mode}, {made.policy}; use it, not {origin}")


@app.command(epilog=examples("isoblk cache attach --like enhanceio vg-data /dev/nvme0n1p3"))
def attach(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Device-mapper device; may be in use.")
    ],
    ssd: Ssd,
    like: Like,
    mode: Mode = None,
    policy: Policy = None,
    block: Block = None,
    assoc: Assoc = None,
    set_: Set = None,
    wipe: Wipe = None,
    trust: Trust = False,
    origin_id: OriginId = None,
) -> None:
    """Put a cache under a device-mapper device, even while it is mounted."""
    line = _line(like, mode, policy, block, assoc, [*(set_ or []), *["trust=1"] * trust])
    if origin_id is not None:
        origins.refuse_word(origin_id)
    with claim(find_volume(ssd), SSD, wipe) as above:
        manage.refuse_without_target(dmsetup, _load_module)
        word = origin_id or ""
        if place := origins.mapped(name):
            slow = find_volume(node_of(place))
            volumes.refuse_overlap(slow, above.disk)
            refuse_rivals(slow)
            refuse_newer_elsewhere(slow, dmsetup, but=above.disk)
            word = word or origins.word(place, dmsetup)
        line = dataclasses.replace(line, origin_id=word)
        _hand_over(above, wipe)
        with _told_of_origins(ssd):
            made = live.attach(name, volumes.volume(above), line, dmsetup)
    typer.echo(f"attached: /dev/mapper/{name}, {made.mode}, {made.policy}")
    if made.mode in manage.DIRTYING:
        typer.echo(
            f"{name}: dirty blocks are only on the SSD: delete the cache before a reboot, or the"
            " device comes up without them",
            err=True,
        )


@app.command(epilog=examples("isoblk cache info"))
def info(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of a cache.", show_default="all")
    ] = None,
) -> None:
    """Show the caches and their statistics."""
    found = [manage.find(name, dmsetup)] if name else manage.caches(dmsetup)
    for state in found:
        _show(state)
    if not found:
        typer.echo("there is no cache")


@app.command(epilog=examples("isoblk cache clean fast"))
def clean(name: Name) -> None:
    """Write all dirty blocks to the origin, and wait for completion."""
    with working(f"{name}: cleaning") as say:
        live.clean(name, dmsetup, lambda done, total: say(f"{name}: {done} of {total} blocks"))
    typer.echo(f"{name}: clean")


@app.command(epilog=examples("isoblk cache edit fast --mode writeback --set set_high=80"))
def edit(
    name: Name,
    mode: Mode = None,
    policy: Policy = None,
    set_: Set = None,
) -> None:
    """Change the mode, policy or options of a cache while it is in use."""
    options = _options(mode, policy, None, None, set_)
    if not options:
        raise UserError("nothing to change", next="add --mode, --policy or --set")
    state = manage.find(name, dmsetup)
    if (
        mode is not None
        and _both().words.get(mode, mode) in manage.DIRTYING
        and not state.origin_id
    ):
        place = (system.SYS / "dev/block" / state.origin).resolve()
        origins.refuse_alike(place, node_of(place), dmsetup)
    made = live.edit(name, options, _both(), dmsetup)
    typer.echo(f"{name}: {made.mode}, {made.policy}")


@app.command(epilog=examples("isoblk cache delete fast"))
def delete(
    name: Name,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Keep the blocks on the SSD for the next create. Do not write to the origin until"
            " then.",
        ),
    ] = False,
) -> None:
    """Clean a cache and remove it. An attached cache leaves the device as before."""
    with working(f"{name}: cleaning") as say:
        ssd = live.delete(
            name, dmsetup, lambda done, total: say(f"{name}: {done} of {total} blocks")
        )
    typer.echo(f"{name}: removed; the origin has all written data")
    if not keep:
        _erase(ssd)


@app.command(
    "unit",
    epilog=examples("isoblk cache unit fast > /etc/systemd/system/isoblk-cache-fast.service"),
)
def unit_(name: Name) -> None:
    """Print a systemd unit that creates a cache at boot and stops it at shutdown."""
    typer.echo(unit(name, dmsetup), nl=False)
    typer.echo(f"next: systemctl enable {unit_name(name)}", err=True)


@app.command(
    "origin",
    epilog=examples(
        "isoblk cache origin /dev/sdb1",
        "isoblk cache origin --is wwid:naa.5000c500a1b2c3d4/start:2048 /dev/sdb1",
    ),
)
def origin_(
    device: Annotated[str, typer.Argument(metavar="ORIGIN", help="Slow device.")],
    is_: Annotated[
        str | None,
        typer.Option("--is", metavar="IDENTITY", help="Fail if ORIGIN has another identity."),
    ] = None,
) -> None:
    """Show the identity by which a cache recognises ORIGIN. No copy of ORIGIN has it.

    Exit status: 0; 1 the identity is not IDENTITY; 2 ORIGIN has no identity.
    """
    place = find_volume(device).sys
    word = origins.word(place, dmsetup)
    known = f"id:{word}" if word else origins.identity(place)
    if not known:
        raise UserError(
            "the device has no identity that a copy lacks",
            where=device,
            next="name it when the cache is created: --origin-id WORD",
        )
    if is_ not in (None, known):
        raise RunError(
            f"the device's identity is {known}, not {is_}",
            where=device,
            next="name the device with that identity",
        )
    typer.echo(known)


@app.command(
    epilog=examples(
        "isoblk cache check /dev/nvme0n1p3",
        "isoblk cache check --repair --was wwid:naa.5000c500a1b2c3d4 /dev/nvme0n1p3",
    )
)
def check(
    ssd: Annotated[str, typer.Argument(metavar="SSD", help="SSD of a cache, or an image of it.")],
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair damage that costs no dirty block.")
    ] = False,
    drop_damaged: Annotated[
        bool,
        typer.Option(
            "--drop-damaged",
            help="With --repair: also free slots whose place on the origin is unknown. Dirty data"
            " in them are lost.",
        ),
    ] = False,
    was: Annotated[
        str | None,
        typer.Option(
            metavar="IDENTITY",
            help="With --repair: forget the origin with this identity, because it is gone or was"
            " copied to another disk. The next create or attach sets the new origin.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the SSD of a cache, and show its contents. It must not be in use.

    Each damage is one line: place, cause, and the options that repair it. The origin is not read
    or written.

    Exit status: 0 sound, also after a repair; 1 damaged; 2 in use, not a cache, not readable.
    """
    if drop_damaged and not repair:
        raise UserError("--drop-damaged needs --repair", next="add --repair")
    if was is not None and not repair:
        raise UserError("--was needs --repair", next="add --repair")
    with open_ssd(ssd, write=repair) as opened:
        found = (
            checking.repair(opened, drop=drop_damaged, was=was)
            if repair
            else checking.examine(opened).report
        )
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
    else:
        _show_report(found)
    _fail_if_damaged(found, repaired=repair)


@contextmanager
def _told_of_origins(ssd: str) -> Iterator[None]:
    """Replace the kernel's errors about the origin's identity by errors with a next step.

    Raises:
        UserError: the SSD is the cache of another origin, or the origin has no identity.
    """
    try:
        yield
    except RunError as error:
        if found := _OTHER_ORIGIN.search(error.cause):
            here = origins.whose(found[1], dmsetup)
            raise UserError(
                f"the SSD is the cache of {found[1]}{here and f' ({here})'}, not of {found[2]}",
                where=ssd,
                next="name that origin; if it is gone or was copied to this one:"
                f" isoblk cache check --repair --was {found[1]} {ssd};"
                f" if the data on the SSD are not needed: blkdiscard --zeroout {ssd}",
            ) from None
        if _NO_IDENTITY in error.cause:
            raise UserError(
                "the origin has no identity, so dirty blocks could be written to another disk",
                where=error.where,
                next="name it with --origin-id WORD, or add --mode writethrough",
            ) from None
        raise


def _both() -> Personality:
    """Return a personality that understands the words of all for modes and policies."""
    words = {old: new for one in PERSONALITIES.values() for old, new in one.words.items()}
    return dataclasses.replace(PERSONALITIES[TARGET], words=words)


def _line(
    like: str,
    mode: str | None,
    policy: str | None,
    block: str | None,
    assoc: int | None,
    set_: list[str] | None,
) -> Line:
    if like not in PERSONALITIES:
        raise UserError(f"--like {like}: unknown program", next=suggest(like, PERSONALITIES))
    return manage.line_of(PERSONALITIES[like], _options(mode, policy, block, assoc, set_))


def _options(
    mode: str | None,
    policy: str | None,
    block: str | None,
    assoc: int | None,
    set_: list[str] | None,
) -> Options:
    given = {"mode": mode, "policy": policy, "block": block, "assoc": assoc}
    options: Options = {name: value for name, value in given.items() if value is not None}
    for text in set_ or []:
        name, equals, number = text.partition("=")
        if not equals or not number.isdecimal():
            raise UserError(f"--set {text}: not OPTION=NUMBER", next="as in --set set_high=80")
        if name in given:
            raise UserError(f"--set {name}: has its own option", next=f"use --{name}")
        options[name] = int(number)
    return options


def _word(origin: Disk, ssd: Claim) -> str:
    """Return a word for an origin; "" if the SSD records an identity from the kernel."""
    if ssd.cached:
        with ssd.bytes(os.O_RDONLY) as opened:
            known = checking.identity(opened)
        if known and not known.startswith("id:"):
            return ""
    return origins.word(origin.sys, dmsetup)


def _hand_over(ssd: Claim, wipe: str | None) -> None:
    """Release the SSD for the target, wiped first if --wipe names it."""
    if wipe is not None:
        ssd.wipe()
    ssd.release()


def _erase(number: str) -> None:
    """Erase the SSD of a removed cache.

    Raises:
        RunError: the SSD is gone or cannot be written.
    """
    try:
        volumes.erase(number)
    except (UserError, RunError) as error:
        raise RunError(
            f"not erased: {error.cause}",
            where=volumes.path_of(number),
            next="before you use the SSD again, wipe it: its blocks are older than the origin's",
        ) from None


def _show_report(found: Report) -> None:
    for damage in found.mended:
        typer.echo(f"repaired: {damage.where}: {damage.cause}; {damage.cure}")
    if found.revived:
        typer.echo(f"revived: {found.revived} slots can be written and read again")
    for damage in found.damage[:_MOST_LINES]:
        typer.echo(str(damage))
    if len(found.damage) > _MOST_LINES:
        typer.echo(f"and {len(found.damage) - _MOST_LINES} more; --json prints all")
    table = Table(title=found.ssd, title_justify="left", show_header=False, box=None)
    for what, value in checking.describe(found):
        table.add_row(what, value + (_path_of(found.identity) if what == "origin" else ""))
    if table.rows:
        new_console(soft_wrap=True).print(table)
    if not found.damage:
        typer.echo(f"{found.ssd}: sound")


def _path_of(identity: str | None) -> str:
    """Return ", PATH" of the origin, or "" if it is not found."""
    with suppress(UserError, RunError):
        if identity and (path := origins.whose(identity, dmsetup)):
            return f", {path}"
    return ""


def _fail_if_damaged(found: Report, *, repaired: bool) -> None:
    if not found.damage:
        return
    options = {damage.option for damage in found.damage}
    command = "isoblk cache check"
    if options == {Cure.DROP}:
        following = f"{command} {Cure.DROP} {found.ssd} frees the slots, and loses their data"
    elif not repaired and Cure.REPAIR in options:
        following = f"{command} --repair {found.ssd}"
    else:
        following = ""
    count = len(found.damage)
    raise RunError(f"{count} damage{'s' if count > 1 else ''}", where=found.ssd, next=following)


def _load_module() -> None:
    if Path("/sbin/modprobe").exists():
        subprocess.run(["/sbin/modprobe", "dm-setcache"], capture_output=True, check=False)


def _identity(state: State) -> str:
    if state.origin_id:
        return f"id:{state.origin_id}"
    return origins.identity((system.SYS / "dev/block" / state.origin).resolve())


def _show(state: State) -> None:
    table = Table(title=state.name, title_justify="left", show_header=False, box=None)
    for what, value in manage.describe(state, _identity(state)):
        table.add_row(what, value)
    new_console().print(table)

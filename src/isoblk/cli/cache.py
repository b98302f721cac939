# SPDX-License-Identifier: GPL-2.0-only
"""isoblk cache: an SSD in front of a slow disk of this machine, by dm-setcache."""

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

# What the target says.
_OTHER_ORIGIN = re.compile(r"the cache of another origin, (\S+), not of (.+)$")
_NO_IDENTITY = "no identity of the origin"
# Damage that a person reads line by line.
_MOST_LINES = 100

app = typer.Typer(
    help="An SSD in front of a slow disk of this machine: dm-setcache. See docs/guides/cache.md."
)

Like = Annotated[
    str,
    typer.Option("--like", help="Whose defaults: flashcache, enhanceio, or setcache (its own)."),
]
Mode = Annotated[
    str | None,
    typer.Option(
        help="writeback, writethrough, writearound, readonly or writeonly; or back, thru,"
        " around of flashcache, wb, wt, ro of enhanceio."
    ),
]
Policy = Annotated[str | None, typer.Option(help="fifo, lru or random.")]
Block = Annotated[str | None, typer.Option(help="Size of a block, as 4k.")]
Assoc = Annotated[int | None, typer.Option(help="Blocks of a set.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="OPTION=N", help="An option of dm-setcache, as set_high=80."),
]
Wipe = Annotated[str | None, typer.Option(metavar="SSD", help="What the SSD holds may be lost.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Use clean blocks that the SSD has from an earlier boot if a sample of the origin is"
        " as it was. Only for a disk that nobody writes to without the cache.",
    ),
]
OriginId = Annotated[
    str | None,
    typer.Option(
        "--origin-id",
        metavar="WORD",
        help="What to call the origin, if nothing else tells it from other disks.",
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The cache: /dev/mapper/NAME.")]
Ssd = Annotated[str, typer.Argument(metavar="SSD", help="The fast device.")]


@app.command(
    epilog=examples(
        "isoblk cache create --like enhanceio fast /dev/sdb /dev/nvme0n1p3",
        "isoblk cache create --like flashcache --mode thru fast /dev/sdb /dev/nvme0n1p3",
    )
)
def create(
    name: Name,
    origin: Annotated[
        str, typer.Argument(metavar="ORIGIN", help="The slow device. What is on it stays.")
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
    """Make a cache, /dev/mapper/NAME, to be used in place of ORIGIN from now on.

    An SSD that holds a cache of this origin is used again, with what it holds.
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
        # The target claims it, too.
        below.release()
        with _told_of_origins(ssd):
            made = manage.create(name, volumes.volume(below), volumes.volume(above), line, dmsetup)
        verb = "again" if above.cached else "made"
    typer.echo(f"{verb}: /dev/mapper/{name}, {made.mode}, {made.policy}; use it, not {origin}")


@app.command(epilog=examples("isoblk cache attach --like enhanceio vg-data /dev/nvme0n1p3"))
def attach(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A device-mapper device, in use or not.")
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
    """Put a cache under a device-mapper device, while it is mounted."""
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
            f"{name}: what is dirty is on the SSD alone: delete the cache before a reboot, or the"
            " device comes up without it",
            err=True,
        )


@app.command(epilog=examples("isoblk cache info"))
def info(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One cache; else all.")
    ] = None,
) -> None:
    """Show what caches there are, and what they have done."""
    found = [manage.find(name, dmsetup)] if name else manage.caches(dmsetup)
    for state in found:
        _show(state)
    if not found:
        typer.echo("there is no cache")


@app.command(epilog=examples("isoblk cache clean fast"))
def clean(name: Name) -> None:
    """Write all that is dirty to the origin, and wait for it."""
    with working(f"{name}: cleaning") as say:
        live.clean(name, dmsetup, lambda done, total: say(f"{name}: {done} of {total} blocks"))
    typer.echo(f"{name}: nothing is dirty")


@app.command(epilog=examples("isoblk cache edit fast --mode writeback --set set_high=80"))
def edit(
    name: Name,
    mode: Mode = None,
    policy: Policy = None,
    set_: Set = None,
) -> None:
    """Change a cache while it is in use."""
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
            help="Leave what the SSD holds, to be used again; nothing may be written to"
            " the origin until then.",
        ),
    ] = False,
) -> None:
    """Clean a cache and take it away. What was attached is as before."""
    with working(f"{name}: cleaning") as say:
        ssd = live.delete(
            name, dmsetup, lambda done, total: say(f"{name}: {done} of {total} blocks")
        )
    typer.echo(f"{name}: gone; the origin has all that was written")
    if not keep:
        _erase(ssd)


@app.command(
    "unit",
    epilog=examples("isoblk cache unit fast > /etc/systemd/system/isoblk-cache-fast.service"),
)
def unit_(name: Name) -> None:
    """Print a systemd unit that makes a cache at boot, as it is now, and stops it in order."""
    typer.echo(unit(name, dmsetup), nl=False)
    typer.echo(f"then: systemctl enable {unit_name(name)}", err=True)


@app.command(
    "origin",
    epilog=examples(
        "isoblk cache origin /dev/sdb1",
        "isoblk cache origin --is wwid:naa.5000c500a1b2c3d4/start:2048 /dev/sdb1",
    ),
)
def origin_(
    device: Annotated[str, typer.Argument(metavar="ORIGIN", help="A slow device.")],
    is_: Annotated[
        str | None,
        typer.Option("--is", metavar="IDENTITY", help="Fail if it is another device's."),
    ] = None,
) -> None:
    """Show by which identity a cache knows ORIGIN: what no copy of it has.

    Exit status: 0; 1 it has not the identity IDENTITY; 2 nothing tells it from a copy.
    """
    place = find_volume(device).sys
    word = origins.word(place, dmsetup)
    known = f"id:{word}" if word else origins.identity(place)
    if not known:
        raise UserError(
            "nothing tells it from a copy", where=device, next="give it a word: --origin-id WORD"
        )
    if is_ not in (None, known):
        raise RunError(f"is {known}, not {is_}", where=device, next="name that disk")
    typer.echo(known)


@app.command(
    epilog=examples(
        "isoblk cache check /dev/nvme0n1p3",
        "isoblk cache check --repair --was wwid:naa.5000c500a1b2c3d4 /dev/nvme0n1p3",
    )
)
def check(
    ssd: Annotated[
        str, typer.Argument(metavar="SSD", help="The SSD of a cache, or an image of one.")
    ],
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be without losing a dirty block.")
    ] = False,
    drop_damaged: Annotated[
        bool,
        typer.Option(
            "--drop-damaged",
            help="With --repair: also free slots that may hold dirty data of which nothing says"
            " any more where they belong. They are lost.",
        ),
    ] = False,
    was: Annotated[
        str | None,
        typer.Option(
            metavar="IDENTITY",
            help="With --repair: forget this origin, which check shows: it is gone, or was copied"
            " to another disk; the next one that create or attach names takes its place.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what the SSD of a cache holds, and what is damaged; nobody may use it meanwhile.

    Each damage is a line: where, what, and the options that mend it. The origin is not touched.

    Exit status: 0 sound, also after a repair; 1 damaged; 2 in use, no cache, not readable.
    """
    if drop_damaged and not repair:
        raise UserError("--drop-damaged: goes with --repair", next="add --repair")
    if was is not None and not repair:
        raise UserError("--was: goes with --repair", next="add --repair")
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
    """Say what can be done where the kernel finds the SSD of another origin, or none to name."""
    try:
        yield
    except RunError as error:
        if found := _OTHER_ORIGIN.search(error.cause):
            here = origins.whose(found[1], dmsetup)
            raise UserError(
                f"is the cache of {found[1]}{here and f' ({here})'}, not of {found[2]}",
                where=ssd,
                next="name that disk; if it is gone, or was copied to this one:"
                f" isoblk cache check --repair --was {found[1]} {ssd};"
                f" if nothing on the SSD matters: blkdiscard --zeroout {ssd}",
            ) from None
        if _NO_IDENTITY in error.cause:
            raise UserError(
                "nothing tells this origin from other disks, and dirty blocks must not get onto"
                " another one",
                where=error.where,
                next="--origin-id WORD, your own for this disk; or --mode writethrough",
            ) from None
        raise


def _both() -> Personality:
    """Whose words for modes and policies are of any personality."""
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
        raise UserError(f"--like {like}: unknown", next=suggest(like, PERSONALITIES))
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
            raise UserError(f"--set {name}: has an option of its own", next=f"--{name}")
        options[name] = int(number)
    return options


def _word(origin: Disk, ssd: Claim) -> str:
    """A word for an origin; none if the SSD says that the kernel had a name for its own."""
    if ssd.cached:
        with ssd.bytes(os.O_RDONLY) as opened:
            known = checking.identity(opened)
        if known and not known.startswith("id:"):
            return ""
    return origins.word(origin.sys, dmsetup)


def _hand_over(ssd: Claim, wipe: str | None) -> None:
    """Let the target have an SSD, a new one if that is asked for."""
    if wipe is not None:
        ssd.wipe()
    ssd.release()


def _erase(number: str) -> None:
    """Make an SSD whose cache is gone a new one; it may be lost."""
    try:
        volumes.erase(number)
    except (UserError, RunError) as error:
        raise RunError(
            f"not erased: {error.cause}",
            where=volumes.path_of(number),
            next="if it comes back, wipe it: its blocks will be older than the origin's",
        ) from None


def _show_report(found: Report) -> None:
    for damage in found.mended:
        typer.echo(f"mended: {damage.where}: {damage.cause}; {damage.cure}")
    if found.revived:
        typer.echo(f"revived: {found.revived} slots, whose places can be written and read again")
    for damage in found.damage[:_MOST_LINES]:
        typer.echo(str(damage))
    if len(found.damage) > _MOST_LINES:
        typer.echo(f"and {len(found.damage) - _MOST_LINES} more; --json has them all")
    table = Table(title=found.ssd, title_justify="left", show_header=False, box=None)
    for what, value in checking.describe(found):
        table.add_row(what, value + (_path_of(found.identity) if what == "origin" else ""))
    if table.rows:
        new_console(soft_wrap=True).print(table)
    if not found.damage:
        typer.echo(f"{found.ssd}: sound")


def _path_of(identity: str | None) -> str:
    """Where the origin is, if it is here and can be seen."""
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
        following = f"{command} {Cure.DROP} {found.ssd} frees it, and loses what was written there"
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

# SPDX-License-Identifier: GPL-2.0-only
"""The scheduler of a disk: set now, and kept for the next boot."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from isoblk.errors import RunError, UserError
from isoblk.machine import system
from isoblk.machine.blockdev import Disk, disk_of, elevators
from isoblk.machine.process import PATH
from isoblk.schedulers.isoblk import AUTO, COST_MODEL, USER, shown, to_write
from isoblk.weights import rule
from isoblk.weights.disk import OURS
from isoblk.weights.lock import alone

# There while udevd runs.
_CONTROL: Final = Path("/run/udev/control")
_LOCK: Final = Path("/run/isoblk/disk.lock")
# Of the package isoblk-dkms.
_DKMS: Final = Path("/usr/lib/isoblk-dkms")
_MODULES: Final = Path("/lib/modules")


def find(name: str, sys: Path = system.SYS) -> Disk:
    """The disk with a name, of the kernel's or in /dev.

    Raises:
        UserError: none has it, or it is none that has a scheduler.
    """
    if name.startswith("/dev/"):
        name = str(Path(name).resolve()).removeprefix("/dev/")
    place = sys / "class/block" / name.replace("/", "!")
    try:
        number = (place / "dev").read_text().strip()
    except (OSError, ValueError):
        raise UserError("no disk has this name", where=name, next="see: isoblk disk show") from None
    return disk_of(f"/dev/{name}", number, sys)


def all_disks(sys: Path = system.SYS) -> list[Disk]:
    """All disks that have a scheduler."""
    found = []
    for place in sorted((sys / "block").iterdir()):
        with contextlib.suppress(UserError):
            found.append(find(place.name, sys))
    return found


def current(disk: Disk) -> tuple[str, int]:
    """Its scheduler, and nr_requests."""
    queue = disk.sys / "queue"
    name = system.chosen((queue / "scheduler").read_text().strip())
    return name, int((queue / "nr_requests").read_text())


def model_of(disk: Disk) -> str:
    """The disk's model; "" if it has none. Any text: a disk may call itself whatever it likes."""
    try:
        return " ".join((disk.sys / "device/model").read_text(errors="replace").split())
    except OSError:
        return ""


def cost_model_of(disk: Disk) -> str:
    """The disk's cost model as it is written to the tunable; AUTO without one."""
    try:
        return to_write(_cost_model(disk).read_text().strip())
    except OSError:
        return AUTO


def describe(disk: Disk) -> str:
    """In words."""
    return "{}, {} tags".format(*current(disk))


def row(disk: Disk) -> tuple[str, str, str, str, str, str]:
    """Name, model, scheduler, cost model, tags, and what it has at the next boot by a rule of
    ours."""
    scheduler, tags = current(disk)
    kept = at_boot(disk)
    then = "" if not kept else kept.scheduler + (f", {kept.tags} tags" if kept.tags else "")
    return disk.name, model_of(disk), scheduler, _cost_word(disk), str(tags), then


def _cost_word(disk: Disk) -> str:
    """The kind of the disk's cost model: "auto", "bytes", or "own"; "" without one."""
    try:
        word, _ = shown(_cost_model(disk).read_text())
    except (OSError, ValueError):
        return ""
    return "own" if word == USER else word


def at_boot(disk: Disk) -> rule.Rule | None:
    """The rule of ours that counts at the next boot: the last."""
    return next(reversed(_rules_of(disk)), None)


def why_missing(scheduler: str, packaged: Path = _DKMS, modules: Path = _MODULES) -> str:
    """What to do if the kernel that runs does not have a scheduler; "" if it is not one of ours."""
    release = os.uname().release
    if scheduler not in OURS:
        return ""
    if not packaged.is_dir():
        return "isoblk's schedulers come with the package isoblk-dkms"
    if not (modules / release / "build").exists():
        return f"install the headers of the kernel that runs: linux-headers-{release}"
    return f"why: {packaged}/tell {release}, and dkms status isoblk"


def not_as_kept(disk: Disk) -> str:
    """Why it does not have the scheduler of its rule, in words; "" if it has, or has no rule."""
    kept, now = at_boot(disk), current(disk)[0]
    if kept is None or kept.scheduler == now:
        return ""
    if kept.scheduler in elevators(disk):
        return (
            f"{disk.name} has {now}, its rule says {kept.scheduler}: somebody has changed it,"
            " or the kernel did not take it; see: dmesg"
        )
    missing = why_missing(kept.scheduler)
    return (
        f"{disk.name} is to have {kept.scheduler}, which this kernel does not have"
        + f"; {missing}" * bool(missing)
    )


def use(disk: Disk, scheduler: str, tags: int | None, cost_model: str = AUTO) -> None:
    """Set it now, and write the rule.

    Args:
        cost_model: as it is written to isoblk's tunable.

    Raises:
        UserError: it may not be set so, or the rule not be written.
    """
    with _alone():
        before = (*current(disk), cost_model_of(disk))
        kept = _rules_of(disk)
        try:
            key, value = rule.identity(disk.name, _properties(disk))
            _set(disk, scheduler, tags, cost_model)
            first = kept[0].before if kept else before[:2]
            rule.put(rule.Rule(key, value, scheduler, tags, first, cost_model), instead=kept)
        except UserError:
            # Why it failed says more than why it could not be set back.
            with contextlib.suppress(UserError):
                _set(disk, *before)
            raise
        _reload()


def reset(disk: Disk) -> None:
    """Set what it had before use(), and remove the rule.

    Raises:
        UserError: use() was not called for it.
    """
    with _alone():
        kept = _rules_of(disk)
        if not kept:
            raise UserError(
                "no rule of isoblk is for this disk", where=disk.name, next="see: isoblk disk show"
            )
        rule.remove(kept)
        _reload()
        try:
            _set(disk, *kept[0].before)
        except UserError as error:
            raise UserError(
                error.cause,
                where=error.where,
                next=f"the rule is removed; choose another: isoblk disk use NAME {disk.name}",
            ) from None


def sharing(disk: Disk, sys: Path = system.SYS) -> list[str]:
    """Names of the other disks for which its rule is as well."""
    named = {(one.key, one.value) for one in _rules_of(disk)[-1:]}
    return [
        one.name
        for one in all_disks(sys)
        if one.name != disk.name and named & set(_identities(one))
    ]


def _rules_of(disk: Disk) -> list[rule.Rule]:
    named = _identities(disk)
    return [one for one in rule.read() if (one.key, one.value) in named]


def _identities(disk: Disk) -> list[tuple[str, str]]:
    return rule.identities(disk.name, _properties(disk))


def _alone() -> contextlib.AbstractContextManager[None]:
    """Be the only one who changes the rules."""
    return alone(_LOCK, "set schedulers")


def _set(disk: Disk, scheduler: str, tags: int | None, cost_model: str = AUTO) -> None:
    # In this order: choosing a scheduler sets the others back.
    _write(disk.sys / "queue/scheduler", scheduler, next="see: dmesg")
    if tags is not None:
        _write(disk.sys / "queue/nr_requests", str(tags))
    # A disk that had isoblk before keeps its model.
    if cost_model != cost_model_of(disk):
        if not (path := _cost_model(disk)).exists():
            raise UserError(
                "the isoblk that is loaded has no cost model",
                where=str(path),
                next="load the newer module (a reboot does), or add: --cost-model auto",
            )
        _write(path, cost_model)


def _cost_model(disk: Disk) -> Path:
    return disk.sys / "queue/iosched" / COST_MODEL


def _write(path: Path, value: str, *, next: str = "") -> None:
    try:
        path.write_text(value)
    except PermissionError:
        raise UserError("no right to write it", where=str(path), next="run as root") from None
    except OSError as error:
        raise UserError(
            f"the kernel does not take {value}: {error.strerror}", where=str(path), next=next
        ) from None


def _properties(disk: Disk) -> dict[str, str]:
    """What udev knows of a disk; {} without udev."""
    path = system.SYS.parent / "run/udev/data" / f"b{disk.number}"
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line[2:].partition("=") for line in lines if line.startswith("E:"))
    return {name: value for name, _, value in pairs}


def _reload() -> None:
    """Have udev read its rules again; where none runs it will when it starts."""
    if shutil.which("udevadm", path=PATH) is None or not _CONTROL.exists():
        return
    done = subprocess.run(
        ["udevadm", "control", "--reload"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": PATH},
    )
    if done.returncode:
        raise RunError(
            f"udev did not read its rules again: {done.stderr.strip()}",
            next="udevadm control --reload",
        )

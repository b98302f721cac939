# SPDX-License-Identifier: GPL-2.0-only
"""Set a disk's scheduler now, and keep it for the next boot."""

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

# Exists while udevd runs.
_CONTROL: Final = Path("/run/udev/control")
_LOCK: Final = Path("/run/isoblk/disk.lock")
# Directory of the package isoblk-dkms.
_DKMS: Final = Path("/usr/lib/isoblk-dkms")
_MODULES: Final = Path("/lib/modules")


def find(name: str, sys: Path = system.SYS) -> Disk:
    """Find a disk by the kernel's name or a path in /dev.

    Raises:
        UserError: there is no such disk, or it has no scheduler.
    """
    name = _name(name)
    try:
        number = (_place(name, sys) / "dev").read_text().strip()
    except (OSError, ValueError):
        raise UserError("no disk has this name", where=name, next="see: isoblk disk show") from None
    return disk_of(f"/dev/{name}", number, sys)


def is_disk(name: str, sys: Path = system.SYS) -> bool:
    """Return whether a block device has this name or path in /dev."""
    try:
        return (_place(_name(name), sys) / "dev").exists()
    except (OSError, ValueError):
        return False


def _name(name: str) -> str:
    return str(Path(name).resolve()).removeprefix("/dev/") if name.startswith("/dev/") else name


def _place(name: str, sys: Path) -> Path:
    return sys / "class/block" / name.replace("/", "!")


def all_disks(sys: Path = system.SYS) -> list[Disk]:
    """Return all disks that have a scheduler."""
    found = []
    for place in sorted((sys / "block").iterdir()):
        with contextlib.suppress(UserError):
            found.append(find(place.name, sys))
    return found


def current(disk: Disk) -> tuple[str, int]:
    """Return a disk's scheduler and nr_requests."""
    queue = disk.sys / "queue"
    name = system.chosen((queue / "scheduler").read_text().strip())
    return name, int((queue / "nr_requests").read_text())


def model_of(disk: Disk) -> str:
    """Return the disk's model, any text; "" if it has none."""
    try:
        return " ".join((disk.sys / "device/model").read_text(errors="replace").split())
    except OSError:
        return ""


def cost_model_of(disk: Disk) -> str:
    """Return the disk's cost model as written to the tunable; AUTO without one."""
    try:
        return to_write(_cost_model(disk).read_text().strip())
    except OSError:
        return AUTO


def describe(disk: Disk) -> str:
    """Return scheduler and tags in words."""
    return "{}, {} tags".format(*current(disk))


def row(disk: Disk) -> tuple[str, str, str, str, str, str]:
    """Return name, model, scheduler, cost model, tags, and scheduler at the next boot."""
    scheduler, tags = current(disk)
    kept = at_boot(disk)
    then = "" if not kept else kept.scheduler + (f", {kept.tags} tags" if kept.tags else "")
    return disk.name, model_of(disk), scheduler, _cost_word(disk), str(tags), then


def _cost_word(disk: Disk) -> str:
    """Return the kind of the disk's cost model: "auto", "bytes" or "own"; "" without one."""
    try:
        word, _ = shown(_cost_model(disk).read_text())
    except (OSError, ValueError):
        return ""
    return "own" if word == USER else word


def at_boot(disk: Disk) -> rule.Rule | None:
    """Return our rule that applies at the next boot, which is the last; None without one."""
    return next(reversed(_rules_of(disk)), None)


def why_missing(scheduler: str, packaged: Path = _DKMS, modules: Path = _MODULES) -> str:
    """Return how to get a scheduler that the running kernel lacks; "" if it is not ours."""
    release = os.uname().release
    if scheduler not in OURS:
        return ""
    if not packaged.is_dir():
        return "install the package isoblk-dkms"
    if not (modules / release / "build").exists():
        return f"install the headers of the running kernel: linux-headers-{release}"
    return f"see: {packaged}/tell {release}, and dkms status isoblk"


def not_as_kept(disk: Disk) -> str:
    """Return why the disk lacks its rule's scheduler; "" if it has it, or has no rule."""
    kept, now = at_boot(disk), current(disk)[0]
    if kept is None or kept.scheduler == now:
        return ""
    if kept.scheduler in elevators(disk):
        return (
            f"{disk.name} has {now}, its rule sets {kept.scheduler}: the scheduler was changed"
            " since, or the kernel refused it; see: dmesg"
        )
    missing = why_missing(kept.scheduler)
    return (
        f"{disk.name}: its rule sets {kept.scheduler}, which this kernel does not have"
        + f"; {missing}" * bool(missing)
    )


def use(disk: Disk, scheduler: str, tags: int | None, cost_model: str = AUTO) -> None:
    """Set the scheduler now, and write the rule for each boot.

    Args:
        disk: the disk.
        scheduler: its scheduler.
        tags: nr_requests; None: the kernel's.
        cost_model: as written to isoblk's tunable.

    Raises:
        UserError: the kernel refuses a value, or the rule cannot be written.
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
            # Report the first failure, not that of restoring the settings.
            with contextlib.suppress(UserError):
                _set(disk, *before)
            raise
        _reload()


def reset(disk: Disk) -> None:
    """Restore the settings from before use(), and remove the rule.

    Raises:
        UserError: the disk has no rule, or the kernel refuses the former settings.
    """
    with _alone():
        kept = _rules_of(disk)
        if not kept:
            raise UserError(
                "the disk has no rule of isoblk", where=disk.name, next="see: isoblk disk show"
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
    """Return names of other disks that the disk's rule matches."""
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
    """Hold the lock of the rules."""
    return alone(_LOCK, "set schedulers")


def _set(disk: Disk, scheduler: str, tags: int | None, cost_model: str = AUTO) -> None:
    # In this order: choosing a scheduler resets the other settings.
    _write(disk.sys / "queue/scheduler", scheduler, next="see: dmesg")
    if tags is not None:
        _write(disk.sys / "queue/nr_requests", str(tags))
    # A disk that already had isoblk keeps its model.
    if cost_model != cost_model_of(disk):
        if not (path := _cost_model(disk)).exists():
            raise UserError(
                "the loaded isoblk module has no cost model",
                where=str(path),
                next="reboot to load the newer module, or add --cost-model auto",
            )
        _write(path, cost_model)


def _cost_model(disk: Disk) -> Path:
    return disk.sys / "queue/iosched" / COST_MODEL


def _write(path: Path, value: str, *, next: str = "") -> None:
    try:
        path.write_text(value)
    except PermissionError:
        raise UserError("no permission to write", where=str(path), next="run as root") from None
    except OSError as error:
        raise UserError(
            f"the kernel refuses {value}: {error.strerror}", where=str(path), next=next
        ) from None


def _properties(disk: Disk) -> dict[str, str]:
    """Return udev's properties of a disk; {} without udev."""
    path = system.SYS.parent / "run/udev/data" / f"b{disk.number}"
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line[2:].partition("=") for line in lines if line.startswith("E:"))
    return {name: value for name, _, value in pairs}


def _reload() -> None:
    """Make a running udev read its rules again; else it reads them at its start."""
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
            next="run: udevadm control --reload",
        )

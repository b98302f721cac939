# SPDX-License-Identifier: GPL-2.0-only
"""The scheduler of a disk: set now, and kept for the next boot."""

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

from isoblk.errors import RunError, UserError
from isoblk.machine import system
from isoblk.machine.blockdev import Disk, disk_of
from isoblk.machine.process import PATH
from isoblk.weights import rule

# There while udevd runs.
_CONTROL: Final = Path("/run/udev/control")


def find(name: str, sys: Path = system.SYS) -> Disk:
    """The disk with a name, of the kernel's or in /dev.

    Raises:
        UserError: none has it, or it is none that has a scheduler.
    """
    if name.startswith("/dev/"):
        name = Path(name).resolve().name
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


def describe(disk: Disk) -> str:
    """In words."""
    return "{}, {} tags".format(*current(disk))


def row(disk: Disk) -> tuple[str, str, str, str, str]:
    """Name, model, scheduler, tags, and what it has at the next boot by a rule of ours."""
    scheduler, tags = current(disk)
    model = disk.sys / "device/model"
    kept = _rule_of(disk)
    then = "" if not kept else kept.scheduler + (f", {kept.tags} tags" if kept.tags else "")
    named = " ".join(model.read_text().split()) if model.exists() else ""
    return disk.name, named, scheduler, str(tags), then


def use(disk: Disk, scheduler: str, tags: int | None) -> None:
    """Set it now, and write the rule.

    Raises:
        UserError: it may not be set so, or the rule not be written.
    """
    before = current(disk)
    kept = _rule_of(disk)
    _set(disk, scheduler, tags)
    try:
        key, value = rule.identity(disk.name, _properties(disk))
        rule.put(rule.Rule(key, value, scheduler, tags, kept.before if kept else before))
    except UserError:
        _set(disk, *before)
        raise
    _reload()


def reset(disk: Disk) -> None:
    """Set what it had before use(), and remove the rule.

    Raises:
        UserError: use() was not called for it.
    """
    kept = _rule_of(disk)
    if kept is None:
        raise UserError("no rule of isoblk is for this disk", where=disk.name)
    rule.remove(kept.key, kept.value)
    _reload()
    _set(disk, *kept.before)


def _rule_of(disk: Disk) -> rule.Rule | None:
    named = {("KERNEL", disk.name), rule.identity(disk.name, _properties(disk))}
    return next((one for one in rule.read() if (one.key, one.value) in named), None)


def _set(disk: Disk, scheduler: str, tags: int | None) -> None:
    # In this order: choosing a scheduler sets nr_requests back.
    for name, value in (("scheduler", scheduler), ("nr_requests", tags)):
        if value is None:
            continue
        path = disk.sys / "queue" / name
        try:
            path.write_text(str(value))
        except PermissionError:
            raise UserError("no right to write it", where=str(path), next="run as root") from None
        except OSError as error:
            raise UserError(
                f"the kernel does not take {value}: {error.strerror}", where=str(path)
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

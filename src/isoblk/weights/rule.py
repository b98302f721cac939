# SPDX-License-Identifier: GPL-2.0-only
"""The udev rules that set schedulers of disks, at each boot and when a disk is added."""

import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isoblk.errors import UserError
from isoblk.files import read_text, write_atomically
from isoblk.schedulers.isoblk import AUTO, COST_MODEL

RULES: Final = Path("/etc/udev/rules.d/90-isoblk.rules")
"""Sorted after the distribution's rules (60), since the last rule wins, and after
60-persistent-storage.rules, which sets the serial numbers."""

_READABLE: Final = 0o644

_HEAD: Final = (
    '# Which scheduler disks have. Written by "isoblk disk use" and "isoblk disk reset"; what',
    "# these did not write stays.",
)
# On a line of its own: a comment cannot follow a rule on its line.
_BEFORE = re.compile(r"# before: (?P<name>[\w-]+) (?P<tags>[0-9]{1,9})")
_OURS = re.compile(
    r'ACTION=="add", SUBSYSTEM=="block", ENV\{DEVTYPE\}=="disk",'
    r' (?P<key>KERNEL|ENV\{ID_(?:SERIAL|WWN|WWN_WITH_EXTENSION)\})=="(?P<value>[^"]*)",'
    r' ATTR\{queue/scheduler\}="(?P<scheduler>[\w-]+)"'
    r'(?:, ATTR\{queue/nr_requests\}="(?P<tags>[0-9]{1,9})")?'
    r'(?:, ATTR\{queue/iosched/cost_model\}="(?P<cost_model>[a-z0-9= ]+)")?'
)
# Disks of an array may share ID_WWN and differ only in the extension.
_IDENTITIES: Final = ("ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL")
# Characters that are not special in a pattern of a rule.
_LITERAL = re.compile(r"[\w .:+=@,/-]+", re.ASCII)


@dataclass(frozen=True)
class Rule:
    """The rule of one disk.

    Attributes:
        key: "KERNEL", or "ENV{...}" of an identity. value: the value to match.
        scheduler: the scheduler to set. tags: nr_requests; None: the kernel's.
        before: scheduler and nr_requests before the rule.
        cost_model: of isoblk; AUTO: the rule sets none.
    """

    key: str
    value: str
    scheduler: str
    tags: int | None
    before: tuple[str, int]
    cost_model: str = AUTO

    @property
    def lines(self) -> list[str]:
        """The lines of the file."""
        tags = "" if self.tags is None else f', ATTR{{queue/nr_requests}}="{self.tags}"'
        path = f"queue/iosched/{COST_MODEL}"
        model = "" if self.cost_model == AUTO else f', ATTR{{{path}}}="{self.cost_model}"'
        return [
            f"# before: {self.before[0]} {self.before[1]}",
            'ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk",'
            # udev assigns in this order, and choosing a scheduler resets the other settings.
            f' {self.key}=="{self.value}", ATTR{{queue/scheduler}}="{self.scheduler}"{tags}{model}',
        ]


def identities(name: str, properties: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return keys and values that identify a disk in a Rule, the most specific first.

    Args:
        name: the kernel's, which another disk may have after the next boot.
        properties: udev's properties of the disk.
    """
    named = [(f"ENV{{{key}}}", properties.get(key, "")) for key in _IDENTITIES]
    # udev writes / where the kernel's name has !.
    named.append(("KERNEL", name.replace("!", "/")))
    return [(key, value) for key, value in named if _LITERAL.fullmatch(value)]


def identity(name: str, properties: Mapping[str, str]) -> tuple[str, str]:
    """Return the first of identities(). Raises UserError: the list is empty."""
    if not (found := identities(name, properties)):
        raise UserError("the disk's name would be a pattern in a udev rule", where=name)
    return found[0]


def read(path: Path = RULES) -> list[Rule]:
    """Return our rules."""
    return [part for part in _parts(path) if isinstance(part, Rule)]


def _parts(path: Path) -> list[Rule | str]:
    """Return our rules and all other lines, in the order of the file."""
    if not path.exists():
        return list(_HEAD)
    found: list[Rule | str] = []
    # Only \n ends a line, as for udev.
    for line in read_text(path, "the rules").removesuffix("\n").split("\n"):
        above = found[-1] if found else ""
        before = None if isinstance(above, Rule) else _BEFORE.fullmatch(above.rstrip())
        match = _OURS.fullmatch(line.rstrip())
        if before and match:
            tags = match["tags"]
            found[-1] = Rule(
                match["key"],
                match["value"],
                match["scheduler"],
                int(tags) if tags else None,
                (before["name"], int(before["tags"])),
                match["cost_model"] or AUTO,
            )
        else:
            found.append(line)
    return found


def put(rule: Rule, path: Path = RULES, *, instead: Sequence[Rule] = ()) -> None:
    """Write a disk's rule; it replaces the rule of the same key and the rules in `instead`."""
    _write([*_without([rule, *instead], path), rule], path)


def remove(rules: Sequence[Rule], path: Path = RULES) -> None:
    """Remove a disk's rules, and the file if nothing else is in it."""
    parts = _without(rules, path)
    if any(isinstance(part, Rule) or part.strip("# ") for part in parts if part not in _HEAD):
        _write(parts, path)
    else:
        path.unlink(missing_ok=True)


def _without(rules: Sequence[Rule], path: Path) -> list[Rule | str]:
    named = {(one.key, one.value) for one in rules}
    return [
        part
        for part in _parts(path)
        if not (isinstance(part, Rule) and (part.key, part.value) in named)
    ]


def _write(parts: list[Rule | str], path: Path) -> None:
    lines = [line for part in parts for line in (part.lines if isinstance(part, Rule) else [part])]
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _READABLE
        write_atomically(path, ("\n".join(lines) + "\n").encode())
        # All users may read it, whatever root's umask.
        path.chmod(mode)
    except PermissionError:
        raise UserError("no permission to write", where=str(path), next="run as root") from None
    except FileNotFoundError:
        raise UserError("udev is not installed", where=str(path.parent)) from None
    except OSError as error:
        raise UserError(f"cannot write: {error.strerror}", where=str(path)) from None

# SPDX-License-Identifier: GPL-2.0-only
"""The udev rule that gives disks their scheduler, at each boot and as they come."""

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
"""After those of the distribution, which have 60: whoever sets last wins; and after
60-persistent-storage.rules, which finds out serial numbers."""

_READABLE: Final = 0o644

_HEAD: Final = (
    '# Which scheduler disks have. Written by "isoblk disk use" and "isoblk disk reset"; what',
    "# these did not write stays.",
)
# A comment cannot stand behind a rule.
_BEFORE = re.compile(r"# before: (?P<name>[\w-]+) (?P<tags>[0-9]{1,9})")
_OURS = re.compile(
    r'ACTION=="add", SUBSYSTEM=="block", ENV\{DEVTYPE\}=="disk",'
    r' (?P<key>KERNEL|ENV\{ID_(?:SERIAL|WWN|WWN_WITH_EXTENSION)\})=="(?P<value>[^"]*)",'
    r' ATTR\{queue/scheduler\}="(?P<scheduler>[\w-]+)"'
    r'(?:, ATTR\{queue/nr_requests\}="(?P<tags>[0-9]{1,9})")?'
    r'(?:, ATTR\{queue/iosched/cost_model\}="(?P<cost_model>[a-z0-9= ]+)")?'
)
# The disks of an array may share all of ID_WWN but its extension.
_IDENTITIES: Final = ("ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL")
# Of what a rule matches, only these mean themselves.
_LITERAL = re.compile(r"[\w .:+=@,/-]+", re.ASCII)


@dataclass(frozen=True)
class Rule:
    """One disk's.

    Attributes:
        key: "KERNEL", or "ENV{...}" of an identity. value: what that is.
        scheduler: that it gets. tags: nr_requests, None: as the kernel sets it.
        before: scheduler, and nr_requests, that it had before.
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
        """As they stand in the file."""
        tags = "" if self.tags is None else f', ATTR{{queue/nr_requests}}="{self.tags}"'
        path = f"queue/iosched/{COST_MODEL}"
        model = "" if self.cost_model == AUTO else f', ATTR{{{path}}}="{self.cost_model}"'
        return [
            f"# before: {self.before[0]} {self.before[1]}",
            'ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk",'
            # udev assigns in the order of the line, and choosing a scheduler sets the others back.
            f' {self.key}=="{self.value}", ATTR{{queue/scheduler}}="{self.scheduler}"{tags}{model}',
        ]


def identities(name: str, properties: Mapping[str, str]) -> list[tuple[str, str]]:
    """What tells a disk from others, key and value of a Rule; what does so best is the first.

    Args:
        name: the kernel's, which may be another's after the next boot.
        properties: udev's of it.
    """
    named = [(f"ENV{{{key}}}", properties.get(key, "")) for key in _IDENTITIES]
    # udev has / in names where the kernel has !.
    named.append(("KERNEL", name.replace("!", "/")))
    return [(key, value) for key, value in named if _LITERAL.fullmatch(value)]


def identity(name: str, properties: Mapping[str, str]) -> tuple[str, str]:
    """The first of identities(). Raises UserError: there is none."""
    if not (found := identities(name, properties)):
        raise UserError("its name would be a pattern in a udev rule", where=name)
    return found[0]


def read(path: Path = RULES) -> list[Rule]:
    """The rules that are in force by us."""
    return [part for part in _parts(path) if isinstance(part, Rule)]


def _parts(path: Path) -> list[Rule | str]:
    """Our rules, and the lines of others, in their order."""
    if not path.exists():
        return list(_HEAD)
    found: list[Rule | str] = []
    # A line's end is what udev takes for one.
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
    """Write the disk's rule, in place of the one of the same key, and of others that it had."""
    _write([*_without([rule, *instead], path), rule], path)


def remove(rules: Sequence[Rule], path: Path = RULES) -> None:
    """Remove a disk's rules; the file as well, if nothing else is in it."""
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
        # Whoever may not write it may ask what it says, whatever root's umask.
        path.chmod(mode)
    except PermissionError:
        raise UserError("no right to write it", where=str(path), next="run as root") from None
    except FileNotFoundError:
        raise UserError("there is no udev here", where=str(path.parent)) from None
    except OSError as error:
        raise UserError(f"cannot write it: {error.strerror}", where=str(path)) from None

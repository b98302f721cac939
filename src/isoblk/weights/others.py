# SPDX-License-Identifier: GPL-2.0-only
"""Find other configuration of this machine that sets schedulers of disks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isoblk.weights.rule import RULES

# In udev's order: a file hides files of the same name in later directories.
_RULES: Final = (
    "etc/udev/rules.d",
    "run/udev/rules.d",
    "usr/local/lib/udev/rules.d",
    "usr/lib/udev/rules.d",
)
_SETS = re.compile(r'ATTR\{queue/scheduler\}\s*=\s*"')
_TUNED: Final = "etc/tuned/active_profile"
_TUNED_PROFILES: Final = (
    "etc/tuned",
    "etc/tuned/profiles",
    "usr/lib/tuned",
    "usr/lib/tuned/profiles",
)
_ELEVATOR = re.compile(r"^\s*elevator\s*=", re.MULTILINE)


def others(root: Path = Path("/")) -> Iterator[str]:
    """Yield a sentence for each udev rule, tuned profile or boot option that sets schedulers."""
    for path in _rule_files(root):
        if path.name != RULES.name and any(
            _SETS.search(line) for line in _lines(path) if not line.startswith("#")
        ):
            late = "after" if path.name > RULES.name else "before"
            yield f"/{path.relative_to(root)} sets schedulers, {late} {RULES.name}"
    yield from _tuned(root)
    if re.search(r"(?:^|\s)elevator=", _text(root / "proc/cmdline")):
        yield "the kernel's command line has elevator=, which Linux no longer obeys"


def _rule_files(root: Path) -> list[Path]:
    found: dict[str, Path] = {}
    for place in _RULES:
        for path in sorted((root / place).glob("*.rules")):
            found.setdefault(path.name, path)
    return [found[name] for name in sorted(found)]


def _tuned(root: Path) -> Iterator[str]:
    for name in _text(root / _TUNED).split():
        for place in _TUNED_PROFILES:
            profile = root / place / name / "tuned.conf"
            if "/" not in name and _ELEVATOR.search(_text(profile)):
                yield (
                    f"tuned's profile {name} sets elevator= whenever tuned starts"
                    f" (/{profile.relative_to(root)})"
                )
                break


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in _text(path).replace("\\\n", " ").splitlines()]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except (OSError, ValueError):
        # ValueError: a file filled with zeros by a crash yields a name that is not a path.
        return ""

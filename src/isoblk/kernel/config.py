# SPDX-License-Identifier: GPL-2.0-only
"""Kernel configuration: fragments, and the proof that they took effect."""

import re
from collections.abc import Mapping
from pathlib import Path

from isoblk.errors import UserError

_SET = re.compile(r'(CONFIG_\w+)=(y|m|n|-?\d+|0x[0-9a-fA-F]+|"[^"\\]*")')
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")


def parse(text: str, where: str) -> dict[str, str]:
    """Symbols of a fragment and the values asked for; unset is n.

    Raises:
        UserError: a line is neither a setting, a comment nor empty, or a symbol
            stands twice with different values.
    """
    wanted: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if unset := _UNSET.fullmatch(line):
            symbol, value = unset[1], "n"
        elif setting := _SET.fullmatch(line):
            symbol, value = setting[1], setting[2]
        elif not line or line.startswith("#"):
            continue
        else:
            raise UserError(f"not a setting: {line!r}", where=f"{where}:{number}")
        if wanted.setdefault(symbol, value) != value:
            raise UserError(f"{symbol} is set twice, differently", where=f"{where}:{number}")
    return wanted


def load(paths: list[Path]) -> dict[str, str]:
    """All fragments together; a later one overrides an earlier one."""
    wanted: dict[str, str] = {}
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"cannot read the configuration fragment: {error.strerror}", where=str(path)
            ) from None
        wanted.update(parse(text, str(path)))
    return wanted


def render(wanted: Mapping[str, str]) -> str:
    """A fragment's text, sorted by symbol."""
    return "".join(f"{symbol}={value}\n" for symbol, value in sorted(wanted.items()))


def unapplied(wanted: Mapping[str, str], dotconfig: str, tree: Path) -> list[str]:
    """What of a fragment did not take effect, each with the reason as far as it is known.

    Args:
        wanted: symbols and values asked for.
        dotconfig: text of the .config that resulted.
        tree: the kernel source, whose Kconfig files say which symbols exist.
    """
    actual = {}
    for line in dotconfig.splitlines():
        if match := _SET.fullmatch(line):
            actual[match[1]] = match[2]
    # A symbol that is asked to be off and is absent may be off or misspelt.
    doubtful = {
        symbol
        for symbol, value in wanted.items()
        if actual.get(symbol, "n") != value or symbol not in actual
    }
    if not doubtful:
        return []
    known = _symbols(tree)
    failed = []
    for symbol in sorted(doubtful):
        value, got = wanted[symbol], actual.get(symbol, "n")
        if symbol not in known:
            failed.append(f"{symbol}={value} (no such symbol)")
        elif got != value:
            failed.append(f"{symbol}={value} (is {got})")
    return failed


def _symbols(tree: Path) -> set[str]:
    """Every symbol that the tree's Kconfig files declare, with its CONFIG_ prefix."""
    declared = re.compile(r"^\s*(?:menu)?config\s+(\w+)", re.MULTILINE)
    return {
        "CONFIG_" + name
        for path in tree.rglob("Kconfig*")
        if path.is_file()
        for name in declared.findall(path.read_text(encoding="utf-8", errors="replace"))
    }

# SPDX-License-Identifier: GPL-2.0-only
"""Parse kernel configuration fragments, and check that they took effect."""

import re
from collections.abc import Mapping
from pathlib import Path

from isoblk.errors import UserError

_SET = re.compile(r'(CONFIG_\w+)=(y|m|n|-?\d+|0x[0-9a-fA-F]+|"[^"\\]*")')
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")


def parse(text: str, where: str) -> dict[str, str]:
    """Parse a fragment into its symbols and values; "is not set" is n.

    Raises:
        UserError: a line is not a setting, a comment or empty, or a symbol has two values.
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
            raise UserError(f"{symbol} has two values", where=f"{where}:{number}")
    return wanted


def load(paths: list[Path]) -> dict[str, str]:
    """Read fragments; a later one overrides an earlier one."""
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
    """Format a fragment, sorted by symbol."""
    return "".join(f"{symbol}={value}\n" for symbol, value in sorted(wanted.items()))


def unapplied(wanted: Mapping[str, str], dotconfig: str, tree: Path) -> list[str]:
    """Return the settings that did not take effect, each with the reason if it is known.

    Args:
        wanted: symbols and requested values.
        dotconfig: text of the resulting .config.
        tree: the kernel source, whose Kconfig files declare the symbols.
    """
    actual = {}
    for line in dotconfig.splitlines():
        if match := _SET.fullmatch(line):
            actual[match[1]] = match[2]
    # A symbol that was requested off and is absent may be off or misspelt.
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
    """Return all symbols that the tree's Kconfig files declare, with the prefix CONFIG_."""
    declared = re.compile(r"^\s*(?:menu)?config\s+(\w+)", re.MULTILINE)
    return {
        "CONFIG_" + name
        for path in tree.rglob("Kconfig*")
        if path.is_file()
        for name in declared.findall(path.read_text(encoding="utf-8", errors="replace"))
    }

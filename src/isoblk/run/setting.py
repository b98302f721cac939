# SPDX-License-Identifier: GPL-2.0-only
"""Settings: the values that the plan writes, and the check that they took effect."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from isoblk.run.record import Knob
from isoblk.run.shell import ForDevice

_NUMBERS = re.compile(r"\d+:\d+")

Form = Literal["plain", "choice", "weight", "pairs", "model", "rounded", "table"]


@dataclass(frozen=True)
class Setting:
    """A file and the value that is written to it.

    form: format of the file when it is read. "plain": as written. "choice": all choices, the chosen
    one in brackets. "weight": the number, perhaps after "default". "pairs": after a device number,
    NAME=VALUE pairs, perhaps more than were written. "model": a word, perhaps with NAME=VALUE pairs
    after it, or, after "user", the pairs that were written. "rounded": a number of bytes, as 4.0M.
    "table": a table of device-mapper, with numbers for paths of devices.
    """

    path: str
    value: str | ForDevice
    form: Form = "plain"

    @property
    def text(self) -> str:
        """Return the value as the script writes it."""
        return str(self.value)


def parse_read_back(text: str, paths: Iterable[str]) -> dict[str, str]:
    """Parse the output of `grep -H ''` into path -> content (lines joined by a newline).

    Args:
        text: the output.
        paths: of the files. Paths and contents may contain colons: existing cgroups have names that
            isoblk does not choose. Lines of other files are ignored.
    """
    known = frozenset(paths)
    content: dict[str, list[str]] = {}
    for line in text.split("\n"):
        colons = [at for at, character in enumerate(line) if character == ":"]
        end = next((at for at in reversed(colons) if line[:at] in known), None)
        if end is not None:
            content.setdefault(line[:end], []).append(line[end + 1 :])
    return {path: "\n".join(lines) for path, lines in content.items()}


def check(settings: tuple[Setting, ...], read_back: Mapping[str, str], device: str) -> list[Knob]:
    """Compare written and read values: a Knob per setting.

    A file that is written twice counts once, with the last value. device: number of the configured
    disk, the only one whose lines count; "" if the machine has no other.
    """
    last = {setting.path: setting for setting in settings}
    return [
        Knob(
            path=path,
            asked=setting.text,
            got=read_back.get(path, ""),
            ok=took_effect(setting, read_back.get(path, ""), device),
        )
        for path, setting in last.items()
    ]


def took_effect(setting: Setting, got: str, device: str) -> bool:
    """Return whether a file has the value that was written to it. device: as for check()."""
    match setting.form:
        case "plain":
            same = got == setting.text
        case "choice":
            # A queue whose only choice is "none" shows it without brackets.
            same = f"[{setting.text}]" in got.split() or got == setting.text
        case "weight":
            first_line = got.split("\n", 1)[0]
            same = first_line.removeprefix("default ") == setting.text
        case "rounded":
            same = _rounded(int(setting.text)) == got.strip()
        case "table":
            same = _without_devices(setting.text) == _without_devices(got)
        case "model":
            asked = _parse_pairs(setting.text)
            first_word = "user" if asked else setting.text
            same = got.split()[:1] == [first_word] and asked in ({}, _parse_pairs(got))
        case "pairs":
            asked = _parse_pairs(setting.text)
            own = [line for line in got.splitlines() if device in ("", *line.split()[:1])]
            same = any(
                all(_same(value, pairs.get(name)) for name, value in asked.items())
                for pairs in map(_parse_pairs, own)
            )
    return same


def _rounded(size: int) -> str:
    """Format a size as bcache does (bch_hprint()): at most three digits, and one decimal,
    truncated."""
    units, unit, rest = "kMGTPE", -1, 0
    while unit < 0 or size >= 1000:
        size, rest = divmod(size, 1 << 10)
        unit += 1
    return f"{size}.{rest * 10 // 1024}{units[unit]}"


def _without_devices(line: str) -> list[str]:
    """Return the words of a table without paths and MAJOR:MINOR."""
    return [w for w in line.split() if not w.startswith("/dev/") and not _NUMBERS.fullmatch(w)]


def _parse_pairs(line: str) -> dict[str, str]:
    words = (word.partition("=") for word in line.split())
    return {name: value for name, equals, value in words if equals}


def _same(asked: str, got: str | None) -> bool:
    if got is None:
        return False
    try:
        return float(asked) == float(got)
    except ValueError:
        return asked == got

# SPDX-License-Identifier: GPL-2.0-only
"""Settings: what the plan writes, and whether it took effect."""

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
    """A file and what is written to it.

    form: how the file reads back. "plain": as written. "choice": all choices, the chosen
    one in brackets. "weight": the number, perhaps after "default". "pairs": after a device
    number, NAME=VALUE pairs, perhaps more of them than were written. "model": a word, perhaps
    with NAME=VALUE pairs after it, or, after "user", the pairs that were written. "rounded": a
    number of bytes, as 4.0M. "table": a line of device-mapper's, with numbers for paths of
    devices.
    """

    path: str
    value: str | ForDevice
    form: Form = "plain"

    @property
    def text(self) -> str:
        """What is written, as the script has it."""
        return str(self.value)


def parse_read_back(text: str, paths: Iterable[str]) -> dict[str, str]:
    """`grep -H ''` output to path -> content (lines joined by a newline).

    Args:
        text: the output.
        paths: of the files that were read. They may hold colons, as contents may: the name of a
            cgroup that was there before is others' choice. Lines of no such file are left out.
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
    """What was asked beside what was read, a Knob a setting.

    A file that is written twice counts once, with what was written last. device: the number of the
    disk that was set up, of which alone lines count; "" if the machine has no other.
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
    """Whether what a file reads is what was written to it. device: as check() has it."""
    match setting.form:
        case "plain":
            same = got == setting.text
        case "choice":
            # A queue that can have only "none" shows it without brackets.
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
    """A size as bcache prints it (bch_hprint()): at most three digits, and one decimal, cut off."""
    units, unit, rest = "kMGTPE", -1, 0
    while unit < 0 or size >= 1000:
        size, rest = divmod(size, 1 << 10)
        unit += 1
    return f"{size}.{rest * 10 // 1024}{units[unit]}"


def _without_devices(line: str) -> list[str]:
    """The words of a table, but for paths and MAJOR:MINOR."""
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

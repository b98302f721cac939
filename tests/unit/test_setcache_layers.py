# SPDX-License-Identifier: GPL-2.0-only
"""The parts of dm-setcache call those below them alone, in the order of kernel/cache/Kbuild, and
no two of their constants are mistaken for each other."""

import re
from itertools import combinations
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "kernel" / "cache"
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
# At the beginning of a line; a static one is private to its file.
FUNCTION = re.compile(r"^(?!static\b)[a-z][\w \t*]*?\n?\b(sc_\w+)\([^;{}]*\)\n\{", re.M)
OBJECT = re.compile(r"^(?!static\b|extern\b)[a-z][\w \t*]*\b(sc_\w+)(?:\[\w*\])? = \{", re.M)


def _code(path: Path) -> str:
    return STRING.sub('""', COMMENT.sub("", path.read_text()))


def _parts() -> list[str]:
    """From the top to the ground."""
    return re.findall(r"\b(setcache-\w+)\.o", (FOLDER / "Kbuild").read_text())


def _codes() -> dict[str, str]:
    return {path.stem: _code(path) for path in FOLDER.glob("*.c")}


def _defined(codes: dict[str, str]) -> dict[str, str]:
    """The names that the parts share, and the part that defines each."""
    owners: dict[str, str] = {}
    for part, code in codes.items():
        for name in FUNCTION.findall(code) + OBJECT.findall(code):
            assert name not in owners, f"{name} is defined in {owners[name]} and {part}"
            owners[name] = part
    return owners


def test_the_list_of_parts_is_complete() -> None:
    assert sorted(_parts()) == sorted(path.stem for path in FOLDER.glob("*.c"))


def test_the_readme_has_the_parts_in_their_order() -> None:
    rows = re.findall(r"^\| `(setcache-\w+)\.c` \|", (FOLDER / "README.md").read_text(), re.M)
    assert rows == _parts()


def test_declared_functions_are_found() -> None:
    """Else the tests below would be blind."""
    declared = {
        name
        for path in FOLDER.glob("*.h")
        for name in re.findall(
            r"^(?!static\b|\t)[a-z][\w \t*]*?\n?\b(sc_\w+)\([^{}]*?\);", _code(path), re.M
        )
    }
    assert len(declared) > 50
    assert declared <= set(_defined(_codes()))


def test_no_part_calls_one_above_it() -> None:
    codes = _codes()
    owners = _defined(codes)
    height = {part: -place for place, part in enumerate(_parts())}
    upward = [
        f"{part} uses {name} of {owners[name]}"
        for part, code in codes.items()
        for name in sorted(set(re.findall(r"(?<!struct )(?<!enum )\bsc_\w+", code)))
        if name in owners and height[owners[name]] > height[part]
    ]
    assert not upward


def test_no_part_sees_the_header_of_one_above_it() -> None:
    """A header that is no part's is what several of them share."""
    order = _parts()
    upward = [
        f"{path.name} includes {name}.h"
        for path in FOLDER.glob("*.[ch]")
        for name in re.findall(r'^#include "(setcache[\w-]*)\.h"', path.read_text(), re.M)
        if path.stem in order and name in order and order.index(name) < order.index(path.stem)
    ]
    assert not upward


def _near(one: str, other: str) -> bool:
    """Whether one letter more, less or another makes one of the other."""
    if len(one) > len(other):
        one, other = other, one
    if len(one) == len(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) <= 1
    return any(other[:i] + other[i + 1 :] == one for i in range(len(other)))


def test_no_two_constants_differ_by_a_letter() -> None:
    text = "\n".join(_code(path) for path in FOLDER.glob("*.[ch]"))
    names = sorted(set(re.findall(r"\bSC_[A-Z0-9_]+\b", text)))
    assert len(names) > 100
    assert not [(one, other) for one, other in combinations(names, 2) if _near(one, other)]

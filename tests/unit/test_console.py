# SPDX-License-Identifier: GPL-2.0-only
"""Text from outside is shown as it is: brackets are not markup, colons not emoji, and no escape
sequence reaches the terminal."""

import ast
import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from isoblk import console
from tests.unit.cacheimage import make_image
from tests.unit.scripts import ROOT

SOURCE = ROOT / "src/isoblk"
ODD = "[/red] [bold]x[/] :smile: [link=https://example.org]y[/link] {z} \\[a]"


def _drawn(what: object) -> str:
    drawn = console.new_console(soft_wrap=True, width=400)
    drawn.file = io.StringIO()
    drawn.print(what)
    return drawn.file.getvalue()


@given(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=40))
def test_text_is_printed_as_it_is(text: str) -> None:
    assert _drawn(text) == f"{text}\n"


def test_cells_and_titles_of_tables_are_text() -> None:
    table = Table(ODD, title=ODD, title_justify="left", caption=ODD, box=None)
    table.add_row(ODD)
    assert _drawn(table).count(ODD) == 4


def test_a_terminal_obeys_nothing_that_is_printed() -> None:
    table = Table("name", box=None)
    table.add_row("a\x1b[31mb\x9b2Jc\rd\n\te")
    for drawn in (_drawn("a\x1b[31mb\x9b2Jc\rd\n\te"), _drawn(table)):
        assert not any(letter in drawn for letter in "\x1b\x9b\r")
        assert "a\\x1b[31mb\\x9b2Jc\\rd" in drawn


@pytest.mark.parametrize("identity", [":loop:0", "[/red]", "[link=x]y[/link]", "id::x:"])
def test_an_identity_is_shown_as_it_stands_on_the_ssd(tmp_path: Path, identity: str) -> None:
    image = make_image(tmp_path / "ssd")
    image.newest = replace(image.newest, identity=identity)
    image.write()
    done = _isoblk("cache", "check", str(image.path))
    assert done.returncode == 0, done.stderr
    assert f" {identity}, " in done.stdout


def test_a_traces_name_is_shown_as_it_is(tmp_path: Path) -> None:
    name = "[red]:smile:.csv"
    rows = "".join(f"{1e17 + i:.0f},host,0,Read,{i * 4096},4096,10\n" for i in range(3))
    (tmp_path / name).write_text(rows)
    done = _isoblk("trace", "info", str(tmp_path / name))
    assert done.returncode == 0, done.stderr
    assert name in done.stdout


def _isoblk(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "isoblk", *words], capture_output=True, text=True, check=False
    )


def test_there_is_one_way_to_print() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "console.py"
        for line, what in _others(path.read_text())
    ]
    assert not found, found


@pytest.mark.parametrize(
    "text",
    [
        "from rich.console import Console\nConsole()",
        "import rich\nrich.console.Console(stderr=True)",
        "from rich import print",
        "import rich\nrich.print(1)",
        "from rich.markup import escape",
        "from rich.text import Text\nText.from_markup('')",
        "f.print('x', markup=True)",
    ],
)
def test_another_way_to_print_is_found(text: str) -> None:
    assert _others(text)


def _others(text: str) -> list[tuple[int, str]]:
    """Lines of a program that print by themselves, or speak of markup."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (
            node.module == "rich.markup"
            or (node.module == "rich" and any(one.name == "print" for one in node.names))
        ):
            found.append((node.lineno, f"imports from {node.module}"))
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            of = getattr(getattr(node.func, "value", None), "id", "")
            if name in ("Console", "from_markup", "from_ansi") or (of, name) == ("rich", "print"):
                found.append((node.lineno, f"calls {name}"))
            for word in node.keywords:
                value = getattr(word.value, "value", None)
                if word.arg in ("markup", "emoji") and value is not False:
                    found.append((node.lineno, f"gives {word.arg}"))
    return found

# SPDX-License-Identifier: GPL-2.0-only
"""Help says what a user asks it for, of every command, and the shell completes them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer.main

from isoblk.cli import main as cli
from isoblk.study.load import load_study

# What has examples in its documents alone.
WITHOUT = {"doctor", "host restore", "kernel list", "kernel clean", "device list"}


def _commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, (*path, name))


COMMANDS = sorted(_commands(typer.main.get_command(cli.app)))


def _help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.argv", ["isoblk", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    assert ended.value.code == 0, told.err
    return told.out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    text = _help(monkeypatch, capsys, *command, "-h")
    assert text == _help(monkeypatch, capsys, *command, "--help")
    # What markup swallows leaves its full stop behind.
    assert not re.search(r"(?:^|\s)[.;,](?:\s|$)", text)
    assert ".." not in re.sub(r"\w\.\.\.|\]\.\.\.|\}\.\.\.|\.\.\.\]", "", text)


@pytest.mark.parametrize(
    "command",
    [
        one
        for one in COMMANDS
        if one and one[0] != "cache" and one not in [("kernel",), ("study",), ("trace",)]
        and one not in [("device",), ("host",)] and " ".join(one) not in WITHOUT
    ],
    ids=" ".join,
)  # fmt: skip
def test_help_has_examples_that_name_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    text = _help(monkeypatch, capsys, *command, "-h")
    shown = text.partition("Examples:")[2]
    assert f" isoblk {' '.join(command)}" in shown
    # Every option of the examples is one that the help has.
    for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", shown.replace(" -- ", " ")):
        assert option in text.partition("Examples:")[0], option


def test_defaults_that_are_not_values_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "[default: (results/NAME; NAME-host)]" in _help(monkeypatch, capsys, "run", "-h")
    assert "(told from the content)" in _help(monkeypatch, capsys, "trace", "import", "-h")
    assert "(standard output)" in _help(monkeypatch, capsys, "study", "from-fio", "-h")


def _completed(words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "isoblk"],
        env=os.environ
        | {
            "_ISOBLK_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "among"),
    [
        ("isoblk tr", "trace"),
        ("isoblk trace im", "import"),
        ("isoblk run --check", "--check-claims"),
        ("isoblk run --machine q", "qemu"),
        ("isoblk device check 980", "980pro-1t"),
    ],
)
def test_the_shell_completes(words: str, among: str) -> None:
    assert among in _completed(words)


def test_completion_can_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _help(monkeypatch, capsys, "-h")
    assert "--install-completion" in text
    assert "--show-completion" in text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_study_may_begin_with_a_byte_order_mark(
    tmp_path_factory: pytest.TempPathFactory, encoding: str
) -> None:
    path = tmp_path_factory.mktemp("s") / "s.toml"
    path.write_text('name = "s"\ndevice = "fast"\n[[tenant]]\nname = "t"\n', encoding)
    study, text = load_study(path)
    assert study.name == "s"
    assert text.startswith("name")

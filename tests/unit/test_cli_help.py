# SPDX-License-Identifier: GPL-2.0-only
"""Every command has complete help, and the shell completes them."""

import os
import re
import subprocess
import sys

import pytest
from typer.core import TyperGroup

from isoblk.cli import main as cli
from isoblk.study.load import load_study
from tests.unit.scripts import ROOT

ALL = dict(cli.every_command())
GROUPS = {words for words, one in ALL.items() if isinstance(one, TyperGroup)}
COMMANDS = [words for words in ALL if words not in GROUPS]
# Values that count as a default without being visible.
_NO_DEFAULT: tuple[object, ...] = (None, False, (), [])


def _help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.argv", ["isoblk", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    assert ended.value.code == 0, told.err
    return told.out


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_help_is_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    text = _help(monkeypatch, capsys, *command, "-h")
    assert text == _help(monkeypatch, capsys, *command, "--help")
    # Text swallowed by markup leaves its full stop behind; truncated text ends in dots.
    assert not re.search(r"(?:^|\s)[.;,](?:\s|$)", text)
    assert not re.search(r"\w\.\.\.$", text, re.MULTILINE)
    assert ".." not in re.sub(r"\w\.\.\.|\]\.\.\.|\}\.\.\.|\.\.\.\]", "", text)


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_every_option_and_argument_has_a_help_text(command: tuple[str, ...]) -> None:
    one = ALL[command]
    assert one.help
    assert one.help.rstrip().endswith(".")
    for param in one.params:
        assert getattr(param, "help", None), param.name


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_defaults_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    text = " ".join(_help(monkeypatch, capsys, *command, "-h").split())
    for param in ALL[command].params:
        if not callable(param.default) and param.default not in _NO_DEFAULT:
            assert f"[default: {param.default}" in text, param.name


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_examples_that_name_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    text = _help(monkeypatch, capsys, *command, "-h")
    shown = text.partition("Examples:")[2]
    assert f"\n    isoblk {' '.join(command)}" in shown
    # Every option of the examples is one that the help has.
    for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", shown.replace(" -- ", " ")):
        assert option in text.partition("Examples:")[0], option


def test_the_list_of_commands_has_their_own_words() -> None:
    for name, summary in cli.COMMANDS.items():
        assert ALL[name,].get_short_help_str(1000) == summary


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]], ids=" ".join)
def test_help_loads_no_command(arguments: list[str]) -> None:
    loaded = _loaded(*arguments)
    assert not {name for name in loaded if name.startswith("isoblk.")} - {
        *("isoblk.__main__", "isoblk.cli", "isoblk.cli.main", "isoblk.cli.later"),
        *("isoblk.cli.help", "isoblk.cli.completing", "isoblk.cli.lab"),
        *("isoblk.errors", "isoblk.paths"),
    }
    assert not loaded & {"rich", "numpy", "polars", "msgspec", "pydantic", "matplotlib"}


def test_study_check_imports_no_reader_of_traces_or_results() -> None:
    loaded = _loaded("study", "check", str(ROOT / "studies/weights.toml"))
    assert "isoblk.study.check" in loaded
    assert not loaded & {"numpy", "polars", "matplotlib", "jinja2"}


def _loaded(*arguments: str) -> set[str]:
    """The modules that a command line has loaded when it ends."""
    code = (
        "import sys\nfrom isoblk.__main__ import main\n"
        f"sys.argv = ['isoblk', *{arguments!r}]\n"
        "try:\n    main()\nfinally:\n    print('loaded', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_defaults_that_are_not_values_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, told in (
        ("run", "[default: (results/NAME, for host results/NAME-host)]"),
        ("trace import", "(detected from the content)"),
        ("study from-fio", "(standard output)"),
    ):
        assert told in " ".join(_help(monkeypatch, capsys, *words.split(), "-h").split())


def _completed(words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "isoblk"],
        env=os.environ
        | {
            "_ISOBLK_COMPLETE": "complete_bash",
            # As bash joins them.
            "COMP_WORDS": words.replace(" ", "\n"),
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

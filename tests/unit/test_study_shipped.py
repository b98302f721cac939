# SPDX-License-Identifier: GPL-2.0-only
"""A study's name on the command line: the study it means, and the note about it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from isoblk import paths
from isoblk.cli import completing
from isoblk.cli import run as cli_run
from isoblk.cli.study import app
from isoblk.errors import UserError
from isoblk.study.shipped import choose, names

OURS = paths.studies_dir() / "quick.toml"
STUDY = OURS.read_text().replace('name = "quick"', 'name = "mine"')


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_bare_name_is_a_study_that_comes_with_isoblk() -> None:
    chosen = choose(Path("quick"))
    assert chosen.path == OURS
    assert chosen.note == f"study {OURS}, which comes with isoblk"


@pytest.mark.parametrize("name", ["quick", "quick.toml"])
def test_a_file_in_the_way_wins(here: Path, name: str) -> None:
    (here / name).write_text(STUDY)
    chosen = choose(Path("quick"))
    assert chosen.path == Path(name)
    assert chosen.note == (
        "study quick.toml, not the one that comes with isoblk" * (name != "quick")
    )


def test_a_file_of_ones_own_needs_no_ending(here: Path) -> None:
    (here / "mine.toml").write_text(STUDY)
    assert choose(Path("mine")).path == Path("mine.toml")


def test_a_directory_is_no_study_but_does_not_hide_one(here: Path) -> None:
    (here / "quick").mkdir()
    chosen = choose(Path("quick"))
    assert chosen.path == OURS
    assert "not the directory quick" in chosen.note
    (here / "mine").mkdir()
    with pytest.raises(UserError, match="mine: is a directory, not a study"):
        choose(Path("mine"))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nosuch", "neither a file, nor a study that comes with isoblk.*isoblk study list"),
        ("quik", "did you mean quick"),
    ],
)
def test_no_such_name_says_where_to_look(name: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        choose(Path(name))


@pytest.mark.parametrize("given", ["no/quick", "quick.toml", "/quick"])
def test_a_path_is_used_as_given(given: str) -> None:
    assert choose(Path(given)).path == Path(given)
    assert choose(Path(given)).note == ""


def test_run_and_check_take_names() -> None:
    result = CliRunner().invoke(cli_run.app, ["quick", "--dry-run"])
    assert result.exit_code == 0, result.output
    assert f"note: study {OURS}" in result.stderr
    assert CliRunner().invoke(app, ["check", "quick"]).stdout.startswith("ok: ")


def test_the_list_has_every_name_and_title() -> None:
    lines = CliRunner().invoke(app, ["list"]).stdout.splitlines()
    assert set(names()) <= {line.split()[0] for line in lines if not line.startswith(" ")}
    assert any(line.startswith("quick ") and "none, BFQ and isoblk" in line for line in lines)


def test_names_are_completed_without_a_slash_alone() -> None:
    assert completing.studies("qui") == ["quick"]
    assert completing.studies("./qui") == []


def test_a_new_study_lands_here_and_is_found_by_its_name(here: Path) -> None:
    assert CliRunner().invoke(app, ["new"]).exit_code == 0
    assert [path.name for path in here.iterdir()] == ["study.toml"]
    assert isinstance(CliRunner().invoke(app, ["new"]).exception, UserError)
    assert CliRunner().invoke(app, ["check", "study"]).stdout.startswith("ok: 19 runs")

# SPDX-License-Identifier: GPL-2.0-only
"""Files of a user are never lost to an output: none is replaced without --force, an input never,
and a failure leaves nothing."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from isoblk.cli import main as cli
from isoblk.errors import RunError, UserError
from isoblk.files import new_file, new_files, read_text, temporary_name, write_atomically

from . import tracegen
from .command import isoblk
from .tracegen import KINDS, requests

FIO_JOB = "[global]\nfilename=/dev/null\nrw=randread\n[a]\niodepth=4\n"
RECIPE = """title = "t"
duration = "1s"
rate = 100
read = 0.5
[space]
footprint = "1m"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an input of every kind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.csv").write_bytes(tracegen.spc(requests(KINDS["spc"], 50)))
    (tmp_path / "job.fio").write_text(FIO_JOB)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    assert isoblk(monkeypatch, "trace", "import", "a.csv", "-o", "whole.isotrace") == 0
    return tmp_path


# Of every command that writes a file from another file: its words, and the input.
COMMANDS = {
    "trace import": (("trace", "import", "a.csv"), "a.csv"),
    "trace cut": (("trace", "cut", "whole.isotrace", "--records", "0:5"), "whole.isotrace"),
    "trace cut of a csv": (("trace", "cut", "a.csv", "--records", "0:5"), "a.csv"),
    "trace synth": (("trace", "synth", "recipe.toml"), "recipe.toml"),
    "study from-fio": (("study", "from-fio", "job.fio"), "job.fio"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["plain", "force"])
@pytest.mark.parametrize("name", ["same", "./same", "hard", "soft", "../HERE/same"])
def test_no_command_replaces_its_input(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    force: tuple[str, ...],
    name: str,
) -> None:
    words, source = COMMANDS[command]
    before = (here / source).read_bytes()
    (here / "hard").hardlink_to(here / source)
    (here / "soft").symlink_to(source)
    output = name.replace("same", source).replace("HERE", here.name)
    assert isoblk(monkeypatch, *words, "-o", output, *force) == 2
    assert (
        capsys.readouterr().err
        == f"isoblk: {Path(output)}: is the input itself; choose another name\n"
    )
    assert (here / source).read_bytes() == before
    assert (here / "hard").read_bytes() == before
    assert (here / "soft").is_symlink()
    assert not list(here.glob(".*"))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_existing_file_is_replaced_only_by_force(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    words, _ = COMMANDS[command]
    (here / "mine").write_text("mine")
    assert isoblk(monkeypatch, *words, "-o", "mine") == 2
    assert capsys.readouterr().err == (
        "isoblk: mine: exists; choose another name, or add --force\n"
    )
    assert (here / "mine").read_text() == "mine"
    assert isoblk(monkeypatch, *words, "-o", "mine", "--force") == 0
    assert (here / "mine").read_bytes() != b"mine"
    assert not list(here.glob(".*"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_device_or_directory_is_no_output(
    here: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    words, _ = COMMANDS[command]
    os.mkfifo(here / "pipe")
    (here / "directory").mkdir()
    (here / "null").symlink_to("/dev/null")
    for output in ("pipe", "directory", "null", "/dev/null", "."):
        for force in ((), ("--force",)):
            assert isoblk(monkeypatch, *words, "-o", output, *force) == 2
    assert (here / "pipe").is_fifo()
    assert Path("/dev/null").is_char_device()


def test_names_of_streams_go_with_the_trace_that_is_replaced(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be taken for those of the new one."""
    (here / "new.isotrace.json").write_text("{}")
    words = ("trace", "import", "a.csv", "-o", "new.isotrace")
    assert isoblk(monkeypatch, *words) == 2
    assert not (here / "new.isotrace").exists()
    assert isoblk(monkeypatch, *words, "--force") == 0
    assert not (here / "new.isotrace.json").exists()


def test_figures_are_replaced_only_by_force(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "pictures").mkdir()
    (here / "pictures" / "rate.svg").write_text("mine")
    words = ("trace", "info", "a.csv", "--figures", "pictures")
    assert isoblk(monkeypatch, *words) == 2
    assert [path.name for path in (here / "pictures").iterdir()] == ["rate.svg"]
    assert (here / "pictures" / "rate.svg").read_text() == "mine"
    assert isoblk(monkeypatch, *words, "--force") == 0
    assert len(list((here / "pictures").iterdir())) == 4


# -- the mechanism --


def _listing(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    "error", [RunError("x"), UserError("x"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")]
)
@pytest.mark.parametrize("force", [False, True])
def test_a_failed_write_leaves_no_files(tmp_path: Path, error: BaseException, force: bool) -> None:
    if force:
        (tmp_path / "a").write_text("old")
    with (
        pytest.raises(type(error)),
        new_files([tmp_path / "a", tmp_path / "b"], force=force) as (a, b),
    ):
        a.write_text("1")
        b.write_text("2")
        raise error
    assert _listing(tmp_path) == (["a"] if force else [])
    assert not force or (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_of_many_that_make_one_file_one_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:

        def hardlink_to(_self: Path, _target: Path) -> None:
            raise PermissionError(errno.EPERM, "no links here")

        monkeypatch.setattr(Path, "hardlink_to", hardlink_to)
    barrier = threading.Barrier(8)
    won: list[str] = []

    def make(text: str) -> None:
        try:
            with new_file(tmp_path / "a") as new:
                new.write_text(text)
                barrier.wait()
            won.append(text)
        except UserError as error:
            assert error.cause == "exists"

    threads = [threading.Thread(target=make, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert (tmp_path / "a").read_text() == won[0]
    assert _listing(tmp_path) == ["a"]


def test_of_two_files_none_is_made_if_one_name_is_taken_meanwhile(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="b: exists"),
        new_files([tmp_path / "a", tmp_path / "b"]) as (a, b),
    ):
        a.write_text("1")
        b.write_text("2")
        (tmp_path / "b").write_text("another's")
    assert _listing(tmp_path) == ["b"]
    assert (tmp_path / "b").read_text() == "another's"


def test_force_replaces_the_target_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a").write_text("old")
    (tmp_path / "a").symlink_to("far/a")
    with new_file(tmp_path / "a", force=True) as new:
        new.write_text("new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "far" / "a").read_text() == "new"
    assert _listing(tmp_path / "far") == ["a"]


@pytest.mark.parametrize("elsewhere", ["here", "/dev/shm"])
def test_a_file_next_to_a_link_is_written_next_to_the_link(tmp_path: Path, elsewhere: str) -> None:
    """The names of a trace's streams, of which the trace is a link to another name, or to another
    file system."""
    base = tmp_path if elsewhere == "here" else Path(elsewhere)
    with TemporaryDirectory(dir=base) as far:
        (Path(far) / "b").write_text("old")
        (tmp_path / "a").symlink_to(Path(far) / "b")
        (tmp_path / "a.json").write_text("old")
        with new_files([tmp_path / "a", tmp_path / "a.json"], force=True) as (new, _):
            new.write_text("new")
            new.with_name(f"{new.name}.json").write_text("new")
        assert (Path(far) / "b").read_text() == "new"
        assert (tmp_path / "a.json").read_text() == "new"
        assert _listing(Path(far)) == ["b"]


def test_isoblks_own_files_are_not_written_through_links(tmp_path: Path) -> None:
    """A result directory of somebody else may have links for whatever process number."""
    (tmp_path / "mine").write_text("mine")
    temporary_name(tmp_path / "report.html").symlink_to("mine")
    write_atomically(tmp_path / "report.html", b"theirs")
    assert (tmp_path / "mine").read_text() == "mine"
    assert (tmp_path / "report.html").read_bytes() == b"theirs"
    assert _listing(tmp_path) == ["mine", "report.html"]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with new_file(tmp_path / "a") as new:
        new.write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_long_name_will_do(tmp_path: Path) -> None:
    name = "x" * 255
    with new_file(tmp_path / name) as new:
        new.write_text("x")
    assert _listing(tmp_path) == [name]


def test_errors_name_the_output(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught, new_file(tmp_path / "a") as new:
        raise UserError("is damaged", where=f"{new}:7")
    assert caught.value.where == f"{tmp_path / 'a'}:7"
    with pytest.raises(UserError) as caught, new_file(tmp_path / "a") as new:
        (new / "b").write_text("x")
    assert str(caught.value) == f"{tmp_path / 'a/b'}: cannot write: No such file or directory"
    with pytest.raises(UserError, match="missing: cannot write"), new_file(tmp_path / "missing/a"):
        pass


# -- text --


@pytest.mark.parametrize(
    ("encode", "cause"),
    [
        (lambda text: text.encode("utf-8"), None),
        (lambda text: text.encode("utf-8-sig"), None),
        (lambda text: text.encode("utf-16"), "UTF-16 text"),
        (lambda text: b"\xfe\xff" + text.encode("utf-16-be"), "UTF-16 text"),
        (lambda text: text.encode("latin-1"), "not UTF-8 text"),
    ],
)
def test_text_is_utf_8_with_or_without_a_mark(
    tmp_path: Path, encode: Callable[[str], bytes], cause: str | None
) -> None:
    path = tmp_path / "t"
    path.write_bytes(encode("Größe = 1"))
    if cause is None:
        assert read_text(path, "it") == "Größe = 1"
        return
    with pytest.raises(UserError) as caught:
        read_text(path, "it")
    assert caught.value.cause == cause
    assert "\n" not in str(caught.value)


def test_every_command_that_writes_a_file_asks_for_force() -> None:
    """Directories are isoblk's own: run resumes in one, modules replaces its own modules. A report
    replaces nothing but a report."""
    unforced = {
        " ".join(path)
        for path, command in cli.every_command()
        if (options := {name for one in command.params for name in one.opts})
        and "--output" in options
        and "--force" not in options
    }
    assert unforced == {"run", "hunt", "bisect", "kernel modules", "report"}

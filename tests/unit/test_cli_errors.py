# SPDX-License-Identifier: GPL-2.0-only
"""Wrong input gives one line that names it, exit status 2, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from isoblk.campaign.execute import here
from isoblk.campaign.study import run_study
from isoblk.errors import RunError
from isoblk.study.expand import expand
from isoblk.study.model import Study, TenantEntry
from tests.unit.command import isoblk
from tests.unit.fakes import FakeMachine, fake_bench

STUDY = """\
name = "wrong"
device = "fast"

[run]
runtime = "100ms"

[[tenant]]
name = "t1"
weight = 100
rw = "randread"

[matrix]
scheduler = ["none"]
"""


class Command:
    """The isoblk command in a directory, run in this process."""

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(directory)
        monkeypatch.setenv("ISOBLK_CACHE", str(directory / "cache"))
        self._monkeypatch = monkeypatch
        self._capfd = capfd

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        self._capfd.readouterr()
        status = isoblk(self._monkeypatch, *words)
        return subprocess.CompletedProcess(words, status, *self._capfd.readouterr())


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    return Command(tmp_path, monkeypatch, capfd)


def _process(cwd: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run isoblk as a process: for errors before its own code runs, or another environment."""
    home = {"ISOBLK_CACHE": str(cwd / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "isoblk", *arguments],
        cwd=cwd,
        env=os.environ | home | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _assert_one_line(done: subprocess.CompletedProcess[str], *facts: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    # The progress of the build comes before.
    *progress, line = done.stderr.splitlines()
    assert line.startswith("isoblk: ")
    assert all(one.startswith(("reading ", "unpacking ")) for one in progress)
    for fact in facts:
        assert fact in line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "quick", "-j", "two"], "'-j' / '--jobs': not a whole number; see: isoblk run -"),
        (["run", "quick", "-j", "0"], "'-j' / '--jobs': less than 1; see: "),
        (["run", "quick", "--cpus", "9"], "'--cpus': more than 8; see: "),
        (["run", "quick", "--timeout", "10s"], "'--timeout': not a number; see: "),
        (["run", "quick", "--machine", "x"], "'--machine': 'x' is not one of 'uml', "),
        (["weights", "sda"], "No such command 'sda'; for one disk: isoblk weights --disk NAME"),
    ],
)
def test_a_wrong_option_is_said_without_the_words_of_a_library(
    command: Command, words: list[str], told: str
) -> None:
    _assert_one_line(command(*words), told)


@pytest.mark.parametrize(
    ("right", "wrong", "facts"),
    [
        ('["none"]', '["nnoe"]', ["study.toml:13", "nnoe", "mq-deadline"]),
        ("weight = 100", "weight = 10001", ["study.toml:9", "weight", "10000"]),
        ("weight = 100", "weight = 0", ["study.toml:9", "weight", "10000"]),
        ("weight = 100", "wieght = 100", ["study.toml:9", "wieght", "weight"]),
        ('"100ms"', '"-1s"', ["study.toml:5", "runtime", "-1s"]),
        ('"100ms"', "-1", ["study.toml:5", "runtime", "-1"]),
        ('device = "fast"\n', "", ["study.toml", "device"]),
        ('"fast"', '"fats"', ["study.toml:2", "fats", "fast"]),
        ('rw = "randread"', 'rw = "randread', ["study.toml:10"]),
        ('rw = "randread"', 'rw = "backwards"', ["study.toml:10", "backwards", "randread"]),
    ],
)
def test_a_wrong_study(
    command: Command, tmp_path: Path, right: str, wrong: str, facts: list[str]
) -> None:
    assert right in STUDY
    (tmp_path / "study.toml").write_text(STUDY.replace(right, wrong))
    _assert_one_line(command("study", "check", "study.toml"), *facts)
    _assert_one_line(command("run", "study.toml"), *facts)
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


def test_no_such_study(tmp_path: Path) -> None:
    # As a process, so that the status is seen to be the process's.
    _assert_one_line(_process(tmp_path, "run", "no.toml"), "no.toml")


def test_a_study_that_is_a_directory(command: Command) -> None:
    _assert_one_line(command("run", "."), "directory")


def test_no_kernel_yet(command: Command, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    _assert_one_line(command("run", "study.toml"), "isoblk kernel build")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("--machine qemu --cpus 2", ["--cpus", "qemu machine", "fixed", "--machine icount"]),
        ("--cpus 2", ["--cpus", "uml machine", "fixed", "--machine icount"]),
        ("--machine icount --cpus 0", ["--cpus", "less than 1"]),
        ("--machine icount --cpus 9", ["--cpus", "more than 8"]),
        ("--machine icount --cpus two", ["--cpus", "not a whole number"]),
        (
            "--machine icount --on local",
            ["a cluster can only make runs of the uml machine, not of icount"],
        ),
        ("--machine icount", ["no stock kernel", "isoblk kernel build --stock"]),
    ],
)
def test_processors_and_machines_that_are_not_there(
    command: Command, tmp_path: Path, words: str, facts: list[str]
) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    _assert_one_line(command("run", "study.toml", *words.split()), *facts)


def test_programs_are_refused_on_the_icount_machine(command: Command, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace("weight = 100", 'workload = "fio"'))
    done = command("run", "study.toml", "--machine", "icount")
    _assert_one_line(done, "the icount machine has blkload only, not fio; choose another --machine")


def test_no_compiler(tmp_path: Path) -> None:
    done = _process(tmp_path, "kernel", "build", PATH=str(tmp_path))
    _assert_one_line(done, "gcc", "apt install")
    assert not (tmp_path / "cache" / "kernels").exists()


def test_a_damaged_kernel_source(command: Command, tmp_path: Path) -> None:
    (tmp_path / "linux.tar.xz").write_bytes(b"not an archive")
    done = command("kernel", "build", "--source", "linux.tar.xz")
    _assert_one_line(done, "linux.tar.xz")


def test_a_kernel_source_that_is_none(command: Command, tmp_path: Path) -> None:
    (tmp_path / "linux").mkdir()
    done = command("kernel", "build", "--source", "linux")
    _assert_one_line(done, "linux")


@pytest.mark.parametrize("words", [["show"], ["report"], ["compare", "."]])
def test_a_directory_without_results(command: Command, tmp_path: Path, words: list[str]) -> None:
    done = command(*words, ".")
    _assert_one_line(done, "not a result directory")
    assert list(tmp_path.iterdir()) == []


def test_a_study_whose_runs_all_failed_says_why(command: Command, tmp_path: Path) -> None:
    def fail(text: str) -> None:
        raise RunError("the kernel failed")

    study = Study(name="s", device="fast", tenant=[TenantEntry(name="t")])
    bench = fake_bench(FakeMachine(before=fail))
    with ThreadPoolExecutor() as executor:
        submit = here(executor, bench, tmp_path)
        run_study(expand(study), "", bench, tmp_path, submit, lambda index, run: None)
    _assert_one_line(
        command("show", "."), "no finished run; 2 failed, the first: the kernel failed"
    )


def test_a_full_output_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "isoblk", "study", "schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_damaged_results(command: Command, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{")
    _assert_one_line(command("show", "."), "study.json", "damaged")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["run", "--colour", "x.toml"], ["--colour", "isoblk run --help"]),
        (["run", "-j", "0", "x.toml"], ["--jobs", "1", "isoblk run --help"]),
        (["run", "-j", "two", "x.toml"], ["--jobs", "isoblk run --help"]),
        (["run"], ["STUDY", "isoblk run --help"]),
        (["kernel"], ["command", "isoblk kernel --help"]),
        (["kernel", "bulid"], ["bulid", "isoblk kernel --help"]),
        (["rnu"], ["rnu", "isoblk --help"]),
    ],
)
def test_a_wrong_command_line(command: Command, arguments: list[str], facts: list[str]) -> None:
    _assert_one_line(command(*arguments), *facts)


def test_no_command_at_all_is_a_question(command: Command) -> None:
    done = command()
    assert done.returncode == 0
    assert "doctor" in done.stdout


def test_ctrl_c_while_the_command_is_loaded_ends_it_in_silence(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('goes on')\n"
    )
    done = _process(tmp_path, "doctor", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_package_whose_c_library_is_missing_is_one_line(tmp_path: Path) -> None:
    numpy = tmp_path / "numpy.py"
    numpy.write_text(
        "try:\n"
        "    raise ImportError('libstdc++.so.6: cannot open shared object file: No such file')\n"
        "except ImportError as error:\n"
        "    raise ImportError('IMPORTANT: many lines') from error\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = _process(tmp_path, "doctor", PYTHONPATH=path)
    assert done.returncode == 2
    assert done.stderr == "isoblk: libstdc++.so.6 is missing; run: apt install libstdc++6\n"


@pytest.mark.parametrize("name", ["nosuch", "results", "no/such.toml"])
def test_no_such_study_is_one_line(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "results").mkdir()
    done = command("run", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"isoblk: {name}: ")
    assert done.stderr.count("\n") == 1


def test_a_home_that_may_not_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no directory")
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": "", "ISOBLK_CACHE": ""}
    done = _process(tmp_path, "kernel", "build", **home)
    assert done.returncode == 2
    assert "cannot write the cache" in done.stderr
    assert done.stderr.endswith("set ISOBLK_CACHE to a directory of yours\n")
    assert done.stderr.count("\n") == 1

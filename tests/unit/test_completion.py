# SPDX-License-Identifier: GPL-2.0-only
"""The shells complete commands, options, studies, presets, results, and points of results, once
`isoblk --install-completion` has been called in them; tried in the shells themselves."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.cli.completing import join_assignments, mend_zsh
from tests.unit import resultgen
from tests.unit.scripts import ROOT

# The typed line, words that must be among the answers, and words that must not.
CASES = [
    ("isoblk tra", {"trace"}, {"study"}),
    ("isoblk trace im", {"import"}, {"info"}),
    ("isoblk run --check", {"--check-claims"}, {"--dry-run"}),
    ("isoblk run --machine q", {"qemu"}, {"uml"}),
    ("isoblk run --machine i", {"icount"}, {"uml"}),
    ("isoblk run --cp", {"--cpus"}, set()),
    ("isoblk run my-st", {"my-study.toml"}, {"results/"}),
    ("isoblk study check studies/we", {"studies/weights.toml"}, set()),
    ("isoblk device check 980", {"980pro-1t"}, {"860pro-256g"}),
    ("isoblk show res", {"results/one", "results/two"}, {"results/none", "runs"}),
    ("isoblk report results/o", {"results/one"}, {"results/two"}),
    ("isoblk compare results/one results/t", {"results/two"}, {"results/one"}),
]
# bash gets the value alone, for "=" ends a word there.
ONLY = [
    ("isoblk show results/one --only sch", {"scheduler=bfq", "scheduler=none"}),
    ("isoblk show results/one --only scheduler=b", {"scheduler=bfq"}),
    ("isoblk show results/one --only workload.rw=randr", {"workload.rw=randread"}),
    ("isoblk compare results/one results/two --only scheduler=ky", {"scheduler=kyber"}),
    ("isoblk show --only scheduler=kyber-f", {"scheduler=kyber-fair"}),
]
_SECONDS = 60


def _home(tmp_path: Path) -> dict[str, str]:
    """An environment with a home directory, an isoblk to call, and something to complete."""
    program = tmp_path / "bin/isoblk"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m isoblk "$@"\n')
    program.chmod(0o755)
    work = tmp_path / "work"
    resultgen.weights_study(work / "results/one")
    resultgen.weights_study(work / "results/two")
    (work / "my-study.toml").touch()
    (work / "studies").symlink_to(ROOT / "studies")
    return {
        "HOME": str(tmp_path),
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }


def _shell(shell: str, script: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [shell, "-c", script],
        cwd=Path(environment["HOME"]) / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.stdout


def _bash(line: str, environment: dict[str, str]) -> set[str]:
    # As readline splits it: "=" is a word of its own.
    words = [one for word in line.split(" ") for one in re.split("(=)", word) if one or not word]
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        f"source ~/.bashrc; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}\n"
        "_isoblk_completion isoblk; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    return set(_shell("bash", script, environment).split("\n"))


def _fish(line: str, environment: dict[str, str]) -> set[str]:
    told = _shell("fish", f"complete -C '{line}'", environment)
    return {answer.split("\t")[0] for answer in told.splitlines()}


def _zsh(line: str, environment: dict[str, str]) -> set[str]:
    """zsh completes at a terminal alone: its list of answers, or the line that it has completed."""
    begin, end = "begin-of-list", "end-of-list"
    setup = (
        "PS1=; bindkey '^I' complete-word; unset zle_bracketed_paste; stty -echo\n"
        # Of what would be offered a list is printed; -O, -A and -D only ask.
        "compadd() { if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then"
        ' builtin compadd "$@"; return; fi; typeset -a found; builtin compadd -A found "$@";'
        f" print -l {begin} $found {end}; }}\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(Path(environment["HOME"]) / "work")
        os.execvpe("zsh", ["zsh", "-i"], environment)
    try:
        os.write(terminal, setup.encode())
        os.write(terminal, b"print re''ady\n")
        text = _read_until(terminal, "ready")
        os.write(terminal, f"{line}\t".encode())
        text = _read_until(terminal, end)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    found = re.findall(f"{begin}(.*?){end}", text, re.DOTALL)
    return {answer.strip() for one in found for answer in one.splitlines()}


def _read_until(terminal: int, mark: str) -> str:
    text, last = "", time.monotonic() + _SECONDS
    while mark not in text and time.monotonic() < last:
        if select.select([terminal], [], [], 1)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    assert mark in text, text
    return text


SHELLS: dict[str, Callable[[str, dict[str, str]], set[str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not shutil.which(name):
        pytest.skip(f"no {name} here")
    return name


@pytest.mark.long
def test_the_shells_complete_partial_words(shell: str, tmp_path: Path) -> None:
    environment = _home(tmp_path)
    told = _shell(shell, "isoblk --install-completion; true", environment)
    assert f"{shell} completion installed" in told
    for line, among, without in CASES:
        answers = SHELLS[shell](line, environment)
        assert among <= answers, line
        assert not without & answers, line
    for line, among in ONLY:
        typed = line.rpartition(" ")[2]
        key = typed.partition("=")[0] + "=" if shell == "bash" and "=" in typed else ""
        answers = SHELLS[shell](line, environment)
        assert {one.removeprefix(key) for one in among} <= answers, line


@pytest.mark.parametrize(
    ("split", "joined"),
    [
        (["isoblk", "show", "--only", "rw", "=", "rand"], ["isoblk", "show", "--only", "rand"]),
        (["isoblk", "show", "--only", "rw", "="], ["isoblk", "show", "--only", ""]),
        (["isoblk", "show", "--only", "rw", "=", "x", ""],
         ["isoblk", "show", "--only", "rw=x", ""]),
        (["isoblk", "show", "--only", "rw", "=", "x", "--only", "k", "=", "v"],
         ["isoblk", "show", "--only", "rw=x", "--only", "v"]),
        (["isoblk", "sh"], ["isoblk", "sh"]),
        (["isoblk", ""], ["isoblk", ""]),
    ],
)  # fmt: skip
def test_a_word_that_bash_has_split_is_joined_again(split: list[str], joined: list[str]) -> None:
    environment = {
        "_ISOBLK_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(split),
        "COMP_CWORD": str(len(split) - 1),
    }
    join_assignments(environment)
    assert environment["COMP_WORDS"].split("\n") == joined
    assert environment["COMP_CWORD"] == str(len(joined) - 1)


@given(
    st.lists(st.sampled_from(["isoblk", "=", "", "a", "--only"]), max_size=8), st.integers(-2, 9)
)
def test_any_line_can_be_completed(words: list[str], at: int) -> None:
    environment = {
        "_ISOBLK_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(at),
    }
    join_assignments(environment)
    left = environment["COMP_WORDS"].split("\n")
    assert "".join(left).count("=") <= words.count("=")


def test_other_shells_split_nothing() -> None:
    environment = {"_ISOBLK_COMPLETE": "complete_zsh", "COMP_WORDS": "a\n=\nb", "COMP_CWORD": "2"}
    join_assignments(environment)
    assert environment["COMP_WORDS"] == "a\n=\nb"


def test_zsh_is_mended_once(tmp_path: Path) -> None:
    mend_zsh(tmp_path)
    assert list(tmp_path.iterdir()) == []
    installed = tmp_path / ".zfunc/_isoblk"
    installed.parent.mkdir()
    installed.write_text("#compdef isoblk\n")
    mend_zsh(tmp_path)
    mended = installed.read_text()
    mend_zsh(tmp_path)
    assert installed.read_text() == mended
    assert mended.count("_isoblk_completion") == 1


def test_a_damaged_result_directory_completes_to_nothing_special(tmp_path: Path) -> None:
    environment = _home(tmp_path)
    (tmp_path / "work/results/one/study.json").write_text('{"runs": 3}')
    _shell("bash", "isoblk --install-completion; true", environment)
    assert "bfq" in _bash("isoblk show results/one --only scheduler=b", environment)

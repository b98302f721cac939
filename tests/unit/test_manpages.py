# SPDX-License-Identifier: GPL-2.0-only
"""Each command has a manual page with the text of its help, and man renders it cleanly."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from isoblk.cli.main import every_command
from tests.unit.scripts import load_script

PAGES: dict[str, str] = load_script("manpages").pages()


def test_every_command_has_a_page_with_all_its_options() -> None:
    every = dict(every_command())
    assert set(PAGES) == {"-".join(("isoblk", *words)) + ".1" for words in every}
    for words, one in every.items():
        text = PAGES["-".join(("isoblk", *words)) + ".1"].replace("\\-", "-")
        for option in (name for param in one.params for name in param.opts if name[0] == "-"):
            assert option in text, words
        for line in (one.epilog or "").splitlines()[2:]:
            assert line.strip() in text.replace("\\(dq", '"')


def test_a_page_refers_only_to_pages_that_exist() -> None:
    for text in PAGES.values():
        for name in re.findall(r"^\.BR (\S+) \(1\)", text.replace("\\-", "-"), re.MULTILINE):
            assert f"{name}.1" in PAGES


@pytest.mark.skipif(not (shutil.which("man") and shutil.which("groff")), reason="no man here")
def test_man_renders_every_page_without_a_warning(tmp_path: Path) -> None:
    load_script("manpages").main(tmp_path)
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", *sorted(map(str, tmp_path.iterdir()))],
        env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # Bold is overstruck.
    shown = re.sub("(.)\b\\1|\x1b\\[[0-9;]*m", "\\1", done.stdout)
    for words, one in every_command():
        assert " ".join(("isoblk", *words)) in shown
        assert one.help


def test_an_old_page_goes(tmp_path: Path) -> None:
    (tmp_path / "isoblk-gone.1").touch()
    (tmp_path / "other.1").touch()
    load_script("manpages").main(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*PAGES, "other.1"}

# SPDX-License-Identifier: GPL-2.0-only
"""What isoblk bisect refuses, before anything is built: one line, status 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = """\
name = "asked"
device = "fast"

[run]
runtime = "100ms"

[[tenant]]
name = "t"
count = 2
rw = "randread"

[matrix]
scheduler = ["none", "bfq"]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "asked.toml").write_text(STUDY)
    return tmp_path


def bisect(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "isoblk", "bisect", *arguments],
        cwd=place,
        env={**os.environ, "ISOBLK_CACHE": str(place / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--source", ".", "--own", "."), "--source and --own exclude each other"),
        (("--path", "block"), "--path is of a git tree of the kernel; add --source TREE"),
        (("--kernel", "7.2"), "--kernel is what isoblk's schedulers are tried on"),
        (("--metric", "p99"), "--metric: metric 'p99' needs a tenant, as in p99.NAME"),
        (("--metric", "p99.t9"), "no tenant is called 't9'"),
        (("--metric", "speed"), "unknown metric 'speed'"),
        (("--only", "scheduler=cfq"), "no point has scheduler 'cfq'; known: none, bfq"),
        (("--only", "colour=red"), "unknown key 'colour'"),
        (("--threshold", "soon"), "--threshold: 'soon' is no value of share_error"),
        (("--source", "."), "no git repository"),
        (("--own", "."), "no kernel 6.12 has been built; run: isoblk kernel build"),
    ],
)
def test_a_mistake_is_one_line(place: Path, arguments: tuple[str, ...], told: str) -> None:
    asked = ["--study", "asked.toml"]
    if "--metric" not in arguments:
        asked += ["--metric", "share_error"]
    done = bisect(place, "6.12", "7.2", *asked, *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("isoblk: ")
    assert told in line
    assert not (place / "results").exists()

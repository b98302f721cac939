# SPDX-License-Identifier: GPL-2.0-only
"""isoblk bisect refuses wrong arguments before anything is built: one line, status 2."""

from pathlib import Path

import pytest

from tests.unit.command import isoblk

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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--source", ".", "--own", "."), "--source and --own exclude each other"),
        (("--path", "block"), "--path needs a git tree of the kernel; add --source TREE"),
        (("--kernel", "7.2"), "--kernel is for a bisection of isoblk's schedulers"),
        (("--metric", "p99"), "--metric: metric 'p99' needs a tenant, as in p99.NAME"),
        (("--metric", "p99.t9"), "no tenant is called 't9'"),
        (("--metric", "speed"), "unknown metric 'speed'"),
        (("--only", "scheduler=cfq"), "no point has scheduler 'cfq'; known: none, bfq"),
        (("--only", "colour=red"), "unknown key 'colour'"),
        (("--threshold", "soon"), "--threshold: 'soon' is not a value of share_error"),
        (("--source", "."), "not a git repository"),
        (("--own", "."), "no kernel 6.12 has been built; run: isoblk kernel build"),
    ],
)
def test_a_mistake_is_one_line(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("ISOBLK_CACHE", str(place / "cache"))
    asked = ["--study", "asked.toml"]
    if "--metric" not in arguments:
        asked += ["--metric", "share_error"]
    assert isoblk(monkeypatch, "bisect", "6.12", "7.2", *asked, *arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("isoblk: ")
    assert told in line
    assert not (place / "results").exists()

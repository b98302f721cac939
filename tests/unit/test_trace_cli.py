# SPDX-License-Identifier: GPL-2.0-only
"""isoblk trace: its output, its files and its errors."""

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from isoblk.capture.session import Captured
from isoblk.cli.capture import _account
from isoblk.cli.trace import app
from isoblk.errors import UserError
from isoblk.trace.compact import read_header
from isoblk.trace.convert import import_trace
from isoblk.trace.names import Names, Process, StreamName, write_names

from .tracegen import KINDS, alibaba, held, requests


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_bytes(alibaba(requests(KINDS["alibaba"], 300, gap=20_000_000)))
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_import_reports_the_written_trace(trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "o.isotrace"
    result = run("import", trace, "-o", output)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{output}: 300 records, ")
    assert "format: alibaba" in result.stdout
    assert "volume 2: stream 2, from byte " in result.stdout


def test_import_reports_skipped_lines(trace: Path, tmp_path: Path) -> None:
    trace.write_bytes(b"bad\n" + trace.read_bytes())
    result = run("import", trace, "-o", tmp_path / "o", "--skip-bad", 3)
    assert result.stderr == f"skipped: {trace}:1\n"
    result = run("import", trace, "-o", tmp_path / "p")
    assert isinstance(result.exception, UserError)
    result = run("import", trace, "-o", tmp_path / "p", "--format", "nothing")
    assert "formats: spc msr" in str(result.exception)


def test_info_prints_a_summary_json_and_figures(trace: Path, tmp_path: Path) -> None:
    result = run("info", trace, "--figures", tmp_path / "figures")
    assert result.exit_code == 0
    for word in ("records", "read:write 1", "footprint", "sequential", "hot spots", "bursts"):
        assert word in result.stdout
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "addresses.svg",
        "hot-spots.svg",
        "rate.svg",
        "sizes.svg",
    ]
    found = json.loads(run("info", trace, "--json").stdout)
    assert found["records"] == 300
    assert [stream["stream"] for stream in found["streams"]] == [0, 1, 2]


HOSTILE = "[/]x\x1b[2J"


def test_names_in_traces_of_others_say_nothing_to_the_terminal(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = Path(f"{HOSTILE}.isotrace".replace("/", "\n"))
    import_trace([trace], named)
    stream = StreamName(stream=1, cgroup=f"/{HOSTILE}", requests=1, weights={HOSTILE: 1})
    names = Names(
        version=1, device=HOSTILE, size=0, logical_block_size=512, scheduler=HOSTILE,
        kernel="", backend="", begun="", seconds=0, first_ns=0, lost=0, left_out=0,
        cgroups="v2", streams=(stream,),
    )  # fmt: skip
    write_names(named, names)
    found = run("info", named)
    assert found.exit_code == 0, found.output
    assert "\x1b" not in found.output
    assert r"[/]x\x1b[2J" in found.output
    assert run("info", named, "--figures", "drawn").exit_code == 0

    process = Process(pid=1, name=HOSTILE, requests=1)
    told = Captured(
        named,
        read_header(named),
        msgspec.structs.replace(
            names, streams=(msgspec.structs.replace(stream, processes=(process,)),)
        ),
        None,
        False,
    )
    assert all(line.isprintable() for line in _account(told))


def test_cut_takes_ranges_with_units(trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "c"
    assert run("cut", trace, "-o", output, "--time", "500ms:2s", "--stream", 1).exit_code == 0
    rows = held(output)
    assert {row[4] for row in rows} == {1}
    assert rows[-1][0] <= 1_500_000_000
    second = tmp_path / "d"
    run("cut", output, "-o", second, "--records", "1:3", "--move")
    assert len(held(second)) == 2
    assert min(row[1] for row in held(second)) == 0


@pytest.mark.parametrize("value", ["5", "a:b", "9:9", "2s:1s", "-1:4", "1:2:3"])
def test_a_wrong_range_is_told(value: str, trace: Path, tmp_path: Path) -> None:
    result = run("cut", trace, "-o", tmp_path / "c", f"--time={value}")
    assert isinstance(result.exception, UserError)
    assert f"--time {value}: " in str(result.exception)


def test_synth_writes_a_recipes_trace(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        'title = "t"\nduration = "1s"\nrate = 100\nread = 1\n[space]\nfootprint = "1m"\n'
    )
    result = run("synth", recipe, "-o", tmp_path / "o")
    assert result.stdout.startswith(f"{tmp_path / 'o'}: 100 records, ")
    assert {row[3] for row in held(tmp_path / "o")} == {0}

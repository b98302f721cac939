# SPDX-License-Identifier: GPL-2.0-only
"""config.cfg of trace-replay-with-cgroup becomes a study that can run, or is refused in a line."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from isoblk.cli.study import app
from isoblk.errors import UserError
from isoblk.study.expand import expand
from isoblk.study.fromreplay import from_replay
from isoblk.study.load import parse_study
from tests.examples import at_most

from .tracegen import KINDS, disksim, requests, trace_replay


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration that the tool comes with, and traces of both of its formats."""
    (tmp_path / "tool/sample").mkdir(parents=True)
    made = requests(KINDS["disksim"], 50)
    (tmp_path / "tool/sample/sample1.dat").write_bytes(disksim(made))
    (tmp_path / "tool/sample/sample2.dat").write_bytes(trace_replay(made))
    (tmp_path / "secret.dat").write_bytes(disksim(made))
    path = tmp_path / "tool/config.cfg"
    path.write_text(
        "100 sample/sample1.dat\n250 sample/sample2.dat\n"
        "500 sample/sample1.dat\n1000 sample/sample2.dat\n"
    )
    return path


def test_a_line_is_a_tenant_in_a_closed_loop(config: Path) -> None:
    text, warnings, traces = from_replay(config)
    assert warnings == []
    assert [path.name for path in traces] == ["sample1.dat", "sample2.dat"] * 2
    specs = [planned.spec for planned in expand(parse_study(text, "x.toml")).runs]
    spec = next(spec for spec in specs if spec.kind == "share" and spec.scheduler.name == "bfq")
    assert [tenant.weight for tenant in spec.tenants] == [100, 250, 500, 1000]
    for tenant in spec.tenants:
        load = tenant.workload
        assert (load.replay, load.iodepth) == ("closed", 4 * 32)
        assert load.trace_loop
    assert {spec.scheduler.name for spec in specs} >= {"none", "kyber", "bfq", "isoblk"}


def test_a_trace_may_have_any_name(config: Path) -> None:
    disk = config.parent / "\U0001f4be.dat"
    (config.parent / "sample/sample1.dat").rename(disk)
    config.write_text(f"100 {disk.name}\n")
    text, _, _ = from_replay(config)
    assert parse_study(text, "x.toml").tenant[0].trace == str(disk)


def test_more_lines_than_the_tool_reads_are_told(config: Path) -> None:
    config.write_text("10 sample/sample1.dat\n" * 5)
    _, warnings, _ = from_replay(config)
    assert warnings == ["5 lines, of which the tool as published reads 4"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("100", "not WEIGHT TRACEFILE"),
        ("100 a b", "not WEIGHT TRACEFILE"),
        ("0 sample/sample1.dat", "weight 0; allowed: 1..1000"),
        ("1001 sample/sample1.dat", "weight 1001; allowed: 1..1000"),
        ("-5 sample/sample1.dat", "weight -5"),
        ("1e2 sample/sample1.dat", "weight 1e2"),
        ("\u0663 sample/sample1.dat", "weight \u0663"),
        ("9" * 5000 + " sample/sample1.dat", "weight 999"),
        ("100 sample/none.dat", "no such trace: sample/none.dat"),
        ("100 sample", "no such trace: sample"),
        ("100 ../secret.dat", "is outside of the directory"),
        ("100 /etc/passwd", "is outside of the directory"),
        ("100 link.dat", "is outside of the directory"),
        ("100 config.cfg", "config.cfg: unknown trace format"),
        ("100 empty.dat", "the trace is empty"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(config: Path, line: str, told: str) -> None:
    (config.parent / "link.dat").symlink_to(config.parent.parent / "secret.dat")
    (config.parent / "empty.dat").touch()
    config.write_text(f"100 sample/sample1.dat\n\n{line}\n")
    with pytest.raises(UserError) as caught:
        from_replay(config)
    assert caught.value.exit_status == 2
    assert caught.value.where == f"{config}:3"
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_configuration_of_nothing_is_refused(config: Path) -> None:
    config.write_text("\n \n")
    with pytest.raises(UserError, match="the file has no lines"):
        from_replay(config)
    with pytest.raises(UserError, match="cannot read the configuration"):
        from_replay(config.parent / "none.cfg")


@given(text=st.text(max_size=60))
@settings(
    max_examples=at_most(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_text_is_a_study_or_refused(config: Path, text: str) -> None:
    config.write_text(text, encoding="utf-8", errors="replace")
    try:
        made, _, _ = from_replay(config)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        parse_study(made, "x.toml")


def test_neither_the_configuration_nor_a_trace_is_overwritten(config: Path) -> None:
    for path in (config, config.parent / "sample/sample1.dat"):
        before = path.read_bytes()
        words = ["from-replay", str(config), "-o", str(path), "--force"]
        result = CliRunner().invoke(app, words)
        assert "is the input itself" in str(result.exception)
        assert path.read_bytes() == before
    words = ["from-replay", str(config), "-o", str(config.parent / "s.toml")]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.stderr) == (0, "")

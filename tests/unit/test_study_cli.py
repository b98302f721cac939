# SPDX-License-Identifier: GPL-2.0-only
"""isoblk study: its output, and that it leaves nothing half-written."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isoblk import paths
from isoblk.cli.study import app
from isoblk.errors import UserError
from isoblk.study.load import load_study
from isoblk.study.model import Study
from isoblk.study.new import new_study
from isoblk.study.schema import study_schema

STUDIES = paths.presets_dir().parent


def test_check_counts_the_runs_and_shows_the_matrix() -> None:
    result = CliRunner().invoke(app, ["check", str(STUDIES / "weights.toml")])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "ok: 45 runs (30 share, 12 calibrate, 3 alone)"
    assert "none mq-deadline kyber bfq io.cost io.max io.latency" in result.stdout


def test_check_raises_the_mistakes_of_a_study(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('name = "s"\ndevice = "fast"\n')
    result = CliRunner().invoke(app, ["check", str(path)])
    assert isinstance(result.exception, UserError)
    assert "tenant: missing" in str(result.exception)


def test_a_new_study_checks_without_a_note(tmp_path: Path) -> None:
    file = tmp_path / "my disk.toml"
    result = CliRunner().invoke(app, ["new", str(file)])
    assert result.exit_code == 0, result.output
    assert f"isoblk run {file}" in result.stdout
    checked = CliRunner().invoke(app, ["check", str(file)])
    assert checked.stdout.startswith("ok: 19 runs")
    assert checked.stderr == ""
    study, text = load_study(file)
    assert study.name == "my-disk"
    assert "results/my-disk" in text


def test_a_new_study_takes_the_place_of_none(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("mine")
    result = CliRunner().invoke(app, ["new", str(file)])
    assert isinstance(result.exception, UserError)
    assert "exists" in str(result.exception)
    assert file.read_text() == "mine"
    assert CliRunner().invoke(app, ["new", str(file), "--force"]).exit_code == 0
    assert load_study(file)[0].name == "s"


@pytest.mark.parametrize(
    "stem", ["...", "Ä ö", '"', "a\nb", "x" * 200, "NAME", "weights.toml", "-", "\x1b[31m"]
)
def test_a_new_study_of_any_name_is_a_study(tmp_path: Path, stem: str) -> None:
    file = tmp_path / f"{stem}.toml"
    text = new_study(file)
    other = tmp_path / "other.toml"
    other.write_text(text)
    load_study(other)


def test_options_in_comments_of_a_new_study_are_valid(tmp_path: Path) -> None:
    # A line that is an option or a table by itself, and not a sentence.
    lines = new_study(tmp_path / "s.toml").splitlines()
    options = [line for line in lines if re.match(r"# (\[[a-z.\[\]]+\]$|[a-z_]+ = )", line)]
    assert len(options) >= 10
    for version in ("v1", "v2"):
        text = "\n".join(line[2:] if line in options else line for line in lines)
        text = text.replace('cgroup = "v1"', f'cgroup = "{version}"')
        file = tmp_path / f"{version}.toml"
        # On v1 there is no io.cost.
        file.write_text(text if version == "v2" else text.replace('"io.cost", ', ""))
        study, _ = load_study(file)
        assert (study.run.repeats, len(study.event)) == (3, 1)


def test_from_fio_writes_a_study_that_checks(tmp_path: Path) -> None:
    job, study = tmp_path / "job.fio", tmp_path / "study.toml"
    job.write_text("[a]\nruntime=1\nrate_min=1m\n")
    result = CliRunner().invoke(app, ["from-fio", str(job), "-o", str(study)])
    assert result.exit_code == 0
    assert f"warning: {job}:3: rate_min=1m: not honoured" in result.stderr
    assert [tenant.name for tenant in load_study(study)[0].tenant] == ["a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.fio", "study.toml"]


def test_from_fio_prints_without_a_file(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a]\nruntime=1\n")
    result = CliRunner().invoke(app, ["from-fio", str(job)])
    assert result.stdout.startswith("# Imported from the fio job file job.fio.\n")


def test_a_bad_job_leaves_nothing(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a\n")
    result = CliRunner().invoke(app, ["from-fio", str(job), "-o", str(tmp_path / "study.toml")])
    assert isinstance(result.exception, UserError)
    assert [path.name for path in tmp_path.iterdir()] == ["job.fio"]


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a]\nruntime=1\n")
    result = CliRunner().invoke(app, ["from-fio", str(job), "-o", str(tmp_path / "no" / "s.toml")])
    assert isinstance(result.exception, UserError)
    assert f"{tmp_path / 'no'}: cannot write: No such file or directory" in str(result.exception)


def test_the_schema_is_json_and_names_every_field() -> None:
    result = CliRunner().invoke(app, ["schema"])
    schema = json.loads(result.stdout)
    assert schema == study_schema()
    assert set(schema["$defs"]["Study"]["properties"]) == set(Study.__struct_fields__)


def test_every_field_of_the_schema_is_described() -> None:
    for struct, definition in study_schema()["$defs"].items():
        for name, field in definition["properties"].items():
            assert field.get("description"), f"{struct}.{name}"


def test_the_schema_gives_the_ranges_that_are_checked() -> None:
    tenant = study_schema()["$defs"]["TenantEntry"]["properties"]
    assert (tenant["iodepth"]["minimum"], tenant["iodepth"]["maximum"]) == (1, 4096)
    weights = [option.get("items", option) for option in tenant["weight"]["anyOf"]]
    assert {(weight["minimum"], weight["maximum"]) for weight in weights} == {(1, 10_000)}

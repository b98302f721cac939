# SPDX-License-Identifier: GPL-2.0-only
"""isoblk device: its output and exit status. The lab's machine is a fake on which a
tenant makes 1,000 reads of 4 KiB in a second."""

import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from isoblk import paths
from isoblk.cli import main as cli
from isoblk.lab import Lab
from tests.unit.fakes import FakeMachine, fake_lab
from tests.unit.fioresults import fio_document, fio_job

PRESET = """
title = "a disk"
source = "a sheet"
[device]
driver = "vdisk"
[[expect]]
what = "random read"
rw = "randread"
metric = "iops"
value = {value}
source = "the sheet, page 1"
"""


@pytest.fixture(autouse=True)
def lab_without_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lab, "open", lambda **options: nullcontext(fake_lab(FakeMachine())))


def status(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["isoblk", "device", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    code = ended.value.code
    assert isinstance(code, int)
    return code


def preset(directory: Path, value: int) -> str:
    path = directory / "mine.toml"
    path.write_text(PRESET.format(value=value))
    return str(path)


def test_every_preset_is_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(monkeypatch, "list") == 0
    out = capsys.readouterr().out
    for path in paths.presets_dir().glob("*.toml"):
        assert path.stem in out


def test_the_list_shows_the_precondition_of_each_flash_drive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(monkeypatch, "list") == 0
    out = capsys.readouterr().out
    (line,) = (line for line in out.splitlines() if line.startswith("980pro-1t"))
    assert line.split()[:4] == ["980pro-1t", "flash", "in", "order"]
    assert "Samsung SSD 980 PRO" in line
    assert "in order: once" in out


def test_the_list_fits_eighty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    assert status(monkeypatch, "list") == 0
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    # A line a preset: no title goes on in a second one.
    assert lines.index("") == 1 + len(list(paths.presets_dir().glob("*.toml")))


def test_a_preset_is_shown_with_its_source_state_units_and_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(monkeypatch, "show", "p4500-1t") == 0
    out = capsys.readouterr().out
    for text in (
        "Intel SSD DC P4500 1 TB\n",
        "vdisk flash, overwritten at random\n",
        "Lenovo's product guide",
        "flash.read_ns",
        "69.9 µs",
        "3,250 MB/s",
        "130 per mille of size",
        "279,500 IOPS",
        "a model of 8g stands for the whole drive",
        "published",
    ):
        assert text in out
    # Attributes that the model ignores are not shown.
    assert "servers" not in out
    assert "disk.rpm" not in out


def test_the_load_of_a_figure_is_shown_with_its_competing_load(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert status(monkeypatch, "show", "980pro-1t") == 0
    out = capsys.readouterr().out
    assert "randread 4k, iodepth 1; beside randwrite 64k, iodepth 128, 8 jobs; bfq" in out
    assert "beside randwrite 4k, iodepth 128; kyber, read_lat_nsec 100000" in out


def test_a_presets_text_is_no_markup_and_does_not_rule_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = Path(preset(tmp_path, 1000))
    path.write_text(path.read_text().replace("random read", "read [/bold] \\u001b[31m"))
    assert status(monkeypatch, "show", str(path)) == 0
    assert "read [/bold] \\x1b[31m" in capsys.readouterr().out
    assert status(monkeypatch, "check", str(path)) == 0
    assert "[/bold]" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1"])
def test_a_figure_that_nothing_can_be_held_to_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, value: str
) -> None:
    path = Path(preset(tmp_path, 1000))
    path.write_text(path.read_text().replace("value = 1000", f"value = {value}"))
    assert status(monkeypatch, "show", str(path), "--json") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "value" in line


def test_a_preset_is_shown_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert status(monkeypatch, "show", preset(tmp_path, 980), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["title"], found["source"], found["kind"]) == ("a disk", "a sheet", "vdisk fixed")
    assert found["state"] == ""
    assert found["attributes"]["read_ns"] == {"value": 20_000, "unit": "ns"}
    assert [one["value"] for one in found["expect"]] == [980]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("980", "unknown preset '980'; did you mean '980pro-1t'?"),
        ("wd10ezx", "unknown preset 'wd10ezx'; did you mean 'wd10ezex'?"),
        ("nothing.toml", "no such file 'nothing.toml'"),
    ],
)
def test_a_wrong_name_is_one_line_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    assert status(monkeypatch, "show", name) == 2
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1


def test_a_preset_near_its_source_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert status(monkeypatch, "check", preset(tmp_path, 980)) == 0
    assert "+2.0%" in capsys.readouterr().out


def test_figures_of_one_load_are_of_one_run_and_stand_in_the_presets_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine = FakeMachine()

    monkeypatch.setattr(Lab, "open", lambda **options: nullcontext(fake_lab(machine)))
    path = Path(preset(tmp_path, 1000))
    beside = 'beside = { rw = "randread", bs = "64k" }\nfitted = false\n'
    one = path.read_text()
    more = one[one.index("[[expect]]") :]
    second = more.replace('"random read"', '"read beside"') + beside
    third = more.replace('"random read"', '"mean"').replace("iops", "lat_mean_ns")
    path.write_text(one + second + third)
    assert status(monkeypatch, "check", str(path), "--json") == 1  # a mean of 1 / 1000 ns
    found = json.loads(capsys.readouterr().out)
    assert [one["what"] for one in found] == ["random read", "read beside", "mean"]
    assert [one["model"] for one in found[:2]] == [1000, 1000]
    assert len(machine.plans) == 2
    assert sum("/beside/" in plan for plan in machine.plans) == 1


def test_a_preset_far_from_its_source_fails_and_says_by_how_much(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert status(monkeypatch, "check", preset(tmp_path, 2000)) == 1
    said = capsys.readouterr()
    assert "-50.0%" in said.out
    assert "1 of 1 figures are off by more than the tolerance: " in said.err
    assert "random read, -50.0%" in said.err


def test_the_figures_come_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert status(monkeypatch, "check", "--json", preset(tmp_path, 1000)) == 0
    (figure,) = json.loads(capsys.readouterr().out)
    assert figure["expected"] == figure["model"] == 1000
    assert figure["ok"] is True
    assert figure["source"] == "the sheet, page 1"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("check", "slow"), "unknown preset 'slow'"),
        (("check", "fast"), "fast: the preset has no figures to check"),
        (("check", "none.toml"), "no such file 'none.toml'"),
        (("fit", "none.json", "-o", "x.toml"), "none.json: cannot read: No such file"),
        (("fit", "-o", "x.toml"), "no results of fio given"),
    ],
)
def test_a_mistake_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    why: str,
) -> None:
    assert status(monkeypatch, *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line


def test_results_without_a_usable_job_are_one_error_beside_the_reasons(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, output = tmp_path / "fio.json", tmp_path / "mine.toml"
    path.write_text(json.dumps(fio_document(fio_job("mixed", {"rw": "randrw"}))))
    assert status(monkeypatch, "fit", str(path), "-o", str(output)) == 2
    left_out, error = capsys.readouterr().err.splitlines()
    assert "job 'mixed': rw=randrw is not one of" in left_out
    assert "no usable job" in error
    assert not output.exists()


def test_a_fitted_preset_is_a_preset_and_can_be_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, output = tmp_path / "fio.json", tmp_path / "mine.toml"
    job = fio_job("job", {"rw": "randread", "bs": "4k", "iodepth": "8"}, iops=1000)
    path.write_text(json.dumps(fio_document(job)))
    assert status(monkeypatch, "fit", str(path), "-o", str(output)) == 0
    assert "randread 4k, iodepth 8" in capsys.readouterr().out
    assert status(monkeypatch, "check", str(output)) == 0


IOCOST = str(Path(__file__).parent / "iocost.hwdb")


def test_the_models_of_a_database_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A name is whole in a narrow terminal too: it is what --model takes.
    monkeypatch.setenv("COLUMNS", "40")
    assert status(monkeypatch, "fit", "--iocost", IOCOST) == 0
    (line,) = (one for one in capsys.readouterr().out.splitlines() if one.startswith("HFS256"))
    assert line.split() == [
        *("HFS256GD9TNG-62A0A", "naive", "1,091", "MB/s", "52,286", "IOPS", "63,784", "IOPS"),
        *("192", "MB/s", "12,309", "IOPS", "16,119", "IOPS"),
    ]


def test_a_preset_from_the_database_is_checked_by_the_figures_it_is_fitted_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "mine.toml"
    words = ("fit", "--iocost", IOCOST, "--model", "linux-ssd-fast", "-o", str(out))
    assert status(monkeypatch, *words, "--rounds", "0") == 0
    assert "not fitted" in capsys.readouterr().out
    assert status(monkeypatch, "show", str(out)) == 0
    assert "io.cost's figures of linux-ssd-fast" in capsys.readouterr().out
    # The fake lab makes the same of everything: each of the four fails, and no other.
    assert status(monkeypatch, "check", str(out)) == 1
    assert "4 of 4 figures are off" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "no results of fio given"),
        (("--model", "x"), "--model needs io.cost's database; add --iocost"),
        (("--iocost", IOCOST, "--model", "linux-hd"), "did you mean 'linux-hdd'?"),
        (("--iocost", IOCOST, "--model", "linux-hdd"), "no output file given"),
        (("--iocost", "nothing.hwdb"), "nothing.hwdb"),
    ],
)
def test_a_fit_that_cannot_be_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    why: str,
) -> None:
    assert status(monkeypatch, "fit", *words) == 2
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1

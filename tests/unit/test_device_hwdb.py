# SPDX-License-Identifier: GPL-2.0-only
"""io.cost's database of drives: the models read from it, and errors of a damaged one."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from isoblk.device.fit import attributes, estimate
from isoblk.device.hwdb import expect_entries
from isoblk.device.measure import make_spec
from isoblk.errors import UserError
from isoblk.machine import iocost_hwdb
from isoblk.machine.iocost_hwdb import FIGURES, Known, databases, read_hwdb
from isoblk.plan.plan import make_plan

SAMPLE = Path(__file__).parent / "iocost.hwdb"
RECORD = """\
block:*:name:{model}:fwver:*:
  IOCOST_SOLUTIONS=isolation naive
  IOCOST_MODEL_ISOLATION=rbps=1 rseqiops=1 rrandiops=1 wbps=1 wseqiops=1 wrandiops=1
  IOCOST_MODEL_NAIVE={figures}
  IOCOST_QOS_NAIVE=rpct=99.00 rlat=8807 wpct=99.00 wlat=59023 min=75.00 max=100.00
"""
GOOD = "rbps=6 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1"


def written(path: Path, text: str) -> list[Path]:
    file = path / "90-iocost.hwdb"
    file.write_text(text)
    return [file]


def record(model: str = "DISK", figures: str = GOOD) -> str:
    return RECORD.format(model=model, figures=figures)


figures = st.fixed_dictionaries({name: st.integers(1, (1 << 53) - 1) for name in FIGURES})
names = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":#"), min_size=1
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(models=st.dictionaries(names, figures, min_size=1, max_size=5), gap=st.integers(0, 2))
def test_written_models_are_read_back_unchanged(
    tmp_path: Path, models: dict[str, dict[str, int]], gap: int
) -> None:
    text = ("\n" * gap).join(
        record(model, " ".join(f"{name}={value}" for name, value in of.items()))
        for model, of in models.items()
    )
    found = read_hwdb(written(tmp_path, "# a comment\n\n" + text))
    assert found.known == tuple(Known(name, "naive", models[name]) for name in sorted(models))
    assert found.left_out == ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from([*record().splitlines(), *"# = :", "", " x=y", "\x00"])), st.text())
@example(["block:*:name:A:", " IOCOST_MODEL_NAIVE=rbps=\u0661"], "")
def test_whatever_the_file_holds_it_is_read_or_refused_in_one_line(
    tmp_path: Path, lines: list[str], tail: str
) -> None:
    paths = written(tmp_path, "\n".join(lines))
    paths[0].write_text("\n".join([*lines, tail]), errors="surrogatepass")
    try:
        found = read_hwdb(paths)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert found.known or found.left_out


def test_models_that_share_a_record_share_its_figures(tmp_path: Path) -> None:
    found = read_hwdb(written(tmp_path, "block:*:name:A:\n" + record("B")))
    assert [one.model for one in found.known] == ["A", "B"]
    assert found.model("A").figures == found.model("B").figures


def test_a_later_record_of_a_model_wins(tmp_path: Path) -> None:
    text = record("A") + "\n" + record("A", GOOD.replace("rbps=6", "rbps=7"))
    assert read_hwdb(written(tmp_path, text)).model("A").figures["rbps"] == 7


@pytest.mark.parametrize(
    "figures",
    [
        "rbps=1",
        GOOD.replace("=4", "=-4"),
        GOOD.replace("=4", "=0"),
        GOOD.replace("=4", "=1e9"),
        "rbps=" + "9" * 5000,
    ],
)
def test_a_damaged_record_is_named_and_the_others_are_read(tmp_path: Path, figures: str) -> None:
    found = read_hwdb(written(tmp_path, record("BAD", figures) + "\n" + record("GOOD")))
    assert [one.model for one in found.known] == ["GOOD"]
    (line,) = found.left_out
    assert "before line 6: BAD: " in line
    assert "is not a figure" in line


def test_another_database_of_udevs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no drive model with figures"):
        read_hwdb(written(tmp_path, "evdev:name:x:*\n EVDEV_ABS_00=1:2\n"))


def test_a_model_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'HFS256GD9TNG-62A0A'"):
        read_hwdb([SAMPLE]).model("HFS256GD9TNG")


def test_udevs_own_files_are_found_and_the_administrators_hides_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc, usr = tmp_path / "etc", tmp_path / "usr"
    monkeypatch.setattr(iocost_hwdb, "DIRECTORIES", (etc, usr))
    with pytest.raises(UserError, match="udev has no database"):
        databases()
    for path in (etc / "90-iocost.hwdb", usr / "90-iocost.hwdb", usr / "91-iocost-more.hwdb"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(record())
    assert databases() == [etc / "90-iocost.hwdb", usr / "91-iocost-more.hwdb"]


@pytest.mark.parametrize("known", read_hwdb([SAMPLE]).known, ids=lambda one: one.model)
def test_a_model_becomes_a_device_whose_figures_can_be_measured(known: Known) -> None:
    expect = expect_entries(known, SAMPLE.name)
    assert [int(one.value) for one in expect] == [known.figures[name] for name in FIGURES]
    device = estimate(expect)
    assert device.model == ("disk" if known.model == "linux-hdd" else "flash")
    for one in expect:
        make_plan(make_spec(device, one))
    # The small sequential ones only tell.
    assert [one.what.split(":")[0] for one in expect if not one.fitted] == ["rseqiops", "wseqiops"]
    assert all(expect[place].fitted for place in attributes(device, expect))


def test_random_writes_as_fast_as_a_stream_are_of_a_drive_with_free_blocks() -> None:
    found = {
        known.model: expect_entries(known, "f")[-1].state for known in read_hwdb([SAMPLE]).known
    }
    assert found["linux-ssd-fast"] == "fresh"
    assert found["HFS256GD9TNG-62A0A"] == "steady"

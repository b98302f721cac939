# SPDX-License-Identifier: GPL-2.0-only
"""compare reports the differences of two result sets, their effect, and how sure it is."""

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.analysis.compare import SIGNIFICANT, Difference, PointComparison, compare
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.cli import compare as cli_compare
from isoblk.cli import main
from isoblk.errors import RunError, UserError
from isoblk.metrics.registry import METRICS, direction
from isoblk.result.store import read_results, write_study
from isoblk.run.spec import Tenant
from tests.unit import resultgen
from tests.unit.resultgen import PROVENANCE, Made, tenant


def _analyse(directory: Path) -> Analysis:
    return analyse(read_results(directory))


def _row(point: PointComparison, metric: str) -> Difference:
    return next(one for one in point.differences if one.metric == metric)


def _two(
    directory: Path, a: Sequence[Tenant], b: Sequence[Tenant], rates: Sequence[dict[str, float]]
) -> tuple[Path, Path]:
    return (
        resultgen.write(directory / "a", [Made("bfq", rates[0], tenants=a)]),
        resultgen.write(directory / "b", [Made("bfq", rates[1], tenants=b)]),
    )


def _printed(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_the_same_study_twice_is_identical(tmp_path: Path) -> None:
    a = resultgen.weights_study(tmp_path / "a")
    b = resultgen.weights_study(tmp_path / "b")
    found = compare(_analyse(a), _analyse(b))
    usable = [p for p in found.points if not p.note]
    assert len(usable) == 19
    assert all(p.identical for p in usable)
    assert sorted(p.note for p in found.points if p.note) == ["no valid run in A nor in B"] * 2
    assert not any(p.lost for p in found.points)
    assert found.inputs == ()
    assert found.changes() == []


def test_a_difference_without_repeats_has_no_confidence(tmp_path: Path) -> None:
    a = resultgen.weights_study(tmp_path / "a")
    b = resultgen.weights_study(tmp_path / "b", scale=1.1)
    row = _row(compare(_analyse(a), _analyse(b)).points[0], "total_iops")
    assert row.change == pytest.approx(0.1, abs=1e-3)
    assert row.p is None


def test_repeats_tell_a_difference_from_noise(tmp_path: Path) -> None:
    a = resultgen.weights_study(tmp_path / "a", repeats=4)
    far = resultgen.weights_study(tmp_path / "far", repeats=4, scale=0.9)
    near = resultgen.weights_study(tmp_path / "near", repeats=4, scale=0.9995)
    certain = _row(compare(_analyse(a), _analyse(far)).points[0], "total_iops")
    noise = _row(compare(_analyse(a), _analyse(near)).points[0], "total_iops")
    assert certain.p is not None
    assert certain.p < 0.001
    assert noise.p is not None
    assert noise.p > 0.5
    # A difference that may be chance fails nothing, however small the limit.
    for other, failing in ((far, True), (near, False)):
        failed = compare(_analyse(a), _analyse(other), ["total_iops"]).failed(0)
        assert bool(failed) is failing


def test_differences_in_kernel_and_modules_are_named(tmp_path: Path) -> None:
    other = msgspec.structs.replace(PROVENANCE, kernel="7.2.0", modules_key="x")
    a = resultgen.weights_study(tmp_path / "a")
    b = resultgen.weights_study(tmp_path / "b", provenance=other)
    found = compare(_analyse(a), _analyse(b))
    assert [(one.what, one.a, one.b) for one in found.inputs] == [
        ("kernel", "6.12.0", "7.2.0"),
        ("modules", PROVENANCE.modules_key, "x"),
    ]


def test_each_part_of_a_study_that_differs_is_named(tmp_path: Path) -> None:
    a = resultgen.write(
        tmp_path / "a", [Made("bfq", {"t": 10.0}, tenants=[tenant("t", 100)], tier="uml")]
    )
    b = resultgen.write(
        tmp_path / "b",
        [
            Made("bfq", {"t": 10.0}, repeat=n, tenants=[tenant("t", 100, iodepth=4)], tier="smp",
                 runtime_ms=2000)
            for n in range(2)
        ],
        title="Another",
    )  # fmt: skip
    record = read_results(b).record
    study = msgspec.structs.replace(record.study, device="980pro-1t", description="New")
    write_study(b, msgspec.structs.replace(record, study=study))
    told = {one.what: (one.a, one.b) for one in compare(_analyse(a), _analyse(b)).inputs}
    assert told["tier"] == ("uml", "smp")
    assert told["device"] == ("fast", "980pro-1t")
    assert told["tenant t.iodepth"] == ("1", "4")
    assert told["runtime"] == ("1.00 s", "2.00 s")
    assert told["repeats"] == ("1", "2")
    assert len(told["seeds"][1].split()) == 2
    assert told["study's title"] == ("A synthetic study", "Another")
    assert told["study's description"][1] == "New"


def test_another_weight_is_said_and_its_figures_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = _two(
        tmp_path,
        [tenant("x", 500), tenant("y", 500)],
        [tenant("x", 900), tenant("y", 500)],
        [{"x": 500.0, "y": 500.0}, {"x": 640.0, "y": 360.0}],
    )
    found = compare(_analyse(a), _analyse(b))
    assert found.points[0].tenants == (("x", "weight 500", "weight 900"),)
    assert _row(found.points[0], "share.x").b == pytest.approx(0.64, abs=1e-3)
    cli_compare.compare(a, b)
    printed = _printed(capsys)
    assert "tenant x: A weight 500, B weight 900" in printed
    assert "share.x 50.0 % 64.0 %" in printed


def test_equal_runs_of_other_weights_are_not_identical(tmp_path: Path) -> None:
    rates = {"x": 500.0, "y": 500.0}
    a, b = _two(
        tmp_path,
        [tenant("x", 500), tenant("y", 500)],
        [tenant("x", 900), tenant("y", 500)],
        [rates, rates],
    )
    assert not compare(_analyse(a), _analyse(b)).points[0].identical


def test_a_tenant_of_one_side_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = _two(
        tmp_path,
        [tenant("x", 500), tenant("gone", 500)],
        [tenant("x", 500), tenant("new", 500)],
        [{"x": 500.0, "gone": 500.0}, {"x": 500.0, "new": 400.0}],
    )
    found = compare(_analyse(a), _analyse(b)).points[0]
    assert found.tenants == (
        ("gone", "weight 500", "not there"),
        ("new", "not there", "weight 500"),
    )
    assert {one.metric for one in found.differences if one.metric.startswith("share.")} == {
        "share.x"
    }
    cli_compare.compare(a, b)
    assert "tenant new: A not there, B weight 500" in _printed(capsys)


def test_points_of_one_set_only_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = resultgen.count_study(tmp_path / "a", counts=(4, 8))
    b = resultgen.count_study(tmp_path / "b", counts=(8, 16))
    found = compare(_analyse(a), _analyse(b))
    assert len(found.points) == len(found.only_a) == len(found.only_b) == 4
    cli_compare.compare(a, b)
    printed = _printed(capsys)
    assert "only in A: " in printed
    assert "only in B: " in printed


def test_the_worst_comes_first_in_twenty_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = resultgen.weights_study(tmp_path / "a", repeats=3)
    b = resultgen.weights_study(tmp_path / "b", repeats=3, scale=0.9)
    cli_compare.compare(a, b)
    printed = capsys.readouterr().out
    table = [line for line in printed.splitlines() if re.search(r" (worse|better) p ", line)]
    assert len(table) == 20
    verdicts = [re.findall(r"worse|better", line)[0] for line in table]
    assert verdicts == ["worse"] * verdicts.count("worse") + ["better"] * verdicts.count("better")
    assert verdicts.count("worse") >= 15
    assert printed.startswith(f"A: {a}"[:20])
    assert printed.index("Figures of points that differ") < printed.index(" change ")
    assert "The inputs are the same" in printed
    assert "p < 0.001" in printed
    assert "more: --all; --metric NAME and --only KEY=VALUE choose" in printed
    assert "…" not in printed
    assert max(map(len, printed.splitlines()[2:])) <= 100
    cli_compare.compare(a, b, everything=True)
    whole = capsys.readouterr().out
    assert "--all" not in whole
    found = compare(_analyse(a), _analyse(b)).changes()
    shown = [line for line in whole.splitlines() if re.search(r" p [<=] ", line)]
    assert len(shown) == len(found) > 20
    worse = [one.worse for _, one in found if one.worse is not None and one.worse > 0]
    sure = [one.worse for _, one in found if one.worse and one.worse > 0 and not one.noise]
    assert worse[: len(sure)] == sorted(worse[: len(sure)], reverse=True)


def test_units_are_those_of_other_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [tenant("x", 500), tenant("y", 500)]
    a = resultgen.write(
        tmp_path / "a",
        [Made("bfq", {"x": 5000.0, "y": 5000.0}, tenants=names, latency={81_920: 10})],
    )
    b = resultgen.write(
        tmp_path / "b",
        [Made("bfq", {"x": 6000.0, "y": 2000.0}, tenants=names, latency={163_840: 10})],
    )
    cli_compare.compare(a, b, everything=True)
    printed = _printed(capsys)
    assert "p99.x 81.9 µs 164 µs +100.0 % worse" in printed
    assert "share_error 0.0 % 50.0 % +50.0 points worse" in printed
    assert "total_iops 10.0 K 8.00 K -20.0 % worse" in printed
    assert "total_bps 41.0 MB/s 32.8 MB/s" in printed


@given(
    st.sampled_from(sorted(name for name, one in METRICS.items() if one.compared)),
    *[st.one_of(st.just(0.0), st.floats(1e-6, 1e12), st.just(math.inf))] * 2,
)
def test_a_worse_figure_is_better_in_the_reverse_comparison(name: str, a: float, b: float) -> None:
    name = name.replace("<tenant>", "t")
    better, deviation = direction(name)
    there, back = (Difference(name, x, y, better, deviation, None) for x, y in ((a, b), (b, a)))
    if better == "neither":
        assert there.worse is back.worse is None
        return
    assert there.worse is not None
    assert back.worse is not None
    if a == b:
        assert there.worse == back.worse == 0
    else:
        assert (there.worse > 0) is ((b > a) is (better == "down"))
        assert (there.worse > 0) is not (back.worse > 0)


@pytest.mark.parametrize(
    ("limit", "metrics", "failing"),
    [("9%", [], True), ("9%", ["total_bps"], True), ("11%", ["total_bps"], False),
     ("9%", ["p99"], False), ("1000%", [], False)],
)  # fmt: skip
def test_fail_over_ends_with_one(
    tmp_path: Path, limit: str, metrics: list[str], failing: bool
) -> None:
    names = resultgen.four()
    a, b = _two(
        tmp_path,
        names,
        names,
        [{t.name: of * t.weight for t in names} for of in (10.0, 9.0)],
    )
    if not failing:
        cli_compare.compare(a, b, metric=metrics, fail_over=limit)
        return
    with pytest.raises(RunError, match=f"worse by more than {limit}; the worst: ") as caught:
        cli_compare.compare(a, b, metric=metrics, fail_over=limit)
    assert caught.value.exit_status == 1
    # The other way round nothing is worse.
    cli_compare.compare(b, a, metric=metrics, fail_over=limit)


def test_a_point_that_no_longer_runs_fails(tmp_path: Path) -> None:
    names = [tenant("x", 100)]
    a = resultgen.write(tmp_path / "a", [Made("bfq", {"x": 10.0}, tenants=names)])
    b = resultgen.write(
        tmp_path / "b", [Made("bfq", {"x": 10.0}, tenants=names, status="invalid", reasons=["no"])]
    )
    with pytest.raises(RunError, match="B has no valid run of bfq"):
        cli_compare.compare(a, b, fail_over="5%")
    cli_compare.compare(b, a, fail_over="5%")


def test_json_has_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = resultgen.weights_study(tmp_path / "a")
    b = resultgen.weights_study(tmp_path / "b", scale=0.9)
    with pytest.raises(RunError):
        cli_compare.compare(a, b, as_json=True, fail_over="5%")
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {
        *("format", "a", "b", "inputs", "points", "only_a", "only_b", "fail_over", "failed")
    }
    assert found["fail_over"] == 0.05
    assert found["failed"][0]["worse"] > 0.05
    point = next(one for one in found["points"] if one["metrics"])
    row = next(one for one in point["metrics"] if one["metric"] == "total_bps")
    assert row["worse"] == pytest.approx(0.1, abs=1e-3)
    assert row["change"] == pytest.approx(-0.1, abs=1e-3)
    assert set(row) == {"metric", "better", "a", "b", "change", "worse", "p"}


def test_csv_has_a_row_a_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = resultgen.weights_study(tmp_path / "a")
    b = resultgen.weights_study(tmp_path / "b", scale=0.9)
    cli_compare.compare(a, b, as_csv=True, only=["scheduler=bfq"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["scheduler"] for row in rows} == {"bfq"}
    names = [row["metric"] for row in rows if row["workload.rw"] == "randread"]
    assert len(set(names)) == len(names) > 10
    assert {"total_bps", "p99.gold", "share.tin"} <= set(names)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["A", "A"], "A and B are the same directory"),
        (["A", "link"], "A and B are the same directory"),
        (["A", "empty"], "not a result directory"),
        (["A", "file"], "not a result directory"),
        (["A", "damaged"], "damaged"),
        (["A", "B", "--metric", "p98"], "unknown metric 'p98'; known: total_iops, "),
        (["A", "B", "--metric", "p99.nobody"], "unknown metric 'p99.nobody'"),
        (["A", "B", "--only", "scheduler=bqf"], "no point has scheduler 'bqf'; known: none, "),
        (["A", "B", "--only", "shceduler=bfq"], "unknown key 'shceduler'; known: scheduler, "),
        (["A", "B", "--only", "bfq"], "'bfq' is not KEY=VALUE"),
        (["A", "B", "--fail-over", "5"], "'5' is not a percentage; allowed: 5%"),
        (["A", "B", "--fail-over", "-1%"], "'-1%' is not a percentage"),
        (["A", "B", "--fail-over", "nan%"], "'nan%' is not a percentage"),
        (["A", "B", "--json", "--csv"], "--json and --csv exclude each other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_said_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    resultgen.weights_study(tmp_path / "A")
    resultgen.weights_study(tmp_path / "B", scale=1.1)
    (tmp_path / "link").symlink_to("A")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/study.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["isoblk", "compare", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert told in said.err


def test_nothing_in_common_is_the_users_mistake(tmp_path: Path) -> None:
    a = resultgen.count_study(tmp_path / "a", counts=(4,))
    b = resultgen.count_study(tmp_path / "b", counts=(8,))
    with pytest.raises(UserError, match="no study point in common"):
        cli_compare.compare(a, b)


def test_the_help_text_gives_the_level_of_significance() -> None:
    assert f"p of {SIGNIFICANT:g} or more" in " ".join((cli_compare.compare.__doc__ or "").split())

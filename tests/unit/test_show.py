# SPDX-License-Identifier: GPL-2.0-only
"""show fits a terminal, says bandwidth where IOPS do not, and gives everything to programs."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from isoblk.analysis.claims import judge_all
from isoblk.analysis.metrics import analyse
from isoblk.cli import main
from isoblk.cli import show as cli_show
from isoblk.errors import UserError
from isoblk.metrics.registry import METRICS
from isoblk.report.rows import summary
from isoblk.report.tables import PointsTable
from isoblk.report.tenants import by_point
from isoblk.result.store import read_results
from isoblk.run.record import CacheReport
from isoblk.run.spec import MatrixValue
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen
from tests.unit.resultgen import Made, tenant

BFQ: dict[str, MatrixValue] = {"scheduler": "bfq"}
NAMES = {"gold", "silver", "bronze", "tin"}


def _printed(directory: Path, width: int) -> str:
    console = Console(width=width, no_color=True, highlight=False)
    with console.capture() as capture:
        console.print(PointsTable(analyse(read_results(directory))))
    return capture.get()


def _mixed(directory: Path, keys: int = 1, repeats: int = 1) -> Path:
    """Two tenants of other sizes under every scheduler, the bytes under bfq half of none's."""
    tenants = [tenant("small", 500), tenant("large", 500)]
    made = []
    for repeat in range(repeats):
        for name, rates in (
            ("none", (100, 800)),
            ("mq-deadline", (100, 800)),
            ("bfq", (6400, 200)),
        ):
            point = {f"workload.key{n}": "1234567" for n in range(keys - 1)}
            by = dict(zip(("small", "large"), rates, strict=True))
            made.append(
                Made(name, by, point=point, tenants=tenants, repeat=repeat, sizes={"large": 131072})
            )
    made = [
        replace(one, reference=i - i % 3) if one.scheduler != "none" else one
        for i, one in enumerate(made)
    ]
    return resultgen.write(directory, made)


def test_bandwidth_is_shown_only_where_sizes_differ(tmp_path: Path) -> None:
    alike = _printed(resultgen.weights_study(tmp_path / "alike"), 100)
    assert "bandwidth" not in alike
    assert " of none" in alike
    assert "B/s of none" not in alike
    mixed = _printed(_mixed(tmp_path / "mixed"), 100)
    assert "bandwidth" in mixed
    assert "B/s of none" in mixed
    assert "read it together with share error" in " ".join(mixed.split())
    # Half the bytes, seven times the requests: the head of the column shows which is half.
    (bfq,) = [line for line in mixed.splitlines() if line.startswith(" bfq")]
    assert bfq.split()[1:3] == ["6.60", "K"]
    assert "49.8 %" in bfq


def test_the_latency_of_a_starved_tenant_is_never(tmp_path: Path) -> None:
    tenants = [tenant("small", 500), tenant("large", 500)]
    latency = {1_000_000: 1}
    runs = [
        Made("none", {"small": 0, "large": 800}, tenants=tenants, latency=latency),
        Made("bfq", {"small": 100, "large": 800}, tenants=tenants, latency=latency),
    ]
    resultgen.write(tmp_path, runs)
    analysis = analyse(read_results(tmp_path))
    table = summary(analysis)
    place = [column.title for column in table.columns].index("p99")
    assert [cells[place].text for _, cells in table.rows] == ["never", "1.00 ms"]
    assert any("never: nothing that it asked for was answered" in note for note in table.notes)
    own = by_point(analysis)
    assert [cells[-1].text for _, cells in own.rows] == ["never", "1.00 ms", "1.00 ms", "1.00 ms"]


@pytest.mark.parametrize("keys", [1, 2, 3])
@pytest.mark.parametrize("repeats", [1, 3])
def test_a_hundred_columns_suffice(tmp_path: Path, keys: int, repeats: int) -> None:
    printed = _printed(_mixed(tmp_path, keys, repeats), 100)
    assert max(map(len, printed.splitlines())) <= 100
    assert "…" not in printed
    for title in ("IOPS", "bandwidth", "B/s of none", "share error", "p99"):
        assert title in printed


def test_figures_that_do_not_fit_are_named(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path, repeats=3)
    wide = _printed(tmp_path, 200)
    assert re.search(r" [0-9.]+ [KMG]? ?to [0-9.]+ ", wide)
    assert "and their range" in wide
    narrow = _printed(tmp_path, 78)
    assert "… " not in narrow
    assert "ranges: --json" in narrow


def test_a_few_tenants_are_shown_unasked_and_many_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resultgen.weights_study(tmp_path)
    cli_show.show(tmp_path)
    many = capsys.readouterr().out
    assert "p50" not in many.replace("p50 and p99 of each tenant", "")
    assert "rows): --tenants" in many
    cli_show.show(tmp_path, tenants=True)
    asked = capsys.readouterr().out
    assert asked.count(" gold   ") == 19
    cli_show.show(tmp_path, only=["scheduler=bfq"])
    few = capsys.readouterr().out
    assert few.count(" gold   ") == 3
    assert "p50" in few
    cli_show.show(tmp_path, only=["scheduler=bfq"], tenants=False)
    assert "p50 " not in capsys.readouterr().out.replace("p50 and p99", "")
    assert max(map(len, (many + asked + few).splitlines())) <= 100


def test_caches_of_several_tenants_have_hit_ratios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {f"{at}.{op}_bytes": 1e6 for at in ("origin", "ssd") for op in ("read", "write")}
    report = CacheReport(
        before={}, after={}, figures=figures | {"read_hit_ratio": 0.75}, identities=[]
    )
    who = [tenant("a", 100, rw="randread"), tenant("b", 100, rw="randread")]
    made = Made("bfq", {"a": 100.0, "b": 300.0}, tenants=who, cache=report)
    resultgen.write(tmp_path, [made], ssd="fast")
    cli_show.show(tmp_path)
    printed = capsys.readouterr().out
    assert "read hits" in printed
    assert "75.0 %" in printed


def test_json_has_every_metric_of_every_tenant_and_the_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = ClaimEntry(text="t", source="s", metric="share_error", op="<", value=0.05, where=BFQ)
    resultgen.weights_study(tmp_path, repeats=2, claims=[claim])
    cli_show.show(tmp_path, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {
        *("format", "directory", "study", "made_with", "keys", "points", "claims")
    }
    analysis = analyse(read_results(tmp_path))
    assert len(found["points"]) == len(analysis.points)
    for told, point in zip(found["points"], analysis.points, strict=True):
        assert told["point"] == point.point
        assert [one["name"] for one in told["tenants"]] == [
            one.name for one in point.runs[0].spec.tenants
        ]
        for name, metric in METRICS.items():
            if metric.of_run:
                estimate = point.estimate(name)
                assert told["metrics"].get(name) == (estimate.mean if estimate else None)
            for one in told["tenants"]:
                if metric.of_tenant:
                    estimate = point.estimate(f"{metric.base}.{one['name']}")
                    assert one["metrics"].get(metric.base) == (estimate.mean if estimate else None)
    bfq = next(one for one in found["points"] if one["point"]["scheduler"] == "bfq")
    assert bfq["valid_repeats"] == 2
    low, high = bfq["intervals"]["total_bps"]
    assert low <= bfq["metrics"]["total_bps"] <= high
    assert bfq["tenants"][0]["metrics"]["p99"] > 1000  # ns
    (verdict,) = found["claims"]
    assert verdict["verdict"] == judge_all(analysis)[0].verdict
    assert verdict["points"]
    bad = next(one for one in found["points"] if one["status"] != "valid" and one["reasons"])
    assert bad["metrics"] == {} or bad["valid_repeats"]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("-x", "'-x"),
        ("-1", "-1"),
        ("+2.5", "+2.5"),
        ("a=1", "a=1"),
    ],
)
def test_a_spreadsheet_works_out_nothing_that_others_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, cell: str
) -> None:
    run = Made("bfq", {"a": 100.0}, tenants=[tenant("a", 100)], point={"workload.x": value})
    resultgen.write(tmp_path, [run, replace(run, point={"workload.x": "1"})])
    cli_show.show(tmp_path, as_csv=True)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["workload.x"] for row in rows] == [cell, "1"]


def test_csv_has_a_row_a_tenant_at_each_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resultgen.weights_study(tmp_path)
    cli_show.show(tmp_path, as_csv=True)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    points = {(row["scheduler"], row["workload.rw"]) for row in rows}
    assert len(rows) == 4 * len(points) == 4 * 21
    assert {row["tenant"] for row in rows} == NAMES
    bfq = [row for row in rows if (row["scheduler"], row["workload.rw"]) == ("bfq", "randread")]
    assert sum(float(row["share"]) for row in bfq) == pytest.approx(1)
    assert sum(float(row["bps"]) for row in bfq) == pytest.approx(float(bfq[0]["total_bps"]))
    assert all(float(row["p99"]) > float(row["p50"]) > 0 for row in bfq)
    failed = next(row for row in rows if row["status"] == "failed")
    assert failed["total_bps"] == failed["p99"] == ""


def test_only_some_points_are_shown_and_keys_may_be_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resultgen.weights_study(tmp_path)
    for asked in (["scheduler=bfq", "rw=randread"], ["workload.rw=randread", "scheduler=bfq"]):
        cli_show.show(tmp_path, only=asked, as_json=True)
        found = json.loads(capsys.readouterr().out)
        assert [one["point"] for one in found["points"]] == [
            {"scheduler": "bfq", "workload.rw": "randread"}
        ]
    cli_show.show(tmp_path, only=["scheduler=bfq", "scheduler=none"], as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert {one["point"]["scheduler"] for one in found["points"]} == {"bfq", "none"}


def test_only_keeps_the_claims_about_the_points_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [
        ClaimEntry(
            text=f"about {name}",
            source="s",
            metric="total_iops",
            op=">",
            value=0,
            where={"scheduler": name},
        )
        for name in ("bfq", "kyber")
    ]
    resultgen.weights_study(tmp_path, claims=claims)
    cli_show.show(tmp_path, only=["scheduler=bfq", "rw=randread"])
    printed = capsys.readouterr().out
    assert "about bfq" in printed
    assert "about kyber" not in printed
    assert "1 claim holds, 0 fail, 0 undecided." in printed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "not a result directory"),
        (["B"], "did you mean results/B?"),
        (["empty"], "not a result directory"),
        (["file"], "not a result directory"),
        (["damaged"], "damaged: "),
        (["A", "--only", "scheduler=bqf"], "no point has scheduler 'bqf'; known: none, "),
        (["A", "--only", "schedule=bfq"], "unknown key 'schedule'; known: scheduler, workload.rw"),
        (["A", "--only", "scheduler"], "'scheduler' is not KEY=VALUE; as in scheduler=bfq"),
        (["A", "--only", ""], "'' is not KEY=VALUE"),
        (["A", "--json", "--csv"], "--json and --csv exclude each other"),
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
    resultgen.weights_study(tmp_path / "results/B")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/study.json").write_text('{"format": 1}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["isoblk", "show", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert told in said.err


def test_values_that_no_point_has_together_are_said(tmp_path: Path) -> None:
    names = [tenant("x", 100)]
    resultgen.write(
        tmp_path,
        [
            Made("none", {"x": 1.0}, point={"k": "1"}, tenants=names),
            Made("bfq", {"x": 1.0}, point={"k": "2"}, tenants=names),
        ],
    )
    with pytest.raises(UserError, match="no point is all of scheduler=bfq, k=1"):
        cli_show.show(tmp_path, only=["scheduler=bfq", "k=1"])


def test_without_a_directory_those_in_results_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no result directory found"):
        cli_show.show(None)
    resultgen.weights_study(tmp_path / "results" / "mine")
    (tmp_path / "results" / "broken").mkdir()
    (tmp_path / "results" / "broken" / "study.json").write_text("{")
    cli_show.show(None)
    broken, mine = capsys.readouterr().out.splitlines()
    assert "results/mine" in mine
    assert re.search(r"\d+ of \d+ runs", mine)
    assert "cannot read study.json" in broken
    with pytest.raises(UserError, match="no result directory given"):
        cli_show.show(None, as_json=True)

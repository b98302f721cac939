# SPDX-License-Identifier: GPL-2.0-only
"""Figures of programs are shown in their words, with units, and can be claimed and compared."""

from pathlib import Path

import polars as pl
import pytest

from isoblk.analysis.claims import judge_all
from isoblk.analysis.compare import compare
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.cli import show as cli_show
from isoblk.metrics.registry import split_says
from isoblk.report import rows
from isoblk.report.page import render
from isoblk.result.store import read_results
from isoblk.run.record import Figure, ProgramReport
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen
from tests.unit.resultgen import Made, tenant


def _said(rate: float, used: str) -> ProgramReport:
    figures = [
        Figure(name="read.rate", value=rate, unit="ops/s"),
        Figure(name="read.latency.p99", value=81_234, unit="ns"),
        Figure(name="write.rate", value=0, unit="ops/s"),
    ]
    return ProgramReport(program="iozone", used=[used], status=0, end_ns=1, figures=figures)


def _analysis(directory: Path, rates: dict[str, float], used: str = "iozone") -> Analysis:
    tenants = (tenant("db.x", 200, program="iozone"), tenant("web", 100))
    made = [
        Made(
            scheduler=name,
            point={"scheduler": name},
            rates={"db.x": 1000, "web": 1000},
            tenants=tenants,
            says={"db.x": _said(rate, used)},
        )
        for name, rate in rates.items()
    ]
    claim = ClaimEntry(
        text="bfq is faster",
        source="nobody",
        metric="says.db.x.read.rate",
        op=">",
        value=1.5,
        where={"scheduler": "bfq"},
        than={"scheduler": "none"},
    )
    resultgen.write(directory, made, [claim])
    return analyse(read_results(directory))


def test_a_table_has_a_row_a_point_and_a_column_a_figure(tmp_path: Path) -> None:
    ((who, table),) = rows.said(_analysis(tmp_path, {"none": 100, "bfq": 200_000}))
    assert who == "db.x: iozone"
    # A figure that is 0 everywhere is left out.
    assert [column.title for column in table.columns] == [
        *("scheduler", "read rate", "read latency p99"),
    ]
    assert [[cell.text for cell in cells] for _, cells in table.rows] == [
        ["none", "100/s", "81.2 µs"],
        ["bfq", "200 K/s", "81.2 µs"],
    ]


def test_it_says_so_if_another_program_did_the_work(tmp_path: Path) -> None:
    ((who, _),) = rows.said(_analysis(tmp_path, {"none": 1, "bfq": 2}, used="fio"))
    assert who == "db.x: iozone, not installed: its tests by fio"


@pytest.mark.parametrize(("rate", "verdict"), [(200, "holds"), (150, "fails")])
def test_a_claim_may_be_about_it(tmp_path: Path, rate: float, verdict: str) -> None:
    (result,) = judge_all(_analysis(tmp_path, {"none": 100, "bfq": rate}))
    assert result.verdict == verdict


def test_page_and_terminal_show_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analysis = _analysis(tmp_path, {"none": 100, "bfq": 200_000})
    page = render(analysis, [], None)
    assert "What the programs say" in page
    assert "200 K/s" in page
    cli_show.show(tmp_path)
    assert "what db.x: iozone, says" in capsys.readouterr().out


def test_two_sets_are_compared_in_it(tmp_path: Path) -> None:
    one = _analysis(tmp_path / "a", {"none": 100, "bfq": 1})
    other = _analysis(tmp_path / "b", {"none": 110, "bfq": 1})
    # Runs with equal tables are taken for equal.
    path = next((tmp_path / "b").glob("runs/*0/series.parquet"))
    pl.read_parquet(path).head(-1).write_parquet(path, statistics=False)
    differences = {d.metric: d.change for d in compare(one, other).points[0].differences}
    assert differences["says.db.x.read.rate"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("says.db.x.read.rate", ("db.x", "read.rate")),
        ("says.db.read.rate", ("db", "read.rate")),
        ("says.web.time", ("web", "time")),
        ("says.other.time", None),
        ("share.web", None),
    ],
)
def test_names_with_dots_are_told_apart(name: str, parts: tuple[str, str] | None) -> None:
    assert split_says(name, ["db", "db.x", "web"]) == parts

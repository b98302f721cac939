# SPDX-License-Identifier: GPL-2.0-only
"""A source's figures stand beside the right runs, in the page and as bars."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from isoblk.analysis.metrics import Analysis, analyse
from isoblk.errors import UserError
from isoblk.report.figures.make import make_figures
from isoblk.report.page import render
from isoblk.report.published import bars, errors, table
from isoblk.result.store import read_results
from isoblk.study.load import parse_study
from isoblk.study.model import CompareSeries, CompareTable
from tests.unit import resultgen

STUDY = """
name = "s"
device = "fast"
[[tenant]]
name = "t"
[matrix]
scheduler = ["none", "cfq"]
"workload.bs" = ["4k", "8k"]
[compare]
title = "x"
source = "P1"
metric = "total_bps"
x = "workload.bs"
[[compare.series]]
text = "read"
where = { scheduler = "cfq" }
values = [1, 2]
"""


@pytest.fixture
def compared(tmp_path: Path) -> Analysis:
    """Of the made-up runs none reads 800,000 and writes 640,000 times a second; kyber's writes
    are invalid. The source has 400 and 0 (none) for none, 100 and 100 for kyber, in thousands."""
    results = read_results(resultgen.weights_study(tmp_path))
    compare = CompareTable(
        title="Speed",
        source="P1",
        metric="total_iops",
        x="workload.rw",
        scale=1000,
        series=[
            CompareSeries(text="any", where={"scheduler": "none"}, values=[400, 0]),
            CompareSeries(text="any", where={"scheduler": "kyber"}, values=[100, 100]),
        ],
    )
    study = msgspec.structs.replace(
        results.record.study,
        matrix={"scheduler": ["none", "kyber"], "workload.rw": ["randread", "randwrite"]},
        compare=compare,
    )
    record = msgspec.structs.replace(results.record, study=study)
    return analyse(replace(results, record=record))


def test_each_figure_is_beside_its_run(compared: Analysis) -> None:
    found = [(bar.scheduler, bar.x, bar.source) for bar in bars(compared)]
    assert found == [
        ("none", "randread", 400_000),
        ("none", "randwrite", None),
        ("kyber", "randread", 100_000),
        ("kyber", "randwrite", 100_000),
    ]
    here = [bar.here for bar in bars(compared)]
    assert here[:2] == pytest.approx([800_000, 640_000], rel=0.01)
    assert here[3] is None


def test_only_figures_that_both_have_are_compared(compared: Analysis) -> None:
    found = bars(compared)
    assert [bar.error is None for bar in found] == [False, True, False, True]
    assert found[0].error == pytest.approx(1, rel=0.02)
    assert errors(found[:2]) == "median 100 %, at most 100 %"
    assert errors(found[1:2]) == "nothing to compare"


def test_the_page_has_the_table_and_a_chart_for_each_scheduler(compared: Analysis) -> None:
    figures = make_figures(compared)
    assert [f.name for f in figures if f.name.startswith("compare")] == [
        "compare-none",
        "compare-kyber",
    ]
    page = render(compared, figures, None)
    assert "Against the source" in page
    assert compared.results.record.study.compare is not None
    content = table(compared, compared.results.record.study.compare)
    assert [state for state, _ in content.rows] == ["valid", "valid", "valid", "missing"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("values = [1, 2]", "values = [1]", "1 values for 2 of workload.bs"),
        ("values = [1, 2]", "values = [1, -2]", "negative or not finite"),
        ('x = "workload.bs"', 'x = "workload.rw"', "not a matrix key"),
        ('scheduler = "cfq" }', 'scheduler = "bfq" }', "the matrix has no bfq"),
    ],
)
def test_figures_that_belong_to_no_run_are_refused(old: str, new: str, said: str) -> None:
    parse_study(STUDY, "x.toml")
    with pytest.raises(UserError, match=said):
        parse_study(STUDY.replace(old, new), "x.toml")


def test_a_dotted_key_needs_no_quotes() -> None:
    study = parse_study(
        STUDY.replace('where = { scheduler = "cfq" }', "where = { queue.nr_requests = 64 }")
        .replace('"workload.bs" = ', 'queue.nr_requests = [64]\n"workload.bs" = ')
        .replace('["none", "cfq"]', '["cfq"]'),
        "x.toml",
    )
    assert study.compare is not None
    assert study.compare.series[0].where == {"queue.nr_requests": 64}

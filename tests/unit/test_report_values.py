# SPDX-License-Identifier: GPL-2.0-only
"""A claim's values are told in the metric's unit, and as exact as they decide."""

from pathlib import Path

import pytest

from isoblk.analysis.claims import judge
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.report import values
from isoblk.result.store import read_results
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    directory: Path = tmp_path_factory.mktemp("values")
    resultgen.weights_study(directory)
    return analyse(read_results(directory))


def _claim(metric: str, value: float) -> ClaimEntry:
    return ClaimEntry(text="a claim", source="a paper", metric=metric, op="<=", value=value)


@pytest.mark.parametrize(
    ("metric", "value", "told"),
    [
        ("p99.t1", 2e6, "2 ms"),
        ("p99.t1", 321.5e6, "321.5 ms"),
        ("p99.t1", 0, "0 ns"),
        ("share_error", 0.1, "10 %"),
        ("share_error", 0.0025, "0.25 %"),
        ("jain", 0.999, "0.999"),
        ("total_bps", 1.5e9, "1.5 GB/s"),
        ("total_iops", 98_000, "98 K"),
        ("slowdown.t1", 3, "3x"),
        ("says.t1.rate", 20, "20"),
    ],
)
def test_an_expected_value_has_its_unit_and_all_its_digits(
    analysis: Analysis, metric: str, value: float, told: str
) -> None:
    result = judge(_claim(metric, value), analysis)
    assert values.expected(result, analysis) == f"{metric} <= {told}"


def test_a_value_that_is_not_the_claims_does_not_read_as_it(analysis: Analysis) -> None:
    written = values.against(judge(_claim("share_error", 0.05), analysis), analysis)
    assert written(0.05) == "5.0 %"
    assert written(0.05001) == "5.001 %"
    assert written(0.07) == "7.0 %"

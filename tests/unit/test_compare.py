# SPDX-License-Identifier: GPL-2.0-only
"""compare says what changed between two result sets and how sure that is."""

from pathlib import Path

import msgspec
import pytest

from isoblk.analysis.compare import Difference, PointComparison, compare
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.cli import compare as cli_compare
from isoblk.errors import UserError
from isoblk.result.store import read_results
from tests.unit import resultgen
from tests.unit.resultgen import PROVENANCE


def _analyse(directory: Path) -> Analysis:
    return analyse(read_results(directory))


def _row(point: PointComparison, metric: str) -> Difference:
    return next(one for one in point.differences if one.metric == metric)


def test_the_same_study_twice_is_identical(tmp_path: Path) -> None:
    a = resultgen.weights_study(tmp_path / "a")
    b = resultgen.weights_study(tmp_path / "b")
    found = compare(_analyse(a), _analyse(b))
    usable = [p for p in found.points if not p.note]
    assert len(usable) == 19
    assert all(p.identical for p in usable)
    assert sorted(p.note for p in found.points if p.note) == ["no valid run in A"] * 2
    assert found.provenance == ()


def test_a_difference_without_repeats_has_no_confidence(tmp_path: Path) -> None:
    a = resultgen.weights_study(tmp_path / "a")
    b = resultgen.weights_study(tmp_path / "b", scale=1.1)
    row = _row(compare(_analyse(a), _analyse(b)).points[0], "total_iops")
    assert row.change == pytest.approx(0.1, abs=1e-3)
    assert row.p is None


def test_repeats_tell_a_difference_from_noise(tmp_path: Path) -> None:
    a = resultgen.weights_study(tmp_path / "a", repeats=4)
    far = resultgen.weights_study(tmp_path / "far", repeats=4, scale=1.1)
    near = resultgen.weights_study(tmp_path / "near", repeats=4, scale=1.0005)
    certain = _row(compare(_analyse(a), _analyse(far)).points[0], "total_iops").p
    noise = _row(compare(_analyse(a), _analyse(near)).points[0], "total_iops").p
    assert certain is not None
    assert certain < 0.001
    assert noise is not None
    assert noise > 0.5


def test_another_kernel_is_named(tmp_path: Path) -> None:
    other = msgspec.structs.replace(PROVENANCE, kernel="7.2.0", modules_key="x")
    a = resultgen.weights_study(tmp_path / "a")
    b = resultgen.weights_study(tmp_path / "b", provenance=other)
    found = compare(_analyse(a), _analyse(b))
    assert found.provenance == (
        ("kernel", "6.12.0", "7.2.0"),
        ("modules_key", PROVENANCE.modules_key, "x"),
    )


def test_points_of_one_set_only_are_listed(tmp_path: Path) -> None:
    a = resultgen.count_study(tmp_path / "a", counts=(4, 8))
    b = resultgen.count_study(tmp_path / "b", counts=(8, 16))
    found = compare(_analyse(a), _analyse(b))
    assert len(found.points) == len(found.only_a) == len(found.only_b) == 4


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = resultgen.weights_study(tmp_path / "a", repeats=3)
    b = resultgen.weights_study(tmp_path / "b", repeats=3, scale=1.1)
    cli_compare.compare(a, b)
    printed = capsys.readouterr().out
    assert "Same tier, kernel and modules." in printed
    assert "p < 0.001" in printed
    assert "+10.0" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_nothing_in_common_is_the_users_mistake(tmp_path: Path) -> None:
    a = resultgen.count_study(tmp_path / "a", counts=(4,))
    b = resultgen.count_study(tmp_path / "b", counts=(8,))
    with pytest.raises(UserError, match="no study point in common"):
        cli_compare.compare(a, b)

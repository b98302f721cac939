# SPDX-License-Identifier: GPL-2.0-only
"""A claim holds, fails or is undecided, and is never decided from missing runs."""

import math
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from isoblk.analysis.claims import ClaimResult, compare, judge
from isoblk.analysis.metrics import analyse
from isoblk.metrics.shares import ratio_error
from isoblk.result.store import read_results
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen


def _claim(
    metric: str, op: str, value: float, where: dict[str, str] | None = None, tolerance: float = 0.0
) -> ClaimEntry:
    return ClaimEntry(
        text="a claim",
        source="a paper",
        metric=metric,
        op=op,  # type: ignore[arg-type]
        value=value,
        tolerance=tolerance,
        where=dict(where or {}),
    )


def _judge(directory: Path, claim: ClaimEntry) -> ClaimResult:
    return judge(claim, analyse(read_results(directory)))


@pytest.mark.parametrize(
    ("op", "low", "high", "verdict"),
    [
        ("<", 0.1, 0.9, "holds"),
        ("<", 0.9, 1.1, "undecided"),
        ("<", 1.0, 1.0, "fails"),
        ("<=", 1.0, 1.0, "holds"),
        ("<=", 1.0, 1.1, "undecided"),
        ("<=", 1.1, 1.2, "fails"),
        (">", 1.1, 1.2, "holds"),
        (">", 0.9, 1.1, "undecided"),
        (">", 1.0, 1.0, "fails"),
        (">=", 1.0, 1.0, "holds"),
        (">=", 0.9, 1.0, "undecided"),
        (">=", 0.8, 0.9, "fails"),
        ("~", 0.95, 1.05, "holds"),
        ("~", 1.05, 1.2, "undecided"),
        ("~", 1.2, 1.3, "fails"),
        ("~", 0.5, 2.0, "undecided"),
        ("~", 0.5, 0.6, "fails"),
    ],
)
def test_the_interval_decides(op: str, low: float, high: float, verdict: str) -> None:
    assert compare(_claim("jain", op, 1.0, tolerance=0.1), low, high) == verdict


@pytest.mark.parametrize("tier", ["uml", "icount"])
def test_a_single_run_decides_on_an_exact_tier(tmp_path: Path, tier: str) -> None:
    resultgen.weights_study(tmp_path, tier=tier)
    where = {"scheduler": "bfq"}
    assert _judge(tmp_path, _claim("share_error", "<", 0.05, where)).verdict == "holds"
    assert _judge(tmp_path, _claim("total_vs_none", ">", 0.5, where)).verdict == "fails"
    assert _judge(tmp_path, _claim("total_vs_none", "~", 0.37, where, 0.02)).verdict == "holds"


def test_a_single_run_decides_nothing_on_another_tier(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path, tier="qemu")
    found = _judge(tmp_path, _claim("share_error", "<", 0.05, {"scheduler": "bfq"}))
    assert (found.verdict, found.reason) == ("undecided", "one run has no interval; repeat it")


def test_the_ratio_of_some_tenants_takes_no_account_of_the_others(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path)
    analysis = analyse(read_results(tmp_path))
    (run,) = next(point for point in analysis.points if point.scheduler == "bfq").valid
    first, second, third, fourth = run.tenants
    uneven = [
        replace(first, share=0.3),
        replace(second, share=0.15),
        replace(third, share=0.5),
        replace(fourth, share=0.05),
    ]
    metrics = replace(run, tenants=tuple(uneven))
    assert [one.weight for one in uneven[:3]] == [1000, 500, 250]
    assert ratio_error(metrics, [first.name, second.name]) == pytest.approx(0)
    # Of what the three got, the third has 0.526, and should have 1/7.
    of_three = ratio_error(metrics, [first.name, second.name, third.name])
    assert of_three == pytest.approx(0.5 / 0.95 * 7 - 1)
    nothing = [replace(one, share=0.0) for one in uneven]
    assert ratio_error(replace(run, tenants=tuple(nothing)), [first.name, second.name]) == math.inf


def test_repeats_decide_by_their_interval(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path, repeats=3, tier="qemu")
    where = {"scheduler": "bfq", "workload.rw": "randread"}
    # Mean 294 K, half width about 2.9 K.
    assert _judge(tmp_path, _claim("total_iops", ">", 290_000, where)).verdict == "holds"
    assert _judge(tmp_path, _claim("total_iops", ">", 293_000, where)).verdict == "undecided"
    assert _judge(tmp_path, _claim("total_iops", ">", 298_000, where)).verdict == "fails"


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"scheduler": "kyber", "workload.rw": "randwrite"}, "an invalid run"),
        ({"scheduler": "io.latency", "workload.rw": "randrw"}, "a failed run"),
        ({"scheduler": "cfq"}, "no run matches"),
    ],
)
def test_a_claim_about_missing_runs_is_undecided(
    tmp_path: Path, where: dict[str, str], reason: str
) -> None:
    resultgen.weights_study(tmp_path)
    found = _judge(tmp_path, _claim("total_iops", ">", 0, where))
    assert (found.verdict, found.reason) == ("undecided", reason)


def test_one_point_that_fails_makes_the_claim_fail(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path)
    # kyber's randwrite run is invalid, its others have a total near none's.
    found = _judge(tmp_path, _claim("total_vs_none", "<", 0.9, {"scheduler": "kyber"}))
    assert found.verdict == "fails"
    assert sorted(p.verdict for p in found.points) == ["fails", "fails", "undecided"]


def test_a_missing_run_decides_nothing(tmp_path: Path) -> None:
    made = resultgen.Made("none", {"a": 1.0}, tenants=[resultgen.tenant("a", 100)], missing=True)
    resultgen.write(tmp_path, [made])
    found = _judge(tmp_path, _claim("jain", ">", 0))
    assert (found.verdict, found.reason) == ("undecided", "a run has not finished")


def _than(metric: str, op: str, value: float, than: dict[str, str], **where: str) -> ClaimEntry:
    where = {key.replace("_", "."): value for key, value in where.items()}
    return msgspec.structs.replace(_claim(metric, op, value, where), than=dict(than))


def test_a_metric_may_be_a_ratio_to_another_runs(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path)
    claim = _than("total_iops", "~", 294 / 800, {"scheduler": "none"}, scheduler="bfq")
    found = _judge(tmp_path, msgspec.structs.replace(claim, tolerance=0.001))
    assert found.verdict == "holds"
    assert len(found.points) == 3
    assert found.expected() == ("total_iops ~ 0.3675 times that of scheduler = none within 0.1 %")
    slower = _than("total_iops", "<", 1, {"workload.rw": "randread"}, scheduler="none")
    judged = _judge(tmp_path, slower)
    assert [p.measured and round(p.measured.mean, 3) for p in judged.points] == [1, 0.8, 0.9]
    assert judged.verdict == "fails"


def test_a_ratio_is_made_repeat_by_repeat(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path, repeats=3)
    # Both have the same noise: it is not in the ratio, whose interval is all but a point.
    claim = _than("total_iops", "<", 0.369, {"scheduler": "none"}, scheduler="bfq")
    found = _judge(tmp_path, claim)
    assert found.verdict == "holds"
    assert all(p.measured and p.measured.high - p.measured.low < 2e-4 for p in found.points)


@pytest.mark.parametrize(
    ("than", "reason"),
    [
        ({"scheduler": "kyber"}, "an invalid run"),
        ({"scheduler": "io.latency", "workload.rw": "randrw"}, "a failed run"),
    ],
)
def test_a_ratio_to_a_run_that_does_not_count_decides_nothing(
    tmp_path: Path, than: dict[str, str], reason: str
) -> None:
    resultgen.weights_study(tmp_path)
    claim = _than("jain", ">", 0, than, scheduler="bfq", workload_rw="randwrite")
    found = _judge(tmp_path, claim)
    assert (found.verdict, found.reason) == ("undecided", reason)


def test_shares_that_never_follow_fail_the_claim_that_they_do(tmp_path: Path) -> None:
    tenants = [resultgen.tenant("a", 100), resultgen.tenant("b", 900, startdelay_ns=5 * 10**8)]
    rates = {"a": 1000.0, "b": 1000.0}
    made = [resultgen.Made("none", rates, tenants=tenants, repeat=i) for i in range(2)]
    resultgen.write(tmp_path, made)
    assert _judge(tmp_path, _claim("converged_ms", "<=", 300)).verdict == "fails"


def test_a_metric_that_the_run_does_not_have_is_named(tmp_path: Path) -> None:
    resultgen.write(tmp_path, [resultgen.Made("none", {"a": 1.0}, tenants=resultgen.four()[:0])])
    found = _judge(tmp_path, _claim("converged_ms", "<=", 300))
    assert (found.verdict, found.reason.split(",")[0]) == ("undecided", "it has no converged_ms")


def test_where_matches_numbers_as_the_matrix_writes_them(tmp_path: Path) -> None:
    resultgen.count_study(tmp_path, counts=(4, 8))
    claim = ClaimEntry(
        text="t",
        source="s",
        metric="total_iops",
        op="~",
        value=300e3,
        tolerance=0.01,
        where={"tenant.t.count": 4, "scheduler": "bfq"},
    )
    found = _judge(tmp_path, claim)
    assert len(found.points) == 1
    assert found.verdict == "holds"

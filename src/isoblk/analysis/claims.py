# SPDX-License-Identifier: GPL-2.0-only
"""Judge whether a study's claims hold in a result set.

A claim concerns every study point that its `where` matches. With repeats a point is judged by the
95 % confidence interval of the mean: it decides only if it lies on one side of the threshold. With
a single run there is no interval: on the exact tiers, uml and icount, its value decides; on other
tiers the point is undecided. A point is also undecided if a run is invalid, failed or missing, or
its figure is suspect (isoblk.analysis.suspect). A claim with `than` judges the ratio of the point's
metric to that of another point. The claim fails if a point fails, else is undecided if a point is,
else holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from isoblk.analysis.metrics import Analysis, PointView, RunView, value_of
from isoblk.analysis.suspect import doubt, thirds
from isoblk.metrics.stats import Estimate, estimate
from isoblk.run.spec import SCHEDULER, label
from isoblk.run.tier import EXACT
from isoblk.study.model import ClaimEntry
from isoblk.study.point import applies

Verdict = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Judged:
    """Verdict on one point. than: the point that it was compared with, if any. reason: why it is
    undecided, else ""."""

    at: PointView
    than: PointView | None
    measured: Estimate | None
    verdict: Verdict
    reason: str

    @property
    def point(self) -> Mapping[str, str]:
        """Return matrix key to value."""
        return self.at.point


@dataclass(frozen=True)
class ClaimResult:
    """A claim and its verdict. reason: why it is undecided, else ""."""

    claim: ClaimEntry
    verdict: Verdict
    reason: str
    points: tuple[Judged, ...]

    def expected(self) -> str:
        """Return the comparison as text."""
        claim = self.claim
        within = f" within {claim.tolerance * 100:g} %" if claim.op == "~" else ""
        than = ", ".join(f"{key} = {label(value)}" for key, value in claim.than.items())
        times = f" times that of {than}" if than else ""
        among = f" of {', '.join(claim.among)}" if claim.among else ""
        return f"{claim.metric}{among} {claim.op} {claim.value:g}{times}{within}"


def judge_all(analysis: Analysis) -> list[ClaimResult]:
    """Judge the study's claims, in its order."""
    return [judge(claim, analysis) for claim in analysis.results.record.study.claim]


def judge_shown(whole: Analysis, shown: Analysis) -> list[ClaimResult]:
    """Judge the claims that concern a shown point, by all points that they concern; all claims, if
    all points are shown."""
    keys = {point.key for point in shown.points}
    return [
        result
        for result in judge_all(whole)
        if whole is shown or any(one.at.key in keys for one in result.points)
    ]


def judge(claim: ClaimEntry, analysis: Analysis) -> ClaimResult:
    """Return the verdict on one claim."""
    matching = [point for point in analysis.points if _matches(claim, point)]
    judged = tuple(_judge_point(claim, point, _base(claim, point, analysis)) for point in matching)
    if not judged:
        return ClaimResult(claim, "undecided", "no run matches", ())
    if any(judgement.verdict == "fails" for judgement in judged):
        return ClaimResult(claim, "fails", "", judged)
    open_ = [judgement for judgement in judged if judgement.verdict == "undecided"]
    if open_:
        return ClaimResult(claim, "undecided", open_[0].reason, judged)
    return ClaimResult(claim, "holds", "", judged)


def compare(claim: ClaimEntry, low: float, high: float) -> Verdict:
    """Return whether all, none or some of low..high satisfies the claim's comparison."""
    value = claim.value
    match claim.op:
        case "<":
            all_, any_ = high < value, low < value
        case "<=":
            all_, any_ = high <= value, low <= value
        case ">":
            all_, any_ = low > value, high > value
        case ">=":
            all_, any_ = low >= value, high >= value
        case "~":
            slack = claim.tolerance * abs(value)
            all_ = value - slack <= low and high <= value + slack
            any_ = low <= value + slack and high >= value - slack
    if all_:
        return "holds"
    return "undecided" if any_ else "fails"


def _base(claim: ClaimEntry, point: PointView, analysis: Analysis) -> PointView | None:
    """Return the point that the claim compares this one with; None if it compares with a value."""
    if not claim.than:
        return None
    at = {**point.point, **{key: label(value) for key, value in claim.than.items()}}
    at = {key: value for key, value in at.items() if applies(key, at[SCHEDULER])}
    return next(one for one in analysis.points if one.point == at)


def _judge_point(claim: ClaimEntry, point: PointView, base: PointView | None) -> Judged:
    for view in (*point.runs, *(base.runs if base else ())):
        if reason := _says_nothing(claim, view):
            return Judged(point, base, None, "undecided", reason)
    try:
        values = point.values(claim.metric, claim.among)
        bases = base.values(claim.metric, claim.among) if base else [1.0] * len(values)
        ends = [
            value_of(third, claim.metric, claim.among)
            for metrics in point.valid
            for third in thirds(metrics, claim)
        ]
    except KeyError:
        return Judged(point, base, None, "undecided", "no such tenant in the run")
    if len(values) < len(point.runs) or len(bases) < len(values) or not all(bases):
        reason = f"it has no {claim.metric}, or a run that it needs is not valid"
        return Judged(point, base, None, "undecided", reason)
    # Repeats of both points share seeds, so each is compared with its counterpart.
    measured = estimate([value / one for value, one in zip(values, bases, strict=True)])
    tier = point.runs[0].run.record.tier if point.runs[0].run else "host"
    if measured.n == 1 and tier not in EXACT:
        return Judged(point, base, measured, "undecided", "one run has no interval; repeat it")
    verdict = compare(claim, measured.low, measured.high)
    reason = "the interval is too wide" if verdict == "undecided" else ""
    if base is None and any(one is None or compare(claim, one, one) != verdict for one in ends):
        verdict, reason = "undecided", "suspect: shares have not settled"
    return Judged(point, base, measured, verdict, reason)


def _says_nothing(claim: ClaimEntry, view: RunView) -> str:
    """Return why a run decides nothing; "" if it may."""
    if view.status != "valid":
        why = {"invalid": "an invalid run", "failed": "a failed run"}
        return why.get(view.status, "a run has not finished")
    reason = doubt(view.metrics, claim) if view.metrics else ""
    return f"suspect: {reason}" if reason else ""


def _matches(claim: ClaimEntry, point: PointView) -> bool:
    return all(point.point.get(key) == label(value) for key, value in claim.where.items())

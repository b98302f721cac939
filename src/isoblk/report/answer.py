# SPDX-License-Identifier: GPL-2.0-only
"""The answer of a study: the best scheduler, its cost, and the evidence.

It is plain data, derived from the figures alone, so that page and terminal agree.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isoblk.analysis.claims import ClaimResult
from isoblk.analysis.metrics import Analysis, RunView
from isoblk.report import cached, text
from isoblk.report.choices import Choices
from isoblk.report.divided import divided
from isoblk.report.rows import Table, measured, varying, why
from isoblk.report.sources import OWN, by_source, called, tally
from isoblk.report.undivided import cache_choice, speeds
from isoblk.report.words import listed, several
from isoblk.run import numbers

_TIERS = {
    "uml": "a model disk in virtual time",
    "smp": "real time, four processors",
    "qemu": "an emulated machine",
    "icount": "an emulated machine whose clock counts instructions",
    "host": "this machine's own kernel and disk",
}
_BROKEN = 2  # claims that are named
_FEW_PAPERS = 2  # papers that are named
_EMPTY = Table((), (), ())


@dataclass(frozen=True)
class Evidence:
    """Evidence of the answer. part: the part of the page with the details."""

    text: str
    part: str


@dataclass(frozen=True)
class Broken:
    """A claim that the runs do not confirm. verdict: fails, or refuted. source: "" if it is the
    study's own. measured: the worst point and its value."""

    verdict: str
    source: str
    text: str
    measured: str


@dataclass(frozen=True)
class Answer:
    """sentences: one to three, or four if runs are missing. table: at most five lines, without rows
    if there is nothing to compare. evidence: what the answer rests on. broken: claims that the runs
    do not confirm, the study's own first. more_broken: the number of further ones."""

    sentences: tuple[str, ...]
    table: Table
    evidence: tuple[Evidence, ...]
    broken: tuple[Broken, ...] = ()
    more_broken: int = 0

    @property
    def text(self) -> str:
        """Return the sentences in one line."""
        return " ".join(self.sentences)


def answer(analysis: Analysis, claims: Sequence[ClaimResult]) -> Answer:
    """Return the answer of a result set. claims: judged."""
    choices = Choices(analysis)
    if cached.is_bench(analysis):
        sentences, table = cache_choice(analysis)
    elif choices.division:
        sentences, table = divided(choices)
    else:
        sentences, table = speeds(choices)
    told = _with_what_is_missing(analysis, sentences)
    broken = _some_of_each(list(_broken(choices, claims)))
    return Answer(
        tuple(told),
        table if sentences else _EMPTY,
        tuple(_evidence(analysis, claims)),
        tuple(broken[:_BROKEN]),
        max(0, len(broken) - _BROKEN),
    )


def _some_of_each(broken: list[Broken]) -> list[Broken]:
    """Order the claims: first the first of the study's own and the first of a paper."""
    heads = [one for one in broken if not one.source][:1] + [one for one in broken if one.source][
        :1
    ]
    return [*heads, *(one for one in broken if not any(one is head for head in heads))]


def _broken(choices: Choices, claims: Sequence[ClaimResult]) -> Iterator[Broken]:
    """Yield the failed claims as text."""
    for group in by_source(claims):
        before = ""
        for result in group.results:
            # "and nothing is lost" continues the preceding claim.
            words = result.claim.text
            words = f"{before} {words}" if before and words.startswith("and ") else words
            before = words
            if result.verdict == "fails":
                source = "" if group.own else group.source
                found = _furthest(result, choices)
                yield Broken(group.told(result.verdict), source, words, found)


def _furthest(result: ClaimResult, choices: Choices) -> str:
    """Return the measured value at the point where a claim is furthest from true."""
    failing = [
        (_off(result, one.measured.mean), at)
        for at, one in enumerate(result.points)
        if one.verdict == "fails" and one.measured is not None
    ]
    _, at = max(failing)
    judged = result.points[at]
    assert judged.measured is not None
    value = _value(result, judged.measured.mean) or measured(result, choices.analysis)[at][1]
    of = {point.at.schedulers for point in result.points}
    who = judged.at.schedulers if len(of) > 1 else ""
    place = ", ".join(filter(None, [who, choices.where(judged.at)]))
    return f"{value} ({place})" if place and len(result.points) > 1 else value


def _value(result: ClaimResult, value: float) -> str:
    """Format a fraction in per cent, a ratio as a factor; "" for metrics with their own unit."""
    metric = result.claim.metric.partition(".")[0]
    if result.claim.than or metric == "p99_excess":
        return f"{numbers.significant(value)} times"
    if metric.endswith("error") or metric in ("total_vs_none", "share"):
        return numbers.percent(value)
    return ""


def _off(result: ClaimResult, value: float) -> float:
    claim = result.claim
    if claim.op == "~":
        return abs(value - claim.value)
    return value if claim.op in ("<", "<=") else -value


def _with_what_is_missing(analysis: Analysis, sentences: Sequence[str]) -> list[str]:
    """Return the sentences, and one on missing runs."""
    bad = [view for view in analysis.views if view.status != "valid"]
    if not bad:
        return list(sentences) or ["No answer: nothing was measured that can be compared."]
    missing = {view.status for view in bad} == {"missing"}
    one = len(bad) == 1
    state = "not finished" if missing else "not valid"
    if not missing and any(view.status == "missing" for view in bad):
        state = "not valid or not there yet"
    verb = ("has" if one else "have") if missing else ("is" if one else "are")
    what = f"{len(bad)} of {several(len(analysis.views), 'run')} {verb} {state}"
    reason = _first_reason(analysis, bad)
    if not sentences:
        return [f"No answer yet: {what}{reason}."]
    schedulers = {point.schedulers for point in analysis.points}
    apart = cached.is_bench(analysis) or len(schedulers) > 1
    if any(view.status == "missing" for view in bad):
        return [f"Not yet all of the answer: {what}{reason}.", *sentences]
    short = text.short_keys(analysis.keys)
    names = dict.fromkeys(
        view.spec.point.get("cache", view.schedulers)
        if apart
        else text.label(view.spec.point, varying(analysis), short) or view.schedulers
        for view in bad
    )
    out = listed(list(names))
    are = "is" if len(names) == 1 else "are"
    return [*sentences, f"{out} {are} left out: {what}{reason}."]


def _first_reason(analysis: Analysis, bad: Sequence[RunView]) -> str:
    short = text.short_keys(analysis.keys)
    reasons = [(text.kind_label(view, short), why(view)) for view in bad if why(view)]
    if not reasons:
        return ""
    place, reason = reasons[0]
    more = ", and others" if len(reasons) > 1 else ""
    return f": {place}: {reason}{more}"


def _evidence(analysis: Analysis, claims: Sequence[ClaimResult]) -> Iterator[Evidence]:
    views = analysis.views
    valid = sum(view.status == "valid" for view in views)
    suspect = sum(bool(view.suspicions) for view in views)
    doubted = f", figures of {suspect} suspect" if suspect else ""
    yield Evidence(f"{valid} of {several(len(views), 'run')} valid{doubted}", "runs")
    repeats = max((len(point.runs) for point in analysis.points), default=1)
    yield Evidence(
        "each run made once" if repeats == 1 else f"{repeats} repeats, each with its own seed",
        "runs",
    )
    records = [view.run.record for view in views if view.run is not None]
    kernels = dict.fromkeys(f"Linux {record.provenance.kernel}" for record in records)
    tiers = dict.fromkeys(_TIERS[record.tier] for record in records)
    if records:
        yield Evidence(f"{' and '.join(kernels)}, {' and '.join(tiers)}", "made")
    groups = by_source(claims)
    for group in groups:
        if group.source == OWN:
            one = len(group.results) == 1
            yield Evidence(
                f"the study's own {'claim' if one else 'claims'}: {tally(group)}", "claims"
            )
    papers = [group for group in groups if group.source != OWN]
    if len(papers) == 1:
        yield Evidence(f"claims of {called(papers[0].source)}: {tally(papers[0])}", "claims")
    elif papers:
        found = {
            word: sum(group.number(verdict) for group in papers)
            for verdict, word in (
                ("holds", "confirmed"),
                ("fails", "refuted"),
                ("undecided", "undecided"),
            )
        }
        told = ", ".join(f"{number} {word}" for word, number in found.items() if number)
        names = dict.fromkeys(name for group in papers for name in group.source.split(" and "))
        few = len(names) <= _FEW_PAPERS
        whose = listed([called(name) for name in names]) if few else f"{len(names)} sources"
        yield Evidence(f"claims of {whose}: {told}", "claims")

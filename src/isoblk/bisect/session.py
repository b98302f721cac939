# SPDX-License-Identifier: GPL-2.0-only
"""Run a bisection between two ends, and summarise it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from isoblk.bisect.candidate import Candidate, NotBuiltError, Range
from isoblk.bisect.measure import Value
from isoblk.bisect.search import Found, Verdict, search, steps
from isoblk.bisect.threshold import Threshold, between, text_of
from isoblk.errors import RunError


@dataclass(frozen=True)
class Tried:
    """A tried candidate.

    Attributes:
        candidate: the candidate.
        verdict: good, bad or skipped.
        value: of the metric; None if it was skipped.
        reason: why it was skipped, or "".
        build_s: wall-clock time of the kernel's build, near 0 if it was ready.
        runs_s: wall-clock time of the modules' build and the runs.
    """

    candidate: Candidate
    verdict: Verdict
    value: Value | None
    reason: str
    build_s: float
    runs_s: float


Measure = Callable[[str], tuple[Value, float, float]]
"""Measures a candidate: returns its value, and the seconds of its build and of its runs.

Raises:
    NotBuiltError: it does not build.
    RunError: its runs fail.
"""


@dataclass(frozen=True)
class Outcome:
    """Result of a bisection. tried: in the order of trials."""

    threshold: Threshold
    found: Found
    tried: tuple[Tried, ...]


@dataclass
class Session:
    """One bisection.

    Attributes:
        range: the candidates between the ends.
        metric: name of the metric.
        measure: measures a candidate.
        on_tried: called after each trial.
    """

    range: Range
    metric: str
    measure: Measure
    on_tried: Callable[[Tried], None] = lambda one: None
    tried: list[Tried] = field(default_factory=list)

    def run(self, asked: float | None) -> Outcome:
        """Measure the two ends, then candidates between them.

        Args:
            asked: the threshold; None: the middle of the ends' values.

        Raises:
            UserError: the ends do not differ.
            RunError: an end cannot be measured, or no candidate of the range changed the metric.
        """
        good = self._end(self.range.good, "good")
        bad = self._end(self.range.bad, "bad")
        threshold = between(self.metric, good.estimate, bad.estimate, asked)

        def verdict_of(name: str) -> Verdict:
            return self._try(name, threshold)

        found = search(self.range.order, self.range.good, self.range.bad, verdict_of)
        if self.range.left_out and found.bad == self.range.bad and not self._in_range(found):
            raise RunError(
                f"no candidate of the range changed {self.metric}: the change is in one of"
                f" {self.range.left_out}",
                next="search all commits, without --path",
            )
        return Outcome(threshold, found, tuple(self.tried))

    def _in_range(self, found: Found) -> bool:
        """Return whether the bad end belongs to the range."""
        return bool(found.open) or found.bad in self.range.order(found.good, found.bad)

    def _end(self, name: str, verdict: Verdict) -> Value:
        """Measure an end."""
        try:
            value, build_s, runs_s = self.measure(name)
        except RunError as error:
            raise RunError(
                f"the {verdict} {self.range.what} {self.range.candidate(name).name} cannot be"
                f" measured: {error.cause}",
                where=error.where,
                next=error.next,
            ) from None
        self._keep(Tried(self.range.candidate(name), verdict, value, "", build_s, runs_s))
        return value

    def _try(self, name: str, threshold: Threshold) -> Verdict:
        candidate = self.range.candidate(name)
        before = time.monotonic()
        try:
            value, build_s, runs_s = self.measure(name)
        except NotBuiltError as error:
            spent = time.monotonic() - before
            reason = f"does not build: {error.cause}"
            self._keep(Tried(candidate, "skipped", None, reason, spent, 0.0))
            return "skipped"
        except RunError as error:
            spent = time.monotonic() - before
            self._keep(Tried(candidate, "skipped", None, str(error), 0.0, spent))
            return "skipped"
        verdict: Verdict = "bad" if threshold.bad(value.estimate.mean) else "good"
        self._keep(Tried(candidate, verdict, value, "", build_s, runs_s))
        return verdict

    def _keep(self, one: Tried) -> None:
        self.tried.append(one)
        self.on_tried(one)


def sentence(range_: Range, metric: str, outcome: Outcome) -> str:
    """Return the result in one sentence."""
    found, threshold = outcome.found, outcome.threshold
    side = "above" if threshold.above else "below"
    limit = f"{metric} {side} {text_of(metric, threshold.value)}"
    bad = range_.candidate(found.bad)
    first = f"the first {range_.what} with {limit} is {bad.name}"
    if range_.what == "commit":
        first += f" {bad.about}"
    if found.open:
        names = ", ".join(range_.candidate(one).name for one in found.open)
        return f"{first}, or one of those that were skipped: {names}"
    if range_.what == "commit":
        return first
    last = range_.candidate(found.good[-1])
    return f"{first}: between {last.name} and {bad.name} no version is available"


def announce(range_: Range) -> tuple[int, int, int]:
    """Return the number of candidates, and the largest numbers of trials and of kernel builds."""
    between_ = [one for one in range_.order([range_.good], range_.bad) if one != range_.bad]
    count = steps(len(between_))
    to_build = sum(range_.candidate(one).to_build for one in between_)
    ends = sum(range_.candidate(one).to_build for one in (range_.good, range_.bad))
    return len(between_), count + 2, ends + min(count, to_build)

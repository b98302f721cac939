# SPDX-License-Identifier: GPL-2.0-only
"""A bisection from its two ends to what is between the last good candidate and the first bad."""

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
    """A candidate that was tried.

    Attributes:
        candidate: which.
        verdict: what came of it.
        value: of the metric; None if it was skipped.
        reason: why it was skipped, else "".
        build_s: wall-clock time that it took to have it, as good as none if it was there.
        runs_s: that its modules and its runs took.
    """

    candidate: Candidate
    verdict: Verdict
    value: Value | None
    reason: str
    build_s: float
    runs_s: float


Measure = Callable[[str], tuple[Value, float, float]]
"""Has a candidate measured: its value, and the seconds that building it and its runs took.

Raises:
    NotBuiltError: it does not build.
    RunError: its runs fail.
"""


@dataclass(frozen=True)
class Outcome:
    """What a bisection came to. tried: in the order in which they were."""

    threshold: Threshold
    found: Found
    tried: tuple[Tried, ...]


@dataclass
class Session:
    """One bisection.

    Attributes:
        range: what is between the ends.
        metric: whose value counts.
        measure: tries a candidate.
        on_tried: hears of each.
    """

    range: Range
    metric: str
    measure: Measure
    on_tried: Callable[[Tried], None] = lambda one: None
    tried: list[Tried] = field(default_factory=list)

    def run(self, asked: float | None) -> Outcome:
        """Measure the two ends, then what is between.

        Args:
            asked: the threshold, None for the middle between the ends' values.

        Raises:
            UserError: the ends do not differ.
            RunError: an end cannot be measured, or nothing that was looked at changed the metric.
        """
        good = self._end(self.range.good, "good")
        bad = self._end(self.range.bad, "bad")
        threshold = between(self.metric, good.estimate, bad.estimate, asked)

        def verdict_of(name: str) -> Verdict:
            return self._try(name, threshold)

        found = search(self.range.order, self.range.good, self.range.bad, verdict_of)
        if self.range.left_out and found.bad == self.range.bad and not self._in_range(found):
            raise RunError(
                f"nothing that was looked at changed {self.metric}: it was one of"
                f" {self.range.left_out}",
                next="look among all",
            )
        return Outcome(threshold, found, tuple(self.tried))

    def _in_range(self, found: Found) -> bool:
        """Whether the bad end is one of those that were to be looked at."""
        return bool(found.open) or found.bad in self.range.order(found.good, found.bad)

    def _end(self, name: str, verdict: Verdict) -> Value:
        """An end's value."""
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
    """What was found, in one sentence."""
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
    return f"{first}: between {last.name} and {bad.name} no version is to be had"


def announce(range_: Range) -> tuple[int, int, int]:
    """How many candidates are between the ends; how many of them and of the ends are tried at most;
    and how many kernels are built for that at most."""
    between_ = [one for one in range_.order([range_.good], range_.bad) if one != range_.bad]
    count = steps(len(between_))
    to_build = sum(range_.candidate(one).to_build for one in between_)
    ends = sum(range_.candidate(one).to_build for one in (range_.good, range_.bad))
    return len(between_), count + 2, ends + min(count, to_build)

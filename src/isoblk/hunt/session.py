# SPDX-License-Identifier: GPL-2.0-only
"""A hunt from its first candidate to its last find.

A round draws random candidates, asks an optimiser for each objective for worse ones, and shrinks
the worst candidate of each objective. In later rounds a candidate that a find explains scores zero,
so that they find something else.

Each choice is seeded or follows from the results of runs, and runs in virtual time are
reproducible. The same hunt therefore has the same finds on any machine and with any number of
parallel runs. To resume a hunt, repeat it with the verdicts of the journal instead of runs.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from isoblk.errors import UserError
from isoblk.hunt.journal import Journal
from isoblk.hunt.judge import TROUBLES, WITHOUT_END, Verdict
from isoblk.hunt.optimise import Optimiser
from isoblk.hunt.shrink import shrink
from isoblk.hunt.space import Candidate, Space
from isoblk.hunt.spec import Budget, HuntSpec, Objective

# Of this number of candidates, one is run twice.
_TWICE = 25

# Number of the worst candidates of earlier rounds that an optimiser gets.
_KNOWN = 50

# Number of times that a round shrinks a candidate to a known find before it stops.
_AGAIN = 3


@dataclass(frozen=True)
class Find:
    """A find.

    Attributes:
        kind: the objective's metric, or one of TROUBLES.
        number: among the finds of its kind, from 1.
        candidate: the simplest candidate that shows it.
        verdict: on that candidate.
        first: the candidate before shrinking.
        tried, runs: candidates and runs of the whole hunt until then.
        shrunk_in: number of runs for shrinking.
    """

    kind: str
    number: int
    candidate: Candidate
    verdict: Verdict
    first: Candidate
    tried: int
    runs: int
    shrunk_in: int


@dataclass
class Spent:
    """Cost of a hunt so far. tried: candidates. cpu_s: CPU seconds of the runs, also of those
    before an interruption."""

    tried: int = 0
    cpu_s: float = 0.0
    ids: set[str] = field(default_factory=set)

    @property
    def runs(self) -> int:
        """Return the number of distinct runs."""
        return len(self.ids)


class Session:
    """A hunt.

    Args:
        spec: the hunt.
        space: the candidates.
        scheduler: the scheduler under test.
        judge: gives the verdict on a study, whose run under test is made twice if the second
            argument is true.
        forget: gets the id of a run that is not needed again.
        journal: of the verdicts.
        threads: pool for the candidates of a batch.
        on_tried: called after each batch with the progress.
        on_find: called with each find.
    """

    def __init__(
        self,
        spec: HuntSpec,
        space: Space,
        scheduler: str,
        judge: Callable[[Mapping[str, Any], bool], Verdict],
        forget: Callable[[str], None],
        journal: Journal,
        threads: Executor,
        on_tried: Callable[[Spent], None],
        on_find: Callable[[Find], None],
    ) -> None:
        self._spec = spec
        self._space = space
        self._scheduler = scheduler
        self._judge = judge
        self._forget = forget
        self._journal = journal
        self._threads = threads
        self._on_tried = on_tried
        self._on_find = on_find
        self._spent = Spent()
        # In the order of trials, which is reproducible.
        self._verdicts: dict[Candidate, Verdict] = {}
        self._at: dict[Candidate, tuple[int, int]] = {}
        self._finds: list[Find] = []
        self._settled: dict[str, set[Candidate]] = {}

    def run(self, budget: Budget) -> list[Find]:
        """Hunt until the budget is spent, or each kind has enough finds."""
        for number in count():
            self._round(number, budget)
            if self._over(budget) or not self._wanted():
                return self._finds
        raise AssertionError("unreachable")

    @property
    def spent(self) -> Spent:
        """Return the cost so far."""
        return self._spent

    def _round(self, number: int, budget: Budget) -> None:
        rounds = self._spec.round
        chance = random.Random(f"{self._spec.seed} {number}")
        drawn = [
            self._space.draw(lambda name, of, ordered: chance.randrange(of))
            for _ in range(rounds.random)
        ]
        for batch in _batches(drawn, rounds.batch):
            if self._over(budget):
                break
            self._try(batch)
            self._refuse_what_never_runs()
        optimisers = {
            one.metric: Optimiser(
                self._space, chance.randrange(1 << 32), self._worst(one, len(drawn))
            )
            for one in self._wanted()
        }
        wanted = self._wanted()
        for turn in range(-(-rounds.guided // rounds.batch)):
            if self._over(budget) or not wanted:
                break
            objective = wanted[turn % len(wanted)]
            batch = [optimisers[objective.metric].ask() for _ in range(rounds.batch)]
            self._try(batch)
            for one in wanted:
                for candidate in dict.fromkeys(batch):
                    optimisers[one.metric].tell(candidate, self._score(one, candidate))
        for kind in (*TROUBLES, *(one.metric for one in wanted)):
            self._find(kind)

    def _refuse_what_never_runs(self) -> None:
        """Check that at least one candidate was a valid study.

        Raises:
            UserError: none was.
        """
        if not self._spent.ids:
            reason = next(iter(self._verdicts.values())).reason
            raise UserError(
                f"none of the first {self._spent.tried} candidates can run; the first: {reason}",
                next="fix [space] or [study]",
            )

    def _wanted(self) -> list[Objective]:
        """Return the objectives with too few finds."""
        found = Counter(find.kind for find in self._finds)
        return [
            objective
            for objective in self._spec.objective
            if found[objective.metric] < self._spec.finds
        ]

    def _over(self, budget: Budget) -> bool:
        spent = self._spent
        return bool(
            (budget.runs and spent.runs >= budget.runs)
            or (budget.minutes and spent.cpu_s >= 60 * budget.minutes)
        )

    def _try(self, candidates: Sequence[Candidate]) -> list[Verdict]:
        """Return the verdicts on candidates, from the journal or from parallel runs."""
        fresh = [one for one in dict.fromkeys(candidates) if one not in self._verdicts]
        number = {one: len(self._verdicts) + at for at, one in enumerate(fresh)}
        new = [one for one in fresh if self._journal.get(one) is None]
        documents = [self._space.document(one, self._scheduler) for one in new]
        twice = [number[one] % _TWICE == 0 for one in new]
        judged = self._threads.map(self._judge, documents, twice)
        for candidate, verdict in zip(new, judged, strict=True):
            self._journal.add(candidate, verdict)
            if verdict.under_test:
                # The journal has the verdict. Runs of other schedulers may serve further
                # candidates.
                self._forget(verdict.under_test)
        verdicts = []
        for candidate in candidates:
            known = self._journal.get(candidate)
            assert known is not None  # it was just tried
            self._count(candidate, known)
            verdicts.append(known)
        self._on_tried(self._spent)
        return verdicts

    def _count(self, candidate: Candidate, verdict: Verdict) -> None:
        if candidate in self._verdicts:
            return
        self._verdicts[candidate] = verdict
        spent = self._spent
        spent.tried += 1
        for run_id, cpu_s in zip(verdict.ids, verdict.cpu_s, strict=False):
            if run_id not in spent.ids:
                spent.cpu_s += cpu_s
        spent.ids.update(verdict.ids)
        self._at[candidate] = (spent.tried, spent.runs)

    def _score(self, objective: Objective, candidate: Candidate) -> float:
        """Return the score of a candidate; the lowest score if a find explains it."""
        nothing = -WITHOUT_END if objective.described.better == "up" else 0.0
        if self._explained(objective.metric, candidate):
            return nothing
        return self._verdicts[candidate].scores.get(objective.metric, nothing)

    def _explained(self, kind: str, candidate: Candidate) -> bool:
        return candidate in self._settled.get(kind, ()) or any(
            self._space.explains(find.candidate, candidate)
            for find in self._finds
            if find.kind == kind
        )

    def _worst(self, objective: Objective, drawn: int) -> list[tuple[Candidate, float]]:
        """Return the last `drawn` candidates and the worst of the earlier ones, with their
        scores."""
        every = list(self._verdicts)
        before, last = every[:-drawn] if drawn else every, every[-drawn:] if drawn else []
        scored = sorted(
            ((self._score(objective, one), -at, one) for at, one in enumerate(before)),
            key=lambda entry: entry[:2],
            reverse=True,
        )
        worst = [(one, score) for score, _, one in scored[:_KNOWN]]
        return worst + [(one, self._score(objective, one)) for one in last]

    def _find(self, kind: str) -> None:
        """Shrink the worst unexplained candidate of a kind, if it is bad enough for a find."""
        for _ in range(_AGAIN):
            worst = self._worst_of(kind)
            if worst is None or self._shrunk(kind, worst):
                return

    def _worst_of(self, kind: str) -> Candidate | None:
        found = [
            (bad, -at, candidate)
            for at, (candidate, verdict) in enumerate(self._verdicts.items())
            if (bad := self._bad(kind, verdict)) is not None
            and not self._explained(kind, candidate)
        ]
        return max(found, key=lambda entry: entry[:2])[2] if found else None

    def _bad(self, kind: str, verdict: Verdict) -> float | None:
        """Return the score of a verdict; None if it is too low for a find."""
        if kind in TROUBLES:
            return 1.0 if verdict.trouble == kind else None
        score = verdict.scores.get(kind)
        return score if score is not None and score >= self._bar(kind) else None

    def _bar(self, kind: str) -> float:
        (objective,) = [objective for objective in self._spec.objective if objective.metric == kind]
        return -objective.beyond if objective.described.better == "up" else objective.beyond

    def _shrunk(self, kind: str, first: Candidate) -> bool:
        """Make a find of a candidate. Returns whether it is a new one."""
        bad = self._bad(kind, self._verdicts[first])
        assert bad is not None  # checked by the caller
        bar = bad if kind in TROUBLES else _kept(bad, self._bar(kind))
        before = self._spent.runs

        def shows(candidate: Candidate) -> bool:
            value = self._bad(kind, self._try([candidate])[0])
            return value is not None and value >= bar

        simplest = shrink(first, self._space, shows)
        self._settled.setdefault(kind, set()).add(first)
        former = [find for find in self._finds if find.kind == kind]
        if any(self._space.explains(find.candidate, simplest) for find in former):
            return False
        tried, runs = self._at[first]
        find = Find(
            kind=kind,
            number=len(former) + 1,
            candidate=simplest,
            verdict=self._verdicts[simplest],
            first=first,
            tried=tried,
            runs=runs,
            shrunk_in=self._spent.runs - before,
        )
        self._finds.append(find)
        self._on_find(find)
        return True


def _kept(bad: float, bar: float) -> float:
    """Return the score that a simpler candidate must have.

    It is between the bar for a find and the found score, by their ratio, so that a find far above
    the bar does not shrink to one at the bar.
    """
    middle = math.sqrt(bad * bar)
    return -middle if bar < 0 else middle


def _batches(candidates: Sequence[Candidate], size: int) -> Iterator[list[Candidate]]:
    rest = iter(candidates)
    while batch := list(islice(rest, size)):
        yield batch

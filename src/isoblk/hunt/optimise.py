# SPDX-License-Identifier: GPL-2.0-only
"""Where to look next: an optimiser for one objective, over the choices of a space."""

import functools
from collections.abc import Iterable

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    IntDistribution,
)

from isoblk.hunt.space import Candidate, Space


@functools.cache
def _distribution(count: int, ordered: bool) -> BaseDistribution:
    if ordered:
        return IntDistribution(0, count - 1)
    return CategoricalDistribution(list(range(count)))


class Optimiser:
    """Optuna's tree-structured Parzen estimator (J. Bergstra, R. Bardenet, Y. Bengio, B. Kegl,
    Algorithms for hyper-parameter optimization, NIPS 2011). It takes dimensions that are there
    only for some candidates, as those of a third tenant, and numbers beside words.

    Args:
        space: what is looked among.
        seed: the same one, asked and told the same, gives the same candidates.
        known: candidates that were tried before, and how bad they were.
    """

    def __init__(
        self, space: Space, seed: int, known: Iterable[tuple[Candidate, float]] = ()
    ) -> None:
        # Its word on every trial is not what a user asked for.
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = space
        self._study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=1, constant_liar=True),
        )
        self._asked: dict[Candidate, list[optuna.Trial]] = {}
        for candidate, score in known:
            self.tell(candidate, score)

    def ask(self) -> Candidate:
        """A candidate that may be worse than all so far; tell() is to follow."""
        trial = self._study.ask()

        def choose(name: str, count: int, ordered: bool) -> int:
            if ordered:
                return trial.suggest_int(name, 0, count - 1)
            return int(trial.suggest_categorical(name, list(range(count))))

        candidate = self._space.draw(choose)
        self._asked.setdefault(candidate, []).append(trial)
        return candidate

    def tell(self, candidate: Candidate, score: float) -> None:
        """How bad a candidate is, whoever asked for it."""
        if trials := self._asked.pop(candidate, []):
            for trial in trials:
                self._study.tell(trial, score)
            return
        params: dict[str, int] = {}
        distributions: dict[str, BaseDistribution] = {}
        for name, (choice, count, ordered) in self._space.choices(candidate).items():
            params[name] = choice
            distributions[name] = _distribution(count, ordered)
        self._study.add_trial(
            optuna.trial.create_trial(params=params, distributions=distributions, value=score)
        )

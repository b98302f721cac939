# SPDX-License-Identifier: GPL-2.0-only
"""Propose candidates: an optimiser for one objective over the choices of a space."""

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
    """Optuna's tree-structured Parzen estimator.

    Handles dimensions that only some candidates have, as those of a third tenant, and mixed numbers
    and choices. Source: J. Bergstra, R. Bardenet, Y. Bengio, B. Kegl, "Algorithms for
    hyper-parameter optimization", NIPS 2011.

    Args:
        space: the candidates.
        seed: with equal calls of ask() and tell(), equal seeds give equal candidates.
        known: earlier candidates and their scores.
    """

    def __init__(
        self, space: Space, seed: int, known: Iterable[tuple[Candidate, float]] = ()
    ) -> None:
        # Without a line for each trial.
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
        """Return a candidate that may be worse than all before; a call of tell() must follow."""
        trial = self._study.ask()

        def choose(name: str, count: int, ordered: bool) -> int:
            if ordered:
                return trial.suggest_int(name, 0, count - 1)
            return int(trial.suggest_categorical(name, list(range(count))))

        candidate = self._space.draw(choose)
        self._asked.setdefault(candidate, []).append(trial)
        return candidate

    def tell(self, candidate: Candidate, score: float) -> None:
        """Record the score of a candidate, from ask() or from another source."""
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

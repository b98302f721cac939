# SPDX-License-Identifier: GPL-2.0-only
"""Measure a version's value of a metric: run the study on it, and analyse the runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from isoblk.analysis.metrics import PointView, analyse
from isoblk.analysis.only import matching
from isoblk.bisect.candidate import Built, not_built
from isoblk.bisect.threshold import worst
from isoblk.campaign.installed import find_programs
from isoblk.campaign.others import others_wanted
from isoblk.errors import RunError, UserError
from isoblk.kernel import Progress
from isoblk.lab.lab import Lab
from isoblk.metrics.registry import split_metric
from isoblk.metrics.stats import Estimate, estimate
from isoblk.plan.plan import check_queues
from isoblk.result.store import read_results
from isoblk.run.tier import UML
from isoblk.study.expand import expand
from isoblk.study.model import Expansion, Study
from isoblk.study.point import runs_already

Point = Mapping[str, str]


@dataclass(frozen=True)
class Question:
    """The measurement to make of each version.

    Attributes:
        expansion: the runs to make.
        source: the study file's text.
        metric: name of the metric, as in claims.
        wanted: returns whether a point of the study counts.
        results: the parent of each version's result directory.
        jobs: number of runs in parallel.
        time_limit_s: wall-clock time after which a run counts as hung.
    """

    expansion: Expansion
    source: str
    metric: str
    wanted: Callable[[Point], bool]
    results: Path
    jobs: int
    time_limit_s: float

    @property
    def several(self) -> bool:
        """Return whether there are several points, of which the worst counts."""
        specs = [planned.spec for planned in self.expansion.runs if planned.spec.kind == "share"]
        return len({tuple(spec.point.items()) for spec in specs if self.wanted(spec.point)}) > 1


@dataclass(frozen=True)
class Value:
    """A version's result. estimate: of the metric, at its worst point."""

    estimate: Estimate
    point: Point
    results: Path


def ask(
    study: Study,
    source: str,
    metric: str,
    only: Sequence[str],
    results: Path,
    jobs: int,
    limit: float,
) -> Question:
    """Check the user's options; return the measurement to make.

    Args:
        study: the loaded study.
        source: its text.
        metric, results, jobs: see Question.
        only: KEY=VALUE of the points that count.
        limit: seconds after which a run counts as hung.

    Raises:
        UserError: no such metric, tenant or point; or the study cannot run in a guest.
    """
    if runs_already(study):
        raise UserError(
            "the study has a running tenant, which is on this machine",
            next="choose a study without running tenants",
        )
    # Claims may need runs that the metric does not need.
    study = msgspec.structs.replace(study, claim=())
    every = expand(study)
    points = [planned.spec for planned in every.runs if planned.spec.kind == "share"]
    wanted = matching([spec.point for spec in points], only)
    chosen = [spec for spec in points if wanted(spec.point)]
    if not chosen:
        raise UserError(f"--only: no point is all of {', '.join(only)}")
    for spec in chosen:
        try:
            split_metric(metric, [tenant.name for tenant in spec.tenants])
        except ValueError as error:
            raise UserError(f"--metric: {error}", next="see docs/reference/metrics.md") from None
    expansion = expand(study, {metric}, wanted)
    if others_wanted(expansion):
        raise UserError("a study with modules of its own cannot be bisected")
    check_queues((planned.spec for planned in expansion.runs), UML)
    return Question(find_programs(expansion), source, metric, wanted, results, jobs, limit)


@contextmanager
def lab_of(question: Question, built: Built, progress: Progress) -> Iterator[Lab]:
    """Open a lab on a candidate's kernel and modules.

    Args:
        question: the measurement to make.
        built: the candidate.
        progress: receives the progress of module builds.

    Raises:
        NotBuiltError: the modules do not compile for it.
        UserError: this machine lacks a program or file.
    """
    with ExitStack() as stack:
        with not_built():
            lab = stack.enter_context(
                Lab.open(
                    kernel=built.kernel,
                    jobs=question.jobs,
                    time_limit_s=question.time_limit_s,
                    sources=built.schedulers,
                    progress=progress,
                )
            )
        yield lab


def measure(question: Question, lab: Lab, on_end: Callable[[], None]) -> Value:
    """Make the missing runs, and analyse all.

    Args:
        question: the measurement to make.
        lab: makes them.
        on_end: called after each run.

    Raises:
        RunError: runs failed, are invalid, or lack the metric.
        UserError: the results cannot be written, or this machine cannot run guests.
    """
    home = question.results / lab.bench.modules_key
    record = lab.make(question.expansion, question.source, home, lambda index, run: on_end())
    if failures := [run.failure for run in record.runs if run.failure]:
        raise RunError(f"{len(failures)} of {len(record.runs)} runs failed; {failures[0]}")
    found, point = _worst(question, home)
    return Value(found, point, home)


def _worst(question: Question, home: Path) -> tuple[Estimate, Point]:
    """Return the metric at its worst point, and the point."""
    points = [point for point in analyse(read_results(home)).points if question.wanted(point.point)]
    for point in points:
        for view in point.runs:
            if view.run is not None and view.status == "invalid":
                raise RunError(f"a run is invalid: {view.run.record.reasons[0]}")
    estimates = [_estimate(question.metric, point) for point in points]
    at = worst(question.metric, [one.mean for one in estimates])
    return estimates[at], points[at].point


def _estimate(metric: str, point: PointView) -> Estimate:
    values = point.values(metric)
    if len(values) < len(point.runs):
        where = " ".join(point.point.values()) or "the only point"
        raise RunError(f"a run has no {metric}", where=where)
    return estimate(values)

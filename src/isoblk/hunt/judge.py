# SPDX-License-Identifier: GPL-2.0-only
"""Run a candidate's study and score each objective."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import tomli_w

from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import Bench, DiskFullError, Job, Submit, make_job
from isoblk.campaign.installed import find_programs
from isoblk.campaign.others import with_modules
from isoblk.campaign.study import EndedError, complete, needs
from isoblk.errors import RunError, UserError
from isoblk.hunt.spec import Constraint, Objective
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.registry import described
from isoblk.plan.plan import check_queues
from isoblk.result.store import FORMAT, ResultSet, Run
from isoblk.result.study import StudyRecord, StudyRun
from isoblk.run.spec import PlannedRun
from isoblk.study.expand import expand
from isoblk.study.load import parse_study
from isoblk.study.model import Expansion

# Score of an infinite value: finite, and above every measured one.
WITHOUT_END = 1e6

FAILED = "failed"
INVALID = "invalid"
DIFFERS = "differs"
TROUBLES = (FAILED, INVALID, DIFFERS)
"""Finds under any objective: the run failed, as by a warning of the kernel; its figures are
impossible; or the same run gave different figures."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a candidate.

    Attributes:
        scores: by objective; higher is worse. Omits an objective that has no value, or whose
            constraints do not hold.
        tenants: the tenant with the score, for objectives of a tenant's metric.
        trouble: one of TROUBLES, or "".
        reason: one line on the trouble, or on why the candidate is not a study; else "".
        under_test: id of the run under the scheduler that is hunted, or "".
        ids: of all runs of the candidate.
        cpu_s: CPU seconds of each of these runs, in the same order.
    """

    scores: dict[str, float] = {}
    tenants: dict[str, str] = {}
    trouble: str = ""
    reason: str = ""
    under_test: str = ""
    ids: tuple[str, ...] = ()
    cpu_s: tuple[float, ...] = ()


class Once:
    """Submit jobs so that equal jobs share one run while it is in progress."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._lock = Lock()
        self._under_way: dict[str, Future[Run]] = {}

    def __call__(self, job: Job) -> "Future[Run]":
        """Return the future run of a job."""
        with self._lock:
            if job.id in self._under_way:
                return self._under_way[job.id]
            future = self._submit(job)
            self._under_way[job.id] = future
        future.add_done_callback(lambda _: self._forget(job.id))
        return future

    def _forget(self, job_id: str) -> None:
        with self._lock:
            self._under_way.pop(job_id, None)


@dataclass(frozen=True)
class Judge:
    """Run the studies of candidates and give verdicts.

    Attributes:
        bench: kernel and modules of the runs.
        results: directory of the runs.
        submit: starts a job, or returns the future of an equal job.
        again: runs a job anew, for a comparison with the first run.
        objectives, constraints: the hunt's.
        modules: of the study's own schedulers.
    """

    bench: Bench
    results: Path
    submit: Submit
    again: Submit
    objectives: Sequence[Objective]
    constraints: Sequence[Constraint] = ()
    modules: Mapping[str, Path] = field(default_factory=dict)

    def of(self, document: Mapping[str, Any], twice: bool = False) -> Verdict:
        """Return the verdict on a study. An invalid study and a failed run also have a verdict.

        Args:
            document: the study, with one point.
            twice: make the run under test again, and compare the two.

        Raises:
            RunError, UserError: errors that no study causes, such as a full disk.
        """
        try:
            expansion = self.expansion(document)
        except UserError as error:
            return Verdict(reason=f"no study: {error}")
        runs: dict[int, Run] = {}
        jobs: dict[int, Job] = {}
        try:
            while len(runs) < len(expansion.runs):
                ready = [
                    at
                    for at, planned in enumerate(expansion.runs)
                    if at not in runs and all(i in runs for i in needs(planned))
                ]
                jobs |= {at: self._job(expansion.runs[at], runs) for at in ready}
                futures = {at: self.submit(jobs[at]) for at in ready}
                runs |= {at: future.result() for at, future in futures.items()}
            own = next(at for at, one in enumerate(expansion.runs) if one.spec.kind == "share")
            differs = twice and not _same(runs[own], self.again(jobs[own]).result())
        except (DiskFullError, EndedError):
            # Not caused by a scheduler.
            raise
        except RunError as error:
            ids = tuple(dict.fromkeys(job.id for job in jobs.values()))
            return Verdict(trouble=FAILED, reason=str(error), ids=ids)
        found = self._found(expansion, [runs[at] for at in range(len(runs))])
        if differs:
            found = msgspec.structs.replace(
                found, trouble=DIFFERS, reason="the same run again gave other figures"
            )
        return msgspec.structs.replace(found, under_test=jobs[own].id)

    def expansion(self, document: Mapping[str, Any]) -> Expansion:
        """Return the runs of a study.

        Raises:
            UserError: it is invalid, or cannot run on this machine.
        """
        study = parse_study(tomli_w.dumps(document), "candidate")
        wanted = {one.described.name for one in self.objectives}
        expansion, _ = with_modules(expand(study, wanted), self.modules)
        check_queues((planned.spec for planned in expansion.runs), self.bench.machine.tier)
        return find_programs(expansion)

    def _job(self, planned: PlannedRun, runs: Mapping[int, Run]) -> Job:
        spec = complete(planned, dict(runs))
        bench = self.bench
        return make_job(spec, bench.kernel.key, bench.modules_key, bench.machine.tier)

    def _found(self, expansion: Expansion, runs: Sequence[Run]) -> Verdict:
        distinct = {run.record.id: run.record.cpu_s for run in runs}
        ids, cpu_s = tuple(distinct), tuple(distinct.values())
        if invalid := next((run for run in runs if run.record.status == "invalid"), None):
            return Verdict(trouble=INVALID, reason=invalid.record.reasons[0], ids=ids, cpu_s=cpu_s)
        record = StudyRecord(
            format=FORMAT,
            study=expansion.study,
            source="",
            runs=[StudyRun(planned=planned) for planned in expansion.runs],
        )
        analysis = analyse(ResultSet(self.results, record, list(runs)))
        (view,) = analysis.views
        assert view.metrics is not None  # all runs were made
        scores, tenants = score(view.metrics, self.objectives, self.constraints)
        return Verdict(scores=scores, tenants=tenants, ids=ids, cpu_s=cpu_s)


def _same(run: Run, other: Run) -> bool:
    """Return whether two runs are equal except for the host time that they took."""
    return (
        _without_clock(run) == _without_clock(other)
        and run.series().equals(other.series())
        and run.latency().equals(other.latency())
    )


def _without_clock(run: Run) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(run.record, wall_s=0.0, cpu_s=0.0))


def score(
    run: RunMetrics, objectives: Sequence[Objective], constraints: Sequence[Constraint] = ()
) -> tuple[dict[str, float], dict[str, str]]:
    """Return a run's score by each objective, and the tenant with the score for a tenant's
    metric."""
    scores: dict[str, float] = {}
    tenants: dict[str, str] = {}
    if not all(_holds(run, one) for one in constraints):
        return scores, tenants
    for one in objectives:
        values = worth(run, one.metric)
        if not values:
            continue
        sign = -1 if one.described.better == "up" else 1
        tenant, value = max(values.items(), key=lambda pair: sign * pair[1])
        scores[one.metric] = sign * value
        if tenant:
            tenants[one.metric] = tenant
    return scores, tenants


def worth(run: RunMetrics, name: str) -> dict[str, float]:
    """Return a metric of a run by tenant, or a metric of the run under ""; empty without a
    value."""
    metric = described(name)
    values: dict[str, float | None]
    if metric.of_tenant is not None:
        values = {tenant.name: metric.of_tenant(run, tenant) for tenant in run.tenants}
    else:
        assert metric.of_run is not None  # a metric is of a tenant or of the run
        values = {"": metric.of_run(run)}
    return {
        tenant: WITHOUT_END if math.isinf(value) else value
        for tenant, value in values.items()
        if value is not None and not math.isnan(value)
    }


def _holds(run: RunMetrics, one: Constraint) -> bool:
    values = worth(run, one.metric).values()
    if one.op == "<=":
        return all(value <= one.value for value in values)
    return all(value >= one.value for value in values)

# SPDX-License-Identifier: GPL-2.0-only
"""Make all runs of a study, in an order that their dependencies allow; can be resumed."""

import datetime
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec

from isoblk.campaign.execute import Bench, Job, Submit, make_job
from isoblk.errors import IsoblkError, RunError, UserError
from isoblk.files import LOCK, exclusive
from isoblk.plan.plan import make_plan
from isoblk.result import earlier
from isoblk.result.store import FORMAT, ResultSet, Run, read_results, read_run, run_dir, write_study
from isoblk.result.study import StudyRecord, StudyRun, preset_of
from isoblk.run.record import RunRecord
from isoblk.run.spec import PlannedRun, RunSpec, schedulers_of
from isoblk.run.tier import UML, Tier
from isoblk.schedulers.registry import kind_of
from isoblk.study.expand import measurements, resolve
from isoblk.study.model import Expansion
from isoblk.study.presets import load_preset

# Directories of runs: finished, in progress, or of a failed one.
_OF_A_RUN = re.compile(r"\.?[0-9a-f]{16}(\.failed)?|\.trial-\w+")
# study.json lists all runs, so writing it after each run has quadratic cost: it is written at most
# once in this time, and for at most a tenth of the time.
_BETWEEN_WRITES_S = 1.0
_TIMES_A_WRITE = 10


class EndedError(RunError):
    """No machine is left to make runs: the study ends, and no run has failed."""


@dataclass
class _Progress:
    """State of a study. runs: by index, once finished. failures: one line each. places: the indices
    of an id; two runs of a study may have the same id. prepared: whether runs can be made. made:
    day of the last run, "" if unknown."""

    runs: dict[int, Run] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    places: dict[str, list[int]] = field(default_factory=dict)
    prepared: bool = False
    made: str = ""

    def place(self, index: int, run_id: str) -> str:
        """Record the id of the run at an index."""
        self.ids[index] = run_id
        self.places.setdefault(run_id, []).append(index)
        return run_id

    def ended(self, index: int) -> bool:
        return index in self.runs or index in self.failures


class _Order:
    """Topological order of the runs: `ready` has those whose dependencies have ended and that were
    not taken."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self._lacks = {index: set(needs(planned)) for index, planned in enumerate(runs)}
        self._needed_by: dict[int, list[int]] = {}
        for index, lacks in self._lacks.items():
            for need in lacks:
                self._needed_by.setdefault(need, []).append(index)
        self.ready = deque(index for index, lacks in self._lacks.items() if not lacks)

    def end(self, index: int) -> None:
        """Mark a run as ended, which may make others ready."""
        for other in self._needed_by.pop(index, ()):
            self._lacks[other].discard(index)
            if not self._lacks[other]:
                self.ready.append(other)


class _Kept:
    """study.json on disk. stale: whether it lacks known results. due: time of the next write."""

    def __init__(
        self, results: Path, former: ResultSet | None, record: Callable[[], StudyRecord]
    ) -> None:
        self._results = results
        self._former = former
        self._record = record
        self._written = False
        self.stale = True
        self.due = 0.0

    def write(self) -> StudyRecord:
        """Write it. The first call sets aside runs of the former one that it lacks."""
        began = time.monotonic()
        record = self._record()
        if self._former is not None and _lacks_some_of(record, self._former):
            earlier.set_aside(self._results, self._former.record)
        self._former = None
        write_study(self._results, record)
        self._written = True
        self.stale = False
        now = time.monotonic()
        self.due = now + max(_BETWEEN_WRITES_S, _TIMES_A_WRITE * (now - began))
        return record

    def write_at_end(self) -> None:
        """Write it if an error ends the study early, unless its runs are not known yet."""
        if self._written and self.stale:
            # The error that ended the study takes precedence.
            with suppress(IsoblkError):
                self.write()


def run_study(
    expansion: Expansion,
    source: str,
    bench: Bench,
    results: Path,
    submit: Submit,
    on_end: Callable[[int, Run | None], None],
    prepare: Callable[[Path], object] = lambda directory: None,
) -> StudyRecord:
    """Make all runs that `results` lacks, and keep study.json up to date.

    Args:
        expansion: the runs.
        source: the study file's text.
        bench: kernel, modules and machine, which are part of the runs' ids.
        results: the result directory.
        submit: starts a run: execute.here(), or a cluster's.
        on_end: called with the index of a run, and the run, or None if it failed.
        prepare: called once before the first run, with the directory of the runs; an error ends the
            study.

    Raises:
        UserError: `results` cannot be written, has another study, or is in use.
        EndedError: `submit` can no longer make runs.
    """
    progress = _Progress()
    presets = _presets(expansion)
    with _exclusive(results):
        former = _former(results, expansion.study.name)
        progress.made = former.record.made if former else ""
        # Unfinished runs of a killed campaign.
        for leftover in (results / "runs").glob(".*"):
            if _OF_A_RUN.fullmatch(leftover.name):
                shutil.rmtree(leftover, ignore_errors=True)
        order = _Order(expansion.runs)
        kept = _Kept(results, former, lambda: _record(expansion, source, progress, presets))
        under_way = _UnderWay(submit)

        def start(job: Job) -> None:
            if read_run(run_dir(results, job.id)) is None:
                if not progress.prepared:
                    prepare(results / "runs")
                    progress.prepared = True
                progress.made = _today()
            under_way.add(job)

        try:
            while order.ready or under_way:
                while order.ready:
                    index = order.ready.popleft()
                    kept.stale = True
                    job = _plan(expansion.runs[index], progress, bench)
                    if isinstance(job, str):
                        progress.failures[index] = job
                        order.end(index)
                        on_end(index, None)
                    elif progress.place(index, job.id) not in under_way:
                        start(job)
                # With the ids of runs in progress, so that their results are found if this process
                # is killed.
                if kept.stale and kept.due <= time.monotonic():
                    kept.write()
                for run_id, future in under_way.take(kept.due if kept.stale else None):
                    for index in progress.places[run_id]:
                        if not progress.ended(index):
                            _end(index, future, progress)
                            kept.stale = True
                            order.end(index)
                            on_end(index, progress.runs.get(index))
        except BaseException:
            kept.write_at_end()
            raise
        record = kept.write()
        earlier.forget_what_is_here(results)
    return record


class _UnderWay:
    """Runs that have been submitted and not yet taken, by id."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._futures: dict[str, Future[Run]] = {}
        self._ended: SimpleQueue[str] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._futures)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._futures

    def add(self, job: Job) -> None:
        """Submit a job."""
        future = self._futures[job.id] = self._submit(job)
        future.add_done_callback(lambda ended: self._ended.put(job.id))

    def take(self, until: float | None) -> Iterator[tuple[str, Future[Run]]]:
        """Yield all that have ended, and wait for at least one; until: end of the wait."""
        wait_s = None if until is None else max(0.0, until - time.monotonic())
        with suppress(Empty):
            while self._futures:
                run_id = self._ended.get(timeout=wait_s)
                wait_s = 0.0
                yield run_id, self._futures.pop(run_id)


def _lacks_some_of(record: StudyRecord, former: ResultSet) -> bool:
    """Return whether the study, some of whose ids are not known yet, may lack finished runs of
    `former`."""
    if not earlier.finished(former):
        return False
    before = former.record
    if before.study != record.study or len(before.runs) != len(record.runs):
        return True
    return any(
        new.id and old.id and new.id != old.id
        for new, old in zip(record.runs, before.runs, strict=True)
    )


def _plan(planned: PlannedRun, progress: _Progress, bench: Bench) -> Job | str:
    """Return the job, or why it cannot be made."""
    for i in needs(planned):
        if i in progress.failures:
            return f"needs a run that failed: {progress.failures[i]}"
        record = progress.runs[i].record
        if record.status == "invalid":
            return f"needs a run that is invalid: {record.reasons[0]}"
    spec = complete(planned, progress.runs)
    return make_job(spec, bench.kernel.key, bench.modules_key, bench.machine.tier)


def _end(index: int, future: Future[Run], progress: _Progress) -> None:
    try:
        progress.runs[index] = future.result()
    except EndedError:
        raise
    except IsoblkError as error:
        progress.failures[index] = str(error)


def needs(planned: PlannedRun) -> list[int]:
    """Return the indices of the runs that must end before this one can be planned."""
    needs = list(planned.calibrate.values()) if measurements(planned.spec) else []
    if kind_of(planned.spec.scheduler).after_none and planned.reference is not None:
        needs.append(planned.reference)
    return needs


def complete(planned: PlannedRun, runs: dict[int, Run]) -> RunSpec:
    """Return the spec with all values from earlier runs."""
    needed = needs(planned)
    if not needed:
        return planned.spec
    calibration = {
        name: round(sum(_rate(runs[planned.calibrate[name]].record, one.op, one.unit)))
        for name, one in measurements(planned.spec).items()
    }
    reference = _totals(runs[planned.reference].record) if planned.reference in needed else None
    return resolve(planned.spec, calibration or None, reference)


def _totals(record: RunRecord) -> tuple[int, int]:
    """Return bytes per second read and written, of all tenants together."""
    return round(sum(_rate(record, "read", "bytes"))), round(sum(_rate(record, "write", "bytes")))


def _rate(record: RunRecord, op: str, unit: str) -> Iterator[float]:
    for tenant in record.tenants:
        totals = tenant.ops.get(op)
        # A tenant that ended in the warm-up was not measured.
        if totals and tenant.measured_ns:
            count = totals.meas_bytes if unit == "bytes" else totals.meas_ios
            yield count * 1e9 / tenant.measured_ns


def _record(
    expansion: Expansion, source: str, progress: _Progress, presets: dict[str, str]
) -> StudyRecord:
    runs = [
        StudyRun(
            planned=_completed(planned, progress.runs.get(i)),
            id=progress.ids.get(i, ""),
            failure=progress.failures.get(i, ""),
        )
        for i, planned in enumerate(expansion.runs)
    ]
    return StudyRecord(
        format=FORMAT,
        study=expansion.study,
        source=source,
        runs=runs,
        presets=presets,
        made=progress.made,
    )


def _presets(expansion: Expansion) -> dict[str, str]:
    """Return the titles of the presets in the study, which are a report's names of its disks."""
    study = expansion.study
    names = [
        preset_of(study, planned.spec.point, part)
        for planned in expansion.runs
        for part in ("device", "ssd")
    ]
    return {name: load_preset(name).title for name in dict.fromkeys(filter(None, names))}


def _today() -> str:
    """Return the day in UTC; that of SOURCE_DATE_EPOCH if it is set, as for a reproducible
    build."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    if fixed.isdecimal():
        return datetime.datetime.fromtimestamp(int(fixed), datetime.UTC).date().isoformat()
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _completed(planned: PlannedRun, run: Run | None) -> PlannedRun:
    """Return the plan with the run's completed spec at this index of the study."""
    if run is None:
        return planned
    own = planned.spec
    spec = msgspec.structs.replace(
        run.record.spec, kind=own.kind, point=own.point, repeat=own.repeat
    )
    return msgspec.structs.replace(planned, spec=spec)


def _former(results: Path, name: str) -> ResultSet | None:
    """Return the directory's results. Raises UserError: results of another study."""
    if not (results / "study.json").exists():
        return None
    former = read_results(results)
    other = former.record.study.name
    if other != name:
        raise UserError(
            f"has the results of another study, {other!r}",
            where=str(results),
            next="choose -o DIR",
        )
    return former


def _refuse_what_is_none(results: Path) -> None:
    """Check that a directory is new, empty or of isoblk's making."""
    if not results.is_dir() or (results / "study.json").exists():
        return
    # A campaign that was killed at its start left only these.
    own = {LOCK: [], "runs": [_OF_A_RUN]}
    for entry in results.iterdir():
        inside = own.get(entry.name)
        if inside is None or any(
            not pattern.fullmatch(one.name) for pattern in inside for one in entry.glob("*")
        ):
            raise UserError(
                f"is not a result directory (contains {entry.name})",
                where=str(results),
                next="choose a new directory with -o DIR",
            )


def _exclusive(results: Path) -> AbstractContextManager[None]:
    """Make the directory, and lock out other campaigns."""

    def prepare() -> None:
        _refuse_what_is_none(results)
        if (results / "runs").is_symlink():
            # Files are made, executed and removed there, so they must not be another user's.
            raise UserError(
                "is a symbolic link, and runs are written there",
                where=str(results / "runs"),
                next="choose its target or a new directory with -o DIR",
            )
        (results / "runs").mkdir(parents=True, exist_ok=True)

    return exclusive(results, prepare, cannot="cannot write results", holder="another isoblk run")


def dry_run(expansion: Expansion, tier: Tier = UML) -> Iterator[str]:
    """Yield the scripts of all runs on a machine of that tier. 1 stands for figures from earlier
    runs."""
    for planned in expansion.runs:
        needed = needs(planned)
        spec = planned.spec
        notes = []
        kinds = [kind_of(scheduler) for scheduler in schedulers_of(spec)]
        if any(i in needed for i in planned.calibrate.values()):
            spec = resolve(spec, dict.fromkeys(planned.calibrate, 1), None)
            what = next(kind.measured_first for kind in kinds if kind.measured_first)
            notes.append(f"# {_capital(what)} are measured first.")
        if planned.reference in needed:
            spec = resolve(spec, None, (1, 1))
            notes.append(f"# {_capital(kinds[0].after_none)} come from the run under none.")
        place = " ".join(f"{key}={value}" for key, value in spec.point.items())
        header = [f"# ---- {spec.kind} {place} repeat {spec.repeat}", *notes]
        yield "\n".join((*header, make_plan(spec, tier).text))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]

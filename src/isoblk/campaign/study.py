# SPDX-License-Identifier: GPL-2.0-only
"""All runs of a study: in the order that their dependencies allow, resumable."""

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

# A run's directory: done, being made, or what a failed one left.
_OF_A_RUN = re.compile(r"\.?[0-9a-f]{16}(\.failed)?|\.trial-\w+")
# study.json has all runs, and to write it after each one costs the square of their number: it is
# written at most once in so many seconds, and for a tenth of the time.
_BETWEEN_WRITES_S = 1.0
_TIMES_A_WRITE = 10


class EndedError(RunError):
    """Nobody is left to make runs: the study ends, and no run has failed for it."""


@dataclass
class _Progress:
    """Where a study stands. runs: by index, once finished; failures: one line each. places: the
    indexes of an id; two places of a study may turn out to be the same run. prepared: runs can be
    made. made: the day of the last run that was made, "" if that is not known."""

    runs: dict[int, Run] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    places: dict[str, list[int]] = field(default_factory=dict)
    prepared: bool = False
    made: str = ""

    def place(self, index: int, run_id: str) -> str:
        """The run at this place has that id."""
        self.ids[index] = run_id
        self.places.setdefault(run_id, []).append(index)
        return run_id

    def ended(self, index: int) -> bool:
        return index in self.runs or index in self.failures


class _Order:
    """Which runs can start: `ready` has those whose needs have ended, and that were not taken."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self._lacks = {index: set(needs(planned)) for index, planned in enumerate(runs)}
        self._needed_by: dict[int, list[int]] = {}
        for index, lacks in self._lacks.items():
            for need in lacks:
                self._needed_by.setdefault(need, []).append(index)
        self.ready = deque(index for index, lacks in self._lacks.items() if not lacks)

    def end(self, index: int) -> None:
        """A run has ended: others may be ready now."""
        for other in self._needed_by.pop(index, ()):
            self._lacks[other].discard(index)
            if not self._lacks[other]:
                self.ready.append(other)


class _Kept:
    """study.json, as of now or of a moment ago. stale: something is known that it does not say.
    due: when it may be written again."""

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
        """Write it. The first time, what it lacks of the former one is set aside."""
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
        """Write it if something ends the study early; but not before its runs were known."""
        if self._written and self.stale:
            # What ended the study is what is told.
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
    """Make all runs that `results` does not hold yet; study.json is kept up to date.

    Args:
        source: the study file's text.
        bench: whose kernel, modules and machine the ids of runs are of.
        submit: has a run made that can start: execute.here(), or a cluster's.
        on_end: called with the index of a run, and the run, or None if it failed.
        prepare: called once before the first run that has to be made, with the directory of the
            runs; what it raises ends the study.

    Raises:
        UserError: `results` cannot be written, holds another study, or is in use.
        EndedError: `submit` cannot have runs made any more.
    """
    progress = _Progress()
    presets = _presets(expansion)
    with _exclusive(results):
        former = _former(results, expansion.study.name)
        progress.made = former.record.made if former else ""
        # What a killed campaign left half-done.
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
                # With the ids of what is under way: should this process be killed, what has
                # ended by then is found.
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
        """Have it made."""
        future = self._futures[job.id] = self._submit(job)
        future.add_done_callback(lambda ended: self._ended.put(job.id))

    def take(self, until: float | None) -> Iterator[tuple[str, Future[Run]]]:
        """All that have ended, at least one; until: when to wait no longer for it."""
        wait_s = None if until is None else max(0.0, until - time.monotonic())
        with suppress(Empty):
            while self._futures:
                run_id = self._ended.get(timeout=wait_s)
                wait_s = 0.0
                yield run_id, self._futures.pop(run_id)


def _lacks_some_of(record: StudyRecord, former: ResultSet) -> bool:
    """Whether the study, of which not all ids are known yet, may lack finished runs of `former`."""
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
    """The job, or why there can be none."""
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
    """Indexes of the runs that must end before this one can be planned."""
    needs = list(planned.calibrate.values()) if measurements(planned.spec) else []
    if kind_of(planned.spec.scheduler).after_none and planned.reference is not None:
        needs.append(planned.reference)
    return needs


def complete(planned: PlannedRun, runs: dict[int, Run]) -> RunSpec:
    """The spec with all that it takes from earlier runs."""
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
    """Bytes a second read and written, all tenants together."""
    return round(sum(_rate(record, "read", "bytes"))), round(sum(_rate(record, "write", "bytes")))


def _rate(record: RunRecord, op: str, unit: str) -> Iterator[float]:
    for tenant in record.tenants:
        totals = tenant.ops.get(op)
        # Who ended in the warm-up was not measured.
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
    """The titles of the presets that the study names: what a report calls its disks."""
    study = expansion.study
    names = [
        preset_of(study, planned.spec.point, part)
        for planned in expansion.runs
        for part in ("device", "ssd")
    ]
    return {name: load_preset(name).title for name in dict.fromkeys(filter(None, names))}


def _today() -> str:
    """The day, in UTC; that of SOURCE_DATE_EPOCH, if it is set, as for a build that is to give
    the same bytes again."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    if fixed.isdecimal():
        return datetime.datetime.fromtimestamp(int(fixed), datetime.UTC).date().isoformat()
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _completed(planned: PlannedRun, run: Run | None) -> PlannedRun:
    """With the completed spec once there is a run, at this run's own place in the study."""
    if run is None:
        return planned
    own = planned.spec
    spec = msgspec.structs.replace(
        run.record.spec, kind=own.kind, point=own.point, repeat=own.repeat
    )
    return msgspec.structs.replace(planned, spec=spec)


def _former(results: Path, name: str) -> ResultSet | None:
    """What the directory holds. Raises UserError: results of another study."""
    if not (results / "study.json").exists():
        return None
    former = read_results(results)
    other = former.record.study.name
    if other != name:
        raise UserError(
            f"holds the results of another study, {other!r}",
            where=str(results),
            next="choose -o DIR",
        )
    return former


def _refuse_what_is_none(results: Path) -> None:
    """Write into a directory only if it is new, empty or of isoblk's making."""
    if not results.is_dir() or (results / "study.json").exists():
        return
    # A campaign that was killed at once left no more than this.
    own = {LOCK: [], "runs": [_OF_A_RUN]}
    for entry in results.iterdir():
        inside = own.get(entry.name)
        if inside is None or any(
            not pattern.fullmatch(one.name) for pattern in inside for one in entry.glob("*")
        ):
            raise UserError(
                f"is no result directory, and holds {entry.name}",
                where=str(results),
                next="choose -o DIR, a new one",
            )


def _exclusive(results: Path) -> AbstractContextManager[None]:
    """Make the directory, and keep other campaigns out of it."""

    def prepare() -> None:
        _refuse_what_is_none(results)
        if (results / "runs").is_symlink():
            # What is made, executed and removed there would be somebody else's.
            raise UserError(
                "is a link, and runs are written there",
                where=str(results / "runs"),
                next="choose -o DIR, what it leads to or a new one",
            )
        (results / "runs").mkdir(parents=True, exist_ok=True)

    return exclusive(results, prepare, cannot="cannot write results", holder="another isoblk run")


def dry_run(expansion: Expansion, tier: Tier = UML) -> Iterator[str]:
    """The scripts of all runs on a machine of that tier. Where a script takes a figure from an
    earlier run, 1 stands."""
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

# SPDX-License-Identifier: GPL-2.0-only
"""Make runs on the workers of a Dask cluster.

A run is a task, whose key begins with the run's id. One thread decides (_Dispatcher): it is
notified of requested runs and of ended tasks, and polls for joined and lost workers once a second.

Dask moves the runs of a killed worker to other workers. Handled here are a scheduler that is lost
and comes back, and a worker whose disk is full. Dask has at most twice as many runs as the workers
have threads; all others wait here, so that the scheduler's memory does not grow with the campaign.
"""

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from isoblk.campaign.cluster import remote
from isoblk.campaign.cluster.order import Done, Failed, Lacking, Order, Unfit, encode, software
from isoblk.campaign.cluster.parcel import unpack
from isoblk.campaign.cluster.roster import Roster
from isoblk.campaign.cluster.tasks import Connect, Ended, Tasks
from isoblk.campaign.execute import Job
from isoblk.campaign.study import EndedError
from isoblk.errors import IsoblkError, RunError, UserError
from isoblk.result.store import Run, read_run, run_dir

# Time that a campaign waits for a lost scheduler.
_LOST_S = 300.0
_LOOK_S = 1.0
# One run waits for each thread while another is made.
_RUNS_A_THREAD = 2
_STOP_S = 15.0
# Threads that write results.
_KEEPERS = 2


@dataclass
class _Wanted:
    """A requested run. attempts: number of times that Dask had it."""

    job: Job
    future: Future[Run]
    attempts: int = 0


@dataclass(frozen=True)
class _Flight:
    """A run that Dask has. workers: the workers that may make it."""

    wanted: _Wanted
    task: Any
    workers: frozenset[str]


class Cluster:
    """Make runs on the workers of a scheduler.

    Args:
        connect: returns a client of the scheduler; called again after a loss.
        where: the scheduler, for messages.
        order: files and software that the runs need.
        results: directory of the results.
        say: called in any thread with messages for the user.
    """

    def __init__(
        self,
        connect: Connect,
        where: str,
        order: Order,
        results: Path,
        say: Callable[[str], None],
    ) -> None:
        self._results = results
        self._dispatcher = _Dispatcher(connect, where, order, results, say)
        self._thread = threading.Thread(
            target=self._dispatcher.work, name="isoblk-cluster", daemon=True
        )

    def prepare(self, directory: Path) -> None:
        """Connect, and wait until a worker is ready for runs.

        Raises:
            UserError: no scheduler answers, or no worker can make runs.
            RunError: no worker can make runs, for a reason that is not the user's.
        """
        self._dispatcher.connect()
        self._thread.start()
        self._dispatcher.begun.wait()
        if self._dispatcher.end is not None:
            raise self._dispatcher.end

    def submit(self, job: Job) -> Future[Run]:
        """Request a run, unless its result exists. Requires prepare()."""
        future: Future[Run] = Future()
        if finished := read_run(run_dir(self._results, job.id)):
            future.set_result(finished)
        else:
            self._dispatcher.want(_Wanted(job, future))
        return future

    def close(self) -> None:
        """Stop all runs, also on the workers, and disconnect."""
        self._dispatcher.stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S)


class _Dispatcher:
    """The dispatching thread. Other threads call connect() and want().

    Attributes:
        begun: set when a worker is ready, or none will be.
        stopping: set to end the thread.
        end: the error that ended it.
    """

    def __init__(
        self,
        connect: Connect,
        where: str,
        order: Order,
        results: Path,
        say: Callable[[str], None],
    ) -> None:
        self.begun = threading.Event()
        self.stopping = threading.Event()
        self.end: BaseException | None = None
        self._connect = connect
        self._where = where
        self._order = order
        self._encoded = encode(order)
        self._results = results
        self._say = say
        self._inbox: SimpleQueue[_Wanted | Ended] = SimpleQueue()
        self._lock = threading.Lock()  # of want(), and of the end
        self._queue: deque[_Wanted] = deque()
        self._flights: dict[str, _Flight] = {}
        self._keepers = ThreadPoolExecutor(_KEEPERS, thread_name_prefix="keep")
        self._look_at = 0.0

    def connect(self) -> None:
        """Connect to the scheduler. Raises UserError: it does not answer."""
        self._tasks = Tasks(self._connect, self._inbox.put)
        self._roster = Roster(self._tasks, self._where, self._order, self._say)

    def want(self, wanted: _Wanted) -> None:
        """Request a run."""
        with self._lock:
            if self.end is None:
                self._inbox.put(wanted)
                return
        wanted.future.set_exception(self.end)

    def work(self) -> None:
        """Dispatch until stopping is set, or an error ends it."""
        try:
            while not self.stopping.is_set():
                self._step()
        except BaseException as error:  # raised again from each future
            self._give_up(error)
        finally:
            self.begun.set()
            self._let_go()

    def _step(self) -> None:
        for event in self._events():
            if isinstance(event, _Wanted):
                self._queue.append(event)
            elif not self._roster.prepared(event) and event.key in self._flights:
                self._made(self._flights.pop(event.key), event)
        if self._tasks.lost():
            self._wait_for_scheduler()
        if self._look_at <= time.monotonic():
            self._look()
        if self._roster.ready:
            self.begun.set()
        self._fill()

    def _events(self) -> Iterator[_Wanted | Ended]:
        with suppress(Empty):
            yield self._inbox.get(timeout=_LOOK_S / 2)
            while True:
                yield self._inbox.get_nowait()

    def _look(self) -> None:
        """Update the list of workers."""
        there = self._tasks.workers()
        if there is not None:
            self._roster.look(there)
            # Dask waits for one of the workers that may make a run, and all of them may be gone.
            for key, flight in list(self._flights.items()):
                if not flight.workers & there.keys():
                    self._queue.appendleft(self._flights.pop(key).wanted)
        self._look_at = time.monotonic() + _LOOK_S

    def _fill(self) -> None:
        """Give Dask as many runs as its workers can begin soon."""
        ready = self._roster.ready
        room = _RUNS_A_THREAD * sum(ready.values()) - len(self._flights)
        while self._queue and room > 0:
            wanted = self._queue.popleft()
            wanted.attempts += 1
            key = f"run-{wanted.job.id}-{self._order.token}-{wanted.attempts}"
            arguments = (dict(software()), self._encoded, encode(wanted.job.spec))
            task = self._tasks.submit(remote.make, arguments, key, list(ready))
            self._flights[key] = _Flight(wanted, task, frozenset(ready))
            room -= 1

    def _made(self, flight: _Flight, ended: Ended) -> None:
        wanted = flight.wanted
        answer = ended.reply.answer if ended.reply else None
        if isinstance(answer, Done | Failed):
            self._keepers.submit(self._keep, wanted, answer)
        elif ended.error and not ended.gone:
            # For example, the run killed its worker: making the run again would kill more workers.
            wanted.future.set_exception(RunError(f"no worker could make the run: {ended.error}"))
        else:
            if ended.reply and isinstance(answer, Unfit):
                self._roster.refuse(ended.reply.worker, answer)
            elif ended.reply and isinstance(answer, Lacking):
                self._roster.lacks(ended.reply.worker, answer)
            self._queue.appendleft(wanted)

    def _keep(self, wanted: _Wanted, answer: Done | Failed) -> None:
        """Write a result in a pool thread, and complete the future."""
        try:
            wanted.future.set_result(keep(wanted.job, answer, self._results))
        except BaseException as error:  # raised again from the future
            wanted.future.set_exception(error)

    def _wait_for_scheduler(self) -> None:
        """Reconnect, and resubmit all runs in progress."""
        self._say(f"the scheduler at {self._where} is gone; waiting for it")
        self._queue.extendleft(flight.wanted for flight in self._flights.values())
        self._flights.clear()
        self._tasks.close()
        until = time.monotonic() + _LOST_S
        while not self.stopping.is_set():
            with suppress(UserError):
                self.connect()
                self._say("the scheduler is back")
                self._look_at = 0.0
                return
            if time.monotonic() >= until:
                raise RunError(
                    f"the scheduler is lost for {_LOST_S / 60:g} minutes",
                    where=self._where,
                    next="start the scheduler and repeat the command; finished runs are kept",
                )
            self.stopping.wait(_LOOK_S)

    def _give_up(self, error: BaseException) -> None:
        """Set the error as the result of all pending runs."""
        if isinstance(error, IsoblkError) and self.begun.is_set():
            error = EndedError(error.cause, where=error.where, next=error.next)
        with self._lock:
            self.end = error
        waiting = [event for event in self._events() if isinstance(event, _Wanted)]
        waiting += [*self._queue, *(flight.wanted for flight in self._flights.values())]
        for wanted in waiting:
            wanted.future.set_exception(error)

    def _let_go(self) -> None:
        futures = [flight.task for flight in self._flights.values()]
        if futures and not self._tasks.lost():
            self._tasks.run_everywhere(remote.stop, self._encoded)
        self._tasks.close(futures)
        self._keepers.shutdown()


def keep(job: Job, answer: Done | Failed, results: Path) -> Run:
    """Write a worker's result to the place where execute() would put it.

    Raises:
        RunError: the run has failed, the result is of another run, or the disk is full.
    """
    final = run_dir(results, job.id)
    working = final.with_name(f".{job.id}")
    failed = final.with_name(f"{job.id}.failed")
    for leftover in (working, failed, final):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        if isinstance(answer, Failed):
            if answer.left:
                unpack(answer.left, failed)
            raise RunError(answer.cause, where=answer.where, next=answer.next)
        unpack(answer.packed, working)
        run = read_run(working)
        if run is None or run.record.id != job.id:
            raise RunError(f"a worker sent a result that is not of run {job.id}")
        working.rename(final)
    except OSError as error:
        raise RunError(f"cannot keep the result: {error.strerror}", where=str(final)) from None
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return Run(run.record, final)

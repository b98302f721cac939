# SPDX-License-Identifier: GPL-2.0-only
"""The workers of a cluster: present, ready for runs, or unfit."""

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoblk.campaign.cluster import remote
from isoblk.campaign.cluster.order import Lacking, Order, Ready, Unfit, encode, software
from isoblk.campaign.cluster.tasks import Ended, Tasks
from isoblk.errors import RunError, UserError

# Time to wait for further workers after an unfit one.
_GRACE_S = 5.0
# Time before a message, so that workers that are just starting cause none.
_PATIENCE_S = 5.0
# The scheduler keeps the data for as long as the campaign takes.
_LARGEST_SENT = 1 << 28


@dataclass
class _Worker:
    """A worker. preparing: key of the task that prepares it, "" if there is none. sent: files, by
    SHA-256."""

    threads: int
    preparing: str = ""
    ready: bool = False
    unfit: Unfit | None = None
    sent: set[str] = field(default_factory=set)


class Roster:
    """The present workers of a scheduler. Each is prepared once, by a task that only it may
    execute; until then it gets no runs.

    Args:
        tasks: of the scheduler.
        where: the scheduler, for messages.
        order: files and software that runs need.
        say: gets messages for the user, each once.
    """

    def __init__(self, tasks: Tasks, where: str, order: Order, say: Callable[[str], None]) -> None:
        self._tasks = tasks
        self._where = where
        self._token = order.token
        self._encoded = encode(order)
        self._items = {item.sha256: item for item in order.items}
        self._say = say
        self._workers: dict[str, _Worker] = {}
        self._futures: dict[str, Any] = {}  # of tasks that prepare workers, by key
        self._contents: dict[str, Any] = {}  # of files' contents, by SHA-256
        self._count = 0
        self._unfit_since: float | None = None
        self._none_since: float | None = None
        self._told_of_none = False

    @property
    def ready(self) -> Mapping[str, int]:
        """Return the threads of each ready worker, by address."""
        return {address: one.threads for address, one in self._workers.items() if one.ready}

    def look(self, there: Mapping[str, int]) -> None:
        """Update the list of workers, given the threads of each present one.

        Raises:
            UserError, RunError: none of them can make runs.
        """
        for address in self._workers.keys() - there.keys():
            self._futures.pop(self._workers.pop(address).preparing, None)
        for address, threads in there.items():
            if address not in self._workers:
                self._workers[address] = _Worker(threads)
                self._prepare(address, ())
        self._tell_of_none(bool(there))
        self._judge()

    def _tell_of_none(self, any_there: bool) -> None:
        now = time.monotonic()
        if any_there:
            self._none_since, self._told_of_none = None, False
            return
        self._none_since = self._none_since or now
        if now - self._none_since >= _PATIENCE_S and not self._told_of_none:
            self._told_of_none = True
            self._say(f"no worker at {self._where}; waiting for one")

    def _judge(self) -> None:
        """Raise an error if no worker will make runs."""
        unfit = [(address, one.unfit) for address, one in self._workers.items() if one.unfit]
        if not unfit or len(unfit) < len(self._workers):
            self._unfit_since = None
            return
        now = time.monotonic()
        self._unfit_since = self._unfit_since or now
        if now - self._unfit_since >= _GRACE_S:
            address, why = unfit[0]
            kind = UserError if why.mistake else RunError
            raise kind(f"no worker can make runs: {address} {why.cause}", next=why.next)

    def _prepare(self, address: str, lacking: Iterable[str]) -> None:
        self._count += 1
        key = f"prepare-{self._token}-{self._count}"
        contents = {sha256: self._content(sha256) for sha256 in lacking}
        worker = self._workers[address]
        worker.ready = False
        worker.preparing = key
        arguments = (dict(software()), self._encoded, contents)
        self._futures[key] = self._tasks.submit(
            remote.prepare, arguments, key, [address], urgent=True
        )

    def _content(self, sha256: str) -> Any:
        """Return a file's content as the future of a task. Raises UserError, RunError: the file is
        too large, or gone."""
        future = self._contents.get(sha256)
        if future is None or future.status in ("cancelled", "lost", "error"):
            item = self._items[sha256]
            if item.size > _LARGEST_SENT:
                raise UserError(
                    f"the file has {item.size >> 20} MiB, more than is sent to workers",
                    where=item.here,
                    next="put it there at the same path",
                )
            self._count += 1
            key = f"content-{self._token}-{self._count}"
            try:
                data = zlib.compress(Path(item.here).read_bytes(), 1)
            except OSError as error:
                raise RunError(f"cannot read: {error.strerror}", where=item.here) from None
            future = self._tasks.submit(remote.content, (data,), key, urgent=True, reply=False)
            self._contents[sha256] = future
        return future

    def prepared(self, ended: Ended) -> bool:
        """Handle the end of a task. Returns False if it was not one that prepares a worker."""
        if self._futures.pop(ended.key, None) is None:
            return False
        address = next(
            (one for one, worker in self._workers.items() if worker.preparing == ended.key), None
        )
        if address is None:
            return True
        worker = self._workers[address]
        worker.preparing = ""
        answer = ended.reply.answer if ended.reply else None
        if isinstance(answer, Ready):
            worker.ready = True
        elif isinstance(answer, Lacking):
            self.lacks(address, answer)
        elif isinstance(answer, Unfit):
            self.refuse(address, answer)
        elif ended.gone:
            # The worker, or data for it, was lost; the next look() prepares it again.
            del self._workers[address]
        elif ended.absent:
            cause = f"has no isoblk, or one that cannot make runs for others: {ended.error}"
            todo = f"install there: isoblk[cluster] {software()['isoblk']}"
            self.refuse(address, Unfit(cause=cause, next=todo))
        else:
            self.refuse(address, Unfit(cause=f"fails: {ended.error}", mistake=False))
        return True

    def lacks(self, address: str, lacking: Lacking) -> None:
        """Send a worker the files that it lacks."""
        worker = self._workers.get(address)
        if worker is None or worker.preparing or worker.unfit:
            return
        if not lacking.sha256 or not set(lacking.sha256) <= self._items.keys():
            self.refuse(
                address, Unfit(cause="requests a file that is not of the campaign", mistake=False)
            )
        elif worker.sent & set(lacking.sha256):
            self.refuse(
                address, Unfit(cause="does not keep the files that it is sent", mistake=False)
            )
        else:
            worker.sent.update(lacking.sha256)
            self._prepare(address, lacking.sha256)

    def refuse(self, address: str, why: Unfit) -> None:
        """Mark a worker as unfit: it gets no more runs."""
        worker = self._workers.get(address)
        if worker is None or worker.unfit:
            return
        worker.ready = False
        worker.unfit = why
        todo = f"; {why.next}" if why.next else ""
        self._say(f"worker {address} {why.cause}{todo}; it makes no runs")

# SPDX-License-Identifier: GPL-2.0-only
"""The operations of a Dask scheduler that a campaign needs."""

import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import dask
import distributed
import msgspec
from distributed.scheduler import KilledWorker

from isoblk.campaign.cluster.order import Reply, decode_reply
from isoblk.errors import UserError

_CONNECT_S = 10
# Retries of a task that ended in an error instead of a reply.
_RETRIES = 2
# Threads that fetch replies.
_FETCHERS = 4
# Loggers of Dask, each of which may have its own level.
_TALKERS = ("distributed", "tornado", "asyncio", "bokeh")
# Dask's types are partial.
_Client: Any = distributed.Client

Connect = Callable[[], Any]
"""Returns a client of a scheduler."""


@dataclass(frozen=True)
class Ended:
    """A task has ended.

    Attributes:
        key: its key.
        reply: its result.
        gone: it was lost, with its worker or with the scheduler, and may be submitted again.
        absent: the worker lacks the code of the task.
        error: another error, as text; "" if there is a reply.
    """

    key: str
    reply: Reply | None = None
    gone: bool = False
    absent: bool = False
    error: str = ""


class Tasks:
    """A connection to a scheduler; once lost, it stays lost.

    Args:
        connect: returns a client.
        on_end: called in any thread with each task that has ended.

    Raises:
        UserError: no scheduler answers.
    """

    def __init__(self, connect: Connect, on_end: Callable[[Ended], None]) -> None:
        self._client = connect()
        self._on_end = on_end
        self._fetchers = ThreadPoolExecutor(_FETCHERS, thread_name_prefix="fetch")

    def lost(self) -> bool:
        """Return whether the scheduler no longer answers, or has been replaced by another."""
        return bool(self._client.status != "running")

    def workers(self) -> Mapping[str, int] | None:
        """Return the threads of each worker, by address; None if they are unknown."""
        try:
            found: Mapping[str, int] = self._client.nthreads()
        except Exception:  # a broken connection may raise anything
            return None
        return found

    def submit(
        self,
        task: Callable[..., bytes],
        arguments: Iterable[object],
        key: str,
        workers: Sequence[str] | None = None,
        *,
        urgent: bool = False,
        reply: bool = True,
    ) -> Any:
        """Submit a task.

        Args:
            task: the function.
            arguments: its arguments.
            key: the task's key.
            workers: that may execute it; None for all.
            urgent: whether it precedes other tasks.
            reply: whether it returns a Reply, which on_end() gets.

        Returns:
            Its future, which may be an argument of another task, and keeps the result in the
                scheduler.
        """
        future = self._client.submit(
            task,
            *arguments,
            key=key,
            workers=workers,
            allow_other_workers=False,
            retries=_RETRIES,
            priority=10 if urgent else 0,
            pure=False,
        )
        if reply:
            future.add_done_callback(self._done)
        return future

    def run_everywhere(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function on each worker immediately, even if its threads are busy."""
        with suppress(Exception):
            self._client.run(function, *arguments, on_error="ignore")

    def close(self, futures: Sequence[Any] = ()) -> None:
        """Disconnect. futures: of tasks that are no longer needed."""
        self._fetchers.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):
            if futures and not self.lost():
                self._client.cancel(futures)
        with suppress(Exception):
            self._client.close(timeout=2)

    def _done(self, future: Any) -> None:
        # Called in a thread of Dask, which must not wait. After close() the pool refuses work.
        with suppress(RuntimeError):
            self._fetchers.submit(self._fetch, future)

    def _fetch(self, future: Any) -> None:
        key = str(future.key)
        try:
            ended = Ended(key, decode_reply(future.result()))
        except CancelledError:
            ended = Ended(key, gone=True, error="it was lost")
        except KilledWorker as error:
            workers = 1 + int(dask.config.get("distributed.scheduler.allowed-failures"))
            ended = Ended(key, error=f"{workers} workers died of it, {_address(error)} the last")
        except ImportError as error:
            ended = Ended(key, absent=True, error=str(error))
        except msgspec.MsgspecError as error:
            ended = Ended(key, error=f"invalid reply from worker: {error}")
        except Exception as error:  # any error of a task
            ended = Ended(key, error=f"{type(error).__name__}: {error}")
        self._on_end(ended)


def _address(error: KilledWorker) -> str:
    return str(getattr(error.last_worker, "address", error.last_worker))


def client_of(address: str) -> Any:
    """Return a client of the scheduler at an address, with TLS as in Dask's own configuration.

    Raises:
        UserError: no scheduler answers.
    """
    be_silent()
    if address.startswith("tls://") and not _has_certificate():
        raise UserError(
            "Dask's configuration names no certificate for TLS",
            where=address,
            next="see docs/guides/cluster.md",
        )
    try:
        return _Client(address, timeout=_CONNECT_S, set_as_default=False)
    except OSError:
        raise UserError(
            f"no scheduler answers in {_CONNECT_S} s",
            where=address,
            next="start one: dask scheduler",
        ) from None
    except (ValueError, TypeError, RuntimeError) as error:
        raise UserError(f"cannot connect: {error}", where=address) from None


def _has_certificate() -> bool:
    security: Any = distributed.Security
    try:
        return security().get_connection_args("client").get("ssl_context") is not None
    except OSError as error:
        raise UserError(
            f"cannot read a certificate: {error.strerror}",
            where="distributed.comm.tls of Dask's configuration",
        ) from None


def be_silent() -> None:
    """Silence Dask's loggers: isoblk reports errors itself."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in _TALKERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module="distributed")
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"})

# SPDX-License-Identifier: GPL-2.0-only
"""A scheduler and workers that are started for one campaign, and end with it."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import distributed

from isoblk.campaign.cluster.tasks import be_silent, client_of

# Dask's types are partial.
_LocalCluster: Any = distributed.LocalCluster


class LocalWorkers:
    """Worker processes on this computer, of one thread each; started by the first connect().

    Args:
        count: of them.
        say: told where the dashboard is.
    """

    def __init__(self, count: int, say: Callable[[str], None]) -> None:
        self._count = count
        self._say = say
        self._cluster: Any = None

    def connect(self) -> Any:
        """A client of theirs; the first one in the main thread."""
        be_silent()
        if self._cluster is None:
            with _interrupts_are_not_inherited():
                self._cluster = _LocalCluster(
                    n_workers=self._count,
                    threads_per_worker=1,
                    processes=True,
                    # A port that is free: another campaign may have the usual one.
                    dashboard_address="127.0.0.1:0",
                    silence_logs=50,
                )
            self._say(f"the dashboard is {self._cluster.dashboard_link}")
        return client_of(self._cluster.scheduler_address)

    def close(self) -> None:
        """End them."""
        if self._cluster is not None:
            self._cluster.close(timeout=10)


@contextmanager
def _interrupts_are_not_inherited() -> Iterator[None]:
    """Ctrl-C goes to all processes of a terminal, and the campaign ends its workers itself. What is
    started meanwhile ignores it; so does this process, for some three seconds. (Blocked signals
    would be inherited, too, but multiprocessing unblocks this one.)"""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

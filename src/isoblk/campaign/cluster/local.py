# SPDX-License-Identifier: GPL-2.0-only
"""Start a scheduler and workers for one campaign."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import distributed

from isoblk.campaign.cluster.tasks import be_silent, client_of

# Dask's types are partial.
_LocalCluster: Any = distributed.LocalCluster


class LocalWorkers:
    """Worker processes on this computer, of one thread each; the first connect() starts them.

    Args:
        count: number of workers.
        say: gets the address of the dashboard.
    """

    def __init__(self, count: int, say: Callable[[str], None]) -> None:
        self._count = count
        self._say = say
        self._cluster: Any = None

    def connect(self) -> Any:
        """Return a client. The first call must be in the main thread."""
        be_silent()
        if self._cluster is None:
            with _interrupts_are_not_inherited():
                self._cluster = _LocalCluster(
                    n_workers=self._count,
                    threads_per_worker=1,
                    processes=True,
                    # A free port: another campaign may use the default one.
                    dashboard_address="127.0.0.1:0",
                    silence_logs=50,
                )
            self._say(f"the dashboard is {self._cluster.dashboard_link}")
        return client_of(self._cluster.scheduler_address)

    def close(self) -> None:
        """Stop the workers and the scheduler."""
        if self._cluster is not None:
            self._cluster.close(timeout=10)


@contextmanager
def _interrupts_are_not_inherited() -> Iterator[None]:
    """Ignore SIGINT while the workers start, so that they inherit it: a terminal sends Ctrl-C to
    all processes, and the campaign stops its workers itself.

    This process ignores it too, for some three seconds. Blocking the signal does not help, because
    multiprocessing unblocks it.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

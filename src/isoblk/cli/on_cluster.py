# SPDX-License-Identifier: GPL-2.0-only
"""The Dask cluster of isoblk run --on. Dask is an extra, imported only if --on is given."""

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from isoblk.campaign.execute import Bench
from isoblk.errors import UserError
from isoblk.run.spec import RunSpec

if TYPE_CHECKING:
    from isoblk.campaign.cluster.cluster import Cluster

LOCAL = "local"
_ADDRESS = re.compile(r"(tcp|tls)://[^\s/]+:\d+")


@dataclass(frozen=True)
class Needs:
    """Requirements of a command's runs.

    Attributes:
        bench: kernel and uml machine of this process.
        library: the preloaded library.
        specs: the runs.
        time_limit_s: wall-clock time after which a run counts as hung.
    """

    bench: Bench
    library: Path
    specs: Sequence[RunSpec]
    time_limit_s: float


def check(on: str, jobs: int, machine: str) -> None:
    """Check the options of a cluster before anything is done.

    Raises:
        UserError: Dask is not installed, or the options exclude each other.
    """
    if machine != "uml":
        raise UserError(
            f"a cluster can only make runs of the uml machine, not of {machine}",
            next="remove --on or --machine",
        )
    if on != LOCAL and not _ADDRESS.fullmatch(on):
        raise UserError(
            "not an address of a Dask scheduler",
            where=f"--on {on}",
            next="allowed: tcp://HOST:8786, tls://..., local",
        )
    if on != LOCAL and jobs != 1:
        raise UserError(
            "the cluster's workers set the number of parallel runs",
            next="remove --jobs or --on",
        )
    if find_spec("distributed") is None:
        raise UserError("--on needs Dask", next="run: pip install 'isoblk[cluster]'")


@contextmanager
def cluster(
    on: str, jobs: int, needs: Needs, results: Path, say: Callable[[str], None]
) -> Iterator["Cluster"]:
    """Connect to the cluster that a command names; disconnect on exit.

    Args:
        on: the address, accepted by check().
        jobs: number of workers of a local cluster.
        needs: requirements of the runs.
        results: the result directory.
        say: prints a line for the user.
    """
    from isoblk.campaign.cluster.cluster import Cluster  # noqa: PLC0415
    from isoblk.campaign.cluster.local import LocalWorkers  # noqa: PLC0415
    from isoblk.campaign.cluster.order import make_order  # noqa: PLC0415
    from isoblk.campaign.cluster.tasks import client_of  # noqa: PLC0415

    token = uuid.uuid4().hex[:8]
    order = make_order(needs.bench, needs.library, needs.specs, token, needs.time_limit_s)
    started = LocalWorkers(jobs, say) if on == LOCAL else None
    one = Cluster(started.connect if started else lambda: client_of(on), on, order, results, say)
    try:
        yield one
    finally:
        one.close()
        if started:
            started.close()

# SPDX-License-Identifier: GPL-2.0-only
"""isoblk run --on: a Dask cluster for a command. Dask is loaded when it is asked for, and no
sooner: it is an extra."""

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
    """What a command's runs need.

    Attributes:
        bench: of this process, with a uml machine.
        library: that is preloaded.
        specs: of the runs.
        time_limit_s: wall-clock time until a run counts as hung.
    """

    bench: Bench
    library: Path
    specs: Sequence[RunSpec]
    time_limit_s: float


def check(on: str, jobs: int, machine: str) -> None:
    """Refuse what cannot be before anything is done.

    Raises:
        UserError: Dask is not installed, or the options do not go together.
    """
    if machine != "uml":
        raise UserError(
            f"a cluster makes runs of the uml machine, not of {machine}",
            next="leave out --on, or --machine",
        )
    if on != LOCAL and not _ADDRESS.fullmatch(on):
        raise UserError(
            "is no scheduler", where=f"--on {on}", next="allowed: tcp://HOST:8786, tls://..., local"
        )
    if on != LOCAL and jobs != 1:
        raise UserError(
            "the workers say how many runs are made at once", next="leave out --jobs, or --on"
        )
    if find_spec("distributed") is None:
        raise UserError("--on needs Dask", next="run: pip install 'isoblk[cluster]'")


@contextmanager
def cluster(
    on: str, jobs: int, needs: Needs, results: Path, say: Callable[[str], None]
) -> Iterator["Cluster"]:
    """The cluster that a command names, which is let go in the end.

    Args:
        on: as check() has passed it.
        jobs: workers of a local one.
        needs: of the runs.
        results: where they go.
        say: told what the user should know.
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

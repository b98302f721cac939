# SPDX-License-Identifier: GPL-2.0-only
"""feedbac: the credits of P2, by predictions of the disk's throughput."""

from collections.abc import Mapping

from isoblk.run.limits import Range
from isoblk.schedulers import own
from isoblk.schedulers.own import OwnElevator


class Feedbac(OwnElevator):
    """kernel/sched/feedbac.c; docs/concepts/schedulers.md."""

    name = "feedbac"
    tunables: Mapping[str, Range] | None = {
        **own.OF_THE_PAPERS,
        "alloc_us": Range(100, 1_000_000),
        "predict_ms": Range(10, 10_000),
    }
    predicts = True

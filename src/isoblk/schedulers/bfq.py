# SPDX-License-Identifier: GPL-2.0-only
"""bfq: budgets of sectors by weight, one queue at a time."""

from collections.abc import Mapping

from isoblk.run.limits import SWITCH, Range
from isoblk.schedulers.base import SchedulerKind


class Bfq(SchedulerKind):
    """block/bfq-iosched.c."""

    name = "bfq"
    elevator = "bfq"
    weight_files: Mapping[str, str] = {"v2": "io.bfq.weight", "v1": "blkio.bfq.weight"}
    # BFQ_MAX_WEIGHT.
    weights = Range(1, 1_000)
    blkio_policy = "bfq"
    tunables: Mapping[str, Range] | None = {"low_latency": SWITCH, "strict_guarantees": SWITCH}

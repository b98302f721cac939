# SPDX-License-Identifier: GPL-2.0-only
"""kyber-fair: the budgets of P3, which are refilled in rounds."""

from collections.abc import Mapping

from isoblk.run.limits import Range
from isoblk.schedulers import own
from isoblk.schedulers.own import OwnElevator

_LATENCY_NS = Range(1, 60 * 10**9)


class KyberFair(OwnElevator):
    """kernel/sched/kyber-fair.c; docs/concepts/schedulers.md."""

    name = "kyber-fair"
    tunables: Mapping[str, Range] | None = {
        **own.OF_THE_PAPERS,
        "round_us": Range(100, 1_000_000),
        "refill_ms": own.MILLISECONDS,
        "read_lat_nsec": _LATENCY_NS,
        "write_lat_nsec": _LATENCY_NS,
    }

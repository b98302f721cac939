# SPDX-License-Identifier: GPL-2.0-only
"""kyber: a depth for reads and one for writes, by the latencies they reach. It has no weights."""

from collections.abc import Mapping

from isoblk.run.limits import Range
from isoblk.schedulers.base import SchedulerKind


class Kyber(SchedulerKind):
    """block/kyber-iosched.c."""

    name = "kyber"
    elevator = "kyber"
    tunables: Mapping[str, Range] | None = {}

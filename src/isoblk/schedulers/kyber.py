# SPDX-License-Identifier: GPL-2.0-only
"""kyber: queue depths for reads and writes, adjusted by latency. It has no weights."""

from collections.abc import Mapping

from isoblk.run.limits import Range
from isoblk.schedulers.base import SchedulerKind


class Kyber(SchedulerKind):
    """block/kyber-iosched.c."""

    name = "kyber"
    elevator = "kyber"
    tunables: Mapping[str, Range] | None = {}

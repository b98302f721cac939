# SPDX-License-Identifier: GPL-2.0-only
"""mq-deadline: sector order, until a request's deadline expires. It has no weights."""

from collections.abc import Mapping

from isoblk.run.limits import SWITCH, Range
from isoblk.schedulers.base import SchedulerKind


class MqDeadline(SchedulerKind):
    """block/mq-deadline.c."""

    name = "mq-deadline"
    elevator = "mq-deadline"
    tunables: Mapping[str, Range] | None = {"front_merges": SWITCH}

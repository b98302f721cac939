# SPDX-License-Identifier: GPL-2.0-only
"""No scheduler: requests go to the device as they come."""

from isoblk.schedulers.base import SchedulerKind


class NoScheduler(SchedulerKind):
    """What all others are held against."""

    name = "none"
    elevator = "none"

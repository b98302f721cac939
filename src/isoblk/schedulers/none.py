# SPDX-License-Identifier: GPL-2.0-only
"""No scheduler: requests go to the device in order of arrival."""

from isoblk.schedulers.base import SchedulerKind


class NoScheduler(SchedulerKind):
    """The baseline of all others."""

    name = "none"
    elevator = "none"

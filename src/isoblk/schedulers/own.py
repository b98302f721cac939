# SPDX-License-Identifier: GPL-2.0-only
"""Common parts of the elevators in kernel/sched, which share a policy, isoblk_share."""

from collections.abc import Mapping

from isoblk.run.limits import SWITCH, Range
from isoblk.schedulers.base import SchedulerKind

OF_THE_PAPERS = {"gate": SWITCH, "paper_mode": SWITCH}
"""Tunables of the elevators that divide by budgets, kernel/sched/budget/."""
MILLISECONDS = Range(1, 10_000)


class OwnElevator(SchedulerKind):
    """An elevator of kernel/sched."""

    weight_files: Mapping[str, str] = {"v2": "io.isoblk.weight", "v1": "blkio.isoblk.weight"}
    blkio_policy = "isoblk"
    divides_tags = True

    def __init_subclass__(cls) -> None:
        """Set the modules: its own, after that of the policy."""
        cls.elevator = cls.name
        cls.modules = ("isoblk_share", f"{cls.name}-iosched")

# SPDX-License-Identifier: GPL-2.0-only
"""What the elevators of kernel/sched have in common: one policy, isoblk_share's."""

from collections.abc import Mapping
from typing import Final

from isoblk.run.limits import SWITCH, Range
from isoblk.schedulers.base import SchedulerKind

OF_THE_CORE = {"gate": SWITCH, "window": Range(1, (1 << 30) - 1)}
"""Tunables of those that are made of kernel/sched/core/."""
OF_THE_PAPERS = {**OF_THE_CORE, "paper_mode": SWITCH}
"""Tunables of those that can also do as their paper says."""
MILLISECONDS = Range(1, 10_000)
TARGET_FILES: Final = {"v2": "io.isoblk.latency", "v1": "blkio.isoblk.latency"}


class OwnElevator(SchedulerKind):
    """An elevator of kernel/sched."""

    weight_files: Mapping[str, str] = {"v2": "io.isoblk.weight", "v1": "blkio.isoblk.weight"}
    blkio_policy = "isoblk"
    divides_tags = True

    def __init_subclass__(cls) -> None:
        """Each has a module of its own, which needs the policy's."""
        cls.elevator = cls.name
        cls.modules = ("isoblk_share", f"{cls.name}-iosched")

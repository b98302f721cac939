# SPDX-License-Identifier: GPL-2.0-only
"""isoblk: weights at the disk's full speed, and who asks for little is served at once."""

from collections.abc import Mapping

from isoblk.run.limits import SWITCH, Range
from isoblk.schedulers.own import OwnElevator


class Isoblk(OwnElevator):
    """kernel/sched/isoblk.c; docs/concepts/isoblk.md."""

    name = "isoblk"
    target_files: Mapping[str, str] = {
        "v2": "io.isoblk.latency",
        "v1": "blkio.isoblk.latency",
    }
    tunables: Mapping[str, Range] | None = {
        "gate": SWITCH,
        "window": Range(1, (1 << 30) - 1),
        "hold_us": Range(1, 10_000_000),
        "idle_us": Range(0, 1_000_000),
        "idle_loss": Range(0, 1000),
        "merge_kb": Range(4, (1 << 21) - 1),
    }

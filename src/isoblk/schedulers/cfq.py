# SPDX-License-Identifier: GPL-2.0-only
"""cfq: time slices by weight, as in the kernel before 5.0, on blk-mq."""

from collections.abc import Mapping

from isoblk.run.limits import SWITCH, Range
from isoblk.schedulers.own import MILLISECONDS, OwnElevator


class Cfq(OwnElevator):
    """kernel/sched/cfq/; docs/concepts/schedulers.md."""

    name = "cfq"
    tunables: Mapping[str, Range] | None = {
        "gate": SWITCH,
        "low_latency": SWITCH,
        "quantum": Range(1, 4096),
        "slice_async_rq": Range(1, 4096),
        "back_seek_penalty": Range(1, 1000),
        **dict.fromkeys(
            ("fifo_expire_sync", "fifo_expire_async", "slice_sync", "slice_async"), MILLISECONDS
        ),
        **dict.fromkeys(("slice_idle", "group_idle"), Range(0, 10_000)),
        "target_latency": MILLISECONDS,
    }

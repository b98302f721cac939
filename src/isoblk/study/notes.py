# SPDX-License-Identifier: GPL-2.0-only
"""What a study's author should know before its runs are made, and the reader of its report."""

from collections.abc import Iterable

from isoblk.study.model import RunSpec
from isoblk.study.point import NR_REQUESTS, OWN_ELEVATORS
from isoblk.study.presets import hardware_tags

# blk-mq gives a scheduler twice the device's tags, counting at most BLKDEV_DEFAULT_RQ of
# them, and allows MAX_SCHED_RQ (block/blk-mq-sched.[ch]).
_DEFAULT_RQ = 128
_MOST_TAGS = 2048
# With fewer, what a group may hold is too coarse to follow the weights (docs/many-groups.md).
TAGS_A_GROUP = 2


def notes(specs: Iterable[RunSpec]) -> list[str]:
    """One line if a run divides its scheduler tags among more groups than they suffice for.

    Args:
        specs: the study's runs; the one that needs most tags is spoken of.
    """
    short = [
        (len(spec.tenants), spec.scheduler.name, tags)
        for spec in specs
        if spec.scheduler.elevator in OWN_ELEVATORS
        and (tags := _scheduler_tags(spec)) < TAGS_A_GROUP * len(spec.tenants)
        and tags < _MOST_TAGS
    ]
    if not short:
        return []
    groups, scheduler, tags = max(short)
    wanted = min(_MOST_TAGS, _power_of_two(TAGS_A_GROUP * groups))
    return [
        f"{groups} groups under {scheduler} divide {tags} scheduler tags, fewer than"
        f" {TAGS_A_GROUP} each, and weights may not hold; set nr_requests = {wanted} in [queue]"
    ]


def _scheduler_tags(spec: RunSpec) -> int:
    """nr_requests of a run that has an elevator."""
    written = spec.queue.get(NR_REQUESTS)
    if isinstance(written, int):
        return written
    return 2 * min(hardware_tags(spec.device), _DEFAULT_RQ)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()

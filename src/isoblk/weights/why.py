# SPDX-License-Identifier: GPL-2.0-only
"""Why a weight does not do what was expected of it."""

from collections.abc import Iterator
from typing import Final

from isoblk.errors import printable
from isoblk.weights.disk import Chosen
from isoblk.weights.tree import HAND, Group, Share

# Shares that differ by less are as promised.
_PART: Final = 0.1
_POINT: Final = 0.01
# Who has fewer requests waiting, in the mean, asks for no more than it gets.
_HARDLY: Final = 0.1
# Tags that each needs who is to have its share.
_TAGS_EACH: Final = 2


def of_disk(disk: Chosen, top: Share) -> Iterator[tuple[str, str]]:
    """What holds for all cgroups: what is wrong, and what to do."""
    if not disk.file:
        yield (
            f"{disk.name} has the scheduler {disk.scheduler}, which knows no weights",
            f"isoblk disk use isoblk {disk.name}",
        )
        return
    busy = [one for one in top.each() if one.promised and not _busy_below(one)]
    if (tags := disk.nr_requests) < _TAGS_EACH * len(busy):
        yield (
            f"{len(busy)} cgroups share {tags} tags (nr_requests)",
            f"isoblk disk use {disk.scheduler} {disk.name} --tags {_tags_for(len(busy))}",
        )
    own = top.got - sum(child.got for child in top.children)
    if own > _POINT:
        yield (
            f"{own:.0%} of what the disk did is charged to no cgroup: the kernel's own, a process"
            " in the root cgroup, a file system that cannot tell whose write it is",
            "",
        )
    if missed := [one.group for one in top.each() if _missed(one.group)]:
        first = missed[0]
        many = "1 cgroup has" if len(missed) == 1 else f"{len(missed)} cgroups have"
        yield (
            f"{many} a weight in io.weight that no service mirrors"
            f" ({printable(first.path)}: {first.elsewhere})",
            "systemctl enable --now isoblk-weights",
        )


def _missed(group: Group) -> bool:
    # One by hand counts before the other, also if that is mirrored.
    return group.elsewhere is not None and group.set_by != HAND


def of_group(share: Share, top: Share) -> str:
    """Why a cgroup gets what it was not promised; "" if it gets what it was."""
    if share.promised is None or abs(share.got - share.promised) <= max(
        _PART * share.promised, _POINT
    ):
        return ""
    if share.got > share.promised:
        return "others ask for less"
    if share.waiting < _HARDLY:
        return "asks for no more"
    if share.group.undelegated:
        return f"{share.group.undelegated} cgroups below without io"
    return ""


def _busy_below(share: Share) -> bool:
    return any(child.promised for child in share.children)


def _tags_for(groups: int) -> int:
    tags = 64
    while tags < _TAGS_EACH * groups:
        tags *= 2
    return tags

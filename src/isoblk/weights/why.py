# SPDX-License-Identifier: GPL-2.0-only
"""Explain why a cgroup does not get the share that its weight promises."""

from collections.abc import Iterator
from typing import Final

from isoblk.errors import printable
from isoblk.weights.disk import Chosen
from isoblk.weights.tree import HAND, Group, Share

# Relative and absolute difference up to which a share counts as promised.
_PART: Final = 0.1
_POINT: Final = 0.01
# A cgroup with fewer waiting requests, in the mean, gets all that it asks for.
_HARDLY: Final = 0.1
# Tags that a cgroup needs to get its share.
_TAGS_EACH: Final = 2


def of_disk(disk: Chosen, top: Share) -> Iterator[tuple[str, str]]:
    """Yield problem and remedy of the disk, for all its cgroups."""
    if not disk.file:
        yield (
            f"{disk.name} has the scheduler {disk.scheduler}, which has no weights",
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
            f"{own:.0%} of the disk's I/O is charged to no cgroup: by the kernel, by processes in"
            " the root cgroup, or by a file system that does not attribute writes",
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
    # A weight set manually takes precedence over a mirrored one.
    return group.elsewhere is not None and group.set_by != HAND


def of_group(share: Share, top: Share) -> str:
    """Return why a cgroup gets more or less than promised; "" if it gets its promised share."""
    if share.promised is None or abs(share.got - share.promised) <= max(
        _PART * share.promised, _POINT
    ):
        return ""
    if share.got > share.promised:
        return "other cgroups ask for less"
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

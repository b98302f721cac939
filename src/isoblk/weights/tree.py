# SPDX-License-Identifier: GPL-2.0-only
"""Cgroups and a disk: what each is promised by its weight, and what it gets."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from isoblk.weights import cgroup
from isoblk.weights.disk import Chosen, Price
from isoblk.weights.lines import DEFAULT, UNSET, Weights

_WAIT: Final = "isoblk.wait_us"
HAND: Final = "hand"


@dataclass
class Group:
    """A cgroup.

    Attributes:
        name: of its directory; "" of the root.
        path: from the root.
        weight: that counts on the disk; None: it has no file for one, so its parent's counts.
        set_by: who set it, "" if nobody did: "io.weight" if that was mirrored, "hand", or the file.
        elsewhere: the weight in io.weight or io.bfq.weight that does not count, None: it has none.
        counted: what io.stat says of the disk, since boot.
        undelegated: cgroups below that io is not switched on for.
        children: in the order of their names.
    """

    name: str
    path: str
    weight: int | None
    set_by: str = ""
    elsewhere: int | None = None
    counted: Mapping[str, int] = field(default_factory=dict)
    undelegated: int = 0
    children: list["Group"] = field(default_factory=list)

    def each(self) -> Iterator["Group"]:
        """It, and all below, each before those below it."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += reversed(one.children)


def read(root: Path, disk: Chosen) -> Group:
    """All cgroups, as they are now."""
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _read(top, disk)
    finally:
        os.close(top)


def _read(top: int, disk: Chosen) -> Group:
    # Nothing here calls itself: who may make cgroups may make them a thousand deep.
    root = _group(top, "", "/", disk)
    above = [root]
    without: list[tuple[Group, Group]] = []
    for depth, name, directory in cgroup.walk(top):
        del above[depth:]
        parent = above[-1]
        found = _group(directory, name, f"{parent.path.removesuffix('/')}/{name}", disk)
        above.append(found)
        if found.weight is None and disk.file and not cgroup.has_io(directory):
            without.append((parent, found))
        else:
            parent.children.append(found)
    for parent, found in reversed(without):
        parent.undelegated += 1 + found.undelegated
    return root


def _group(directory: int, name: str, path: str, disk: Chosen) -> Group:
    group = Group(name, path, None, counted=stat(directory, disk.number))
    have = cgroup.read(directory, disk.file) if disk.file else None
    if have is not None:
        _weigh(group, directory, have, disk)
    return group


def _weigh(group: Group, directory: int, have: Weights, disk: Chosen) -> None:
    group.weight = have.get(disk.number, have.get(DEFAULT, UNSET))
    key = disk.number if disk.number in have else DEFAULT
    if disk.file != cgroup.OUR_WEIGHT:
        group.set_by = disk.file if key in have else ""
        return
    want = cgroup.wanted(directory)
    wished = want.get(disk.number, want.get(DEFAULT))
    if key in have:
        # Only root can read what is noted at a cgroup.
        ours = cgroup.ours(directory).get(key, ()) if os.geteuid() == 0 else (wished,)
        group.set_by = cgroup.IO_WEIGHT if have[key] in ours else HAND
    if wished is not None and wished != group.weight:
        group.elsewhere = wished


def stat(directory: int, number: str) -> dict[str, int]:
    """What io.stat says of a disk; {} if nothing."""
    for line in cgroup.text(directory, "io.stat").splitlines():
        words = line.split()
        if words[:1] == [number]:
            pairs = (word.partition("=") for word in words[1:])
            return {key: int(value) for key, _, value in pairs if _is_number(value)}
    return {}


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii()


@dataclass(frozen=True)
class Share:
    """What a cgroup had of a disk between two readings.

    Attributes:
        group: as it was at the second.
        promised: of 1, among those that sent something; None: it sent nothing.
        got: of 1, of all that the disk did.
        waiting: how many of its requests waited at a time, in the mean.
        children: likewise.
    """

    group: Group
    promised: float | None
    got: float
    waiting: float
    children: tuple["Share", ...]

    def each(self) -> Iterator["Share"]:
        """It, and all below, each before those below it."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += reversed(one.children)


def shares(before: Group, after: Group, seconds: float, disk: Chosen) -> Share:
    """What each had meanwhile. The root's own is what none of its children has."""
    earlier = {group.path: group.counted for group in before.each()}
    groups = list(after.each())
    costs = {group.path: _cost(group, earlier, disk.prices) for group in groups}
    # The root counts a request when it ends, a cgroup when it begins.
    total = max(costs[after.path], sum(costs[child.path] for child in after.children))
    promised: dict[str, float | None] = {after.path: 1.0 if total else None}
    for group in groups:
        part = promised[group.path]
        weights = {
            child.path: child.weight or UNSET for child in group.children if costs[child.path] > 0
        }
        everything = sum(weights.values())
        for child in group.children:
            promised[child.path] = (
                part * weights[child.path] / everything
                if part is not None and child.path in weights
                else None
            )
    made: dict[str, Share] = {}
    for group in reversed(groups):
        waited = _more(group, earlier, _WAIT) / 1e6
        made[group.path] = Share(
            group,
            promised[group.path],
            (total if group is after else costs[group.path]) / total if total else 0.0,
            waited / seconds if seconds else 0.0,
            tuple(made[child.path] for child in group.children),
        )
    return made[after.path]


def _more(group: Group, earlier: Mapping[str, Mapping[str, int]], key: str) -> int:
    """By how much a counter has grown. A cgroup of the same name may be a new one."""
    now = group.counted.get(key, 0)
    was = earlier.get(group.path, {}).get(key, 0)
    return now - was if now >= was else now


def _cost(
    group: Group, earlier: Mapping[str, Mapping[str, int]], prices: Mapping[str, Price]
) -> float:
    return sum(
        price.request * _more(group, earlier, f"{kind}ios")
        + price.byte * _more(group, earlier, f"{kind}bytes")
        for kind, price in prices.items()
    )

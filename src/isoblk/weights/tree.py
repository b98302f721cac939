# SPDX-License-Identifier: GPL-2.0-only
"""The promised and the actual share of each cgroup on a disk."""

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
        name: of the directory; "" for the root.
        path: from the root.
        weight: the weight that applies on the disk; None: no weight file, the parent's applies.
        set_by: origin of the weight: "io.weight" if mirrored, "hand", or the file; "" if unset.
        elsewhere: a weight in io.weight or io.bfq.weight that does not apply; None: there is none.
        counted: counters of io.stat for the disk, since boot.
        undelegated: number of children without the io controller.
        children: sorted by name.
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
        """Yield it and all descendants, parents before children."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += reversed(one.children)


def read(root: Path, disk: Chosen) -> Group:
    """Read all cgroups; return the root."""
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _read(top, disk)
    finally:
        os.close(top)


def _read(top: int, disk: Chosen) -> Group:
    # Not recursive: users may nest cgroups a thousand deep.
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
        # Only root can read the record at a cgroup.
        ours = cgroup.ours(directory).get(key, ()) if os.geteuid() == 0 else (wished,)
        group.set_by = cgroup.IO_WEIGHT if have[key] in ours else HAND
    if wished is not None and wished != group.weight:
        group.elsewhere = wished


def stat(directory: int, number: str) -> dict[str, int]:
    """Return the counters of io.stat for a disk; {} if there are none."""
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
    """A cgroup's share of a disk between two readings.

    Attributes:
        group: the cgroup at the second reading.
        promised: promised share among cgroups with I/O, 0 to 1; None: it had no I/O.
        got: actual share of the disk's I/O, 0 to 1.
        waiting: mean number of waiting requests.
        children: shares of the children.
    """

    group: Group
    promised: float | None
    got: float
    waiting: float
    children: tuple["Share", ...]

    def each(self) -> Iterator["Share"]:
        """Yield it and all descendants, parents before children."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += reversed(one.children)


def shares(before: Group, after: Group, seconds: float, disk: Chosen) -> Share:
    """Compute the shares between two readings. The root's own I/O is the rest of its children's."""
    earlier = {group.path: group.counted for group in before.each()}
    groups = list(after.each())
    costs = {group.path: _cost(group, earlier, disk.prices) for group in groups}
    # The root counts a request at its end, a cgroup at its start.
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
    """Return the growth of a counter. If it fell, the cgroup was created anew."""
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

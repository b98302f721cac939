# SPDX-License-Identifier: GPL-2.0-only
"""Find disks whose newest data are elsewhere: origins of caches that are not in use.

The cache leaves no mark on such a disk, but the superblock of its SSD names the disk. Before a disk
is overwritten or gets another cache, all other devices are therefore checked.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isoblk.caches.base import SECTOR
from isoblk.caches.ondisk import contents
from isoblk.caches.ondisk import fsck as check
from isoblk.caches.ondisk.contents import Dirty
from isoblk.caches.ondisk.ssd import Ssd
from isoblk.errors import UserError
from isoblk.machine import node, origins
from isoblk.machine.blockdev import Disk, node_of
from isoblk.machine.ground import Ground
from isoblk.machine.mapper import Mapper

# Drives with removable media: opening them may take seconds, and none is a cache's SSD.
_DRIVES: Final = ("fd", "sr")


@dataclass(frozen=True)
class _Newer:
    """An SSD with blocks of a disk. ssd: its path. origin: path of the disk or its partition."""

    ssd: str
    origin: str
    dirty: Dirty


def refuse_newer_elsewhere(disk: Disk, mapper: Mapper, but: Disk | None = None) -> None:
    """Check that no readable SSD has blocks of a disk, or of its partitions, that are newer than
    the disk's.

    Args:
        disk: the disk.
        mapper: dmsetup.
        but: an SSD that may have newer blocks.

    Raises:
        UserError: an SSD has newer blocks, or may have.
    """
    on = Ground(mapper=mapper)
    # By any name: newer blocks belong to the sectors.
    same = [*disk.parts(), *on.sharing(disk.sys)]
    passed_over = {*same, *(on.sharing(but.sys) if but else ())}
    for place in on.devices:
        if place.name.startswith(_DRIVES) or place in passed_over:
            continue
        found = None
        with suppress(OSError):
            found = _has_blocks_of(place, disk, same, mapper)
        if found:
            raise _error(disk, found)


def _error(disk: Disk, newer: _Newer) -> UserError:
    which = f"{newer.origin} is" if newer.origin != node_of(disk.sys) else "is"
    count, why = newer.dirty.count, newer.dirty.why
    return UserError(
        f"{which} the disk behind a cache that is not in use: {newer.ssd} has newer blocks of it,"
        f" {f'perhaps ({why})' if count is None else count}",
        where=disk.path,
        next="restore them with isoblk cache create, then clean them with isoblk cache delete;"
        f" if they may be lost: blkdiscard --zeroout {newer.ssd}",
    )


def _has_blocks_of(place: Path, disk: Disk, same: Sequence[Path], mapper: Mapper) -> _Newer | None:
    """Return the newer blocks on a possible SSD, None without any.

    place: its directory in sysfs. same: devices on the sectors of the disk. Raises OSError if it
    cannot be opened.
    """
    size = int((place / "size").read_text()) * SECTOR
    if size < check.SMALLEST:
        return None
    path = node_of(place)
    with ExitStack() as stack:
        try:
            located = node.locate(path, (place / "dev").read_text().strip())
        except node.ChangedError:
            return None
        stack.callback(os.close, located)
        descriptor = node.reopen(located, os.O_RDONLY | os.O_DIRECT | os.O_NONBLOCK)
        stack.callback(os.close, descriptor)
        ssd = Ssd(path, descriptor, size)
        if not contents.is_marked(ssd):
            return None
        newest = check.newest(ssd)
        if newest is None:
            return None
        named, sectors = newest.identity, newest.geometry.origin
        known = next((one for one in same if origins.is_named(one, named, mapper)), None)
        if known is None and origins.stands_on(disk.sys, named, sectors, mapper):
            known = disk.sys
        if known is None:
            return None
        dirty = contents.dirty_blocks(ssd)
    return None if dirty.count == 0 else _Newer(path, node_of(known), dirty)

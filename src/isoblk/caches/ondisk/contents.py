# SPDX-License-Identifier: GPL-2.0-only
"""Detect whether a device is the SSD of a cache, of any version, and whether it has dirty
blocks."""

from dataclasses import dataclass
from typing import Final

from isoblk.caches.ondisk import format as layout
from isoblk.caches.ondisk import fsck as checking
from isoblk.caches.ondisk.ssd import Ssd
from isoblk.errors import UserError

NAME: Final = "isoblk setcache"
"""Name of a cache in a list of signatures, next to those that libblkid knows."""


@dataclass(frozen=True)
class Dirty:
    """The dirty blocks of an SSD.

    Attributes:
        count: None if it cannot be determined; `why` has the reason.
        damaged: whether that is because of damage.
    """

    count: int | None
    why: str = ""
    damaged: bool = False


def places(size: int) -> list[int]:
    """Return the bytes of the superblock's copies on a device of `size` bytes."""
    found = {layout.copy_at(copy, size) for copy in range(layout.COPIES)}
    return sorted(at for at in found if 0 <= at <= size - layout.PAGE)


def is_marked(ssd: Ssd) -> bool:
    """Return whether it has a superblock of a cache, or the beginning of one."""
    pages = (ssd.read(at, layout.PAGE) for at in places(ssd.size))
    return any(page is not None and page.startswith(layout.MAGIC) for page in pages)


def is_blank(ssd: Ssd) -> bool:
    """Return whether the kernel takes it for a new one: zeros at the superblocks."""
    pages = [ssd.read(at, layout.PAGE) for at in places(ssd.size)]
    return not any(page is None or any(page) for page in pages)


def dirty_blocks(ssd: Ssd) -> Dirty:
    """Return the dirty blocks of an SSD that is marked."""
    try:
        found = checking.examine(ssd).report
    except UserError as error:
        return Dirty(None, error.cause, damaged=True)
    if found.damage:
        return Dirty(None, f"{found.damage[0].where}: {found.damage[0].cause}", damaged=True)
    if not found.dirty and found.state == "in use":
        # The memory of a live cache, on this machine or another, is newer than its records.
        return Dirty(None, "it is in use, or was cut short")
    return Dirty(found.dirty)


def erase(ssd: Ssd) -> None:
    """Make the kernel take an SSD, open for writing, for a new one.

    Raises:
        RunError: it cannot be written.
    """
    for at in places(ssd.size):
        ssd.write(at, bytes(layout.PAGE))
    ssd.sync()

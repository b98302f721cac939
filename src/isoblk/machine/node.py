# SPDX-License-Identifier: GPL-2.0-only
"""Open a device's node, after a check of the device at the path."""

import os
import stat


class ChangedError(Exception):
    """The path has another device, or none."""


def locate(path: str, number: str) -> int:
    """Return a descriptor for reopen() of the block device at a path.

    Args:
        path: of the node.
        number: MAJ:MIN of the expected device.

    Raises:
        ChangedError: the path has another device.
        OSError: the path does not exist.
    """
    # O_PATH calls no driver, whatever the file is.
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    found = os.fstat(place)
    if stat.S_ISBLK(found.st_mode):
        now = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
        if now == number:
            return place
    os.close(place)
    raise ChangedError(path)


def reopen(descriptor: int, way: int) -> int:
    """Open the file of a descriptor. way: flags of open(2).

    Raises:
        OSError: it may not be opened.
    """
    return os.open(f"/proc/self/fd/{descriptor}", way | os.O_CLOEXEC)

# SPDX-License-Identifier: GPL-2.0-only
"""Opening a device's node: what is at the path is looked at first, and only then opened."""

import os
import stat


class ChangedError(Exception):
    """At the path there is another device, or none."""


def locate(path: str, number: str) -> int:
    """A descriptor for reopen() of the block device at a path.

    Args:
        path: of the node.
        number: MAJ:MIN that the device has to have.

    Raises:
        ChangedError: it has not.
        OSError: there is nothing.
    """
    # Opens no driver, whatever is there.
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    found = os.fstat(place)
    if stat.S_ISBLK(found.st_mode):
        now = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
        if now == number:
            return place
    os.close(place)
    raise ChangedError(path)


def reopen(descriptor: int, way: int) -> int:
    """Open what a descriptor is of. way: flags of open(2).

    Raises:
        OSError: it may not be opened.
    """
    return os.open(f"/proc/self/fd/{descriptor}", way | os.O_CLOEXEC)

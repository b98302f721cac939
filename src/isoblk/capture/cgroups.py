# SPDX-License-Identifier: GPL-2.0-only
"""Names and weights of cgroups, from the ids in the kernel's events.

A cgroup's id is the inode number of its directory. It is looked up at its first event, because the
cgroup may be gone when the capture ends.
"""

import contextlib
import os
import time
from pathlib import Path

from isoblk.schedulers import registry
from isoblk.trace.record import Array

# The files that a run writes, and that of the kernel's former CFQ.
WEIGHT_FILES = (*registry.WEIGHT_FILES, "blkio.weight")
# Least time between two walks of the tree.
_PAUSE_S = 0.1


class Cgroups:
    """The cgroups of a hierarchy. root: its mount point. device: MAJ:MIN of the disk for per-disk
    weights."""

    def __init__(self, root: Path, device: str) -> None:
        self._root = root
        self._device = device
        self._paths = {0: "/", root.stat().st_ino: "/"}
        self._weights: dict[str, dict[str, int]] = {}
        self._missing: set[int] = set()
        self._walked = 0.0

    def learn(self, ids: Array) -> None:
        """Look up the unknown ids."""
        new = set(ids.tolist()) - self._paths.keys()
        if new - self._missing or (new and time.monotonic() > self._walked + _PAUSE_S):
            self._walk(new)
            self._missing = new - self._paths.keys()

    def path(self, number: int) -> str:
        """Return the path below the hierarchy's root.

        If the cgroup was gone at its lookup, or is not visible in this container, return a name
        with its id.
        """
        return self._paths.get(number, f"/cgroup-{number}")

    def weights(self, path: str) -> dict[str, int]:
        """Return file -> weight, at the first event of the cgroup."""
        return self._weights.get(path, {})

    def _walk(self, wanted: set[int]) -> None:
        self._walked = time.monotonic()
        left = [self._root]
        while left:
            directory = left.pop()
            with contextlib.suppress(OSError), os.scandir(directory) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    left.append(Path(entry.path))
                    if entry.inode() in wanted:
                        self._add(entry.inode(), Path(entry.path))

    def _add(self, number: int, directory: Path) -> None:
        path = directory.relative_to(self._root)
        self._paths[number] = f"/{path}"
        # A weight is relative to siblings, so the ancestors' weights are needed too.
        for one in (path, *path.parents):
            if one != Path() and f"/{one}" not in self._weights:
                self._weights[f"/{one}"] = self._read(self._root / one)

    def _read(self, directory: Path) -> dict[str, int]:
        found = {}
        for name in WEIGHT_FILES:
            with contextlib.suppress(OSError, ValueError):
                found[name] = weight_of((directory / name).read_text(), self._device)
        return found


def weight_of(text: str, device: str) -> int:
    """Parse a cgroup's weight for a device: "100", or "default 100" and a line for each device with
    another weight.

    Raises:
        ValueError: the text has no weight.
    """
    default = None
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == device:
            return int(words[1])
        if len(words) == 1 or (len(words) == 2 and words[0] == "default"):
            default = int(words[-1])
    if default is None:
        raise ValueError("no weight")
    return default

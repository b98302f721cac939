# SPDX-License-Identifier: GPL-2.0-only
"""Names and weights of cgroups, from the ids that the kernel gives in events.

A cgroup's id is the inode number of its directory. It is looked up when it is first seen, because
the cgroup may be gone when the capture ends.
"""

import contextlib
import os
import time
from pathlib import Path

from isoblk.schedulers import registry
from isoblk.trace.record import Array

# What a run writes, and the one that the kernel's own CFQ had.
WEIGHT_FILES = (*registry.WEIGHT_FILES, "blkio.weight")
# The tree is not walked more often than that, whatever is not found in it.
_PAUSE_S = 0.1


class Cgroups:
    """The cgroups of a hierarchy. root: where it is mounted. device: MAJ:MIN of the disk whose
    weights are looked at."""

    def __init__(self, root: Path, device: str) -> None:
        self._root = root
        self._device = device
        self._paths = {0: "/", root.stat().st_ino: "/"}
        self._weights: dict[str, dict[str, int]] = {}
        self._missing: set[int] = set()
        self._walked = 0.0

    def learn(self, ids: Array) -> None:
        """These occur: find out what they are, if that is not known."""
        new = set(ids.tolist()) - self._paths.keys()
        if new - self._missing or (new and time.monotonic() > self._walked + _PAUSE_S):
            self._walk(new)
            self._missing = new - self._paths.keys()

    def path(self, number: int) -> str:
        """Its path below the root of the hierarchy; a name made of its id, if it was gone when it
        was looked for, or is out of sight in this container."""
        return self._paths.get(number, f"/cgroup-{number}")

    def weights(self, path: str) -> dict[str, int]:
        """File -> weight, as they were when the cgroup was first seen."""
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
        # The weights of those above it say what its own is worth.
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
    """A cgroup's weight for a device, from the text of a file: "100", or "default 100" and a line
    for each device that has another one.

    Raises:
        ValueError: there is none in it.
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

# SPDX-License-Identifier: GPL-2.0-only
"""The mount point of this machine's unified cgroup hierarchy."""

from pathlib import Path

from isoblk.errors import UserError
from isoblk.machine import system


def unified(proc: Path = system.PROC) -> Path:
    """Return the mount point of the unified hierarchy, which must have the io controller.

    Raises:
        UserError: the io controller is on cgroup v1, or this process sees only a part of the
            hierarchy.
    """
    root, version = system.io_hierarchy(proc)
    if version != "v2":
        raise UserError(
            "the io controller is on cgroup v1, where services have no io.weight",
            where=str(root),
            next="boot with systemd.unified_cgroup_hierarchy=1, or write blkio.isoblk.weight",
        )
    if (root / "cgroup.type").exists():
        # The hierarchy's root lacks this file; the root of a container's namespace has it.
        raise UserError(
            "only a container's part of the cgroup hierarchy is visible",
            where=str(root),
            next="run it on the host, or with --cgroupns=host",
        )
    return root

# SPDX-License-Identifier: GPL-2.0-only
"""Where the cgroups of this machine are."""

from pathlib import Path

from isoblk.errors import UserError
from isoblk.machine import system


def unified(proc: Path = system.PROC) -> Path:
    """Where the unified hierarchy is mounted, if the io controller is on it.

    Raises:
        UserError: it is elsewhere, or this process sees a part of the hierarchy alone.
    """
    root, version = system.io_hierarchy(proc)
    if version != "v2":
        raise UserError(
            "the io controller is on cgroup v1 here, where services have no io.weight",
            where=str(root),
            next="boot with systemd.unified_cgroup_hierarchy=1, or write blkio.isoblk.weight",
        )
    if (root / "cgroup.type").exists():
        # The root of all has no such file; that of a container's namespace does.
        raise UserError(
            "this is the part of the hierarchy that a container sees",
            where=str(root),
            next="run it on the host, or with --cgroupns=host",
        )
    return root

# SPDX-License-Identifier: GPL-2.0-only
"""Find the cgroups of tenants that are already running, and their weights."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from isoblk.errors import UserError
from isoblk.machine import system
from isoblk.machine.journal import SubtreeControl, Weights
from isoblk.run.spec import RUNNING, CgroupVersion
from isoblk.schedulers.registry import WEIGHT_FILES
from isoblk.study.model import Study
from isoblk.study.point import program_name

_BY_PROCESS = "pid:"
# v1 counts only where a limit is set.
_LIMIT = "blkio.throttle.read_bps_device"


def found(
    study: Study, hierarchy: Path, cgroup: CgroupVersion, proc: Path = system.PROC
) -> tuple[Study, tuple[str, ...]]:
    """Return the study with paths for the running tenants' cgroups, and these paths.

    Raises:
        UserError: there is no such cgroup or process.
    """
    tenants = list(study.tenant)
    paths = []
    for index, entry in enumerate(tenants):
        if program_name(study, index) != RUNNING:
            continue
        path = entry.cgroup
        if path.startswith(_BY_PROCESS):
            path = _of_process(path.removeprefix(_BY_PROCESS), cgroup, proc)
        if path == "/" or not (hierarchy / path[1:] / "cgroup.procs").exists():
            why = "is the root, which weighs nothing" if path == "/" else "no such cgroup"
            raise UserError(f"tenant {entry.name}: {path}: {why}", where=str(hierarchy))
        tenants[index] = msgspec.structs.replace(entry, cgroup=path)
        paths.append(path)
    return msgspec.structs.replace(study, tenant=tenants), tuple(paths)


def _of_process(pid: str, cgroup: CgroupVersion, proc: Path) -> str:
    try:
        lines = (proc / pid / "cgroup").read_text().splitlines()
    except OSError:
        raise UserError(f"no process {pid}") from None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "blkio" in controllers.split(",") if cgroup == "v1" else not controllers:
            return path
    raise UserError(f"process {pid} is in no cgroup with the io controller")


def changes(
    paths: Sequence[str], hierarchy: Path, cgroup: CgroupVersion, device: str
) -> Iterator[SubtreeControl | Weights]:
    """Yield a run's changes to the cgroups of running tenants and their ancestors.

    Args:
        paths: from the root of the hierarchy.
        hierarchy: the root.
        cgroup: its version.
        device: the disk's number.

    Raises:
        UserError: a cgroup has a weight for this disk, which overrides ours.
    """
    above = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"/"}
    for path in sorted(above):
        control = hierarchy / path[1:] / "cgroup.subtree_control"
        if cgroup == "v2" and "io" not in control.read_text().split():
            yield SubtreeControl(str(control))
    weights = {}
    for path in sorted({*above, *paths}):
        for name in WEIGHT_FILES:
            file = hierarchy / path[1:] / name
            if line := system.line_of(device, file):
                raise UserError(
                    f"has a weight for this disk: {line}",
                    where=str(file),
                    next=f"remove it: echo '{device} default' > {file}",
                )
            weights[str(file)] = _default(file)
    limits = [hierarchy / path[1:] / _LIMIT for path in paths]
    own = [str(file) for file in limits if not system.line_of(device, file)]
    yield Weights(device, weights, own if cgroup == "v1" else [])


def _default(file: Path) -> str:
    try:
        return system.default_weight(file)
    except FileNotFoundError:
        return ""

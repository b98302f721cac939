# SPDX-License-Identifier: GPL-2.0-only
"""Find the programs of a study's tenants before the first run.

Guests see the files of this machine, so its installed programs are also theirs.
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from isoblk.caches.registry import CACHES
from isoblk.errors import UserError
from isoblk.kernel.tools import install_command, missing
from isoblk.layers.registry import layers_of
from isoblk.programs.registry import program_of
from isoblk.run.spec import Installed, RunSpec, Workload
from isoblk.run.tier import UML
from isoblk.study.model import Expansion

_FIO = {"fio": "fio"}
_PARTITIONS = {"addpart": "util-linux", "delpart": "util-linux"}
_MKFS = {
    "ext4": {"mkfs.ext4": "e2fsprogs"},
    "xfs": {"mkfs.xfs": "xfsprogs"},
    "btrfs": {"mkfs.btrfs": "btrfs-progs"},
}


def find_programs(expansion: Expansion) -> Expansion:
    """Return the runs, each with the found programs of its tenants.

    Raises:
        UserError: a program is missing; with the command that installs it.
    """
    runs = [
        msgspec.structs.replace(planned, spec=_with_programs(planned.spec))
        for planned in expansion.runs
    ]
    return msgspec.structs.replace(expansion, runs=tuple(runs))


def tools_of(spec: RunSpec) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the programs that set up a run and are not part of its id: what needs them, and the
    programs with their packages."""
    if spec.caching:
        needs = {**_PARTITIONS, **CACHES[spec.caching.cache].needs()}
        if spec.caching.placement == "scattered":
            needs["dmsetup"] = "dmsetup"
        yield f'cache = "{spec.caching.cache}"', needs
    for layer in layers_of(spec.stack):
        yield f'the layer "{layer.name}"', dict(layer.needs())
    if spec.filesystem:
        yield "[filesystem]", _PARTITIONS | _MKFS[spec.filesystem.type]


def _with_programs(spec: RunSpec) -> RunSpec:
    for who, needs in tools_of(spec):
        _require(needs, who)
    tenants = [
        msgspec.structs.replace(
            tenant,
            workload=msgspec.structs.replace(
                tenant.workload, installed=_find(tenant.workload, f"tenant {tenant.name}")
            ),
        )
        for tenant in spec.tenants
    ]
    return msgspec.structs.replace(spec, tenants=tuple(tenants))


def _find(load: Workload, who: str) -> tuple[Installed, ...]:
    if load.program == "fio":
        return _require(_FIO, who)
    program = program_of(load)
    if program is None:
        return ()
    needs = program.needs(load.options)
    instead = program.instead(load.options)
    replaced = instead and missing(needs, UML.path) and not missing(instead, UML.path)
    found = _require(instead if replaced else needs, who)
    files = program.files(load.options)
    return (*found, *(_identity(name, path) for name, path in files.items()))


def _require(needs: Mapping[str, str], who: str) -> tuple[Installed, ...]:
    if absent := missing(needs, UML.path):
        raise UserError(
            f"{who} needs {', '.join(absent)}, not found",
            next=install_command(list(absent.values())),
        )
    return tuple(
        _identity(Path(name).name, Path(shutil.which(name, path=UML.path) or "")) for name in needs
    )


def _identity(name: str, path: Path) -> Installed:
    return Installed(name=name, sha256=_digest(path))


@lru_cache
def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

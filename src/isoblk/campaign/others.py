# SPDX-License-Identifier: GPL-2.0-only
"""The modules of a study's own schedulers, found among those that the command line names."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET

from isoblk.campaign.execute import KERNELS_MODULES
from isoblk.campaign.trial import MODULES
from isoblk.errors import UserError
from isoblk.run.spec import PlannedRun, Scheduler
from isoblk.study.model import Expansion

RESERVED = frozenset({*MODULES, *KERNELS_MODULES})
"""Names of modules that runs load besides."""


def with_modules(
    expansion: Expansion, modules: Mapping[str, Path]
) -> tuple[Expansion, dict[str, Path]]:
    """The runs, each with the hash of the module that it loads, so that a new one is a new run.

    Args:
        expansion: a study's runs.
        modules: by their names, those that are not of this repository.

    Returns:
        The runs, and those of the modules that they load.

    Raises:
        UserError: a module is missing, or has the name of one that the lab has itself.
    """
    wanted = others_wanted(expansion)
    if missing := sorted(wanted - modules.keys()):
        raise UserError(
            f"nobody has said where the module {missing[0]} is",
            next="add --module FILE.ko, or --module DIR with its sources",
        )
    if taken := sorted(wanted & RESERVED):
        raise UserError(f"the lab has a module {taken[0]} itself", next="give yours another name")
    used = {name: modules[name] for name in wanted}
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in used.items()}
    runs = tuple(_with_hash(planned, hashes) for planned in expansion.runs)
    return msgspec.structs.replace(expansion, runs=runs), used


def others_wanted(expansion: Expansion) -> set[str]:
    """Names of the modules that a study's own schedulers have."""
    return {
        planned.spec.scheduler.elsewhere.module
        for planned in expansion.runs
        if planned.spec.scheduler.elsewhere is not UNSET
    } - {""}


def _with_hash(planned: PlannedRun, hashes: Mapping[str, str]) -> PlannedRun:
    scheduler: Scheduler = planned.spec.scheduler
    if scheduler.elsewhere is UNSET or not scheduler.elsewhere.module:
        return planned
    elsewhere = msgspec.structs.replace(
        scheduler.elsewhere, sha256=hashes[scheduler.elsewhere.module]
    )
    scheduler = msgspec.structs.replace(scheduler, elsewhere=elsewhere)
    spec = msgspec.structs.replace(planned.spec, scheduler=scheduler)
    return msgspec.structs.replace(planned, spec=spec)

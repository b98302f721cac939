# SPDX-License-Identifier: GPL-2.0-only
"""The modules of a study's own schedulers, found among those that the command line names."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET

from isoblk.errors import UserError
from isoblk.run.spec import PlannedRun, Scheduler
from isoblk.study.model import Expansion


def with_modules(expansion: Expansion, modules: Mapping[str, Path]) -> Expansion:
    """The runs, each with the hash of the module that it loads, so that a new one is a new run.

    Args:
        expansion: a study's runs.
        modules: by their names, those that are not of this repository.

    Raises:
        UserError: a module is missing, or is of no scheduler of the study.
    """
    wanted = {
        planned.spec.scheduler.elsewhere.module
        for planned in expansion.runs
        if planned.spec.scheduler.elsewhere is not UNSET
    } - {""}
    if missing := sorted(wanted - modules.keys()):
        raise UserError(
            f"nobody has said where the module {missing[0]} is",
            next="add --module FILE.ko, or --module DIR with its sources",
        )
    if unknown := sorted(modules.keys() - wanted):
        raise UserError(
            f"no scheduler of the study has the module {unknown[0]}",
            where=str(modules[unknown[0]]),
            next="name it in [schedulers.NAME], or leave it out",
        )
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in modules.items()}
    return msgspec.structs.replace(
        expansion, runs=tuple(_with_hash(planned, hashes) for planned in expansion.runs)
    )


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

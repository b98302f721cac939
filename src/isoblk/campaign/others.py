# SPDX-License-Identifier: GPL-2.0-only
"""Find the modules of a study's own schedulers among those of the command line."""

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
"""Names of all other modules that runs load."""


def with_modules(
    expansion: Expansion, modules: Mapping[str, Path]
) -> tuple[Expansion, dict[str, Path]]:
    """Return the runs, each with the hash of its module, so that a new module makes a new run.

    Args:
        expansion: a study's runs.
        modules: modules from outside this repository, by name.

    Returns:
        The runs, and the modules that they load.

    Raises:
        UserError: a module is missing, or has the name of a module of the lab.
    """
    wanted = others_wanted(expansion)
    if missing := sorted(wanted - modules.keys()):
        given = f"; --module gives {', '.join(sorted(modules))}" if modules else ""
        raise UserError(
            f"the module {missing[0]} is not given{given}",
            next="add --module FILE.ko, or --module DIR with its sources",
        )
    if taken := sorted(wanted & RESERVED):
        raise UserError(f"{taken[0]} is the name of a module of the lab", next="rename your module")
    used = {name: modules[name] for name in wanted}
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in used.items()}
    runs = tuple(_with_hash(planned, hashes) for planned in expansion.runs)
    return msgspec.structs.replace(expansion, runs=runs), used


def others_wanted(expansion: Expansion) -> set[str]:
    """Return the module names of a study's own schedulers."""
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

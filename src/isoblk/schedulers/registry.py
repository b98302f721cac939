# SPDX-License-Identifier: GPL-2.0-only
"""The schedulers that a study can name."""

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET

from isoblk.run.field import FieldError
from isoblk.run.spec import Scheduler
from isoblk.schedulers.base import SchedulerKind
from isoblk.schedulers.bfq import Bfq
from isoblk.schedulers.cfq import Cfq
from isoblk.schedulers.controller import Controller
from isoblk.schedulers.feedbac import Feedbac
from isoblk.schedulers.io_cost import IoCost
from isoblk.schedulers.io_latency import IoLatency
from isoblk.schedulers.io_max import IoMax
from isoblk.schedulers.isoblk import Isoblk
from isoblk.schedulers.kyber import Kyber
from isoblk.schedulers.kyber_fair import KyberFair
from isoblk.schedulers.mq_deadline import MqDeadline
from isoblk.schedulers.none import NoScheduler
from isoblk.schedulers.other import Other, OtherTable, other

SCHEDULERS: Final[Mapping[str, SchedulerKind]] = {
    kind.name: kind
    for kind in (
        *(NoScheduler(), MqDeadline(), Kyber(), Bfq()),
        *(IoCost(), IoMax(), IoLatency()),
        *(Isoblk(), KyberFair(), Feedbac(), Cfq()),
    )
}
ELEVATORS: Final = tuple(
    kind.name for kind in SCHEDULERS.values() if not isinstance(kind, Controller)
)
"""Schedulers that a disk can change to, and from, under load."""
OWN_MODULES: Final = tuple(
    dict.fromkeys(module for kind in SCHEDULERS.values() for module in kind.modules)
)
"""This repository's modules of schedulers, in order of loading."""
WEIGHT_FILES: Final = tuple(
    dict.fromkeys(file for kind in SCHEDULERS.values() for file in kind.weight_files.values())
)
"""All files for the weight of a cgroup."""


def kind_of(scheduler: Scheduler) -> SchedulerKind:
    """Return the kind of a run's scheduler."""
    if scheduler.elsewhere is not UNSET:
        return Other(scheduler.name, scheduler.elsewhere, scheduler.elevator)
    return SCHEDULERS[scheduler.name]


def kinds(others: Mapping[str, OtherTable]) -> dict[str, SchedulerKind]:
    """Return all schedulers that a study can name: the built-in ones, and its own.

    Raises:
        FieldError: the name of an own one is taken, or its table is invalid.
    """
    for name in others:
        if name in SCHEDULERS:
            raise FieldError(
                ("schedulers", name),
                "is the name of a built-in scheduler",
                next="choose another name",
            )
    return {**SCHEDULERS, **{name: other(name, table) for name, table in others.items()}}

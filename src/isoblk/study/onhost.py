# SPDX-License-Identifier: GPL-2.0-only
"""Adapt a study to the host machine: the command line's disk, fio instead of the lab's generator,
and the machine's version of cgroups."""

from collections.abc import Collection
from typing import TypeVar

import msgspec
from msgspec import UNSET

from isoblk.errors import UserError
from isoblk.layers.registry import NO_STACK
from isoblk.run.field import FieldError
from isoblk.run.spec import SCHEDULER, CgroupVersion, HostDevice
from isoblk.schedulers.registry import kinds
from isoblk.study.model import Study, WorkloadFields
from isoblk.study.point import applies
from isoblk.study.text import Source

# Fields that the command line and the machine determine, by the first words of a matrix key.
_FIXED = {
    "device": "the host machine has the one device that the command line names",
    "run.cgroup": "the host machine has its own version of cgroups",
    "stack": "the host machine makes no layers",
}
_CPUTIME = "cputime"

LoadT = TypeVar("LoadT", bound=WorkloadFields)


def on_host(
    study: Study,
    source: Source,
    device: HostDevice,
    cgroup: CgroupVersion,
    elevators: Collection[str],
) -> tuple[Study, list[str]]:
    """Return the study on this machine, and notes on the differences.

    Args:
        study: as checked for the lab.
        source: its file, for lines.
        device: replaces the study's.
        cgroup: version of the hierarchy with the io controller.
        elevators: values of queue/scheduler.

    Raises:
        UserError: it varies a field that the host machine cannot vary, or none of its schedulers is
            available.
    """
    try:
        _refuse(study)
    except FieldError as error:
        raise source.locate(error) from None
    notes = []
    absent = {
        name: why
        for name in _schedulers(study)
        if (why := _why_not(name, study, cgroup, elevators))
    }
    for why in dict.fromkeys(absent.values()):
        names = [name for name, reason in absent.items() if reason == why]
        notes.append(f"left out: {', '.join(names)}: {why}")
    if len(absent) == len(_schedulers(study)):
        raise UserError("this machine has no scheduler of the study: " + "; ".join(notes))
    if _spends_cputime(study):
        notes.append(
            "cputime is not used: on the host machine the cost of a request is not modelled"
        )
    if study.run.repeats == 1:
        notes.append(
            "results vary on the host machine, and with run.repeats = 1 there is no confidence"
            " interval and no verdict"
        )
    return _adapted(study, device, cgroup, absent), notes


def _refuse(study: Study) -> None:
    for key in study.matrix:
        for start, why in _FIXED.items():
            if key == start or key.startswith(f"{start}."):
                raise FieldError(("matrix", key), why, next="remove it, or use another machine")
        if key.rpartition(".")[2] == _CPUTIME:
            raise FieldError(
                ("matrix", key),
                "on the host machine the cost of a request is not modelled",
                next="remove it, or use another machine",
            )
    if study.ssd is not None:
        raise FieldError(
            ("ssd",), "the host machine has no caches", next="use the uml machine, or isoblk cache"
        )
    if study.stack != NO_STACK:
        raise FieldError(
            ("stack",),
            "the host machine makes no layers",
            next="use the uml machine, or make them and run on the uppermost device",
        )
    for index, entry in enumerate(study.event):
        if entry.device:
            raise FieldError(
                ("event", index, "device"),
                "a real device does not change at will",
                next="remove the event, or use another machine",
            )


def _schedulers(study: Study) -> list[str]:
    return [str(name) for name in study.matrix.get(SCHEDULER, [study.scheduler])]


def _why_not(name: str, study: Study, cgroup: CgroupVersion, elevators: Collection[str]) -> str:
    kind = kinds(study.schedulers)[name]
    if kind.v2_only and cgroup != "v2":
        return "needs the io controller on cgroup v2, and here it is on v1"
    if kind.elevator not in elevators:
        return f"the kernel has no elevator {kind.elevator} for this device"
    return ""


def _spends_cputime(study: Study) -> bool:
    return any(one.cputime is not UNSET for one in (study.workload, *study.tenant))


def _adapted(
    study: Study, device: HostDevice, cgroup: CgroupVersion, absent: Collection[str]
) -> Study:
    left = [name for name in _schedulers(study) if name not in absent]
    # Settings of absent schedulers are removed with them.
    matrix = {
        key: values
        for key, values in study.matrix.items()
        if any(applies(key, name) for name in left)
    }
    if SCHEDULER in matrix:
        matrix[SCHEDULER] = list(left)
    tenants = [_by_fio(entry, inherited=True) for entry in study.tenant]
    if not any(kinds(study.schedulers)[name].target_file for name in left):
        tenants = [msgspec.structs.replace(entry, latency_target=0) for entry in tenants]
    spoken_of = [
        claim
        for claim in study.claim
        if not {claim.where.get(SCHEDULER), claim.than.get(SCHEDULER)} & set(absent)
        and matrix.keys() >= {*claim.where, *claim.than} - {SCHEDULER}
    ]
    return msgspec.structs.replace(
        study,
        device=msgspec.to_builtins(device),
        run=msgspec.structs.replace(study.run, cgroup=cgroup),
        workload=_by_fio(study.workload, inherited=False),
        tenant=tenants,
        matrix=matrix,
        claim=spoken_of,
    )


def _by_fio(load: LoadT, *, inherited: bool) -> LoadT:
    """Return the load with fio instead of the lab's generator. inherited: unset options come from
    [workload]."""
    program = load.workload
    if program == "blkload" or (program is UNSET and not inherited):
        program = "fio"
    return msgspec.structs.replace(load, workload=program, cputime=UNSET, cpus=UNSET)

# SPDX-License-Identifier: GPL-2.0-only
"""An elevator that a study brings along: [schedulers.NAME]."""

import re
from typing import Annotated

import msgspec

from isoblk.run.field import Field, FieldError
from isoblk.run.options import said
from isoblk.run.spec import Elsewhere, Scheduler
from isoblk.schedulers.base import Asked, SchedulerKind

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}", re.ASCII)
# queue/scheduler takes 15 characters (ELV_NAME_MAX).
_ELEVATOR = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,14}", re.ASCII)
_WEIGHT_FILE = re.compile(r"(io|blkio)(\.[a-z0-9_]{1,32})?\.weight", re.ASCII)


class OtherTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[schedulers.NAME]: an elevator that is neither the kernel's nor isoblk's.

    module: its kernel module, whose path is on the command line (run --module); "": the kernel has
    the elevator. elevator: value of queue/scheduler; default NAME.
    weight_file: of a cgroup: "io.NAME.weight" or, on cgroup v1, "blkio.NAME.weight"; "": no
    weights.
    """

    module: Annotated[
        str, said("The kernel module, whose path run --module sets; none: built into the kernel.")
    ] = ""
    elevator: Annotated[str, said("Value of queue/scheduler; default: the table's name.")] = ""
    weight_file: Annotated[
        str, said('The cgroup file for weights: "io.NAME.weight"; none: no weights.')
    ] = ""


class Other(SchedulerKind):
    """Such an elevator, with unknown tunables."""

    def __init__(self, name: str, elsewhere: Elsewhere, elevator: str) -> None:
        self.name = name
        self.elevator = elevator
        self.modules = (elsewhere.module,) if elsewhere.module else ()
        self.tunables = {}
        if elsewhere.weight_file:
            version = "v2" if elsewhere.weight_file.startswith("io.") else "v1"
            self.weight_files = {version: elsewhere.weight_file}
        self._elsewhere = elsewhere

    def check_beside_running(self, scheduler: Scheduler, tenant: Field) -> None:
        """Refuse: isoblk cannot restore the weights that running tenants have in it."""
        raise FieldError(
            tenant,
            f"{self.name} is the study's own, and its changes could not be undone",
            next=f"remove {self.name}",
        )

    def make(self, asked: Asked) -> Scheduler:
        """Return the elevator with its origin."""
        return msgspec.structs.replace(super().make(asked), elsewhere=self._elsewhere)


def other(name: str, table: OtherTable) -> Other:
    """Return the scheduler's kind for a study's table.

    Raises:
        FieldError: the cause, and the allowed values.
    """
    field: Field = ("schedulers", name)
    if not _NAME.fullmatch(name):
        raise FieldError(
            field,
            f"{name!r} is not a name for a scheduler",
            next="allowed: letters, digits, '_', '-', up to 63",
        )
    elevator = table.elevator or name
    if not _ELEVATOR.fullmatch(elevator):
        raise FieldError(
            (*field, "elevator") if table.elevator else field,
            f"{elevator!r} is not the name of an elevator",
            next="allowed: letters, digits, '_', '-', up to 15",
        )
    if table.module and not _NAME.fullmatch(table.module):
        raise FieldError(
            (*field, "module"),
            f"{table.module!r} is not the name of a module",
            next="give its name without path and .ko; set the path with run --module",
        )
    if table.weight_file and not _WEIGHT_FILE.fullmatch(table.weight_file):
        raise FieldError(
            (*field, "weight_file"),
            f"{table.weight_file!r} is not the name of a cgroup's file",
            next='allowed: "io.NAME.weight", on cgroup v1 "blkio.NAME.weight"',
        )
    return Other(name, Elsewhere(module=table.module, weight_file=table.weight_file), elevator)

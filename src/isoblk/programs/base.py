# SPDX-License-Identifier: GPL-2.0-only
"""What a program must tell of itself so that a tenant can run it: docs/guides/programs.md.

blkload and fio are not of this kind: they write to the device, and what they did is read from
their own output. A program works on files, and what its tenant did to the device is what the
kernel charged to the tenant's cgroup; what the program says of itself is shown beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from isoblk.programs.blkload import ramp_and_runtime
from isoblk.run.field import FieldError, dotted
from isoblk.run.options import OptionError
from isoblk.run.record import Figure
from isoblk.run.shell import Statement
from isoblk.run.spec import Options, RunSpec, Tenant
from isoblk.run.typed import convert
from isoblk.run.units import parse_size

StructT = TypeVar("StructT", bound=msgspec.Struct)


@dataclass(frozen=True)
class Task:
    """A tenant's program in a run.

    Attributes:
        tenant: whose it is.
        spec: the run.
        run: the run's directory, as seen from where the program works.
    """

    tenant: Tenant
    spec: RunSpec
    run: str

    @property
    def options(self) -> Options:
        """The program's own."""
        return self.tenant.workload.options

    @property
    def seconds(self) -> float:
        """How long it is to run, if it is told: warm-up and measured time, less its delay."""
        ramp, runtime = ramp_and_runtime(self.tenant.workload, self.spec)
        return (ramp + runtime) / 1e9

    @property
    def whole_seconds(self) -> int:
        """The same for programs that count whole seconds: so that they end rather before the
        others than after them."""
        return max(1, int(self.seconds))

    @property
    def seed(self) -> int:
        """For the program's random numbers; programs take up to 31 bits."""
        return self.tenant.workload.randseed & 0x7FFFFFFF or 1

    @property
    def found(self) -> frozenset[str]:
        """Those of the programs it can use that were found; empty where nobody has looked."""
        return frozenset(one.name for one in self.tenant.workload.installed)


class Program:
    """One program; `name` is what a study calls it, `own_options` are those that it takes, or None
    if it takes its own flags.

    Its commands are executed in the tenant's own directory, where nothing else is. Its options are
    data from others, and on the host machine it runs as root: check() lets none pass that names a
    file elsewhere, or a command.
    """

    name: str
    own_options: type[msgspec.Struct] | None = None

    def needs(self, options: Options) -> Mapping[str, str]:
        """Executables that it cannot run without, and the Debian packages that hold them."""
        raise NotImplementedError

    def instead(self, options: Options) -> Mapping[str, str]:
        """What it uses where those of needs() are missing; empty: nothing will do."""
        return {}

    def files(self, options: Options) -> Mapping[str, Path]:
        """Files that it needs besides, by the name that they have in TASK.run/files.

        Raises:
            UserError: one is missing, and cannot be had.
        """
        return {}

    def check(self, options: Options) -> None:
        """Check the options.

        Raises:
            OptionError: one is unknown, or has a value that cannot be used.
        """
        raise NotImplementedError

    def timed(self, options: Options) -> bool:
        """Whether it ends when its time is over, and not when its work is done."""
        return True

    def prepare(self, task: Task) -> list[Statement]:
        """Commands that make its files, before the run and not measured."""
        return []

    def command(self, task: Task) -> Statement:
        """The command that is measured, a list in braces if need be. What it prints is kept."""
        raise NotImplementedError

    def parse(self, text: str, task: Task) -> list[Figure]:
        """What it printed.

        Raises:
            ValueError: it is not what the program prints.
        """
        raise NotImplementedError


def read_options(options: Options, kind: type[StructT]) -> StructT:
    """Options of a program that has a fixed set of them.

    Raises:
        OptionError: one is unknown, missing or of the wrong type, or a word that is not allowed.
    """
    try:
        return convert(options, kind)
    except FieldError as error:
        cause = error.cause.replace("unknown field", "unknown option")
        raise OptionError(dotted(error.field), cause, next=error.next) from None


def size_of(option: str, value: str | int) -> int:
    """Bytes, of an option that is a size.

    Raises:
        OptionError: it is none, or 0.
    """
    try:
        size = parse_size(value)
    except ValueError as error:
        raise OptionError(option, str(error), next="allowed: 4096, 64k, 16m, 1g") from None
    if not size:
        raise OptionError(option, "0 bytes", next="allowed: 4096, 64k, 16m, 1g")
    return size

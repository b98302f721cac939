# SPDX-License-Identifier: GPL-2.0-only
"""The interface of a program that a tenant can run: docs/guides/programs.md.

blkload and fio are not such programs: they write to the device, and have their own output formats.
A program works on files. Its tenant's I/O is what the kernel charged to the tenant's cgroup; the
program's own figures are shown in addition.
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
        tenant: the tenant.
        spec: the run.
        run: the run's directory, as the program sees it.
    """

    tenant: Tenant
    spec: RunSpec
    run: str

    @property
    def options(self) -> Options:
        """Return the program's own options."""
        return self.tenant.workload.options

    @property
    def seconds(self) -> float:
        """Return the time to run: warm-up and measured time, less the tenant's delay."""
        ramp, runtime = ramp_and_runtime(self.tenant.workload, self.spec)
        return (ramp + runtime) / 1e9

    @property
    def whole_seconds(self) -> int:
        """Return the time in whole seconds, rounded down, so that the program ends before the
        others."""
        return max(1, int(self.seconds))

    @property
    def seed(self) -> int:
        """Return the seed of the program's random numbers; programs take up to 31 bits."""
        return self.tenant.workload.randseed & 0x7FFFFFFF or 1

    @property
    def found(self) -> frozenset[str]:
        """Return the installed programs that it can use; empty before they are looked up."""
        return frozenset(one.name for one in self.tenant.workload.installed)


class Program:
    """A program. `name` is its name in studies; `own_options` are its options, or None if it takes
    its own flags.

    Its commands are executed in the tenant's own, empty directory. Its options are untrusted input,
    and on the host machine it runs as root: check() must refuse those that name a file elsewhere,
    or a command.
    """

    name: str
    own_options: type[msgspec.Struct] | None = None

    def needs(self, options: Options) -> Mapping[str, str]:
        """Return required executables, and the Debian packages that contain them."""
        raise NotImplementedError

    def instead(self, options: Options) -> Mapping[str, str]:
        """Return replacements of missing executables of needs(); empty without one."""
        return {}

    def files(self, options: Options) -> Mapping[str, Path]:
        """Return further files that it needs, by their names in TASK.run/files.

        Raises:
            UserError: a file is missing, and cannot be made.
        """
        return {}

    def check(self, options: Options) -> None:
        """Check the options.

        Raises:
            OptionError: an option is unknown, or has an invalid value.
        """
        raise NotImplementedError

    def timed(self, options: Options) -> bool:
        """Return whether it ends after its time, not after an amount of work."""
        return True

    def prepare(self, task: Task) -> list[Statement]:
        """Return the commands that make its files, before the run and not measured."""
        return []

    def command(self, task: Task) -> Statement:
        """Return the measured command, a list in braces if necessary. Its output is kept."""
        raise NotImplementedError

    def parse(self, text: str, task: Task) -> list[Figure]:
        """Parse its output.

        Raises:
            ValueError: it is not the output of the program.
        """
        raise NotImplementedError


def read_options(options: Options, kind: type[StructT]) -> StructT:
    """Return the options of a program with a fixed set of them.

    Raises:
        OptionError: an option is unknown, missing or of the wrong type, or a word that is not
            allowed.
    """
    try:
        return convert(options, kind)
    except FieldError as error:
        cause = error.cause.replace("unknown field", "unknown option")
        raise OptionError(dotted(error.field), cause, next=error.next) from None


def size_of(option: str, value: str | int) -> int:
    """Return the bytes of an option that is a size.

    Raises:
        OptionError: it is not a size, or is 0.
    """
    try:
        size = parse_size(value)
    except ValueError as error:
        raise OptionError(option, str(error), next="allowed: 4096, 64k, 16m, 1g") from None
    if not size:
        raise OptionError(option, "0 bytes", next="allowed: 4096, 64k, 16m, 1g")
    return size

# SPDX-License-Identifier: GPL-2.0-only
"""What a scheduler must tell of itself so that a study can name it: docs/concepts/schedulers.md."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from isoblk.run import limits
from isoblk.run.field import Field
from isoblk.run.limits import Range
from isoblk.run.setting import Form, Setting
from isoblk.run.shell import ForDevice
from isoblk.run.spec import CgroupVersion, Scheduler, Workload
from isoblk.run.tier import Place

Tunables = dict[str, int | str]
"""Files below queue/iosched, and what is written to them."""


@dataclass(frozen=True)
class Asked:
    """What a study says at one point of its matrix that a scheduler may look at.

    Attributes:
        table: the study's table that this scheduler alone reads, if it has one.
        iosched: the study's tunables of this scheduler.
        targets: gives by when a request of a tenant is to have ended, microseconds, by the tenant's
            name; of those that have a target of their own.
        shares: gives each tenant's part of the whole by weight, by its name.
        no_calibration: why the disk cannot be calibrated, in words; "" if it can.
    """

    table: msgspec.Struct | None = None
    iosched: Tunables = field(default_factory=dict)
    targets: Callable[[], dict[str, int]] = dict
    shares: Callable[[], Mapping[str, float]] = dict
    no_calibration: str = ""


@dataclass(frozen=True)
class Measurement:
    """A load alone on the device that a scheduler takes a figure from.

    Attributes:
        load: what is run.
        op: whose rate it is: "read" or "write".
        unit: of the rate, a second: "bytes" or "ios".
        warmup_ns: for how long the load runs before its rate is measured.
    """

    load: Workload
    op: str
    unit: str
    warmup_ns: int = 0


@dataclass(frozen=True)
class Measured:
    """What the runs have shown that a scheduler needs first.

    Attributes:
        figures: of its measurements, by their names; None if they were not made.
        totals: bytes read and written a second by the run under `none`; None if it has not ended.
        shares: each tenant's part of the whole by weight, by its name.
    """

    figures: Mapping[str, int] | None
    totals: tuple[int, int] | None
    shares: Mapping[str, float]


class SchedulerKind:
    """One scheduler, or a controller that works on top of `none`.

    Attributes:
        name: as a study calls it.
        elevator: what goes to queue/scheduler.
        modules: this repository's kernel modules that it needs, in the order in which they load.
        weight_files: by the version of cgroups, the file that takes a cgroup's weight.
        target_file: the file that takes a cgroup's latency target, "" if there is none.
        weights: the weights that it takes.
        blkio_policy: the policy that counts on cgroup v1 what a cgroup did, "" if it has none.
        tunables: ranges of its files below queue/iosched; None if it has no such files. What is
            not named there is a number of 32 bits, or a word.
        tunable_words: by file below queue/iosched that takes no number, what it takes, in words.
        tunable_forms: by file below queue/iosched, how it reads back if not as written.
        table: the study's table that it alone reads, "" if there is none.
        v2_only: it is there on cgroup v2 only.
        fixed_weights: it turns a weight into a cap or a target when the run begins, so that there
            is no weight to change, and none of a cgroup that holds others.
        one_disk: it limits what a cgroup does to one disk, and of a cache's two it is not clear
            which.
        divides_tags: it divides the scheduler's tags among groups, and needs enough of them.
        predicts: it leaves a history of what it predicted.
        measured_first: what its measurements are, in words; "" if there are none.
        after_none: what it takes from the run under `none` at the same point, in words; "" for
            nothing.
    """

    name: str
    elevator: str
    modules: tuple[str, ...] = ()
    weight_files: Mapping[str, str] = {}
    target_file: str = ""
    weights: Range = limits.WEIGHT
    blkio_policy: str = ""
    tunables: Mapping[str, Range] | None = None
    tunable_words: Mapping[str, str] = {}
    tunable_forms: Mapping[str, Form] = {}
    table: str = ""
    v2_only: bool = False
    fixed_weights: bool = False
    one_disk: bool = False
    divides_tags: bool = False
    predicts: bool = False
    measured_first: str = ""
    after_none: str = ""

    def check(self, table: msgspec.Struct) -> None:
        """Check the study's table that is this scheduler's.

        Raises:
            FieldError: what is wrong, and what is allowed.
        """

    def check_tunables(self, iosched: Tunables) -> None:
        """Check what ranges do not say of the study's tunables of this scheduler.

        Raises:
            FieldError: what is wrong, and what is allowed.
        """

    def check_beside_running(self, scheduler: Scheduler, tenant: Field) -> None:
        """Check that it can divide a disk that is in use by a tenant which is running already.

        Args:
            scheduler: of the run.
            tenant: where the study names that tenant.

        Raises:
            FieldError: it cannot.
        """

    def make(self, asked: Asked) -> Scheduler:
        """The scheduler of a run. What other runs must give first is None."""
        return Scheduler(name=self.name, elevator=self.elevator, iosched=asked.iosched)

    def measurements(self, scheduler: Scheduler) -> Mapping[str, Measurement]:
        """What is to be measured of the device before a run with this scheduler can be made."""
        return {}

    def complete(self, scheduler: Scheduler, measured: Measured) -> Scheduler:
        """The scheduler with what was measured filled in.

        Raises:
            ValueError: what is needed is not there.
        """
        return scheduler

    def device_settings(self, scheduler: Scheduler, place: Place) -> Iterator[Setting]:
        """Set it up for the disk, once queue/scheduler and its tunables are written."""
        return iter(())

    def tenant_settings(
        self, scheduler: Scheduler, tenant: str, directory: str, cgroup: CgroupVersion
    ) -> Iterator[Setting]:
        """Set it up for one tenant, but for its weight. directory: of the tenant's cgroup."""
        return iter(())


def pairs(values: Mapping[str, int | float | str]) -> ForDevice:
    """NAME=VALUE pairs for the one device, as the files of cgroups take them."""
    return ForDevice(" ".join(f"{name}={value}" for name, value in values.items()))

# SPDX-License-Identifier: GPL-2.0-only
"""The interface of a scheduler that a study can name: docs/concepts/schedulers.md."""

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
"""Files below queue/iosched, and the values to write."""


@dataclass(frozen=True)
class Asked:
    """A study's settings at one point of its matrix that concern a scheduler.

    Attributes:
        table: the study's table that only this scheduler reads, if there is one.
        iosched: the study's tunables of this scheduler.
        targets: returns the tenants' own latency targets, microseconds, by name.
        shares: returns each tenant's share by weight, by name.
        no_calibration: why the disk cannot be calibrated; "" if it can.
    """

    table: msgspec.Struct | None = None
    iosched: Tunables = field(default_factory=dict)
    targets: Callable[[], dict[str, int]] = dict
    shares: Callable[[], Mapping[str, float]] = dict
    no_calibration: str = ""


@dataclass(frozen=True)
class Measurement:
    """A load alone on the device that gives a scheduler a figure.

    Attributes:
        load: the load.
        op: whose rate counts: "read" or "write".
        unit: of the rate per second: "bytes" or "ios".
        warmup_ns: time of the load before the measurement.
    """

    load: Workload
    op: str
    unit: str
    warmup_ns: int = 0


@dataclass(frozen=True)
class Measured:
    """Results of other runs that a scheduler needs.

    Attributes:
        figures: of its measurements, by name; None if they were not made.
        totals: bytes read and written per second by the run under `none`; None before its end.
        shares: each tenant's share by weight, by name.
    """

    figures: Mapping[str, int] | None
    totals: tuple[int, int] | None
    shares: Mapping[str, float]


class SchedulerKind:
    """A scheduler, or a controller that works on top of `none`.

    Attributes:
        name: in studies.
        elevator: value of queue/scheduler.
        modules: this repository's kernel modules that it needs, in order of loading.
        weight_files: by version of cgroups, the file for a cgroup's weight.
        target_file: the file for a cgroup's latency target, "" without one.
        weights: range of the weights.
        blkio_policy: the policy that counts a cgroup's I/O on cgroup v1, "" without one.
        tunables: ranges of its files below queue/iosched; None without such files. Files that are
            not listed take a 32-bit number or a word.
        tunable_words: by file below queue/iosched that takes no number, a description of its
            values.
        tunable_forms: by file below queue/iosched, the format in which it reads back, if not as
            written.
        table: the study's table that only this scheduler reads, "" without one.
        v2_only: whether it needs cgroup v2.
        fixed_weights: whether weights become caps or targets at the start of the run. Then a weight
            cannot change, and a cgroup with children has none.
        one_disk: whether it limits a cgroup's I/O to one disk, which is ambiguous for the two disks
            of a cache.
        divides_tags: whether it divides the scheduler's tags among groups, and needs enough of
            them.
        predicts: whether it records a history of predictions.
        measured_first: description of its measurements; "" without any.
        after_none: description of the values that it takes from the run under `none` at the same
            point; "" without any.
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
        """Check the study's table of this scheduler.

        Raises:
            FieldError: the cause, and the allowed values.
        """

    def check_tunables(self, iosched: Tunables) -> None:
        """Check the study's tunables of this scheduler beyond their ranges.

        Raises:
            FieldError: the cause, and the allowed values.
        """

    def check_beside_running(self, scheduler: Scheduler, tenant: Field) -> None:
        """Check that it can divide a disk that a running tenant uses.

        Args:
            scheduler: of the run.
            tenant: field of the study with that tenant.

        Raises:
            FieldError: it cannot.
        """

    def make(self, asked: Asked) -> Scheduler:
        """Return the scheduler of a run. Results of other runs are None."""
        return Scheduler(name=self.name, elevator=self.elevator, iosched=asked.iosched)

    def measurements(self, scheduler: Scheduler) -> Mapping[str, Measurement]:
        """Return the measurements of the device that a run with this scheduler needs."""
        return {}

    def complete(self, scheduler: Scheduler, measured: Measured) -> Scheduler:
        """Return the scheduler with the measured values.

        Raises:
            ValueError: a required value is missing.
        """
        return scheduler

    def device_settings(self, scheduler: Scheduler, place: Place) -> Iterator[Setting]:
        """Yield the settings for the disk, after queue/scheduler and its tunables."""
        return iter(())

    def tenant_settings(
        self, scheduler: Scheduler, tenant: str, directory: str, cgroup: CgroupVersion
    ) -> Iterator[Setting]:
        """Yield the settings for one tenant, without its weight. directory: of the tenant's
        cgroup."""
        return iter(())


def pairs(values: Mapping[str, int | float | str]) -> ForDevice:
    """Return NAME=VALUE pairs for the disk, in the format of cgroup files."""
    return ForDevice(" ".join(f"{name}={value}" for name, value in values.items()))

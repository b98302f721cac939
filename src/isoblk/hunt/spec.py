# SPDX-License-Identifier: GPL-2.0-only
"""A hunt as the user writes it, decoded from TOML."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from isoblk import toml
from isoblk.errors import UserError
from isoblk.files import read_text
from isoblk.metrics.base import PER_TENANT, Metric
from isoblk.metrics.registry import METRICS, described
from isoblk.run import limits
from isoblk.run.field import FieldError, suggest, within
from isoblk.run.limits import Range
from isoblk.run.typed import convert
from isoblk.study.text import Source

Values = list[Any]
"""Values of a dimension, the simplest first. A table is merged into the study or the tenant; any
other value is that of the option with the dimension's name."""

# Upper bounds of a round and a batch, which catch typing errors.
_ROUND = Range(0, 100_000)
_BATCH = Range(1, 10_000)
_TENANTS = Range(1, 64)
_FINDS = Range(1, 1_000)


class Objective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[objective]]: a metric to drive to its worst. A tenant's metric without a tenant means the
    worst tenant.

    beyond: least value of a find.
    text: the find in words; {scheduler} is replaced by its name.
    weights: whether it is about weights, and therefore skipped for a scheduler without them.
    """

    metric: str
    beyond: float
    text: str = ""
    weights: bool = False

    @property
    def described(self) -> Metric:
        """Return the metric."""
        return described(self.metric)


class Constraint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[constraint]]: a condition that the run of a find must meet. metric: as of an objective; a
    tenant's metric without a tenant means all tenants."""

    metric: str
    op: Literal["<=", ">="]
    value: float


class Rounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[round]: number of random candidates in a round, and number from the optimiser. batch: number
    requested together, the bound of parallel runs."""

    random: int = 64
    guided: int = 64
    batch: int = 8


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[budget]: bounds of the hunt: runs, or minutes of their CPU time. 0: no limit. Candidates of
    the last round are still shrunk."""

    runs: int = 0
    minutes: float = 0.0


class Dimensions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[space.scheduler.NAME]: dimensions of one scheduler, as in [space]. They replace those of the
    same name in [space]."""

    study: dict[str, Values] = {}
    tenant: dict[str, Values] = {}


class SpaceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[space]: the candidates. tenants: least and greatest number of [[tenant]] tables.

    study, tenant: values of each dimension of the study, or of each tenant, by name.
    scheduler: further dimensions of one scheduler, or replacements.
    region: bytes of the disk that sequential tenants divide.
    """

    tenants: tuple[int, int] = (1, 3)
    region: int | str = "8g"
    study: dict[str, Values] = {}
    tenant: dict[str, Values] = {}
    scheduler: dict[str, Dimensions] = {}


# Behaviour that no fairness definition permits.
OBJECTIVES = (
    Objective(
        metric="denied",
        beyond=0.5,
        text="{scheduler} gives a tenant less than half of what is due to it",
        weights=True,
    ),
    Objective(
        metric="late",
        beyond=5.0,
        text="{scheduler} makes a light tenant wait five times as long as it should, and as it"
        " does without a scheduler",
    ),
    Objective(
        metric="starved",
        beyond=3.0,
        text="{scheduler} gives a tenant nothing for three times as long as any account allows",
    ),
    Objective(
        metric="all_slower",
        beyond=1.5,
        text="{scheduler} makes every tenant slower than without a scheduler, by half or more",
    ),
)


class HuntSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A hunt's file. study: common to all candidates, as in a study. seed: of the draws and the
    optimiser; equal seeds give equal finds. finds: number of each kind after which the kind is no
    longer searched."""

    name: str
    title: str = ""
    description: str = ""
    scheduler: str = ""
    seed: int = 1
    finds: int = 8
    round: Rounds = Rounds()
    budget: Budget = Budget()
    study: dict[str, Any] = {}
    space: SpaceTable
    objective: tuple[Objective, ...] = OBJECTIVES
    constraint: tuple[Constraint, ...] = ()


def load_hunt(path: Path) -> HuntSpec:
    """Read a hunt.

    Raises:
        UserError: the file cannot be read, is not TOML, or is not a hunt; names FILE:LINE, the
            field, the cause and the allowed values.
    """
    text = read_text(path, "the hunt", next="name a TOML file")
    try:
        document = toml.parse(text)
    except ValueError as error:
        raise UserError(f"not TOML: {error}", where=str(path)) from None
    try:
        spec = convert(document, HuntSpec)
        _check(spec)
    except FieldError as error:
        raise Source.of(str(path), text).locate(error) from None
    return spec


def _check(spec: HuntSpec) -> None:
    if not limits.TENANT_NAME.fullmatch(spec.name):
        raise FieldError(
            ("name",),
            f"{spec.name!r} is not a valid name",
            next="allowed: letters, digits, '_', '.', '-'",
        )
    within(("seed",), spec.seed, limits.SEED)
    within(("finds",), spec.finds, _FINDS)
    within(("round", "random"), spec.round.random, _ROUND)
    within(("round", "guided"), spec.round.guided, _ROUND)
    within(("round", "batch"), spec.round.batch, _BATCH)
    if not spec.round.random + spec.round.guided:
        raise FieldError(("round",), "there are no candidates", next="set random, guided or both")
    least, most = spec.space.tenants
    within(("space", "tenants", 0), least, _TENANTS)
    within(("space", "tenants", 1), most, Range(least, _TENANTS.high))
    _check_dimensions(("space",), spec.space)
    for scheduler, own in spec.space.scheduler.items():
        _check_dimensions(("space", "scheduler", scheduler), own)
    if not spec.objective:
        raise FieldError(("objective",), "the list is empty", next="remove it to hunt for all four")
    for index, constraint in enumerate(spec.constraint):
        _check_metric(("constraint", index), constraint.metric)
    for index, one in enumerate(spec.objective):
        _check_metric(("objective", index), one.metric)
        if one.described.better == "neither":
            raise FieldError(
                ("objective", index, "metric"),
                f"{one.metric} has no worse direction",
                next="choose another metric",
            )
        if one.metric in [earlier.metric for earlier in spec.objective[:index]]:
            raise FieldError(
                ("objective", index, "metric"), f"{one.metric} is listed twice", next="remove one"
            )


def _check_dimensions(field: tuple[str | int, ...], of: SpaceTable | Dimensions) -> None:
    for kind, dimensions in (("study", of.study), ("tenant", of.tenant)):
        for name, values in dimensions.items():
            _check_values((*field, kind, name), values)


def _check_values(field: tuple[str | int, ...], values: Values) -> None:
    if not values:
        raise FieldError(field, "has no values", next="list them, the simplest first")


def _check_metric(field: tuple[str | int, ...], name: str) -> None:
    known = [one.removesuffix(PER_TENANT) for one in METRICS]
    if name not in known:
        raise FieldError((*field, "metric"), f"unknown metric {name!r}", next=suggest(name, known))

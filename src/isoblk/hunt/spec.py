# SPDX-License-Identifier: GPL-2.0-only
"""What a hunt is, as a user writes it: decoded from TOML."""

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
"""What a dimension may be, the simplest first. A table is merged into the study, or the tenant; any
other value is that of the option that the dimension is called after."""

# Ours: what one round and one batch may be, so that a slip of the pen is caught.
_ROUND = Range(0, 100_000)
_BATCH = Range(1, 10_000)
_TENANTS = Range(1, 64)
_FINDS = Range(1, 1_000)


class Objective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[objective]]: a metric to make as bad as can be. Of a tenant's metric, without the tenant,
    that of the tenant that has the worst.

    beyond: a find is what is at least so bad.
    text: what a find is, in words; {scheduler} stands for its name.
    weights: it is about weights, and no find of a scheduler that knows none.
    """

    metric: str
    beyond: float
    text: str = ""
    weights: bool = False

    @property
    def described(self) -> Metric:
        """The metric itself."""
        return described(self.metric)


class Constraint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[[constraint]]: what has to hold of a run, or it is no find. metric: as of an objective, but
    of a tenant's metric it has to hold for all."""

    metric: str
    op: Literal["<=", ">="]
    value: float


class Rounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[round]: how many candidates a round draws at random, and how many the optimiser chooses;
    batch: how many it is asked for at once, which is how many may be tried side by side."""

    random: int = 64
    guided: int = 64
    batch: int = 8


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[budget]: when to stop looking: runs, or minutes of CPU time that they took. 0: no limit.
    What was found until then is still shrunk."""

    runs: int = 0
    minutes: float = 0.0


class Dimensions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[space.scheduler.NAME]: dimensions of that scheduler alone, as in [space]. One that [space]
    has too takes its place."""

    study: dict[str, Values] = {}
    tenant: dict[str, Values] = {}


class SpaceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[space]: what is looked among. tenants: from how many to how many [[tenant]] tables.

    study, tenant: by name, what a dimension of the study, or of each tenant, may be.
    scheduler: further dimensions, or others, for that scheduler alone.
    region: so many bytes of the disk are divided among tenants that work in sequence.
    """

    tenants: tuple[int, int] = (1, 3)
    region: int | str = "8g"
    study: dict[str, Values] = {}
    tenant: dict[str, Values] = {}
    scheduler: dict[str, Dimensions] = {}


# What a scheduler must not do, each as bad as nobody would defend it.
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
    """A hunt's file. study: what all candidates have, as in a study. seed: of the drawing and of
    the optimiser; the same seed, the same finds. finds: of each kind, after which it is not looked
    for any more."""

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
    """The hunt in a file.

    Raises:
        UserError: the file cannot be read, is not TOML, or is no hunt; names FILE:LINE, the field,
            what is wrong and what is allowed.
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

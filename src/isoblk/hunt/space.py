# SPDX-License-Identifier: GPL-2.0-only
"""The space of a hunt: candidates, each with a choice of every dimension, and their studies.

The values of a dimension are ordered, the simplest first. A candidate is simpler than another if
its choices come earlier; shrinking makes them come earlier.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isoblk.hunt.spec import Dimensions, SpaceTable, Values
from isoblk.run.units import format_size, parse_size

_IN_SEQUENCE = ("read", "write", "rw", "trim")
_NAMES = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Dimension:
    """One property of a study or of a tenant.

    Attributes:
        name: the option, or the subject of its tables.
        values: tables to merge, the simplest first.
        ordered: whether they are numbers or sizes, so that values can be interpolated.
    """

    name: str
    values: tuple[Mapping[str, Any], ...]
    ordered: bool


@dataclass(frozen=True)
class Candidate:
    """Choices of each dimension, as index of the value, for the study and for each tenant."""

    study: tuple[int, ...]
    tenants: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Space:
    """Dimensions of the study and of each tenant, and the least and greatest number of tenants.
    base: common to all candidates. region: bytes of the disk for sequential tenants."""

    study: tuple[Dimension, ...]
    tenant: tuple[Dimension, ...]
    tenants: tuple[int, int]
    base: Mapping[str, Any]
    region: int

    def draw(self, choose: Callable[[str, int, bool], int]) -> Candidate:
        """Draw a candidate.

        Args:
            choose: gets a name, the number of values and whether they are ordered; returns an
                index.
        """
        study = tuple(self._choice(choose, one.name, one) for one in self.study)
        least, most = self.tenants
        count = least + (choose("tenants", most - least + 1, True) if most > least else 0)
        return Candidate(
            study,
            tuple(
                tuple(self._choice(choose, f"{slot}.{one.name}", one) for one in self.tenant)
                for slot in range(count)
            ),
        )

    @staticmethod
    def _choice(choose: Callable[[str, int, bool], int], name: str, one: Dimension) -> int:
        return choose(name, len(one.values), one.ordered) if len(one.values) > 1 else 0

    def choices(self, candidate: Candidate) -> dict[str, tuple[int, int, bool]]:
        """Return the choices that draw() made, by name: the index, the number of values, whether
        they are ordered."""
        found: dict[str, tuple[int, int, bool]] = {}
        for one, choice in zip(self.study, candidate.study, strict=True):
            found[one.name] = (choice, len(one.values), one.ordered)
        least, most = self.tenants
        found["tenants"] = (len(candidate.tenants) - least, most - least + 1, True)
        for slot, tenant in enumerate(candidate.tenants):
            for one, choice in zip(self.tenant, tenant, strict=True):
                found[f"{slot}.{one.name}"] = (choice, len(one.values), one.ordered)
        return {name: choice for name, choice in found.items() if choice[1] > 1}

    def document(self, candidate: Candidate, scheduler: str) -> dict[str, Any]:
        """Return a candidate's study, as decoded TOML without claims."""
        study: dict[str, Any] = copy.deepcopy(dict(self.base))
        for one, choice in zip(self.study, candidate.study, strict=True):
            _merge(study, one.values[choice])
        study |= {"name": "candidate", "scheduler": scheduler, "tenant": []}
        room = self.region // len(candidate.tenants)
        for slot, choices in enumerate(candidate.tenants):
            tenant: dict[str, Any] = {"name": _name(slot)}
            for one, choice in zip(self.tenant, choices, strict=True):
                _merge(tenant, one.values[choice])
            if tenant.get("rw") in _IN_SEQUENCE:
                own = room // int(tenant.get("count", 1)) >> 20 << 20
                tenant["offset"] = format_size(slot * (room >> 20 << 20))
                tenant["size"] = format_size(own)
                if tenant.get("count", 1) > 1:
                    tenant["offset_increment"] = format_size(own)
            if tenant.get("count") == 1:
                del tenant["count"]
            study["tenant"].append(tenant)
        return study

    def samples(self) -> Iterator[Candidate]:
        """Yield candidates that together have every value of every dimension."""
        dimensions = (*self.study, *self.tenant)
        for turn in range(max((len(one.values) for one in dimensions), default=1)):

            def choose(name: str, of: int, ordered: bool, turn: int = turn) -> int:
                return 0 if name == "tenants" else min(turn, of - 1)

            yield self.draw(choose)

    def simpler(self, candidate: Candidate, place: "Place") -> Iterator[Candidate]:
        """Yield candidates that are simpler at one place, the simplest first."""
        if place.slot is not None and place.slot >= len(candidate.tenants):
            return
        if place.dimension is None:
            assert place.slot is not None
            if len(candidate.tenants) > self.tenants[0]:
                rest = candidate.tenants[: place.slot] + candidate.tenants[place.slot + 1 :]
                yield replace(candidate, tenants=rest)
            return
        of = candidate.study if place.slot is None else candidate.tenants[place.slot]
        dimensions = self.study if place.slot is None else self.tenant
        choice = of[place.dimension]
        steps = (
            [0, choice // 2, choice - 1] if dimensions[place.dimension].ordered else range(choice)
        )
        for step in dict.fromkeys(one for one in steps if 0 <= one < choice):
            changed = (*of[: place.dimension], step, *of[place.dimension + 1 :])
            if place.slot is None:
                yield replace(candidate, study=changed)
            else:
                tenants = list(candidate.tenants)
                tenants[place.slot] = changed
                yield replace(candidate, tenants=tuple(tenants))

    def places(self, candidate: Candidate) -> list["Place"]:
        """Return the places where a candidate may become simpler: whole tenants first, from the
        last on."""
        slots = range(len(candidate.tenants))
        return [
            *(Place(slot, None) for slot in reversed(slots)),
            *(Place(slot, at) for slot in slots for at in range(len(self.tenant))),
            *(Place(None, at) for at in range(len(self.study))),
        ]

    def explains(self, find: Candidate, other: Candidate) -> bool:
        """Return whether a candidate contains a find.

        Each tenant of the find must match a distinct tenant of the candidate. Wherever the find is
        not the simplest, the candidate must be equal.
        """
        if not _has(self.study, find.study, other.study):
            return False
        return self._placed(list(find.tenants), list(other.tenants))

    def _placed(self, find: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> bool:
        if not find:
            return True
        first, *rest = find
        return any(
            _has(self.tenant, first, one) and self._placed(rest, other[:at] + other[at + 1 :])
            for at, one in enumerate(other)
        )


@dataclass(frozen=True)
class Place:
    """A place where a candidate may become simpler. slot: of the tenant, None for the study.
    dimension: its index, None for the tenant as a whole."""

    slot: int | None
    dimension: int | None


def _has(dimensions: Sequence[Dimension], find: Sequence[int], other: Sequence[int]) -> bool:
    return all(
        other[at] >= choice if one.ordered else choice in (0, other[at])
        for at, (one, choice) in enumerate(zip(dimensions, find, strict=True))
    )


def make_space(table: SpaceTable, base: Mapping[str, Any], scheduler: str) -> Space:
    """Return the space for one scheduler."""
    own = table.scheduler.get(scheduler, Dimensions())
    return Space(
        study=tuple(_dimension(name, values) for name, values in (table.study | own.study).items()),
        tenant=tuple(
            _dimension(name, values) for name, values in (table.tenant | own.tenant).items()
        ),
        tenants=table.tenants,
        base=base,
        region=parse_size(table.region),
    )


def _dimension(name: str, values: Values) -> Dimension:
    tables = tuple(one if isinstance(one, dict) else {name: one} for one in values)
    return Dimension(name, tables, all(map(_is_number, values)))


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        try:
            parse_size(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _merge(into: dict[str, Any], table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


def _name(slot: int) -> str:
    return _NAMES[slot] if slot < len(_NAMES) else f"t{slot}"

# SPDX-License-Identifier: GPL-2.0-only
"""The options of a load, collected from the fields of Workload that describe them."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from isoblk.run import options
from isoblk.run.options import LoadOption
from isoblk.run.spec import Workload


@dataclass(frozen=True)
class Described:
    """An option of a load, and its field.

    Attributes:
        field: of Workload; "" if the option only determines how another one is parsed.
        kind: its type in a study.
        option: its record.
    """

    field: str
    kind: Any
    option: LoadOption


# Options that determine how another is parsed, by the option that each follows: name, type and
# record.
_BESIDE: Final[Mapping[str, tuple[str, Any, LoadOption]]] = {
    "offset": (
        "offset_increment",
        int | str,
        LoadOption(
            "Distance between the offsets of `count` tenants. " + options.SIZE,
            read="size",
        ),
    ),
    "trace": (
        "trace_stream",
        int,
        LoadOption(
            "Only the requests of that stream (volume, cgroup) of the trace.", about="trace"
        ),
    ),
}


def _collect() -> dict[str, Described]:
    found: dict[str, Described] = {}
    for field, hint in typing.get_type_hints(Workload, include_extras=True).items():
        for option in getattr(hint, "__metadata__", ()):
            if not isinstance(option, LoadOption):
                continue
            name = option.name or field
            kind = option.written or typing.get_args(hint)[0]
            found[name] = Described(field, kind, replace(option, name=name))
            if name in _BESIDE:
                other, of_other, described = _BESIDE[name]
                found[other] = Described("", of_other, replace(described, name=other))
    return found


LOAD_OPTIONS: Final[Mapping[str, Described]] = _collect()
"""By name in studies."""

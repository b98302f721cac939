# SPDX-License-Identifier: GPL-2.0-only
"""Write the generated pages of docs/reference/ from the records that the code itself works with.

`make reference` runs it; tests/unit/test_reference.py fails if a page is not that of today.
"""

import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from isoblk.caches.registry import CACHES
from isoblk.metrics import cached
from isoblk.metrics.base import Metric
from isoblk.metrics.registry import METRICS
from isoblk.programs.registry import PROGRAMS
from isoblk.run.limits import Range
from isoblk.run.load import LOAD_OPTIONS
from isoblk.run.spec import Workload
from isoblk.schedulers.base import SchedulerKind
from isoblk.schedulers.io_cost import IoCostTable
from isoblk.schedulers.io_latency import IoLatencyTable
from isoblk.schedulers.io_max import IoMaxTable
from isoblk.schedulers.other import OtherTable
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.study.model import (
    CachingTable,
    ClaimEntry,
    CompareSeries,
    CompareTable,
    EventEntry,
    FilesystemTable,
    GroupEntry,
    RunTable,
    Study,
    TenantEntry,
)

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"

# Where each table stands in a study.
_TABLES: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("At the top", Study),
    ("`[run]`", RunTable),
    ("`[[tenant]]`", TenantEntry),
    ("`[[group]]`", GroupEntry),
    ("`[[event]]`", EventEntry),
    ("`[filesystem]`", FilesystemTable),
    ("`[caching]`", CachingTable),
    ("`[io_cost]`", IoCostTable),
    ("`[io_max]`", IoMaxTable),
    ("`[io_latency]`", IoLatencyTable),
    ("`[schedulers.NAME]`", OtherTable),
    ("`[[claim]]`", ClaimEntry),
    ("`[compare]`", CompareTable),
    ("`[[compare.series]]`", CompareSeries),
)
_KINDS: Mapping[object, str] = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    dict: "table",
    list: "list",
    tuple: "list",
}


def pages() -> dict[str, str]:
    """The pages' texts, by the names of their files."""
    return {
        "options.md": "\n".join(_options()),
        "metrics.md": "\n".join(_metrics()),
        "schedulers.md": "\n".join(_schedulers()),
    }


def _head(title: str, *text: str) -> list[str]:
    return [f"# {title}", "", "<!-- Made by `make reference`. -->", "", *text, ""]


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table, without the columns that have nothing in any row."""
    names, cells = list(heads), [list(row) for row in rows]
    kept = [place for place in range(len(names)) if any(row[place] for row in cells)]
    yield "| " + " | ".join(names[place] for place in kept) + " |"
    yield "|" + "---|" * len(kept)
    for row in cells:
        yield "| " + " | ".join(row[place].replace("|", "\\|") for place in kept) + " |"
    yield ""


# ---- options -------------------------------------------------------------------------


def _options() -> Iterator[str]:
    yield from _head(
        "Every field of a study",
        "What a study file may say, table by table. [Studies](studies.md) explains it by examples;",
        "`isoblk study schema` prints the same as a JSON schema, for editors.",
    )
    for title, struct in _TABLES:
        yield from (f"## {title}", "")
        names = struct.__struct_fields__
        if struct is Study:
            yield from (
                "Schedulers are [on a page of their own](schedulers.md). Caches: "
                + ", ".join(f"`{name}`" for name in CACHES)
                + ".",
                "",
            )
        if struct is not TenantEntry:
            yield from _fields(struct, names)
        else:
            yield from _fields(struct, [name for name in names if name not in LOAD_OPTIONS])
            yield from ("Each option of a load, below, may stand here as well.", "")
    yield from ("## `[workload]`, or `[[tenant]]`", "")
    yield from (
        "Options of a load have fio's names and meanings, but for those that fio has not. In",
        "`[workload]` they are for all tenants that do not set them.",
        "",
    )
    yield from _table(
        ("option", "is", "range", "without it", "meaning"),
        (
            (
                f"`{name}`",
                _kind(one.kind),
                _range(one.option.allowed) if one.option.read == "as it is" else "",
                _default(_load_default(one.field)),
                one.option.text + _generators(one.option.blkload_only, one.option.about),
            )
            for name, one in LOAD_OPTIONS.items()
        ),
    )
    for name, program in PROGRAMS.items():
        if program.own_options is not None:
            yield from (f"## `options` of {name}", "")
            yield from _fields(program.own_options, program.own_options.__struct_fields__)


def _generators(blkload_only: bool, about: str) -> str:
    words = ["Only blkload has it."] if blkload_only else []
    words += {"pattern": ["Not with a trace."], "trace": ["With a trace."], "any": []}[about]
    return " " + " ".join(words) if words else ""


def _load_default(field: str) -> object:
    if field == "speed":
        # A study writes 2 for twice the speed; the run has thousandths.
        return Workload().speed / 1000
    return getattr(Workload(), field) if field else UNSET


def _fields(struct: type[msgspec.Struct], names: Iterable[str]) -> Iterator[str]:
    hints = typing.get_type_hints(struct, include_extras=True)
    defaults = dict(
        zip(reversed(struct.__struct_fields__), reversed(struct.__struct_defaults__), strict=False)
    )
    rows = []
    for name in names:
        hint = hints[name]
        (meta,) = [one for one in hint.__metadata__ if isinstance(one, msgspec.Meta)]
        limits = meta.extra_json_schema or {}
        allowed = Range(limits["minimum"], limits["maximum"]) if limits else None
        rows.append(
            (
                f"`{name}`",
                _kind(typing.get_args(hint)[0]),
                _range(allowed),
                _default(defaults.get(name, msgspec.NODEFAULT)),
                str(meta.description),
            )
        )
    yield from _table(("field", "is", "range", "without it", "meaning"), rows)


def _kind(hint: Any) -> str:
    """A type in words."""
    origin = typing.get_origin(hint)
    if origin is Literal:
        return ", ".join(f"`{word}`" if word else '`""`' for word in typing.get_args(hint))
    if origin in (types.UnionType, typing.Union):
        parts = [one for one in typing.get_args(hint) if one not in (UnsetType, types.NoneType)]
        if int in parts and float in parts:
            parts.remove(int)
        return " or ".join(dict.fromkeys(map(_kind, parts)))
    if origin in (list, tuple):
        inner = [one for one in typing.get_args(hint) if one is not Ellipsis]
        return f"list of: {_kind(inner[0])}" if inner else "list"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return "table"
    return _KINDS[origin or hint]


def _range(allowed: Range | None) -> str:
    return str(allowed) if allowed else ""


def _default(value: object) -> str:
    if value is msgspec.NODEFAULT:
        return "must be there"
    if value in (UNSET, None, "") or isinstance(value, msgspec.Struct):
        return ""
    if type(value).__name__ == "Factory" or value in ([], {}, ()):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`" + ", ".join(map(str, value)) + "`"
    return f"`{value}`"


# ---- metrics -------------------------------------------------------------------------


def _metrics() -> Iterator[str]:
    yield from _head(
        "Every metric",
        "Metrics of claims and tables. [Metrics](../concepts/metrics.md) explains shares, the",
        "ideal and confidence. `isoblk compare` shows the metrics with a mark: `%` is the change",
        "as a part of the first value, `points` the difference of errors.",
    )
    yield from _table(
        ("metric", "unit", "better", "compare", "meaning"),
        (_metric_row(one) for one in METRICS.values()),
    )
    yield from ("## Programs", "")
    yield from (
        "`says.<tenant>.<figure>` is a figure of the tenant's [program](../guides/programs.md), by",
        "its name in the report's table, in bytes, operations or ns.",
        "",
        "## Caches",
        "",
        "`cache.<figure>`, of a study with an SSD, in the measured pass. Also `reads`,",
        "`read_bytes`, `writes` and `write_bytes` of the cached device (`cache.top.reads`), of the",
        "slow disk (`cache.origin.reads`) and of the SSD (`cache.ssd.reads`).",
        "",
    )
    yield from _table(
        ("figure", "unit", "meaning"),
        (
            (f"`{name}`", unit, text)
            for name, (unit, text) in cached.FIGURES.items()
            if not re.fullmatch(r"(top|origin|ssd)\.(read|write)(s|_bytes)", name)
        ),
    )


def _metric_row(metric: Metric) -> tuple[str, ...]:
    needs = {
        "": "",
        "full": " A claim on it adds runs of each load alone.",
        "bound": " A claim on it adds a run with as many requests as exact shares allow.",
    }[metric.needs]
    better = {"up": "more", "down": "less", "neither": ""}[metric.better]
    text = metric.text if not needs else f"{metric.text}."
    compared = "" if not metric.compared else "points" if metric.deviation else "%"
    return f"`{metric.name}`", metric.unit, better, compared, text + needs


# ---- schedulers ----------------------------------------------------------------------


def _schedulers() -> Iterator[str]:
    yield from _head(
        "Every scheduler and controller",
        "Values of `scheduler` in a study. [`[schedulers.NAME]`](../guides/own-scheduler.md) adds",
        "elevators.",
    )
    yield from _table(
        ("`scheduler`", "kind", "a tenant's weight goes to", "weights", "on cgroup v1"),
        (_scheduler_row(one) for one in SCHEDULERS.values()),
    )
    for kind in SCHEDULERS.values():
        if kind.tunables or kind.table or kind.modules or kind.target_file:
            yield from (f"## {kind.name}", "")
            yield from _of_scheduler(kind)


def _scheduler_row(kind: SchedulerKind) -> tuple[str, ...]:
    files = ", ".join(f"`{file}`" for file in kind.weight_files.values())
    what = "elevator" if kind.elevator == kind.name else "controller, on top of `none`"
    instead = (
        "a cap or target, computed at the start of the run" if kind.fixed_weights else "no file"
    )
    return (
        f"`{kind.name}`",
        what if kind.name != "none" else "no scheduler",
        files or instead,
        str(kind.weights) if files else "",
        "no" if kind.v2_only else "yes",
    )


def _of_scheduler(kind: SchedulerKind) -> Iterator[str]:
    if kind.modules:
        yield "Modules: " + ", ".join(f"`{name}`" for name in kind.modules) + "."
        yield ""
    if kind.target_file:
        yield f"A tenant's `latency_target` goes to `{kind.target_file}`."
        yield ""
    if kind.table:
        yield f"Table of a study: [`[{kind.table}]`](options.md)."
        yield ""
    if kind.tunables:
        yield from _table(
            (f"`[iosched.{kind.name}]`", "range"),
            (
                (f"`{name}`", str(allowed))
                for name, allowed in {**kind.tunables, **kind.tunable_words}.items()
            ),
        )


if __name__ == "__main__":
    for file, content in pages().items():
        (PAGES / file).write_text(content.rstrip() + "\n")

# SPDX-License-Identifier: GPL-2.0-only
"""Find differences between the inputs of two result sets: studies, devices, tenants, software."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.run import numbers
from isoblk.run.spec import SCHEDULER, PlannedRun, RunSpec, Scheduler, VdiskDevice
from isoblk.schedulers.isoblk import CALIBRATED, COST_MODEL

# Fields of a run's provenance, in the order of the output.
_MADE_WITH: Final[Mapping[str, str]] = {
    "kernel": "kernel",
    "kernel_source": "kernel source",
    "kernel_key": "kernel build",
    "modules_key": "modules",
    "compiler": "compiler",
    "isoblk": "isoblk",
}
ABSENT: Final = "not there"
# Parameters of a vdisk's unused models.
_MODELS: Final = ("flash", "disk")


@dataclass(frozen=True)
class Input:
    """A difference of the inputs. points: number of common points with it, None if it does not
    depend on the point. several: whether a and b differ between points; at: the point of a and
    b."""

    what: str
    a: str
    b: str
    points: int | None = None
    several: bool = False
    at: str = ""


def differences(
    a: Analysis, b: Analysis, common: list[tuple[PointView, PointView]]
) -> tuple[Input, ...]:
    """Return the differences: machine and software first, then the load, then texts."""
    return (*_made_with(a, b), *_specs(a, b, common), *_words(a, b))


def tenants(x: PointView, y: PointView) -> list[tuple[str, str, str]]:
    """Return tenants of one side, or with another weight: name, in x, in y."""
    ours, theirs = (
        {tenant.name: tenant.weight for tenant in one.runs[0].spec.tenants} for one in (x, y)
    )
    return [
        (name, _weight(ours.get(name)), _weight(theirs.get(name)))
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name)
    ]


def _weight(weight: int | None) -> str:
    return ABSENT if weight is None else f"weight {weight}"


def _made_with(a: Analysis, b: Analysis) -> Iterator[Input]:
    in_a, in_b = _software(a), _software(b)
    for what in ("tier", "processors", *_MADE_WITH.values()):
        if in_a.get(what) != in_b.get(what):
            ours, theirs = (
                ", ".join(sorted(side.get(what, ()))) or ABSENT for side in (in_a, in_b)
            )
            yield Input(what, ours, theirs)


def _software(analysis: Analysis) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for view in analysis.views:
        if view.run is None:
            continue
        found.setdefault("tier", set()).add(view.run.record.tier)
        if view.run.record.cpus is not None:
            found.setdefault("processors", set()).add(str(view.run.record.cpus))
        origin = view.run.record.provenance
        for field, what in _MADE_WITH.items():
            found.setdefault(what, set()).add(getattr(origin, field))
    return found


def _specs(a: Analysis, b: Analysis, common: list[tuple[PointView, PointView]]) -> Iterator[Input]:
    """Yield differences between the runs of common points."""
    devices = [one.results.record.study.device for one in (a, b)]
    named = devices[0] != devices[1] and all(isinstance(device, str) for device in devices)
    if named:
        yield Input("device", str(devices[0]), str(devices[1]))
    found: dict[str, list[tuple[str, str, str]]] = {}
    for x, y in common:
        at = " ".join(value for key, value in x.point.items() if key != SCHEDULER)
        alone = []
        for name, ours, theirs in tenants(x, y):
            found.setdefault(f"tenant {name}", []).append((ours, theirs, at))
            alone += [f"tenant {name}."] if ABSENT in (ours, theirs) else []
        one, other = _asked(x), _asked(y)
        for what in dict.fromkeys([*one, *other]):
            if (named and what.startswith("device.")) or what.startswith(tuple(alone)):
                continue
            pair = (one.get(what, ABSENT), other.get(what, ABSENT))
            if pair[0] != pair[1]:
                found.setdefault(what, []).append((*pair, at))
    for what, all_ in found.items():
        ours, theirs, at = all_[0]
        several = len({one[:2] for one in all_}) > 1
        yield Input(what, ours, theirs, len(all_), several, at if several else "")


def _words(a: Analysis, b: Analysis) -> Iterator[Input]:
    ours, theirs = (one.results.record.study for one in (a, b))
    for what in ("name", "title", "description"):
        if getattr(ours, what) != getattr(theirs, what):
            yield Input(
                f"study's {what}", getattr(ours, what) or ABSENT, getattr(theirs, what) or ABSENT
            )
    if ours.claim != theirs.claim:
        yield Input("claims", str(len(ours.claim)), str(len(theirs.claim)))


def _asked(point: PointView) -> dict[str, str]:
    """Return the inputs of a point's runs, without its place in the matrix and the tenants'
    weights: name, and the value for reading."""
    spec = point.runs[0].spec
    found = {
        "repeats": str(len(point.runs)),
        "seeds": " ".join(str(view.spec.seed) for view in point.runs),
        "runtime": numbers.time(spec.runtime_ns),
        "warm-up": numbers.time(spec.warmup_ns),
        "window": f"{spec.window_ms} ms",
        "cgroup": str(spec.cgroup),
    }
    found |= _flat("device", _device(spec))
    for what, part in (
        ("scheduler", _scheduler(point.runs[0].planned)),
        ("queue", spec.queue),
        ("file system", spec.filesystem),
        ("caching", spec.caching),
        ("stack", spec.stack),
        ("device events", spec.device_events),
    ):
        found |= _flat(what, msgspec.to_builtins(part))
    found |= {f"group {group.path}": f"weight {group.weight}" for group in spec.groups}
    for event in spec.events:
        found[f"event at {numbers.time(event.at_ns)}, {event.tenant}"] = f"weight {event.weight}"
    for tenant in spec.tenants:
        load = msgspec.to_builtins(tenant.workload)
        found |= _flat(f"tenant {tenant.name}", load | {"cgroup": tenant.cgroup})
    return found


def _scheduler(planned: PlannedRun) -> Scheduler:
    """Return the scheduler without models and caps from other runs, which are results."""
    scheduler = msgspec.structs.replace(planned.spec.scheduler, io_cost_model=None, io_max=None)
    if planned.calibrate and COST_MODEL in scheduler.iosched:
        iosched = {**scheduler.iosched, COST_MODEL: CALIBRATED}
        scheduler = msgspec.structs.replace(scheduler, iosched=iosched)
    return scheduler


def _device(spec: RunSpec) -> dict[str, Any]:
    device: dict[str, Any] = msgspec.to_builtins(spec.device)
    if isinstance(spec.device, VdiskDevice):
        return {k: v for k, v in device.items() if k not in _MODELS or k == spec.device.model}
    return device


def _flat(name: str, value: Any) -> dict[str, str]:
    """Return each figure below a value, by its dotted name."""
    if isinstance(value, dict):
        below = [(f"{name}.{key}", inner) for key, inner in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(one, dict) for one in value):
        below = [(f"{name}.{place}", inner) for place, inner in enumerate(value, 1)]
    else:
        return {name.removesuffix("_ns"): _text(name, value)}
    return {key: text for path, inner in below for key, text in _flat(path, inner).items()}


def _text(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    if name.endswith("_ns"):
        return numbers.time(value)
    return numbers.rate(value) if name.endswith("_bps") else str(value)

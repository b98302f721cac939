# SPDX-License-Identifier: GPL-2.0-only
"""Format values of metrics in their units: expected by a claim, and measured."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from isoblk.analysis.claims import ClaimResult
from isoblk.analysis.metrics import Analysis
from isoblk.metrics.registry import SAYS, metric_text, metric_unit, split_says
from isoblk.run import numbers
from isoblk.run.record import Unit
from isoblk.run.spec import label

Form = Callable[[float], str]

_TIMES: Final = ((" s", 1e9), (" ms", 1e6), (" µs", 1e3), (" ns", 1.0))
_COUNTS: Final = ((" G", 1e9), (" M", 1e6), (" K", 1e3), ("", 1.0))
_BYTES: Final = ((" GB", 1e9), (" MB", 1e6), (" KB", 1e3), (" B", 1.0))
_SCALES: Final[Mapping[str, tuple[tuple[str, float], ...]]] = {
    "ns": _TIMES,
    "ms": tuple((suffix, size / 1e6) for suffix, size in _TIMES),
    "B": _BYTES,
    "B/s": tuple((f"{suffix}/s", size) for suffix, size in _BYTES),
    "ops/s": tuple((f"{suffix}/s", size) for suffix, size in _COUNTS),
    **dict.fromkeys(("requests/s", "count", "ops"), _COUNTS),
    **dict.fromkeys(("ratio", "%"), ((" %", 0.01),)),
    "times": (("x", 1.0),),
}
"""Suffixes of each unit's values, the largest first, and their factors."""


def form(metric: str, analysis: Analysis) -> Form:
    """Return the function that formats a measured value; a program's figure in its own unit."""
    unit = _said_unit(metric, analysis)
    return partial(metric_text, metric) if unit is None else partial(numbers.figure, unit=unit)


def expected(result: ClaimResult, analysis: Analysis) -> str:
    """Format a claim's comparison: "p99.web < 2 ms", "total_iops >= 2 times that of scheduler =
    none"."""
    claim = result.claim
    among = f" of {', '.join(claim.among)}" if claim.among else ""
    within = f" within {claim.tolerance * 100:g} %" if claim.op == "~" else ""
    if claim.than:
        than = ", ".join(f"{key} = {label(value)}" for key, value in claim.than.items())
        value = f"{claim.value:g} times that of {than}"
    else:
        value = _threshold(claim.metric, claim.value, analysis)
    return f"{claim.metric}{among} {claim.op} {value}{within}"


def against(result: ClaimResult, analysis: Analysis) -> Form:
    """Return the function that formats the values for a claim, with enough digits to distinguish
    them from the claim's value."""
    claim = result.claim
    usual = _ratio if claim.than else form(claim.metric, analysis)

    def written(value: float) -> str:
        text = usual(value)
        if claim.than or value == claim.value or text != usual(claim.value):
            return text
        return _threshold(claim.metric, value, analysis)

    return written


def _threshold(metric: str, value: float, analysis: Analysis) -> str:
    """Format a value with the precision of its author: "2 ms", "0.25 %"."""
    unit: str | None = _said_unit(metric, analysis)
    scales = _SCALES.get(metric_unit(metric) if unit is None else unit, (("", 1.0),))
    suffix, size = next((one for one in scales if abs(value) >= one[1]), scales[-1])
    return f"{value / size:.6g}{suffix}"


def _said_unit(metric: str, analysis: Analysis) -> Unit | None:
    """Return the unit of a tenant's program's figure; "" if it is unknown; None for other
    metrics."""
    if not metric.startswith(SAYS):
        return None
    tenants = {tenant.name for view in analysis.views for tenant in view.spec.tenants}
    parts = split_says(metric, tenants)
    for point in analysis.points:
        for metrics in point.valid:
            tenant = metrics.by_name.get(parts[0]) if parts else None
            for figure in tenant.says.figures if tenant and tenant.says else ():
                if parts and figure.name == parts[1]:
                    return figure.unit
    return ""


def _ratio(value: float) -> str:
    return f"{value:.4g} times"

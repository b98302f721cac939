# SPDX-License-Identifier: GPL-2.0-only
"""The machine-readable output of `show` and `compare`; docs/reference/results.md describes it.

Values are in the units of docs/reference/metrics.md: times in ns (ms if the metric's name says so),
sizes in bytes, shares and errors as fractions.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from isoblk.analysis.claims import ClaimResult
from isoblk.analysis.compare import Comparison, Difference, PointComparison
from isoblk.analysis.inputs import Input
from isoblk.analysis.metrics import Analysis, PointView
from isoblk.metrics.cached import CACHE, FIGURES
from isoblk.metrics.facts import TenantMetrics
from isoblk.metrics.registry import OF_RUN, OF_TENANT, SAYS
from isoblk.metrics.stats import Estimate, estimate
from isoblk.report import rows, text

FORMAT = 1
_FORMULA = re.compile(r"[=+@\t\r-](?!\d+(?:\.\d+)?\Z)")  # except a signed number
# Ideals of a tenant, next to its metrics.
_IDEALS: Mapping[str, Callable[[TenantMetrics], float]] = {
    "ideal": lambda tenant: tenant.ideal,
    "weight_share": lambda tenant: tenant.weight_share,
}


def show_json(analysis: Analysis, claims: Sequence[ClaimResult]) -> str:
    """Return a result set as JSON: points and tenants with all metrics, claims with verdicts."""
    study = analysis.results.record.study
    return _json(
        {
            "format": FORMAT,
            "directory": str(analysis.results.dir),
            "study": {"name": study.name, "title": study.title, "description": study.description},
            "made_with": dict(text.provenance(analysis)),
            "keys": list(analysis.keys),
            "points": [_point(point) for point in analysis.points],
            "claims": [_claim(claim) for claim in claims],
        }
    )


def show_csv(analysis: Analysis) -> str:
    """Return a row for each tenant at each point, with the figures of the whole run."""
    cached = [
        figure
        for figure in FIGURES
        if any(figure in metrics.cache for point in analysis.points for metrics in point.valid)
    ]
    said = list(dict.fromkeys(one for point in analysis.points for one in _said_of(point)))
    lines = []
    for point in analysis.points:
        of_run = _means(_run_figures(point))
        for tenant in point.runs[0].spec.tenants:
            own = _means(_tenant_figures(point, tenant.name))
            says = _means(_said_figures(point, tenant.name))
            lines.append(
                [
                    *(point.point.get(key, "") for key in analysis.keys),
                    text.status(point),
                    "; ".join(_suspect(point)),
                    len(point.valid),
                    *(of_run.get(name, "") for name in OF_RUN),
                    *(of_run.get(f"{CACHE}.{figure}", "") for figure in cached),
                    tenant.name,
                    tenant.weight,
                    *(own.get(name, "") for name in (*_IDEALS, *OF_TENANT)),
                    *(says.get(figure, "") for figure in said),
                ]
            )
    heads = [
        *(*analysis.keys, "status", "suspect", "valid_repeats", *OF_RUN),
        *(f"{CACHE}.{figure}" for figure in cached),
        *("tenant", "weight", *_IDEALS, *OF_TENANT),
        *(f"{SAYS}{figure}" for figure in said),
    ]
    return _csv(heads, lines)


def compare_json(result: Comparison, a: Path, b: Path, fail_over: float | None) -> str:
    """Return the differences of the inputs of two result sets, and every figure of both, by
    point."""
    failed = [] if fail_over is None else result.failed(fail_over)
    return _json(
        {
            "format": FORMAT,
            "a": str(a),
            "b": str(b),
            "inputs": [_input(one) for one in result.inputs],
            "points": [_compared(point) for point in result.points],
            "only_a": list(result.only_a),
            "only_b": list(result.only_b),
            "fail_over": fail_over,
            "failed": [
                {"point": point.point, "metric": one.metric, "worse": one.worse}
                for point, one in failed
            ],
        }
    )


def compare_csv(result: Comparison) -> str:
    """Return a row for each metric at each common point that is not identical."""
    keys = list(dict.fromkeys(key for point in result.points for key in point.point))
    heads = [*keys, "metric", "better", "a", "b", "change", "worse", "p"]
    lines = [
        [*(point.point.get(key, "") for key in keys), *_difference(difference).values()]
        for point in result.points
        for difference in point.differences
    ]
    return _csv(heads, lines)


def _point(point: PointView) -> dict[str, Any]:
    reasons = [reason for view in point.runs if (reason := rows.why(view))]
    found = _run_figures(point)
    tenants = []
    for tenant in point.runs[0].spec.tenants:
        own = _tenant_figures(point, tenant.name)
        says = _said_figures(point, tenant.name)
        tenants.append(
            {
                "name": tenant.name,
                "cgroup": tenant.cgroup,
                "weight": tenant.weight,
                "metrics": _means(own),
                "intervals": _intervals(own),
                "ranges": _ranges(own),
                "says": _means(says),
            }
        )
    return {
        "point": dict(point.point),
        "status": text.status(point),
        "reasons": reasons,
        "suspect": _suspect(point),
        "runs": [view.run.record.id for view in point.runs if view.run],
        "valid_repeats": len(point.valid),
        "metrics": _means(found),
        "intervals": _intervals(found),
        "ranges": _ranges(found),
        "tenants": tenants,
    }


def _suspect(point: PointView) -> list[str]:
    """Return why figures of the point's valid runs are suspect."""
    return list(dict.fromkeys(text for view in point.runs for text in view.suspicions))


def _run_figures(point: PointView) -> dict[str, Estimate]:
    names = [*OF_RUN, *(f"{CACHE}.{figure}" for figure in FIGURES)]
    return {name: found for name in names if (found := point.estimate(name)) is not None}


def _tenant_figures(point: PointView, tenant: str) -> dict[str, Estimate]:
    ideals = {
        name: estimate([measure(metrics.by_name[tenant]) for metrics in point.valid])
        for name, measure in _IDEALS.items()
        if point.valid
    }
    own = {base: point.estimate(f"{base}.{tenant}") for base in OF_TENANT}
    return ideals | {base: found for base, found in own.items() if found is not None}


def _said_figures(point: PointView, tenant: str) -> dict[str, Estimate]:
    names = dict.fromkeys(
        figure.name
        for metrics in point.valid
        if (says := metrics.by_name[tenant].says)
        for figure in says.figures
    )
    found = {name: point.estimate(f"{SAYS}{tenant}.{name}") for name in names}
    return {name: one for name, one in found.items() if one is not None}


def _said_of(point: PointView) -> Iterable[str]:
    return (
        figure.name
        for metrics in point.valid
        for tenant in metrics.tenants
        if tenant.says
        for figure in tenant.says.figures
    )


def _means(figures: Mapping[str, Estimate]) -> dict[str, float | None]:
    """Return means; infinity becomes null, which JSON requires."""
    return {name: _finite(one.mean) for name, one in figures.items()}


def _intervals(figures: Mapping[str, Estimate]) -> dict[str, list[float | None]]:
    """Return 95 % intervals; null for single runs."""
    return {
        name: [_finite(one.low), _finite(one.high)] for name, one in figures.items() if one.n > 1
    }


def _ranges(figures: Mapping[str, Estimate]) -> dict[str, list[float | None]]:
    """Return least, median and greatest of repeats; null for single runs."""
    return {
        name: [_finite(one.least), _finite(one.median), _finite(one.most)]
        for name, one in figures.items()
        if one.n > 1
    }


def _claim(result: ClaimResult) -> dict[str, Any]:
    claim = result.claim
    return {
        "text": claim.text,
        "source": claim.source,
        "metric": claim.metric,
        "where": claim.where,
        "than": claim.than,
        "expected": result.expected(),
        "verdict": result.verdict,
        "reason": result.reason,
        "points": [
            {
                "point": dict(point.point),
                "verdict": point.verdict,
                "reason": point.reason,
                "measured": _finite(point.measured.mean) if point.measured else None,
                "interval": [_finite(point.measured.low), _finite(point.measured.high)]
                if point.measured and point.measured.n > 1
                else None,
            }
            for point in result.points
        ],
    }


def _input(one: Input) -> dict[str, Any]:
    return {
        "what": one.what,
        "a": one.a,
        "b": one.b,
        "points": one.points,
        "several": one.several,
    }


def _compared(point: PointComparison) -> dict[str, Any]:
    return {
        "point": dict(point.point),
        "identical": point.identical,
        "note": point.note,
        "tenants": [{"name": who, "a": a, "b": b} for who, a, b in point.tenants],
        "metrics": [_difference(difference) for difference in point.differences],
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "metric": one.metric,
        "better": one.better,
        "a": _finite(one.a),
        "b": _finite(one.b),
        "change": _finite(one.change),
        "worse": _finite(one.worse),
        "p": one.p,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _csv(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(_cell, heads))
    writer.writerows(map(_cell, line) for line in lines)
    return file.getvalue()


def _cell(value: object) -> object:
    """Escape text such as =1+1, which a spreadsheet would evaluate: results may come from other
    people."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value

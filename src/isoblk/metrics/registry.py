# SPDX-License-Identifier: GPL-2.0-only
"""All metrics, by their names in claims."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from isoblk.metrics import cached, isolation, latencies, over_time, predictions, shares, totals
from isoblk.metrics.base import PER_TENANT, Better, Metric, MetricUnit, Needs, show
from isoblk.metrics.cached import CACHE
from isoblk.metrics.facts import RunMetrics
from isoblk.run.record import ProgramReport

METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for module in (totals, shares, isolation, over_time, predictions, latencies)
    for metric in module.METRICS
}
OF_RUN: Final = tuple(one.name for one in METRICS.values() if one.of_run)
"""Names of the metrics of a run."""
OF_TENANT: Final = tuple(one.base for one in METRICS.values() if one.of_tenant)
"""Names of the metrics of a tenant, without the tenant."""
SAYS: Final = "says."
"""Prefix of the name of a figure that a tenant's program reports."""
_SAYS_METRIC = "says.<tenant>.<figure>"
_CACHE_METRIC = f"{CACHE}.<figure>"
NAMES: Final[Mapping[str, str]] = {
    **{name: metric.text for name, metric in METRICS.items()},
    _SAYS_METRIC: "a figure that the tenant's program reports, as in the "
    "report's table: bytes, operations or ns",
    _CACHE_METRIC: "of a study with an SSD: " + ", ".join(cached.FIGURES),
}
"""Names in claims, and their meanings."""


def described(base: str) -> Metric:
    """Return the metric of that name, of a run or of each tenant, without the tenant.

    Raises KeyError for an unknown one.
    """
    return METRICS.get(base) or METRICS[base + PER_TENANT]


def metric_value(metrics: RunMetrics, name: str) -> float | None:
    """Return a metric of a run by its name in claims; latencies in ns.

    None: the run does not have it. Raises KeyError for an unknown metric or tenant.
    """
    if name.startswith(SAYS):
        parts = split_says(name, metrics.by_name)
        if parts is None:
            raise KeyError(name)
        return _said(metrics.by_name[parts[0]].says, parts[1])
    base, _, rest = name.partition(".")
    if base == CACHE:
        if rest not in cached.FIGURES:
            raise KeyError(name)
        return metrics.cache.get(rest)
    metric = METRICS[base + PER_TENANT if rest else base]
    if metric.of_tenant is not None:
        return metric.of_tenant(metrics, metrics.by_name[rest])
    assert metric.of_run is not None  # the name has no tenant
    return metric.of_run(metrics)


def _said(report: ProgramReport | None, figure: str) -> float | None:
    return (
        next((one.value for one in report.figures if one.name == figure), None) if report else None
    )


def metric_text(name: str, value: float) -> str:
    """Format a value with its unit; not for "says.", whose units programs set."""
    return show(value, metric_unit(name))


def metric_unit(name: str) -> MetricUnit:
    """Return the unit of a metric in a claim; not for "says.", whose units programs set."""
    base, _, rest = name.partition(".")
    if base == CACHE:
        return cached.FIGURES[rest][0]
    return METRICS[base + PER_TENANT if rest else base].unit


_SAID: Final[Mapping[str, Better]] = {"B/s": "up", "ops/s": "up", "ns": "down"}
_COUNTED: Final[Mapping[str, Better]] = {"read_hit_ratio": "up"}


def direction(name: str, unit: str = "") -> tuple[Better, bool]:
    """Return a metric's better direction, and whether it is a deviation: see Metric.

    Args:
        name: in claims.
        unit: of a program's figure; for "says." only.
    """
    if name.startswith(SAYS):
        return _SAID.get(unit, "neither"), False
    base, _, rest = name.partition(".")
    if base == CACHE:
        return _COUNTED.get(rest, "neither"), False
    metric = METRICS[base + PER_TENANT if rest else base]
    return metric.better, metric.deviation


def wants(names: Collection[str], needs: Needs) -> bool:
    """Return whether one of these metrics needs additional runs of that kind."""
    return any(
        METRICS[one].needs == needs
        for name in names
        for one in (name, name.partition(".")[0] + PER_TENANT)
        if one in METRICS
    )


_PLACE = re.compile(r"\{(than\.)?([^{}]*)\}")


def places(why: str) -> list[tuple[str, bool]]:
    """Return the metrics in a claim's reason, and whether each is of the compared run."""
    return [(match[2], bool(match[1])) for match in _PLACE.finditer(why)]


def fill(why: str, value: Callable[[str, bool], str]) -> str:
    """Return a claim's reason with figures. value: returns the text of a metric of a run, as in
    places()."""
    return _PLACE.sub(lambda match: value(match[2], bool(match[1])), why)


def split_says(name: str, tenants: Collection[str]) -> tuple[str, str] | None:
    """Return the tenant and the figure of "says.TENANT.FIGURE"; None if it is of no such tenant.

    Both may contain dots: of several matching tenants, the one with the longest name.
    """
    rest = name.removeprefix(SAYS)
    fits = [tenant for tenant in tenants if rest != name and rest.startswith(f"{tenant}.")]
    if not fits:
        return None
    tenant = max(fits, key=len)
    return tenant, rest[len(tenant) + 1 :]


def split_metric(name: str, tenants: Collection[str]) -> tuple[str, str | None]:
    """Return a metric's name in NAMES, and its tenant (None: it is about the run).

    Args:
        name: in a claim: "jain", "share.web".
        tenants: names of the run's tenants.

    Raises:
        ValueError: no such metric, or no such tenant; the text is fit for a user.
    """
    if name in NAMES and not name.endswith(PER_TENANT):
        return name, None
    if name.startswith(SAYS):
        parts = split_says(name, tenants)
        if parts is None or not parts[1]:
            raise ValueError(f"metric {name!r} is not says.TENANT.FIGURE of a tenant")
        return _SAYS_METRIC, parts[0]
    base, dot, tenant = name.partition(".")
    if base == CACHE:
        if tenant not in cached.FIGURES:
            raise ValueError(f"metric {base!r} has no figure {tenant!r}")
        return _CACHE_METRIC, None
    if base + PER_TENANT not in METRICS:
        raise ValueError(f"unknown metric {name!r}")
    if not dot or tenant == PER_TENANT[1:]:
        raise ValueError(f"metric {base!r} needs a tenant, as in {base}.NAME")
    if tenant not in tenants:
        raise ValueError(f"metric {name!r}: no tenant is called {tenant!r}")
    return base + PER_TENANT, tenant

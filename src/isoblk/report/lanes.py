# SPDX-License-Identifier: GPL-2.0-only
"""Lanes: a report shows tenants individually, or in groups if they are many."""

from collections.abc import Callable
from dataclasses import dataclass

from isoblk.analysis.metrics import Analysis
from isoblk.metrics.facts import RunMetrics
from isoblk.report import rows


@dataclass(frozen=True)
class Lane:
    """A tenant or a group of tenants with one colour. members: indices of tenants."""

    label: str
    members: tuple[int, ...]


def lane_rule(analysis: Analysis) -> Callable[[RunMetrics], list[Lane]]:
    """Return the function that groups a run's tenants into lanes; the same for the whole report."""
    if rows.few(analysis):
        weights_of: dict[str, set[int]] = {}
        for view in analysis.views:
            for t in view.spec.tenants:
                weights_of.setdefault(t.name, set()).add(t.weight)
            for event in view.spec.events:
                weights_of.setdefault(event.tenant, set()).add(event.weight)
        labels = {
            name: f"{name} (weight {min(found)})" if len(found) == 1 else name
            for name, found in weights_of.items()
        }
        return lambda m: [Lane(labels[t.name], (i,)) for i, t in enumerate(m.tenants)]
    weights = sorted({t.weight for v in analysis.views for t in v.spec.tenants}, reverse=True)
    if len(weights) <= rows.FEW_TENANTS:
        return lambda m: [
            Lane(f"all of weight {weight}", members)
            for weight in weights
            if (members := tuple(i for i, t in enumerate(m.tenants) if t.weight == weight))
        ]

    def quarter(metrics: RunMetrics) -> list[Lane]:
        order = sorted(range(len(metrics.tenants)), key=lambda i: -metrics.tenants[i].weight)
        cut = max(1, len(order) // 4)
        return [
            Lane("heaviest quarter", tuple(order[:cut])),
            Lane("the others", tuple(order[cut:])),
        ]

    return quarter


def lane_sum(metrics: RunMetrics, lane: Lane, field: str) -> float:
    """Return the sum of a field over the lane's tenants in a run."""
    return float(sum(getattr(metrics.tenants[i], field) for i in lane.members))

# SPDX-License-Identifier: GPL-2.0-only
"""Tenants as a report shows them: one by one, or grouped where they are many."""

from collections.abc import Callable
from dataclasses import dataclass

from isoblk.analysis.metrics import Analysis
from isoblk.metrics.facts import RunMetrics
from isoblk.report import rows


@dataclass(frozen=True)
class Lane:
    """What is drawn in one colour: one tenant or several. members: indexes of tenants."""

    label: str
    members: tuple[int, ...]


def lane_rule(analysis: Analysis) -> Callable[[RunMetrics], list[Lane]]:
    """How a run's tenants are grouped into lanes; one rule for the whole report."""
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
    """The sum of a field of the lane's tenants in a run."""
    return float(sum(getattr(metrics.tenants[i], field) for i in lane.members))

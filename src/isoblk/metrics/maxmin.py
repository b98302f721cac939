# SPDX-License-Identifier: GPL-2.0-only
"""The weighted max-min fair division, flat and over a tree of cgroups.

An amount is divided among tenants in proportion to their weights; a tenant that reaches the rate it
can use alone (its cap) gets no more, and the rest is divided among the others by weight. (D.
Bertsekas, R. Gallager, Data Networks, 2nd ed., 1992, section 6.5.2; with weights as in A. Demers,
S. Keshav, S. Shenker, SIGCOMM 1989.) In a tree the same is done at every inner cgroup, where a
child's cap is the sum of the caps below it, so that a tenant's unused part goes first to its
siblings (H. Zhang, J. C. R. Bennett, Hierarchical packet fair queueing, SIGCOMM 1996).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from isoblk.run.limits import DEFAULT_WEIGHT, OWN_WEIGHT
from isoblk.run.spec import Group, Tenant


def water_fill(total: float, weights: Sequence[float], caps: Sequence[float]) -> list[float]:
    """Divide `total` by `weights` (> 0) so that no part exceeds its cap (may be infinite).

    Returns:
        the amounts in the order given; they add up to min(total, sum of caps).
    """
    amounts = [0.0] * len(weights)
    left = total
    weight_left = math.fsum(weights)
    # In order of the water level at which each reaches its cap.
    order = sorted(range(len(weights)), key=lambda i: caps[i] / weights[i])
    for place, i in enumerate(order):
        fair = left * weights[i] / weight_left if weight_left > 0 else left
        if caps[i] >= fair:
            rest = order[place:]
            rest_weight = math.fsum(weights[j] for j in rest)
            for j in rest:
                amounts[j] = left * weights[j] / rest_weight
            break
        amounts[i] = caps[i]
        left -= caps[i]
        weight_left -= weights[i]
    return amounts


@dataclass(frozen=True)
class Node:
    """A cgroup, or a tenant in it (then `tenant` is its name and there are no children)."""

    weight: float
    tenant: str = ""
    children: tuple["Node", ...] = ()


def tree(
    tenants: Sequence[Tenant],
    groups: Sequence[Group],
    active: Collection[str],
    weights: Mapping[str, float],
) -> Node:
    """Return the hierarchy of the `active` tenants with the current `weights` (by tenant).

    Cgroups without an active tenant are left out. Tenants in one cgroup divide its amount by their
    weights; a cgroup that is only a parent weighs 100 unless it is in `groups`. A tenant whose
    cgroup has children gives it its weight, and weighs OWN_WEIGHT among them.
    """
    inner = {group.path for group in groups}
    cgroup_weight = {group.path: float(group.weight) for group in groups}
    cgroup_weight |= {tenant.cgroup: weights[tenant.name] for tenant in tenants}
    leaves: dict[str, list[Node]] = {}
    children: dict[str, list[str]] = {}
    known: set[str] = {""}
    for tenant in tenants:
        if tenant.name not in active:
            continue
        own = float(OWN_WEIGHT) if tenant.cgroup in inner else weights[tenant.name]
        leaves.setdefault(tenant.cgroup, []).append(Node(own, tenant.name))
        path = tenant.cgroup
        while path not in known:
            known.add(path)
            parent = path.rpartition("/")[0]
            children.setdefault(parent, []).append(path)
            path = parent

    def build(path: str) -> Node:
        below = [build(child) for child in children.get(path, [])]
        weight = cgroup_weight.get(path, float(DEFAULT_WEIGHT))
        return Node(weight, children=(*leaves.get(path, ()), *below))

    return build("")


def divide(root: Node, total: float, caps: Mapping[str, float]) -> dict[str, float]:
    """Divide `total` over the tree. caps: by tenant, in the unit of total; absent: none.

    If all tenants together cannot use `total`, each gets its cap.
    """
    amounts: dict[str, float] = {}

    def cap_of(node: Node) -> float:
        if node.tenant:
            return caps.get(node.tenant, math.inf)
        return math.fsum(cap_of(child) for child in node.children)

    def pour(node: Node, amount: float) -> None:
        if node.tenant:
            amounts[node.tenant] = amount
            return
        weights = [child.weight for child in node.children]
        parts = water_fill(amount, weights, [cap_of(child) for child in node.children])
        for child, part in zip(node.children, parts, strict=True):
            pour(child, part)

    pour(root, total)
    return amounts


def shares(root: Node, total: float, caps: Mapping[str, float]) -> dict[str, float]:
    """Divide as divide(), into fractions that add up to 1. An excess over the sum of the caps, by
    noise, is spread in proportion to the caps."""
    amounts = divide(root, total, caps)
    whole = math.fsum(amounts.values())
    if whole <= 0:
        amounts = divide(root, 1.0, {})
        whole = 1.0
    return {name: amount / whole for name, amount in amounts.items()}

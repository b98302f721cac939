# SPDX-License-Identifier: GPL-2.0-only
"""The weighted max-min fair division, flat and over a tree of cgroups.

An amount is poured over tenants in proportion to their weights; who reaches what it can use
alone (its cap) stops there, and what it leaves goes to the others by weight. (D. Bertsekas,
R. Gallager, Data Networks, 2nd ed., 1992, section 6.5.2; with weights as in A. Demers,
S. Keshav, S. Shenker, SIGCOMM 1989.) In a tree the same is done at every inner cgroup, where
a child's cap is the sum of the caps below it, so that what a tenant leaves goes first to its
siblings (H. Zhang, J. C. R. Bennett, Hierarchical packet fair queueing, SIGCOMM 1996).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from isoblk.run.limits import DEFAULT_WEIGHT, OWN_WEIGHT
from isoblk.run.spec import Group, Tenant


def water_fill(total: float, weights: Sequence[float], caps: Sequence[float]) -> list[float]:
    """Divide `total` by `weights` (> 0) so that nobody exceeds its cap (may be infinite).

    Returns:
        the amounts in the order given; they add up to min(total, sum of caps).
    """
    amounts = [0.0] * len(weights)
    left = total
    weight_left = math.fsum(weights)
    # Whoever fills up at the lowest level of water comes first.
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
    """The hierarchy of those tenants that are `active`, with the `weights` of the moment (by
    tenant). Cgroups nobody is active in are left out. Tenants in one cgroup divide what it
    gets by their weights; a cgroup that is only somebody's parent weighs 100 unless in `groups`.
    A tenant whose cgroup has children gives it its weight, and weighs OWN_WEIGHT among them.
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
    """divide(), as fractions that add up to 1. What no cap allows (a total above the sum of
    the caps, by noise) is spread in proportion, so that the fractions stay those of the caps."""
    amounts = divide(root, total, caps)
    whole = math.fsum(amounts.values())
    if whole <= 0:
        amounts = divide(root, 1.0, {})
        whole = 1.0
    return {name: amount / whole for name, amount in amounts.items()}

# SPDX-License-Identifier: GPL-2.0-only
"""The share of the device that weights promise."""

from collections.abc import Sequence

from isoblk.study.model import Group, Tenant


def parent_of(path: str) -> str:
    """The cgroup above `path`; "" is the root."""
    return path.rpartition("/")[0]


def effective_shares(tenants: Sequence[Tenant], groups: Sequence[Group]) -> dict[str, float]:
    """Each tenant's share by weight, by name; they add up to 1.

    A cgroup's share is its parent's, times its weight over the sum of the weights of all
    the parent's children (cgroup v2, "Weights": Documentation/admin-guide/cgroup-v2.rst).

    Args:
        tenants: the run's tenants.
        groups: all inner cgroups of their paths, parents before children.
    """
    siblings: dict[str, int] = {}
    for path, weight in [(g.path, g.weight) for g in groups] + [
        (t.cgroup, t.weight) for t in tenants
    ]:
        siblings[parent_of(path)] = siblings.get(parent_of(path), 0) + weight
    share = {"": 1.0}
    for group in groups:
        above = parent_of(group.path)
        share[group.path] = share[above] * group.weight / siblings[above]
    return {
        tenant.name: share[parent_of(tenant.cgroup)]
        * tenant.weight
        / siblings[parent_of(tenant.cgroup)]
        for tenant in tenants
    }

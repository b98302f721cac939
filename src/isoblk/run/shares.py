# SPDX-License-Identifier: GPL-2.0-only
"""The share of the device that weights promise."""

from collections.abc import Collection, Sequence

from isoblk.run.limits import OWN_WEIGHT
from isoblk.run.spec import Group, Tenant


def parent_of(path: str) -> str:
    """Return the parent cgroup of `path`; "" is the root."""
    return path.rpartition("/")[0]


def effective_shares(tenants: Sequence[Tenant], groups: Sequence[Group]) -> dict[str, float]:
    """Return each tenant's share by weight, by name; they add up to 1.

    A cgroup's share is its parent's, times its weight over the sum of the weights of the parent's
    children (cgroup v2, "Weights": Documentation/admin-guide/cgroup-v2.rst). The cgroup's own
    requests count as a child of weight OWN_WEIGHT.

    Args:
        tenants: the run's tenants.
        groups: all inner cgroups of their paths, parents before children.
    """
    inner = {group.path for group in groups}
    siblings: dict[str, int] = {}
    for group in groups:
        _add(siblings, parent_of(group.path), group.weight)
    for tenant in tenants:
        _add(siblings, *_place(tenant, inner))
    share = {"": 1.0}
    for group in groups:
        above = parent_of(group.path)
        share[group.path] = share[above] * group.weight / siblings[above]
    result = {}
    for tenant in tenants:
        above, weight = _place(tenant, inner)
        result[tenant.name] = share[above] * weight / siblings[above]
    return result


def _add(sums: dict[str, int], path: str, weight: int) -> None:
    sums[path] = sums.get(path, 0) + weight


def _place(tenant: Tenant, inner: Collection[str]) -> tuple[str, int]:
    """Return the cgroup whose share the tenant's requests divide with siblings, and their
    weight."""
    if tenant.cgroup in inner:
        return tenant.cgroup, OWN_WEIGHT
    return parent_of(tenant.cgroup), tenant.weight

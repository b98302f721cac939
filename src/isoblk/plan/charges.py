# SPDX-License-Identifier: GPL-2.0-only
"""Files with the kernel's charges to a tenant's cgroup."""

from isoblk.run.spec import RUNNING, RunSpec, Tenant
from isoblk.run.tier import Place
from isoblk.schedulers.registry import kind_of


def throttles(spec: RunSpec) -> bool:
    """Return whether the throttling policy counts, if it is in use."""
    return spec.cgroup == "v1" and not kind_of(spec.scheduler).blkio_policy


def charge_files(tenant: Tenant, spec: RunSpec, place: Place) -> list[str]:
    """Return files of the tenant's cgroup with bytes and requests."""
    directory = place.cgroup_of(tenant.cgroup)
    if spec.cgroup == "v2":
        return [f"{directory}/io.stat"]
    # Only the policy that counts has figures: the elevator's, else throttling if it is in use.
    name = kind_of(spec.scheduler).blkio_policy or "throttle"
    # A running tenant's processes may be in child cgroups.
    deep = "_recursive" if tenant.workload.program == RUNNING else ""
    return [f"{directory}/blkio.{name}.io_{what}{deep}" for what in ("service_bytes", "serviced")]

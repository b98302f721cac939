# SPDX-License-Identifier: GPL-2.0-only
"""Small runs for tests."""

from typing import Any

from isoblk.run.spec import Group, NullBlkDevice, RunSpec, Scheduler, Tenant, VdiskDevice, Workload

MS = 1_000_000
SECOND = 1_000_000_000

__all__ = ["MS", "SECOND", "Group", "NullBlkDevice", "VdiskDevice", "run_spec", "tenant"]


def tenant(name: str = "t1", weight: int = 100, cgroup: str = "", **load: Any) -> Tenant:
    return Tenant(name=name, cgroup=cgroup or name, weight=weight, workload=Workload(**load))


def run_spec(scheduler: str = "none", **fields: Any) -> RunSpec:
    options = fields.pop("options", {})
    elevator = "none" if scheduler.startswith("io.") else scheduler
    values: dict[str, Any] = {
        "kind": "share",
        "point": {"scheduler": scheduler},
        "repeat": 0,
        "device": VdiskDevice(),
        "scheduler": Scheduler(name=scheduler, elevator=elevator, **options),
        "cgroup": "v2",
        "queue": {},
        "groups": (),
        "tenants": (tenant("t1", 1000), tenant("t2", 500)),
        "events": (),
        "warmup_ns": 0,
        "runtime_ns": SECOND,
        "window_ms": 100,
        "seed": 1,
    }
    return RunSpec(**(values | fields))

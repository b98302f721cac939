# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel's io controllers have in common."""

from isoblk.run.field import Field, FieldError
from isoblk.run.spec import Scheduler
from isoblk.schedulers.base import SchedulerKind


class Controller(SchedulerKind):
    """A controller of cgroup v2, on top of `none`.

    io.max has a relative on v1, with other rules.
    """

    elevator = "none"
    v2_only = True
    one_disk = True


class Limit(Controller):
    """One that knows no weights: the run turns them into limits."""

    fixed_weights = True

    def check_beside_running(self, scheduler: Scheduler, tenant: Field) -> None:
        """Refuse: what it can set is for isoblk's own tenants."""
        raise FieldError(
            tenant,
            f"{self.name} has limits and no weights, which are for isoblk's own tenants",
            next=f"leave out {self.name}",
        )

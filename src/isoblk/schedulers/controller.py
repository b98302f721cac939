# SPDX-License-Identifier: GPL-2.0-only
"""Common parts of the kernel's io controllers."""

from isoblk.run.field import Field, FieldError
from isoblk.run.spec import Scheduler
from isoblk.schedulers.base import SchedulerKind


class Controller(SchedulerKind):
    """A controller of cgroup v2, on top of `none`.

    io.max has a counterpart on v1, with other rules.
    """

    elevator = "none"
    v2_only = True
    one_disk = True


class Limit(Controller):
    """A controller without weights: the run converts them to limits."""

    fixed_weights = True

    def check_beside_running(self, scheduler: Scheduler, tenant: Field) -> None:
        """Refuse: its limits are only for isoblk's own tenants."""
        raise FieldError(
            tenant,
            f"{self.name} has limits and no weights, which are for isoblk's own tenants",
            next=f"remove {self.name}",
        )

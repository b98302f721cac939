# SPDX-License-Identifier: GPL-2.0-only
"""io.latency: a target for each tenant; if a tenant misses it, the depth of the others is
reduced."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from isoblk.run.field import FieldError
from isoblk.run.options import said
from isoblk.run.setting import Setting
from isoblk.run.spec import CgroupVersion, Scheduler
from isoblk.run.units import TIME_HINT, parse_time
from isoblk.schedulers.base import Asked, pairs
from isoblk.schedulers.controller import Limit


class IoLatencyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[io_latency]: the heaviest tenant's target, a number in microseconds; a lighter one's is
    inversely proportional to its weight. If tenants have a latency_target, only these targets
    apply."""

    target: Annotated[
        int | float | str, said("The heaviest tenant's target: us, or text with us, ms or s.")
    ] = "100us"


class IoLatency(Limit):
    """block/blk-iolatency.c."""

    name = "io.latency"
    table = "io_latency"
    target_file = "io.latency"

    def make(self, asked: Asked) -> Scheduler:
        """Return io.latency with the tenants' own targets, or with those of their weights."""
        assert isinstance(asked.table, IoLatencyTable)
        targets = asked.targets()
        if not targets:
            try:
                target_ns = parse_time(asked.table.target, "us")
            except ValueError as error:
                raise FieldError(("io_latency", "target"), str(error), next=TIME_HINT) from None
            shares = asked.shares()
            largest = max(shares.values())
            targets = {
                tenant: max(1, round(target_ns / 1000 * largest / share))
                for tenant, share in shares.items()
            }
        return Scheduler(name=self.name, elevator=self.elevator, io_latency_us=targets)

    def tenant_settings(
        self, scheduler: Scheduler, tenant: str, directory: str, cgroup: CgroupVersion
    ) -> Iterator[Setting]:
        """Yield the tenant's target."""
        if us := scheduler.io_latency_us.get(tenant):
            yield Setting(f"{directory}/{self.target_file}", pairs({"target": us}), "pairs")

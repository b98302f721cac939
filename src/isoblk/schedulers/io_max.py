# SPDX-License-Identifier: GPL-2.0-only
"""io.max: a cap for each tenant, its share by weight of the throughput without a scheduler."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from isoblk.run.field import FieldError
from isoblk.run.options import said
from isoblk.run.setting import Setting
from isoblk.run.spec import CgroupVersion, Scheduler
from isoblk.schedulers.base import Asked, Measured, pairs
from isoblk.schedulers.controller import Limit

# Far above what a study needs; it catches typing errors.
_SCALE = 1_000_000


class IoMaxTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[io_max]: each tenant is capped at its weight's share of the total that `none`
    reaches in the same study point, times `scale`."""

    scale: Annotated[
        float, said("Factor of the caps, which are shares by weight of the total under none.")
    ] = 1.0


class IoMax(Limit):
    """block/blk-throttle.c."""

    name = "io.max"
    table = "io_max"
    after_none = "the limits of io.max"

    def check(self, table: msgspec.Struct) -> None:
        """Check the scale."""
        assert isinstance(table, IoMaxTable)
        if not 0 < table.scale <= _SCALE:
            raise FieldError(
                ("io_max", "scale"),
                f"{table.scale} is out of range",
                next=f"allowed: more than 0, up to {_SCALE}",
            )

    def make(self, asked: Asked) -> Scheduler:
        """Return io.max without caps, which depend on the run under `none`."""
        assert isinstance(asked.table, IoMaxTable)
        return Scheduler(name=self.name, elevator=self.elevator, io_max_scale=asked.table.scale)

    def complete(self, scheduler: Scheduler, measured: Measured) -> Scheduler:
        """Return io.max with the caps: share x total x scale, at least 1. A cap of 0 means no cap
        ("max" in io.max): there was no I/O in that direction."""
        if measured.totals is None:
            raise ValueError("io.max needs the totals of the run under none")
        read, written = measured.totals
        caps = {
            tenant: (
                _cap(share, read, scheduler.io_max_scale),
                _cap(share, written, scheduler.io_max_scale),
            )
            for tenant, share in measured.shares.items()
        }
        return msgspec.structs.replace(scheduler, io_max=caps)

    def tenant_settings(
        self, scheduler: Scheduler, tenant: str, directory: str, cgroup: CgroupVersion
    ) -> Iterator[Setting]:
        """Yield the tenant's caps."""
        if scheduler.io_max is None:
            raise ValueError("io.max without limits: the run they are taken from has not ended")
        limits = dict(zip(("rbps", "wbps"), scheduler.io_max[tenant], strict=True))
        if capped := {name: value for name, value in limits.items() if value}:
            yield Setting(f"{directory}/io.max", pairs(capped), "pairs")


def _cap(share: float, total: int, scale: float) -> int:
    return max(1, round(share * total * scale)) if total else 0

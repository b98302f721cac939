# SPDX-License-Identifier: GPL-2.0-only
"""A run in which tenants have more than the disk can do is not believed; others are."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.campaign.physics import impossible
from isoblk.programs.blkload import TenantOutput
from isoblk.run.record import OpTotals
from isoblk.run.spec import DeviceEvent, RunSpec, VdiskDevice
from tests.unit.specs import MS, run_spec, tenant

MB = 1_000_000
DISK = VdiskDevice(read_bps=400 * MB)


def output(op: str, windows: dict[int, int], measured: int = 0) -> TenantOutput:
    totals = OpTotals(
        **dict.fromkeys(OpTotals.__struct_fields__, 0) | {"meas_bytes": measured},
    )
    return TenantOutput(
        jobs=1,
        error=0,
        measured_ns=(0, 0),
        ops={op: totals},
        windows={(op, t_ms): (1, size) for t_ms, size in windows.items()},
    )


def spec(**changes: Any) -> RunSpec:
    return run_spec(
        **{
            "device": DISK,
            "tenants": (tenant("a"), tenant("b")),
            "runtime_ns": 1000 * MS,
            "window_ms": 100,
            **changes,
        }
    )


def test_a_window_in_which_all_have_more_than_the_disk_can_do_is_named() -> None:
    outputs = {"a": output("read", {0: 30 * MB, 100: 25 * MB}), "b": output("read", {100: 25 * MB})}
    (told,) = impossible(spec(), outputs)
    assert told == ("tenants have 50000000 bytes (read) of 100 ms, and the disk can do 40000000")


def test_so_is_the_measured_time() -> None:
    outputs = {name: output("read", {}, 250 * MB) for name in "ab"}
    (told,) = impossible(spec(), outputs)
    assert "500000000 bytes (read) of 1000 ms" in told


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_rates_within_the_limits_of_the_disk_are_believed(parts: list[float]) -> None:
    whole = max(sum(parts), 1)
    windows = [round(40 * MB * part / whole) for part in parts]
    outputs = {
        f"t{i}": output("read", {0: size, 100: size}, 10 * size) for i, size in enumerate(windows)
    }
    assert list(impossible(spec(), outputs)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"device": VdiskDevice()},
        {"device": VdiskDevice(write_bps=400 * MB)},
        {"device_events": (DeviceEvent(at_ns=1, attributes={"read_bps": 0}),)},
        {"device_events": (DeviceEvent(at_ns=1, attributes={"read_bps": 900 * MB}),)},
        # Of which the last piece alone may have been in the window.
        {"tenants": (tenant("a", bs=32 << 20), tenant("b"))},
    ],
)
def test_where_the_disk_may_do_more_nothing_is_said(changes: dict[str, Any]) -> None:
    outputs = {"a": output("read", {0: 60 * MB}, 420 * MB), "b": output("read", {})}
    assert list(impossible(spec(**changes), outputs)) == []


def test_a_disk_that_gets_slower_is_held_to_its_limits_before() -> None:
    slower = DeviceEvent(at_ns=1, attributes={"read_bps": 100 * MB, "servers": 2})
    of = msgspec.structs.replace(spec(), device_events=(slower,))
    assert list(impossible(of, {"a": output("read", {0: 40 * MB})})) == []
    assert list(impossible(of, {"a": output("read", {0: 60 * MB})}))

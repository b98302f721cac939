# SPDX-License-Identifier: GPL-2.0-only
"""Fitting: a known device is recovered from measurements on it.

The lab is replaced by its models' formulas (kernel/README.md, model "flash"), so these tests are
of the fit and not of the models.
"""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoblk.device.fit import Fit, attributes, distance, estimate, random_reads, refine
from isoblk.device.greedy import spare_for, write_amplification
from isoblk.device.measure import Measured
from isoblk.errors import UserError
from isoblk.run.spec import FlashModel, VdiskDevice
from isoblk.run.units import parse_size
from isoblk.study.model import ExpectEntry
from tests.examples import at_most

LOADS = [
    ("randread", "4k", 1, "lat_mean_ns"),
    ("randwrite", "4k", 1, "lat_mean_ns"),
    ("randread", "4k", 8, "iops"),
    ("randread", "4k", 128, "iops"),
    ("randwrite", "4k", 64, "iops"),
    ("read", "128k", 32, "bps"),
    ("write", "128k", 32, "bps"),
]


def load(rw: str, bs: str, iodepth: int, metric: str, value: float = 1) -> ExpectEntry:
    return ExpectEntry(
        what=f"{rw} {bs} {iodepth}",
        rw=rw,  # type: ignore[arg-type]
        metric=metric,  # type: ignore[arg-type]
        value=value,
        source="test",
        bs=bs,
        iodepth=iodepth,
        state="steady",
    )


def formula(device: VdiskDevice, entry: ExpectEntry) -> float:
    """The figures of model "flash", to a few per cent."""
    flash = device.flash
    dies, block = flash.channels * flash.dies, parse_size(entry.bs)
    row = flash.planes * flash.page_size
    bus = 1e9 / flash.bus_bps
    if entry.rw == "randread":
        alone = flash.cmd_ns + flash.read_ns + block * bus + flash.read_latency_ns
        if entry.metric == "lat_mean_ns":
            return alone
        at_die = flash.read_ns + block * bus
        return min(random_reads(entry.iodepth, dies, alone - at_die, at_die), 1e9 / flash.cmd_ns)
    if entry.metric == "lat_mean_ns":
        return flash.cmd_ns + flash.write_latency_ns
    if entry.rw == "read":
        peak = dies * row * 1e9 / (flash.read_ns + row * bus)
        return min(peak, device.read_bps or peak)
    peak = dies * row * 1e9 / (flash.program_ns + row * bus)
    if entry.rw == "randwrite":
        return min(peak / write_amplification(flash.spare / 1000) / block, 1e9 / flash.cmd_ns)
    return peak


def measured(device: VdiskDevice, expect: Sequence[ExpectEntry]) -> list[Measured]:
    return [Measured(entry, formula(device, entry)) for entry in expect]


def figures_of(device: VdiskDevice) -> list[ExpectEntry]:
    loads = [load(*one) for one in LOADS]
    return [msgspec.structs.replace(one, value=formula(device, one)) for one in loads]


def fitted(expect: Sequence[ExpectEntry]) -> Fit:
    return refine(estimate(expect), expect, lambda device: measured(device, expect), 8)


@settings(max_examples=at_most(60))
@given(
    read_ns=st.integers(30_000, 120_000),
    program_ns=st.integers(300_000, 2_000_000),
    spare=st.integers(50, 400),
    latency=st.integers(5_000, 40_000),
    dies=st.sampled_from([8, 16, 32, 64]),
    cmd_ns=st.integers(500, 2_000),
)
def test_a_known_device_comes_back_within_a_few_per_cent(
    read_ns: int, program_ns: int, spare: int, latency: int, dies: int, cmd_ns: int
) -> None:
    flash = FlashModel(
        channels=8,
        dies=dies // 8,
        read_ns=read_ns,
        program_ns=program_ns,
        spare=spare,
        read_latency_ns=latency,
        write_latency_ns=latency,
        cmd_ns=cmd_ns,
    )
    device = VdiskDevice(model="flash", read_bps=2_000_000_000, flash=flash)
    expect = figures_of(device)
    fit = fitted(expect)
    # The one in the middle of the depths decides nothing of its own but the number of dies.
    for one in fit.measured:
        assert abs(one.error) < (0.25 if one.expect.iodepth == 8 else 0.03), one


def test_the_attributes_that_figures_determine_are_the_devices_own() -> None:
    device = VdiskDevice(
        model="flash",
        read_bps=2_000_000_000,
        flash=FlashModel(read_ns=56_000, read_latency_ns=18_000, spare=150, program_ns=900_000),
    )
    fit = fitted(figures_of(device)).device
    assert fit.flash.channels * fit.flash.dies in (24, 32, 48)
    assert fit.flash.spare == pytest.approx(150, rel=0.03)
    assert fit.flash.program_ns == pytest.approx(900_000, rel=0.03)
    assert fit.flash.write_latency_ns == pytest.approx(8_000, abs=1_000)
    assert fit.read_bps == pytest.approx(2_000_000_000, rel=0.01)


def test_no_round_makes_it_worse() -> None:
    expect = figures_of(VdiskDevice(model="flash", flash=FlashModel(read_ns=90_000)))
    first = estimate(expect)
    before = distance(measured(first, expect))
    for rounds in range(4):
        fit = refine(first, expect, lambda device: measured(device, expect), rounds)
        assert distance(fit.measured) <= before
        before = distance(fit.measured)


def test_a_drive_that_seeks_is_a_disk() -> None:
    expect = [
        load("randread", "4k", 1, "lat_mean_ns", 12_500_000),
        load("randwrite", "4k", 1, "lat_mean_ns", 3_000_000),
        load("read", "128k", 32, "bps", 160e6),
    ]
    device = estimate(expect)
    assert (device.model, device.disk.outer_bps, device.write_cache) == ("disk", 160_000_000, True)
    assert {one.name for one in attributes(device, expect).values()} == {"seek_avg_ns", "outer_bps"}


def test_the_seek_time_is_fitted_to_the_measured_latency() -> None:
    expect = [load("randread", "4k", 1, "lat_mean_ns", 12_000_000)]

    def disk(device: VdiskDevice) -> list[Measured]:
        seeks = device.disk
        mean = 0.2 * seeks.seek_min_ns + 0.652 * seeks.seek_avg_ns + 0.148 * seeks.seek_max_ns
        return [Measured(expect[0], mean + 4_166_667)]

    fit = refine(estimate(expect), expect, disk, 3)
    assert abs(fit.measured[0].error) < 0.001


def test_without_random_reads_there_is_no_guess() -> None:
    with pytest.raises(UserError, match="no usable job of random reads"):
        estimate([load("write", "128k", 32, "bps", 1e9)])


@pytest.mark.parametrize(
    ("spare", "amplification"),
    # Known values of greedy collection: 1.07, 1.15, 1.28 and twice the data.
    [(0.07, 7.82), (0.15, 4.02), (0.28, 2.48), (1.0, 1.26)],
)
def test_write_amplification_agrees_with_known_values(spare: float, amplification: float) -> None:
    assert write_amplification(spare) == pytest.approx(amplification, abs=0.01)


@given(st.floats(0.01, 10))
def test_spare_and_amplification_are_inverse(spare: float) -> None:
    assert spare_for(write_amplification(spare)) == pytest.approx(spare, rel=1e-3)

# SPDX-License-Identifier: GPL-2.0-only
"""Presets do what their sources say, and a drive that was measured can be rebuilt."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from isoblk.campaign.execute import Bench
from isoblk.device.fiojson import read_fio
from isoblk.device.fit import estimate, refine
from isoblk.device.greedy import write_amplification
from isoblk.device.measure import Measured, measure
from isoblk.plan.plan import make_plan
from isoblk.run.spec import FlashModel, VdiskDevice
from isoblk.study.model import ExpectEntry
from isoblk.study.presets import load_device, load_preset, preset_names
from tests.lab.guest import Guest
from tests.lab.load import STATS, VDISK, numbers, run, tenant
from tests.unit.fioresults import fio_document, fio_job
from tests.unit.specs import run_spec

# Figures that the models do not meet, as the presets' files and studies/devices/README.md say.
NOT_MET = {
    "980pro-1t": [
        "random read 4k, depth 32, p99",
        "random read 4k, 8 jobs of depth 32, p99",
        "random write 4k, depth 128, beside a reader, p50",
        "random write 4k, depth 128, beside a reader, kyber at 100 us",
        "random read 4k, depth 1, beside writes of depth 128, kyber at 100 us, p50",
        "random read 4k, depth 1, beside writes of depth 128, kyber at 100 us, p99",
        "random read 4k, depth 1, beside 1 writer of 4k, depth 128, p99",
        "random read 4k, depth 1, beside 2 writers of 4k, depth 128, p99",
        "random read 4k, depth 1, beside 2 writers of 64k, depth 128, p99",
        "random read 4k, depth 1, beside 4 writers of 64k, depth 128, p99",
        "random read 4k, depth 1, beside 16 writers of 64k, depth 128, p99",
        "random read 4k, depth 1, beside 8 writers of 4k, depth 128, bfq, p99",
        "random read 4k, depth 1, beside 8 writers of 64k, depth 128, bfq, p99",
        "sequential read 1m",
        "sequential read 4k, depth 64",
        "random read 4k, depth 64",
        "sequential write 4k, depth 64",
        "random write 4k, depth 64",
    ],
    "990pro-2t": [
        "sequential read 1m",
        "sequential read 4k, depth 64",
    ],
}
SIZES = ("4k", "64k")
CHECKED = [name for name in preset_names() if load_preset(name).expect]


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as one:
        yield one


def test_there_are_presets_to_check() -> None:
    assert {"p4500-1t", "p4500-2t", "860pro-256g", "840evo-120g", "980pro-1t"} <= set(CHECKED)


@pytest.mark.long
@pytest.mark.parametrize("name", CHECKED)
def test_a_preset_reproduces_the_figures_of_its_source(
    name: str, default_bench: Bench, executor: Executor
) -> None:
    measured = measure(load_device(name), load_preset(name).expect, default_bench, executor)
    off = {one.expect.what: f"{one.error:+.1%}" for one in measured if not one.ok}
    assert list(off) == NOT_MET.get(name, []), off
    values = {one.expect.what: one.value for one in measured}
    for what in (f"random read 4k, depth 1, beside 8 writers of {bs}, depth 128" for bs in SIZES):
        if name == "980pro-1t":
            # The order of the schedulers is that of the source.
            none, bfq, kyber = (values[f"{what}{which}, p99"] for which in ("", ", bfq", ", kyber"))
            assert max(bfq, kyber) < none / 4


def test_a_read_of_a_written_drive_waits_for_flash_and_one_of_a_fresh_drive_does_not(
    default_bench: Bench, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The drive as a study has it, not in the state of which a figure's source speaks.
    monkeypatch.setattr("isoblk.device.measure.in_state", lambda device, expect: device)
    alone = ExpectEntry(what="x", rw="randread", metric="lat_p50_ns", value=64_000, source="s")
    values = [
        measure(load_device(entry), [alone], default_bench, executor)[0].value
        for entry in ("980pro-1t", {"preset": "980pro-1t", "fresh": True})
    ]
    assert values[0] == pytest.approx(64_000, rel=0.05)
    assert values[1] < values[0] / 2


def test_sustained_random_writes_slow_the_p4500_by_the_cost_of_garbage_collection(
    guest: Guest, default_bench: Bench, executor: Executor
) -> None:
    device = load_device("p4500-1t")
    assert isinstance(device, VdiskDevice)
    (steady,) = (one for one in load_preset("p4500-1t").expect if one.what == "random write 4k")
    fresh = msgspec.structs.replace(steady, state="fresh")
    slow, fast = measure(device, [steady, fresh], default_bench, executor)
    assert slow.value < fast.value / 3

    settings = make_plan(run_spec(device=device)).settings
    disk = [one for one in settings if one.path.startswith(VDISK)]
    left = guest.run(
        "\n".join(
            [
                f"mkdir {VDISK}/disk0",
                *(f"echo {one.value} > {one.path}" for one in disk),
                tenant("t", rw="randwrite", iodepth=128, runtime="5s"),
                run("results"),
                f"cat {STATS}/disk0/stats > /run/isoblk/stats",
            ]
        )
    )
    stats = numbers(left.read("stats"))
    amplification = 1 + stats["gc_pages"] / stats["host_pages"]
    spare = stats["flash_pages"] * 4096 / device.size - 1
    assert amplification == pytest.approx(write_amplification(spare), rel=0.1)


@pytest.mark.long
def test_a_drive_that_fio_measured_is_rebuilt(
    tmp_path: Path, default_bench: Bench, executor: Executor
) -> None:
    drive = VdiskDevice(
        model="flash",
        size=4 << 30,
        read_bps=2_500_000_000,
        flash=FlashModel(dies=2, block_pages=16, spare=200, read_ns=50_000, program_ns=900_000),
    )
    loads = [
        ("randread", "4k", 1, "lat_mean_ns", "mean_ns"),
        ("randwrite", "4k", 1, "lat_mean_ns", "mean_ns"),
        ("randread", "4k", 128, "iops", "iops"),
        ("randwrite", "4k", 64, "iops", "iops"),
        ("read", "128k", 64, "bps", "bps"),
        ("write", "128k", 64, "bps", "bps"),
    ]
    jobs = []
    for group, (rw, bs, iodepth, metric, of_fio) in enumerate(loads):
        entry = ExpectEntry(
            what=rw,
            rw=rw,  # type: ignore[arg-type]
            bs=bs,
            iodepth=iodepth,
            metric=metric,  # type: ignore[arg-type]
            value=1,
            source="the drive",
            state="steady" if rw == "randwrite" else "fresh",
        )
        (one,) = measure(drive, [entry], default_bench, executor)
        options = {"rw": rw, "bs": bs, "iodepth": str(iodepth)}
        jobs.append(fio_job(f"job{group}", options, group=group, **{of_fio: one.value}))
    path = tmp_path / "drive.json"
    path.write_text(json.dumps(fio_document(*jobs)))
    found = read_fio(path, "steady")
    assert found.left_out == ()
    expect = found.figures

    def lab(device: VdiskDevice) -> Sequence[Measured]:
        return measure(device, expect, default_bench, executor)

    fit = refine(estimate(expect), expect, lab, 3)
    assert [(one.expect.what, f"{one.error:+.1%}") for one in fit.measured if not one.ok] == []

# SPDX-License-Identifier: GPL-2.0-only
"""The attributes of the models: in presets, in a plan, and in an event."""

import tomllib
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from isoblk.device.measure import TAIL_TOLERANCE, TOLERANCE, Measured, in_state, make_spec
from isoblk.device.text import figure, preset_toml, tables
from isoblk.errors import UserError
from isoblk.machine.uml import memory_mib
from isoblk.plan.plan import make_plan
from isoblk.run.field import FieldError
from isoblk.run.spec import DiskModel, FlashModel, RwMode, VdiskDevice
from isoblk.study.model import ExpectEntry, ExpectLoad, ExpectMetric
from isoblk.study.presets import (
    Preset,
    load_change,
    load_device,
    load_preset,
    memory_bytes,
    preset_names,
)
from tests.unit.specs import run_spec

DEVICE = "/sys/kernel/config/isoblk_vdisk/disk0/"


def written(device: VdiskDevice) -> dict[str, str]:
    """The values that a plan writes for the device, by file below its directory."""
    settings = make_plan(run_spec(device=device)).settings
    return {
        setting.path.removeprefix(DEVICE): setting.text
        for setting in settings
        if setting.path.startswith(DEVICE)
    }


def test_a_disk_of_fixed_times_is_written_without_attributes_it_ignores() -> None:
    assert list(written(VdiskDevice())) == [
        *("model", "size", "logical_block_size", "queue_depth", "hw_queues"),
        *("read_bps", "write_bps", "servers", "read_ns", "write_ns", "trim_ns", "power"),
    ]


def test_attributes_that_are_not_defaults_are_written_before_the_power() -> None:
    names = written(VdiskDevice(write_cache=True, store="memory", jitter=5, flush_ns=7, seed=3))
    assert names["write_cache"] == "1"
    assert (names["store"], names["jitter"], names["flush_ns"]) == ("memory", "5", "7")
    assert (names["seed"], list(names)[-1]) == ("3", "power")


@pytest.mark.parametrize(
    ("device", "group", "other"),
    [
        (VdiskDevice(model="flash"), FlashModel, "disk/"),
        (VdiskDevice(model="disk"), DiskModel, "flash/"),
    ],
)
def test_only_the_group_of_the_model_in_use_is_written_and_all_of_it(
    device: VdiskDevice, group: type[msgspec.Struct], other: str
) -> None:
    names = written(device)
    own = [f"{device.model}/{name}" for name in group.__struct_fields__]
    assert [name for name in names if "/" in name] == own
    assert not any(name.startswith(other) for name in names)
    assert "servers" not in names


def test_an_event_names_the_file_in_the_group() -> None:
    device = VdiskDevice(model="flash")
    change = load_change(device, {"flash": {"program_ns": "2ms"}, "jitter": 3})
    assert change == {"flash/program_ns": 2_000_000, "jitter": 3}


def test_a_table_changes_one_attribute_of_a_presets_group() -> None:
    before, after = (
        load_device(entry)
        for entry in ("p4500-1t", {"preset": "p4500-1t", "flash": {"spare": 280}})
    )
    assert isinstance(before, VdiskDevice)
    assert isinstance(after, VdiskDevice)
    assert after.flash == msgspec.structs.replace(before.flash, spare=280)


FLASH = [name for name in preset_names() if load_preset(name).device.get("model") == "flash"]


def flash_of(entry: str | dict[str, object]) -> FlashModel:
    device = load_device(entry)
    assert isinstance(device, VdiskDevice)
    return device.flash


@pytest.mark.parametrize("name", FLASH)
def test_every_flash_preset_states_that_it_has_been_written(name: str) -> None:
    stated = load_preset(name).device["flash"]
    assert isinstance(stated, dict)
    assert stated["precondition"] in ("sequential", "random")


@pytest.mark.parametrize("name", FLASH)
def test_a_flash_preset_is_empty_only_if_the_study_says_fresh(name: str) -> None:
    written = flash_of(name)
    assert written.precondition != "none"
    assert written.fill == 100
    assert flash_of({"preset": name, "fresh": False}) == written
    assert flash_of({"preset": name, "fresh": True}) == msgspec.structs.replace(
        written, precondition="none"
    )


def test_a_preset_file_that_does_not_state_its_state_has_been_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "t"\nsource = "s"\n[device]\ndriver = "vdisk"\nmodel = "flash"\n')
    assert flash_of(str(path)).precondition == "sequential"
    assert flash_of({"preset": str(path), "fresh": True}).precondition == "none"


def test_a_table_without_a_preset_is_in_the_state_that_it_states() -> None:
    table = {"driver": "vdisk", "model": "flash"}
    assert flash_of({**table}).precondition == "none"
    assert flash_of({**table, "flash": {"precondition": "random"}}).precondition == "random"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"preset": "fast", "fresh": True}, "is for flash drives"),
        ({"driver": "vdisk", "model": "flash", "fresh": True}, "is of a preset"),
        ({"preset": "980pro-1t", "fresh": "yes"}, "expected true or false, got 'yes'"),
        (
            {"preset": "980pro-1t", "fresh": True, "flash": {"precondition": "random"}},
            "has flash.precondition = 'random' too",
        ),
    ],
)
def test_fresh_where_it_cannot_be_is_one_error(table: dict[str, object], why: str) -> None:
    with pytest.raises(UserError, match=rf"^device\.fresh: .*{why}"):
        load_device(table)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_a_device_and_its_figures_can_be_measured(name: str) -> None:
    device, preset = load_device(name), load_preset(name)
    assert preset.title and preset.source
    for entry in preset.expect:
        assert entry.source
        make_plan(make_spec(device, entry))
    # Two rows of a table that read alike would be one figure too many.
    assert len({entry.what for entry in preset.expect}) == len(preset.expect)


def test_writes_are_measured_on_an_erased_device_and_reads_on_one_that_holds_data() -> None:
    device = VdiskDevice(model="flash")
    expect = ExpectEntry(what="x", rw="randread", metric="iops", value=1, source="s")
    for rw, state, precondition in (
        ("randread", "fresh", "sequential"),
        ("randwrite", "fresh", "none"),
        ("randwrite", "steady", "random"),
    ):
        changed = msgspec.structs.replace(expect, rw=rw, state=state)
        found = in_state(device, changed)
        assert isinstance(found, VdiskDevice)
        assert found.flash.precondition == precondition
    assert in_state(VdiskDevice(), expect) == VdiskDevice()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"iodepth": 0}, "iodepth 0 is out of range"),
        ({"numjobs": 65}, "numjobs 65 is out of range"),
        ({"fill": 101}, "fill 101 is out of range"),
        ({"bs": "4x"}, "'4x' is not a size"),
        ({"runtime": 0}, "warmup and runtime are not whole ms"),
        ({"runtime": "1500us"}, "warmup and runtime are not whole ms"),
    ],
)
def test_a_figure_that_cannot_be_measured_is_named(change: dict[str, object], why: str) -> None:
    expect = ExpectEntry(what="the figure", rw="read", metric="iops", value=1, source="s")
    with pytest.raises(UserError, match=f"the figure: {why}"):
        make_spec(VdiskDevice(), msgspec.structs.replace(expect, **change))


def test_five_per_cent_is_the_most_that_a_figure_may_be_off() -> None:
    expect = ExpectEntry(what="x", rw="read", metric="iops", value=1000, source="s")
    assert TOLERANCE == 0.05
    assert [Measured(expect, value).ok for value in (949, 951, 1049, 1051)] == [
        *(False, True, True, False)
    ]
    assert Measured(expect, 1100).error == pytest.approx(0.1)


def test_a_99th_percentile_may_be_off_by_fifteen() -> None:
    expect = ExpectEntry(what="x", rw="read", metric="lat_p99_ns", value=1000, source="s")
    assert TAIL_TOLERANCE == 0.15
    assert [Measured(expect, value).ok for value in (849, 851, 1149, 1151)] == [
        *(False, True, True, False)
    ]
    mean = msgspec.structs.replace(expect, metric="lat_mean_ns")
    assert not Measured(mean, 1100).ok


@pytest.mark.parametrize(
    ("rw", "metric", "factor"),
    [
        ("randread", "iops", 1.15),
        ("randwrite", "bps", 1.15),
        ("randread", "lat_mean_ns", 1.15),
        ("randread", "lat_p50_ns", 1.5),
        ("randread", "lat_p99_ns", 1.5),
        ("randread", "lat_p99_9_ns", 2),
        ("randwrite", "lat_p99_ns", 2),
        ("write", "lat_p99_ns", 2),
        ("randwrite", "lat_p50_ns", 1.5),
    ],
)
def test_a_figure_that_judges_may_be_off_by_a_factor_of_its_metric(
    rw: RwMode, metric: ExpectMetric, factor: float
) -> None:
    expect = ExpectEntry(what="x", rw=rw, metric=metric, value=1000, source="s", fitted=False)
    ends = (1000 / factor - 1, 1000 / factor + 1, 1000 * factor - 1, 1000 * factor + 1)
    assert [Measured(expect, value).ok for value in ends] == [False, True, True, False]
    assert not Measured(expect, 10_000).fails


def test_a_load_beside_is_a_second_tenant_and_a_scheduler_has_tags_for_both() -> None:
    expect = ExpectEntry(
        what="x",
        rw="randread",
        metric="lat_p99_ns",
        value=1,
        source="s",
        beside=ExpectLoad(rw="randwrite", bs="64k", iodepth=128, numjobs=8),
        scheduler="kyber",
        iosched={"read_lat_nsec": 100_000},
    )
    spec = make_spec(VdiskDevice(), expect)
    load, beside = (one.workload for one in spec.tenants)
    assert [one.name for one in spec.tenants] == ["load", "beside"]
    assert (load.rw, load.iodepth, load.bs) == ("randread", 1, 4096)
    assert (beside.rw, beside.iodepth, beside.numjobs, beside.bs) == ("randwrite", 128, 8, 65_536)
    assert (spec.scheduler.elevator, spec.scheduler.iosched) == (
        "kyber",
        {"read_lat_nsec": 100_000},
    )
    assert spec.queue == {"nr_requests": 2048}
    assert isinstance(spec.device, VdiskDevice)
    assert spec.device.queue_depth == 1025
    with pytest.raises(UserError, match="x: 2049 requests in flight under kyber"):
        deeper = ExpectLoad(rw="randwrite", iodepth=128, numjobs=16)
        make_spec(VdiskDevice(), msgspec.structs.replace(expect, beside=deeper))


def test_a_load_beside_that_cannot_be_made_names_the_figure() -> None:
    expect = ExpectEntry(what="the figure", rw="read", metric="iops", value=1, source="s")
    for beside, why in (
        (ExpectLoad(rw="write", iodepth=4097), "iodepth 4097 is out of range"),
        (ExpectLoad(rw="write", bs="4x"), "'4x' is not a size"),
    ):
        with pytest.raises(UserError, match=f"the figure: {why}"):
            make_spec(VdiskDevice(), msgspec.structs.replace(expect, beside=beside))


def test_tables_show_the_tolerance_and_list_figures_not_fitted_separately() -> None:
    expect = ExpectEntry(what="x", rw="read", metric="lat_p99_ns", value=1000, source="s")
    loose = msgspec.structs.replace(expect, what="y", metric="iops", fitted=False)
    console = Console(width=120, record=True, file=StringIO())
    for shown in tables({"drive": [Measured(expect, 1100), Measured(loose, 1000)]}):
        console.print(shown)
    title, _, first, other, _, second = console.export_text().splitlines()
    assert (title.strip(), other.strip()) == ("fitted", "not fitted")
    assert first.split() == [
        *("drive", "x", "fresh", "1.0", "µs", "1.1", "µs", "+10.0%", "-15%", "+15%")
    ]
    assert second.split() == [
        *("drive", "y", "fresh", "1,000", "IOPS", "1,000", "IOPS", "+0.0%", "-13%", "+15%")
    ]


def test_a_cloud_volume_is_written_only_if_it_is_one() -> None:
    device = load_device({"driver": "vdisk", "volume": {"iops": 3000, "net_ns": "500us"}})
    assert isinstance(device, VdiskDevice)
    names = written(device)
    assert {name: text for name, text in names.items() if name.startswith("volume/")} == {
        "volume/iops": "3000",
        "volume/bps": "0",
        "volume/burst_ns": "0",
        "volume/net_ns": "500000",
        "volume/net_spread": "0",
    }
    assert list(names)[-1] == "power"
    assert load_change(device, {"volume": {"bps": "125m", "iops": 16_000}}) == {
        "volume/bps": 125 << 20,
        "volume/iops": 16_000,
    }


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"volume": {"iops": 10**9 + 1}}, "1000000001 is out of range"),
        ({"volume": {"iops": -1}}, "-1 is out of range"),
        ({"volume": {"net_spread": 1001}}, "1001 is out of range"),
        ({"volume": {"burst_ns": 86_401 * 10**9}}, "86401000000000 is out of range"),
        ({"volume": {"mbps": 125}}, "unknown attribute 'mbps'"),
        ({"volume": 3000}, "expected a table"),
        ({"model": "flash", "volume": {"iops": 3000}}, "is of model 'fixed'"),
        ({"model": "flash", "flash": {"cell_bits": 5}}, "5 is out of range"),
        ({"model": "flash", "flash": {"cell_bits": 0}}, "0 is out of range"),
        ({"model": "flash", "flash": {"read_step": 301}}, "301 is out of range"),
        ({"model": "flash", "flash": {"readahead": "65m"}}, "out of range"),
    ],
)
def test_an_impossible_device_is_refused(entry: dict[str, object], why: str) -> None:
    with pytest.raises(FieldError, match=why):
        load_device({"driver": "vdisk", **entry})


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (279_500, "iops", "279,500 IOPS"),
        (3.2e9, "bps", "3,200 MB/s"),
        (85_000, "lat_mean_ns", "85.0 µs"),
        (13_070_000, "lat_p50_ns", "13.1 ms"),
    ],
)
def test_a_figure_is_shown_with_its_unit(value: float, metric: str, text: str) -> None:
    assert figure(value, metric) == text  # type: ignore[arg-type]


@given(
    title=st.text(max_size=30),
    model=st.sampled_from(["fixed", "flash", "disk"]),
    servers=st.integers(1, 99),
    value=st.floats(0.5, 1e12),
)
def test_a_preset_that_is_written_is_read_as_it_was(
    title: str, model: str, servers: int, value: float
) -> None:
    device = VdiskDevice(
        model=model,  # type: ignore[arg-type]
        servers=servers if model == "fixed" else 16,
        write_cache=True,
        flash=FlashModel(spare=99) if model == "flash" else FlashModel(),
    )
    expect = ExpectEntry(what=title, rw="read", metric="bps", value=value, source='"\\\n')
    text = preset_toml(title, title, device, [expect])
    preset = msgspec.convert(tomllib.loads(text), Preset)
    assert (preset.title, preset.expect) == (title, (expect,))
    assert load_device(preset.device) == device


def test_a_preset_that_does_not_exist_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown preset 'slow'"):
        load_preset("slow")
    with pytest.raises(UserError, match="no such file"):
        load_preset(str(tmp_path / "x.toml"))


@pytest.mark.parametrize(
    ("table", "mib"),
    [
        ({"driver": "vdisk"}, 0),
        ({"driver": "vdisk", "store": "memory", "size": "2g"}, 2048),
        ({"driver": "vdisk", "model": "flash", "size": "4g", "flash": {"spare": 1000}}, 12),
        ({"driver": "vdisk", "model": "disk", "size": "1t"}, 0),
        ({"driver": "null_blk", "size": "1g", "memory_backed": True}, 1024),
    ],
)
def test_the_machine_has_the_memory_that_the_device_takes(
    table: dict[str, object], mib: int
) -> None:
    taken = memory_bytes(load_device(table))
    assert taken == mib << 20
    assert memory_mib(1, taken) == memory_mib(1) + mib

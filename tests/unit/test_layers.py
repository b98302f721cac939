# SPDX-License-Identifier: GPL-2.0-only
"""A stack of block layers: its syntax in a study, and the script that creates it."""

import subprocess
from typing import Any

import pytest

from isoblk.errors import UserError
from isoblk.layers.registry import LAYERS, disks_of, size_of
from isoblk.plan.plan import check_queues, make_plan
from isoblk.run.spec import (
    DeviceEvent,
    Filesystem,
    NullBlkDevice,
    RunSpec,
    Scheduler,
    SchedulerEvent,
    VdiskDevice,
)
from isoblk.run.tier import SMP, UML
from isoblk.study.expand import expand
from isoblk.study.load import parse_study
from tests.unit.specs import run_spec, tenant

MIB = 1 << 20
DISK = 256 * MIB
KEEPING = VdiskDevice(store="memory", size=DISK)

GOOD = """\
name = "s"
stack = "crypt"
scheduler = "bfq"
[device]
driver = "vdisk"
size = "256m"
store = "memory"
[workload]
size = "16m"
[[tenant]]
name = "a"
[[tenant]]
name = "b"
"""


def on(*stack: str, scheduler: str = "bfq", **fields: Any) -> RunSpec:
    load: dict[str, Any] = {"rw": "randread", "offset": 0, "size": 16 * MIB}
    values: dict[str, Any] = {
        "device": KEEPING,
        "tenants": (tenant("t1", 200, **load), tenant("t2", 100, **load)),
    }
    return run_spec(scheduler, stack=stack, **(values | fields))


def edited(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ('"crypt"', '"cript"', ["x.toml:2: stack: unknown layer 'cript'", "did you mean 'crypt'?"]),
        ('"crypt"', '""', ["x.toml:2: stack: unknown layer ''", "allowed: crypt, integrity"]),
        ('"crypt"', '"crypt none"', ["x.toml:2: stack: unknown layer 'none'"]),
        ('"crypt"', '["crypt"]', ["x.toml:2: stack: expected text, got a list"]),
        ('"crypt"', '"crypt crypt"', ["x.toml:2: stack: 'crypt' is there twice"]),
        (
            '"crypt"',
            '"crypt raid1"',
            ["x.toml:2: stack: 'raid1' is made of disks, not of 'crypt'", "put it first"],
        ),
        ('"crypt"', '"raid1 raid0"', ["'raid0' is made of disks", "in place of 'raid1'"]),
        ('store = "memory"', "", ["ok"]),
        ('"crypt"\nscheduler = "bfq"', '"raid1"\nscheduler = "io.cost"', ["set for one disk"]),
        ('size = "16m"', 'size = "512m"', ["x.toml:9: workload.size", "the device has 256m"]),
        ('"crypt"', '"thin"\nqueue = { nr_requests = 8 }', ["ok"]),
        ('name = "b"', 'name = "b"\noffset = "250m"', ["go beyond the device"]),
        ("[workload]", '[run]\ncgroup = "v1"\n[workload]', ["x.toml:9: run.cgroup", 'set "v2"']),
        ("[workload]", '[filesystem]\nsize = "64m"\n[workload]', ["x.toml:9: filesystem.size"]),
        ('"crypt"', '"none"\ncache = "dm-cache"\nssd = "fast"', ["store"]),
        (
            '"crypt"',
            '"crypt"\ncache = "dm-cache"\nssd = "fast"',
            ["x.toml:2: stack: not with an SSD"],
        ),
    ],
)
def test_a_wrong_stack_is_one_line_with_its_place(old: str, new: str, facts: list[str]) -> None:
    text = edited(old, new)
    if facts == ["ok"]:
        parse_study(text, "x.toml")
        return
    with pytest.raises(UserError) as caught:
        parse_study(text, "x.toml")
    line = str(caught.value)
    assert "\n" not in line
    for fact in facts:
        assert fact in line


@pytest.mark.parametrize("name", [name for name, layer in LAYERS.items() if layer.keeps])
def test_a_layer_with_metadata_needs_a_disk_that_keeps_them(name: str) -> None:
    text = edited('"crypt"', f'"{name}"').replace('store = "memory"', "")
    with pytest.raises(UserError, match=f"device.store: '{name}' has metadata on the disk"):
        parse_study(text, "x.toml")
    text = text.replace('"vdisk"', '"null_blk"')
    with pytest.raises(UserError, match="set memory_backed = true"):
        parse_study(text, "x.toml")


@pytest.mark.parametrize("name", ["thin", "integrity", "loop", "raid1"])
def test_a_disk_too_small_for_a_stack_is_refused(name: str) -> None:
    text = edited('"crypt"', f'"{name}"').replace('"256m"', '"8m"')
    with pytest.raises(UserError, match=r"device\.size: 8m leave the tenants less than 16m"):
        parse_study(text, "x.toml")


def test_a_stack_may_be_varied() -> None:
    text = GOOD + '[matrix]\nstack = ["none", "crypt", "raid1 crypt thin"]\n'
    shares = [run.spec for run in expand(parse_study(text, "x.toml")).runs if run.alone]
    assert [spec.stack for spec in shares if spec.scheduler.name == "bfq"] == [
        (),
        ("crypt",),
        ("raid1", "crypt", "thin"),
    ]


def test_a_runs_references_have_its_stack_and_the_calibration_of_the_disk_none() -> None:
    text = edited('"bfq"', '"io.cost"')
    planned = expand(parse_study(text, "x.toml")).runs
    assert {run.spec.stack for run in planned if run.spec.kind == "calibrate"} == {()}
    assert {run.spec.stack for run in planned if run.spec.kind != "calibrate"} == {("crypt",)}


@pytest.mark.parametrize(
    "stack", [(name,) for name in LAYERS] + [("raid5", "crypt", "integrity", "thin", "loop")]
)
def test_the_script_makes_the_layers_and_the_tenants_use_the_uppermost(
    stack: tuple[str, ...],
) -> None:
    plan = make_plan(on(*stack))
    subprocess.run(["sh", "-n"], input=plan.text.encode(), check=True)
    top = LAYERS[stack[-1]]
    lines = plan.text.splitlines()
    for name in ("t1", "t2"):
        assert f"echo {top.device} > /sys/kernel/config/blkload/{name}/device" in lines
    assert f"/sys/block/{top.block}/dev" in plan.text.partition("## what came of it")[2]
    made = plan.text.partition("## the layers on it")[2].partition("## the scheduler")[0]
    assert "export DM_DISABLE_UDEV=1" in made
    assert ("dd if=/dev/zero" in made) == any(LAYERS[name].keeps for name in stack)


def test_each_disk_of_an_array_is_made_and_has_the_scheduler() -> None:
    event = DeviceEvent(at_ns=1, attributes={"servers": 8})
    switch = SchedulerEvent(at_ns=2, scheduler=Scheduler(name="none", elevator="none"), queue={})
    text = make_plan(on("raid5", device_events=(event,), scheduler_events=(switch,))).text
    for disk in ("disk0", "disk1", "disk2"):
        assert f"echo {DISK} > /sys/kernel/config/isoblk_vdisk/{disk}/size\n" in text
        assert f"echo bfq > /sys/block/{disk}/queue/scheduler\n" in text
        assert f"echo 8 > /sys/kernel/config/isoblk_vdisk/{disk}/servers\n" in text
        assert f"echo none > /sys/block/{disk}/queue/scheduler\n" in text
    assert "disk3" not in text


def test_without_a_stack_nothing_of_it_is_in_the_script() -> None:
    text = make_plan(on()).text
    assert "layers" not in text
    assert "DM_DISABLE_UDEV" not in text
    assert "disk1" not in text


def test_a_file_system_takes_the_uppermost_device() -> None:
    filesystem = Filesystem(type="btrfs", offset=0, size=DISK)
    load = tenant("t1", program="dd", options={"bs": "4k", "count": 1, "direction": "read"})
    text = make_plan(on("crypt", filesystem=filesystem, tenants=(load,))).text
    assert "\nmkfs.btrfs " in text
    assert " /dev/mapper/crypt\n" in text
    assert "addpart" not in text
    assert "delpart" not in text


@pytest.mark.parametrize(
    ("stack", "size"),
    [
        ((), DISK),
        (("linear",), DISK),
        (("crypt",), DISK),
        (("raid0",), 2 * DISK),
        (("raid1",), DISK),
        (("raid5",), 2 * DISK),
        (("raid5", "crypt"), 2 * DISK),
        (("thin",), DISK - 8 * MIB),
        (("loop",), DISK * 7 // 8),
        (("integrity",), 251 * MIB),
        (("integrity", "thin"), 243 * MIB),
    ],
)
def test_the_size_of_a_stack_of_layers(stack: tuple[str, ...], size: int) -> None:
    assert size_of(stack, DISK) == size


def test_a_stack_has_as_many_disks_as_its_array() -> None:
    assert [disks_of(stack) for stack in ((), ("crypt",), ("raid1", "crypt"), ("raid5",))] == [
        *(1, 1, 2, 3)
    ]


def test_only_the_uml_machine_makes_layers() -> None:
    check_queues([on("crypt")], UML)
    with pytest.raises(UserError, match="no layers on the smp machine"):
        check_queues([on("crypt")], SMP)


# ---- zones and fio's engines ---------------------------------------------------------

ZONED = """\
name = "z"
[device]
driver = "null_blk"
size = "1g"
zone_size = "64m"
[[tenant]]
name = "a"
rw = "write"
size = "256m"
[[tenant]]
name = "b"
rw = "randread"
"""


def test_a_zoned_disk_is_made_with_its_zones() -> None:
    disk = NullBlkDevice(size=1 << 30, zone_size=64 * MIB)
    lines = make_plan(run_spec(device=disk)).text.splitlines()
    attributes = [line for line in lines if "nullb/disk0/" in line]
    zoned = "echo 1 > /sys/kernel/config/nullb/disk0/zoned"
    assert zoned in attributes
    assert "echo 64 > /sys/kernel/config/nullb/disk0/zone_size" in attributes
    assert attributes.index(zoned) < len(attributes) - 1
    assert "zone" not in make_plan(run_spec(device=NullBlkDevice())).text


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ('"64m"', '"48m"', ["x.toml:5: device.zone_size", "power of two", "1m, 2m, 4m"]),
        ('"64m"', '"2g"', ["x.toml:5: device.zone_size", "divides the size, 1"]),
        ('"64m"', '"512k"', ["x.toml:5: device.zone_size"]),
        ('"write"', '"randwrite"', ["x.toml:8: tenant[0].rw", "in order, by one job"]),
        ('"256m"', '"100m"', ["x.toml:9: tenant[0].size", "not whole zones"]),
        ('"256m"', '"256m"\nnumjobs = 2', ["x.toml:10: tenant[0].numjobs", "in order, by one job"]),
        ('"randread"', '"write"', ["tenant[1]", "'b' writes to zones of 'a'"]),
        ('[[tenant]]\nname = "b"', '[filesystem]\n[[tenant]]\nname = "b"', ["filesystem"]),
        (
            'name = "z"',
            'name = "z"\nstack = "crypt"',
            ["x.toml:2: stack: not on a disk with zones"],
        ),
    ],
)
def test_a_zone_is_written_in_order_by_one_tenant(old: str, new: str, facts: list[str]) -> None:
    assert ZONED.count(old) == 1
    parse_study(ZONED, "x.toml")
    with pytest.raises(UserError) as caught:
        parse_study(ZONED.replace(old, new), "x.toml")
    for fact in facts:
        assert fact in str(caught.value)


def test_fio_knows_of_zones() -> None:
    parse_study(ZONED.replace('rw = "write"', 'rw = "randwrite"\nworkload = "fio"'), "x.toml")
    disk = NullBlkDevice(size=1 << 30, zone_size=64 * MIB)
    load = tenant("a", program="fio", rw="randwrite")
    assert "--zonemode=zbd" in make_plan(run_spec(device=disk, tenants=(load,))).text


@pytest.mark.parametrize("engine", ["libaio", "io_uring", "psync"])
def test_fio_asks_as_the_study_says(engine: str) -> None:
    text = make_plan(run_spec(tenants=(tenant("a", program="fio", ioengine=engine),))).text
    assert f"--ioengine={engine} " in text


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ('ioengine = "psync"', ["x.toml:5: tenant[0].ioengine: only fio has it"]),
        ('ioengine = "mmap"', ["x.toml:5: tenant[0].ioengine", "'mmap'"]),
        (
            'ioengine = "psync"\nworkload = "fio"\niodepth = 8',
            ["x.toml:7: tenant[0].iodepth: 8, and psync has one request in flight", "numjobs"],
        ),
    ],
)
def test_an_engine_that_cannot_be_is_refused(fields: str, facts: list[str]) -> None:
    text = f'name = "e"\ndevice = "fast"\n[[tenant]]\nname = "a"\n{fields}\n'
    with pytest.raises(UserError) as caught:
        parse_study(text, "x.toml")
    for fact in facts:
        assert fact in str(caught.value)

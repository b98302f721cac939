# SPDX-License-Identifier: GPL-2.0-only
"""The script does what the spec says, reads it back, and holds nothing of the host."""

import subprocess

import pytest

from isoblk.plan.plan import make_plan
from isoblk.run.spec import DeviceEvent, Event
from tests.unit.specs import MS, SECOND, Group, NullBlkDevice, run_spec, tenant

MODEL = {"rbps": 1, "rseqiops": 2, "rrandiops": 3, "wbps": 4, "wseqiops": 5, "wrandiops": 6}
LINE = " ".join(f"{name}={value}" for name, value in MODEL.items())

SPECS = {
    "none": run_spec(),
    "bfq": run_spec("bfq", options={"iosched": {"low_latency": 0}}),
    "bfq v1": run_spec("bfq", cgroup="v1"),
    "null_blk": run_spec(device=NullBlkDevice()),
    "io.cost": run_spec("io.cost", options={"io_cost_model": MODEL, "io_cost_qos": {"min": 100}}),
    "io.max": run_spec("io.max", options={"io_max": {"t1": (100, 0), "t2": (50, 25)}}),
    "io.latency": run_spec("io.latency", options={"io_latency_us": {"t1": 100, "t2": 200}}),
    "isoblk": run_spec("isoblk", options={"iosched": {"cost_model": LINE, "max_loss": 50}}),
    "fio": run_spec(tenants=(tenant("t1", program="fio"), tenant("t2"))),
    "events": run_spec("bfq", events=(Event(at_ns=500 * MS, tenant="t1", weight=50),)),
    "kyber-fair": run_spec("kyber-fair", options={"iosched": {"refill_ms": 50}}),
    "feedbac v1": run_spec("feedbac", cgroup="v1"),
    "own events": run_spec("feedbac", events=(Event(at_ns=500 * MS, tenant="t1", weight=50),)),
    "device events": run_spec(
        "bfq",
        events=(Event(at_ns=500 * MS, tenant="t1", weight=50),),
        device_events=(
            DeviceEvent(at_ns=400 * MS, attributes={"servers": 8, "read_ns": 40_000}),
            DeviceEvent(at_ns=700 * MS, attributes={"servers": 16}),
        ),
    ),
    "own nested": run_spec(
        "feedbac",
        groups=(Group(path="a", weight=300),),
        tenants=(tenant("t1", 300, "a"), tenant("t2", 20, "a/y")),
    ),
    "nested": run_spec(
        "bfq",
        groups=(Group(path="a", weight=300),),
        tenants=(tenant("t1", 10, "a/x"), tenant("t2", 20, "a/y")),
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_the_script_is_valid_shell(name: str) -> None:
    text = make_plan(SPECS[name]).text
    subprocess.run(["sh", "-n"], input=text.encode(), check=True)


@pytest.mark.parametrize("name", SPECS)
def test_every_setting_is_written_and_read_back(name: str) -> None:
    plan = make_plan(SPECS[name])
    read_back = plan.text[plan.text.index("## what took effect") :]
    for setting in plan.settings:
        assert f" > {setting.path}\n" in plan.text
        assert f"  {setting.path} " in read_back


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("none", "echo none > /sys/block/disk0/queue/scheduler"),
        ("none", "echo 1 > /sys/kernel/config/blkload/t1/runtime"),
        ("bfq", "echo 1000 > /sys/fs/cgroup/t1/io.bfq.weight"),
        ("bfq", "echo 0 > /sys/block/disk0/queue/iosched/low_latency"),
        ("bfq v1", "echo 500 > /sys/fs/cgroup/t2/blkio.bfq.weight"),
        ("bfq v1", "mount -t cgroup -o blkio cgroup /sys/fs/cgroup"),
        ("kyber-fair", "insmod /run/isoblk/modules/kyber-fair-iosched.ko"),
        ("kyber-fair", "echo 500 > /sys/fs/cgroup/t2/io.isoblk.weight"),
        ("kyber-fair", "echo 50 > /sys/block/disk0/queue/iosched/refill_ms"),
        ("feedbac v1", "echo 500 > /sys/fs/cgroup/t2/blkio.isoblk.weight"),
        ("feedbac v1", "  /sys/fs/cgroup/t1/blkio.isoblk.io_service_bytes \\"),
        ("feedbac v1", "  /sys/fs/cgroup/t1/blkio.isoblk.io_serviced \\"),
        ("own events", "sleep 0.500000000\necho 50 > /sys/fs/cgroup/t1/io.isoblk.weight"),
        (
            "device events",
            "sleep 0.400000000\n"
            "echo 8 > /sys/kernel/config/isoblk_vdisk/disk0/servers\n"
            "echo 40000 > /sys/kernel/config/isoblk_vdisk/disk0/read_ns\n"
            "sleep 0.100000000\necho 50 > /sys/fs/cgroup/t1/io.bfq.weight\n"
            "sleep 0.200000000\necho 16 > /sys/kernel/config/isoblk_vdisk/disk0/servers",
        ),
        (
            "own events",
            "cat /sys/kernel/debug/block/disk0/sched/history > /run/isoblk/predictions",
        ),
        ("own nested", "echo 300 > /sys/fs/cgroup/a/io.isoblk.weight"),
        ("own nested", "mkdir /sys/fs/cgroup/a/y"),
        ("null_blk", "insmod /run/isoblk/modules/null_blk.ko nr_devices=0"),
        ("null_blk", "echo 2 > /sys/kernel/config/nullb/disk0/irqmode"),
        ("io.cost", "echo 1000 > /sys/fs/cgroup/t1/io.weight"),
        ("io.cost", 'echo "$dev enable=1 ctrl=user min=100" > /sys/fs/cgroup/io.cost.qos'),
        ("io.max", 'echo "$dev rbps=100" > /sys/fs/cgroup/t1/io.max'),
        ("io.max", 'echo "$dev rbps=50 wbps=25" > /sys/fs/cgroup/t2/io.max'),
        ("io.latency", 'echo "$dev target=200" > /sys/fs/cgroup/t2/io.latency'),
        ("isoblk", f"echo '{LINE}' > /sys/block/disk0/queue/iosched/cost_model"),
        ("isoblk", "echo 50 > /sys/block/disk0/queue/iosched/max_loss"),
        ("events", "sleep 0.500000000\necho 50 > /sys/fs/cgroup/t1/io.bfq.weight"),
        ("nested", "echo +io > /sys/fs/cgroup/a/cgroup.subtree_control"),
        ("nested", "echo 300 > /sys/fs/cgroup/a/io.bfq.weight"),
        ("nested", "echo 20 > /sys/fs/cgroup/a/y/io.bfq.weight"),
    ],
)
def test_the_script_says(name: str, line: str) -> None:
    assert f"\n{line}\n" in make_plan(SPECS[name]).text


def test_only_feedbac_under_load_from_the_barrier_leaves_predictions() -> None:
    fio = run_spec("feedbac", tenants=(tenant("t1", program="fio"),))
    for spec in (SPECS["kyber-fair"], SPECS["bfq"], fio):
        assert "predictions" not in make_plan(spec).text


def test_a_controller_without_weights_writes_none() -> None:
    assert "weight" not in make_plan(SPECS["none"]).text.replace("weights", "")


@pytest.mark.parametrize("name", ["kyber-fair", "feedbac v1", "own nested"])
def test_our_elevators_are_loaded_and_chosen_before_the_weights_which_they_bring(name: str) -> None:
    plan = make_plan(SPECS[name])
    elevator = SPECS[name].scheduler.elevator
    assert plan.modules[-2:] == ("isoblk_share", f"{elevator}-iosched")
    steps = [
        "modules/isoblk_share.ko",
        f"modules/{elevator}-iosched.ko",
        f"echo {elevator} > /sys/block/disk0/queue/scheduler",
        ".isoblk.weight",
    ]
    places = [plan.text.index(step) for step in steps]
    assert places == sorted(places)


def test_no_run_loads_an_elevator_of_ours_that_it_does_not_use() -> None:
    assert "iosched" not in " ".join(make_plan(SPECS["bfq"]).modules)


def test_a_cgroup_that_holds_others_is_made_once_and_weighed_once() -> None:
    text = make_plan(SPECS["own nested"]).text
    assert text.count("mkdir /sys/fs/cgroup/a\n") == 1
    assert text.count("> /sys/fs/cgroup/a/io.isoblk.weight\n") == 1


def test_the_power_is_switched_on_last() -> None:
    paths = [setting.path for setting in make_plan(SPECS["none"]).settings]
    disk = [path for path in paths if "isoblk_vdisk" in path]
    assert disk[-1].endswith("/power")


@pytest.mark.parametrize(
    ("written", "read"),
    [("zipf:1", "zipf:1.0"), ("zipf:1.20", "zipf:1.2"), ("pareto:0.01", "pareto:0.01")],
)
def test_a_distribution_is_written_as_the_generator_reads_it_back(written: str, read: str) -> None:
    spec = run_spec(tenants=(tenant("t1", random_distribution=written),))
    values = [s.value for s in make_plan(spec).settings if s.path.endswith("random_distribution")]
    assert values == [read]


def test_a_late_tenant_is_measured_from_its_start_to_the_runs_end() -> None:
    late = tenant("t1", startdelay_ns=300 * MS)
    early = tenant("t2", startdelay_ns=50 * MS, runtime_ns=400 * MS)
    spec = run_spec(tenants=(late, early), warmup_ns=200 * MS, runtime_ns=SECOND)
    values = {setting.path: setting.value for setting in make_plan(spec).settings}
    root = "/sys/kernel/config/blkload"
    assert f"{root}/t1/ramp_time" not in values
    assert values[f"{root}/t1/runtime"] == f"{900 * MS}ns"
    assert values[f"{root}/t2/ramp_time"] == f"{150 * MS}ns"
    assert values[f"{root}/t2/runtime"] == f"{250 * MS}ns"


def test_fio_ends_with_the_run_as_the_generator_does() -> None:
    late = tenant("t1", program="fio", startdelay_ns=300 * MS)
    early = tenant("t2", program="fio", startdelay_ns=50 * MS, runtime_ns=400 * MS)
    spec = run_spec(tenants=(late, early), warmup_ns=200 * MS, runtime_ns=SECOND)
    text = make_plan(spec).text
    assert "--ramp_time=0us --runtime=900000us " in text
    assert "--ramp_time=150000us --runtime=250000us " in text
    # After the barrier, which fio waits at before it looks at its clock.
    assert "go; sleep 300000e-6'" in text

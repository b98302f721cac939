# SPDX-License-Identifier: GPL-2.0-only
"""A study of the lab runs on the host machine, and an impossible one is refused in one line."""

import dataclasses
import subprocess
from pathlib import Path

import pytest

from isoblk.campaign.execute import make_job
from isoblk.errors import UserError
from isoblk.plan.plan import make_plan
from isoblk.run.spec import CgroupVersion, HostDevice, RunSpec, Workload
from isoblk.run.tier import HOST, Place
from isoblk.study.check import check_study
from isoblk.study.expand import expand
from isoblk.study.load import parse_study
from isoblk.study.model import Study
from isoblk.study.onhost import on_host
from isoblk.study.text import Source
from tests.unit.specs import SECOND, Group, run_spec, tenant

DISK = HostDevice(name="sdb", what="FAST SSD", size=1 << 30)
ELEVATORS = {"none", "mq-deadline", "kyber", "bfq"}
PLACE = Place("sdb", ".", "/sys/fs/cgroup", "isoblk-sdb")
TIER = dataclasses.replace(HOST, place=PLACE)

STUDY = """\
name = "s"
device = "fast"
[workload]
rw = "randread"
cputime = "500ns"
[[tenant]]
name = "t"
count = 2
weight = [300, 100]
[matrix]
scheduler = ["none", "bfq", "io.cost", "kyber-fair"]
[[claim]]
text = "io.cost divides"
source = "us"
metric = "share_error"
op = "<"
value = 0.1
where = { scheduler = "io.cost" }
"""


def adapt(
    text: str = STUDY, cgroup: CgroupVersion = "v1", device: HostDevice = DISK
) -> tuple[Study, list[str]]:
    source = Source.of("s.toml", text)
    study, told = on_host(parse_study(text, "s.toml"), source, device, cgroup, ELEVATORS)
    check_study(study, source)
    return study, told


def specs(study: Study) -> list[RunSpec]:
    return [planned.spec for planned in expand(study).runs]


def test_every_run_is_fios_on_the_named_disk() -> None:
    study, _ = adapt()
    assert {spec.device for spec in specs(study)} == {DISK}
    loads = [one.workload for spec in specs(study) for one in spec.tenants]
    assert {load.program for load in loads} == {"fio"}
    assert {load.cputime_ns for load in loads} == {Workload().cputime_ns}
    assert {spec.cgroup for spec in specs(study)} == {"v1"}


def test_unavailable_schedulers_and_options_are_left_out_and_reported() -> None:
    study, told = adapt()
    assert study.matrix["scheduler"] == ["none", "bfq"]
    assert study.claim == []
    assert "left out: io.cost: needs the io controller on cgroup v2, and here it is on v1" in told
    assert "left out: kyber-fair: the kernel has no elevator kyber-fair for this device" in told
    assert any(one.startswith("cputime is not used") for one in told)
    assert any("no confidence interval" in one for one in told)


def test_on_v2_io_cost_is_calibrated_by_fio() -> None:
    study, _ = adapt(cgroup="v2")
    assert study.matrix["scheduler"] == ["none", "bfq", "io.cost"]
    assert len(study.claim) == 1
    calibrations = [spec for spec in specs(study) if spec.kind == "calibrate"]
    assert len(calibrations) == 6
    assert {one.workload.program for spec in calibrations for one in spec.tenants} == {"fio"}


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("[matrix]", '[matrix]\ndevice = ["fast", "nand"]', r"s\.toml:11: matrix.device: the host"),
        ("[matrix]", '[matrix]\n"device.servers" = [1, 2]', r"matrix.*the one device"),
        ("[matrix]", '[matrix]\n"run.cgroup" = ["v2"]', r"own version of cgroups"),
        ("[matrix]", '[matrix]\n"workload.cputime" = [1, 2]', r"cost of a request is not modelled"),
        (
            "[matrix]",
            "[[event]]\nat = 0\ndevice = { servers = 1 }\n[matrix]",
            r"s\.toml:12: .*a real device does not change at will",
        ),
        (
            'device = "fast"',
            "\n".join(f'[{it}]\npreset = "fast"\nstore = "memory"' for it in ("device", "ssd")),
            r"ssd: the host machine has no caches; use the uml machine, or isoblk cache",
        ),
        ('rw = "randread"', 'rw = "randtrim"', r"s\.toml:4: workload.rw: randtrim: .*no discards"),
        ('rw = "randread"', 'rw = "randread"\nsize = "2g"', r"s\.toml:5: .*go beyond the device"),
        (
            '"none", "bfq", "io.cost", "kyber-fair"',
            '"io.cost"',
            r"this machine has no scheduler of the study: left out: io.cost",
        ),
        ('device = "fast"', 'device = "fast"\n[run]\nwarmup = "1ms"', r"run.window"),
    ],
)
def test_a_study_that_the_host_machine_cannot_run_is_a_one_line_error(
    right: str, wrong: str, why: str
) -> None:
    with pytest.raises(UserError, match=why):
        adapt(STUDY.replace(right, wrong))


def test_a_study_cannot_name_a_disk_of_the_machine_itself() -> None:
    text = STUDY.replace('"fast"', '{ driver = "host", name = "sda", what = "", size = 4096 }')
    with pytest.raises(UserError, match=r"s\.toml:2: .*isoblk run --machine host --device"):
        parse_study(text, "s.toml")


def _plans() -> dict[str, RunSpec]:
    load = {"program": "fio"}
    four = tuple(tenant(f"t{i}", 100, **load) for i in (1, 2))
    return {
        "v1": run_spec("bfq", device=DISK, cgroup="v1", tenants=four),
        "v2": run_spec("bfq", device=DISK, tenants=four),
        "late": run_spec(
            device=DISK,
            tenants=(tenant("t1", program="fio", startdelay_ns=SECOND // 2, numjobs=3),),
        ),
        "nested": run_spec(
            "bfq",
            device=DISK,
            groups=(Group(path="a", weight=300),),
            tenants=(tenant("t1", 10, "a/x", **load), tenant("t2", 20, "a/y", **load)),
        ),
    }


@pytest.mark.parametrize("name", _plans())
def test_the_script_is_valid_shell_and_reads_back_its_settings(name: str) -> None:
    plan = make_plan(_plans()[name], TIER)
    subprocess.run(["sh", "-n"], input=plan.text.encode(), check=True)
    read_back = plan.text[plan.text.index("## what took effect") :]
    for setting in plan.settings:
        assert f" > {setting.path}\n" in plan.text
        assert f"  {setting.path} " in read_back


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("v1", "mkdir /sys/fs/cgroup/isoblk-sdb"),
        ("v1", "echo 100 > /sys/fs/cgroup/isoblk-sdb/t1/blkio.bfq.weight"),
        ("v1", "echo bfq > /sys/block/sdb/queue/scheduler"),
        ("v2", "echo +io > /sys/fs/cgroup/cgroup.subtree_control"),
        ("v2", "echo +io > /sys/fs/cgroup/isoblk-sdb/cgroup.subtree_control"),
        ("nested", "echo +io > /sys/fs/cgroup/isoblk-sdb/a/cgroup.subtree_control"),
        ("nested", "echo 300 > /sys/fs/cgroup/isoblk-sdb/a/io.bfq.weight"),
        (
            "late",
            "until [ $(grep -c '' ready) = 3 ]; do kill -0 ${pid_0}; sleep 0.02; done",
        ),
    ],
)
def test_the_script_says(name: str, line: str) -> None:
    assert f"\n{line}\n" in make_plan(_plans()[name], TIER).text


def test_a_late_tenant_waits_after_the_common_start() -> None:
    text = make_plan(_plans()["late"], TIER).text
    assert "--exec_prerun='echo t1 >> ready; : < go; sleep 500000e-6'" in text
    assert "startdelay" not in text


def test_the_script_touches_nothing_but_its_disk_and_its_cgroups() -> None:
    for spec in _plans().values():
        for line in make_plan(spec, TIER).text.splitlines():
            if line.startswith(("mkdir /", "echo ")):
                target = line.split()[-1]
                assert (
                    target.startswith(("/sys/block/sdb/", "/sys/fs/cgroup/isoblk-sdb"))
                    or line == "echo +io > /sys/fs/cgroup/cgroup.subtree_control"
                )


def test_a_run_is_named_alike_whatever_number_its_loop_device_has() -> None:
    loop = run_spec(device=HostDevice(name="loop", what="on tmpfs", size=1 << 30))
    names = {
        make_job(
            loop,
            "k",
            "m",
            dataclasses.replace(HOST, place=Place(disk, ".", "/cg", f"isoblk-{disk}")),
        ).id
        for disk in ("loop0", "loop7")
    }
    assert len(names) == 1
    assert make_job(run_spec(device=DISK), "k", "m", TIER).id not in names


def test_the_command_line_must_name_one_disk(tmp_path: Path) -> None:
    from isoblk.cli import host as cli_host  # noqa: PLC0415
    from isoblk.machine.host import Loop  # noqa: PLC0415

    assert cli_host.target("/dev/sdb", None, tmp_path) == "/dev/sdb"
    assert cli_host.target(None, "1g", tmp_path) == Loop(1 << 30, tmp_path)
    for device, loop in ((None, None), ("/dev/sdb", "1g"), (None, "x"), (None, "4k"), (None, "0")):
        with pytest.raises(UserError, match=r"--loop"):
            cli_host.target(device, loop, tmp_path)

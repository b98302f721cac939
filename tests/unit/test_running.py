# SPDX-License-Identifier: GPL-2.0-only
"""Tenants that are running already: nothing is started or written for them, their weights are
set and restored, and their charge before the run does not count."""

import dataclasses
import subprocess
from pathlib import Path

import pytest

from isoblk.campaign.charged import parse_charged
from isoblk.campaign.sampled import since_first
from isoblk.errors import RunError, UserError
from isoblk.machine import journal as book
from isoblk.machine import running
from isoblk.machine.journal import SubtreeControl, Weights
from isoblk.plan.plan import make_plan
from isoblk.run.record import IoStat
from isoblk.run.shares import effective_shares
from isoblk.run.spec import CgroupVersion, HostDevice, RunSpec
from isoblk.run.tier import HOST, Place
from isoblk.study.check import check_study
from isoblk.study.expand import expand
from isoblk.study.load import parse_study
from isoblk.study.model import Study
from isoblk.study.onhost import on_host
from isoblk.study.text import Source
from tests.unit.fakesys import put

STUDY = """\
name = "s"
device = "fast"
[run]
warmup = "1s"
runtime = "4s"
[workload]
rw = "randread"
[[tenant]]
name = "web"
workload = "running"
cgroup = "/system.slice/web.service"
weight = 300
[[tenant]]
name = "own"
weight = 50
[matrix]
scheduler = ["bfq"]
"""
ALONE = STUDY.replace('[[tenant]]\nname = "own"\nweight = 50\n', "")
PLACE = Place("sdb", ".", "/sys/fs/cgroup", "isoblk-sdb")
TIER = dataclasses.replace(HOST, place=PLACE)
DISK = HostDevice(name="sdb", what="FAST SSD", size=1 << 30)


def _specs(text: str, cgroup: CgroupVersion = "v2") -> list[RunSpec]:
    source = Source.of("s.toml", text)
    study, _ = on_host(parse_study(text, "s.toml"), source, DISK, cgroup, {"none", "bfq"})
    check_study(study, source)
    return [planned.spec for planned in expand(study).runs]


def _study(cgroup: str) -> Study:
    return parse_study(ALONE.replace("/system.slice/web.service", cgroup), "s.toml")


def _plan(text: str, cgroup: CgroupVersion = "v2") -> str:
    return make_plan(_specs(text, cgroup)[-1], TIER).text


@pytest.mark.parametrize("text", [STUDY, ALONE])
def test_nothing_is_started_or_made_for_it(text: str) -> None:
    plan = _plan(text)
    assert subprocess.run(["sh", "-n"], input=plan, text=True, check=False).returncode == 0
    assert "mkdir /sys/fs/cgroup/system.slice" not in plan
    assert "system.slice/web.service/cgroup.procs" not in plan
    assert plan.count("exec setpriv") == text.count("[[tenant]]") - 1
    web = "/sys/fs/cgroup/system.slice/web.service"
    assert f"echo 300 > {web}/io.bfq.weight" in plan
    assert f"{web}/io.stat" in plan
    # Opening a fifo without a reader would wait for ever.
    assert ("exec 3> " in plan) == (text is STUDY)
    assert ("sleep 5.000000000" in plan) == (text is ALONE)


def test_it_is_alone_in_no_run() -> None:
    assert [spec.kind for spec in _specs(STUDY)] == ["reference", "share"]


def test_isoblks_own_tenants_weigh_together_as_one_cgroup() -> None:
    spec = _specs(STUDY)[-1]
    assert effective_shares(spec.tenants, spec.groups) == {"web": 0.5, "own": 0.5}
    heavy = STUDY + '[[group]]\npath = "/system.slice"\nweight = 300\n'
    spec = _specs(heavy)[-1]
    assert effective_shares(spec.tenants, spec.groups) == {"web": 0.75, "own": 0.25}


def test_on_v1_it_is_counted_with_the_cgroups_below() -> None:
    plan = _plan(STUDY, "v1")
    assert "web.service/blkio.bfq.io_service_bytes_recursive" in plan
    text = {"/c/blkio.bfq.io_service_bytes_recursive": "8:0 Read 7\n8:0 Write 5\n"}
    assert parse_charged(text, "/c", "8:0") == IoStat(rbytes=7, wbytes=5, rios=0, wios=0)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('rw = "randread"', 'rw = "randwrite"', "own writes to the disk, which is in use by web"),
        ('cgroup = "/system.slice/web.service"', "", "needs its cgroup"),
        ("/system.slice/web.service", "web", "needs its cgroup"),
        ("/system.slice/web.service", "pid:0", "needs its cgroup"),
        ("/system.slice/web.service", "/a/../b", "not the path of a cgroup"),
        ("/system.slice/web.service", "/a$(reboot)", "not the path of a cgroup"),
        ("weight = 300", "count = 2", "a running tenant has no count"),
        ("weight = 300", "iodepth = 4", "does not go with workload = 'running'"),
        ('["bfq"]', '["io.max"]', "has limits and no weights"),
        ('["bfq"]', '["io.cost"]', "a calibration writes to the disk"),
        ("[matrix]", '[filesystem]\ntype = "ext4"\n[matrix]', "the disk is in use"),
    ],
)
def test_an_option_that_harms_a_running_tenant_or_means_nothing_is_an_error(
    old: str, new: str, why: str
) -> None:
    text = STUDY.replace(old, new)
    assert text != STUDY
    with pytest.raises(UserError, match=why.replace("(", r"\(")):
        check_study(parse_study(text, "s.toml"), Source.of("s.toml", text))


def test_a_process_stands_for_its_cgroup(tmp_path: Path) -> None:
    put(tmp_path / "proc/12/cgroup", "4:cpu:/x\n3:blkio,net:/docker/1\n0::/system.slice/a\n")
    for path in ("docker/1", "system.slice/a"):
        put(tmp_path / "cgroup" / path / "cgroup.procs", "12\n")
    for cgroup, path in (("v1", "/docker/1"), ("v2", "/system.slice/a")):
        study, paths = running.found(
            _study("pid:12"),
            tmp_path / "cgroup",
            cgroup,  # type: ignore[arg-type]
            tmp_path / "proc",
        )
        assert paths == (path,)
        assert study.tenant[0].cgroup == path


@pytest.mark.parametrize(
    ("cgroup", "why"), [("pid:13", "no process 13"), ("/nowhere", "/nowhere: no such cgroup")]
)
def test_a_cgroup_that_is_not_there_is_named(tmp_path: Path, cgroup: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        running.found(_study(cgroup), tmp_path, "v2", tmp_path)


def test_weights_are_set_back_and_io_is_switched_off_again(tmp_path: Path) -> None:
    top, web = tmp_path / "system.slice", tmp_path / "system.slice/web.service"
    put(top / "cgroup.subtree_control", "memory\n")
    put(web / "io.bfq.weight", "default 70\n9:0 5\n")
    found = list(running.changes(["/system.slice/web.service"], tmp_path, "v2", "8:16"))
    assert found[0] == SubtreeControl(str(top / "cgroup.subtree_control"))
    with book.journal(tmp_path / "state") as own:
        for change in found:
            own.record(change)
        (web / "io.bfq.weight").write_text("default 300\n")
        # Of a module that the run had loaded.
        put(web / "io.isoblk.weight", "default 300\n")
        put(top / "io.isoblk.weight", "default 100\n")
    assert (web / "io.bfq.weight").read_text() == "70"
    assert (web / "io.isoblk.weight").read_text() == "100"
    assert (top / "io.isoblk.weight").read_text() == "default 100\n"


def test_a_weight_for_this_disk_alone_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "a/io.bfq.weight", "default 100\n8:16 500\n")
    with pytest.raises(UserError, match="has a weight for this disk: 8:16 500"):
        list(running.changes(["/a"], tmp_path, "v2", "8:16"))


def test_a_limit_that_only_counts_is_taken_away_if_it_was_not_there(tmp_path: Path) -> None:
    ours, theirs = (tmp_path / name / "blkio.throttle.read_bps_device" for name in "ab")
    put(ours, "")
    put(theirs, "8:16 1000\n")
    (change,) = running.changes(["/a", "/b"], tmp_path, "v1", "8:16")
    assert isinstance(change, Weights)
    with book.journal(tmp_path / "state") as own:
        own.record(change)
        ours.write_text("8:16 18446744073709551615\n")
    assert ours.read_text() == "8:16 0"
    assert theirs.read_text() == "8:16 1000\n"


def _stat(rbytes: int) -> IoStat:
    return IoStat(rbytes=rbytes, wbytes=0, rios=rbytes // 4096, wios=0)


def test_the_charge_before_the_run_does_not_count() -> None:
    found = since_first([_stat(8192), _stat(8192), _stat(16384)], "web")
    assert [one.rbytes for one in found] == [0, 0, 8192]
    assert found[-1].rios == 2


def test_a_cgroup_that_went_away_makes_the_run_fail() -> None:
    with pytest.raises(RunError, match="web: its cgroup was removed"):
        since_first([_stat(8192), _stat(16384), _stat(0)], "web")

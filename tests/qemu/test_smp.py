# SPDX-License-Identifier: GPL-2.0-only
"""User Mode Linux on several processors of the host: all are in use, and races are noticed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from isoblk.errors import RunError
from tests.lab.load import cgroup, nullb, results, run, script, tenant, vdisk
from tests.qemu.guest import Guest

CPUS = 4
STUDY = """\
name = "two"
device = "fast"

[run]
runtime = "200ms"

[workload]
rw = "randread"
iodepth = 8

[[tenant]]
name = "t"
count = 2

[matrix]
scheduler = ["isoblk"]
"""


def test_four_processors_take_part_in_a_load(smp_guest: Guest) -> None:
    names = [f"t{i}" for i in range(CPUS)]
    left = smp_guest.run(
        script(
            "nproc > /run/isoblk/cpus",
            nullb("disk0", submit_queues=CPUS, poll_queues=0),
            *(cgroup(f"/{name}") for name in names),
            *(tenant(name, cgroup=f"/{name}", rw="randread", runtime="1s") for name in names),
            run("results"),
            "awk '/^cpu[0-3] / { print $2 + $3 + $4 }' /proc/stat > /run/isoblk/busy",
        ),
        modules=("null_blk", "blkload"),
    )
    assert left.read("cpus").split() == [str(CPUS)]
    assert sorted(results(left, "results")) == names
    assert all(int(ticks) > 0 for ticks in left.read("busy").split())


def test_a_disk_may_have_a_queue_for_each_processor(smp_guest: Guest) -> None:
    left = smp_guest.run(
        script(vdisk("v0", hw_queues=CPUS), "ls /sys/block/v0/mq | wc -l > /run/isoblk/queues")
    )
    assert left.read("queues").split() == [str(CPUS)]


def test_the_debug_kernel_has_the_options_that_find_races(smp_guest: Guest) -> None:
    left = smp_guest.run(
        "grep debug_locks /proc/lockdep_stats > /run/isoblk/locks;"
        " zcat /proc/config.gz > /run/isoblk/config"
    )
    assert left.read("locks").strip().endswith(" 1")
    config = left.read("config").splitlines()
    for name in ("KASAN", "PROVE_LOCKING", "DEBUG_ATOMIC_SLEEP", "DEBUG_LIST", "LOCK_STAT"):
        assert f"CONFIG_{name}=y" in config


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("echo x > /no/such/file", r"a step of the plan failed: plan\.sh:[0-9]+: echo x"),
        ("echo c > /proc/sysrq-trigger; sleep 60", r"Kernel panic - not syncing: sysrq"),
        ("echo '<4>WARNING: CPU: 1 PID: 1 at x.c:1' > /dev/kmsg", r"the kernel failed: WARNING"),
    ],
    ids=["step", "panic", "warning"],
)
def test_a_guest_that_fails_says_so(smp_guest: Guest, line: str, told: str) -> None:
    with pytest.raises(RunError, match=told):
        smp_guest.run(line)


def test_a_study_runs_and_its_results_say_the_tier(smp_guest: Guest, tmp_path: Path) -> None:
    study, found = tmp_path / "two.toml", tmp_path / "found"
    study.write_text(STUDY)
    command = [sys.executable, "-m", "isoblk", "run", str(study), "--machine", "smp", "--debug"]
    ran = subprocess.run([*command, "-o", str(found)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    records = [json.loads(path.read_text()) for path in found.glob("runs/*/run.json")]
    assert {record["tier"] for record in records} == {"smp"}
    assert {record["status"] for record in records} == {"valid"}
    assert {one["provenance"]["kernel"] for one in records} == {smp_guest.kernel.version}

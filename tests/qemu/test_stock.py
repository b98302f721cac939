# SPDX-License-Identifier: GPL-2.0-only
"""On Debian's own kernel, as users have it: the modules load, do their work, and unload."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.load import (
    BLKLOAD,
    CGROUP,
    START,
    VDISK,
    WAIT,
    Load,
    cgroup,
    nullb,
    results,
    run,
    save,
    script,
    tenant,
    vdisk,
)
from tests.qemu.guest import Guest

STUDIES = Path(__file__).resolve().parents[2] / "studies"
SCHEDULERS = ["kyber-fair", "feedbac"]
OWN = ("isoblk_share", "kyber-fair-iosched", "feedbac-iosched", "cfq-iosched")
WEIGHTS = {"t1": 1000, "t2": 500, "t3": 250, "t4": 100}
# 64 tags for all 4 queues, and 32 ms: 2 K requests a second, which emulated processors can make
# even on a busy machine. A disk that waits for its processors is not divided: at 8 K requests a
# second the group of the smallest weight had 0.069 for 0.054 once.
# Tags for each queue would make each queue a disk of its own, with nothing to divide between them.
DISK = nullb(
    "disk0",
    submit_queues=4,
    poll_queues=0,
    shared_tag_bitmap=1,
    hw_queue_depth=64,
    completion_nsec=32_000_000,
    size=1024,
)
QUEUE = "/sys/block/disk0/queue"


def test_every_module_that_loads_also_unloads(stock_guest: Guest) -> None:
    names = ("isoblk_vdisk", "blkload", *OWN)
    left = stock_guest.run(
        script(
            *(f"try rmmod {name} >> /run/isoblk/said" for name in reversed(names)),
            "lsmod | grep -c -e isoblk -e blkload -e iosched > /run/isoblk/left || true",
        ),
        modules=names,
    )
    assert left.read("said").split() == ["ok"] * len(names)
    # Debian's own kyber-iosched.
    assert left.read("left") == "1\n"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_disk_is_divided_by_weight(stock_guest: Guest, scheduler: str) -> None:
    loads: Load = {"rw": "randread", "iodepth": 64, "ramp_time": "1s", "runtime": "3s"}
    left = stock_guest.run(
        script(
            DISK,
            f"echo {scheduler} > {QUEUE}/scheduler",
            *(cgroup(f"/{name}") for name in WEIGHTS),
            *(f"echo {w} > {CGROUP}/{name}/io.isoblk.weight" for name, w in WEIGHTS.items()),
            *(tenant(name, cgroup=f"/{name}", **loads) for name in WEIGHTS),
            run("results"),
            *(f"cp {CGROUP}/{name}/io.stat /run/isoblk/{name}.stat" for name in WEIGHTS),
            *(f"try rmmod {name} >> /run/isoblk/said" for name in (f"{scheduler}-iosched", OWN[0])),
            f"echo none > {QUEUE}/scheduler",
            *(f"try rmmod {name} >> /run/isoblk/said" for name in reversed(OWN)),
        ),
        modules=("null_blk", "blkload", *OWN),
    )
    done = results(left, "results")
    for name, each in done.items():
        assert each.error == 0
        assert _number(left.read(f"{name}.stat"), "rbytes") == each.op.bytes
    total = sum(each.op.meas_bytes for each in done.values())
    shares = {name: each.op.meas_bytes / total for name, each in done.items()}
    ideal = {name: weight / sum(WEIGHTS.values()) for name, weight in WEIGHTS.items()}
    # Emulated processors are late: roughly.
    assert shares == pytest.approx(ideal, rel=0.25)
    # A scheduler that is chosen stays; one that is not goes.
    said = left.read("said").splitlines()
    assert "ok" not in said[:2]
    assert said[2:] == ["ok"] * len(OWN)


@pytest.mark.parametrize("scheduler", [*SCHEDULERS, "cfq"])
def test_the_kernel_asks_for_the_module_by_its_files_name(
    stock_guest: Guest, scheduler: str
) -> None:
    left = stock_guest.run(
        script(
            "cat > /tmp/modprobe << 'EOF'\n"
            "#!/bin/sh\n"
            "while [ $# -gt 1 ]; do shift; done\n"
            "insmod /run/isoblk/modules/isoblk_share.ko\n"
            "insmod /run/isoblk/modules/$1.ko\n"
            "EOF",
            "chmod +x /tmp/modprobe; echo /tmp/modprobe > /proc/sys/kernel/modprobe",
            "insmod /run/isoblk/modules/null_blk.ko nr_devices=0",
            DISK,
            f"echo {scheduler} > {QUEUE}/scheduler; cat {QUEUE}/scheduler > /run/isoblk/said",
        ),
        modules=("null_blk", *OWN),
        load=False,
    )
    assert f"[{scheduler}]" in left.read("said")


def test_modules_in_use_refuse_to_unload(stock_guest: Guest) -> None:
    left = stock_guest.run(
        script(
            vdisk("disk0", hw_queues=4),
            tenant("a", rw="randread", number_ios=100_000_000),
            START,
            *(f"try rmmod {name} >> /run/isoblk/said" for name in ("isoblk_vdisk", "blkload")),
            f"echo 1 > {BLKLOAD}/stop; {WAIT}",
            save("results"),
            f"rmdir {BLKLOAD}/a; rmdir {VDISK}/disk0",
            *(f"try rmmod {name} >> /run/isoblk/said" for name in ("isoblk_vdisk", "blkload")),
        )
    )
    said = left.read("said").splitlines()
    assert "ok" not in said[:2]
    assert said[2:] == ["ok", "ok"]
    assert results(left, "results")["a"].error == 0


def test_hybrid_users_of_cgroups_v1_have_the_weights_too(stock_guest: Guest) -> None:
    left = stock_guest.run(
        script(
            f"mkdir {CGROUP}/a; echo 300 > {CGROUP}/a/blkio.isoblk.weight",
            f"cat {CGROUP}/a/blkio.isoblk.weight > /run/isoblk/weight",
        ),
        modules=OWN,
        cgroup="v1",
    )
    assert left.read("weight").splitlines()[0] == "default 300"


def test_a_study_runs_and_its_results_say_the_tier(stock_guest: Guest, tmp_path: Path) -> None:
    results_dir, study = tmp_path / "quick", tmp_path / "quick.toml"
    # A disk that is null_blk on every machine.
    text = (STUDIES / "quick.toml").read_text()
    study.write_text(text.replace('device = "fast"', 'device = "prototype"'))
    command = [sys.executable, "-m", "isoblk", "run", str(study)]
    ran = subprocess.run(
        [*command, "--machine", "qemu", "-o", str(results_dir)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    records = [json.loads(path.read_text()) for path in results_dir.glob("runs/*/run.json")]
    assert {record["tier"] for record in records} == {"qemu"}
    assert {record["status"] for record in records} == {"valid"}
    assert {one["provenance"]["kernel"] for one in records} == {stock_guest.kernel.version}
    shown = subprocess.run(
        [*command[:3], "show", str(results_dir)], capture_output=True, text=True, check=True
    )
    # Its head says where, on which kernel, and on what disk.
    head = " ".join(shown.stdout.split("\n\n")[0].split())
    assert f"tier qemu · Linux {stock_guest.kernel.version} · " in head
    assert head.endswith(" · a model disk (null_blk): 80.0 µs a request")


def _number(stat: str, name: str) -> int:
    """One figure of an io.stat with one device."""
    return int(dict(word.split("=") for word in stat.split()[1:])[name])

# SPDX-License-Identifier: GPL-2.0-only
"""The clock and the random numbers of the uml machine: kernel/uml/replace.c."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from isoblk.errors import UserError
from isoblk.kernel import host_library
from isoblk.machine.uml import Uml
from tests.lab.campaigns import easily_disturbed
from tests.lab.guest import Guest
from tests.lab.load import Load, results, run, script, tenant, vdisk

# Commands of a script before the load begins that have nothing to do with it.
DISTURBANCES = {
    "a mount": "mount -t tmpfs other /mnt; umount /mnt",
    "random numbers of a program": "head -c 100000 /dev/urandom > /dev/null",
    "a file that is read": "cat /proc/uptime > /dev/null",
    "another program": "/usr/bin/perl -e 1",
    "another module": "insmod /run/isoblk/modules/isoblk_share.ko",
}
BEGIN = "## the device\n"


def test_the_schedulers_clock_has_no_ticks(guest: Guest) -> None:
    # The kernel stamps its messages by the same clock.
    left = guest.run(
        "sleep 1; echo A > /dev/kmsg; sleep 0.0037; echo B > /dev/kmsg; dmesg > /run/isoblk/log"
    )
    at = {
        mark: float(s) for s, mark in re.findall(r"\[ *([\d.]+)\] ([AB])$", left.read("log"), re.M)
    }
    assert 3_700 <= round(1e6 * (at["B"] - at["A"])) < 3_800


@pytest.mark.parametrize("elevator", ["isoblk", "kyber", "mq-deadline"])
def test_equal_tenants_beyond_the_tags_are_served_alike(guest: Guest, elevator: str) -> None:
    tenants = [f"t{i}" for i in range(8)]
    disk = vdisk(model="fixed", servers=1, queue_depth=32, read_ns=100_000)
    load: Load = {"rw": "randread", "bs": "4k", "iodepth": 64, "cputime": "1us"}
    load |= {"ramp_time": "200ms", "runtime": "1s"}
    left = guest.run(
        script(
            disk,
            f"echo {elevator} > /sys/block/disk0/queue/scheduler",
            *(tenant(name, cgroup="/", randseed=1 + i, **load) for i, name in enumerate(tenants)),
            run("results"),
        ),
        modules=("isoblk_vdisk", "blkload", "isoblk_share", "isoblk-iosched"),
    )
    served = [one.ops["read"].ios for one in results(left, "results").values()]
    assert max(served) < 1.05 * min(served)


def _mixed(bench: Bench, directory: Path, before: str = "", seed: int = 1) -> bytes:
    """Run easily_disturbed() after some lines of script; what the load's results are."""
    plan = easily_disturbed().plan
    head, begin, rest = plan.text.partition(BEGIN)
    assert begin
    directory.mkdir()
    (directory / "plan.sh").write_text(f"{head}{before}\n{begin}{rest}")
    modules = [bench.modules[name] for name in dict.fromkeys((*plan.modules, "isoblk_share"))]
    bench.machine.run(directory, modules, seed=seed, memory_mib=512)
    return (directory / "results").read_bytes()


@pytest.mark.parametrize("disturbance", DISTURBANCES)
def test_commands_before_the_load_do_not_change_the_run(
    bench: Bench, tmp_path: Path, disturbance: str
) -> None:
    alone = _mixed(bench, tmp_path / "alone")
    assert _mixed(bench, tmp_path / "disturbed", DISTURBANCES[disturbance]) == alone


def test_another_seed_gives_the_kernel_other_random_numbers(bench: Bench, tmp_path: Path) -> None:
    # A random draw of BFQ has one of four results.
    assert len({_mixed(bench, tmp_path / str(seed), seed=seed) for seed in range(1, 13)}) > 1


@pytest.mark.parametrize("name", ["sched_clock", "get_random_u32", "time_travel_time"])
def test_a_kernel_without_a_replaced_function_does_not_run(
    default_bench: Bench, tmp_path: Path, name: str
) -> None:
    kernel = replace(default_bench.kernel, dir=tmp_path / "kernel")
    kernel.build.mkdir(parents=True)
    image = default_bench.kernel.linux.read_bytes()
    # Names may end where longer ones do.
    other = image.replace(f"{name}\0".encode(), f"{name[:-1]}_\0".encode())
    assert other != image
    kernel.linux.write_bytes(other)
    shutil.copymode(default_bench.kernel.linux, kernel.linux)
    run = tmp_path / "run"
    run.mkdir()
    (run / "plan.sh").write_text("#!/bin/sh\n")
    machine = Uml(kernel, host_library(default_bench.kernel), time_limit_s=60)
    with pytest.raises(UserError, match=f"^this kernel has no {name}"):
        machine.run(run, [], seed=1, memory_mib=64)

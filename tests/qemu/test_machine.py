# SPDX-License-Identifier: GPL-2.0-only
"""The qemu machine is a PC with four processors, and a guest that fails says so, and how."""

import subprocess
from pathlib import Path

import pytest

from isoblk.errors import RunError
from tests.lab.load import (
    CGROUP,
    NULLB,
    cgroup,
    io_stat,
    nullb,
    results,
    run,
    script,
    tenant,
    vdisk,
)
from tests.qemu.guest import Guest

CPUS = 4


def test_four_processors_and_a_hardware_queue_for_each(guest: Guest) -> None:
    left = guest.run(
        script(
            "nproc > /run/isoblk/cpus",
            nullb("n0", submit_queues=CPUS, poll_queues=0),
            vdisk("v0", hw_queues=CPUS),
            "for disk in n0 v0; do ls /sys/block/$disk/mq | wc -l; done > /run/isoblk/queues",
        ),
        modules=("null_blk", "isoblk_vdisk", "blkload"),
    )
    assert left.read("cpus").split() == [str(CPUS)]
    assert left.read("queues").split() == [str(CPUS)] * 2


def test_a_load_on_four_processors_ends_with_figures_that_agree(guest: Guest) -> None:
    names = [f"t{i}" for i in range(CPUS)]
    left = guest.run(
        script(
            vdisk("disk0", hw_queues=CPUS),
            *(cgroup(f"/{name}") for name in names),
            *(
                tenant(name, cgroup=f"/{name}", rw="randrw", iodepth=16, numjobs=2, runtime="500ms")
                for name in names
            ),
            run("results"),
            *(f"cp {CGROUP}/{name}/io.stat /run/isoblk/{name}.stat" for name in names),
        )
    )
    done = results(left, "results")
    assert sorted(done) == names
    for name, each in done.items():
        assert each.error == 0
        charged = io_stat(left.read(f"{name}.stat"))
        assert charged["rbytes"] == each.ops["read"].bytes > 0
        assert charged["wbytes"] == each.ops["write"].bytes > 0


def test_a_processor_can_go_and_come_under_load(guest: Guest) -> None:
    left = guest.run(
        script(
            nullb("disk0", submit_queues=CPUS),
            tenant("a", rw="randread", iodepth=16, numjobs=CPUS, runtime="2s"),
            "echo 1 > /sys/kernel/config/blkload/start",
            "for cpu in 1 2 3; do echo 0 > /sys/devices/system/cpu/cpu$cpu/online; done",
            "nproc > /run/isoblk/cpus",
            "for cpu in 1 2 3; do echo 1 > /sys/devices/system/cpu/cpu$cpu/online; done",
            "nproc >> /run/isoblk/cpus",
            "cat /sys/kernel/config/blkload/wait > /dev/null",
            "cat /sys/kernel/debug/blkload/results > /run/isoblk/results",
        ),
        modules=("null_blk", "blkload"),
    )
    assert left.read("cpus").split() == ["1", str(CPUS)]
    assert results(left, "results")["a"].error == 0


def test_requests_can_be_made_to_fail_and_to_come_back(debug_guest: Guest) -> None:
    names = " ".join(f"{kind}_inject" for kind in ("timeout", "requeue", "init_hctx_fault"))
    debug_guest.run(f"mkdir {NULLB}/n0; cd {NULLB}/n0; ls -d {names}", modules=("null_blk",))


@pytest.mark.parametrize(
    "line", ["echo x > /no/such/file", "echo 1 > /proc/sys/kernel/no_such_knob"]
)
def test_a_step_that_fails_fails_the_run_and_is_shown(stock_guest: Guest, line: str) -> None:
    with pytest.raises(RunError, match=rf"a step of the plan failed: plan\.sh:[0-9]+: {line};"):
        stock_guest.run(line)


def test_a_panic_fails_the_run(stock_guest: Guest) -> None:
    with pytest.raises(RunError, match=r"Kernel panic - not syncing: sysrq triggered crash"):
        stock_guest.run("echo c > /proc/sysrq-trigger; sleep 60")


def test_a_warning_fails_the_run_though_its_steps_succeed(guest: Guest) -> None:
    # Nothing of ours warns, so the kernel's log is made to say what a warning says.
    with pytest.raises(RunError, match=r"the kernel failed: WARNING: CPU: 1"):
        guest.run("echo '<4>WARNING: CPU: 1 PID: 1 at x.c:1' > /dev/kmsg; sleep 1")


def test_lockdep_and_kasan_are_at_work(debug_guest: Guest) -> None:
    left = debug_guest.run(
        "grep debug_locks /proc/lockdep_stats > /run/isoblk/locks;"
        " zcat /proc/config.gz > /run/isoblk/config"
    )
    assert left.read("locks").strip().endswith(" 1")
    config = left.read("config").splitlines()
    for name in ("KASAN", "PROVE_LOCKING", "DEBUG_ATOMIC_SLEEP", "DEBUG_LIST", "SLUB_DEBUG_ON"):
        assert f"CONFIG_{name}=y" in config


def test_a_guest_that_hangs_is_ended_and_leaves_no_process(
    stock_guest: Guest, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match=r"hung: no end after 12 s"):
        stock_guest.run("while :; do :; done", timeout=12)
    # QEMU runs in the run's directory.
    alive = subprocess.run(["ps", "-eo", "pid=,comm="], capture_output=True, text=True, check=True)
    emulators = [row.split()[0] for row in alive.stdout.splitlines() if "qemu-system" in row]
    cwds = [path.resolve() for pid in emulators if (path := Path(f"/proc/{pid}/cwd")).exists()]
    assert tmp_path / "guest" not in cwds


def test_the_guest_cannot_write_the_hosts_files(stock_guest: Guest) -> None:
    left = stock_guest.run(
        "echo x > /host/etc/isoblk-was-here || echo refused > /run/isoblk/answer"
    )
    assert left.read("answer") == "refused\n"
    assert not Path("/etc/isoblk-was-here").exists()


@pytest.mark.parametrize("name", ["a b,c=d", 'a"b'])
def test_a_path_may_hold_anything(stock_guest: Guest, name: str) -> None:
    left = Guest(stock_guest.bench, stock_guest.tmp / name).run("echo yes > /run/isoblk/answer")
    assert left.read("answer") == "yes\n"


def test_nothing_but_the_output_is_left_on_the_host(stock_guest: Guest) -> None:
    left = stock_guest.run("echo yes > /run/isoblk/answer")
    assert sorted(path.name for path in left.dir.iterdir()) == ["answer", "console.log", "plan.sh"]

# SPDX-License-Identifier: GPL-2.0-only
"""No disk of several hardware queues is idle while requests wait.

isoblk's tick finds a disk that is, counts it, and runs its queues. It must find none. Switched off
it only counts, and a request whose queue is not run waits for ever.
"""

from dataclasses import replace

import pytest

from tests.lab.load import CGROUP, Value, cgroup, results, run, script, tenant, vdisk
from tests.qemu.guest import Guest, part_of

MODULES = ("isoblk_vdisk", "blkload", "isoblk_share", "isoblk-iosched")
SCHED = "/sys/kernel/debug/block/disk0/sched"
USE = "echo isoblk > /sys/block/disk0/queue/scheduler"

# Groups of few requests that are waited for, come and go together; and two that stay, of small
# weight, on all queues. On four servers, so that a queue often has nothing in flight.
COMES_AND_GOES: dict[str, Value] = {"on": "40ms", "off": "70ms"}
GROUPS: dict[str, tuple[int, dict[str, Value]]] = {
    "a": (800, {"iodepth": 2, **COMES_AND_GOES}),
    "b": (800, {"thinktime": "30us", **COMES_AND_GOES}),
    "c": (800, {"thinktime": "100us", **COMES_AND_GOES}),
    "d": (100, {"iodepth": 2, "numjobs": 4}),
    "e": (100, {"iodepth": 2, "numjobs": 4}),
}


@pytest.mark.parametrize("queues", [4, 16])
def test_requests_never_wait_for_the_tick(smp_guest: Guest, queues: int) -> None:
    _never_waits(smp_guest, queues, read_ns=200_000, seconds=part_of(270), rescue="off")


def test_nor_on_emulated_processors(stock_guest: Guest) -> None:
    _never_waits(stock_guest, 4, read_ns=1_000_000, seconds=part_of(150), rescue="on")


def _never_waits(guest: Guest, queues: int, *, read_ns: int, seconds: int, rescue: str) -> None:
    left = replace(guest, cpus=queues).run(
        script(
            vdisk(
                model="fixed",
                servers=4,
                read_ns=read_ns,
                write_ns=read_ns,
                queue_depth=64,
                hw_queues=queues,
            ),
            USE,
            f"echo {rescue} > {SCHED}/rescue",
            *(_group(name, runtime=f"{seconds}s") for name in GROUPS),
            run("results"),
            f"cat {SCHED}/rescue > /run/isoblk/rescue",
        ),
        modules=MODULES,
        timeout=3 * seconds + 600,
    )
    assert left.read("rescue").split() == ["rescued", "0", rescue]
    done = results(left, "results")
    assert sorted(done) == sorted(GROUPS)
    assert all(one.op.ios for one in done.values())


def _group(name: str, **attributes: Value) -> str:
    weight, load = GROUPS[name]
    return "\n".join(
        (
            cgroup(f"/{name}"),
            f"echo {weight} > {CGROUP}/{name}/io.isoblk.weight",
            tenant(name, cgroup=f"/{name}", rw="randread", bs="4k", **load, **attributes),
        )
    )

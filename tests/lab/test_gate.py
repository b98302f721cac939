# SPDX-License-Identifier: GPL-2.0-only
"""The admission gate: bios that may not merge, bios that fail on their way from it, and how many of
a group's may wait there."""

import re
from collections.abc import Mapping

import pytest

from tests.lab.guest import Guest, Left
from tests.lab.load import BLKLOAD, START, STOP, WAIT, Value, results, save, tenant, vdisk
from tests.lab.share import ALL, EXACT, Quiet, group, sched, use

# 64 requests of 2 ms each in flight, and 128 tags.
DISK = vdisk("disk0", servers=64, queue_depth=64, write_ns=2_000_000, read_ns=2_000_000)
QUEUE = "/sys/block/disk0/queue"
SPLIT = f"echo 4 > {QUEUE}/max_sectors_kb"
# Requests in flight that tenants ask for: the root has all it wants, the others more than that.
DEPTHS = {"root": (32, 1), "a": (64, 2), "b": (64, 2)}
BEGIN = f"{START}; cat {BLKLOAD}/align > /dev/null"
# The number of times that the groups' file is read.
LOOKS = 50
LOOK = f"for i in $(seq {LOOKS}); do sleep 0.017; cat {sched()}/groups >> /run/isoblk/groups; done"

GATE = f"cat {sched()}/gate > /run/isoblk/gate"


def assert_nothing_waits(left: Left) -> None:
    """No bio and no task is left at the gate, and no wake-up was missed."""
    counts = dict(re.findall(r"(\w+) (\d+)", left.read("gate")))
    assert set(counts) == {"groups", "passing", "entering", "rechecks"}
    assert set(counts.values()) == {"0"}, counts


def most(left: Left, path: str, *names: str) -> int:
    """The largest sum of a group's numbers in one look."""
    looks = [
        dict(re.findall(r"(\w+) (-?\d+)", line))
        for line in left.read("groups").splitlines()
        if line.startswith(f"{path} ")
    ]
    assert len(looks) > LOOKS / 2
    return max(sum(int(look[name]) for name in names) for look in looks)


def load(guest: Guest, elevator: str, *setting: str, parts: int = 1, **more: Value) -> Left:
    """The root and two groups that have more to send than there are tags. parts: requests that the
    kernel makes of one bio."""
    loads: Mapping[str, Value] = {"rw": "randwrite", "bs": "4k", "runtime": "1s", **more}
    left = Quiet(guest).run(
        DISK,
        use(elevator),
        *setting,
        *(group(f"/{name}") for name in ("a", "b")),
        *(
            tenant(
                name,
                cgroup="/" if name == "root" else f"/{name}",
                iodepth=depth // parts,
                numjobs=jobs,
                **loads,
            )
            for name, (depth, jobs) in DEPTHS.items()
        ),
        BEGIN,
        LOOK,
        WAIT,
        save("results"),
        GATE,
    )
    assert_nothing_waits(left)
    return left


def served(left: Left) -> dict[str, int]:
    """Bytes of each tenant."""
    return {name: one.op.bytes for name, one in results(left, "results").items()}


@pytest.mark.parametrize("elevator", EXACT)
def test_parts_of_bios_are_served_as_whole_ones(guest: Guest, elevator: str) -> None:
    whole = served(load(guest, elevator))
    split = served(load(guest, elevator, SPLIT, bs="16k", parts=4))
    for name, size in whole.items():
        assert split[name] >= 0.9 * size, (whole, split)


@pytest.mark.parametrize("elevator", EXACT)
def test_the_root_never_waits_where_nothing_may_merge(guest: Guest, elevator: str) -> None:
    left = load(guest, elevator, f"echo 2 > {QUEUE}/nomerges")
    assert most(left, "/a", "at_gate") > 0
    assert most(left, "/", "at_gate") == 0


def test_no_task_sleeps_until_it_looks_again(guest: Guest) -> None:
    # The groups of cfq have their turns: between them no request of theirs ends.
    left = load(guest, "cfq", f"echo 2 > {QUEUE}/nomerges")
    assert most(left, "/a", "at_gate") > 0


@pytest.mark.parametrize("elevator", EXACT)
def test_parts_that_a_thread_submits_for_a_group_wait_as_the_groups(
    guest: Guest, elevator: str
) -> None:
    # As the flusher does; the thread itself is in the root.
    left = load(guest, elevator, SPLIT, bs="16k", relay=1)
    assert most(left, "/a", "at_gate") > 0
    assert most(left, "/", "at_gate") == 0


@pytest.mark.parametrize("elevator", ALL)
def test_bios_that_fail_on_their_way_leave_no_other_waiting(guest: Guest, elevator: str) -> None:
    faults = "/sys/kernel/debug/fail_make_request"
    left = Quiet(guest).run(
        DISK,
        use(elevator),
        f"echo 8 > {QUEUE}/nr_requests",
        *(group(f"/{name}") for name in ("a", "b")),
        *(
            tenant(name, cgroup=f"/{name}", rw="randread", iodepth=64, runtime="10s")
            for name in ("a", "b")
        ),
        f"echo 0 > {faults}/verbose; echo -1 > {faults}/times; echo 60 > {faults}/probability",
        "echo 1 > /sys/block/disk0/make-it-fail",
        BEGIN,
        "sleep 1",
        "echo 0 > /sys/block/disk0/make-it-fail",
        "sleep 1",
        STOP,
        WAIT,
        save("results"),
        GATE,
    )
    assert_nothing_waits(left)
    for one in results(left, "results").values():
        assert one.op.errors > 0
        # In the last second all is well.
        assert sum(ios for start, (ios, _) in one.op.win.items() if start >= 1100) > 0


@pytest.mark.parametrize("elevator", EXACT)
def test_so_many_bios_of_a_group_wait_and_then_its_submitters_do(
    guest: Guest, elevator: str
) -> None:
    left = Quiet(guest).run(
        DISK,
        use(elevator),
        *(group(f"/{name}") for name in ("a", "b")),
        tenant("a", cgroup="/a", rw="randread", iodepth=1024, numjobs=32, runtime="1s"),
        tenant("b", cgroup="/b", rw="randread", iodepth=64, runtime="1s"),
        BEGIN,
        LOOK,
        WAIT,
        save("results"),
        GATE,
    )
    assert_nothing_waits(left)
    # Each of its 32 jobs may sleep with one more.
    assert 16000 < most(left, "/a", "at_gate") <= 16384 + 32

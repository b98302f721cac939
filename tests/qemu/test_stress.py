# SPDX-License-Identifier: GPL-2.0-only
"""Our elevators survive what may happen to a disk in use, on four processors.

Every guest runs the debug kernel: a bad memory access, a lock taken in the wrong order, a sleep
where one may not, or a task that waits for ever fails the run. Beyond that each test asks, once
the load has ended, for what a race would leave behind: a request without an end, a tag or a
place still held, a byte charged twice or not at all.

Loops that only lengthen the stress run for a time of the guest's clock, however fast it is. `make
storm` has all of that time, other runs a sixth.
"""

import re
from collections.abc import Iterable, Sequence

import pytest

from isoblk.run.tier import QEMU
from tests.kernels import On
from tests.lab.guest import Left
from tests.lab.load import (
    CGROUP,
    NULLB,
    START,
    STOP,
    VDISK,
    WAIT,
    Value,
    cgroup,
    io_stat,
    nullb,
    results,
    save,
    script,
    tenant,
    vdisk,
)
from tests.qemu.guest import Guest, part_of

OURS = ("isoblk", "kyber-fair", "feedbac", "cfq")
MODULES = (
    "null_blk",
    "isoblk_vdisk",
    "blkload",
    "isoblk_share",
    *(f"{elevator}-iosched" for elevator in OURS),
)

# Each elevator has a disk of its own, so that one guest stresses all.
DISKS = {"isoblk": "iso", "kyber-fair": "kf", "feedbac": "fb", "cfq": "cq"}

# So slow that the emulated processors wait for the disk and not the other way round.
SLOW_NS = 40_000_000

# Longer than any loop: the load ends when it is told to.
ENDLESS = "1000s"

# while within SECONDS SINCE: until the time is over.     stop_loops: end and collect those
# `loop NAME COMMAND...` has started, which fail as their commands do.     settle DISK: what the
# block layer and the elevator still hold.     A process costs 40 ms here: builtins where possible.
# RCU's grace periods, of which a switch has several, are shortened: more happens in the time.
STRESS = """
echo 1 > /sys/kernel/rcu_expedited
now() { cut -d. -f1 /proc/uptime; }
within() { [ $(($(now) - $2)) -lt $1 ]; }
loops=
loop() {
    name=$1; shift
    ( rounds=0
      while [ ! -e /run/end ]; do "$@"; rounds=$((rounds + 1)); done
      echo $rounds > /run/isoblk/$name.rounds ) &
    loops="$loops $!"
}
stop_loops() {
    touch /run/end
    for pid in $loops; do wait $pid; done
    loops=
    rm /run/end
}
queue() { echo $3 > /sys/block/$1/queue/$2; }
choose() {
    queue $1 scheduler $2
    read -r schedulers < /sys/block/$1/queue/scheduler
    case "$schedulers" in *"[$2]"*) ;; *) echo "$2 is not in use: $schedulers"; exit 1; esac
}
# Only BusyBox has one.
command -v usleep > /dev/null ||
    usleep() { sleep $(($1 / 1000000)).$(printf %06d $(($1 % 1000000))); }
settle() {
    {
        echo "requests $(cat /sys/block/$1/inflight)"
        cat /sys/block/$1/queue/scheduler
        cd /sys/kernel/debug/block/$1/sched
        for file in window depth state groups tokens gate; do [ ! -e $file ] || cat $file; done
        cd /
    } > /run/isoblk/$1.settled
}
"""


def stress(*parts: str) -> str:
    """A script that has the functions above."""
    return script(STRESS, *parts)


def slow_nullb(name: str, /, **attributes: Value) -> str:
    """A null_blk disk with a hardware queue for each processor and milliseconds of latency."""
    values: dict[str, Value] = {
        "submit_queues": QEMU.cpus,
        "poll_queues": 0,
        "memory_backed": 0,
        "size": 1024,
        "completion_nsec": SLOW_NS,
        **attributes,
    }
    return nullb(name, **values)


def choose(disk: str, elevator: str) -> str:
    """Switch the elevator; fails unless it is then in use."""
    return f"choose {disk} {elevator}"


def stop() -> str:
    """End the load and the loops; keep the results."""
    return "\n".join((STOP, WAIT, "stop_loops", save("results")))


def assert_settled(left: Left, disk: str) -> None:
    """Nothing is left of any request: neither in the block layer nor in the elevator."""
    found = left.read(f"{disk}.settled")
    assert re.search(r"^requests +0 +0$", found, re.MULTILINE), found
    counts = "inflight|in_flight|in_device|held|at_gate|waiting|used|passing|entering"
    held = re.findall(rf"\b({counts}) (-?\d+)", found)
    # The elevators that divide by budgets count requests by group alone.
    if not re.search(r"\[(kyber-fair|feedbac)\]", found):
        assert held[0][0] == "inflight", found
    assert "passing" in dict(held), found
    assert all(count == "0" for _, count in held), found


def assert_ended(left: Left, label: str = "results") -> None:
    """Every request that was issued has ended, well or not; results() checks that they add up."""
    done = results(left, label)
    assert done
    for name, each in done.items():
        assert sum(op.issued for op in each.ops.values()) > 0, name


def stats(*groups: str) -> str:
    """Keep io.stat of cgroups, which are named after their disk: /DISK/NAME.

    The kernel leaves out the figures of one that has only trimmed, so each reads once more.
    """
    lines = []
    for group in groups:
        read = f"dd if=/dev/{group.split('/')[1]} of=/dev/null bs=4k count=1 iflag=direct"
        lines += [
            f"( echo 0 > {CGROUP}{group}/cgroup.procs; {read} 2> /dev/null || : )",
            f"cat {CGROUP}{group}/io.stat > {_stat_file(group)}",
        ]
    return "\n".join(lines)


def _stat_file(group: str) -> str:
    return f"/run/isoblk/stat{group.replace('/', '.')}"


def assert_charged(left: Left, groups: Iterable[str]) -> None:
    """Each cgroup is charged exactly the bytes it sent. groups: without children."""
    for group in groups:
        found = io_stat(left.read(_stat_file(group).rsplit("/", 1)[1]))
        sent = found["rbytes"] + found["wbytes"] + found["dbytes"]
        assert sent > 0, group
        assert found["isoblk.used"] == sent, (group, found)


def loads(disk: str, groups: Sequence[str], /, *, trim: bool = True, **common: Value) -> str:
    """Tenants of every kind, one a cgroup, in turn. trim: the disk can."""
    kinds: tuple[dict[str, Value], ...] = (
        {"rw": "randread", "bs": "4k", "iodepth": 16},
        {"rw": "randwrite", "bs": "4k", "iodepth": 8, "fsync": 8},
        {"rw": "write", "bs": "64k", "iodepth": 4, "fua": 1},
        {"rw": "randrw", "bssplit": "4k/50:128k/50", "iodepth": 4, "numjobs": 2},
        {"rw": "randtrim", "bs": "64k", "iodepth": 4},
    )
    return "\n".join(
        tenant(
            f"{disk}-{i}",
            device=f"/dev/{disk}",
            cgroup=group,
            **{"runtime": ENDLESS, **kinds[i % (len(kinds) - (not trim))], **common},
        )
        for i, group in enumerate(groups)
    )


def groups_of(disk: str, count: int = 5) -> list[str]:
    """Cgroups of a disk's tenants, one of them a child of another."""
    return [f"/{disk}", *(f"/{disk}/{i}" for i in range(1, count))]


SWITCHES = part_of(100)
# Each entry: elevator, and the attribute that is set after the switch.
CHAIN = (
    ("isoblk", ""),
    ("kyber-fair", ""),
    ("feedbac", ""),
    ("cfq", ""),
    ("none", ""),
    ("kyber-fair", "iosched/paper_mode 1"),
    ("mq-deadline", ""),
    ("feedbac", "iosched/paper_mode 1"),
    ("kyber-fair", "iosched/gate 0"),
    ("bfq", ""),
    ("feedbac", "iosched/gate 0"),
    ("isoblk", "nr_requests 8"),
    ("isoblk", "iosched/window 4"),
    ("kyber-fair", "nr_requests 8"),
    ("cfq", "nr_requests 8"),
    ("cfq", "iosched/gate 0"),
)


@pytest.mark.parametrize("shared", [False, True], ids=["tags-a-queue", "shared-tags"])
def test_elevators_are_switched_under_load(stress_guest: Guest, shared: bool) -> None:
    # With memory behind it, the driver sleeps, and can trim.
    groups = groups_of("disk0")
    steps = []
    for elevator, setting in CHAIN:
        steps.append(choose("disk0", elevator))
        if setting:
            steps.append(f"queue disk0 {setting}")
        steps.append("usleep 10000")
    left = stress_guest.run(
        stress(
            slow_nullb("disk0", shared_tag_bitmap=int(shared), memory_backed=int(shared)),
            *map(cgroup, groups),
            loads("disk0", groups, trim=shared),
            START,
            f"""
            weigh() {{
                for weight in 1 10000 100; do
                    echo $weight > {CGROUP}/disk0/1/io.isoblk.weight
                    echo "default $weight" > {CGROUP}/disk0/2/io.isoblk.weight
                    put "$device $weight" {CGROUP}/disk0/3/io.isoblk.weight > /dev/null
                done
                cat {CGROUP}/disk0/*/io.stat > /dev/null
                usleep 200000
            }}
            """,
            "device=$(cat /sys/block/disk0/dev)",
            "loop weigh weigh",
            f"for round in $(seq {SWITCHES // len(CHAIN)}); do",
            "echo round $round at $(now) s",
            *steps,
            "done",
            stop(),
            "settle disk0",
        ),
        modules=MODULES,
    )
    assert_ended(left)
    assert_settled(left, "disk0")
    assert int(left.read("weigh.rounds")) > 0


def test_debugfs_is_read_while_elevators_are_switched(stress_guest: Guest) -> None:
    # Among our own: kyber and bfq take another elevator's data for theirs, and the kernel dies.
    groups = groups_of("disk0")
    sched = "/sys/kernel/debug/block/disk0"
    left = stress_guest.run(
        stress(
            slow_nullb("disk0", completion_nsec=SLOW_NS // 10),
            *map(cgroup, groups),
            loads("disk0", groups, trim=False),
            START,
            # Which of them are there changes meanwhile.
            f"""
            look() {{ cat {sched}/sched/* {sched}/hctx*/sched/* > /dev/null 2>&1 || :; }}
            """,
            *(f"loop look{i} look" for i in range(3)),
            "began=$(now); rounds=0",
            f"while [ $rounds -lt 1 ] || within {part_of(15)} $began; do",
            *(choose("disk0", elevator) for elevator in (*OURS, "none")),
            "rounds=$((rounds + 1))",
            "done",
            "echo $rounds > /run/isoblk/switch.rounds",
            choose("disk0", OURS[0]),
            stop(),
            "settle disk0",
        ),
        modules=MODULES,
    )
    assert_ended(left)
    assert_settled(left, "disk0")
    assert rounds(left, "switch") > 0
    assert all(rounds(left, f"look{i}") > 0 for i in range(3))


def test_a_dozen_disks_at_once(stress_guest: Guest) -> None:
    names = [f"d{i}" for i in range(12)]
    left = stress_guest.run(
        stress(
            *(
                "\n".join(
                    (
                        slow_nullb(name, completion_nsec=SLOW_NS // 10),
                        choose(name, OURS[i % len(OURS)]),
                        *map(cgroup, groups_of(name, 2)),
                        loads(name, groups_of(name, 2), trim=False),
                    )
                )
                for i, name in enumerate(names)
            ),
            START,
            "sleep 5",
            STOP,
            WAIT,
            save("results"),
            *(f"settle {name}" for name in names),
        ),
        modules=MODULES,
    )
    assert_ended(left)
    for name in names:
        assert_settled(left, name)


def one_each(groups: int = 5, /, **attributes: Value) -> str:
    """A slow disk for each of our elevators, with loaded cgroups; see `leaves`."""
    trim = bool(attributes.get("memory_backed"))
    lines = []
    for elevator, disk in DISKS.items():
        lines += [
            slow_nullb(disk, **attributes),
            choose(disk, elevator),
            *map(cgroup, groups_of(disk, groups)),
            loads(disk, groups_of(disk, groups), trim=trim),
        ]
    return "\n".join(lines)


def leaves(groups: int = 5) -> list[str]:
    """The cgroups of `one_each` whose io.stat is of their own requests alone."""
    return [group for disk in DISKS.values() for group in groups_of(disk, groups)[1:]]


def end(groups: int = 5) -> str:
    """End the load of `one_each`, and keep all that tells how it went."""
    return "\n".join(
        (
            stop(),
            stats(*leaves(groups)),
            *(f"settle {disk}" for disk in DISKS.values()),
        )
    )


def assert_clean(left: Left, groups: int = 5) -> None:
    """Of the files that `end` kept: all has ended, nothing is held, every byte is charged once."""
    assert_ended(left)
    for disk in DISKS.values():
        assert_settled(left, disk)
    assert_charged(left, leaves(groups))


def rounds(left: Left, name: str) -> int:
    """How many rounds a `loop` has made."""
    return int(left.read(f"{name}.rounds"))


# Of each disk; the weights of one group, of its parent, and of one on this device.
WEIGHTS = f"""
weigh() {{
    for disk in {" ".join(DISKS.values())}; do
        device=$(cat /sys/block/$disk/dev)
        for weight in 1 10000 100; do
            echo $weight > {CGROUP}/$disk/1/io.isoblk.weight
            echo "default $weight" > {CGROUP}/$disk/io.isoblk.weight
            echo "$device $weight" > {CGROUP}/$disk/2/io.isoblk.weight
        done
        echo "$device default" > {CGROUP}/$disk/2/io.isoblk.weight
        # One may be removed before it is its turn.
        cat {CGROUP}/$disk/*/io.stat {CGROUP}/$disk/*/io.isoblk.weight > /dev/null 2>&1 || :
        cat /sys/kernel/debug/block/$disk/sched/* > /dev/null
        usleep 200000
    done
}}
"""

BATCH = 8

# Groups and their children, in each of which a task reads. Every other task leaves at once, and its
# cgroup is removed while it reads.
COME_AND_GO = f"""
# DISK
come_and_go() {{
    groups= children= tasks=
    for i in $(seq {BATCH}); do
        groups="$groups {CGROUP}/$1/w$i"
        children="$children {CGROUP}/$1/w$i/child"
    done
    mkdir $groups
    for group in $groups; do
        echo $((i * 100 + 1)) > $group/io.isoblk.weight
        echo +io > $group/cgroup.subtree_control
    done
    mkdir $children
    odd=0
    for child in $children; do
        # The shell itself goes ahead: a task that went by itself might find the
        # cgroup removed.
        echo 0 > $child/cgroup.procs
        dd if=/dev/$1 of=/dev/null bs=64k count=4 iflag=direct 2> /dev/null &
        tasks="$tasks $!"
    done
    echo 0 > {CGROUP}/cgroup.procs
    for task in $tasks; do
        odd=$((1 - odd))
        [ $odd = 0 ] || echo $task > {CGROUP}/cgroup.procs 2> /dev/null || :
    done
    left="$children $groups"
    while [ "$left" ]; do
        rmdir $left 2> /dev/null || :
        left=
        for group in $children $groups; do
            [ ! -d $group ] || left="$left $group"
        done
    done
    for task in $tasks; do wait $task; done
}}
"""


def test_cgroups_come_and_go_under_load(stress_guest: Guest) -> None:
    left = stress_guest.run(
        stress(
            one_each(3),
            WEIGHTS,
            COME_AND_GO,
            START,
            "loop weigh weigh",
            *(f"loop {disk} come_and_go {disk}" for disk in DISKS.values()),
            f"sleep {part_of(35)}",
            end(3),
        ),
        modules=MODULES,
    )
    assert_clean(left, 3)
    assert rounds(left, "weigh") > 0
    for disk in DISKS.values():
        assert rounds(left, disk) > 0


def test_metadata_and_one_thread_for_many_while_all_else_changes(stress_guest: Guest) -> None:
    # Boosted requests, and requests of a thread that must not sleep for one of its groups.
    kinds: tuple[dict[str, Value], ...] = (
        {"rw": "randread", "meta": 1, "iodepth": 16},
        {"rw": "randread", "relay": 1, "iodepth": 64},
        {"rw": "randwrite", "relay": 1, "meta": 1, "bs": "16k", "iodepth": 32, "fsync": 16},
        {"rw": "randrw", "relay": 1, "background": 1, "iodepth": 64},
    )
    disks = list(DISKS.values())
    left = stress_guest.run(
        stress(
            *(
                line
                for elevator, disk in DISKS.items()
                for line in (
                    slow_nullb(disk, completion_nsec=5_000_000),
                    choose(disk, elevator),
                    f"queue {disk} nr_requests 16",
                    *map(cgroup, groups_of(disk, len(kinds))),
                    *(
                        tenant(f"{disk}-{i}", device=f"/dev/{disk}", cgroup=group, runtime=ENDLESS,
                               **kind)
                        for i, (group, kind) in enumerate(
                            zip(groups_of(disk, len(kinds)), kinds, strict=True)
                        )
                    ),
                )
            ),
            COME_AND_GO,
            f"""
            weigh() {{
                for disk in {" ".join(disks)}; do
                    for weight in 1 10000 100; do
                        echo $weight > {CGROUP}/$disk/1/io.isoblk.weight
                        put "$(cat /sys/block/$disk/dev) $weight" \\
                            {CGROUP}/$disk/2/io.isoblk.weight > /dev/null
                    done
                    cat {CGROUP}/$disk/*/io.stat > /dev/null 2>&1 || :
                done
                usleep 100000
            }}
            # DISK
            switch() {{
                for elevator in {" ".join(OURS)} none; do
                    choose $1 $elevator
                    queue $1 nr_requests 16
                    usleep 100000
                done
            }}
            """,
            START,
            "loop weigh weigh",
            # One disk keeps its elevator.
            *(f"loop switch-{disk} switch {disk}" for disk in disks[1:]),
            *(f"loop {disk} come_and_go {disk}" for disk in disks),
            f"sleep {part_of(15)}",
            stop(),
            *(choose(disk, elevator) for elevator, disk in DISKS.items()),
            *(f"settle {disk}" for disk in disks),
        ),
        modules=MODULES,
    )  # fmt: skip
    assert_ended(left)
    assert rounds(left, "weigh") > 0
    for disk in disks:
        assert_settled(left, disk)
        assert rounds(left, disk) > 0
    for disk in disks[1:]:
        assert rounds(left, f"switch-{disk}") > 0


def test_tags_come_and_go_under_load(stress_guest: Guest) -> None:
    # Fewer than groups, and new ones: more than there were.
    left = stress_guest.run(
        stress(
            one_each(),
            """
            # DISK
            tags() {
                for tags in 1023 4 2048 64; do
                    queue $1 nr_requests $tags
                    usleep 100000
                done
            }
            """,
            START,
            *(f"loop {disk} tags {disk}" for disk in DISKS.values()),
            f"sleep {part_of(15)}",
            end(),
        ),
        modules=MODULES,
    )
    assert_clean(left)
    for disk in DISKS.values():
        assert rounds(left, disk) > 0


def test_switches_fail_under_load(guest: Guest) -> None:
    # The disk then has none. Linux 7.2 leaves the former one's directory in sysfs behind, and so
    # refuses all others from then on.
    left = guest.run(
        stress(
            one_each(),
            """
            # DISK ELEVATOR
            fails() {
                [ "$(put refuse /sys/block/$1/queue/scheduler)" != ok ]
                read -r schedulers < /sys/block/$1/queue/scheduler
                case "$schedulers" in *"[none]"*) ;; *) echo "$schedulers"; exit 1; esac
                choose $1 $2
                usleep 100000
            }
            """,
            START,
            *(f"loop {disk} fails {disk} {name}" for name, disk in DISKS.items()),
            f"sleep {part_of(15)}",
            end(),
        ),
        modules=(*MODULES, "refuse-iosched"),
    )
    assert_ended(left)
    for disk in DISKS.values():
        assert_settled(left, disk)
        assert rounds(left, disk) > 0


def test_a_cgroup_removed_while_its_request_waits_for_the_switch(stress_guest: Guest) -> None:
    # The kernel gives a cgroup that is on its way out no part of a new elevator. A bio of it may
    # still come: it waits at the frozen queue, which waits for a request of a very slow disk.
    read = "dd if=/dev/disk0 of=/dev/null bs=4k count=1 iflag=direct 2> /dev/null"
    lines = [slow_nullb("disk0", completion_nsec=2_000_000_000)]
    for i, elevator in enumerate(OURS * 2):
        lines += [
            cgroup(f"/{i}"),
            f"{read} & before=$!",
            "usleep 200000",
            f"choose disk0 {elevator} & switch=$!",
            "usleep 200000",
            f"( echo 0 > {CGROUP}/{i}/cgroup.procs; exec {read} ) & task=$!",
            "usleep 400000",
            f"echo $task > {CGROUP}/cgroup.procs",
            f"rmdir {CGROUP}/{i}",
            "for pid in $before $switch $task; do wait $pid; done",
            f"settle disk0; mv /run/isoblk/disk0.settled /run/isoblk/{i}.settled",
            "choose disk0 none",
        ]
    left = stress_guest.run(stress(*lines), modules=MODULES)
    for i in range(2 * len(OURS)):
        assert_settled(left, str(i))


def test_processors_go_and_come_under_load(guest: Guest) -> None:
    # User Mode Linux can take none away.
    left = guest.run(
        stress(
            one_each(),
            """
            plug() { echo $2 > /sys/devices/system/cpu/cpu$1/online; }
            """,
            START,
            "began=$(now); rounds=0",
            f"while [ $rounds -lt 1 ] || within {part_of(35)} $began; do",
            "for cpu in 1 2 3; do plug $cpu 0; done",
            "for cpu in 3 1 2; do plug $cpu 1; done",
            "plug 2 0; plug 3 0; plug 2 1; plug 1 0; plug 3 1; plug 1 1",
            "rounds=$((rounds + 1))",
            "done",
            "echo $rounds > /run/isoblk/plug.rounds",
            end(),
        ),
        modules=MODULES,
    )
    assert_clean(left)
    assert rounds(left, "plug") > 0


def test_disks_vanish_under_load(stress_guest: Guest) -> None:
    # In turn: switched off, and removed whole. null_blk's hardware queues change in between.
    kinds = (
        (slow_nullb("disk0"), NULLB),
        (vdisk("disk0", hw_queues=QEMU.cpus, read_ns=SLOW_NS, write_ns=SLOW_NS), VDISK),
    )
    rows = []
    for elevator in OURS:
        for make, home in kinds:
            for remove in (f"echo 0 > {home}/disk0/power", f"rmdir {home}/disk0"):
                rows += [
                    make,
                    choose("disk0", elevator),
                    START,
                    "for i in 1 2 3; do",
                    "    dd if=/dev/disk0 of=/dev/null bs=4k iflag=direct 2> /dev/null &",
                    "done",
                    "usleep 200000",
                ]
                if home == NULLB:
                    rows += [
                        f"for n in 1 {QEMU.cpus}; do echo $n > {home}/disk0/submit_queues; done"
                    ]
                rows += [
                    remove,
                    WAIT,
                    "round=$((round + 1))",
                    "cat /sys/kernel/debug/blkload/results > /run/isoblk/results.$round",
                    "kill %1 %2 %3 2> /dev/null || :",
                    "wait",
                    f"[ ! -e {home}/disk0 ] || rmdir {home}/disk0",
                ]
    groups = groups_of("disk0")
    left = stress_guest.run(
        stress(
            *map(cgroup, groups),
            loads("disk0", groups, trim=False),
            "began=$(now); round=0",
            f"while [ $round -lt 1 ] || within {part_of(35)} $began; do",
            *rows,
            "done",
            "echo $round > /run/isoblk/vanish.rounds",
            # Nothing of theirs is in use any more.
            *(f"rmmod {elevator}-iosched" for elevator in OURS),
            "rmmod isoblk_share",
        ),
        modules=MODULES,
    )
    assert rounds(left, "vanish") >= 2 * len(kinds) * len(OURS)
    for i in range(rounds(left, "vanish")):
        assert_ended(left, f"results.{i + 1}")


def test_modules_are_loaded_and_unloaded_under_load(stress_guest: Guest) -> None:
    insert = [
        f"insmod /run/isoblk/modules/{name}.ko" for name in MODULES if name.startswith("isoblk_s")
    ]
    insert += [f"insmod /run/isoblk/modules/{elevator}-iosched.ko" for elevator in OURS]
    groups = groups_of("disk0", 3)
    left = stress_guest.run(
        stress(
            "insmod /run/isoblk/modules/null_blk.ko nr_devices=0",
            "insmod /run/isoblk/modules/blkload.ko",
            slow_nullb("disk0"),
            *map(cgroup, groups),
            loads("disk0", groups, trim=False),
            f"look() {{ cat {CGROUP}/disk0/io.stat {CGROUP}/disk0/io.isoblk.weight 2> /dev/null"
            " > /dev/null || :; }",
            START,
            "loop look look",
            "began=$(now); rounds=0",
            f"while [ $rounds -lt 2 ] || within {part_of(20)} $began; do",
            *insert,
            *(
                line
                for elevator in OURS
                for line in (
                    choose("disk0", elevator),
                    # In use, it stays; so do the modules below it.
                    f"for name in {elevator}-iosched isoblk_share; do",
                    "    if rmmod $name 2> /dev/null; then echo unloaded $name in use; exit 1; fi",
                    "done",
                    f"echo 777 > {CGROUP}/disk0/1/io.isoblk.weight",
                    "usleep 100000",
                )
            ),
            # It goes as soon as it is not in use, which may happen at any point of the switch.
            *(f"rmmod {elevator}-iosched" for elevator in OURS[:-1]),
            f"( until rmmod {OURS[-1]}-iosched 2> /dev/null; do :; done ) & unload=$!",
            choose("disk0", "none"),
            "wait $unload",
            "rmmod isoblk_share",
            f"[ ! -e {CGROUP}/disk0/io.isoblk.weight ]",
            "rounds=$((rounds + 1))",
            "done",
            "echo $rounds > /run/isoblk/load.rounds",
            stop(),
        ),
        modules=MODULES,
        load=False,
    )
    assert_ended(left)
    # Once from nothing, and once after they had gone.
    assert rounds(left, "load") > 1


def inject(disk: str, kind: str, interval: int) -> str:
    """Have one of so many requests fail. kind: requeue or timeout."""
    values = {"verbose": 0, "interval": interval, "times": -1, "probability": 100}
    return "\n".join(
        f"echo {value} > {NULLB}/{disk}/{kind}_inject/{name}" for name, value in values.items()
    )


def fail(guest: Guest, **attributes: Value) -> Left:
    """Have requests of loaded disks come back, time out and fail. All of their 256 MiB is used, of
    which a tenth is bad."""
    disks = list(DISKS.values())
    return guest.run(
        stress(
            one_each(memory_backed=1, size=256, **attributes),
            WEIGHTS,
            *(inject(disk, "requeue", 7) for disk in disks),
            START,
            "loop weigh weigh",
            f"sleep {part_of(15)}",
            *(f"queue {disk} io_timeout 500" for disk in disks),
            *(inject(disk, "timeout", 499) for disk in disks),
            *(f"echo +0-52428 > {NULLB}/{disk}/badblocks" for disk in disks),
            f"sleep {part_of(15)}",
            end(),
        ),
        modules=MODULES,
    )


def assert_failed(left: Left) -> None:
    """Some requests have failed, and every byte is charged once all the same."""
    assert_clean(left)
    done = results(left, "results")
    assert sum(op.errors for each in done.values() for op in each.ops.values()) > 0


def test_requests_that_fail_or_come_back_are_charged_once(stress_guest: Guest) -> None:
    # With a cache, so that flushes and FUA are made of several requests.
    cache = {"cache_size": 16}
    if stress_guest.kernel.arch == "um-smp":
        # A task that empties null_blk's cache marks a page, and may give up its processor before
        # it has written it; other tasks spin until it has. A kernel that does not preempt them
        # stands still once they have all processors. So no two tasks may meet: one queue sends
        # one flush at a time, and no write has to make room in a cache larger than the disk.
        cache = {"cache_size": 512, "submit_queues": 1}
    assert_failed(fail(stress_guest, fua=0, **cache))


@pytest.mark.parametrize("stress_guest", [On.SMP], indirect=True)
def test_requests_that_fail_or_come_back_on_any_queue_are_charged_once(
    stress_guest: Guest,
) -> None:
    # The case of several queues, which the test above leaves out.
    assert_failed(fail(stress_guest))


def test_bios_that_wait_at_the_gate_may_leave_by_another_processors_queue(
    stress_guest: Guest,
) -> None:
    # The sender on the first processor, the gate's worker on the last: a tag of another hardware
    # queue than the sender's is none whose return lets more through. Nor does a later bio: all
    # are sent before the first one ends.
    disks = {elevator: disk for elevator, disk in DISKS.items() if elevator != "cfq"}
    left = stress_guest.run(
        stress(
            f"echo {1 << (QEMU.cpus - 1):x} > /sys/devices/virtual/workqueue/cpumask",
            *(
                line
                for elevator, disk in disks.items()
                for line in (
                    vdisk(disk, hw_queues=QEMU.cpus, read_ns=500_000_000),
                    choose(disk, elevator),
                    f"queue {disk} nr_requests 4",
                    cgroup(f"/{disk}"),
                    f"( echo 0 > {CGROUP}/{disk}/cgroup.procs; exec fio --name={disk}"
                    f" --filename=/dev/{disk} --ioengine=libaio --direct=1 --cpus_allowed=0"
                    " --rw=randread --bs=4k --iodepth=32 --io_size=128k --size=64m"
                    f" --eta=never --output=/run/isoblk/{disk}.fio )",
                    f"echo 1000000 > {VDISK}/{disk}/read_ns",
                )
            ),
            stats(*(f"/{disk}" for disk in disks.values())),
            *(f"settle {disk}" for disk in disks.values()),
        ),
        modules=MODULES,
        timeout=300,
    )
    for disk in disks.values():
        assert "err= 0" in left.read(f"{disk}.fio")
        assert_settled(left, disk)
    assert_charged(left, [f"/{disk}" for disk in disks.values()])


# Of each disk. Fewer groups than tags: each has a quota that it can have.
STORM_GROUPS = 3
STORM_TASKS = 21


def test_a_storm_of_tasks_at_the_gate(stress_guest: Guest) -> None:
    # Far more tasks than tags. Every fourth is killed, most of them while they wait.
    names = [f"/{disk}/{i}" for disk in DISKS.values() for i in range(STORM_GROUPS)]
    left = stress_guest.run(
        stress(
            *(
                line
                for elevator, disk in DISKS.items()
                for line in (
                    vdisk(disk, hw_queues=QEMU.cpus, read_ns=2_000_000_000, write_ns=SLOW_NS),
                    choose(disk, elevator),
                    f"queue {disk} nr_requests 4",
                    cgroup(f"/{disk}"),
                )
            ),
            *map(cgroup, names),
            f"""
            toggle() {{
                for disk in {" ".join(DISKS.values())}; do
                    case $disk in
                        {DISKS["cfq"]}) few=quantum\\ 1 all=quantum\\ 64 usual=quantum\\ 8 ;;
                        {DISKS["isoblk"]}) few=window\\ 4 all=window\\ off usual=window\\ auto ;;
                        *) few=paper_mode\\ 1 all=paper_mode\\ 0 usual=paper_mode\\ 0 ;;
                    esac
                    for row in "nr_requests 8" "iosched/$few" "nomerges 2" "nr_requests 4" \\
                        "iosched/$all" "iosched/gate 0" "nomerges 0" "iosched/gate 1" \\
                        "nr_requests 64" "iosched/$usual" "nr_requests 4"
                    do
                        queue $disk $row
                    done
                done
            }}
            # DISK CGROUP PLACE: all wait for the gun before they begin.
            mkfifo /run/gun
            reads() {{
                echo 0 > {CGROUP}$2/cgroup.procs
                : < /run/gun
                exec dd if=/dev/$1 of=/dev/null bs=4k count=15 skip=$3 iflag=direct 2> /dev/null
            }}
            writes() {{
                echo 0 > {CGROUP}$2/cgroup.procs
                : < /run/gun
                exec dd if=/dev/zero of=/dev/$1 bs=4k count=10 seek=$3 conv=fsync 2> /dev/null
            }}
            """,
            "tasks= victims=",
            f"for i in $(seq {STORM_TASKS}); do",
            f"for group in {' '.join(names)}; do",
            "    disk=${group#/}; disk=${disk%/*}",
            "    if [ $((i % 4)) = 3 ]; then writes $disk $group $((i * 1000)) & else",
            "    reads $disk $group $((i * 1000)) & fi",
            '    if [ $((i % 4)) = 2 ]; then victims="$victims $!"; else tasks="$tasks $!"; fi',
            "done",
            "done",
            "sleep 1",
            # This shell must not queue behind all of them when it looks.
            "renice -n -20 $$",
            ": > /run/gun",
            "began=$(now)",
            # The victims are killed once there are some that wait, and then the disks become fast.
            "until grep -ho 'at_gate [1-9].*' /sys/kernel/debug/block/*/sched/groups"
            " > /run/isoblk/waited; do within 300 $began; done",
            "kill -9 $victims || :",
            *(f"echo 5000000 > {VDISK}/{disk}/read_ns" for disk in DISKS.values()),
            "loop toggle toggle",
            "for task in $tasks; do wait $task; done",
            "for victim in $victims; do wait $victim || :; done",
            # By io_uring, whose direct requests may not wait, and whose others hold requests that
            # were allocated ahead.
            *(
                f"fio --ioengine=io_uring --direct={direct} --rw=randread --bs=4k --iodepth=16"
                f" --iodepth_batch_submit=8 --time_based --runtime=4 --invalidate=1 --eta=never"
                f" --output=/run/isoblk/{direct}.fio"
                f"{''.join(f' --name={disk} --filename=/dev/{disk}' for disk in DISKS.values())}"
                f" & fio{direct}=$!"
                for direct in (0, 1)
            ),
            *(f"wait $fio{direct}" for direct in (0, 1)),
            "stop_loops",
            "sync",
            stats(*names),
            *(f"settle {disk}" for disk in DISKS.values()),
        ),
        modules=MODULES,
        memory_mib=768,
    )
    for disk in DISKS.values():
        assert_settled(left, disk)
    for direct in (0, 1):
        assert left.read(f"{direct}.fio").count("err= 0") == len(DISKS)
    # Tasks did wait. Every task here may wait, so all requests were charged.
    assert left.read("waited")
    assert_charged(left, names)
    assert rounds(left, "toggle") > 0

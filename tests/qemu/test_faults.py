# SPDX-License-Identifier: GPL-2.0-only
"""Our elevators survive failures: of allocations, of requests, and of whole disks.

Each storm runs on User Mode Linux with KASAN and lockdep, with one hardware queue and with sixteen.
A report of either fails it, and so does each of these after the load: a request that has not
completed, a bio or a task at the gate, a byte charged twice or not at all, a module still in use.
"""

from collections.abc import Sequence

from tests.lab.guest import Left
from tests.lab.load import CGROUP, NULLB, START, STOP, WAIT, cgroup, save
from tests.qemu.guest import Guest, part_of
from tests.qemu.test_stress import (
    DISKS,
    MODULES,
    OURS,
    WEIGHTS,
    assert_clean,
    assert_ended,
    assert_settled,
    choose,
    end,
    groups_of,
    inject,
    loads,
    one_each,
    rounds,
    slow_nullb,
    stop,
    stress,
)

FAST_NS = 4_000_000
FAILSLAB = "/sys/kernel/debug/failslab"
FAIL_BIO = "/sys/kernel/debug/fail_make_request"
UNLOAD = (
    "\n".join((*(f"rmmod {elevator}-iosched" for elevator in OURS), "rmmod isoblk_share"))
    .replace("-iosched", "_iosched")
    .replace("kyber-fair", "kyber_fair")
)

# `faults FILE PROBABILITY`: so many of a hundred fail, until it is 0.
FAULTS = """
faults() {
    echo 0 > $1/verbose; echo -1 > $1/times; echo 1 > $1/interval; echo $2 > $1/probability
}
"""


def none_left(disks: Sequence[str]) -> str:
    """Give all disks back to the kernel, and unload: nothing uses our modules."""
    return "\n".join((*(choose(disk, "none") for disk in disks), UNLOAD))


def assert_all_settled(left: Left, disks: Sequence[str]) -> None:
    """All requests have ended, and nothing waits."""
    assert_ended(left)
    for disk in disks:
        assert_settled(left, disk)


def test_an_elevator_that_finds_no_memory_leaves_the_disk_as_it_was(
    wide_guest: Guest, queues: int
) -> None:
    # One allocation of each switch fails, the next one of the next switch, until none does.
    groups = groups_of("disk0", 3)
    lines = []
    for elevator in OURS:
        lines += [
            "nth=1",
            f"while fails $nth disk0 {elevator}; do",
            "    read -r now < /sys/block/disk0/queue/scheduler",
            f"    case $now in *'[none]'*|*'[{elevator}]'*) ;; *) echo $now; exit 1 ;; esac",
            "    choose disk0 none",
            # All of the first, then fewer and fewer.
            f"    nth=$((nth + 1 + nth / {part_of(60)}))",
            "done",
            f"echo {elevator} $nth >> /run/isoblk/tried",
            choose("disk0", elevator),
            "usleep 300000",
            choose("disk0", "none"),
        ]
    left = wide_guest.run(
        stress(
            FAULTS,
            slow_nullb("disk0", submit_queues=queues, completion_nsec=FAST_NS),
            choose("disk0", "none"),
            *map(cgroup, groups),
            loads("disk0", groups, trim=False),
            f"faults {FAILSLAB} 0; echo N > {FAILSLAB}/ignore-gfp-wait",
            """
            # NTH DISK ELEVATOR: false once there are fewer than NTH allocations.
            fails() {
                (
                    echo $1 > /proc/self/fail-nth
                    echo $3 > /sys/block/$2/queue/scheduler
                    read -r left < /proc/self/fail-nth
                    echo 0 > /proc/self/fail-nth
                    [ "$left" = 0 ]
                ) 2> /dev/null
            }
            """,
            START,
            *lines,
            choose("disk0", OURS[0]),
            stop(),
            "settle disk0",
            none_left(["disk0"]),
        ),
        modules=MODULES,
    )
    assert_all_settled(left, ["disk0"])
    tried = dict(line.split() for line in left.read("tried").splitlines())
    assert set(tried) == set(OURS)
    # Each hardware queue has memory of its own.
    assert all(int(nth) > 10 + queues for nth in tried.values()), tried


def test_groups_that_find_no_memory_are_charged_to_their_parents(
    wide_guest: Guest, queues: int
) -> None:
    # Only allocations that may not wait fail, as those of a cgroup's first bio.
    disks = list(DISKS.values())
    left = wide_guest.run(
        stress(
            FAULTS,
            one_each(3, submit_queues=queues, completion_nsec=FAST_NS),
            WEIGHTS,
            f"""
            # DISK: tasks read, each in a new cgroup.
            starved() {{
                groups= tasks=
                for i in 1 2 3 4 5 6 7 8; do
                    group={CGROUP}/$1/w$i
                    mkdir $group
                    (
                        echo 0 > $group/cgroup.procs
                        echo 1 > /proc/self/make-it-fail
                        exec dd if=/dev/$1 of=/dev/null bs=64k count=8 iflag=direct
                    ) 2> /dev/null &
                    groups="$groups $group" tasks="$tasks $!"
                done
                for task in $tasks; do wait $task || :; done
                for group in $groups; do
                    until rmdir $group 2> /dev/null; do usleep 10000; done
                done
            }}
            """,
            f"echo Y > {FAILSLAB}/ignore-gfp-wait; echo Y > {FAILSLAB}/task-filter",
            f"faults {FAILSLAB} 40",
            START,
            "loop weigh weigh",
            *(f"loop {disk} starved {disk}" for disk in disks),
            f"sleep {part_of(30)}",
            end(3),
            f"faults {FAILSLAB} 0",
            none_left(disks),
        ),
        modules=MODULES,
    )
    assert_clean(left, 3)
    for disk in disks:
        assert rounds(left, disk) > 0


def test_bios_that_fail_on_their_way_hold_up_no_others(wide_guest: Guest, queues: int) -> None:
    # Some fail before they come to the gate, and some when they come from it.
    disks = list(DISKS.values())
    left = wide_guest.run(
        stress(
            FAULTS,
            one_each(submit_queues=queues, completion_nsec=FAST_NS),
            *(f"queue {disk} nr_requests 8" for disk in disks),
            f"faults {FAIL_BIO} 50",
            START,
            "toggle() {",
            *(f"    echo $1 > /sys/block/{disk}/make-it-fail" for disk in disks),
            "    usleep 300000",
            "}",
            "fail() { toggle 1; toggle 0; }",
            "loop fail fail",
            f"sleep {part_of(15)}",
            stop(),
            *(f"settle {disk}" for disk in disks),
            none_left(disks),
        ),
        modules=MODULES,
    )
    # io.stat has counted those that failed at the gate's other side.
    assert_all_settled(left, disks)
    assert rounds(left, "fail") > 0


def test_requests_that_come_back_or_time_out(wide_guest: Guest, queues: int) -> None:
    disks = list(DISKS.values())
    left = wide_guest.run(
        stress(
            one_each(submit_queues=queues, completion_nsec=FAST_NS),
            *(inject(disk, "requeue", 5) for disk in disks),
            *(inject(disk, "timeout", 211) for disk in disks),
            *(f"queue {disk} io_timeout 500" for disk in disks),
            WEIGHTS,
            START,
            "loop weigh weigh",
            f"sleep {part_of(20)}",
            end(),
            none_left(disks),
        ),
        modules=MODULES,
    )
    assert_clean(left)


def test_disks_that_share_their_tags(wide_guest: Guest, queues: int) -> None:
    # All queues' tags are those of all disks, of which one comes and goes.
    disks = list(DISKS.values())
    left = wide_guest.run(
        stress(
            one_each(submit_queues=queues, completion_nsec=FAST_NS, shared_tags=1),
            WEIGHTS,
            START,
            "loop weigh weigh",
            f"""
            another() {{
                {slow_nullb("more", submit_queues=queues, shared_tags=1, completion_nsec=FAST_NS)}
                choose more {OURS[0]}
                dd if=/dev/more of=/dev/null bs=64k count=50 iflag=direct 2> /dev/null &
                usleep 50000
                rmdir {NULLB}/more
                # A read of dd's that is in flight when the disk is removed fails.
                wait $! || :
            }}
            """,
            "loop another another",
            f"sleep {part_of(20)}",
            end(),
            none_left(disks),
        ),
        modules=MODULES,
    )
    assert_clean(left)
    assert rounds(left, "another") > 0


def test_polled_requests(wide_guest: Guest, queues: int) -> None:
    # A bio that waits at the gate can no longer be polled for.
    disks = list(DISKS.values())
    left = wide_guest.run(
        stress(
            one_each(3, submit_queues=queues, poll_queues=2, completion_nsec=FAST_NS),
            START,
            *(
                f"( echo 0 > {CGROUP}/{disk}/1/cgroup.procs; exec fio --name={disk}"
                f" --filename=/dev/{disk} --direct=1 --ioengine=io_uring --hipri=1 --rw=randread"
                f" --bs=4k --iodepth=32 --time_based --runtime={part_of(15)} --eta=never"
                f" --output=/run/isoblk/{disk}.fio ) & fio{i}=$!"
                for i, disk in enumerate(disks)
            ),
            *(f"wait $fio{i}" for i, _ in enumerate(disks)),
            stop(),
            *(f"settle {disk}" for disk in disks),
            none_left(disks),
        ),
        modules=MODULES,
    )
    assert_all_settled(left, disks)
    for disk in disks:
        assert "err= 0" in left.read(f"{disk}.fio")


SCSI = "/sys/bus/pseudo/drivers/scsi_debug"
OWN = tuple(name for name in MODULES if name != "null_blk")


def test_a_host_that_resets_itself_and_goes_away(wide_guest: Guest, queues: int) -> None:
    # Four disks with one set of tags. Commands time out, so that the host is reset; others pass the
    # elevators; at last the disks and the host are removed while all are under load.
    checksum = sorted(name for name in wide_guest.bench.modules if "t10dif" in name)
    disks = {elevator: f"sd{letter}" for elevator, letter in zip(OURS, "abcd", strict=True)}
    left = wide_guest.run(
        stress(
            *(f"insmod /run/isoblk/modules/{name}.ko" for name in OWN),
            # Its file has a dash on one kernel, and the kernel may have it built in.
            "for file in /run/isoblk/modules/*t10dif*.ko; do [ ! -e $file ] || insmod $file; done",
            "insmod /run/isoblk/modules/scsi_debug.ko dev_size_mb=64 max_luns=4 max_queue=64"
            f" submit_queues={queues} ndelay=2000000 fake_rw=1",
            *(f"until [ -e /dev/{disk} ]; do usleep 10000; done" for disk in disks.values()),
            *(
                line
                for elevator, disk in disks.items()
                for line in (
                    choose(disk, elevator),
                    f"echo 1 > /sys/block/{disk}/device/timeout",
                    *map(cgroup, groups_of(disk, 3)),
                    loads(disk, groups_of(disk, 3), trim=False),
                )
            ),
            f"rescan() {{ for disk in {' '.join(disks.values())}; do"
            " echo 1 > /sys/block/$disk/device/rescan; done; usleep 50000; }",
            START,
            "loop rescan rescan",
            "sleep 2",
            f"echo 2000 > {SCSI}/every_nth; echo 4 > {SCSI}/opts",
            f"sleep {part_of(20)}",
            f"echo 0 > {SCSI}/opts; echo 0 > {SCSI}/every_nth",
            "sleep 3",
            "stop_loops",
            STOP,
            WAIT,
            save("results"),
            *(f"settle {disk}" for disk in disks.values()),
            START,
            "sleep 1",
            *(f"echo 1 > /sys/block/{disk}/device/delete" for disk in list(disks.values())[:2]),
            f"echo -1 > {SCSI}/add_host",
            WAIT,
            save("gone"),
            "rmmod scsi_debug",
            UNLOAD,
        ),
        modules=(*OWN, *checksum, "scsi_debug"),
        load=False,
    )
    assert_all_settled(left, list(disks.values()))
    assert_ended(left, "gone")
    assert rounds(left, "rescan") > 0

# SPDX-License-Identifier: GPL-2.0-only
"""A zoned disk under each of our elevators: the writes of a zone keep their order."""

import pytest

from tests.lab.load import CGROUP, START, STOP, WAIT, Value, cgroup, save, tenant
from tests.qemu.guest import Guest, part_of
from tests.qemu.test_stress import (
    ENDLESS,
    MODULES,
    OURS,
    assert_ended,
    assert_settled,
    choose,
    slow_nullb,
    stress,
)

# As slow as slow_nullb() is, so that the readers are over their quota on any host. Zones of 64 MiB;
# the writers have the first half of the disk, the readers the other.
SIZE_MIB = 2048
ZONED: dict[str, Value] = {
    "size": SIZE_MIB,
    "blocksize": 4096,
    "hw_queue_depth": 64,
    "discard": 0,
    "zoned": 1,
    "zone_size": 64,
    "zone_nr_conv": 0,
}
READ: dict[str, Value] = {"rw": "randread", "bs": "4k", "iodepth": 128, "offset": SIZE_MIB << 19}
WRITERS = 4


@pytest.mark.parametrize("elevator", OURS)
@pytest.mark.parametrize("tags", [32, 8])
def test_the_writes_of_a_zone_keep_their_order(smp_guest: Guest, elevator: str, tags: int) -> None:
    # The readers keep both groups over their quotas, so that what the writers send would wait.
    left = smp_guest.run(
        stress(
            slow_nullb("disk0", **ZONED | {"submit_queues": 1}),
            choose("disk0", elevator),
            f"queue disk0 nr_requests {tags}",
            *(
                line
                for name in ("x", "y")
                for line in (
                    cgroup(f"/{name}"),
                    tenant(name, cgroup=f"/{name}", runtime=ENDLESS, **READ),
                )
            ),
            START,
            "until grep -q '^/x .*at_gate [1-9]' /sys/kernel/debug/block/disk0/sched/groups;"
            " do usleep 100000; done",
            f"( echo 0 > {CGROUP}/x/cgroup.procs; exec fio --name=w --filename=/dev/disk0"
            " --direct=1 --ioengine=libaio --rw=write --bs=4k --iodepth=16 --zonemode=zbd"
            f" --numjobs={WRITERS} --size=256m --offset_increment=256m --time_based"
            f" --runtime={part_of(15)} --group_reporting --eta=never --output=/run/isoblk/w.fio )",
            STOP,
            WAIT,
            save("results"),
            "settle disk0",
            "dmesg | grep -ciE 'I/O error|zone write|wplug' > /run/isoblk/errors || :",
        ),
        modules=MODULES,
        timeout=600,
    )
    assert "err= 0" in left.read("w.fio")
    assert left.read("errors") == "0\n"
    assert_ended(left)
    assert_settled(left, "disk0")

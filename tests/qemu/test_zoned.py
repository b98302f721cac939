# SPDX-License-Identifier: GPL-2.0-only
"""A zoned disk under each of our elevators: the writes of a zone keep their order."""

import pytest

from tests.lab.load import CGROUP, Value, cgroup
from tests.qemu.guest import Guest, part_of
from tests.qemu.test_stress import MODULES, OURS, assert_settled, choose, slow_nullb, stress

# Zones of 64 MiB; the writers have the first half of the disk, the readers the other.
SIZE_MIB = 2048
ZONED: dict[str, Value] = {
    "size": SIZE_MIB,
    "blocksize": 4096,
    "completion_nsec": 1_000_000,
    "hw_queue_depth": 64,
    "discard": 0,
    "zoned": 1,
    "zone_size": 64,
    "zone_nr_conv": 0,
}
WRITERS = 4


def fio(name: str, group: str, *arguments: str) -> str:
    """A fio job on the disk, in a cgroup, in the background; its process is $NAME."""
    return (
        f"( echo 0 > {CGROUP}/{group}/cgroup.procs; exec fio --name={name} --filename=/dev/disk0"
        f" --direct=1 --ioengine=libaio --bs=4k --time_based --runtime={part_of(15)} --eta=never"
        f" --group_reporting {' '.join(arguments)} --output=/run/isoblk/{name}.fio ) & {name}=$!"
    )


def reader(name: str, group: str) -> str:
    """Reads that keep the group beyond its quota."""
    return fio(
        *(name, group, "--rw=randread", "--iodepth=128", "--iodepth_batch_submit=16"),
        *("--zonemode=none", "--ignore_zone_limits=1", f"--offset={SIZE_MIB // 2}m"),
    )


@pytest.mark.parametrize("elevator", OURS)
@pytest.mark.parametrize("tags", [128, 8])
def test_the_writes_of_a_zone_keep_their_order(smp_guest: Guest, elevator: str, tags: int) -> None:
    left = smp_guest.run(
        stress(
            slow_nullb("disk0", **ZONED | {"submit_queues": 1}),
            choose("disk0", elevator),
            f"queue disk0 nr_requests {tags}",
            cgroup("/x"),
            cgroup("/y"),
            reader("rx", "x"),
            reader("ry", "y"),
            fio(
                *("w", "x", "--rw=write", "--iodepth=16", "--zonemode=zbd"),
                *(f"--numjobs={WRITERS}", "--size=256m", "--offset_increment=256m"),
            ),
            "wait $w; wait $rx; wait $ry",
            "settle disk0",
            "dmesg | grep -ciE 'I/O error|zone write|wplug' > /run/isoblk/errors || :",
        ),
        modules=MODULES,
        timeout=240,
    )
    for name in ("rx", "ry", "w"):
        assert "err= 0" in left.read(f"{name}.fio")
    assert left.read("errors") == "0\n"
    assert_settled(left, "disk0")

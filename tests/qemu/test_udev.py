# SPDX-License-Identifier: GPL-2.0-only
"""The udev rule of `isoblk disk use`, on an NVMe disk that QEMU pretends, by the machine's udev."""

from tests.qemu.guest import Guest
from tests.qemu.test_stress import (
    MODULES,
    assert_settled,
    stress,
)
from tests.qemu.test_weights import ISOBLK

# Of zeros: no file is behind it.
DISK = (
    *("-blockdev", "null-co,node-name=zeros,size=1073741824,read-zeroes=on"),
    *("-device", "nvme,drive=zeros,serial=s0,max_ioqpairs=4"),
)

# The guest has the host's /etc, read-only. The daemon is a link to a program in /bin, which is
# BusyBox's here.
UDEV = """
ln -s /usr/bin/udevadm /bin/udevadm
mount -t tmpfs none /etc/udev/rules.d
/usr/lib/systemd/systemd-udevd --daemon
udevadm control --ping -t 600
"""


def test_the_rule_of_disk_use_chooses_at_boot_and_when_the_disk_comes_and_not_otherwise(
    debug_guest: Guest,
) -> None:
    queue = "/sys/block/nvme0n1/queue"
    read = f"cat {queue}/scheduler {queue}/nr_requests"
    trigger = "udevadm trigger -c {} {}; udevadm settle -t 600"
    left = debug_guest.run(
        stress(
            f"{read} > /run/isoblk/before",
            UDEV,
            # The rule names the disk by what udev knows of it.
            trigger.format("add", "--subsystem-match=block"),
            f"{ISOBLK} disk use isoblk nvme0n1 --tags 1024 > /run/isoblk/said",
            "cat /etc/udev/rules.d/90-isoblk.rules > /run/isoblk/rules",
            f"{read} > /run/isoblk/used",
            # A scheduler chosen manually holds until the next boot, also when the disk is written.
            "choose nvme0n1 none",
            trigger.format("change", "/sys/block/nvme0n1"),
            f"{read} > /run/isoblk/changed",
            # As a boot does for disks that are there.
            trigger.format("add", "--subsystem-match=block"),
            f"{read} > /run/isoblk/there",
            # Gone, and found again.
            "device=$(readlink -f /sys/block/nvme0n1/device/device)",
            "echo 1 > $device/remove; udevadm settle -t 600; [ ! -e /sys/block/nvme0n1 ]",
            "echo 1 > /sys/bus/pci/rescan; udevadm settle -t 600",
            "began=$(now)",
            "until [ -e /sys/block/nvme0n1 ]; do within 60 $began; usleep 100000; done",
            "udevadm settle -t 600",
            f"{read} > /run/isoblk/came",
            "settle nvme0n1",
        ),
        modules=MODULES,
        more=DISK,
    )
    said = left.read("said").splitlines()
    assert said[0] == "nvme0n1: isoblk, 1024 tags, also after the next boot"
    assert said[1].startswith("nvme0n1: generic cost model of its kind; ")
    assert 'ENV{ID_WWN}=="nvme.' in left.read("rules")
    for when in ("before", "changed"):
        assert "[none]" in left.read(when), when
    for when in ("used", "there", "came"):
        scheduler, tags = left.read(when).splitlines()
        assert "[isoblk]" in scheduler, when
        assert tags == "1024", when
    assert_settled(left, "nvme0n1")

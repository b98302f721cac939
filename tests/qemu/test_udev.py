# SPDX-License-Identifier: GPL-2.0-only
"""A udev rule as docs/start/install.md recommends it, on an NVMe disk that QEMU pretends."""

import re
from pathlib import Path

from tests.qemu.guest import Guest
from tests.qemu.test_stress import (
    MODULES,
    assert_settled,
    stress,
)

INSTALL = Path(__file__).resolve().parents[2] / "docs" / "start" / "install.md"

# Of zeros: no file is behind it.
DISK = (
    *("-blockdev", "null-co,node-name=zeros,size=1073741824,read-zeroes=on"),
    *("-device", "nvme,drive=zeros,serial=s0,max_ioqpairs=4"),
)


def rules() -> list[str]:
    """The udev rules that docs/start/install.md recommends."""
    found = re.findall(r'^ {4}(ACTION==".*)$', INSTALL.read_text(), re.MULTILINE)
    assert found
    return found


# The daemon, on the rules that are in /run/rules. The guest has the host's /etc, read-only. The
# daemon is a link to a program in /bin, which is BusyBox's here.
UDEV = """
ln -s /usr/bin/udevadm /bin/udevadm
mkdir -p /run/udev/rules.d
cp /run/rules /run/udev/rules.d/60-isoblk.rules
/usr/lib/systemd/systemd-udevd --daemon
udevadm control --ping -t 600
"""


def test_a_udev_rule_as_documented_chooses_for_the_disk_that_is_there_and_that_comes(
    debug_guest: Guest,
) -> None:
    queue = "/sys/block/nvme0n1/queue"
    read = f"cat {queue}/scheduler {queue}/nr_requests"
    left = debug_guest.run(
        stress(
            f"cat > /run/rules << 'EOF'\n{chr(10).join(rules())}\nEOF",
            f"{read} > /run/isoblk/before",
            UDEV,
            "udevadm trigger -c add --subsystem-match=block; udevadm settle -t 600",
            f"{read} > /run/isoblk/there",
            # Somebody chooses another; a change of the disk, as at the end of each that writes to
            # it, has the rule choose again.
            "choose nvme0n1 none",
            "udevadm trigger -c change /sys/block/nvme0n1; udevadm settle -t 600",
            f"{read} > /run/isoblk/changed",
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
    assert "[none]" in left.read("before")
    for when in ("there", "changed", "came"):
        scheduler, tags = left.read(when).splitlines()
        assert "[isoblk]" in scheduler, when
        assert tags == "1024", when
    assert_settled(left, "nvme0n1")

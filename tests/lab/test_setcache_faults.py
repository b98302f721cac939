# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache: a device fails, or comes back after a cut, and nobody reads anything wrong.

Each case is one that went wrong, or that needs more than a bad place: a bio that the SSD's queue
had split, a cache on a partition, a reader beside the one that failed, an origin that forgets.
"""

from tests.lab.guest import Guest
from tests.lab.test_setcache import MODULES, ORIGIN, SHELL, WAYS, C

# Where slot 0 of set 0 is, in bytes.
DATA = 65536


def _run(guest: Guest, *lines: str) -> None:
    guest.run("\n".join((SHELL, *lines)), modules=MODULES)


def test_a_bio_that_a_queue_split_is_whole_when_it_ends_elsewhere(guest: Guest) -> None:
    # Its parts are counted anew at the second disk: it must not end with the first of them.
    _run(
        guest,
        f"make 'writethrough lru'; fill {C}",
        "for disk in slow fast; do echo 16 > /sys/block/$disk/queue/max_sectors_kb; done",
        f"fault fast '{DATA} 4096 readwrite' errors",
        f"same {C}; data; fill {C}; same {C}; same /dev/slow",
    )


def test_an_ssd_that_is_a_partition_is_read_where_it_begins(guest: Guest) -> None:
    # The clean half of a request cannot be read; the dirty half can, and is nowhere else.
    _run(
        guest,
        "addpart /dev/fast 1 1024 6144",
        f"dm create c --table '0 {ORIGIN} setcache /dev/slow /dev/fast1 8 {WAYS} writethrough lru"
        " 2 set_high 100'",
        f"fill {C}; tell mode writeback",
        "dd if=/run/isoblk/data of=/run/isoblk/front bs=32k count=1 2> /dev/null",
        "data; dd if=/run/isoblk/data of=/run/isoblk/back bs=32k count=1 2> /dev/null",
        f"dd if=/run/isoblk/back of={C} bs=32k seek=1 oflag=direct 2> /dev/null",
        f"fault fast '{1024 * 512 + DATA} 4096 read' errors",
        "cat /run/isoblk/front /run/isoblk/back > /run/isoblk/both",
        f"dd if={C} bs=64k count=1 iflag=direct 2> /dev/null | cmp - /run/isoblk/both",
    )

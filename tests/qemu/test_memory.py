# SPDX-License-Identifier: GPL-2.0-only
"""A machine that swaps to the disk that is divided: no task waits for ever, no page is lost.

Swap-out frees memory: a group without a share must not hold it up. Swap-in is a read like any
other, and waits for its turn.
"""

import pytest

from tests.lab.load import CGROUP, START, STOP, WAIT, cgroup, io_stat, save, tenant, vdisk
from tests.qemu.guest import Guest
from tests.qemu.test_stress import (
    ENDLESS,
    MODULES,
    assert_ended,
    assert_settled,
    choose,
    rounds,
    stress,
)

MIB = 1 << 20
# The working set of a group, and the part that fits into its memory.
USED, FITS = 8 * MIB, 4 * MIB
ROUNDS = 2
WEIGHTS = {"light": 1, "heavy": 10000}
# As few as a SATA disk has.
TAGS = 32


def swapping(elevator: str, *limited: str) -> str:
    """A disk that is swapped to, groups that have less memory than they use, and one that
    reads beside them as much as there are tags and more, by its weight before all others."""
    lines = (
        vdisk("disk0", hw_queues=1, store="memory", size="128m", read_ns=200_000,
              write_ns=200_000),
        choose("disk0", elevator),
        # With 256 tags of 32 pages each, all that a group has can be on its way to the disk at
        # once. Then nothing is left to reclaim, and the kernel kills its tasks, whatever the
        # elevator.
        "queue disk0 max_sectors_kb 4",
        "mkswap /dev/disk0 > /dev/null; swapon /dev/disk0",
        f"echo '+io +memory' > {CGROUP}/cgroup.subtree_control",
        *map(cgroup, (*(f"/{name}" for name in limited), "/bulk")),
        *(
            f"echo {WEIGHTS[name]} > {CGROUP}/{name}/io.isoblk.weight;"
            f" echo {FITS} > {CGROUP}/{name}/memory.max;"
            f" mkdir /run/{name}; mount -t tmpfs tmpfs /run/{name}"
            for name in limited
        ),
        f"echo 10000 > {CGROUP}/bulk/io.isoblk.weight",
        tenant("bulk", cgroup="/bulk", rw="randread", iodepth=64, runtime=ENDLESS),
        'awaits() { began=$(now); until "$@"; do within 300 $began; usleep 20000; done; }',
    )  # fmt: skip
    return "\n".join(lines)


@pytest.mark.parametrize("elevator", ["isoblk", "kyber-fair", "feedbac"])
def test_limited_groups_swap_to_a_disk_under_load_and_lose_no_page(
    guest: Guest, elevator: str
) -> None:
    left = guest.run(
        stress(
            swapping(elevator, *WEIGHTS),
            f"queue disk0 nr_requests {TAGS}",
            f"""
            # NAME: writes what does not fit, and reads it again.
            works() {{
                echo 0 > {CGROUP}/$1/cgroup.procs
                yes $1 | head -c {USED} > /run/$1/file
                for round in $(seq {ROUNDS}); do
                    md5sum < /run/$1/file >> /run/isoblk/$1.sums
                done
                rm /run/$1/file
            }}
            """,
            START,
            "works light & light=$!",
            "works heavy & heavy=$!",
            # And while they swap, there are more tags or fewer.
            f"more_or_less() {{ for tags in 256 4 {TAGS}; do queue disk0 nr_requests $tags;"
            " usleep 300000; done; }",
            "loop tags more_or_less",
            # By weight the light group has nothing of such a disk, and frees its memory anyhow.
            # The reads of other groups then complete, and the light group goes on.
            f"awaits grep -q 'wbytes=[1-9]' {CGROUP}/light/io.stat",
            "sleep 5",
            STOP,
            WAIT,
            save("results"),
            "wait $light $heavy",
            *(f"yes {name} | head -c {USED} | md5sum > /run/isoblk/{name}.sum" for name in WEIGHTS),
            "stop_loops",
            *(f"cat {CGROUP}/{name}/io.stat > /run/isoblk/{name}.stat" for name in WEIGHTS),
            "swapoff /dev/disk0",
            "settle disk0",
        ),
        modules=MODULES,
    )  # fmt: skip
    for name in WEIGHTS:
        (wanted,) = left.read(f"{name}.sum").splitlines()
        assert left.read(f"{name}.sums").splitlines() == [wanted] * ROUNDS
        swapped = io_stat(left.read(f"{name}.stat"))
        # Each round everything that does not fit goes out and comes in.
        assert swapped["wbytes"] > USED - FITS
        assert swapped["rbytes"] > USED - FITS
        assert swapped["isoblk.used"] == swapped["rbytes"] + swapped["wbytes"]
    assert rounds(left, "tags") > 0
    assert_ended(left)
    assert_settled(left, "disk0")


# NAME: writes what does not fit, again and again.
ALLOCATES = f"""
allocates() {{
    echo 0 > {CGROUP}/$1/cgroup.procs
    while [ ! -e /run/enough ]; do yes | head -c {USED} > /run/$1/file || :; done
}}
sleeps() {{ grep -q use_delay=-1 {CGROUP}/light/io.stat; }}
awake() {{ ! sleeps; }}
"""


# kyber-fair and feedbac charge swap-out, and let no task sleep for it.
@pytest.mark.parametrize("elevator", ["isoblk"])
def test_a_group_that_swaps_beyond_its_share_sleeps_until_its_debt_is_paid(
    guest: Guest, elevator: str
) -> None:
    left = guest.run(
        stress(
            swapping(elevator, "light"),
            "echo 1 > /sys/module/blk_cgroup/parameters/blkcg_debug_stats",
            ALLOCATES,
            START,
            "allocates light & light=$!",
            "awaits sleeps",
            # Its debt is paid when the others have gone and it has.
            STOP,
            WAIT,
            save("results"),
            "touch /run/enough; wait $light; awaits awake; rm /run/enough",
            # The debt ends with the scheduler.
            START,
            "allocates light & light=$!",
            "awaits sleeps",
            choose("disk0", "none"),
            "awake",
            "touch /run/enough; wait $light",
            STOP,
            WAIT,
            save("afterwards"),
            f"rm /run/light/file; cat {CGROUP}/light/memory.events > /run/isoblk/events",
            "swapoff /dev/disk0",
        ),
        modules=MODULES,
    )  # fmt: skip
    assert "oom_kill 0" in left.read("events").splitlines()
    assert_ended(left)
    assert_ended(left, "afterwards")

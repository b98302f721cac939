# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache on four processors: no read returns wrong data, whatever is changed or fails.

The debug kernel sees bad memory accesses, locks and sleeps, and tasks that wait for ever. The load
verifies what it reads. Afterwards all sums of kernel/cache/README.md have to hold. In virtual time
tests/lab does the same a hundred times faster, but for what takes two processors to go wrong.
"""

from tests.guests.setcache_guest import balance
from tests.lab.load import BLKLOAD, nullb, results, run, script
from tests.lab.storm import (
    EMULATED,
    MODULES,
    NATIVE,
    SHELL,
    C,
    Pace,
    all_fua,
    assert_changed,
    assert_starved,
    assert_survived,
    assert_verified,
    loads,
    status,
    storm,
    under_load,
)
from tests.qemu.guest import Guest


def pace_of(guest: Guest) -> Pace:
    """Disks slow enough for the guest's processors to wait for them."""
    return EMULATED if guest.kernel.arch == "x86_64" else NATIVE


def test_all_that_may_change_changes_under_load(stress_guest: Guest) -> None:
    left = stress_guest.run(
        storm(
            pace_of(stress_guest),
            "make 'writeback lru'",
            loads(),
            under_load("changes", 12),
            "settle",
        ),
        modules=MODULES,
    )
    assert_changed(left)


def test_short_memory_causes_no_error(stress_guest: Guest) -> None:
    left = stress_guest.run(
        storm(
            pace_of(stress_guest),
            "make 'writeback lru'",
            loads(),
            under_load("shortage", 8),
            "settle",
        ),
        modules=MODULES,
    )
    assert_starved(left, 50)


def test_disks_that_fail_and_return_never_show_wrong_data(stress_guest: Guest) -> None:
    # First the SSD, in modes that leave nothing dirty: no request sees an error. Then both, in
    # all modes; then every write is FUA, for unflushed writes may be lost with the SSD.
    left = stress_guest.run(
        storm(
            pace_of(stress_guest),
            "make 'writethrough lru'",
            loads(),
            under_load("through", 8),
            all_fua(),
            under_load("both", 8),
            "settle",
        ),
        modules=MODULES,
    )
    assert_survived(left, "through")
    assert_survived(left, "both")


def test_polled_requests_complete_though_the_cache_splits_them(stock_guest: Guest) -> None:
    # A write to both devices, or a read of several pieces, is made of bios that he cannot poll.
    fio = "fio --name=p --ioengine=io_uring --hipri --iodepth=4 --direct=1 --rw=randrw --bs=8k"
    left = stock_guest.run(
        script(
            SHELL,
            nullb("slow", size=8, poll_queues=1, irqmode=0),
            nullb("fast", size=1, poll_queues=1, irqmode=0),
            "make 'writethrough lru'; cat /sys/block/dm-0/queue/io_poll > /run/isoblk/polled",
            f"{fio} --filename={C} --size=8m --io_size=1m --eta=never --output=/run/isoblk/fio",
            "settle",
        ),
        modules=("null_blk", *MODULES),
    )
    assert left.read("polled") == "1\n"
    assert "err= 0" in left.read("fio")
    balance(status(left))


def test_on_a_kernel_as_users_have_it(stock_guest: Guest) -> None:
    left = stock_guest.run(
        storm(
            EMULATED,
            "make 'writeback lru'",
            loads(number_ios=500, runtime=0),
            f"rmdir {BLKLOAD}/trim; {run('results')}",
            "settle",
            "dm remove c; try rmmod dm_setcache > /run/isoblk/said",
        ),
        modules=MODULES,
    )
    assert_verified(left, "results")
    assert all(each.error == 0 for each in results(left, "results").values())
    balance(status(left))
    assert left.read("said") == "ok\n"

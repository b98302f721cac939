# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache: a device fails, or comes back after a cut, and no read returns wrong data.

Each case is one that went wrong, or that needs more than a bad place: a bio that the SSD's queue
had split, a cache on a partition, a reader next to the one that failed, an origin that forgets.
"""

import pytest

from tests.guests.setcache_guest import status_of
from tests.lab.guest import Guest
from tests.lab.load import CGROUP, START, WAIT, tenant
from tests.lab.test_setcache import ORIGIN, SSD, WAYS, C, run_lines, status_in

# Where slot 0 of set 0 is, in bytes, and the sectors that lie between blocks of the same set and
# place: all 15 sets' stripes.
DATA = 65536
ROUND = 15 * WAYS * 8


def test_a_bio_that_a_queue_split_is_whole_when_it_ends_elsewhere(guest: Guest) -> None:
    # Its parts are counted anew at the second disk: it must not end with the first of them.
    run_lines(
        guest,
        f"make 'writethrough lru'; fill {C}",
        "for disk in slow fast; do echo 16 > /sys/block/$disk/queue/max_sectors_kb; done",
        f"fault fast '{DATA} 4096 readwrite' errors",
        f"same {C}; data; fill {C}; same {C}; same /dev/slow",
    )


def test_an_ssd_that_is_a_partition_is_read_where_it_begins(guest: Guest) -> None:
    # The clean half of a request cannot be read; the dirty half can, and is nowhere else.
    run_lines(
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


def test_a_reader_keeps_its_block_when_another_reader_of_it_fails(guest: Guest) -> None:
    # A reader of blocks 0 and 1 fails at 0. One of block 1 is still on its way, held back by its
    # cgroup's limit on the SSD, when a third writes a block whose slot would be that of block 1.
    read = f"dd if={C} bs=4k skip=1 count=1 iflag=direct"
    run_lines(
        guest,
        f"make 'writethrough lru'; fill {C}; tell mode writeback; tell set_high 100",
        f"echo +io > {CGROUP}/cgroup.subtree_control; mkdir {CGROUP}/late",
        f"/bin/echo $(cat /sys/block/fast/dev) riops=2 > {CGROUP}/late/io.max",
        f"( echo 0 > {CGROUP}/late/cgroup.procs; exec {read} of=/run/isoblk/late 2> /dev/null ) &",
        "late=$!; sleep 0.1",
        f"fault fast '{DATA} 4096 read' errors",
        f"dd if={C} of=/run/isoblk/two bs=8k count=1 iflag=direct 2> /dev/null",
        f"dd if=/dev/zero of={C} bs=512 count=8 seek={ROUND + 8} oflag=direct 2> /dev/null",
        "[ -d /proc/$late ]; wait $late",
        "dd if=/run/isoblk/data of=/run/isoblk/wanted bs=8k count=1 2> /dev/null",
        "cmp /run/isoblk/two /run/isoblk/wanted",
        "dd if=/run/isoblk/wanted bs=4k skip=1 2> /dev/null | cmp - /run/isoblk/late",
    )


def test_an_orderly_stop_makes_the_origin_stable_too(guest: Guest) -> None:
    # Else the cache would show for a while what the origin has forgotten.
    run_lines(
        guest,
        f"make 'writethrough lru'; fill {C}; dm remove c",
        "fault slow cut state; fault slow ok state; same /dev/slow",
        f"make 'writethrough lru'; same {C}",
    )


def test_an_ssd_lost_while_it_was_to_call_itself_clean_is_not_done_without(guest: Guest) -> None:
    # It is unknown whether the superblock says clean. If so, its blocks must equal the origin.
    run_lines(
        guest,
        f"make 'writethrough lru'; fill {C} 16; put fast write_ns 1000000000",
        # The records take a second, then the superblock does.
        "dm suspend c & stop=$!; sleep 1.5; fault fast lost state; wait $stop",
        "put fast write_ns 100000; fails dm resume c",
        f"fault fast ok state; dm resume c; same {C} 16; data; fill {C} 16; same {C} 16",
    )


@pytest.mark.parametrize("way", ["suspend", "remove"])
def test_an_origin_that_fails_when_the_cache_is_stopped_costs_nothing(
    guest: Guest, way: str
) -> None:
    # The SSD has all acknowledged writes, and works; only a flush was not sent. Only the stop
    # waits for records here.
    start = "make 'writeback lru 4 set_high 100 commit_ms 60000'"
    stop, again = ("suspend --nolockfs", "dm resume c") if way == "suspend" else ("remove", start)
    left = run_lines(
        guest,
        f"{start}; fill {C}; fault slow lost state; dm {stop} c; fault slow ok state; {again}",
        f"say after; same {C}; sync {C}; clean; same /dev/slow",
    )
    after = status_in(left, "after")
    assert (after["state"], after["dirty"]) == ("ok", "512")


def test_a_stop_records_the_slots_that_it_retires(guest: Guest) -> None:
    # The records have no place in their own, nor in the first that is tried instead, which had a
    # clean block. Data that a failed write has left there must not count as that block.
    start = "make 'writethrough lru'"
    left = run_lines(
        guest,
        f"{start}; for at in 0 32 64 96 128 160 192 224; do fill {C} $at; done",
        f"fault fast '8192 4096 write' errors; fault fast '{DATA} 4096 write' errors",
        f"dm remove c; {start}; say again; same {C} 224",
    )
    assert status_in(left, "again")["retired"] == "2"


def test_one_table_is_not_two_caches_on_the_same_disks(guest: Guest) -> None:
    # Each would keep its own blocks in the same slots. Another table of the device is none.
    line = f"{ORIGIN} setcache /dev/slow /dev/fast 8 {WAYS} writethrough lru"
    other = f"{ORIGIN} setcache /dev/other /dev/fast 8 {WAYS} writethrough lru"
    third = f"{ORIGIN} setcache /dev/slow /dev/third 8 {WAYS} writethrough lru"
    run_lines(
        guest,
        "disk other 16m 500000; disk third 4m 100000",
        *(
            f"printf '0 {line}\\n{ORIGIN} {second}\\n' > /run/isoblk/table;"
            " fails dm create c /run/isoblk/table; rm /run/isoblk/table"
            for second in (line, other, third)
        ),
        "make 'writethrough lru'; dm table c > /run/isoblk/table",
        f"fill {C}; dm load c /run/isoblk/table; dm resume c; same {C}",
    )


@pytest.mark.parametrize("mode", ["writethrough", "writeback"])
def test_a_bad_sector_of_the_origin_fails_only_reads_of_it(guest: Guest, mode: str) -> None:
    # A fill reads all of a block of 64 KiB, of which the reader wants a part.
    read = f"dd if={C} of=/run/isoblk/part bs=4k iflag=direct"
    wanted = "dd if=/run/isoblk/data bs=4k 2> /dev/null"
    left = run_lines(
        guest,
        "fill /dev/slow",
        f"dm create c --table '0 {ORIGIN} setcache /dev/slow /dev/fast 128 16 {mode} lru'",
        "fault slow '8192 4096 read' errors",
        f"{read} count=1; {wanted} count=1 | cmp - /run/isoblk/part",
        f"{read} skip=3 count=20; {wanted} skip=3 count=20 | cmp - /run/isoblk/part",
        f"fails {read} skip=2 count=1; fault slow none errors",
        f"{read} count=32; {wanted} count=32 | cmp - /run/isoblk/part; say good",
    )
    assert status_of(left.read("good"))["used"] == "2"


def _writing(count: int) -> str:
    """So many programs write the first 16 blocks again and again, which an SSD of 1 ms takes; then
    they are dirty. A program alone leaves them alone between its writes."""
    return "\n".join(
        (
            "put fast write_ns 1000000",
            *(
                tenant(f"w{i}", device=C, rw="write", bs="64k", size="64k", runtime="2s")
                for i in range(count)
            ),
            START,
            "cat /sys/kernel/config/blkload/align > /dev/null; sleep 0.2",
        )
    )


@pytest.mark.parametrize("programs", [1, 2])
def test_blocks_under_constant_writes_become_clean_in_writethrough_mode(
    guest: Guest, programs: int
) -> None:
    left = run_lines(
        guest,
        f"make 'writeback lru 2 set_high 100'; {_writing(programs)}",
        "say before; tell mode writethrough; sleep 0.5; say after",
        WAIT,
    )
    before, after = (status_in(left, name) for name in ("before", "after"))
    assert (before["dirty"], after["dirty"]) == ("16", "0")
    # Written after that, too.
    assert int(after["through"]) > int(after["clean"]) > 0


def test_blocks_beside_those_always_written_are_cleaned(guest: Guest) -> None:
    left = run_lines(
        guest,
        f"make 'writeback lru 2 set_high 100'; fill {C}; {_writing(2)}",
        "tell clean; sleep 1; say status",
        WAIT,
    )
    assert status_in(left, "status")["dirty"] == "16"


def test_a_set_over_its_mark_that_is_always_written_holds_up_no_other(guest: Guest) -> None:
    # It is urgent, and nothing of it can be taken.
    one = f"dd if=/run/isoblk/data of={C} bs=4k count=8 seek={WAYS} oflag=direct 2> /dev/null"
    left = run_lines(
        guest,
        f"make 'writeback lru'; {one}; {_writing(2)}; tell clean; sleep 0.5; say status",
        WAIT,
    )
    assert status_in(left, "status")["dirty"] == "16"


def test_writes_to_the_origin_of_a_suspended_cache_are_read_after_resume(guest: Guest) -> None:
    suspended = "dm suspend c; data; fill /dev/slow 64"
    left = run_lines(
        guest,
        f"make 'writethrough lru'; fill {C}; fill {C} 64; dm suspend c; dm resume c; say kept",
        f"{suspended}; dm resume c; same {C} 64",
        # Dirty blocks belong to the origin as it was.
        f"tell mode writeback; tell set_high 100; data; fill {C}; {suspended}; fails dm resume c",
        f"tell accept_origin 1; dm resume c; say accepted; same {C} 64",
    )
    kept, accepted = (status_in(left, name) for name in ("kept", "accepted"))
    assert (kept["used"], accepted["used"], accepted["dirty"]) == ("576", "512", "512")


@pytest.mark.parametrize("disk", ["fast", "slow"])
def test_a_suspend_does_not_wait_until_each_bad_sector_is_tried(guest: Guest, disk: str) -> None:
    # 512 places of 50 ms, one after the other.
    everywhere = f"{DATA} {(8192 << 9) - DATA - 4096} write"
    bad = {
        "fast": f"make 'writethrough lru'; put fast write_ns 50000000; fault fast '{everywhere}'"
        f" errors; fill {C}",
        "slow": f"make 'writeback lru 2 set_high 100'; fill {C}; put slow write_ns 50000000;"
        " fault slow '0 16777216 write' errors; tell clean; sleep 1",
    }
    now = "cut -d' ' -f1 /proc/uptime >> /run/isoblk/times"
    left = run_lines(
        guest,
        f"{bad[disk]}; {now}; dm suspend c; {now}; dm resume c; sleep 30; say after",
        f"fault {disk} none errors; same {C}",
    )
    before, after = map(float, left.read("times").split())
    assert after - before < 2
    found = status_in(left, "after")
    assert found["retired" if disk == "fast" else "stuck"] == "512"


@pytest.mark.parametrize(("block", "ms"), [(62, 4), (63, 10)])
def test_no_commit_comes_between_the_records_of_a_stop(guest: Guest, block: int, ms: int) -> None:
    # A slot retires while the records are written, one of the last blocks of which is bad. Its
    # record meets the superblocks, which say where that block is now.
    start = (
        f"dm create c --table '0 131072 setcache /dev/origin /dev/ssd 8 {WAYS} writeback lru"
        " 4 set_high 100 commit_ms 1'"
    )
    left = run_lines(
        guest,
        f"disk origin 64m 100000; disk ssd 64m 100000; {start}; fill {C}",
        f"put ssd write_ns {ms}000000; fault ssd '{8192 + block * 4096} 4096 write' errors",
        f"dm remove c; put ssd write_ns 100000; {start}; say after; same {C}",
    )
    after = status_in(left, "after")
    assert (after["dirty"], after["retired"]) == ("512", "1")


def test_records_find_a_place_where_all_blocks_are_dirty(guest: Guest) -> None:
    # None is free to be one, until some are cleaned; and that needs records, too, of other blocks.
    start = "make 'writeback lru 4 set_high 100 commit_ms 60000'"
    left = run_lines(
        guest,
        f"{start}; fill {C}; fill {C} 32; fault fast '8192 4096 write' errors; say full",
        f"fails sync {C}; sleep 3; sync {C}; say moved",
        f"fault fast cut state; fault fast ok state; dm remove c; {start}; same {C}; same {C} 32",
    )
    full, moved = (status_in(left, name) for name in ("full", "moved"))
    assert full["dirty"] == full["slots"]
    assert (moved["state"], moved["retired"]) == ("ok", "1")


def test_the_superblock_of_a_failed_commit_is_not_believed_later(guest: Guest) -> None:
    # Of a commit that fails the last superblock alone says where its records are. It cannot be
    # read for a while, nor written, and the cache goes on without. Then it is there again.
    start = "make 'writeback lru 4 set_high 100 commit_ms 60000'"
    last = (SSD << 9) - 4096
    left = run_lines(
        guest,
        f"{start}; fill {C}; clean; sync {C}; data; fill {C}",
        "fault fast '0 12288 write' errors",
        f"fails sync {C}; say lost",
        "dm suspend c; fails dm resume c; fails dm resume c; dm remove c",
        f"fault fast none errors; fault fast '{last} 4096 readwrite' errors",
        f"{start}; tell mode writearound; data; fill {C}; sync {C}",
        "fault fast none errors; fault fast cut state; dm remove c; fault fast ok state",
        f"{start}; same {C}; clean; same /dev/slow",
    )
    assert status_in(left, "lost")["state"] == "lost"

# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache: the blocks it keeps, the data it never returns, and its counters.

The SSD's bytes are read and made here by the format that kernel/cache/README.md describes, not by
the module's own code.
"""

import re
import struct
from typing import Any

import pytest

from tests.guests.setcache_guest import balance, status_of
from tests.lab.guest import Guest, Left, program
from tests.lab.load import (
    CGROUP,
    START,
    STATS,
    TRACING,
    VDISK,
    WAIT,
    cgroup,
    numbers,
    results,
    run,
    save,
    tenant,
    trace_on,
)
from tests.lab.share import io_stats

MODULES = ("isoblk_vdisk", "blkload", "dm-setcache")

# An origin of 16 MiB and an SSD of 4: 15 sets of 64 blocks of 4 KiB.
ORIGIN, SSD, WAYS = 32768, 8192, 64
SLOTS = 15 * WAYS
C = "/dev/mapper/c"

SHELL = f"""
export PATH=$PATH:/sbin:/usr/sbin
dm() {{ r=0; dmsetup --noudevsync --noudevrules "$@" || r=$?; dmsetup mknodes; return $r; }}
fails() {{ if "$@" 2> /run/isoblk/said; then echo "this did not fail: $*"; exit 1; fi; }}
put() {{ echo $3 > {VDISK}/$1/$2; }}
disk() {{ mkdir {VDISK}/$1; put $1 size $2; put $1 store memory; put $1 write_cache 1
  put $1 servers 2; put $1 read_ns $3; put $1 write_ns $3; put $1 power 1; }}
disk slow 16m 500000; disk fast 4m 100000
make() {{ dm create c --table "0 {ORIGIN} setcache /dev/slow /dev/fast 8 {WAYS} $1"; }}
tell() {{ dm message c 0 "$@"; }}
say() {{ dm status c > /run/isoblk/$1; }}
clean() {{ tell clean; while ! dm status c | grep -q ' dirty 0 '; do sleep 0.1; done; }}
fault() {{ echo "$2" > {VDISK}/$1/fault/$3; }}
fill() {{ dd if=/run/isoblk/data of=$1 bs=64k seek=${{2:-0}} oflag=direct 2> /dev/null; }}
same() {{ dd if=$1 bs=64k skip=${{2:-0}} count=32 iflag=direct 2> /dev/null |
  cmp -s - /run/isoblk/data; }}
data() {{ head -c 2097152 /dev/urandom > /run/isoblk/data; }}
data
"""


def run_lines(guest: Guest, *lines: str) -> Left:
    """Run lines of shell behind the functions above."""
    return guest.run("\n".join((SHELL, *lines)), modules=MODULES)


def status_in(left: Left, name: str) -> dict[str, str]:
    """The status line that `say name` left."""
    found = status_of(left.read(name))
    assert found["block"] == "8"
    return found


def _lives(guest: Guest, first: int, count: int) -> None:
    path = "export PATH=$PATH:/sbin:/usr/sbin"
    command = program("setcache_lives", str(first), str(count), "80", to="/run/isoblk/lives")
    left = guest.run(f"{path}\n{command}", modules=MODULES)
    said = left.read("lives")
    assert said.startswith(f"lives {count} "), said + left.console[-2000:]


@pytest.mark.long
def test_flushed_blocks_survive_a_cut_and_no_stale_block_is_read(guest: Guest) -> None:
    _lives(guest, 1, 40)


def test_lives_under_the_sanitizers(debug_guest: Guest) -> None:
    _lives(debug_guest, 100, 4)


def test_random_load_through_every_change(any_guest: Guest) -> None:
    changes = [
        f"tell mode {mode}; tell policy {policy}; sleep 0.05"
        for mode in ("writethrough", "writeback", "writearound", "writeonly", "readonly")
        for policy in ("fifo", "lru", "random")
    ]
    table = f"0 {ORIGIN} setcache /dev/slow /dev/fast 8 {WAYS} writeback fifo 2 commit_ms 20"
    left = run_lines(
        any_guest,
        "make 'writeback lru'",
        tenant("small", device=C, rw="randrw", bssplit="512/20:4k/40:12k/20:64k/20", iodepth=16,
               verify=1, size="8m", fsync=50, runtime="1500ms"),
        tenant("hot", device=C, rw="randrw", bs="4k", iodepth=8, verify=1, offset="8m", size="4m",
               random_distribution="zipf:1.2", fua=1, runtime="1500ms"),
        tenant("long", device=C, rw="rw", bs="64k", iodepth=4, verify=1, offset="12m", size="4m",
               runtime="1500ms"),
        START,
        # The load begins at the next whole second; what changes before that changes nothing.
        "cat /sys/kernel/config/blkload/align > /dev/null",
        *changes,
        "tell mode writeback; tell seq_write_kb 128; tell seq_read_kb 128; sleep 0.1",
        "dm suspend c; dm resume c; tell clean; sleep 0.1",
        f"dm suspend c; dm load c --table '{table}'; dm resume c; sleep 0.1",
        WAIT, save("results"), "clean; say status",
    )  # fmt: skip
    for name, done in results(left, "results").items():
        assert done.error == 0
        for op in done.ops.values():
            assert (op.errors, op.verify_errors) == (0, 0), name
    balance(status_in(left, "status"))


@pytest.mark.parametrize("mode", ["writeback", "writethrough", "writearound", "writeonly"])
def test_the_counters_add_up_and_are_those_of_the_disks(guest: Guest, mode: str) -> None:
    left = run_lines(
        guest,
        f"make '{mode} lru'",
        *(f"cat {STATS}/{disk}/stats > /run/isoblk/{disk}0" for disk in ("slow", "fast")),
        tenant("a", device=C, rw="randrw", bssplit="512/10:4k/50:16k/40", iodepth=8, size="8m",
               number_ios=3000, fsync=100),
        run("results"),
        # Blocks that were read may still be in flight to the SSD.
        "clean; sleep 0.1; say status",
        *(f"cat {STATS}/{disk}/stats > /run/isoblk/{disk}1" for disk in ("slow", "fast")),
    )  # fmt: skip
    status = status_in(left, "status")
    balance(status)
    for disk, name in (("slow", "origin"), ("fast", "ssd")):
        before, after = numbers(left.read(f"{disk}0")), numbers(left.read(f"{disk}1"))
        for way in ("read", "write"):
            moved = (after[f"{way}_bytes"] - before[f"{way}_bytes"]) // 512
            assert moved == int(status[f"{name}_{way}"]), (disk, way)
    assert int(status["read_hit"]) > 0 or mode == "writearound"
    assert (int(status["dirtied"]) > 0) == (mode in ("writeback", "writeonly"))


def test_contents_outlive_an_orderly_stop_and_hits_need_no_origin(guest: Guest) -> None:
    left = run_lines(
        guest,
        "make 'writethrough lru'; fill /dev/mapper/c; dm remove c",
        "make 'readonly fifo'; same /dev/mapper/c; say status",
    )
    status = status_in(left, "status")
    assert (status["read_hit"], status["read_miss"]) == (str(2 << 11), "0")
    assert status["used"] == "512"


def test_an_orderly_stop_leaves_nothing_in_the_origins_own_cache(guest: Guest) -> None:
    """The SSD would still call clean what a power cut takes from the origin afterwards."""
    run_lines(
        guest,
        f"make 'writethrough lru'; fill {C}; dm remove c",
        "fault slow cut state; fault slow ok state; same /dev/slow",
    )


def test_a_sequential_stream_is_cached_up_to_its_threshold(guest: Guest) -> None:
    left = run_lines(
        guest,
        "make 'writeback lru 4 seq_read_kb 256 seq_write_kb 512'",
        "dd if=/dev/mapper/c of=/dev/null bs=64k count=64 iflag=direct 2> /dev/null; say read",
        "fill /dev/mapper/c 128; say written",
        "same /dev/mapper/c 128",
    )
    assert int(status_in(left, "read")["used"]) * 4 == 256
    status = status_in(left, "written")
    assert int(status["write_new"]) == 512 * 2
    assert int(status["seq_write"]) == int(status["write_bypass"]) == (2048 - 512) * 2


@pytest.mark.parametrize("mode", ["writethrough", "writearound", "readonly"])
def test_a_lost_ssd_causes_no_error_if_no_block_is_dirty(guest: Guest, mode: str) -> None:
    left = run_lines(
        guest,
        f"make '{mode} lru'; fill {C}; same {C}",
        "fault fast lost state",
        f"same {C}; fill {C} 64; same {C} 64; fill {C}; sync {C}; same {C}",
        "say lost; dm suspend c; dm resume c",
        f"same {C}; data; fill {C}",
        "fault fast ok state; dm suspend c; dm resume c",
        f"same {C}; same {C}; say back",
    )
    assert status_in(left, "lost")["state"] == "lost"
    back = status_in(left, "back")
    assert back["state"] == "ok"
    assert int(back["used"]) > 0


def test_dirty_blocks_fail_while_the_ssd_is_lost_and_return_with_it(guest: Guest) -> None:
    left = run_lines(
        guest,
        f"make 'writeback lru 4 set_high 100 set_low 90'; fill {C}; sync {C}",
        "fault fast lost state",
        f"fails same {C}; fails fill {C}",
        f"fill {C} 64; same {C} 64; say lost",
        "dm suspend c; dm resume c",
        f"fails same {C}; same {C} 64; fault fast ok state; dm suspend c; dm resume c",
        f"same {C}; same {C} 64; say back; clean; same /dev/slow",
    )
    lost, back = status_in(left, "lost"), status_in(left, "back")
    assert (lost["state"], lost["dirty"]) == ("lost", "512")
    assert int(lost["lost_errors"]) > 0
    assert (back["state"], back["dirty"]) == ("ok", "512")


def test_a_bad_sector_of_the_ssd_loses_only_the_dirty_blocks_on_it(guest: Guest) -> None:
    # All data are bad, and neither superblocks nor records.
    everywhere = f"65536 {(SSD << 9) - 65536 - 4096} readwrite"
    left = run_lines(
        guest,
        f"make 'writethrough lru'; fill {C}",
        f"fault fast '{everywhere}' errors",
        f"same {C}; fill {C} 32; same {C} 32; sleep 0.1; say through; fault fast none errors",
        f"same {C}; same {C} 32; dm remove c; {_ERASE}",
        f"make 'writeback lru 2 set_high 100'; fill {C}; sync {C}",
        # Reads fail, but writes of whole blocks go to the origin.
        f"fault fast '{everywhere}' errors; fails same {C}; fill {C} 96; same {C} 96",
        f"data; fill {C}; same {C}; same /dev/slow; sleep 0.1; say away; fault fast none errors",
        # A power cut does not bring the old ones back.
        "fault fast cut state; fault fast ok state; dm remove c; make 'writeback lru'; say after",
        f"same {C}",
    )
    through, away, after = (status_in(left, name) for name in ("through", "away", "after"))
    assert int(through["ssd_errors"]) > 0
    assert through["origin_errors"] == "0"
    assert (through["state"], away["state"]) == ("ok", "ok")
    assert int(through["retired"]) >= 512
    assert (away["dirty"], away["lost_errors"]) == ("0", "0")
    assert after["dirty"] == "0"
    assert int(after["retired"]) >= 512


def test_a_slot_that_fails_is_not_used_again(guest: Guest) -> None:
    """Of a request with many slots only the bad one, and for good; nor does it count as an error
    that it has failed once."""
    start = "make 'writethrough lru'"
    left = run_lines(
        guest,
        f"{start}; fault fast '{65536 + 5 * 4096} 4096 write' errors; fill {C}; sleep 0.1; say one",
        *(f"data; fill {C}; same {C}; same /dev/slow" for _ in range(5)),
        "say many; dm remove c; fault fast none errors",
        f"{start}; fill {C}; same {C}; say again; dm remove c",
        # A moment's trouble is none of the slot's.
        f"{_ERASE}; {start}; put fast/fault nth_write '1 error'; fill {C}; sleep 0.1; say moment",
    )
    one, many, again, moment = (status_in(left, n) for n in ("one", "many", "again", "moment"))
    assert [status["retired"] for status in (one, many, again, moment)] == ["1", "1", "1", "0"]
    assert int(many["ssd_errors"]) == int(one["ssd_errors"])
    assert int(moment["ssd_errors"]) > 0


@pytest.mark.parametrize("place", ["records", "superblock 0", "superblock 1", "superblock 2"])
def test_a_bad_sector_of_the_metadata_causes_no_error(any_guest: Guest, place: str) -> None:
    at = {
        "records": 8192,
        "superblock 0": 0,
        "superblock 1": 4096,
        "superblock 2": SSD * 512 - 4096,
    }
    start = "make 'writeback lru 4 set_high 100 commit_ms 10'"
    part = f"dd if=/run/isoblk/data of={C} bs=64k count=16 oflag=direct 2> /dev/null"
    left = run_lines(
        any_guest,
        f"{start}; fill {C} 16; sync {C}; fault fast '{at[place]} 4096 readwrite' errors",
        f"{part}; sync {C}; same {C} 16; say bad",
        # Flushed blocks are there after a power cut, and after a stop in order.
        f"fault fast cut state; fault fast ok state; dm remove c; {start}; same {C} 16; say cut",
        f"cmp -n 1048576 {C} /run/isoblk/data",
        f"data; fill {C} 16; sync {C}; dm remove c; {start}; same {C} 16; say stopped",
        f"clean; same /dev/slow 16; dm remove c; {start}; say cleaned",
    )
    found = {name: status_in(left, name) for name in ("bad", "cut", "stopped", "cleaned")}
    moved = "1" if place == "records" else "0"
    assert {status["retired"] for status in found.values()} == {moved}
    assert {status["state"] for status in found.values()} == {"ok"}
    # The two copies that take turns agree no more: the clean ones are dropped, not the dirty.
    assert [found[name]["dirty"] for name in found] == ["768", "768", "768", "0"]


@pytest.mark.parametrize("ms", [50, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("mode", ["writethrough", "writearound", "readonly"])
def test_when_the_mode_has_changed_no_write_in_flight_dirties(
    any_guest: Guest, mode: str, ms: int
) -> None:
    # At each step of a write: on its way to the SSD alone, waiting for one at the same block, and
    # with a part to be read first; FUA ones wait for their records, too.
    steps = [ms / 1000 * part for part in (0.05, 0.5, 0.95, 1.05, 1.5, 2.05, 2.5, 3.5)]
    lines = []
    for i, step in enumerate(steps):
        write = f"dd if=/run/isoblk/data of={C} oflag=direct"
        lines.append(
            f"tell mode writeback; put fast write_ns {ms}000000; at={i * 64}\n"
            f"for n in 0 0 1 2; do {write} bs=4k count=1 seek=$((at + n)) 2> /dev/null & done\n"
            f"{write},dsync bs=4k count=1 seek=$((at + 8)) 2> /dev/null &\n"
            f"{write} bs=512 count=3 seek=$((8 * at + 131)) 2> /dev/null &\n"
            f"{write} bs=512 count=3 seek=$((8 * at + 132)) 2> /dev/null &\n"
            f"sleep {step:g}; tell mode {mode}; put fast write_ns 100000; clean; say at{i}\n"
            f"wait; sleep 0.1; say later{i}"
        )
    left = run_lines(any_guest, "make 'writeback lru 2 set_high 100'", *lines, f"sync {C}")
    for i, step in enumerate(steps):
        at, later = status_in(left, f"at{i}"), status_in(left, f"later{i}")
        assert (at["dirty"], later["dirty"]) == ("0", "0"), (step, later)
        assert later["mode"] == mode


def test_discards_take_dirty_blocks_along_and_no_crash_brings_them_back(guest: Guest) -> None:
    left = run_lines(
        guest,
        f"make 'writeback lru 2 set_high 100'; fill {C}; sync {C}",
        f"blkdiscard -o 0 -l 1048576 {C}; say status; tell mode readonly",
        # Writes now go to the origin; the SSD must not return older data.
        "dd if=/dev/zero bs=64k count=16 2> /dev/null | tr '\\0' x > /run/isoblk/x",
        f"dd if=/run/isoblk/x of={C} bs=64k oflag=direct,sync 2> /dev/null",
        "fault fast cut state; dm remove c; fault fast ok state; make 'writeback lru'",
        f"dd if={C} bs=64k count=16 iflag=direct 2> /dev/null | cmp - /run/isoblk/x",
    )
    status = status_in(left, "status")
    assert (status["discarded"], status["dirty"]) == ("256", "256")


# Blocks of set 0 lie in its slots as on the disk, behind the records.
_BAD = {"fast": 65536 + 5 * 4096, "slow": 5 * 4096}


@pytest.mark.parametrize(("disk", "kind"), [("fast", "read"), ("slow", "write")])
def test_a_block_that_cannot_be_cleaned_does_not_hold_up_others(
    guest: Guest, disk: str, kind: str
) -> None:
    until = "while ! dm status c | grep -q ' dirty 1 stuck 1 '; do sleep 0.1; done"
    left = run_lines(
        guest,
        "make 'writeback lru 4 set_high 0 set_low 0'",
        f"fault {disk} '{_BAD[disk]} 4096 {kind}' errors; fill {C}; {until}; say one",
        # Those that come meanwhile are cleaned at once, not after a rest.
        f"fill {C} 64; before=$(cut -d' ' -f1 /proc/uptime); {until}",
        "after=$(cut -d' ' -f1 /proc/uptime); echo $before $after > /run/isoblk/times; say two",
        "dd if=/dev/slow bs=4k count=5 2> /dev/null | cmp -n 20480 - /run/isoblk/data",
        "dd if=/dev/slow bs=4k skip=6 2> /dev/null | cmp -n 2072576 -i 0:24576 - /run/isoblk/data",
        # It is still there, where it can be, and after a while it is tried again.
        f"fault {disk} none errors; same {C}; sleep 10.5; say cleaned; same /dev/slow",
    )
    one, two, cleaned = (status_in(left, name) for name in ("one", "two", "cleaned"))
    assert (one["state"], one["clean_errors"], one["cleaned"]) == ("ok", "1", "511")
    assert (two["clean_errors"], two["cleaned"]) == ("1", "1023")
    assert (cleaned["cleaned"], cleaned["dirty"], cleaned["stuck"]) == ("1024", "0", "0")
    before, after = map(float, left.read("times").split())
    assert after - before < 1
    balance(cleaned)


@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
def test_io_of_the_cache_on_behalf_of_a_cgroup_is_charged_to_it(
    any_guest: Guest, mode: str
) -> None:
    left = run_lines(
        any_guest,
        f"make '{mode} lru 2 set_high 100'; fill {C} 192",
        *(cgroup(f"/{name}") for name in "abc"),
        "tell clear_stats",
        # Fills; writes of all kinds; and two that wait for each other at the same blocks.
        tenant("a", device=C, cgroup="/a", rw="randread", bs="16k", iodepth=8, size="4m",
               number_ios=400, ioprio="rt/2"),
        tenant("b", device=C, cgroup="/b", rw="randwrite", bssplit="512/20:4k/40:12k/40", iodepth=8,
               offset="4m", size="4m", number_ios=400),
        *(tenant(f"c{n}", device=C, cgroup="/c", rw="randrw", bs="6k", iodepth=8,
                 offset="8m", size="256k", number_ios=200, randseed=n) for n in range(2)),
        trace_on("block_rq_issue"),
        run("results"), "sync; sleep 0.5; sync /dev/mapper/c; say status",
        f"cat {TRACING}/trace > /run/isoblk/trace",
        *(f"cat {CGROUP}/{name}/io.stat > /run/isoblk/{name}" for name in "abc"),
        *(f"cat /sys/block/{disk}/dev > /run/isoblk/{disk}" for disk in ("slow", "fast")),
    )  # fmt: skip
    n = {name: int(value) for name, value in status_in(left, "status").items() if value.isdigit()}
    slow, fast = left.read("slow").strip(), left.read("fast").strip()
    stats = {name: io_stats(left.read(name)) for name in "abc"}
    sums = {
        (disk, way): sum(one.get(disk, {}).get(way, 0) for one in stats.values()) // 512
        for disk in (slow, fast)
        for way in ("rbytes", "wbytes")
    }
    assert n["waited"] > 0
    assert n["rmw_read"] > 0 or mode == "writethrough"
    assert sums == {
        (slow, "rbytes"): n["origin_read"],
        (slow, "wbytes"): n["origin_write"],
        (fast, "rbytes"): n["ssd_read"],
        # Records are everybody's.
        (fast, "wbytes"): n["ssd_write"] - 8 * n["record_blocks"],
    }
    # The writes of a to the SSD are its fills: at its priority, too.
    fills = re.findall(
        rf" {fast.replace(':', ',')} W \d+ \(\) \d+ \+ (\d+) rt,0,2 ", left.read("trace")
    )
    assert 512 * sum(map(int, fills)) == stats["a"][fast]["wbytes"] > 1 << 20


def test_buffered_writes_are_charged_to_their_owner(guest: Guest) -> None:
    # The kernel's own threads write them back; in write-through that makes a job of each.
    left = run_lines(
        guest,
        f"make 'writethrough lru 0'; mkfs.ext4 -q {C}; mkdir /run/m; mount {C} /run/m",
        f"echo '+io +memory' > {CGROUP}/cgroup.subtree_control; mkdir {CGROUP}/a",
        f"( echo 0 > {CGROUP}/a/cgroup.procs; exec dd if=/run/isoblk/data of=/run/m/f bs=64k )",
        f"sleep 40; cat {CGROUP}/a/io.stat > /run/isoblk/a; umount /run/m",
        *(f"cat /sys/block/{disk}/dev > /run/isoblk/{disk}" for disk in ("slow", "fast")),
    )
    stats = io_stats(left.read("a"))
    written = {disk: stats[left.read(disk).strip()]["wbytes"] for disk in ("slow", "fast")}
    # 2 MiB, but for a block whose slot another one needed meanwhile.
    assert all(15 << 17 < size < 17 << 17 for size in written.values()), written


def test_no_read_waits_for_the_fills_of_a_slow_ssd(guest: Guest) -> None:
    left = run_lines(
        guest,
        "disk origin 64m 50000; disk ssd 65m 50000000",
        f"dm create c --table '0 131072 setcache /dev/origin /dev/ssd 8 {WAYS} writeback lru 0'",
        tenant("a", device=C, rw="read", bs="64k", iodepth=8, number_ios=768),
        run("results"), "say read; sleep 9; say filled",
    )  # fmt: skip
    # A write takes the SSD 50 ms, and it does two at a time.
    assert results(left, "results")["a"].ops["read"].lat_max_ns < 2_000_000
    read, filled = status_in(left, "read"), status_in(left, "filled")
    # 16 MiB of fills, and those of the reads that were under way.
    assert 256 * 16 <= int(filled["inserted"]) <= (256 + 8) * 16
    assert int(read["read_bypass"]) == 768 * 128 - 8 * int(filled["inserted"])
    balance(filled)


@pytest.mark.parametrize("large", ["origin", "SSD"])
def test_logical_blocks_of_4096_bytes(guest: Guest, large: str) -> None:
    origin, ssd = ("big", "fast") if large == "origin" else ("slow", "big")
    disks = f"/dev/{origin} /dev/{ssd}"
    left = run_lines(
        guest,
        f"mkdir {VDISK}/big; put big size 16m; put big store memory",
        "put big logical_block_size 4096; put big power 1",
        f"fails dm create c --table '0 {ORIGIN} setcache {disks} 4 {WAYS} writeback lru'",
        f"dm create c --table '0 {ORIGIN} setcache {disks} 8 {WAYS} writeback lru 0'",
        f"fails dd if=/dev/zero of={C} bs=512 count=1 oflag=direct",
        f"cat /sys/block/dm-0/queue/logical_block_size > /run/isoblk/size; fill {C}; same {C}",
        # The target does not take writes of zeros, nor safe erasure: then zeros are written.
        f"blkdiscard -z -o 0 -l 65536 {C}; fails blkdiscard -s {C}; sync {C}; say zeros",
        f"cmp -n 65536 {C} /dev/zero; fill {C}; clean; dm remove c; same /dev/{origin}",
    )
    assert left.read("size") == "4096\n"
    assert int(status_in(left, "zeros")["write"]) == 2 * 2048 + 128


def _used(left: Left, name: str) -> tuple[int, int]:
    """Bytes of vmalloc that the module holds, and slots that the cache has."""
    held = re.findall(r"-0x\w+\s+(\d+) sc_\w+\+\S+ \[dm_setcache\]", left.read(f"{name}.memory"))
    return sum(map(int, held)), int(status_in(left, name)["slots"])


@pytest.mark.parametrize("ways", [16, 512])
def test_a_slot_takes_ten_bytes_of_memory_at_most(guest: Guest, ways: int) -> None:
    table = f"setcache /dev/slow /dev/$1 8 {ways} writeback lru 0"
    left = run_lines(
        guest,
        f"""see() {{ disk $1 $2 100000; dm create c --table "0 {ORIGIN} {table}"; say $1
          cat /proc/vmallocinfo > /run/isoblk/$1.memory; dm remove c; }}""",
        "see small 256m; see large 2g",
    )
    (small, few), (large, many) = _used(left, "small"), _used(left, "large")
    assert many > 7 * few > 7 * 65000
    # The fixed need of a cache cancels out; the minimum is the size of a slot's own fields.
    assert 9 <= (large - small) / (many - few) < 10


_ZERO = "dd if=/dev/zero of=/dev/fast bs=512 oflag=direct count=1 2> /dev/null seek="
_ERASE = f"{_ZERO}0; {_ZERO}8; {_ZERO}{SSD - 8}"


# -- the SSD's bytes --


def _crc(data: bytes, crc: int) -> int:
    """CRC-32C without inversion."""
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def _sample(origin: bytes) -> bytes:
    """The blocks of the origin in the checksum."""
    count = len(origin) // 4096
    blocks = [*range(16), *range(256, 272), *range(count - 16, count)]
    blocks += [count * i // 17 for i in range(1, 17)]
    return b"".join(origin[4096 * n : 4096 * n + 4096] for n in blocks if 0 <= n < count)


def test_the_ssd_has_the_documented_format(guest: Guest) -> None:
    left = run_lines(
        guest,
        f"make 'writeback lru 2 set_high 100'; fill {C}; tell mode writearound",
        "dd if=/dev/mapper/c of=/dev/null bs=64k skip=64 count=16 iflag=direct 2> /dev/null",
        "tell mode writeback; say status; dm table c > /run/isoblk/table; dm remove c",
        "dd if=/dev/fast of=/run/isoblk/ssd bs=1M iflag=direct 2> /dev/null",
        "dd if=/dev/slow of=/run/isoblk/origin bs=1M iflag=direct 2> /dev/null",
    )
    ssd, origin = ((left.dir / name).read_bytes() for name in ("ssd", "origin"))
    supers: list[tuple[Any, ...]] = []
    for copy, at in enumerate((0, 4096, SSD * 512 // 4096 * 4096 - 4096)):
        raw = ssd[at : at + 4096]
        fields = struct.unpack_from("<16sIIQ16sIIQQQQIIQQ", raw)
        assert fields[0] == b"isoblk setcache\0"
        assert fields[1] == 2
        assert fields[2] == _crc(raw[:20] + bytes(4) + raw[24:], 0xFFFFFFFF)
        assert fields[3] % 2 == copy or copy == 2
        # The third one never says clean, and is of the same cache.
        assert fields[11] == 0 or copy < 2
        assert fields[4:11] == supers[0][4:11] if supers else True
        assert not any(raw[272:])
        supers.append(fields)
    _, _, _, _, uuid, block, ways, sets, size, room, data, state, stamp, _, dirty = max(
        supers, key=lambda fields: fields[3]
    )
    assert (block, ways, sets, size, room, state) == (8, WAYS, 15, ORIGIN, SSD, 1)
    assert data % 128 == 0
    assert stamp == _crc(_sample(origin), 0xFFFFFFFF)

    found = {0: 0, 1: 0, 2: 0}
    wanted = (left.dir / "data").read_bytes()
    for slot in range(sets * ways):
        raw = ssd[8192 + 16 * slot : 8192 + 16 * (slot + 1)]
        where, _, csum = struct.unpack("<QII", raw)
        seed = _crc(uuid, 0xFFFFFFFF)
        assert csum == _crc(struct.pack("<Q", slot) + raw[:12], seed)
        kind, number = where >> 60, where & (1 << 60) - 1
        found[kind] += 1
        if kind == 0:
            continue
        assert number // ways % sets == slot // ways
        at = data * 512 + slot * 4096
        content = wanted if kind == 2 else origin
        assert ssd[at : at + 4096] == content[number * 4096 : number * 4096 + 4096]
    status = status_in(left, "status")
    assert found[2] == dirty == int(status["dirty"])
    assert found[1] + found[2] == int(status["used"])


def _refused(guest: Guest, *damage: str, table: str = "writeback lru", then: str = "") -> Left:
    """A cache with dirty blocks is stopped and damaged, and then not loaded. then: lines that
    follow."""
    return run_lines(
        guest,
        f"make 'writeback lru 2 set_high 100'; fill {C}; dm remove c",
        *damage,
        f"fails make '{table}'",
        "dmesg | grep setcache > /run/isoblk/kernel || true",
        then,
    )


def test_the_dirty_blocks_of_one_disk_never_get_onto_another(guest: Guest) -> None:
    # After a power cut nothing but its identity tells another disk of the same size.
    start = "make 'writeback lru 2 set_high 100'"
    other = f"0 {ORIGIN} setcache /dev/other /dev/fast 8 {WAYS} readonly lru 2 accept_origin 1"
    left = run_lines(
        guest,
        f"disk other 16m 1000; {start}; fill {C}; sync {C}",
        "fault fast cut state; fault slow cut state; dm remove c",
        "fault fast ok state; fault slow ok state",
        f"fails dm create c --table '{other}'; dmesg | grep setcache > /run/isoblk/kernel",
        "cmp -n 16777216 /dev/other /dev/zero",
        f"{start}; same {C}; say status; clean; dm remove c; same /dev/slow",
        # Nor where it has been stopped with nothing dirty.
        f"fails dm create c --table '{other}'",
    )
    assert "is the cache of another origin, wwid:naa.3" in left.read("kernel")
    assert status_in(left, "status")["dirty"] == "512"


@pytest.mark.parametrize(
    ("origin", "ssd", "said"),
    [
        ("other", "fast", "the SSD is in use by another cache"),
        ("other", "fast1", "cannot open the SSD"),
        ("slow", "spare", "the origin has another cache"),
        ("other", "slow", "the SSD is the origin of another cache"),
        ("fast", "spare", "the origin is the SSD of another cache"),
    ],
)
def test_a_disk_of_a_live_cache_is_refused(
    any_guest: Guest, origin: str, ssd: str, said: str
) -> None:
    table = f"setcache /dev/{origin} /dev/{ssd} 8 {WAYS} writethrough lru"
    again = "fails make2; dm remove d 2> /dev/null || true"
    left = run_lines(
        any_guest,
        "disk other 16m 1000; disk spare 4m 1000; fault fast none errors",
        "addpart /dev/fast 1 8 8000" if ssd == "fast1" else "",
        f'make2() {{ dm create d --table "0 $(blockdev --getsz /dev/{origin}) {table}"; }}',
        f"make 'writeback lru 2 set_high 100'; fill {C}; {again}",
        "dmesg | grep setcache > /run/isoblk/kernel",
        # Not even while it is suspended, for it goes on with its state in memory.
        f"dm suspend c; {again}; dm resume c",
        # Its own table, of course.
        f"dm suspend c; dm load c --table '0 {ORIGIN} setcache /dev/slow /dev/fast 8 {WAYS}"
        f" writeback lru'; dm resume c; same {C}; {again}; same {C}; clean; same /dev/slow",
        "dm remove c",
    )
    assert said in left.read("kernel")


def test_a_live_cache_is_known_under_other_names(guest: Guest) -> None:
    # Neither origin has an identity, and each disk has two names.
    left = run_lines(
        guest,
        "disk other 16m 1000",
        *(
            f"dm create {name} --table '0 {size} linear /dev/{disk} 0'"
            for name, disk, size in (
                ("a", "slow", ORIGIN),
                ("b", "other", ORIGIN),
                ("f", "fast", SSD),
            )
        ),
        f"dm create c --table '0 {ORIGIN} setcache /dev/mapper/a /dev/fast 8 {WAYS} readonly lru'",
        f"fails dm create d --table '0 {ORIGIN} setcache /dev/mapper/b /dev/mapper/f 8 {WAYS}"
        " readonly lru'; dmesg | grep setcache > /run/isoblk/kernel",
    )
    assert "the SSD is in use by another cache, under another name" in left.read("kernel")


@pytest.mark.parametrize(
    ("origin", "identity"),
    [
        ("/dev/slow", rb"wwid:naa\.3[0-9a-f]{15}"),
        ("/dev/slow1", rb"wwid:naa\.3[0-9a-f]{15}/start:2048"),
        # A copy of the disk has what LVM and the table of partitions call it.
        ("/dev/mapper/v", rb""),
    ],
)
def test_the_superblocks_name_the_origin(guest: Guest, origin: str, identity: bytes) -> None:
    left = run_lines(
        guest,
        "addpart /dev/slow 1 2048 16384" if origin == "/dev/slow1" else "",
        "dm create v --uuid LAB-v --table '0 16384 linear /dev/slow 0'"
        if "mapper" in origin
        else "",
        f'dm create c --table "0 $(blockdev --getsz {origin}) setcache {origin} /dev/fast 8'
        f' {WAYS} {"writeback" if identity else "writethrough"} lru"',
        # Already, with no request yet.
        "dd if=/dev/fast of=/run/isoblk/ssd bs=1M iflag=direct 2> /dev/null",
    )
    ssd = (left.dir / "ssd").read_bytes()
    for at in (0, 4096, SSD * 512 - 4096):
        name, _, rest = ssd[at + 112 : at + 240].partition(b"\0")
        assert re.fullmatch(identity, name)
        assert not any(rest)


def test_of_three_superblocks_one_is_enough(guest: Guest) -> None:
    # The last copy alone does not tell that the stop was in order, so clean blocks are gone.
    start = "make 'writeback lru 2 set_high 100'"
    left = run_lines(
        guest,
        f"{start}; fill {C}; dm remove c",
        f"{_ZERO}0; {start}; same {C}; dm remove c",
        f"{_ZERO}8; {start}; same {C}; dm remove c",
        f"{_ZERO}{SSD - 8}; {start}; same {C}; say dirty; clean; dm remove c",
        f"{_ZERO}0; {_ZERO}8; {start}; say last; same {C}; dm remove c; {start}; same {C}",
    )
    assert status_in(left, "dirty")["dirty"] == "512"
    assert status_in(left, "last")["used"] == "0"


def test_without_any_superblock_it_is_refused(guest: Guest) -> None:
    damage = "printf x | dd of=/dev/fast 2> /dev/null"
    left = _refused(guest, f"{_ZERO}0", f"{_ZERO}8", f"{_ZERO}{SSD - 8}", damage)
    assert "no superblock, or all are damaged" in left.read("kernel")


def test_two_superblocks_that_cannot_be_read_are_not_done_without(guest: Guest) -> None:
    # The third may be older than their account of the records, and nothing would show it.
    left = _refused(
        guest,
        "fault fast '0 4096 read' errors",
        f"fault fast '{(SSD << 9) - 4096} 4096 read' errors",
        then=f"fault fast none errors; make 'writeback lru 2 set_high 100'; same {C}",
    )
    assert "cannot read two copies of the superblock" in left.read("kernel")


def test_copies_of_different_caches_are_refused(guest: Guest) -> None:
    # The first block of a cache, on the SSD of another one.
    left = run_lines(
        guest,
        "make 'writeback lru'; dm remove c",
        "dd if=/dev/fast of=/run/isoblk/first bs=4k count=1 2> /dev/null",
        f"{_ZERO}0; {_ZERO}8; {_ZERO}{SSD - 8}; make 'writeback lru'; dm remove c",
        "dd if=/run/isoblk/first of=/dev/fast bs=4k oflag=direct 2> /dev/null",
        "fails make 'writeback lru'; dmesg | grep setcache > /run/isoblk/kernel",
    )
    assert "the copies of the superblock do not fit each other" in left.read("kernel")


def test_a_cache_of_the_first_format_is_refused(guest: Guest) -> None:
    head = struct.pack("<16sII", b"isoblk setcache", 1, 0)
    page = bytearray(head.ljust(4096, b"\0"))
    struct.pack_into("<I", page, 20, _crc(bytes(page), 0xFFFFFFFF))
    text = "".join(f"\\{byte:03o}" for byte in page[:24])
    left = run_lines(
        guest,
        f"printf '{text}' | dd of=/dev/fast conv=notrunc 2> /dev/null; sync /dev/fast",
        "fails make 'writeback lru'; dmesg | grep setcache > /run/isoblk/kernel",
    )
    assert "a cache of format 1, that no release had" in left.read("kernel")


def test_a_damaged_record_is_refused(guest: Guest) -> None:
    # The 32 records of a sector; the first one is named.
    said = _refused(guest, f"{_ZERO}17").read("kernel")
    assert "the record of slot 32 is damaged: run isoblk cache check" in said


def test_an_origin_that_changed_meanwhile_is_noticed(guest: Guest) -> None:
    left = _refused(guest, "printf x | dd of=/dev/slow bs=512 seek=3 conv=sync 2> /dev/null")
    assert "the origin has changed" in left.read("kernel")
    left = run_lines(
        guest,
        f"make 'writethrough lru'; fill {C}; dm remove c",
        "data; fill /dev/slow",
        f"make 'writethrough lru'; same {C}; say status",
    )
    assert status_in(left, "status")["read_hit"] == "0"


# The origin as the whole disk, a part of it, and a mapped one.
_ORIGINS = {
    "disk": ("/dev/slow", "true"),
    "partition": ("/dev/slow1", "addpart /dev/slow 1 2048 16384"),
    "mapped": ("/dev/mapper/v", "dm create v --uuid V --table '0 16384 linear /dev/slow 0'"),
}
# Reads what the cache and the origin have, and says where they differ. Block 100 is in no sample.
_SAME = f"""
same_as() {{ dd if={C} bs=4k count=512 iflag=direct of=/run/isoblk/a 2> /dev/null
  dd if=$1 bs=4k count=512 iflag=direct of=/run/isoblk/b 2> /dev/null
  cmp /run/isoblk/a /run/isoblk/b; }}
change() {{ dd if=/dev/urandom of=$1 bs=4k seek=${{2:-100}} count=1 ${{3:-oflag=direct}} \\
  2> /dev/null; }}
"""


def _again(left: Left) -> int:
    """Slots in use when the cache was made again."""
    return int(status_in(left, "again")["used"])


@pytest.mark.parametrize("kind", _ORIGINS)
def test_a_change_of_the_origin_is_never_read_over(any_guest: Guest, kind: str) -> None:
    origin, setup = _ORIGINS[kind]
    table = f"setcache {origin} /dev/fast 8 {WAYS} writethrough lru"
    left = run_lines(
        any_guest,
        _SAME,
        setup,
        f'start() {{ dm create c --table "0 $(blockdev --getsz {origin}) {table} 2 trust $1"; }}',
        f"start 0; fill {C}; dm remove c",
        # The origin was not written: clean blocks stay clean.
        "start 0; say again; dm remove c",
        *(
            f"{write}; start {trust}; same_as {origin}; say changed{i}; dm remove c"
            for i, (write, trust) in enumerate(
                (
                    (f"change {origin}", 0),
                    # In the page cache, and not on its way while the cache is suspended.
                    (f"change {origin} 101 conv=notrunc", 0),
                    (f"blkdiscard -o 409600 -l 65536 {origin}", 0),
                    # In the sample, so trust that nothing was written is wrong here.
                    (f"change {origin} 3", 1),
                )
            )
        ),
        f"start 0; dd if={C} of=/dev/null bs=64k count=32 iflag=direct 2> /dev/null",
        f"exec 9> {origin}; dm suspend c; change {origin} 102 conv=notrunc",
        f'dm load c --table "$(dmsetup table c)"; dm resume c; exec 9>&-; same_as {origin}',
    )
    assert _again(left) == 512


def test_a_disk_that_does_not_count_writes_is_not_believed(guest: Guest) -> None:
    start = (
        f"dm create c --table '0 {ORIGIN} setcache /dev/slow /dev/fast 8 {WAYS} writethrough lru"
    )
    left = run_lines(
        guest,
        f"{start} 0'; fill {C}; echo 0 > /sys/block/slow/queue/iostats; dm remove c",
        "echo 1 > /sys/block/slow/queue/iostats",
        f"{start} 0'; say again; dmesg | grep setcache > /run/isoblk/kernel",
    )
    assert _again(left) == 0
    assert "the origin may have changed: clean blocks dropped" in left.read("kernel")


@pytest.mark.parametrize(
    ("trust", "change", "used"), [(0, "true", 0), (1, "true", 512), (1, "change /dev/slow 3", 0)]
)
def test_after_another_load_of_the_module_clean_blocks_need_trust(
    guest: Guest, trust: int, change: str, used: int
) -> None:
    start = (
        f"dm create c --table '0 {ORIGIN} setcache /dev/slow /dev/fast 8 {WAYS} writethrough lru"
        f" 2 trust {trust}'"
    )
    left = run_lines(
        guest,
        _SAME,
        f"{start}; fill {C}; dm remove c; rmmod dm_setcache; {change}",
        f"insmod /run/isoblk/modules/dm-setcache.ko; {start}; say again; same_as /dev/slow",
    )
    assert _again(left) == used


def test_another_disk_of_the_same_name_is_noticed(guest: Guest) -> None:
    # It has the identity, the contents of the sample, and has written as much.
    left = run_lines(
        guest,
        _SAME,
        f"make 'writethrough lru'; fill {C}; dm remove c; put slow power 0; put slow power 1",
        "dd if=/run/isoblk/data of=/dev/slow bs=64k oflag=direct 2> /dev/null; change /dev/slow",
        f"dd if={C} of=/dev/null 2> /dev/null || true",
        "make 'writethrough lru'; say again; same_as /dev/slow",
    )
    assert _again(left) == 0


@pytest.mark.parametrize(
    "line",
    [
        "/dev/slow /dev/fast 3 64 writeback lru",
        "/dev/slow /dev/fast 256 64 writeback lru",
        "/dev/slow /dev/fast 8 8 writeback lru",
        "/dev/slow /dev/fast 8 64 writebehind lru",
        "/dev/slow /dev/fast 8 64 writeback mru",
        "/dev/slow /dev/fast 8 64 writeback lru 2 set_high 101",
        "/dev/slow /dev/fast 8 64 writeback lru 1 set_high",
        "/dev/slow /dev/fast 8 64 writeback lru 2 set_height 1",
        "/dev/slow /dev/slow 8 64 writeback lru",
        "/dev/slow /dev/fast 128 128 writeback lru",
        "/dev/slow /dev/fast 8 64",
    ],
)
def test_a_wrong_line_is_refused(guest: Guest, line: str) -> None:
    run_lines(guest, f"fails dm create c --table '0 {ORIGIN} setcache {line}'")


def test_another_size_or_geometry_is_refused(guest: Guest) -> None:
    run_lines(
        guest,
        f"make 'writeback lru'; fill {C}; dm remove c",
        *(
            f"fails dm create c --table '0 {size} setcache /dev/slow /dev/fast {rest} readonly lru'"
            "; dm remove c 2> /dev/null || true"
            for size, rest in ((ORIGIN - 8, "8 64"), (ORIGIN, "4 64"), (ORIGIN, "8 32"))
        ),
        f"make 'writeback lru'; same {C}",
    )


@pytest.mark.parametrize("which", ["set", "dirty"])
def test_a_lower_mark_is_kept_without_another_write(guest: Guest, which: str) -> None:
    left = run_lines(
        guest,
        f"make 'writeback lru 4 set_high 100 set_low 100'; fill {C}; say before",
        f"tell {which}_low 5; tell {which}_high 10; sleep 20; say after",
    )
    before, after = (status_in(left, name) for name in ("before", "after"))
    assert int(before["dirty"]) == 512
    # Fewer, for neighbours are cleaned along.
    assert int(after["dirty"]) <= SLOTS // 10


def test_the_table_shows_changes_by_messages(guest: Guest) -> None:
    left = run_lines(
        guest,
        "make 'writeback lru 2 set_high 60'",
        "tell mode writethrough; tell policy random; tell age_ms 5000; fails tell age_ms -1",
        "fails tell mode fast; fails tell set_high 101; fails tell dance",
        "dm table c > /run/isoblk/table; dm suspend c",
        'dm load c --table "$(dmsetup table c)"; dm resume c; dm table c > /run/isoblk/again',
    )
    assert left.read("table").endswith(f" 8 {WAYS} writethrough random 4 set_high 60 age_ms 5000\n")
    assert left.read("again") == left.read("table")

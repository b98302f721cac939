# SPDX-License-Identifier: GPL-2.0-only
"""`isoblk cache` on dm-setcache itself: writes through a cache are on the disk once it is deleted,
and a mounted file system does not notice that a cache is created or deleted."""

import re

import pytest

from isoblk.plan.plan import RUN_DIR
from tests.lab.guest import PYTHON, ROOT, Guest, on_host

_MODULES = ("isoblk_vdisk", "dm-setcache")

DISKS = f"""
mount -t tmpfs tmpfs /tmp
cd /sys/kernel/config/isoblk_vdisk
mkdir disk0 disk1
echo memory > disk0/store; echo 64m > disk0/size; echo 1 > disk0/power
echo memory > disk1/store; echo 32m > disk1/size; echo 1 > disk1/power
cd /tmp
export DM_DISABLE_UDEV=1 PYTHONPATH={on_host(ROOT / "src")} PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
isoblk() {{ {PYTHON} -m isoblk "$@"; }}
cache() {{ isoblk cache "$@" >> /run/isoblk/said 2>&1; }}
dd if=/dev/urandom of=a bs=64k count=64 2> /dev/null
"""


@pytest.mark.long
def test_a_cache_is_made_changed_and_deleted(guest: Guest) -> None:
    left = guest.run(
        DISKS
        + """
! cache create --like flashcache fast /dev/disk0 /dev/disk0
cache create --like flashcache fast /dev/disk0 /dev/disk1
dd if=a of=/dev/mapper/fast bs=64k oflag=direct 2> /dev/null
dmsetup status fast > /run/isoblk/dirty
! cache create --like enhanceio other /dev/disk0 /dev/disk1
cache edit fast --mode thru --policy lru
dmsetup table fast > /run/isoblk/table
cache delete fast
echo 3 > /proc/sys/vm/drop_caches
cmp -n 4194304 a /dev/disk0
""",
        modules=_MODULES,
        memory_mib=1024,
    )
    said = left.read("said").splitlines()
    assert said[:2] == [
        "isoblk: /dev/disk0: origin and SSD are the same device; name another device",
        "made: /dev/mapper/fast, writeback, fifo; use it, not /dev/disk0",
    ]
    assert "/dev/disk0 is held by dm-0 (fast)" in said[2]
    assert said[-1] == "fast: removed; the origin has all written data"
    words = left.read("dirty").split()
    assert int(words[words.index("dirty") + 1]) > 0
    assert " writethrough lru " in left.read("table")


@pytest.mark.long
def test_the_unit_of_a_cache_creates_it_again_with_its_dirty_blocks(guest: Guest) -> None:
    left = guest.run(
        DISKS
        + """
mkdir -p /dev/disk/by-id
ln -s ../../disk0 /dev/disk/by-id/slow
ln -s ../../disk1 /dev/disk/by-id/fast
cache create --like flashcache fast /dev/disk0 /dev/disk1
cache edit fast --set set_high=80
dd if=a of=/dev/mapper/fast bs=64k oflag=direct 2> /dev/null
isoblk cache unit fast > unit
grep ExecStop= unit | cut -d= -f2- | sh
! cmp -s -n 4194304 a /dev/disk0
grep ExecStart=/sbin/dmsetup unit | cut -d= -f2- | sh
dmsetup mknodes
dmsetup table fast > /run/isoblk/table
cmp -n 4194304 a /dev/mapper/fast
cache delete fast
""",
        modules=_MODULES,
        memory_mib=1024,
    )
    assert left.read("table").endswith(
        " 8 512 writeback fifo 10 set_high 80 set_low 20 age_ms 900000 clean_ios 4 clean_set 2\n"
    )


@pytest.mark.long
def test_an_origin_gets_no_other_ssd_while_one_has_newer_blocks_of_it(guest: Guest) -> None:
    # The dirty blocks on the first SSD would later overwrite writes through the second.
    left = guest.run(
        DISKS
        + """
mkdir /sys/kernel/config/isoblk_vdisk/disk2; cd /sys/kernel/config/isoblk_vdisk/disk2
echo memory > store; echo 32m > size; echo 1 > power; cd /tmp
echo "0 131072 linear /dev/disk0 0" | dmsetup create vol --uuid LAB-vol
cache create --like flashcache fast /dev/mapper/vol /dev/disk1
dd if=a of=/dev/mapper/fast bs=64k oflag=direct 2> /dev/null
dmsetup remove fast
! cache create --like flashcache fast /dev/mapper/vol /dev/disk2
! cache attach --like flashcache vol /dev/disk2
cache create --like flashcache fast /dev/mapper/vol /dev/disk1
cache delete fast
cache create --like flashcache fast /dev/mapper/vol /dev/disk2
cmp -n 4194304 a /dev/mapper/fast
""",
        modules=_MODULES,
        memory_mib=1024,
    )
    said = left.read("said").splitlines()
    for line in said[1:3]:
        assert "the disk behind a cache that is not in use: /dev/disk1 has newer blocks" in line
    assert said[3].startswith("again: /dev/mapper/fast")


@pytest.mark.long
def test_a_cache_is_attached_to_a_mounted_device_and_deleted(guest: Guest) -> None:
    left = guest.run(
        DISKS
        + """
echo "0 131072 linear /dev/disk0 0" | dmsetup create vol
mkfs.ext4 -q -F /dev/mapper/vol
mkdir fs
mount /dev/mapper/vol fs
cp a fs/before
dmsetup table vol > /run/isoblk/former
mkdir /sys/kernel/config/nullb/nullb0; cd /sys/kernel/config/nullb/nullb0
echo 64 > size; echo 1 > memory_backed; echo 1 > power; cd /tmp
echo "0 131072 linear /dev/nullb0 0" | dmsetup create nameless
! cache attach --like enhanceio --mode wb nameless /dev/disk1
dmsetup table nameless > /run/isoblk/refused
cache attach --like enhanceio --mode wb --origin-id mine nameless /dev/disk1
cache delete nameless
dmsetup remove nameless
cache attach --like enhanceio --mode wb vol /dev/disk1
dmsetup table vol > /run/isoblk/table
cp a fs/during
sync
echo 3 > /proc/sys/vm/drop_caches
cmp a fs/before
cmp a fs/during
cache delete vol
dmsetup table > /run/isoblk/after
echo 3 > /proc/sys/vm/drop_caches
cmp a fs/before
cmp a fs/during
umount fs
fsck.ext4 -fn /dev/mapper/vol
""",
        modules=(*_MODULES, "null_blk"),
        memory_mib=1024,
    )
    assert " setcache " in left.read("table")
    assert re.search(
        r" origin_id wwid:naa\.3[0-9a-f]+/start:0/dm:[0-9a-f]{16}\n$", left.read("table")
    )
    # An origin that could be mistaken for another disk is refused, and nothing is left of it.
    assert left.read("said").splitlines()[0] == (
        "isoblk: nameless: the origin has no identity, so dirty blocks could be written to another"
        " disk; name it with --origin-id WORD, or add --mode writethrough"
    )
    assert left.read("refused").startswith("0 131072 linear ")
    assert left.read("after") == f"vol: {left.read('former')}"


@pytest.mark.long
def test_a_bad_sector_of_the_ssd_is_retired_shown_and_revived(guest: Guest) -> None:
    left = guest.run(
        DISKS
        + """
cache create --like enhanceio --mode wb --block 4k fast /dev/disk0 /dev/disk1
echo '1048576 8192 write' > /sys/kernel/config/isoblk_vdisk/disk1/fault/errors
for i in 0 1 2 3 4 5 6 7; do
  dd if=a of=/dev/mapper/fast bs=64k seek=$((64 * i)) oflag=direct 2> /dev/null
done
cache info fast
dmsetup remove fast
cache check --repair /dev/disk1
echo none > /sys/kernel/config/isoblk_vdisk/disk1/fault/errors
cache check --repair /dev/disk1
cache check /dev/disk1
cache create --like enhanceio --mode wb fast /dev/disk0 /dev/disk1
for i in 0 1 2 3 4 5 6 7; do
  dd if=/dev/mapper/fast bs=64k skip=$((64 * i)) count=64 iflag=direct 2> /dev/null | cmp - a
done
""",
        modules=_MODULES,
        memory_mib=1024,
    )
    said = left.read("said").splitlines()
    assert any("retired" in line and line.split()[1] == "2" for line in said), said
    assert sum("2 slots, whose places are bad" in line for line in said) == 1
    assert "revived: 2 slots can be written and read again" in said
    assert said.count("/dev/disk1: sound") == 3


@pytest.mark.long
def test_clean_blocks_of_an_earlier_boot_are_used_only_on_the_users_word(guest: Guest) -> None:
    """Loading the module again stands for the boot."""
    left = guest.run(
        DISKS
        + f"""
try() {{
  cache create --like enhanceio $* fast /dev/disk0 /dev/disk1
  dmsetup status fast >> /run/isoblk/used
  dd if=/dev/mapper/fast of=/dev/null bs=64k count=64 iflag=direct 2> /dev/null
  dmsetup remove fast
}}
boot() {{ rmmod dm-setcache; insmod {RUN_DIR}/modules/dm-setcache.ko; }}
try; try
boot; try
boot; try --trust
""",
        modules=_MODULES,
        memory_mib=1024,
    )
    used = [
        int(line.split()[line.split().index("used") + 1]) for line in left.read("used").splitlines()
    ]
    assert used == [0, 1024, 0, 1024]

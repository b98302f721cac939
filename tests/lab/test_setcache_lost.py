# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache's SSD is lost, and comes back: as it was, empty, or as it was long ago."""

import pytest

from tests.guests.setcache_guest import MODES, VDISK
from tests.lab.guest import Guest
from tests.lab.test_cache_cli import DISKS
from tests.lab.test_setcache_fs import script


@pytest.mark.parametrize("mode", MODES)
def test_the_ssd_lost_and_returned(guest: Guest, mode: str) -> None:
    script(guest, "setcache_lost", "blocks", mode)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fs", "mode"), [("ext4", "writethrough"), ("xfs", "writearound"), ("ext4", "readonly")]
)
def test_files_do_not_notice_that_the_ssd_is_lost(guest: Guest, fs: str, mode: str) -> None:
    left = script(guest, "setcache_lost", "files", fs, mode)
    states = left.read("said").split("states ")[1].split()[:6]
    assert states == ["lost"] * 6
    log = left.read("kernel")
    assert "I/O error on the SSD" in log
    assert "EXT4-fs error" not in log
    assert "XFS (dm-0): log I/O error" not in log


@pytest.mark.long
def test_a_cache_without_its_ssd_is_deleted_under_a_mounted_file_system(guest: Guest) -> None:
    left = guest.run(
        f"""{DISKS}\
echo "0 131072 linear /dev/disk0 0" | dmsetup create vol
mkfs.ext4 -q -F /dev/mapper/vol
mkdir fs; mount /dev/mapper/vol fs
cache attach --like enhanceio --mode wt vol /dev/disk1
cp a fs/before; sync
echo lost > {VDISK}/disk1/fault/state
cp a fs/during; sync
cache info vol
cache delete vol || echo "status $?" >> /run/isoblk/said
dmsetup table > /run/isoblk/after
echo 3 > /proc/sys/vm/drop_caches
cmp a fs/before; cmp a fs/during
umount fs
fsck.ext4 -fn /dev/mapper/vol
""",
        modules=("isoblk_vdisk", "dm-setcache"),
        memory_mib=1024,
    )
    said = left.read("said")
    assert "the SSD is lost" in said
    # It is gone; but the SSD could not be told.
    assert "/dev/disk1: not erased: cannot write to byte 0: No such device" in said
    assert left.read("after").startswith("vol: 0 131072 linear ")


@pytest.mark.long
def test_a_cache_whose_dirty_blocks_are_lost_is_removed_and_its_disk_checked(guest: Guest) -> None:
    # As docs/guides/cache.md has it: a lost SSD does not return, and some blocks were dirty.
    left = guest.run(
        f"""{DISKS}\
mkfs.ext4 -q -F /dev/disk0
mkdir fs
cache create --like setcache --mode writeback fast /dev/disk0 /dev/disk1
mount /dev/mapper/fast fs
cp a fs/before; sync
echo lost > {VDISK}/disk1/fault/state
cp a fs/during 2> /dev/null || true
sync fs || true
cache info fast
cache delete fast && exit 1
echo "status $?" >> /run/isoblk/said
umount fs
dmsetup remove fast
[ ! -e /dev/mapper/fast ]
fsck.ext4 -fy /dev/disk0 > /run/isoblk/fsck && status=0 || status=$?
[ $status -lt 4 ]
mount /dev/disk0 fs
ls fs > /run/isoblk/after
umount fs
""",
        modules=("isoblk_vdisk", "dm-setcache"),
        memory_mib=1024,
    )
    said = left.read("said")
    assert "the SSD is lost" in said
    assert "status 2" in said
    assert "lost+found" in left.read("after")

# SPDX-License-Identifier: GPL-2.0-only
"""One disk by two names, and two disks by one: no block of one disk gets onto another, and none is
overwritten by an older one."""

import pytest

from tests.lab.guest import PYTHON, ROOT, Guest, on_host

MODULES = ("isoblk_vdisk", "dm-setcache")

SHELL = f"""
mount -t tmpfs tmpfs /tmp
cd /tmp
export PATH=$PATH:/sbin:/usr/sbin DM_DISABLE_UDEV=1 PYTHONPATH={on_host(ROOT / "src")}
export PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
cache() {{ r=0; {PYTHON} -m isoblk cache "$@" >> /run/isoblk/said 2>&1 || r=$?
  echo "= $r" >> /run/isoblk/said; }}
disk() {{ mkdir /sys/kernel/config/isoblk_vdisk/$1; cd /sys/kernel/config/isoblk_vdisk/$1
  echo memory > store; echo $2 > size; echo 1 > power; cd /tmp; }}
linear() {{ echo "0 $(blockdev --getsz $2) linear $2 0" | dmsetup create $1; }}
new() {{ dd if=/dev/urandom of=$1 bs=64k count=64 2> /dev/null; }}
put() {{ dd if=$1 of=$2 bs=64k oflag=direct conv=notrunc 2> /dev/null; }}
has() {{ echo 3 > /proc/sys/vm/drop_caches; cmp -n 4194304 $1 $2; }}
disk slow 64m; disk fast 32m; disk quick 32m
"""


def _told(left: str) -> list[tuple[str, int]]:
    """Of each command the last line that it said, and its status."""
    lines = left.splitlines()
    return [
        (lines[at - 1], int(line[2:])) for at, line in enumerate(lines) if line.startswith("= ")
    ]


@pytest.mark.long
def test_an_origin_by_two_names_gets_one_cache(guest: Guest) -> None:
    left = guest.run(
        SHELL
        + """
linear one /dev/slow; linear two /dev/slow
new a; put a /dev/mapper/two
cache create --like flashcache c1 /dev/mapper/one /dev/fast
# Only when no other device stands on the same disk any more.
dmsetup remove two
cache create --like flashcache c1 /dev/mapper/one /dev/fast
new b; put b /dev/mapper/c1
linear two /dev/slow
cache create --like flashcache c2 /dev/mapper/two /dev/quick
cache attach --like flashcache two /dev/quick
# And while the first one is not in use.
dmsetup remove c1; dmsetup remove one
cache create --like flashcache c2 /dev/mapper/two /dev/quick
cache create --like flashcache c2 /dev/slow /dev/quick
dmsetup remove two
cache create --like flashcache c2 /dev/slow /dev/quick
linear one /dev/slow
cache create --like flashcache c1 /dev/mapper/one /dev/fast
cache delete c1
has b /dev/slow
""",
        modules=MODULES,
        memory_mib=1024,
    )
    told = _told(left.read("said"))
    assert [status for _, status in told] == [2, 0, 2, 2, 2, 2, 2, 0, 0], told
    assert "shares sectors with dm-" in told[0][0]
    assert "shares sectors with dm-" in told[2][0]
    assert "shares sectors with dm-" in told[3][0]


def test_the_ssd_of_a_live_cache_is_not_wiped_by_another_name(guest: Guest) -> None:
    left = guest.run(
        SHELL
        + """
disk other 64m
linear one /dev/fast
cache create --like flashcache c1 /dev/slow /dev/mapper/one
new a; put a /dev/mapper/c1
linear two /dev/fast
cache create --like flashcache --wipe /dev/mapper/two c2 /dev/other /dev/mapper/two
cache check --repair /dev/mapper/two
cache attach --like flashcache --wipe /dev/mapper/two one /dev/mapper/two
loop=$(losetup -f --show /dev/fast)
cache create --like flashcache --wipe $loop c2 /dev/other $loop
losetup -d $loop; dmsetup remove two
cache delete c1
has a /dev/slow
""",
        modules=MODULES,
        memory_mib=1024,
    )
    told = _told(left.read("said"))
    assert [status for _, status in told] == [0, 2, 2, 2, 2, 0], told
    for line, _ in told[1:4]:
        assert "shares sectors with dm-" in line


@pytest.mark.long
def test_an_origin_and_its_ssd_are_two_disks_by_any_name(guest: Guest) -> None:
    left = guest.run(
        SHELL
        + """
linear one /dev/slow; linear two /dev/slow
cache create --like enhanceio c /dev/mapper/one /dev/mapper/two
dmsetup remove two
cache attach --like enhanceio one /dev/slow
loop=$(losetup -f --show /dev/mapper/one)
cache attach --like enhanceio one $loop
""",
        modules=MODULES,
        memory_mib=1024,
    )
    assert [status for _, status in _told(left.read("said"))] == [2, 2, 2]


# An MBR without a signature. The first partition then is 00000000-01, on any disk.
PARTED = r"""
parted() {
  printf '\0\0\203\0\0\0\0\010\0\0\0\360\001\0' | dd of=$1 bs=1 seek=448 conv=notrunc
  printf '\125\252' | dd of=$1 bs=1 seek=510 conv=notrunc
} 2> /dev/null
"""


def test_a_copy_of_a_disk_does_not_get_its_blocks(guest: Guest) -> None:
    """By the PARTUUID: of loop devices the kernel knows nothing else."""
    left = guest.run(
        SHELL
        + PARTED
        + """
truncate -s 64m disk; parted disk
l=$(losetup -P -f --show disk)
# As udev has it.
mkdir -p /dev/disk/by-partuuid; ln -s ../..${l#/dev}p1 /dev/disk/by-partuuid/00000000-01
cache create --like flashcache c ${l}p1 /dev/fast
new a; put a /dev/mapper/c
dmsetup remove c
losetup -d $l
cp disk copy; new b; dd if=b of=copy bs=64k seek=16 conv=notrunc 2> /dev/null; cp copy before
l=$(losetup -P -f --show copy)
cache create --like flashcache c ${l}p1 /dev/fast
! dmsetup info c > /dev/null 2>&1
losetup -d $l
cmp copy before
l=$(losetup -P -f --show disk)
cache create --like flashcache c ${l}p1 /dev/fast
cache delete c
has a ${l}p1
""",
        modules=MODULES,
        memory_mib=1024,
    )
    told = _told(left.read("said"))
    assert [status for _, status in told] == [0, 2, 0, 0], told
    assert "is the cache of id:loop:" in told[1][0]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["volume", "crypt"])
def test_a_copy_of_a_volume_does_not_get_its_blocks(guest: Guest, kind: str) -> None:
    """A copy has the UUID that LVM, or LUKS, has on the disk."""
    uuid = {"volume": "LVM-abcdef", "crypt": "CRYPT-LUKS2-abcdef-v"}[kind]
    left = guest.run(
        SHELL
        + f"""
disk copy 64m
volume() {{ echo "0 65536 linear $1 2048" | dmsetup create v --uuid {uuid}; }}
volume /dev/slow
cache create --like flashcache c /dev/mapper/v /dev/fast
new a; put a /dev/mapper/c
dmsetup remove c; dmsetup remove v
new b; put b /dev/copy
volume /dev/copy
cache create --like flashcache c /dev/mapper/v /dev/fast
cache attach --like flashcache v /dev/fast
dmsetup remove v
has b /dev/copy
volume /dev/slow
cache attach --like flashcache v /dev/fast
cache delete v
has a /dev/mapper/v
""",
        modules=MODULES,
        memory_mib=1024,
    )
    told = _told(left.read("said"))
    assert [status for _, status in told] == [0, 2, 2, 0, 0], told
    assert "is the cache of id:wwid:naa." in told[1][0]


@pytest.mark.long
def test_a_used_ssd_becomes_a_cache_when_it_is_named(guest: Guest) -> None:
    left = guest.run(
        SHELL
        + """
head -c 33554432 /dev/urandom > /dev/fast; sync
cache check /dev/fast
cache create --like flashcache c /dev/slow /dev/fast
cache create --like flashcache --wipe /dev/fast c /dev/slow /dev/fast
cache delete c
linear v /dev/slow
head -c 33554432 /dev/urandom > /dev/quick; sync
cache attach --like flashcache v /dev/quick
cache attach --like flashcache --wipe /dev/quick v /dev/quick
cache delete v
""",
        modules=MODULES,
        memory_mib=1024,
    )
    told = _told(left.read("said"))
    assert [status for _, status in told] == [2, 2, 0, 0, 2, 0, 0], told
    assert "--wipe /dev/fast" in told[0][0] and told[1][0].endswith("--wipe /dev/fast")


@pytest.mark.long
def test_a_unit_of_a_volume_does_not_bring_the_cache_back_on_a_copy(guest: Guest) -> None:
    left = guest.run(
        SHELL
        + """
disk copy 64m
linear v /dev/slow
cache create --like flashcache c /dev/mapper/v /dev/fast
mkdir -p /dev/disk/by-id; ln -s ../../fast /dev/disk/by-id/nvme-fast
ln -s ../../dm-0 /dev/disk/by-id/dm-name-v
new a; put a /dev/mapper/c
"""
        + f"{PYTHON} -m isoblk cache unit c > unit\n"
        + """
boot() { grep 'ExecStart=.*origin\\|ExecStart=/sbin/dmsetup' unit | cut -d= -f2- | sh -e; }
cp unit /run/isoblk/unit
dmsetup remove c; dmsetup remove v
linear v /dev/copy
! boot >> /run/isoblk/said 2>&1
! dmsetup info c > /dev/null 2>&1
dmsetup remove v; linear v /dev/slow
boot; dmsetup mknodes
has a /dev/mapper/c
""",
        modules=MODULES,
        memory_mib=1024,
    )
    assert "name the device with that identity" in left.read("said")

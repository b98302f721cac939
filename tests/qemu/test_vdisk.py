# SPDX-License-Identifier: GPL-2.0-only
"""The virtual disk keeps what it is given on four processors, and loses at a power cut only what
it may. The debug kernel sees bad memory accesses, locks and sleeps."""

import errno
import shutil

import pytest

from isoblk.run.tier import QEMU
from tests.lab.load import (
    START,
    STATS,
    VDISK,
    WAIT,
    Load,
    numbers,
    results,
    run,
    save,
    script,
    tenant,
    vdisk,
)
from tests.qemu.guest import Guest

KEEPS: Load = {"store": "memory", "size": "96m", "write_cache": 1, "hw_queues": QEMU.cpus}
STATE = f"{VDISK}/disk0/fault/state"
MIB = 1 << 20


def test_ext4_is_whole_after_use_and_after_a_power_cut(stress_guest: Guest) -> None:
    left = stress_guest.run(
        script(
            vdisk(**KEEPS),
            "PATH=$PATH:/sbin:/usr/sbin; mkfs.ext4 -q /dev/disk0; mkdir /run/m",
            "mount -t ext4 -o discard /dev/disk0 /run/m; mkdir /run/m/d",
            "for i in 1 2 3 4; do (for j in 1 2 3; do"
            " head -c $((i * j * 200000)) /dev/urandom > /run/m/d/$i.$j; done) & done; wait",
            "rm /run/m/d/2.2 /run/m/d/3.1; sync; sha256sum /run/m/d/* > /run/sums",
            "umount /run/m; fsck.ext4 -fn /dev/disk0 > /run/isoblk/fsck",
            "echo 3 > /proc/sys/vm/drop_caches; mount -t ext4 /dev/disk0 /run/m",
            "sha256sum -c /run/sums > /run/isoblk/sums",
            "for i in 1 2 3 4; do head -c $((i * 900000)) /dev/urandom > /run/m/new$i & done; wait",
            f"sync & sleep 0.05; echo cut > {STATE}; wait; umount /run/m; echo ok > {STATE}",
            "mount -t ext4 /dev/disk0 /run/m; sha256sum -c /run/sums >> /run/isoblk/sums",
            "umount /run/m; fsck.ext4 -fn /dev/disk0 >> /run/isoblk/fsck",
            f"cat {STATS}/disk0/stats > /run/isoblk/stats",
        ),
        memory_mib=1024,
    )
    assert left.read("sums").count(": OK\n") == 2 * 10
    assert numbers(left.read("stats"))["flush_requests"] > 0


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_verifies_its_writes(stress_guest: Guest) -> None:
    left = stress_guest.run(
        script(
            vdisk(**KEEPS),
            "fio --filename=/dev/disk0 --direct=1 --ioengine=libaio --verify=crc32c"
            " --verify_fatal=1 --iodepth=16 --minimal --name=a --rw=randwrite --bsrange=512-16k"
            " --size=2m --numjobs=4 --offset_increment=4m --fsync=32 > /run/isoblk/said",
        ),
        memory_mib=1024,
    )
    # A line a job; fio also warns that jobs share a disk, which here are apart.
    assert sum(line.startswith("3;") for line in left.read("said").splitlines()) == 4


def test_contents_survive_every_processor_at_once(debug_guest: Guest) -> None:
    left = debug_guest.run(
        script(
            vdisk(**KEEPS),
            *(
                tenant(
                    f"t{i}", rw="randrw", bssplit="512/30:4k/40:20k/30", verify=1, iodepth=16,
                    offset=i * 2 * MIB, size="2m", number_ios=500, fsync=40, fua=i % 2,
                )
                for i in range(QEMU.cpus)
            ),
            # Overlapping writes, without verification.
            tenant("w", rw="randwrite", bssplit="512/50:64k/50", offset="64m", numjobs=4,
                   iodepth=8, number_ios=200),
            tenant("d", rw="randtrim", bssplit="512/50:64k/50", offset="64m", number_ios=200),
            run("results"),
            f"cat {STATS}/disk0/stats > /run/isoblk/stats",
        ),
        memory_mib=1024,
    )  # fmt: skip
    for name, done in results(left, "results").items():
        assert done.error == 0
        for op in done.ops.values():
            assert (op.errors, op.verify_errors) == (0, 0), name
    assert numbers(left.read("stats"))["failed_requests"] == 0


def test_cuts_under_load_end_every_request_and_lose_no_fua(debug_guest: Guest) -> None:
    cuts = 3
    left = debug_guest.run(
        script(
            vdisk(**KEEPS),
            tenant("a", rw="randrw", bssplit="512/50:16k/50", iodepth=16, numjobs=4, fsync=20,
                   size="32m", runtime=60),
            tenant("b", rw="randtrim", bs="32k", iodepth=4, size="32m", runtime=60),
            tenant("f", rw="write", bs="4k", fua=1, verify=1, offset="64m", size="8m",
                   iodepth=1, runtime=60),
            *(
                line
                for i in range(cuts)
                for line in (
                    "blkdiscard -o 67108864 -l 8388608 /dev/disk0",
                    "blockdev --flushbufs /dev/disk0",
                    START,
                    f"sleep 1.{i}; echo cut > {STATE}; {WAIT}; echo ok > {STATE}",
                    save(f"r{i}"),
                    f"dd if=/dev/disk0 of=/run/isoblk/i{i} bs=1M skip=64 count=8 iflag=direct"
                    " 2> /dev/null",
                )
            ),
            f"cat {STATS}/disk0/stats > /run/isoblk/stats",
        ),
        memory_mib=1024,
    )  # fmt: skip
    for i in range(cuts):
        found = results(left, f"r{i}")
        assert all(done.error == -errno.ENODEV for done in found.values()), i
        ended = found["f"].ops["write"].ios
        image = (left.dir / f"i{i}").read_bytes()
        assert ended > 0
        written = min(ended, len(image) // 4096)
        assert all(any(image[b * 4096 : (b + 1) * 4096]) for b in range(written)), i
    stats = numbers(left.read("stats"))
    assert stats["in_service"] == stats["waiting"] == 0
    assert stats["cut_lost"] > 0
    assert stats["cut_kept"] > 0

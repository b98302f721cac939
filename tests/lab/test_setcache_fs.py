# SPDX-License-Identifier: GPL-2.0-only
"""File systems on dm-setcache, and fio's verification: through every mode, while the cache is
changed, and after it has gone."""

import json

import pytest

from tests.guests.setcache_guest import balance, no_errors
from tests.lab.guest import BARE_PYTHON, ROOT, Guest, Left, on_host

MODULES = ("isoblk_vdisk", "blkload", "null_blk", "dm-setcache")


def script(guest: Guest, name: str, *words: object, memory_mib: int = 1024) -> Left:
    """Run a program of tests/guests in the guest; fails with its output."""
    command = f"{BARE_PYTHON} -m tests.guests.{name} {' '.join(map(str, words))}"
    left = guest.run(
        f"export PATH=$PATH:/sbin:/usr/sbin; cd {on_host(ROOT)}\n"
        f"{command} > /run/isoblk/said 2>&1 || true; dmesg > /run/isoblk/kernel",
        modules=MODULES,
        memory_mib=memory_mib,
    )
    said = left.read("said")
    assert said.endswith("done\n"), said[-3000:] + left.read("kernel")[-1500:]
    return left


def statuses(left: Left) -> list[dict[str, str]]:
    lines = left.read("said").splitlines()
    return [json.loads(line[7:]) for line in lines if line.startswith("status ")]


@pytest.mark.parametrize(
    ("fs", "mode", "policy", "block", "ways", "ssd"),
    [
        ("ext4", "writeback", "lru", 8, 512, "5m"),
        ("ext4", "writethrough", "fifo", 1, 16, "2m"),
        ("ext4", "writearound", "random", 128, 16, "5m"),
        ("ext4", "readonly", "lru", 1, 4096, "5m"),
        ("ext4", "writeonly", "fifo", 128, 512, "68m"),
        ("xfs", "writeback", "fifo", 128, 16, "5m"),
        ("xfs", "writethrough", "lru", 8, 512, "5m"),
        ("xfs", "writearound", "lru", 1, 512, "2m"),
        ("xfs", "readonly", "random", 8, 4096, "20m"),
        ("xfs", "writeonly", "random", 1, 16, "2m"),
    ],
)
def test_files_through_every_change(
    guest: Guest, fs: str, mode: str, policy: str, block: int, ways: int, ssd: str
) -> None:
    left = script(guest, "setcache_files", fs, mode, policy, block, ways, ssd, block + ways)
    seen = statuses(left)
    for status in seen:
        no_errors(status)
        balance(status)
    # The first is of the mode that the test is named after.
    assert (int(seen[0]["dirtied"]) > 0) == (mode in ("writeback", "writeonly"))
    assert (int(seen[0]["inserted"]) > 0) == (mode != "writeonly")


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "policy", "block", "ways", "ssd"),
    [
        ("writeback", "lru", 8, 128, "2m"),
        ("writethrough", "random", 1, 16, "1m"),
        ("writeonly", "fifo", 128, 16, "2m"),
    ],
)
def test_fio_verifies_its_writes_through_every_mode(
    guest: Guest, mode: str, policy: str, block: int, ways: int, ssd: str
) -> None:
    left = script(guest, "setcache_fio", mode, policy, block, ways, ssd)
    seen = statuses(left)
    for status in seen:
        no_errors(status)
        balance(status)
    written = 2 * (512 + 1024 + 1008)
    assert int(seen[0]["write"]) == int(seen[0]["read"]) == written
    assert sum(int(status["read"]) for status in seen[1:]) == written
    assert len(seen) > 3
    changes = int(left.read("said").splitlines()[-2].split()[1])
    assert changes > 10


@pytest.mark.long
@pytest.mark.parametrize(("fs", "cuts"), [("ext4", 12), ("xfs", 6)])
def test_fsynced_files_survive_power_cuts(guest: Guest, fs: str, cuts: int) -> None:
    left = script(guest, "setcache_cuts", fs, 1, cuts)
    words = left.read("said").split()
    files, syncs, dirty = (int(words[i]) for i in (1, 3, 5))
    assert (files, syncs) > (10 * cuts, 20 * cuts)
    # It was the cache that had the newest, not the origin.
    assert dirty > 100
    log = left.read("kernel")
    assert log.count("recovery complete" if fs == "ext4" else "Ending recovery") >= cuts

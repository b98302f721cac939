# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache's SSD is lost, and comes back: as it was, empty, or as it was long ago."""

import pytest

from tests.lab.guest import Guest
from tests.lab.setcache_guest import MODES
from tests.lab.test_setcache_fs import script


@pytest.mark.parametrize("mode", MODES)
def test_the_ssd_lost_and_returned(guest: Guest, mode: str) -> None:
    script(guest, "setcache_lost", "blocks", mode)


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

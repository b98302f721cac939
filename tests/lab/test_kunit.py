# SPDX-License-Identifier: GPL-2.0-only
"""The modules' own tests pass, on both kernels and under the sanitizers."""

import re

import pytest

from tests.lab.guest import Guest

# With the modules they lean on.
SUITES: dict[str, tuple[str, ...]] = {
    "blkload_test": (),
    "isoblk_vdisk_test": (),
    "vdisk_flash_test": (),
    "vdisk_hdd_test": (),
    "predict_test": (),
    "layout_test": (),
    "share_test": (),
    "kyber_fair_test": ("isoblk_share",),
    "cfq_test": ("isoblk_share",),
    "isoblk_test": (),
    "isoblk_window_test": (),
    "isoblk_floor_test": (),
    "budget_test": ("isoblk_share",),
    "setcache_test": (),
}


@pytest.mark.parametrize("suite", SUITES)
def test_on_both_kernels(any_guest: Guest, suite: str) -> None:
    passes(any_guest, suite)


@pytest.mark.parametrize("suite", SUITES)
def test_under_the_sanitizers(debug_guest: Guest, suite: str) -> None:
    passes(debug_guest, suite)


def passes(guest: Guest, suite: str) -> None:
    console = guest.run("true", modules=("kunit", *SUITES[suite], suite)).console
    totals = re.findall(r"# Totals: pass:(\d+) fail:(\d+) skip:(\d+) total:(\d+)", console)
    assert totals, console
    assert all(int(failed) == 0 for _, failed, _, _ in totals), console
    assert sum(int(passed) for passed, _, _, _ in totals) > 0
    assert not re.search(r"^\s*not ok", console, re.MULTILINE), console

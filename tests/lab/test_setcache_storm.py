# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache under load, while everything changes, memory is short, or disks fail: no read returns
wrong data, and no request fails that must not. Each seed is another storm."""

import pytest

from tests.lab.guest import Guest, Left
from tests.lab.storm import (
    MODULES,
    REAL,
    all_fua,
    assert_changed,
    assert_starved,
    assert_survived,
    loads,
    storm,
    under_load,
)


def _run(guest: Guest, task: str, seed: int, *, seconds: int = 5, mode: str = "writeback") -> Left:
    # With an SSD that is lost and returns, only flushed writes must still be there.
    before = all_fua() if task == "both" else ""
    return guest.run(
        storm(
            REAL,
            f"make '{mode} lru'",
            loads(randseed=seed),
            before,
            under_load(task, seconds, seed),
            "settle",
        ),
        modules=MODULES,
    )


def test_all_that_may_change_changes(any_guest: Guest) -> None:
    assert_changed(_run(any_guest, "changes", 1))


def test_short_memory_causes_no_error(guest: Guest) -> None:
    assert_starved(_run(guest, "shortage", 1), 10_000)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_failing_ssd_causes_no_error_if_no_block_is_dirty(guest: Guest, seed: int) -> None:
    assert_survived(_run(guest, "through", seed, mode="writethrough"), "through")


@pytest.mark.parametrize("seed", [1, 2])
def test_disks_that_fail_and_return_never_show_wrong_data(any_guest: Guest, seed: int) -> None:
    assert_survived(_run(any_guest, "both", seed), "both")


@pytest.mark.parametrize("task", ["changes", "both"])
def test_under_the_sanitizers(debug_guest: Guest, task: str) -> None:
    left = _run(debug_guest, task, 3, seconds=2)
    if task == "changes":
        assert_changed(left)
    else:
        assert_survived(left, task)

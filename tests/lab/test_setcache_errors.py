# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache when I/O fails, memory is short, or a line is wrong. A request that must fail fails,
no other request does, and no read returns wrong data."""

import pytest

from tests.guests.setcache_guest import DIRTYING, MODES, no_errors
from tests.lab.guest import Guest
from tests.lab.load import results
from tests.lab.test_setcache_fs import script, statuses


@pytest.mark.parametrize("mode", MODES)
def test_only_requests_to_a_bad_sector_see_an_error(guest: Guest, mode: str) -> None:
    left = script(guest, "setcache_errors", mode)
    for line in left.read("said").splitlines()[:4]:
        disk, _, *words = line.split()
        found = {name: int(n) for name, n in zip(words[::2], words[1::2], strict=True)}
        # It met the fault, or nothing was proved.
        assert found["ssd_errors" if disk == "fast" else "origin_errors"] + found["clean_errors"]
        assert found["lost_errors"] == 0


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_bad_sectors_under_load_cause_no_error(any_guest: Guest, count: int) -> None:
    left = script(any_guest, "setcache_bad", count)
    (status,) = statuses(left)
    assert (status["state"], status["lost_errors"], status["origin_errors"]) == ("ok", "0", "0")
    assert int(status["retired"]) >= min(count, 8)
    # Each is met once or twice, not again and again.
    assert int(status["ssd_errors"]) < 40 * int(status["retired"])
    done = results(left, "results")
    ops = [op for tenant in done.values() for op in tenant.ops.values()]
    assert sum(op.ios for op in ops) > 5000
    assert sum(op.errors + op.verify_errors for op in ops) == 0


@pytest.mark.parametrize("mode", MODES)
def test_storms_of_io_errors(guest: Guest, mode: str) -> None:
    for disk in ("fast", "slow"):
        left = script(guest, "setcache_faulty", "io", mode, disk)
        done = results(left, "results")
        ops = [op for tenant in done.values() for op in tenant.ops.values()]
        assert sum(op.ios for op in ops) > 5000
        assert sum(op.verify_errors for op in ops) == 0
        errors = sum(op.errors for op in ops)
        # Blocks are dirty in these modes alone, so in others no request sees an SSD's error.
        assert (errors > 0) == (disk == "slow" or mode in DIRTYING)


@pytest.mark.parametrize("mode", MODES)
def test_short_of_memory_all_goes_on(guest: Guest, mode: str) -> None:
    left = script(guest, "setcache_faulty", "memory", mode)
    done = results(left, "results")
    ops = [op for tenant in done.values() for op in tenant.ops.values()]
    assert sum(op.ios for op in ops) > 5000
    assert sum(op.errors + op.verify_errors for op in ops) == 0
    for status in statuses(left):
        no_errors(status)


def _allocations(said: str) -> dict[str, tuple[int, int]]:
    """Failures by name: the number of allocations, and of failures that the ioctl returned."""
    lines = [line.split() for line in said.splitlines() if " allocations " in line]
    return {name: (int(count), int(failed)) for name, _, count, _, failed in lines}


def test_each_allocation_may_fail(guest: Guest) -> None:
    said = script(guest, "setcache_nth", 3).read("said")
    found = _allocations(said)
    count, failed = found["load"]
    assert count > failed > 100
    # There is memory for what must go on.
    assert found["start"][1] == found["stop"][1] == 0
    assert min(found["start"][0], found["stop"][0]) > 10
    assert found["message-mode"][1] > 0
    # Pages in KiB, after each round; a page left behind by each failure were 800 more.
    free = [int(word) for word in said.split("free ")[1].split()[:3]]
    assert free[2] > free[1] - 400


def test_failed_allocations_leave_nothing_behind(debug_guest: Guest) -> None:
    said = script(debug_guest, "setcache_nth", 1, memory_mib=256).read("said")
    assert _allocations(said)["load"][1] > 100
    assert "leaks 0" in said, said


def test_a_refusal_gives_its_reason_and_changes_nothing(guest: Guest) -> None:
    script(guest, "setcache_refused")

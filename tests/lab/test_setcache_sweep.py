# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache under every fault of its disks: see setcache_sweep.py, _fua.py and _reorder.py of
tests/guests.

Here the life of each mode that comes first: `make test-all`. `make sweep` tries LIVES of them, and
each write.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guests.setcache_model import MODES
from tests.kernels import On
from tests.lab.guest import Guest, program

pytestmark = pytest.mark.long

MODULES = ("isoblk_vdisk", "blkload", "dm-setcache")
LIVES = int(os.environ.get("SWEEP_LIVES", "0"))
FAULTS = ("cut-all", "cut", "lost", "error", "errors")


@pytest.fixture(params=[On.DEFAULT, On.NEWEST] if LIVES else [On.DEFAULT])
def guest(request: pytest.FixtureRequest, tmp_path: Path) -> Guest:
    """Of the whole sweep, each of the two kernels."""
    return Guest(request.getfixturevalue(f"{request.param}_bench"), tmp_path)


def _run(guest: Guest, name: str, specs: list[str]) -> dict[str, int]:
    """The counts of each."""
    left = guest.run(program(name, *specs, to="/run/isoblk/said"), modules=MODULES)
    said = left.read("said")
    counts = {}
    for line in said.splitlines():
        spec, unit, *count = line.split()
        assert unit in ("lives", "disks"), said
        counts[spec] = int(count[0])
    assert list(counts) == specs, said + left.console[-2000:]
    return counts


def _faults(mode: str, life: int, step: int) -> list[str]:
    return [f"{mode}:{disk}:{what}:{life}:1:{step}" for disk in ("slow", "fast") for what in FAULTS]


@pytest.mark.parametrize("life", range(max(1, LIVES)))
@pytest.mark.parametrize("mode", MODES)
def test_a_fault_at_any_write_costs_nothing_that_was_flushed(
    guest: Guest, mode: str, life: int, record_property: Callable[[str, object], None]
) -> None:
    step = 1 if LIVES or mode in ("writeback", "writethrough") else 3
    counts = _run(guest, "setcache_sweep", _faults(mode, life, step))
    record_property("lives", sum(counts.values()))
    assert min(counts.values()) * step > 20, counts


def test_a_fault_at_any_write_where_places_are_bad_already(any_guest: Guest) -> None:
    # Records that were moved, and slots that were retired, through each fault.
    counts = _run(any_guest, "setcache_sweep", _faults("writeback", 6, 5))
    assert min(counts.values()) > 4, counts


def test_a_completed_fua_write_survives_without_a_flush(
    guest: Guest, record_property: Callable[[str, object], None]
) -> None:
    specs = [f"{mode}:{disk}" for mode in MODES for disk in ("slow", "fast")]
    lives = sum(_run(guest, "setcache_fua", specs).values())
    record_property("lives", lives)
    assert lives > 100


@pytest.mark.parametrize("life", range(max(1, LIVES)))
@pytest.mark.parametrize("mode", MODES)
def test_writes_in_any_order_between_flushes_cost_nothing_that_was_flushed(
    guest: Guest, mode: str, life: int, record_property: Callable[[str, object], None]
) -> None:
    spec = f"{mode},{life},{20 if LIVES else 3}"
    counts = _run(guest, "setcache_reorder", [spec])
    record_property("disks", counts[spec])
    assert counts[spec] > 40


@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
def test_faults_under_the_sanitizers(debug_guest: Guest, mode: str) -> None:
    assert sum(_run(debug_guest, "setcache_sweep", _faults(mode, 0, 61)).values()) > 10

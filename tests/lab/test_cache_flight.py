# SPDX-License-Identifier: GPL-2.0-only
"""Whatever is being written while `isoblk cache` attaches, changes or deletes a cache is there
afterwards, however slow the SSD is."""

import os

import pytest

from tests.lab.guest import PYTHON, ROOT, Guest, on_host

pytestmark = pytest.mark.long

# A flight costs seconds: `make test-all` makes those that nothing interrupts.
SWEEP = "SWEEP_LIVES" in os.environ


@pytest.mark.parametrize(
    ("write_ns", "kinds", "least"),
    [
        (50_000_000, 13 if SWEEP else 4, 140 if SWEEP else 40),
        # Those that are killed, the last five.
        (1_000_000, -5, 40),
        (1_000_000_000, 2, 25),
        (1_000_000, "hot", 0),
        (50_000_000, "hot", 0),
    ],
)
def test_writes_under_way_at_any_step_survive_it(
    guest: Guest, write_ns: int, kinds: int | str, least: int
) -> None:
    left = guest.run(
        f"""
export PATH=$PATH:/sbin:/usr/sbin PYTHONDONTWRITEBYTECODE=1 HOME=/run
export PYTHONPATH={on_host(ROOT / "src")}:{on_host(ROOT)}
{PYTHON} -m tests.guests.cache_flight {write_ns} {kinds} > /run/isoblk/said 2>&1 || true
""",
        modules=("isoblk_vdisk", "dm-setcache"),
        memory_mib=1024,
    )
    said = left.read("said")
    assert said.startswith("flights "), said
    assert int(said.split()[1].rstrip(",")) > least

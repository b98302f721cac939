# SPDX-License-Identifier: GPL-2.0-only
"""Whoever has too few scheduler tags for the groups is told, and told what to write."""

import pytest

from isoblk.study.notes import notes
from tests.unit.specs import NullBlkDevice, run_spec, tenant

VDISK_TAGS = 256  # what blk-mq gives a scheduler on a device with 128 tags and more


def _groups(count: int, scheduler: str = "feedbac", **fields: object) -> list[str]:
    tenants = tuple(tenant(f"t{i}") for i in range(count))
    return notes([run_spec(scheduler, tenants=tenants, **fields)])


@pytest.mark.parametrize(("count", "said"), [(VDISK_TAGS // 2, False), (VDISK_TAGS // 2 + 1, True)])
def test_two_tags_a_group_are_enough(count: int, said: bool) -> None:
    assert bool(_groups(count)) is said


def test_the_note_says_what_to_write() -> None:
    assert _groups(150) == [
        "150 groups under feedbac divide 256 scheduler tags, fewer than 2 each, and weights may"
        " not hold; set nr_requests = 512 in [queue]"
    ]


def test_no_more_is_asked_for_than_the_kernel_allows() -> None:
    assert "nr_requests = 2048 in" in _groups(3000)[0]
    assert _groups(3000, queue={"nr_requests": 2048}) == []


def test_what_the_study_sets_counts() -> None:
    assert _groups(150, queue={"nr_requests": 300}) == []
    assert _groups(150, queue={"nr_requests": 299}) != []


def test_a_device_with_few_tags_gives_its_scheduler_fewer() -> None:
    assert "divide 128 scheduler tags" in _groups(65, device=NullBlkDevice(hw_queue_depth=64))[0]


@pytest.mark.parametrize("scheduler", ["none", "bfq", "io.cost"])
def test_only_schedulers_that_divide_tags_are_spoken_of(scheduler: str) -> None:
    assert _groups(1000, scheduler) == []


def test_of_many_runs_the_one_that_needs_most_is_named() -> None:
    specs = [
        run_spec("kyber-fair", tenants=tuple(tenant(f"t{i}") for i in range(count)))
        for count in (4, 200, 900, 300)
    ]
    (note,) = notes(specs)
    assert note.startswith("900 groups under kyber-fair")


@pytest.mark.parametrize(("tags", "said"), [(127, True), (128, False)])
def test_cfq_needs_a_tag_for_every_request(tags: int, said: bool) -> None:
    tenants = tuple(tenant(f"t{i}", iodepth=16, numjobs=2) for i in range(4))
    found = notes([run_spec("cfq", tenants=tenants, queue={"nr_requests": tags})])
    note = (
        "cfq has 127 scheduler tags for 128 requests of all tenants, so whoever has its turn"
        " may lack some, and weights may not hold; set nr_requests = 128 in [queue]"
    )
    assert found == ([note] if said else [])


def test_cfq_asks_for_no_more_tags_than_the_kernel_allows() -> None:
    assert "nr_requests = 2048 in" in _groups(3000, "cfq")[0]
    assert _groups(3000, "cfq", queue={"nr_requests": 2048}) == []

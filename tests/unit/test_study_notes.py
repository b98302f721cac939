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


def test_cfq_divides_tags_as_well() -> None:
    assert (
        "65 groups under cfq divide 128 scheduler tags"
        in (_groups(65, "cfq", queue={"nr_requests": 128})[0])
    )
    assert _groups(64, "cfq", queue={"nr_requests": 128}) == []

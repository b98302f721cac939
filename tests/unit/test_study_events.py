# SPDX-License-Identifier: GPL-2.0-only
"""A run's scheduler may change under load: compatible settings, and refused ones."""

import pytest

from isoblk.errors import UserError
from isoblk.plan.plan import make_plan
from isoblk.run.spec import RunSpec, SchedulerEvent
from isoblk.study.expand import expand
from isoblk.study.load import parse_study

STUDY = """
name = "s"
device = "fast"
scheduler = "none"
[queue]
nr_requests = 2000
[iosched.bfq]
slice_idle = 0
[iosched.isoblk]
cost_model = "auto"
max_loss = 50
[[tenant]]
name = "a"
weight = 300
iodepth = 4
[[event]]
at = "500ms"
scheduler = "bfq"
[[event]]
at = "200ms"
scheduler = "isoblk"
"""


def spec(text: str = STUDY) -> RunSpec:
    runs = expand(parse_study(text, "s.toml")).runs
    return next(one.spec for one in runs if one.spec.kind == "share")


def test_events_are_of_the_run_alone() -> None:
    runs = expand(parse_study(STUDY, "s.toml")).runs
    assert {one.spec.kind: len(one.spec.scheduler_events) for one in runs} == {
        "share": 2,
        "reference": 0,
        "alone": 0,
    }


def test_a_new_elevator_has_its_own_knobs_and_the_queues() -> None:
    bfq, isoblk = spec().scheduler_events
    assert isinstance(bfq, SchedulerEvent)
    assert (bfq.scheduler.elevator, bfq.scheduler.iosched) == ("bfq", {"slice_idle": 0})
    assert isoblk.scheduler.iosched == {"cost_model": "auto", "max_loss": 50}
    # Without an elevator no more than the disk's own tags can be written.
    assert (spec().queue, bfq.queue) == ({"nr_requests": 1023}, {"nr_requests": 2000})


def test_the_script_changes_the_scheduler_in_time_and_reads_back() -> None:
    plan = make_plan(spec())
    lines = plan.text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("sleep 0.2"))
    second = next(i for i, line in enumerate(lines) if line.startswith("sleep 0.3"))
    assert "isoblk" in lines[first + 1] and "/queue/scheduler" in lines[first + 1]
    assert any("knobs-1" in line for line in lines[first:second])
    assert "bfq" in lines[second + 1]
    assert any("iosched/slice_idle" in line for line in lines[second:])
    assert any("knobs-2" in line for line in lines[second:])
    # Whichever it is, the weights are there.
    weights = {one.path for one in plan.settings if "weight" in one.path}
    assert weights == {"/sys/fs/cgroup/a/io.isoblk.weight", "/sys/fs/cgroup/a/io.bfq.weight"}


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ('scheduler = "bfq"', 'scheduler = "io.cost"', "is not an elevator that an event can set"),
        ('scheduler = "bfq"', 'scheduler = "bfk"', "is not an elevator"),
        ('scheduler = "none"', 'scheduler = "io.latency"', "io.latency is not an elevator"),
        ('scheduler = "bfq"', 'scheduler = "bfq"\ntenant = "a"', "is not one change"),
        ('scheduler = "bfq"', 'scheduler = "bfq"\ndevice = { servers = 1 }', "is not one change"),
        ('scheduler = "bfq"', 'tenant = "a"', "is not one change"),
        ("weight = 300", "weight = 3000", "out of the range of bfq"),
        ('at = "500ms"', 'at = "5s"', "after the end of the run"),
        ("[queue]", '[run]\ncgroup = "v1"\n[queue]', "on cgroup v2"),
    ],
)
def test_a_change_that_an_event_cannot_make_is_refused(was: str, becomes: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_study(STUDY.replace(was, becomes, 1), "s.toml")

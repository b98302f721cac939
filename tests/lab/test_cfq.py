# SPDX-License-Identifier: GPL-2.0-only
"""cfq divides the device's time: among groups by weight, in a group by priority.

The tests that it shares with our other schedulers (weights, figures, lives) are in test_share.py.
"""

from collections.abc import Mapping
from itertools import pairwise
from statistics import median

import pytest

from isoblk.run.spec import CgroupVersion
from tests.lab.guest import Guest
from tests.lab.load import (
    BLKLOAD,
    CGROUP,
    STATS,
    VDISK,
    Load,
    Op,
    Tenant,
    Value,
    numbers,
    percentile,
    results,
    run,
    served,
    tenant,
    vdisk,
)
from tests.lab.share import WEIGHT, Quiet, group, io_stats, keep, sched, use

QUEUE = "/sys/block/disk0/queue"
IOSCHED = f"{QUEUE}/iosched"
MS = 1_000_000
DEEP: Load = {
    "cputime": "1us",
    "rw": "randread",
    "iodepth": 32,
    "ramp_time": "600ms",
    "runtime": "3s",
}
# As a SATA SSD: 100,000 requests a second, eight at once.
SSD: dict[str, Value] = {"servers": 8, "read_ns": 80_000, "write_ns": 80_000, "trim_ns": 80_000}
# One that leaves its order to the elevator: all else waits there.
SHALLOW = SSD | {"queue_depth": 8}
REQUESTS = f"echo 256 > {QUEUE}/nr_requests"
WEIGHTS = {"a": 100, "b": 200, "c": 400, "d": 800}


@pytest.fixture
def quiet(guest: Guest) -> Quiet:
    """The default kernel."""
    return Quiet(guest)


def measured(
    quiet: Quiet,
    loads: Mapping[str, Load],
    *after: str,
    groups: Mapping[str, int] | None = None,
    tunables: Mapping[str, Value] | None = None,
    disk: Mapping[str, Value] | None = None,
    cgroup: CgroupVersion = "v2",
    merge: bool = True,
    requests: str = REQUESTS,
) -> dict[str, Tenant]:
    """Run tenants together under cfq. groups: path to weight; a tenant without `cgroup` is in
    the group of its name if there is one, else in the root."""
    groups = groups or {}
    left = quiet.run(
        vdisk(**(disk or SSD)),
        use("cfq"),
        requests,
        f"echo {0 if merge else 2} > {QUEUE}/nomerges",
        *(f"echo {value} > {IOSCHED}/{name}" for name, value in (tunables or {}).items()),
        *(
            f"{group(f'/{path}', cgroup)}; echo {weight} > {CGROUP}/{path}/{WEIGHT[cgroup]}"
            for path, weight in groups.items()
        ),
        *(
            tenant(name, **({"cgroup": f"/{name}" if name in groups else "/"} | load))
            for name, load in loads.items()
        ),
        run("results"),
        *after,
        cgroup=cgroup,
    )
    return results(left, "results")


def turns(op: Op) -> list[int]:
    """Lengths of the stretches without a break in a time series of 1 ms windows, but the first
    and the last: ms."""
    lengths, last = [0], None
    for start in op.win:
        if last is not None and start > last + 1:
            lengths.append(0)
        lengths[-1] += 1
        last = start
    return lengths[1:-1]


def by_weight(done: Mapping[str, Tenant], weights: Mapping[str, int]) -> float:
    """The worst tenant's relative error."""
    shares = served(done)
    return max(
        abs(shares[name] * sum(weights.values()) / weight - 1) for name, weight in weights.items()
    )


# -- groups --


@pytest.mark.parametrize("rw", ["randread", "randwrite", "randrw", "read"])
def test_one_process_a_group_has_its_weights_part(quiet: Quiet, rw: str) -> None:
    # A turn is so much time. The longer it lasts, the more of a stream merges.
    loads = dict.fromkeys(WEIGHTS, DEEP | {"rw": rw})
    done = measured(quiet, loads, groups=WEIGHTS, merge=rw != "read")
    assert by_weight(done, WEIGHTS) <= 0.05


def test_both_kernels_divide_by_weight(any_guest: Guest) -> None:
    done = measured(Quiet(any_guest), dict.fromkeys(WEIGHTS, DEEP), groups=WEIGHTS)
    assert by_weight(done, WEIGHTS) <= 0.05


def test_cgroup_v1_divides_as_well(quiet: Quiet) -> None:
    done = measured(quiet, dict.fromkeys(WEIGHTS, DEEP), groups=WEIGHTS, cgroup="v1")
    assert by_weight(done, WEIGHTS) <= 0.05


def test_a_child_does_not_compete_with_its_parent(quiet: Quiet) -> None:
    groups = {"parent": 800, "parent/a": 300, "parent/b": 100, "leaf": 200}
    loads = {
        name: DEEP | {"cgroup": f"/{path}"}
        for name, path in (
            ("a", "parent/a"),
            ("b", "parent/b"),
            ("own", "parent"),
            ("leaf", "leaf"),
        )
    }
    ideal = {"a": 480, "b": 160, "own": 160, "leaf": 200}
    assert by_weight(measured(quiet, loads, groups=groups), ideal) <= 0.05


def test_the_number_of_processes_in_a_group_changes_nothing(quiet: Quiet) -> None:
    loads = {"a": DEEP, "b": DEEP | {"numjobs": 5, "iodepth": 8}}
    done = measured(quiet, loads, groups={"a": 300, "b": 100})
    assert by_weight(done, {"a": 300, "b": 100}) <= 0.05


def test_a_waiting_group_waits_for_the_slices_of_all_other_groups(quiet: Quiet) -> None:
    # P0: group 1 has a median of 318 us and a 99th percentile of 222 ms.
    done = measured(quiet, dict.fromkeys(WEIGHTS, DEEP), groups=WEIGHTS)
    alone = 32 * 80_000 // 8
    assert percentile(done["a"].op, 50) == pytest.approx(alone, rel=0.05)
    assert 100 * MS < percentile(done["a"].op, 99) < 1000 * MS


# -- tags: cfq has those of one list, where CFQ had a list a group --


@pytest.mark.parametrize("copies", [1, 8])
def test_groups_have_their_parts_with_fewer_tags_than_requests(quiet: Quiet, copies: int) -> None:
    # 128 and 1024 requests on the 64 tags of a disk that takes 32.
    weights = {f"{name}{i}": weight for i in range(copies) for name, weight in WEIGHTS.items()}
    found = {}
    for gate in (1, 0):
        done = measured(
            quiet,
            dict.fromkeys(weights, DEEP),
            groups=weights,
            tunables={"gate": gate},
            disk=SSD | {"queue_depth": 32},
            requests=":",
        )
        ios = sum(one.op.meas_ios for one in done.values())
        found[gate] = (by_weight(done, weights), ios / (2.4 * 100_000))
    # Three seconds are eight turns of the group, two of them partly in the warm-up.
    assert found[1][0] <= (0.05 if copies == 1 else 0.15)
    assert found[1][1] >= 0.98
    assert found[0][0] > 0.5, "there are tags enough without a gate"


def test_light_and_heavy_groups_hold_equally_many_tags(quiet: Quiet) -> None:
    left = quiet.run(
        vdisk(**SSD, queue_depth=32),
        use("cfq"),
        *(
            f"{group(f'/{n}')}; echo {w} > {CGROUP}/{n}/io.isoblk.weight"
            for n, w in WEIGHTS.items()
        ),
        *(tenant(name, **(DEEP | {"cgroup": f"/{name}"})) for name in WEIGHTS),
        f"echo 1 > {BLKLOAD}/start; sleep 2.5",
        *(f"sleep 0.03; {keep(f'{sched()}/groups', 'groups')}" for _ in range(20)),
        f"cat {BLKLOAD}/wait",
    )
    held: dict[str, list[int]] = {name: [] for name in WEIGHTS}
    for line in left.read("groups").splitlines():
        if line.startswith("/"):
            path, words = line.split()[0], line.split()
            held[path[1:]].append(int(words[words.index("held") + 1]))
    # 64 tags, of which 56 are divided.
    assert {name: median(found) for name, found in held.items()} == dict.fromkeys(WEIGHTS, 14)


def test_a_disk_that_seeks_waits_for_processes_and_another_does_not(quiet: Quiet) -> None:
    disks: tuple[dict[str, Value], ...] = ({"model": "disk", "size": "4g"}, SSD)
    left = quiet.run(
        *(
            f"{vdisk(**disk)}\n{use('cfq')}\n{keep(f'{IOSCHED}/slice_idle', 'idle')}\n"
            f"rmdir {VDISK}/disk0"
            for disk in disks
        )
    )
    assert left.read("idle").split() == ["8", "0"]


def test_group_idle_keeps_the_place_of_one_that_sends_one_by_one(quiet: Quiet) -> None:
    weights = {"a": 100, "b": 400}
    load = DEEP | {"iodepth": 1}
    for idle, fair in ((8, True), (0, False)):
        tunables = {"slice_idle": 0, "group_idle": idle}
        done = measured(quiet, dict.fromkeys(weights, load), groups=weights, tunables=tunables)
        assert (by_weight(done, weights) <= 0.05) == fair, idle


def test_a_turn_of_a_group_is_its_part_of_target_latency(quiet: Quiet) -> None:
    load = DEEP | {"window": 1, "ramp_time": 0}
    weights = {"a": 100, "b": 300}
    tunables = {"target_latency": 80}
    done = measured(quiet, dict.fromkeys(weights, load), groups=weights, tunables=tunables)
    for name, expected in (("a", 20), ("b", 60)):
        assert median(turns(done[name].op)) == pytest.approx(expected, abs=1.5), name


# -- priorities --


def test_classes_are_served_in_order(quiet: Quiet) -> None:
    for first, second in (("rt/7", "be/0"), ("be/7", "idle")):
        loads = {"first": DEEP | {"ioprio": first}, "second": DEEP | {"ioprio": second}}
        assert served(measured(quiet, loads))["first"] > 0.97, first


def test_a_better_class_does_not_wait_for_the_slice_of_another(quiet: Quiet) -> None:
    loads = {
        "rare": DEEP | {"iodepth": 1, "ioprio": "rt/4", "rate_iops": 50},
        "busy": DEEP | {"ioprio": "be/4"},
    }
    worst = {
        prio: measured(quiet, loads | {"rare": loads["rare"] | {"ioprio": prio}}, disk=SHALLOW)[
            "rare"
        ].op.lat_max_ns
        for prio in ("rt/4", "be/4")
    }
    assert worst["rt/4"] < 5 * MS
    assert worst["be/4"] > 50 * MS


def test_weights_stand_above_classes(quiet: Quiet) -> None:
    weights = {"a": 100, "b": 100}
    loads = {"a": DEEP | {"ioprio": "rt/0"}, "b": DEEP | {"ioprio": "idle", "iodepth": 32}}
    disk = SSD | {"servers": 1}
    assert by_weight(measured(quiet, loads, groups=weights, disk=disk), weights) <= 0.05


@pytest.mark.parametrize(("level", "percent"), [(0, 180), (2, 140), (7, 40)])
def test_a_slice_is_as_long_as_its_level_says(quiet: Quiet, level: int, percent: int) -> None:
    load = DEEP | {"window": 1, "ramp_time": 0}
    loads = {"it": load | {"ioprio": f"be/{level}"}, "usual": load}
    tunables = {"slice_sync": 50, "low_latency": 0}
    done = measured(quiet, loads, tunables=tunables)
    for name, expected in (("it", 50 * percent / 100), ("usual", 50)):
        assert median(turns(done[name].op)) == pytest.approx(expected, abs=1.5), name


def test_low_latency_shortens_slices_so_that_all_have_one_in_time(quiet: Quiet) -> None:
    load = DEEP | {"window": 1, "ramp_time": 0}
    loads = {f"t{i}": load for i in range(6)}
    for low_latency, expected in ((0, 100), (1, 50)):
        done = measured(quiet, loads, tunables={"low_latency": low_latency})
        found = [length for one in done.values() for length in turns(one.op)]
        assert median(found) == pytest.approx(expected, abs=1.5)


# -- asynchronous requests: trims, for which no task waits --


def test_synchronous_requests_get_more_time_than_asynchronous_ones(quiet: Quiet) -> None:
    loads = {"reads": DEEP, "trims": DEEP | {"rw": "randtrim"}}
    shares = served(measured(quiet, loads))
    assert 0.6 < shares["reads"] < 0.95
    longer = served(measured(quiet, loads, tunables={"slice_async": 100, "slice_async_rq": 100}))
    assert longer["trims"] > shares["trims"]


def test_an_old_request_is_not_passed_by_for_ever(quiet: Quiet) -> None:
    # One queue for both. The stream is always nearest; the other is far behind it.
    loads: dict[str, Load] = {
        "stream": {"rw": "trim", "iodepth": 32, "offset": "2g", "runtime": "1s"},
        "behind": {"rw": "randtrim", "size": "1g", "runtime": "1s"},
    }
    for expire in (20, 100, 10_000):
        tunables = {"fifo_expire_async": expire}
        done = measured(quiet, loads, disk=SHALLOW, merge=False, tunables=tunables)["behind"].op
        if expire < 1000:
            assert expire * MS <= done.lat_max_ns < (expire + 5) * MS
            assert done.ios >= 1000 / expire
        else:
            assert done.ios < 5


# -- order, merging and depth --


def test_requests_go_to_the_device_by_sector(quiet: Quiet) -> None:
    event = "/sys/kernel/tracing/events/block/block_rq_issue/enable"
    left = quiet.run(
        vdisk(servers=1, queue_depth=1),
        use("cfq"),
        REQUESTS,
        "mount -t tracefs tracefs /sys/kernel/tracing",
        f"echo 1 > {event}",
        tenant("a", rw="randread", iodepth=64, number_ios=2000),
        run("results"),
        "grep -o 'disk0\\|block_rq_issue.*' /sys/kernel/tracing/trace > /run/isoblk/issued",
    )
    lines = [line.split() for line in left.read("issued").splitlines() if "+" in line]
    sectors = [int(words[words.index("+") - 1]) for words in lines]
    steps = [b - a for a, b in pairwise(sectors)]
    ahead = sum(step >= 0 for step in steps)
    assert len(steps) > 1500
    assert ahead > 0.9 * len(steps), "the elevator does not go one way"


@pytest.mark.parametrize("rw", ["read", "write", "trim"])
def test_neighbours_merge(quiet: Quiet, rw: str) -> None:
    left = quiet.run(
        vdisk(servers=1, queue_depth=1),
        use("cfq"),
        REQUESTS,
        tenant("a", rw=rw, iodepth=32, bs=4096, number_ios=2000),
        run("results"),
        f"cat {STATS}/disk0/stats > /run/isoblk/stats",
    )
    assert results(left, "results")["a"].op.ios == 2000
    done = numbers(left.read("stats"))
    assert done[f"{rw}_requests"] < 1000
    assert done[f"{rw}_bytes"] >= 2000 * 4096


@pytest.mark.parametrize("quantum", [1, 8, 20])
def test_quantum_bounds_the_requests_in_flight_of_one_of_several_groups(
    quiet: Quiet, quantum: int
) -> None:
    left = quiet.run(
        vdisk(servers=1),
        use("cfq"),
        f"echo {quantum} > {IOSCHED}/quantum",
        *(tenant(name, rw="randread", iodepth=64, runtime="2s") for name in "ab"),
        "echo 1 > " + f"{BLKLOAD}/start; sleep 1.5",
        *(f"sleep 0.01; {keep(f'{sched()}/state', 'state')}" for _ in range(20)),
        f"cat {BLKLOAD}/wait",
    )
    inflight = [int(line.split()[1]) for line in left.read("state").splitlines()]
    assert max(inflight) == quantum


def test_waiting_for_a_reader_spares_a_hard_disk_its_seeks(quiet: Quiet) -> None:
    disk: dict[str, Value] = {"model": "disk", "size": "4g", "queue_depth": 32}
    load: Load = {"rw": "read", "bs": "64k", "iodepth": 1, "runtime": "3s"}
    loads = {"a": load, "b": load | {"offset": "3g"}}
    rate = {
        idle: sum(
            one.op.ios
            for one in measured(
                quiet, loads, disk=disk, tunables={"slice_idle": idle, "group_idle": 0}
            ).values()
        )
        for idle in (8, 0)
    }
    assert rate[8] > 2 * rate[0]


# -- figures --


def test_bytes_and_time_are_counted(quiet: Quiet) -> None:
    left = quiet.run(
        vdisk(**SSD),
        use("cfq"),
        *(group(f"/{name}") for name in "ab"),
        *(
            tenant(name, cgroup=f"/{name}", rw=rw, iodepth=16, bsrange="4k-64k", runtime="1s")
            for name, rw in (("a", "rw"), ("b", "write"))
        ),
        run("results"),
        *(keep(f"{CGROUP}/{name}/io.stat", name) for name in "ab"),
        keep(f"{sched()}/state", "state"),
        keep(f"{sched()}/groups", "groups"),
    )
    time_us = 0
    for name, done in results(left, "results").items():
        (stat,) = io_stats(left.read(name)).values()
        assert stat["isoblk.used"] == sum(op.bytes for op in done.ops.values())
        time_us += stat["isoblk.time_us"]
    assert time_us == pytest.approx(1_000_000, rel=0.05)
    assert left.read("state").startswith("inflight 0 queued 0 ")


def test_equal_runs_are_equal(quiet: Quiet) -> None:
    first, second = (
        measured(quiet, dict.fromkeys(WEIGHTS, DEEP | {"rw": "randrw"}), groups=WEIGHTS)
        for _ in range(2)
    )
    assert first == second

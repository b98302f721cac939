# SPDX-License-Identifier: GPL-2.0-only
"""isoblk and the classes of ioprio: the order in a cgroup, and the weight of one of the idle class.

The arithmetic of the weights is in kernel/tests/share_test.c.
"""

from collections.abc import Mapping

import pytest

from tests.lab.guest import Guest
from tests.lab.load import (
    CGROUP,
    Load,
    Tenant,
    Value,
    percentile,
    results,
    run,
    served,
    tenant,
    vdisk,
)
from tests.lab.share import Quiet, group, use

# 16 servers of 20 us, and what a request of 4 KiB costs there.
DISK: dict[str, Value] = {"servers": 16, "read_ns": 20_000}
IOPS = 800_000
MODEL = " ".join(f"{op}bps={IOPS << 12} {op}seqiops={IOPS} {op}randiops={IOPS}" for op in "rw")
LOAD: Load = {
    "cputime": "512ns",
    "rw": "randread",
    "iodepth": 128,
    "ramp_time": "200ms",
    "runtime": "800ms",
}
DEPTH_1 = LOAD | {"iodepth": 1}


@pytest.fixture
def quiet(any_guest: Guest) -> Quiet:
    """Each of the two kernels."""
    return Quiet(any_guest)


def measured(
    quiet: Quiet, paths: str, loads: Mapping[str, Load], *before: str
) -> dict[str, Tenant]:
    """Run tenants together, each in its `cgroup`. paths: cgroups, all of the default weight."""
    left = quiet.run(
        vdisk(**DISK),
        use("isoblk"),
        f"echo {MODEL} > /sys/block/disk0/queue/iosched/cost_model",
        *(group(path) for path in paths.split()),
        *before,
        *(
            tenant(name, **load | {"randseed": seed})
            for seed, (name, load) in enumerate(loads.items(), 1)
        ),
        run("results"),
    )
    return results(left, "results")


@pytest.mark.parametrize("inner", ["", "/inner"], ids=["itself", "all below it"])
def test_a_cgroup_of_the_idle_class_has_the_least_weight(quiet: Quiet, inner: str) -> None:
    paths = f"/usual /idle {inner and '/idle/inner'}"
    loads = {
        "usual": LOAD | {"cgroup": "/usual"},
        "idle": LOAD | {"cgroup": f"/idle{inner}", "ioprio": "idle"},
    }
    assert served(measured(quiet, paths, loads))["idle"] == pytest.approx(1 / 101, rel=0.2)


def test_a_cgroup_of_the_idle_class_has_the_disk_if_it_is_alone(quiet: Quiet) -> None:
    alone = measured(quiet, "/a", {"a": LOAD | {"cgroup": "/a", "ioprio": "idle"}})
    assert alone["a"].op.meas_ios >= 0.99 * IOPS * 0.8


def test_a_cgroup_with_requests_of_two_classes_keeps_its_weight(quiet: Quiet) -> None:
    loads = {
        "idle": LOAD | {"cgroup": "/both", "ioprio": "idle"},
        "usual": LOAD | {"cgroup": "/both"},
        "other": LOAD | {"cgroup": "/other"},
    }
    shares = served(measured(quiet, "/both /other", loads))
    assert shares["other"] == pytest.approx(0.5, rel=0.02)
    # One in 32 is of the class whose turn it is, of three.
    assert shares["idle"] / (shares["idle"] + shares["usual"]) == pytest.approx(1 / 96, rel=0.2)


def test_real_time_requests_overtake_the_others_of_their_cgroup(quiet: Quiet) -> None:
    p99 = {}
    for ioprio in ("rt/7", "be/0"):
        loads = {
            "one": DEPTH_1 | {"cgroup": "/both", "ioprio": ioprio},
            "usual": LOAD | {"cgroup": "/both"},
            "other": LOAD | {"cgroup": "/other"},
        }
        p99[ioprio] = percentile(measured(quiet, "/both /other", loads)["one"].op, 99)
    assert p99["rt/7"] < p99["be/0"] / 4, p99


def test_the_class_that_a_cgroup_is_given_counts(quiet: Quiet) -> None:
    loads = {name: LOAD | {"cgroup": f"/{name}"} for name in ("usual", "idle")}
    given = f"echo idle > {CGROUP}/idle/io.prio.class"
    assert served(measured(quiet, "/usual /idle", loads, given))["idle"] < 0.02

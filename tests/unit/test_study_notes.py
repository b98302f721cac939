# SPDX-License-Identifier: GPL-2.0-only
"""Notes on a study: too few tags, an empty drive, impossible rates, and an idle tenant. A correct
study gets no note."""

from typing import Any

import msgspec
import pytest

from isoblk.run.record import OpTotals, RunRecord, TenantResult
from isoblk.run.spec import DeviceEvent, FlashModel, Trace, VdiskDevice, VolumeModel
from isoblk.study.notes import idle, notes
from tests.unit.resultgen import PROVENANCE
from tests.unit.specs import MS, SECOND, NullBlkDevice, run_spec, tenant

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


def test_the_number_of_tags_in_the_study_counts() -> None:
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


# ---- a drive that is empty -------------------------------------------------------------

EMPTY = VdiskDevice(model="flash", flash=FlashModel(precondition="none"))
USED = VdiskDevice(model="flash", flash=FlashModel(precondition="random"))


@pytest.mark.parametrize("rw", ["read", "randread", "rw", "randrw"])
def test_a_read_from_an_empty_drive_is_reported(rw: str) -> None:
    (note,) = notes([run_spec(device=EMPTY, tenants=(tenant("a", rw=rw), tenant("b", rw="write")))])
    assert note.startswith("a reads from an empty drive")
    # Both at once are refused, and a preset without either is a drive in use.
    assert 'remove fresh = true, or set flash = { precondition = "random" }' in note


@pytest.mark.parametrize(
    ("device", "load"),
    [
        (EMPTY, {"rw": "randwrite"}),
        (EMPTY, {"program": "dd"}),
        (USED, {"rw": "randread"}),
        (VdiskDevice(), {"rw": "randread"}),
        (NullBlkDevice(), {"rw": "randread"}),
    ],
)
def test_a_load_that_does_not_read_an_empty_drive_gets_no_note(
    device: Any, load: dict[str, Any]
) -> None:
    assert notes([run_spec(device=device, tenants=(tenant("a", **load),))]) == []


def test_a_study_that_varies_the_precondition_gets_no_note() -> None:
    spec = run_spec(device=EMPTY, tenants=(tenant("a", rw="read"),))
    varied = msgspec.structs.replace(spec, point={"device.flash.precondition": "none"})
    assert notes([varied]) == []


# ---- rates -------------------------------------------------------------------------------

FIXED = VdiskDevice(servers=2, read_ns=20_000, write_ns=40_000, read_bps=200_000_000)


@pytest.mark.parametrize(
    ("loads", "said"),
    [
        ([{"rate_iops": 100_001}], "t0 asks for 100 K requests a second: the disk does 100 K"),
        (
            [{"rate_iops": 60_000, "bs": 512}, {"rate_iops": 60_000, "bs": 512}],
            "all rates ask for 120 K requests",
        ),
        ([{"rate_iops": 10_000, "numjobs": 11}], "t0 asks for 110 K requests a second"),
        (
            [{"rate_iops": 1_100_000, "on_ns": 10 * MS, "off_ns": 90 * MS}],
            "t0 asks for 110 K requests a second",
        ),
        ([{"rate_iops": 4_000, "bs": 65536}], "t0 asks for 262 MB/s read: the disk does 200 MB/s"),
        ([{"rate_iops": 4_000, "bsrange": (65536, 131072)}], "t0 asks for 393 MB/s read"),
        (
            [{"rate_iops": 4_000, "bssplit": ((4096, 50), (131072, 50))}],
            "t0 asks for 270 MB/s read",
        ),
        ([{"rate_iops": 4_000, "bs": 131072, "rw": "randrw"}], "t0 asks for 262 MB/s read"),
    ],
)
def test_a_rate_above_the_limit_of_the_disk_is_named(
    loads: list[dict[str, Any]], said: str
) -> None:
    tenants = tuple(tenant(f"t{i}", **load) for i, load in enumerate(loads))
    (note,) = notes([run_spec(device=FIXED, tenants=tenants)])
    assert note.startswith(said)


def test_a_rate_is_named_once_and_not_again_for_the_run_alone() -> None:
    spec = run_spec(device=FIXED, tenants=(tenant("a", rate_iops=200_000),))
    alone = msgspec.structs.replace(
        spec, kind="alone", tenants=(tenant("alone", rate_iops=200_000),)
    )
    assert notes([alone, spec]) == notes([spec]) != []


VOLUME = VolumeModel(iops=3000, bps=125 << 20)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ({"rate_iops": 3001}, "a asks for 3.00 K requests a second: the disk does 3.00 K"),
        (
            {"rate_iops": 2500, "bs": 65536, "rw": "randrw"},
            "a asks for 164 MB/s: the disk does 131 MB/s",
        ),
    ],
)
def test_a_cloud_volume_is_held_to_its_limits(load: dict[str, Any], said: str) -> None:
    def told(volume: VolumeModel) -> list[str]:
        disk = VdiskDevice(servers=64, volume=volume)
        return notes([run_spec(device=disk, tenants=(tenant("a", **load),))])

    assert told(VOLUME) == [said]
    # Accumulated credit may be spent at any rate.
    assert told(msgspec.structs.replace(VOLUME, burst_ns=3600 * SECOND)) == []


@pytest.mark.parametrize(
    "load",
    [
        {"rate_iops": 48_000},
        # Requests that arrive in a tenth of the time are served in all of it.
        {"rate_iops": 480_000, "on_ns": 10 * MS, "off_ns": 90 * MS},
        # They may be merged.
        {"rate_iops": 150_000, "rw": "write"},
        {"rate_iops": 40_000, "bs": 65536, "rw": "randwrite"},
        {"iodepth": 1024},
    ],
)
def test_a_rate_that_can_be_is_not_named(load: dict[str, Any]) -> None:
    tenants = (tenant("a", **load), tenant("b", iodepth=64))
    assert notes([run_spec(device=FIXED, tenants=tenants)]) == []


def test_a_disk_that_changes_is_not_judged() -> None:
    faster = (DeviceEvent(at_ns=1, attributes={"servers": 64}),)
    tenants = (tenant("a", rate_iops=200_000),)
    assert notes([run_spec(device=FIXED, tenants=tenants, device_events=faster)]) == []


@pytest.mark.parametrize(("speed", "said"), [(1000, False), (20_000, True)])
def test_a_trace_that_is_too_fast_is_named(speed: int, said: bool) -> None:
    trace = Trace(name="x", sha256="", records=100_001, span_ns=10 * SECOND, max_end=1 << 20)
    load = tenant("a", trace=trace, speed=speed, trace_loop=True)
    found = [one for one in notes([run_spec(device=FIXED, tenants=(load,))]) if "asks" in one]
    assert bool(found) is said


# ---- tenants that did nothing --------------------------------------------------------------


def _result(name: str, measured_ns: int, **figures: int) -> TenantResult:
    """The result of a tenant that read; figures: its counts."""
    totals = OpTotals(**dict.fromkeys(OpTotals.__struct_fields__, 0) | figures)
    return TenantResult(
        name=name,
        cgroup=name,
        weight=100,
        measured_ns=measured_ns,
        error=0,
        ops={"read": totals},
        io_stat=None,
    )


def _record(did: dict[str, int], load: dict[str, Any], measured_ns: int = SECOND) -> RunRecord:
    """Of a run of two tenants, the first with this load; did: the figures of its reads."""
    tenants = (tenant("a", **load), tenant("b"))
    return RunRecord(
        format=1,
        id="",
        tier="uml",
        status="valid",
        reasons=[],
        spec=run_spec("bfq", tenants=tenants, warmup_ns=100 * MS, runtime_ns=SECOND),
        provenance=PROVENANCE,
        tenants=[_result("a", measured_ns, **did), _result("b", SECOND, ios=1, meas_ios=1)],
        knobs=[],
        wall_s=0,
        cpu_s=0,
    )


@pytest.mark.parametrize(
    ("did", "load", "measured_ns", "why"),
    [
        (
            {"ios": 9},
            {"on_ns": 100 * MS, "off_ns": 9 * SECOND},
            0,
            "its on and off, startdelay and runtime leave nothing of it",
        ),
        ({"ios": 4}, {"number_ios": 4}, 0, "its number_ios ended in the warm-up"),
        ({"ios": 4}, {}, 0, "it ended in the warm-up"),
        ({"ios": 4}, {}, SECOND, "starved of the disk"),
        ({}, {}, SECOND, "starved of the disk"),
    ],
)
def test_an_idle_tenant_is_named_with_the_reason(
    did: dict[str, int], load: dict[str, Any], measured_ns: int, why: str
) -> None:
    record = _record(did, load, measured_ns)
    assert idle([record, record]) == [f"a did nothing in the measured time under bfq: {why}"]


def test_a_tenant_with_measured_requests_is_not_named() -> None:
    assert idle([_record({"ios": 9, "meas_ios": 1}, {})]) == []


def test_many_idle_tenants_are_one_line() -> None:
    record = _record({}, {})
    many = msgspec.structs.replace(
        record,
        spec=run_spec("none", tenants=tuple(tenant(f"t{i}") for i in range(100))),
        tenants=[_result(f"t{i}", SECOND) for i in range(100)],
    )
    (note,) = idle([many])
    assert note.startswith("t0, t1, t2 and 97 more did nothing in the measured time under none")


def test_a_tunable_that_resembles_another_is_named() -> None:
    for scheduler, name in (("bfq", "slice_idl"), ("isoblk", "mine")):
        assert notes([run_spec(scheduler, options={"iosched": {name: 1}})]) == []
    assert notes([run_spec("isoblk", options={"iosched": {"maxloss": 5}})] * 2) == [
        "isoblk has no tunable maxloss; did you mean 'max_loss'?"
    ]


@pytest.mark.parametrize(("off_ns", "said"), [(SECOND - 1, False), (SECOND, True)])
def test_a_pause_longer_than_the_run_is_named(off_ns: int, said: bool) -> None:
    found = notes([run_spec(tenants=(tenant("a", on_ns=MS, off_ns=off_ns),))])
    assert [note.partition(":")[0] for note in found] == ["a"] * said

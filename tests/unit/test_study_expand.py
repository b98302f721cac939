# SPDX-License-Identifier: GPL-2.0-only
"""A study's runs: the right ones, once each, in an order in which they can be made."""

import math
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.metrics.registry import NAMES, split_metric
from isoblk.run.seeds import tenant_seed
from isoblk.run.shares import effective_shares, parent_of
from isoblk.run.spec import Group, NullBlkDevice, PlannedRun, Tenant, VdiskDevice, Workload
from isoblk.schedulers.io_cost import MODEL
from isoblk.study.expand import expand, resolve
from isoblk.study.load import parse_study
from isoblk.study.model import Expansion
from isoblk.study.presets import load_device

HEAD = 'name = "s"\ndevice = "fast"\n'
TENANTS = '[[tenant]]\nname = "t"\ncount = 4\nweight = [1000, 500, 250, 100]\n'


def runs_of(text: str) -> Expansion:
    return expand(parse_study(text, "x.toml"))


def shares(expansion: Expansion) -> list[PlannedRun]:
    return [run for run in expansion.runs if run.spec.kind == "share"]


def kinds(expansion: Expansion) -> dict[str, int]:
    return dict(Counter(run.spec.kind for run in expansion.runs))


def test_the_runs_are_the_product_of_the_matrix() -> None:
    text = '[matrix]\nscheduler = ["none", "bfq"]\n"workload.rw" = ["randread", "randwrite"]\n'
    got = shares(runs_of(HEAD + TENANTS + text))
    assert {(r.spec.scheduler.name, r.spec.tenants[0].workload.rw) for r in got} == {
        ("none", "randread"),
        ("none", "randwrite"),
        ("bfq", "randread"),
        ("bfq", "randwrite"),
    }
    for run in got:
        assert list(run.spec.point) == ["scheduler", "workload.rw"]
        assert run.spec.point["scheduler"] == run.spec.scheduler.name


def test_a_point_names_its_scheduler_without_a_matrix() -> None:
    (run,) = shares(runs_of(HEAD + 'scheduler = "kyber"\n' + TENANTS))
    assert run.spec.point == {"scheduler": "kyber"}
    assert run.spec.scheduler.elevator == "kyber"


def test_the_runs_that_a_run_depends_on_come_before_it() -> None:
    text = (
        "[run]\nrepeats = 2\n[matrix]\n"
        'scheduler = ["io.max", "io.cost", "none", "bfq"]\n"workload.iodepth" = [1, 2]\n'
    )
    expansion = runs_of(HEAD + TENANTS + text)
    for index, run in enumerate(expansion.runs):
        needs = [*run.alone, *run.calibrate.values()]
        needs += [] if run.reference is None else [run.reference]
        assert all(need < index for need in needs)


def test_a_run_is_compared_with_none_at_its_own_point_and_repeat() -> None:
    text = (
        '[run]\nrepeats = 2\n[matrix]\nscheduler = ["bfq", "none"]\n"workload.iodepth" = [1, 2]\n'
    )
    expansion = runs_of(HEAD + TENANTS + text)
    assert "reference" not in kinds(expansion)
    for run in shares(expansion):
        if run.spec.scheduler.name == "none":
            assert run.reference is None
            continue
        assert run.reference is not None
        reference = expansion.runs[run.reference].spec
        assert reference.scheduler.name == "none"
        assert reference.tenants == run.spec.tenants
        assert (reference.repeat, reference.seed) == (run.spec.repeat, run.spec.seed)


def test_a_matrix_without_none_gets_references_and_shares_them() -> None:
    text = (
        '[matrix]\nscheduler = ["bfq", "io.max"]\n"io_max.scale" = [1.0, 2.0]\n'
        '"workload.iodepth" = [1, 2]\n'
    )
    expansion = runs_of(HEAD + TENANTS + text)
    # scale changes nothing under bfq, and nothing under none: one reference an iodepth.
    assert kinds(expansion) == {"share": 6, "reference": 2, "alone": 2}
    for run in expansion.runs:
        if run.spec.kind == "reference":
            assert run.spec.point["scheduler"] == "none"
            assert len(run.alone) == 4


def test_tenants_with_the_same_load_are_run_alone_once() -> None:
    text = (
        '[run]\nrepeats = 3\n[[tenant]]\nname = "w"\nrw = "randwrite"\nstartdelay = "500ms"\n'
        '[[tenant]]\nname = "late"\nstartdelay = "100ms"\n[matrix]\nscheduler = ["none", "bfq"]\n'
    )
    expansion = runs_of(HEAD + TENANTS + text)
    assert kinds(expansion) == {"share": 6, "alone": 2}
    for run in shares(expansion):
        assert len(run.alone) == 6
        assert len(set(run.alone)) == 2
        for tenant, index in zip(run.spec.tenants, run.alone, strict=True):
            alone = expansion.runs[index].spec
            (only,) = alone.tenants
            assert (only.name, only.cgroup, only.weight) == ("alone", "alone", 100)
            assert only.workload.rw == tenant.workload.rw
            assert only.workload.startdelay_ns == 0
            assert alone.scheduler.name == "none"
            assert alone.device == run.spec.device
            assert alone.runtime_ns == run.spec.runtime_ns


def test_a_count_in_the_matrix_does_not_add_runs_alone() -> None:
    text = '[matrix]\n"tenant.t.count" = [1, 2, 64]\n'
    expansion = runs_of(HEAD + TENANTS + text)
    assert kinds(expansion) == {"share": 3, "alone": 1}
    assert [len(run.spec.tenants) for run in shares(expansion)] == [1, 2, 64]


def test_twenty_points_on_four_schedulers_do_not_explode() -> None:
    depths = ", ".join(str(depth) for depth in range(1, 21))
    text = (
        '[matrix]\nscheduler = ["none", "bfq", "io.cost", "io.max"]\n'
        f'"workload.iodepth" = [{depths}]\n'
    )
    assert kinds(runs_of(HEAD + TENANTS + text)) == {"share": 80, "alone": 20, "calibrate": 6}


def test_a_device_is_calibrated_as_the_kernels_script_does() -> None:
    text = (
        "[queue]\nnr_requests = 64\nnomerges = 0\n"
        '[matrix]\nscheduler = ["io.cost"]\n"device.servers" = [4, 16]\n'
    )
    expansion = runs_of(HEAD + TENANTS + text)
    assert kinds(expansion)["calibrate"] == 12
    for run in shares(expansion):
        assert list(run.calibrate) == list(MODEL)
        for coefficient, index in run.calibrate.items():
            spec = expansion.runs[index].spec
            assert spec.point["calibrate"] == f"io.cost {coefficient}"
            assert spec.device == run.spec.device
            assert spec.scheduler.name == "none"
            assert spec.queue == {"nr_requests": 64, "nomerges": 1}
            assert spec.runtime_ns == 10**9
            load = spec.tenants[0].workload
            writes, random = coefficient.startswith("w"), "rand" in coefficient
            assert load.rw == ("rand" if random else "") + ("write" if writes else "read")
            bulk = coefficient.endswith("bps")
            assert (load.bs, load.iodepth) == ((32 << 20, 1) if bulk else (4096, 64))


def test_a_calibration_fits_a_small_device() -> None:
    text = 'name = "s"\ndevice = { preset = "fast", size = "1m" }\nscheduler = "io.cost"\n'
    expansion = runs_of(text + TENANTS)
    sizes = [r.spec.tenants[0].workload.bs for r in expansion.runs if r.spec.kind == "calibrate"]
    assert max(sizes) == 1 << 20


def test_a_given_model_needs_no_calibration() -> None:
    model = ", ".join(f"{name} = 1000" for name in MODEL)
    text = f'scheduler = "io.cost"\nio_cost = {{ model = {{ {model} }}, qos = {{ min = 50 }} }}\n'
    expansion = runs_of(HEAD + text + TENANTS)
    assert "calibrate" not in kinds(expansion)
    (run,) = shares(expansion)
    assert run.spec.scheduler.io_cost_model == dict.fromkeys(MODEL, 1000)
    assert run.spec.scheduler.io_cost_qos == {"min": 50}
    assert resolve(run.spec, None, None) == run.spec


def test_tunables_go_to_their_scheduler_alone() -> None:
    text = '[iosched.bfq]\nslice_idle = 0\n[matrix]\nscheduler = ["none", "kyber", "bfq"]\n'
    got = {r.spec.scheduler.name: r.spec.scheduler for r in shares(runs_of(HEAD + TENANTS + text))}
    assert got["bfq"].iosched == {"slice_idle": 0}
    assert got["kyber"].iosched == {}
    assert {name: s.elevator for name, s in got.items()} == {
        "none": "none",
        "kyber": "kyber",
        "bfq": "bfq",
    }


def test_a_tenants_option_wins_over_the_shared_one() -> None:
    text = (
        '[workload]\nrw = "randwrite"\nbssplit = "4k/50:8k/50"\niodepth = 8\n'
        '[[tenant]]\nname = "own"\nbs = "64k"\niodepth = 2\n[[tenant]]\nname = "shared"\n'
    )
    own, shared = shares(runs_of(HEAD + text))[0].spec.tenants
    assert (own.workload.rw, own.workload.iodepth) == ("randwrite", 2)
    assert (own.workload.bs, own.workload.bssplit) == (65536, None)
    assert shared.workload.bssplit == ((4096, 50), (8192, 50))


def test_times_and_sizes_are_resolved() -> None:
    text = (
        '[run]\nwarmup = "200ms"\nruntime = 2\nwindow = 50\n[[tenant]]\nname = "a"\n'
        'thinktime = 10\nstartdelay = 0.5\nruntime = "1s"\noffset = "1m"\nsize = "1g"\n'
        'bsrange = "4k-64k"\n[[event]]\nat = 1.5\ntenant = "a"\nweight = 7\n'
    )
    spec = shares(runs_of(HEAD + text))[0].spec
    assert (spec.warmup_ns, spec.runtime_ns, spec.window_ms) == (200_000_000, 2 * 10**9, 50)
    load = spec.tenants[0].workload
    assert (load.thinktime_ns, load.startdelay_ns, load.runtime_ns) == (10_000, 5 * 10**8, 10**9)
    assert (load.offset, load.size, load.bsrange) == (1 << 20, 1 << 30, (4096, 65536))
    assert [(event.at_ns, event.weight) for event in spec.events] == [(1_500_000_000, 7)]


def test_a_change_of_the_device_is_part_of_every_run_that_is_compared_with() -> None:
    text = (
        '[run]\nruntime = 2\n[[tenant]]\nname = "a"\n'
        '[[event]]\nat = "1s"\ndevice = { servers = 8, read_ns = "40us", read_bps = "1m" }\n'
        '[[event]]\nat = 0.5\ntenant = "a"\nweight = 7\n[matrix]\nscheduler = ["io.cost"]\n'
    )
    runs = runs_of(HEAD + text).runs
    assert {run.spec.kind for run in runs} == {"share", "reference", "alone", "calibrate"}
    for run in runs:
        changes = [(event.at_ns, event.attributes) for event in run.spec.device_events]
        wanted = {"servers": 8, "read_ns": 40_000, "read_bps": 1 << 20}
        assert changes == ([] if run.spec.kind == "calibrate" else [(10**9, wanted)])
        assert len(run.spec.events) == (run.spec.kind in ("share", "reference"))


def test_counted_tenants_are_numbered_and_weights_repeat() -> None:
    text = '[[tenant]]\nname = "t"\ncount = 5\ncgroup = "team/x"\nweight = [1, 2]\n'
    tenants = shares(runs_of(HEAD + text))[0].spec.tenants
    assert [(t.name, t.cgroup, t.weight) for t in tenants] == [
        ("t1", "team/x1", 1),
        ("t2", "team/x2", 2),
        ("t3", "team/x3", 1),
        ("t4", "team/x4", 2),
        ("t5", "team/x5", 1),
    ]


def test_inner_cgroups_are_all_there_parents_first() -> None:
    text = (
        '[[tenant]]\nname = "a"\ncgroup = "x/y/a"\n[[tenant]]\nname = "b"\ncgroup = "x/b"\n'
        '[[tenant]]\nname = "c"\n[[group]]\npath = "x"\nweight = 300\n'
    )
    spec = shares(runs_of(HEAD + text))[0].spec
    assert spec.groups == (Group(path="x", weight=300), Group(path="x/y", weight=100))


def test_a_tenant_in_an_inner_cgroup_gives_it_its_weight() -> None:
    text = '[[tenant]]\nname = "p"\nweight = 800\n[[tenant]]\nname = "c"\ncgroup = "p/c"\n'
    (run,) = shares(runs_of(HEAD + text))
    assert run.spec.groups == (Group(path="p", weight=800),)


def test_a_list_of_weights_may_be_in_the_matrix() -> None:
    text = '[matrix]\n"tenant.t.weight" = [[10, 5], 7]\n'
    got = shares(runs_of(HEAD + TENANTS + text))
    assert [r.spec.point["tenant.t.weight"] for r in got] == ["10/5", "7"]
    assert [[t.weight for t in r.spec.tenants] for r in got] == [[10, 5, 10, 5], [7, 7, 7, 7]]


def test_without_an_elevator_nr_requests_is_at_most_the_devices_tags() -> None:
    text = "[queue]\nnr_requests = 2048\n[matrix]\nscheduler = "
    study = HEAD + TENANTS + text
    asked = {
        r.spec.scheduler.name: r.spec.queue for r in shares(runs_of(study + '["none", "bfq"]'))
    }
    assert asked == {"none": {"nr_requests": 1023}, "bfq": {"nr_requests": 2048}}
    every = runs_of(study + '["bfq", "io.cost"]').runs
    others = [r for r in every if r.spec.scheduler.name != "bfq"]
    assert {r.spec.kind for r in others} == {"share", "reference", "alone", "calibrate"}
    assert {r.spec.queue["nr_requests"] for r in others} == {1023}


def test_star_sets_all_tenants_and_a_name_one() -> None:
    text = (
        '[[tenant]]\nname = "a"\n[[tenant]]\nname = "b.c"\n'
        '[matrix]\n"tenant.b.c.iodepth" = [9]\n"tenant.*.iodepth" = [3]\n'
    )
    spec = shares(runs_of(HEAD + text))[0].spec
    assert [tenant.workload.iodepth for tenant in spec.tenants] == [3, 9]


def test_a_device_and_its_attribute_may_both_be_in_the_matrix() -> None:
    text = '[matrix]\n"device.size" = ["1g"]\ndevice = ["nand", "prototype"]\n'
    devices = [run.spec.device for run in shares(runs_of(HEAD + TENANTS + text))]
    assert [type(device) for device in devices] == [VdiskDevice, NullBlkDevice]
    assert {device.size for device in devices} == {1 << 30}


def test_repeats_differ_in_their_seeds_and_tenants_too() -> None:
    expansion = runs_of(HEAD + "[run]\nrepeats = 3\nseed = 5\n" + TENANTS)
    got = shares(expansion)
    assert [(run.spec.repeat, run.spec.seed) for run in got] == [(0, 5), (1, 6), (2, 7)]
    seeds = [tenant.workload.randseed for run in got for tenant in run.spec.tenants]
    assert len(set(seeds)) == 12


def test_expansion_is_the_same_every_time() -> None:
    text = HEAD + TENANTS + '[matrix]\nscheduler = ["io.cost", "none", "io.max"]\n'
    assert runs_of(text) == runs_of(text)


def test_a_tenants_seed_does_not_change_with_the_release() -> None:
    assert [tenant_seed(1, index) for index in range(3)] == [2410493115, 34241681, 4145649918]


def test_a_lighter_tenants_latency_target_is_longer_in_proportion() -> None:
    text = 'scheduler = "io.latency"\nio_latency = { target = "50us" }\n'
    spec = shares(runs_of(HEAD + text + TENANTS))[0].spec
    assert spec.scheduler.io_latency_us == {"t1": 50, "t2": 100, "t3": 200, "t4": 500}


def test_a_tenants_own_latency_target_counts_and_then_only_such() -> None:
    tenants = TENANTS.replace('name = "t"', 'name = "t"\nlatency_target = 1', 1)
    assert tenants != TENANTS
    text = f'scheduler = "io.latency"\n{HEAD}{tenants}[[tenant]]\nname = "u"\n'
    spec = shares(runs_of(text))[0].spec
    assert spec.scheduler.io_latency_us == {"t1": 1, "t2": 1, "t3": 1, "t4": 1}


@pytest.mark.parametrize(("written", "us"), [("250", 250), ('"1.5ms"', 1500), ('"100ns"', 1)])
def test_a_latency_target_is_in_microseconds(written: str, us: int) -> None:
    text = f'{HEAD}scheduler = "io.latency"\n[[tenant]]\nname = "a"\nlatency_target = {written}\n'
    assert shares(runs_of(text))[0].spec.scheduler.io_latency_us == {"a": us}


def test_a_latency_target_multiplies_only_the_runs_of_schedulers_that_know_it() -> None:
    text = (
        f'{HEAD}[[tenant]]\nname = "a"\n[matrix]\n"tenant.a.latency_target" = [0, "1ms"]\n'
        'scheduler = ["none", "io.latency", "isoblk"]\n'
    )
    specs = [run.spec for run in shares(runs_of(text))]
    assert [(spec.scheduler.name, spec.scheduler.io_latency_us) for spec in specs] == [
        ("none", {}),
        ("io.latency", {"a": 100}),
        ("isoblk", {}),
        ("io.latency", {"a": 1000}),
    ]


@pytest.mark.parametrize(
    ("tenant", "matrix", "told"),
    [
        (
            'latency_target = "1ms"',
            'scheduler = ["none", "isoblk"]',
            "s.toml:5: tenant[0].latency_target: none, isoblk have no latency targets;"
            " remove it, or add io.latency to scheduler",
        ),
        (
            "",
            '"tenant.*.latency_target" = [0, "1ms"]\nscheduler = ["isoblk"]',
            "s.toml:7: matrix.tenant.*.latency_target: isoblk has no latency targets;"
            " remove it, or add io.latency to scheduler",
        ),
    ],
)
def test_a_latency_target_that_no_scheduler_takes_is_refused(
    tenant: str, matrix: str, told: str
) -> None:
    text = f'{HEAD}[[tenant]]\nname = "a"\n{tenant}\n[matrix]\n{matrix}\n'
    with pytest.raises(UserError) as caught:
        parse_study(text, "s.toml")
    assert str(caught.value) == told


def test_caps_are_the_weights_shares_of_the_total() -> None:
    text = 'scheduler = "io.max"\nio_max = { scale = 0.5 }\n'
    spec = shares(runs_of(HEAD + text + TENANTS))[0].spec
    assert spec.scheduler.io_max is None
    caps = resolve(spec, None, (1_850_000, 0)).scheduler.io_max
    # Nothing was written: no cap on writes.
    assert caps == {"t1": (500_000, 0), "t2": (250_000, 0), "t3": (125_000, 0), "t4": (50_000, 0)}


def test_a_cap_is_never_nothing() -> None:
    spec = shares(runs_of(HEAD + 'scheduler = "io.max"\n' + TENANTS))[0].spec
    caps = resolve(spec, None, (1, 1)).scheduler.io_max
    assert caps is not None
    assert set(caps.values()) == {(1, 1)}


def test_a_calibration_becomes_the_model() -> None:
    spec = shares(runs_of(HEAD + 'scheduler = "io.cost"\n' + TENANTS))[0].spec
    assert spec.scheduler.io_cost_model is None
    measured = {name: 10 + place for place, name in enumerate(MODEL)}
    assert resolve(spec, measured, None).scheduler.io_cost_model == measured
    with pytest.raises(ValueError, match="six coefficients"):
        resolve(spec, {"rbps": 1}, None)


def test_io_max_without_totals_is_refused() -> None:
    spec = shares(runs_of(HEAD + 'scheduler = "io.max"\n' + TENANTS))[0].spec
    with pytest.raises(ValueError, match="totals"):
        resolve(spec, None, None)


# ---- shares by weight ----------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "d"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
weights = st.integers(1, 10_000)


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[Tenant], list[Group]]:
    """Tenants in leaves of a tree of cgroups, and its inner cgroups."""
    leaves = draw(st.lists(paths, min_size=1, max_size=8, unique=True))
    leaves = [p for p in leaves if not any(q.startswith(p + "/") for q in leaves)]
    inner: set[str] = set()
    for leaf in leaves:
        path = parent_of(leaf)
        while path:
            inner.add(path)
            path = parent_of(path)
    tenants = [
        Tenant(name=f"t{i}", cgroup=leaf, weight=draw(weights), workload=Workload())
        for i, leaf in enumerate(leaves)
    ]
    ordered = sorted(inner, key=lambda path: (path.count("/"), path))
    return tenants, [Group(path=path, weight=draw(weights)) for path in ordered]


@given(hierarchies())
def test_effective_shares_add_up_to_one(tree: tuple[list[Tenant], list[Group]]) -> None:
    got = effective_shares(*tree)
    assert set(got) == {tenant.name for tenant in tree[0]}
    assert math.isclose(sum(got.values()), 1, rel_tol=1e-12)
    assert min(got.values()) > 0


@given(hierarchies())
def test_siblings_divide_as_their_weights(tree: tuple[list[Tenant], list[Group]]) -> None:
    tenants, groups = tree
    got = effective_shares(tenants, groups)
    for one in tenants:
        for other in tenants:
            if parent_of(one.cgroup) == parent_of(other.cgroup):
                assert math.isclose(
                    got[one.name] * other.weight, got[other.name] * one.weight, rel_tol=1e-9
                )


@given(hierarchies(), st.integers(2, 5))
def test_only_the_ratio_of_weights_matters(
    tree: tuple[list[Tenant], list[Group]], factor: int
) -> None:
    tenants, groups = tree
    scaled = [
        Tenant(name=t.name, cgroup=t.cgroup, weight=t.weight * factor, workload=t.workload)
        for t in tenants
    ]
    larger = [Group(path=g.path, weight=g.weight * factor) for g in groups]
    got, expected = effective_shares(scaled, larger), effective_shares(tenants, groups)
    assert all(math.isclose(got[name], expected[name], rel_tol=1e-12) for name in expected)


def test_a_cgroups_own_requests_are_as_one_more_child_of_weight_100() -> None:
    tenants = [
        Tenant(name=name, cgroup=path, weight=weight, workload=Workload())
        for name, path, weight in (
            ("own", "p", 800),
            ("a", "p/a", 300),
            ("b", "p/b", 100),
            ("leaf", "leaf", 200),
        )
    ]
    got = effective_shares(tenants, [Group(path="p", weight=800)])
    assert got == pytest.approx({"own": 0.16, "a": 0.48, "b": 0.16, "leaf": 0.2})


def test_the_children_of_a_group_divide_the_share_of_the_group() -> None:
    tenants = [
        Tenant(name="a", cgroup="x/a", weight=300, workload=Workload()),
        Tenant(name="b", cgroup="x/b", weight=100, workload=Workload()),
        Tenant(name="c", cgroup="c", weight=100, workload=Workload()),
    ]
    got = effective_shares(tenants, [Group(path="x", weight=400)])
    assert got == pytest.approx({"a": 0.6, "b": 0.2, "c": 0.2})


@given(
    st.lists(weights, min_size=1, max_size=6),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.floats(0.01, 4),
)
def test_caps_add_up_to_the_scaled_total(
    given_weights: list[int], read: int, write: int, scale: float
) -> None:
    tenants = "".join(
        f'[[tenant]]\nname = "t{i}"\nweight = {weight}\n' for i, weight in enumerate(given_weights)
    )
    text = f'{HEAD}scheduler = "io.max"\nio_max = {{ scale = {scale!r} }}\n{tenants}'
    spec = shares(runs_of(text))[0].spec
    caps = resolve(spec, None, (read, write)).scheduler.io_max
    assert caps is not None
    for way, total in enumerate((read, write)):
        summed = sum(cap[way] for cap in caps.values())
        # Each cap is rounded, and is 1 at least.
        assert summed == pytest.approx(total * scale, rel=1e-9, abs=len(given_weights))


# ---- devices and metrics -------------------------------------------------------------


def test_the_reference_devices_are_those_of_the_design() -> None:
    fast, nand, prototype = (load_device(name) for name in ("fast", "nand", "prototype"))
    assert isinstance(fast, VdiskDevice)
    assert (fast.servers, fast.read_ns, fast.write_ns, fast.queue_depth) == (
        16,
        20_000,
        20_000,
        1023,
    )
    assert isinstance(nand, VdiskDevice)
    assert (nand.servers, nand.read_ns, nand.queue_depth) == (64, 80_000, 1023)
    assert prototype == NullBlkDevice(
        size=4 << 30, blocksize=512, completion_nsec=80_000, hw_queue_depth=64
    )


def test_a_table_changes_a_preset() -> None:
    device = load_device({"preset": "fast", "servers": 4, "size": "1g", "read_ns": "1ms"})
    assert isinstance(device, VdiskDevice)
    assert (device.servers, device.size, device.read_ns) == (4, 1 << 30, 1_000_000)
    assert device.write_ns == 20_000


def test_a_device_without_a_file_names_the_field() -> None:
    with pytest.raises(UserError, match=r"^device: unknown preset '980'; .*'980pro-1t'"):
        load_device("980")


@pytest.mark.parametrize("metric", NAMES)
def test_every_metric_can_be_asked_for(metric: str) -> None:
    name = metric.replace("<tenant>", "web.1")
    tenant = "web.1" if name != metric else None
    assert split_metric(name, ["web.1"]) == (metric, tenant)


@pytest.mark.parametrize("name", ["", "share", "share.", "share.x", "jain.web", "share.<tenant>"])
def test_a_name_that_is_not_a_metric_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="metric"):
        split_metric(name, ["web"])


@pytest.mark.parametrize("where", ["own", "shared"])
def test_offset_increment_sets_the_tenants_of_a_count_apart(where: str) -> None:
    step = 'offset_increment = "64m"\n'
    own, shared = (step, "") if where == "own" else ("", "[workload]\n" + step)
    text = HEAD + shared + TENANTS + 'offset = "1m"\nsize = "64m"\n' + own
    loads = [tenant.workload for tenant in shares(runs_of(text))[0].spec.tenants]
    assert [load.offset >> 20 for load in loads] == [1, 65, 129, 193]
    assert {load.size for load in loads} == {64 << 20}


def test_a_tenant_that_is_set_too_far_apart_is_refused() -> None:
    text = HEAD + TENANTS + 'size = "1g"\noffset_increment = "1g"\ncount = 5\n'
    with pytest.raises(UserError, match="the device has 4g"):
        runs_of(text.replace("count = 4\n", ""))


@pytest.mark.parametrize(("device", "runs"), [("fast", 1), ("wd10ezex", 4)])
def test_tenants_set_apart_are_alike_alone_but_on_a_hard_disk(device: str, runs: int) -> None:
    step = 'size = "64m"\noffset_increment = "64m"\n'
    got = kinds(runs_of(HEAD.replace("fast", device) + TENANTS + step))
    assert got["alone"] == runs


# -- keys that are about one scheduler --

ONE_OF_FOUR = """
name = "s"
device = "fast"
[[tenant]]
name = "t"
[matrix]
scheduler = ["none", "bfq", "kyber-fair", "io.cost"]
"iosched.kyber-fair.round_us" = [500, 1000, 2000]
"io_cost.qos.max" = [80, 90]
"tenant.t.iodepth" = [1, 8]
"""


def _shares(text: str) -> list[dict[str, str]]:
    return [
        dict(run.spec.point)
        for run in expand(parse_study(text, "s.toml")).runs
        if run.spec.kind == "share"
    ]


def test_a_key_about_one_scheduler_multiplies_only_its_runs() -> None:
    made = _shares(ONE_OF_FOUR)
    counts = Counter(point["scheduler"] for point in made)
    assert counts == {"none": 2, "bfq": 2, "kyber-fair": 6, "io.cost": 4}
    assert all(
        ("iosched.kyber-fair.round_us" in point) == (point["scheduler"] == "kyber-fair")
        and ("io_cost.qos.max" in point) == (point["scheduler"] == "io.cost")
        for point in made
    )


def test_no_two_points_are_one_run() -> None:
    runs = expand(parse_study(ONE_OF_FOUR, "s.toml")).runs
    specs = [
        msgspec.json.encode(msgspec.structs.replace(run.spec, point={}))
        for run in runs
        if run.spec.kind == "share"
    ]
    assert len(set(specs)) == len(specs)


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ('[matrix]\n"iosched.bfq.slice_idle" = [0, 8]', "no run is under bfq"),
        (
            '[matrix]\nscheduler = ["none", "bfq"]\n"iosched.bfq.slice_idle" = [0, 8]\n[[claim]]\n'
            'text = "t"\nsource = "s"\nmetric = "total_iops"\nop = ">"\nvalue = 1\n'
            'where = { scheduler = "none", "iosched.bfq.slice_idle" = 8 }',
            "has no meaning under none",
        ),
        (
            '[matrix]\nscheduler = ["none", "bfq"]\n"iosched.bfq.slice_idle" = [0, 8]\n[[claim]]\n'
            'text = "t"\nsource = "s"\nmetric = "total_iops"\nop = ">"\nvalue = 1\n'
            'where = { scheduler = "none" }\nthan = { scheduler = "bfq" }',
            "does not say which run under bfq",
        ),
    ],
)
def test_a_key_about_a_scheduler_that_is_not_there_is_refused(more: str, cause: str) -> None:
    text = f'name = "s"\ndevice = "fast"\n[[tenant]]\nname = "t"\n{more}\n'
    with pytest.raises(UserError, match=cause) as caught:
        parse_study(text, "s.toml")
    assert "\n" not in str(caught.value)


CLAIM = '[[claim]]\ntext = "c"\nsource = "s"\nmetric = "{}"\nop = "<="\nvalue = 0.1\n'
DEEP = TENANTS + "iodepth = 32\n"


def test_service_needs_each_load_at_full_speed_but_only_if_it_is_asked_for() -> None:
    text = HEAD + DEEP + '[matrix]\nscheduler = ["none", "bfq"]\n'
    assert all(not run.full for run in runs_of(text).runs)
    expansion = runs_of(text + CLAIM.format("service_error"))
    for run in shares(expansion):
        assert len(run.full) == 4
        (load,) = {expansion.runs[i].spec.tenants[0].workload.iodepth for i in run.full}
        assert load == 128
    # A tenant that is at full speed already is not run again.
    again = runs_of((text + CLAIM.format("service_error")).replace("= 32", "= 256"))
    assert all(run.full == run.alone for run in shares(again))


def test_full_speed_is_without_pauses() -> None:
    paced = DEEP + "rate_iops = 500\nthinktime = 10\n"
    expansion = runs_of(HEAD + paced + CLAIM.format("service_error"))
    for run in shares(expansion):
        load = expansion.runs[run.full[0]].spec.tenants[0].workload
        assert (load.rate_iops, load.thinktime_ns) == (0, 0)


def test_the_bound_of_exact_shares_is_where_the_heaviest_has_all_it_sends() -> None:
    """32 of N requests are to be 1000 of 1850 parts."""
    text = HEAD + DEEP + '[matrix]\nscheduler = ["bfq"]\n'
    assert all(run.bound is None for run in runs_of(text).runs)
    expansion = runs_of(text + CLAIM.format("lost"))
    (run,) = shares(expansion)
    assert run.bound is not None
    assert expansion.runs[run.bound].spec.tenants[0].workload.iodepth == 59


@pytest.mark.parametrize("what", ['rw = "rw"', "rate_iops = 100", "thinktime = 10"])
def test_there_is_no_such_bound_for_mixed_rate_limited_or_pausing_loads(what: str) -> None:
    (run,) = shares(runs_of(HEAD + DEEP + what + "\n" + CLAIM.format("lost")))
    assert run.bound is None


@pytest.mark.parametrize(("iodepth", "depths"), [(32, [32, 16, 8, 3]), (4, [4, 2, 1, 1])])
def test_streams_have_the_bound_of_all_of_them_with_their_parts(
    iodepth: int, depths: list[int]
) -> None:
    text = HEAD + DEEP.replace("iodepth = 32", f"iodepth = {iodepth}") + 'rw = "read"\n'
    expansion = runs_of(text + '[matrix]\nscheduler = ["bfq", "kyber"]\n' + CLAIM.format("lost"))
    (bound,) = {run.bound for run in shares(expansion)}
    assert bound is not None
    spec = expansion.runs[bound].spec
    assert spec.scheduler.name == "none"
    assert [one.workload.iodepth for one in spec.tenants] == depths


def test_streams_of_several_processes_have_no_such_bound() -> None:
    (run,) = shares(runs_of(HEAD + DEEP + 'rw = "read"\nnumjobs = 2\n' + CLAIM.format("lost")))
    assert run.bound is None


def test_there_is_no_such_bound_for_unlike_loads() -> None:
    other = '[[tenant]]\nname = "o"\nbs = "64k"\niodepth = 32\n'
    (run,) = shares(runs_of(HEAD + DEEP + other + CLAIM.format("lost")))
    assert run.bound is None

# SPDX-License-Identifier: GPL-2.0-only
"""The interface of the schedulers to a user: weights, figures, attributes, modules.

Every guest's console must be clean; lifetimes are tested on the kernel with KASAN and lockdep
as well.
"""

import errno
import re
from pathlib import Path

import pytest

from isoblk.run.spec import CgroupVersion
from tests.kernels import On
from tests.lab.guest import Guest, program
from tests.lab.load import (
    BLKLOAD,
    CGROUP,
    EINVAL,
    ERANGE,
    START,
    STATS,
    STOP,
    WAIT,
    Load,
    Value,
    nullb,
    numbers,
    results,
    run,
    save,
    tenant,
    text,
    vdisk,
)
from tests.lab.share import (
    ALL,
    ELEVATORS,
    EXACT,
    LEFT,
    UNLOAD,
    WEIGHT,
    Quiet,
    group,
    io_stats,
    keep,
    number,
    sched,
    use,
)

ENODEV, EOPNOTSUPP = text(errno.ENODEV), text(errno.EOPNOTSUPP)
VERSIONS: tuple[CgroupVersion, ...] = ("v2", "v1")
SAID = "/run/isoblk/said"
IOSCHED = "/sys/block/disk0/queue/iosched"
DISK_STAT = "/sys/block/disk0/stat"


@pytest.fixture
def quiet(any_guest: Guest) -> Quiet:
    """Each of the two kernels."""
    return Quiet(any_guest)


@pytest.fixture(params=[On.NEWEST, On.DEBUG])
def careful(request: pytest.FixtureRequest, tmp_path: Path) -> Quiet:
    """The newest kernel, and the one that notices bad memory accesses and bad locking."""
    return Quiet(Guest(request.getfixturevalue(f"{request.param}_bench"), tmp_path))


@pytest.fixture(params=[On.DEFAULT, On.NEWEST, On.DEBUG])
def every(request: pytest.FixtureRequest, tmp_path: Path) -> Quiet:
    """Both kernels, and the one that notices more: what the kernel asks differs between them."""
    return Quiet(Guest(request.getfixturevalue(f"{request.param}_bench"), tmp_path))


# -- weights --


@pytest.mark.parametrize("version", VERSIONS)
def test_a_weight_reads_back_as_it_may_be_written(quiet: Quiet, version: CgroupVersion) -> None:
    file = f"{CGROUP}/a/{WEIGHT[version]}"
    steps = {
        "new": "true",
        "plain": f"echo 250 > {file}",
        "named": f"echo default 10000 > {file}",
        "spaces": f"printf '  default   1 \\n' > {file}",
        "disk": f'echo "{number()} 7" > {file}',
        "two": f'echo "{number("disk1")} 10000" > {file}',
        "other": f"echo 500 > {file}",
        "back": f'echo "{number()} default" > {file}',
        "again": f'echo "{number()}  300 " > {file}',
        "unset": f"echo default > {file}",
    }
    left = quiet.run(
        vdisk("disk0"),
        vdisk("disk1"),
        use("kyber-fair"),
        use("feedbac", "disk1"),
        f"echo {number()} {number('disk1')} > /run/isoblk/disks",
        group("/a", version),
        *(f"{step}; cat {file} > /run/isoblk/{label}" for label, step in steps.items()),
        cgroup=version,
    )
    disk0, disk1 = left.read("disks").split()
    assert {label: sorted(left.read(label).splitlines()) for label in steps} == {
        "new": ["default 100"],
        "plain": ["default 250"],
        "named": ["default 10000"],
        "spaces": ["default 1"],
        "disk": [f"{disk0} 7", "default 1"],
        "two": [f"{disk0} 7", f"{disk1} 10000", "default 1"],
        "other": [f"{disk0} 7", f"{disk1} 10000", "default 500"],
        "back": [f"{disk1} 10000", "default 500"],
        "again": [f"{disk0} 300", f"{disk1} 10000", "default 500"],
        "unset": [f"{disk0} 300", f"{disk1} 10000", "default 100"],
    }
    assert all(left.read(label).startswith("default ") for label in steps)


BAD_WEIGHTS = {
    "0": ERANGE,
    "10001": ERANGE,
    "99999999999999999999": ERANGE,
    "-1": EINVAL,
    "1.5": EINVAL,
    "0x10": EINVAL,
    "heavy": EINVAL,
    "": EINVAL,
    "100 200": EINVAL,
    "100 x": EINVAL,
    "default 0": ERANGE,
    "default 10001": ERANGE,
    "default100": EINVAL,
    "default x": EINVAL,
    "default 100 x": EINVAL,
    "default default": EINVAL,
    "DISK": EINVAL,
    "DISK ": EINVAL,
    "DISK 0": ERANGE,
    "DISK 10001": ERANGE,
    "DISK -1": EINVAL,
    "DISK x": EINVAL,
    "DISK 100 x": EINVAL,
    "DISK default x": EINVAL,
    "DISK:0 100": EINVAL,
    "disk0 100": EINVAL,
    "a:b 100": EINVAL,
    ": 100": EINVAL,
    "9999:0 100": ENODEV,
    # Under the kernel's own scheduler: there is nothing to set.
    "OTHER 100": EOPNOTSUPP,
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bad_weight_is_refused_and_changes_nothing(quiet: Quiet, version: CgroupVersion) -> None:
    file = f"{CGROUP}/a/{WEIGHT[version]}"
    written = [
        bad.replace("DISK", number()).replace("OTHER", number("disk1")) for bad in BAD_WEIGHTS
    ]
    left = quiet.run(
        vdisk("disk0"),
        vdisk("disk1"),
        use("feedbac"),
        use("bfq", "disk1"),
        group("/a", version),
        f'echo 300 > {file}; echo "{number()} 200" > {file}; cat {file} > /run/isoblk/before',
        *(f'put "{bad}" {file} >> {SAID}; cat {file} >> /run/isoblk/after' for bad in written),
        cgroup=version,
    )
    assert dict(zip(BAD_WEIGHTS, left.read("said").splitlines(), strict=True)) == BAD_WEIGHTS
    assert left.read("before").splitlines()[0] == "default 300"
    assert left.read("before").splitlines()[1].endswith(" 200")
    assert left.read("after") == left.read("before") * len(BAD_WEIGHTS)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_root_has_no_weight(quiet: Quiet, version: CgroupVersion) -> None:
    left = quiet.run(
        vdisk(),
        use("kyber-fair"),
        group("/a", version),
        f"ls {CGROUP} {CGROUP}/a > /run/isoblk/names",
        cgroup=version,
    )
    root, _, child = left.read("names").partition(f"{CGROUP}/a:")
    assert WEIGHT[version] not in root
    assert WEIGHT[version] in child


def test_a_weight_outlives_the_scheduler_but_a_disks_own_does_not(quiet: Quiet) -> None:
    file = f"{CGROUP}/a/{WEIGHT['v2']}"
    left = quiet.run(
        vdisk(),
        group("/a"),
        f"echo 300 > {file}",
        use("kyber-fair"),
        f'echo "{number()} 200" > {file}',
        use("none"),
        keep(file, "weight"),
        f'put "{number()} 200" {file} > {SAID}',
        use("feedbac"),
        tenant("a", cgroup="/a", number_ios=1),
        run("results"),
        keep(file, "weight"),
        keep(f"{sched()}/groups", "groups"),
    )
    assert left.read("weight").splitlines() == ["default 300"] * 2
    assert left.read("said") == EOPNOTSUPP + "\n"
    assert "/a weight 300 " in left.read("groups")


# -- figures --

# On a disk with one server and a depth of 1 what follows merges while it waits.
LOADS: dict[str, Load] = {
    "reads": {"rw": "randread", "iodepth": 16},
    "writes": {"rw": "randwrite", "iodepth": 16, "bs": "64k"},
    "mixed": {"rw": "randrw", "iodepth": 8, "bsrange": "512-8k"},
    "trims": {"rw": "randtrim", "iodepth": 4, "bs": "32k"},
    "merges": {"rw": "write", "iodepth": 32, "bs": 512},
    "read-merges": {"rw": "read", "iodepth": 32, "bs": 512},
    "large": {"rw": "read", "bs": "4m"},  # split into requests by the block layer
}
FLUSHES: dict[str, Load] = {
    "flush": {"rw": "randwrite", "iodepth": 8, "fsync": 3},
    "fua": {"rw": "randwrite", "iodepth": 8, "fua": 1},
    "both": {"rw": "write", "iodepth": 16, "fua": 1, "fsync": 4},
}
CACHES: dict[str, dict[str, Value]] = {"nullb0": {"cache_size": 1}, "nullb1": {"fua": 1}}


def _dd(path: str, arguments: str) -> str:
    return f"sh -c 'echo $$ > {CGROUP}{path}/cgroup.procs; exec dd {arguments} status=none'; sync"


# So that what follows one another waits, and merges: the disk has one request, and tags are many.
_ONE_AT_A_TIME = vdisk(servers=1, queue_depth=1)
_MANY_TAGS = "echo 256 > /sys/block/disk0/queue/nr_requests"


@pytest.mark.parametrize("elevator", EXACT)
def test_groups_are_charged_exactly_the_bytes_they_send(quiet: Quiet, elevator: str) -> None:
    tenants = {name: load | {"device": "/dev/disk0"} for name, load in LOADS.items()}
    for disk in CACHES:
        tenants |= {f"{disk}-{n}": load | {"device": f"/dev/{disk}"} for n, load in FLUSHES.items()}
    names = [*tenants, "dd"]
    left = quiet.run(
        _ONE_AT_A_TIME,
        *(nullb(disk, **{"cache_size": 1, **values}) for disk, values in CACHES.items()),
        *(use(elevator, disk) for disk in ("disk0", *CACHES)),
        _MANY_TAGS,
        *(group(f"/{name}") for name in names),
        # A group below its share is served first, request by request.
        f"echo 1 > {CGROUP}/merges/{WEIGHT['v2']}",
        f"cat {DISK_STAT} > /run/isoblk/before",
        *(
            tenant(name, cgroup=f"/{name}", number_ios=300, **load)
            for name, load in tenants.items()
        ),
        run("results"),
        _dd("/dd", "if=/dev/disk0 of=/dev/null bs=4k count=500"),
        # The kernel shows its own figures only of a group that has read or written.
        _dd("/trims", "if=/dev/disk0 of=/dev/null bs=4k count=1 iflag=direct"),
        _dd("/dd", "if=/dev/zero of=/dev/nullb0 bs=4k count=500 conv=fsync"),
        f"cat {DISK_STAT} > /run/isoblk/after; cat {STATS}/disk0/stats > /run/isoblk/disk0",
        f"echo {number()} > /run/isoblk/number",
        *(keep(f"{CGROUP}/{name}/io.stat", name) for name in names),
        keep(f"{CGROUP}/io.stat", "root"),
        memory_mib=768,
    )
    charged = {name: io_stats(left.read(name)) for name in names}
    for name, devices in charged.items():
        for stat in devices.values():
            moved = sum(stat.get(kind, 0) for kind in ("rbytes", "wbytes", "dbytes"))
            assert stat["isoblk.used"] == moved, name
            assert set(LEFT[elevator]) <= set(stat), name
    for name, done in results(left, "results").items():
        (stat,) = charged[name].values()
        sent = sum(op.bytes for op in done.ops.values()) + 4096 * (name == "trims")
        assert stat["isoblk.used"] == sent, name
    assert sum(stat["isoblk.used"] for stat in charged["dd"].values()) >= 500 * 4096

    # The charge on the disk, that of the root included, equals the bytes sent to the disk.
    disk0 = left.read("number").strip()
    used = sum(stat[disk0]["isoblk.used"] for stat in charged.values() if disk0 in stat)
    used += io_stats(left.read("root"))[disk0]["isoblk.used"]
    before, after = (list(map(int, left.read(when).split())) for when in ("before", "after"))
    assert used == 512 * sum(after[i] - before[i] for i in (2, 6, 13))  # read, written, discarded
    # 900 reads and 300 writes were sent alone, as many again in sequence.
    done_by_disk = numbers(left.read("disk0"))
    assert done_by_disk["write_requests"] < 300 + 150 + 300, "nothing was merged"


@pytest.mark.parametrize("elevator", EXACT)
def test_a_stream_merges_whatever_its_group_sent_before(quiet: Quiet, elevator: str) -> None:
    """For a group with scattered requests merges are tried less; a later stream is noticed."""
    load: Load = {"cgroup": "/a", "iodepth": 32, "bs": 512, "number_ios": 400}
    left = quiet.run(
        _ONE_AT_A_TIME,
        use(elevator),
        _MANY_TAGS,
        group("/a"),
        tenant("random", rw="randwrite", **load),
        run("random"),
        f"rmdir {BLKLOAD}/random; cat {STATS}/disk0/stats > /run/isoblk/before",
        tenant("stream", rw="write", **load),
        run("stream"),
        f"cat {STATS}/disk0/stats > /run/isoblk/after",
    )
    before, after = (numbers(left.read(when))["write_requests"] for when in ("before", "after"))
    assert after - before < 300, "it was not merged"


# isoblk and cfq each have their own list of active groups.
@pytest.mark.long
@pytest.mark.parametrize("elevator", ["isoblk", "cfq"])
def test_ten_thousand_cgroups_come_and_go_under_load(quiet: Quiet, elevator: str) -> None:
    busy: Load = {"iodepth": 16, "runtime": 1000}
    left = quiet.run(
        vdisk(),
        use(elevator),
        *(group(f"/{rw}") for rw in ("randread", "randwrite")),
        *(tenant(rw, cgroup=f"/{rw}", rw=rw, **busy) for rw in ("randread", "randwrite")),
        START,
        program("come_and_go", "/dev/disk0", "10000", to=SAID),
        f"{STOP}; {WAIT}; sleep 3; grep nr_dying_descendants {CGROUP}/cgroup.stat >> {SAID}",
    )
    # No reference to one of them is kept.
    assert left.read("said") == "10000\nnr_dying_descendants 0\n"


@pytest.mark.parametrize("elevator", EXACT)
def test_cgroup_v1_has_the_figures_by_operation(quiet: Quiet, elevator: str) -> None:
    left = quiet.run(
        vdisk(),
        use(elevator),
        group("/a", "v1"),
        group("/a/b", "v1"),
        tenant("t", cgroup="/a/b", rw="randrw", iodepth=8, bs=8192, number_ios=500),
        tenant("u", cgroup="/a/b", rw="randtrim", bs=8192, number_ios=50),
        run("results"),
        f"echo {number()} > /run/isoblk/number",
        keep(f"{CGROUP}/a/b/blkio.isoblk.io_service_bytes", "bytes"),
        keep(f"{CGROUP}/a/b/blkio.isoblk.io_serviced", "ios"),
        keep(f"{CGROUP}/a/blkio.isoblk.io_serviced", "parent"),
        cgroup="v1",
    )
    done = results(left, "results")
    ops = done["t"].ops | done["u"].ops
    disk = left.read("number").strip()
    for label, unit in (("ios", 1), ("bytes", 8192)):
        counts = {
            name: unit * ops[op].ios
            for name, op in (("Read", "read"), ("Write", "write"), ("Discard", "trim"))
        }
        lines = [f"{disk} {name} {count}" for name, count in counts.items()]
        total = sum(counts.values())
        assert left.read(label).splitlines() == [*lines, f"{disk} Total {total}", f"Total {total}"]
    assert left.read("parent").splitlines()[-1] == "Total 0", "a parent is not charged"


def test_time_in_the_elevator_is_counted(quiet: Quiet) -> None:
    left = quiet.run(
        vdisk(),
        use("kyber-fair"),
        *(group(f"/{name}") for name in ("heavy", "light")),
        f"echo 1000 > {CGROUP}/heavy/{WEIGHT['v2']}",
        *(
            tenant(name, cgroup=f"/{name}", rw="randread", iodepth=32, runtime="300ms")
            for name in ("heavy", "light")
        ),
        run("results"),
        *(keep(f"{CGROUP}/{name}/io.stat", name) for name in ("heavy", "light")),
    )
    (heavy,), (light,) = (io_stats(left.read(name)).values() for name in ("heavy", "light"))
    # 32 requests of each are under way for 0.3 s, the light one's waiting for most of it.
    assert heavy["isoblk.wait_us"] < light["isoblk.wait_us"] < 32 * 300_000
    assert light["isoblk.wait_us"] > 32 * 100_000


@pytest.mark.parametrize("elevator", ALL)
def test_tenants_of_one_submitting_thread_wait_for_no_one_elses_requests(
    quiet: Quiet, elevator: str
) -> None:
    """A bio at the gate whose group has nothing beyond it is not forgotten there.

    Each tenant has more to send than there are tags. The thread's plug holds requests of both,
    and counts for the one whose bio comes.
    """
    names = ("heavy", "light")
    left = quiet.run(
        vdisk(servers=16),
        use(elevator),
        "echo 64 > /sys/block/disk0/queue/nr_requests",
        *(group(f"/{name}") for name in names),
        f"echo 1000 > {CGROUP}/heavy/{WEIGHT['v2']}; echo 10 > {CGROUP}/light/{WEIGHT['v2']}",
        *(
            tenant(name, cgroup=f"/{name}", rw="randread", iodepth=128, relay=1, number_ios=number)
            for name, number in zip(names, (20_000, 2_000), strict=True)
        ),
        run("results"),
    )
    ended = {name: done.ops["read"].ios for name, done in results(left, "results").items()}
    assert ended == {"heavy": 20_000, "light": 2_000}


# -- attributes --

# Default, values that are taken, values that are not and why.
Attribute = tuple[str, list[str], dict[str, str]]
NUMBERS_ONLY = {"": EINVAL, "x": EINVAL, "-1": EINVAL, "1 x": EINVAL, 30 * "9": ERANGE}
FROM_1 = NUMBERS_ONLY | {"0": ERANGE}
NOT_BOOLEAN = {"": EINVAL, "x": EINVAL, "2": EINVAL}
COMMON: dict[str, Attribute] = {
    "window": (
        "auto",
        ["off", "4", "1073741823", "auto"],
        {"": EINVAL, "x": EINVAL, "0": ERANGE, "-1": EINVAL, "1073741824": ERANGE},
    ),
    "gate": ("1", ["0", "1"], NOT_BOOLEAN),
}
PAPER: dict[str, Attribute] = {
    "gate": COMMON["gate"],
    "paper_mode": ("0", ["1", "0"], NOT_BOOLEAN),
}
MINUTE = str(60 * 10**9)
ATTRIBUTES: dict[str, dict[str, Attribute]] = {
    "kyber-fair": PAPER
    | {
        "read_lat_nsec": (
            "2000000",
            ["1", MINUTE],
            NUMBERS_ONLY | {"0": ERANGE, MINUTE[:-1] + "1": ERANGE},
        ),
        "write_lat_nsec": (
            "10000000",
            ["1", MINUTE],
            NUMBERS_ONLY | {"0": ERANGE, MINUTE[:-1] + "1": ERANGE},
        ),
        "refill_ms": ("100", ["1", "10000"], NUMBERS_ONLY | {"0": ERANGE, "10001": ERANGE}),
        "round_us": ("1000", ["100", "1000000"], NUMBERS_ONLY | {"99": ERANGE, "1000001": ERANGE}),
    },
    "feedbac": PAPER
    | {
        "alloc_us": ("1000", ["100", "1000000"], NUMBERS_ONLY | {"99": ERANGE, "1000001": ERANGE}),
        "predict_ms": ("100", ["10", "10000"], NUMBERS_ONLY | {"9": ERANGE, "10001": ERANGE}),
        # Within each other's.
        "a_min": ("200", ["16", "800", "200"], NUMBERS_ONLY | {"15": ERANGE, "801": ERANGE}),
        "a_max": ("800", ["200", "900"], NUMBERS_ONLY | {"199": ERANGE, "901": ERANGE}),
    },
    "isoblk": {
        "window": COMMON["window"],
        "hold_us": ("200", ["1", "10000000"], FROM_1 | {"10000001": ERANGE}),
        "idle_us": ("100", ["0", "1000000"], NUMBERS_ONLY | {"1000001": ERANGE}),
        "max_loss": ("100", ["0", "1000"], NUMBERS_ONLY | {"1001": ERANGE}),
        "merge_kb": ("128", ["4", "2097151"], NUMBERS_ONLY | {"3": ERANGE, "2097152": ERANGE}),
        "gate": COMMON["gate"],
    },
    "cfq": {
        "quantum": ("8", ["1", "4096"], FROM_1 | {"4097": ERANGE}),
        "back_seek_max": ("16384", ["0", "4294967295"], NUMBERS_ONLY | {"4294967296": ERANGE}),
        "back_seek_penalty": ("2", ["1", "1000"], FROM_1 | {"1001": ERANGE}),
        "slice_async_rq": ("2", ["1", "4096"], FROM_1 | {"4097": ERANGE}),
        "low_latency": ("1", ["0", "1"], NUMBERS_ONLY | {"2": ERANGE}),
    }
    | {
        name: (default, ["1", "10000"], FROM_1 | {"10001": ERANGE})
        for name, default in (
            ("fifo_expire_sync", "125"),
            ("fifo_expire_async", "250"),
            ("slice_sync", "100"),
            ("slice_async", "40"),
            ("target_latency", "300"),
        )
    }
    | {
        # The disk does not seek: no process is waited for.
        name: (default, ["0", "10000"], NUMBERS_ONLY | {"10001": ERANGE})
        for name, default in (("slice_idle", "0"), ("group_idle", "8"))
    }
    | {"gate": COMMON["gate"]},
}
# Attributes that read as more than one word, which tests of their own write.
OF_SEVERAL_WORDS = {"isoblk": ("cost_model",)}


@pytest.mark.parametrize("elevator", ALL)
def test_attributes_accept_allowed_values_and_refuse_others(quiet: Quiet, elevator: str) -> None:
    attributes = ATTRIBUTES[elevator]
    lines = [vdisk(), use(elevator), f"ls {IOSCHED} > /run/isoblk/names"]
    lines += [keep(f"{IOSCHED}/{name}", "defaults") for name in attributes]
    for name, (_, good, bad) in attributes.items():
        file = f"{IOSCHED}/{name}"
        for value in good:
            lines.append(f"put '{value}' {file} >> {SAID}; cat {file} >> {SAID}")
        for value in bad:
            lines.append(f"put '{value}' {file} >> {SAID}; cat {file} >> {SAID}")
    # Written values end with the scheduler.
    lines += [use("none"), use(elevator)]
    lines += [keep(f"{IOSCHED}/{name}", "afresh") for name in attributes]
    left = quiet.run(*lines)

    assert left.read("names").split() == sorted([*attributes, *OF_SEVERAL_WORDS.get(elevator, ())])
    defaults = [default for default, _, _ in attributes.values()]
    assert left.read("defaults").split() == defaults
    assert left.read("afresh").split() == defaults
    expected = []
    for name, (_, good, bad) in attributes.items():
        expected += [(name, value, "ok", value) for value in good]
        expected += [(name, value, why, good[-1]) for value, why in bad.items()]
    said = left.read("said").splitlines()
    found = [
        (name, value, *said[2 * i : 2 * i + 2]) for i, (name, value, _, _) in enumerate(expected)
    ]
    assert found == expected
    assert len(said) == 2 * len(expected)


SIX = {
    **{"rbps": "500000000", "rseqiops": "90000", "rrandiops": "80000"},
    **{"wbps": "400000000", "wseqiops": "70000", "wrandiops": "60000"},
}


def _line(coefficients: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in coefficients.items())


BAD_MODELS = (
    *("", "x", "user", "ctrl=user", "rbps", "rbps="),
    *(_line({name: SIX[name] for name in SIX if name != left}) for left in SIX),
    *(_line(SIX | {"rbps": value}) for value in ("0", "-1", "x", "1.5", 30 * "9")),
    _line(SIX) + " ratiops=1",
)


def test_the_cost_model_is_auto_bytes_or_six_coefficients(quiet: Quiet) -> None:
    file = f"{IOSCHED}/cost_model"
    left = quiet.run(
        vdisk(),
        use("isoblk"),
        keep(file, "auto"),
        f"echo bytes > {file}; cat {file} > /run/isoblk/bytes",
        f"echo '{_line(SIX)}' > {file}; cat {file} > /run/isoblk/user",
        *(f"put '{bad}' {file} >> {SAID}; cat {file} >> /run/isoblk/after" for bad in BAD_MODELS),
        f"echo auto > {file}; cat {file} > /run/isoblk/again",
    )
    assert re.fullmatch(
        "auto" + "".join(rf" {name}=[1-9]\d*" for name in SIX), left.read("auto")[:-1]
    )
    assert left.read("again") == left.read("auto")
    assert left.read("bytes") == "bytes\n"
    assert left.read("user") == f"user {_line(SIX)}\n"
    assert "ok" not in left.read("said").splitlines()
    assert left.read("after") == left.read("user") * len(BAD_MODELS)


SHARE = r"(/\S*) weight (\d+) share_ppm (\d+)"
BUDGET_LINE = rf"{SHARE} left -?\d+ waiting (\d+) in_device (\d+) at_gate (\d+)"
GROUP_LINE = {
    "isoblk": rf"{SHARE} ahead -?\d+ waiting (\d+) in_flight (\d+) at_gate (\d+) think_ns \d+",
    "kyber-fair": BUDGET_LINE,
    "feedbac": BUDGET_LINE,
}


def _groups(text: str, elevator: str) -> dict[str, re.Match[str]]:
    """The lines of debugfs's `groups`, by path; each as the elevator has it."""
    lines = [re.fullmatch(GROUP_LINE[elevator], line) for line in text.splitlines()]
    assert all(lines)
    return {line[1]: line for line in lines if line}


WINDOW_LINE = (
    r"inflight (\d+) used (\d+) size (\d+) trial [01] waiting (\d+) blocked \d+"
    r" rate [1-9]\d* mean ([1-9]\d*)"
)
STATE_LINES: dict[str, dict[str, list[str]]] = {
    "isoblk": {
        "floor": [r"floor -?\d+ trial [01] pause \d+ left \d+"],
        "rescue": [r"rescued 0 (on|off)"],
        "window": [WINDOW_LINE],
    },
    "kyber-fair": {
        "tokens": [rf"{name} depth \d+ used \d+" for name in ("read", "write", "discard", "other")]
        + [r"async_depth 192"],
    },
    "feedbac": {
        "predict": [r"next \d+ credit \d+ a_permille \d+ error_permille \d+ allocations \d+"],
        "history": [
            r"at_ns \d+ predicted \d+ used \d+ error_permille \d+ a_permille \d+" for _ in range(2)
        ],
    },
}


@pytest.mark.parametrize("elevator", EXACT)
def test_debugfs_is_readable_under_load(quiet: Quiet, elevator: str) -> None:
    names = [f"t{i}" for i in range(3)]
    files = ["groups", *STATE_LINES[elevator]]
    left = quiet.run(
        vdisk(),
        use(elevator),
        f"ls {sched()} > /run/isoblk/names",
        *(group(f"/{name}") for name in names),
        f"echo 300 > {CGROUP}/t0/{WEIGHT['v2']}",
        *(
            tenant(name, cgroup=f"/{name}", rw="randrw", iodepth=128, runtime="350ms")
            for name in names
        ),
        f"{START}; cat {BLKLOAD}/align > /dev/null",
        f"for i in 1 2 3 4 5 6; do sleep 0.05; cat {sched()}/* > /dev/null; done",
        *(keep(f"{sched()}/{file}", file) for file in files),
        WAIT,
        save("results"),
    )
    assert left.read("names").split() == sorted([*files, "gate"])
    # 16 servers of 20 us are kept busy; for exact shares isoblk may give up max_loss, a tenth.
    done = sum(op.ios for one in results(left, "results").values() for op in one.ops.values())
    assert done >= (0.9 if elevator == "isoblk" else 0.97) * 16 * 350_000 / 20
    if elevator == "isoblk":
        window = re.fullmatch(WINDOW_LINE, left.read("window").rstrip())
        assert window
        # All but what ended at the instant at which we look: what waits comes a little later.
        inflight, used, size, waiting, mean = map(int, window.groups())
        assert size > 0 and mean > 0
        assert 0 < inflight <= 256 - waiting
        # The model of flash drives has 155,000 reads of 4 KiB a second, and fewer writes.
        assert inflight * (1_000_000_000 // 155_000) <= used
    found = _groups(left.read("groups"), elevator)
    assert sorted(found) == ["/t0", "/t1", "/t2"]
    assert [int(found[f"/t{i}"][2]) for i in range(3)] == [300, 100, 100]
    shares = [int(found[f"/t{i}"][3]) for i in range(3)]
    assert shares == pytest.approx([600_000, 200_000, 200_000], abs=2)
    # Their 384 requests do not fit into 256 tags.
    assert sum(int(one[4]) + int(one[5]) for one in found.values()) <= 256
    assert sum(int(one[6]) for one in found.values()) > 0
    for file, wanted in STATE_LINES[elevator].items():
        lines = left.read(file).splitlines()
        assert len(lines) >= len(wanted), file
        for line, pattern in zip(lines, wanted, strict=False):
            assert re.fullmatch(pattern, line), (file, line)


# -- lives --


def _refcounts(content: str) -> dict[str, int]:
    return {line.split()[0]: int(line.split()[2]) for line in content.splitlines()}


def test_a_module_in_use_stays_and_goes_in_order(quiet: Quiet) -> None:
    remove = {
        "share_under_all": "isoblk_share",
        "used": "kyber_fair_iosched",
        "unused": "feedbac_iosched",
        "unused_too": "cfq_iosched",
        "unused_flagship": "isoblk_iosched",
        "share_under_one": "isoblk_share",
        "freed": "kyber_fair_iosched",
        "share": "isoblk_share",
    }
    lines = {label: f"try rmmod {name} >> {SAID}" for label, name in remove.items()}
    lines["freed"] = f"{use('none')}; {lines['freed']}"
    left = quiet.run(
        vdisk(),
        use("kyber-fair"),
        group("/a"),
        f"echo 200 > {CGROUP}/a/{WEIGHT['v2']}",
        tenant("a", cgroup="/a", number_ios=10),
        run("results"),
        "cat /proc/modules > /run/isoblk/loaded",
        *lines.values(),
        "cat /proc/modules > /run/isoblk/gone",
        f"ls {CGROUP}/a > /run/isoblk/files; cat {CGROUP}/a/io.stat > /run/isoblk/stat",
        # And back, in one kernel.
        "for name in isoblk_share feedbac-iosched; do insmod /run/isoblk/modules/$name.ko; done",
        use("feedbac"),
        f"cat {CGROUP}/a/{WEIGHT['v2']} > /run/isoblk/weight",
        run("again"),
    )
    counts = _refcounts(left.read("loaded"))
    assert counts["isoblk_share"] == 4
    assert counts["kyber_fair_iosched"] == 1
    assert counts["feedbac_iosched"] == 0
    said = dict(zip(remove, left.read("said").splitlines(), strict=True))
    gone = ["unused", "unused_too", "unused_flagship", "freed", "share"]
    assert [label for label, word in said.items() if word == "ok"] == gone
    assert not any(
        "isoblk_share" in line or "iosched" in line for line in left.read("gone").splitlines()
    )
    assert "isoblk" not in left.read("files")
    assert "isoblk" not in left.read("stat")
    assert left.read("weight") == "default 100\n"
    assert results(left, "again")["a"].op.ios == 10


def test_two_disks_have_a_scheduler_and_weights_each(quiet: Quiet) -> None:
    disks = dict(zip(("disk0", "disk1"), ELEVATORS, strict=True))
    file = WEIGHT["v2"]
    left = quiet.run(
        *(vdisk(disk, servers=4) + "\n" + use(elevator, disk) for disk, elevator in disks.items()),
        *(group(f"/{name}") for name in ("a", "b")),
        f"echo 300 > {CGROUP}/a/{file}",
        f'echo "{number("disk1")} 50" > {CGROUP}/a/{file}',
        *(
            tenant(
                f"{name}-{disk}",
                cgroup=f"/{name}",
                device=f"/dev/{disk}",
                rw="randread",
                iodepth=32,
                ramp_time="100ms",
                runtime="300ms",
            )
            for name in ("a", "b")
            for disk in disks
        ),
        run("results"),
        *(f"echo {number(disk)} >> /run/isoblk/numbers" for disk in disks),
        keep(f"{CGROUP}/a/io.stat", "a"),
    )
    done = results(left, "results")
    numbers_of = dict(zip(disks, left.read("numbers").split(), strict=True))
    stat = io_stats(left.read("a"))
    for disk, share in (("disk0", 0.75), ("disk1", 1 / 3)):
        a, b = (done[f"{name}-{disk}"].op.meas_bytes for name in ("a", "b"))
        assert a / (a + b) == pytest.approx(share, rel=0.02), disk
        assert stat[numbers_of[disk]]["isoblk.used"] == done[f"a-{disk}"].op.bytes
        assert set(LEFT[disks[disk]]) <= set(stat[numbers_of[disk]])


def test_a_scheduler_is_switched_under_load_and_nothing_is_lost(careful: Quiet) -> None:
    order = ["isoblk", "kyber-fair", "cfq", "none", "isoblk", "bfq", "feedbac", "cfq"] * 3
    left = careful.run(
        vdisk(servers=4),
        *(group(f"/t{i}") for i in range(4)),
        *(
            tenant(f"t{i}", cgroup=f"/t{i}", rw="randrw", iodepth=128, runtime="500ms")
            for i in range(4)
        ),
        f"{START}; cat {BLKLOAD}/align > /dev/null",
        *(f"{use(name)}; sleep 0.011" for name in order),
        WAIT,
        use("none"),
        save("results"),
        f"cat {STATS}/disk0/stats > /run/isoblk/stats; cat /proc/modules > /run/isoblk/loaded",
        memory_mib=1024,
    )
    done = results(left, "results")
    assert all(one.error == 0 for one in done.values())
    ops = [op for one in done.values() for op in one.ops.values()]
    assert sum(op.errors for op in ops) == 0
    stats = numbers(left.read("stats"))
    # Bytes, for neighbours may have been merged.
    assert stats["read_bytes"] + stats["write_bytes"] == sum(op.bytes for op in ops)
    assert stats["in_service"] == stats["waiting"] == 0
    counts = _refcounts(left.read("loaded"))
    assert [counts[f"{name.replace('-', '_')}_iosched"] for name in ALL] == [0] * len(ALL)


def test_groups_whose_flushes_are_under_way_come_and_go(careful: Quiet) -> None:
    """A flush holds a tag of a group that may be gone, with its elevator, when it ends."""
    sync = "dd if=/dev/zero of=/dev/disk0 bs=4k count=2 oflag=direct conv=fsync 2>/dev/null"
    left = careful.run(
        vdisk(write_cache=1, flush_ns=20_000_000),
        use("isoblk"),
        group("/busy"),
        tenant("busy", cgroup="/busy", rw="randread", iodepth=16, runtime=1000),
        START,
        "\n".join(
            (
                "for turn in $(seq 40); do",
                f"    mkdir {CGROUP}/g",
                f"    sh -c 'echo $$ > {CGROUP}/g/cgroup.procs; exec {sync}' &",
                "    sleep 0.01",
                f"    echo $! > {CGROUP}/cgroup.procs",
                f"    rmdir {CGROUP}/g",
                f"    [ $((turn % 10)) != 0 ] || {{ {use('kyber-fair')}; {use('isoblk')}; }}",
                "    wait $!",
                "done",
            )
        ),
        f"{STOP}; {WAIT}; sleep 3; grep nr_dying_descendants {CGROUP}/cgroup.stat > {SAID}",
    )
    # No reference to one of them is kept.
    assert left.read("said") == "nr_dying_descendants 0\n"


@pytest.mark.parametrize("elevator", ALL)
def test_groups_come_and_go_under_load(careful: Quiet, elevator: str) -> None:
    # Each round a nested pair is made, weighed, loaded, and removed with its requests under way.
    load: Load = {"rw": "randread", "iodepth": 64, "runtime": "10s"}
    rounds = "\n".join(
        f"""
        mkdir {CGROUP}/p{i}; echo +io > {CGROUP}/p{i}/cgroup.subtree_control
        mkdir {CGROUP}/p{i}/c
        echo {i + 1} > {CGROUP}/p{i}/{WEIGHT["v2"]}
        sh -c 'echo $$ > {CGROUP}/p{i}/c/cgroup.procs
               exec dd if=/dev/disk0 of=/dev/null bs=64k count=16 iflag=direct status=none'
        echo "{number()} {i + 2}" > {CGROUP}/p{i}/c/{WEIGHT["v2"]}
        rmdir {CGROUP}/p{i}/c {CGROUP}/p{i}
        """
        for i in range(8)
    )
    left = careful.run(
        vdisk(servers=2),
        use(elevator),
        group("/steady"),
        group("/dying"),
        tenant("steady", cgroup="/steady", **load),
        tenant("dying", cgroup="/dying", **load),
        f"{START}; cat {BLKLOAD}/align > /dev/null; sleep 0.02",
        # The tenant goes on in a group that is no more.
        f"rmdir {CGROUP}/dying",
        rounds,
        f"sleep 0.1; cat {sched()}/groups > /run/isoblk/groups",
        f"{STOP}; {WAIT}",
        save("results"),
        f"rmdir {BLKLOAD}/steady {BLKLOAD}/dying {CGROUP}/steady",
        f"sleep 2; cat {CGROUP}/cgroup.stat > /run/isoblk/left",
        f"cat {sched()}/groups > /run/isoblk/none; {use('none')}",
        memory_mib=1024,
    )
    done = results(left, "results")
    assert done["steady"].error == done["dying"].error == 0
    assert min(done[name].op.ios for name in ("steady", "dying")) > 1000
    assert "/steady weight 100 share_ppm 500000 " in left.read("groups")
    assert left.read("none") == ""
    assert numbers(left.read("left"))["nr_descendants"] == 0
    assert numbers(left.read("left"))["nr_dying_descendants"] == 0, "a group was never freed"


MANY = 2000


@pytest.mark.parametrize("elevator", EXACT)
def test_thousands_of_groups_send_a_request_each_and_go(guest: Guest, elevator: str) -> None:
    attributes = {
        "device": "/dev/disk0",
        "rw": "randread",
        "number_ios": 1,
        "cgroup": "/many/g$i",
    }
    write = "; ".join(f"echo {value} > {BLKLOAD}/t$i/{name}" for name, value in attributes.items())
    left = Quiet(guest).run(
        vdisk(),
        use(elevator),
        group("/many"),
        f"echo +io > {CGROUP}/many/cgroup.subtree_control",
        f"seq {MANY} | sed 's,^,{CGROUP}/many/g,' | xargs mkdir",
        f"seq {MANY} | sed 's,^,{BLKLOAD}/t,' | xargs mkdir",
        f"i=1; while [ $i -le {MANY} ]; do {write}; i=$((i + 1)); done",
        f"echo 10000 > {CGROUP}/many/g1/{WEIGHT['v2']}",
        f"{START}; {WAIT}",
        save("results"),
        f"cat {sched()}/groups > /run/isoblk/groups",
        f"cat {CGROUP}/many/io.stat > /run/isoblk/stat",
        f"seq {MANY} | sed 's,^,{BLKLOAD}/t,' | xargs rmdir",
        f"seq {MANY} | sed 's,^,{CGROUP}/many/g,' | xargs rmdir",
        f"sleep 2; cat {CGROUP}/cgroup.stat > /run/isoblk/left; {use('none')}",
        UNLOAD,
        memory_mib=2048,
    )
    done = results(left, "results")
    assert [one.op.ios for one in done.values()] == [1] * MANY
    groups = _groups(left.read("groups"), elevator)
    shares = {path: int(line[3]) for path, line in groups.items()}
    assert len(shares) == MANY
    # 10000 of 10000 + 1999 x 100.
    assert shares["/many/g1"] == pytest.approx(1e6 * 10000 / 209900, abs=2)
    assert sum(shares.values()) == pytest.approx(1_000_000, rel=0.01)
    (stat,) = io_stats(left.read("stat")).values()
    assert (stat["rios"], stat["rbytes"]) == (MANY, MANY * 4096)
    assert numbers(left.read("left"))["nr_dying_descendants"] == 0, "a group was never freed"


# -- faults --

# More than the allocations of a switch; the last ones find nothing to fail.
FAULTS = 100
FAILSLAB = "/sys/kernel/debug/failslab"


@pytest.mark.parametrize(
    ("kernel", "elevator"),
    [*((On.NEWEST, elevator) for elevator in ALL), (On.DEBUG, "kyber-fair"), (On.DEBUG, "cfq")],
)
def test_a_switch_that_finds_no_memory_leaves_the_disk_as_it_was(
    kernel: On, elevator: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    careful = Quiet(Guest(request.getfixturevalue(f"{kernel}_bench"), tmp_path))
    # The n-th allocation fails, of the switch alone: the files are open by then.
    left = careful.run(
        vdisk(),
        group("/a"),
        group("/a/b"),
        tenant("t", cgroup="/a/b", rw="randread", iodepth=4, number_ios=20),
        f"echo N > {FAILSLAB}/ignore-gfp-wait; echo 0 > {FAILSLAB}/verbose",
        f"cat {STATS}/disk0/stats > /run/isoblk/before",
        f"""
        file=/sys/block/disk0/queue/scheduler
        n=1
        while [ $n -le {FAULTS} ]; do
            echo none > $file
            (
                exec 3> $file 4> /proc/self/fail-nth
                echo $n >&4; echo {elevator} >&3 || :; echo 0 >&4
            ) 2> /dev/null || :
            read choice < $file; echo "$choice" >> /run/isoblk/chosen
            echo 1 > {BLKLOAD}/start; read done < {BLKLOAD}/wait
            n=$((n + 1))
        done
        """,
        use("none"),
        f"cat {STATS}/disk0/stats > /run/isoblk/after",
        f"rmdir {BLKLOAD}/t; {UNLOAD}",
        memory_mib=1024,
    )
    chosen = re.findall(r"\[(\S+)\]", left.read("chosen"))
    assert len(chosen) == FAULTS
    assert set(chosen) == {"none", elevator}
    assert chosen[-10:] == [elevator] * 10, "FAULTS is too small"
    before, after = (numbers(left.read(when))["read_bytes"] for when in ("before", "after"))
    assert after - before == FAULTS * 20 * 4096


# Queues for polling need no processors: as many as a large NVMe disk has.
VERY_MANY = 128


@pytest.mark.parametrize("elevator", ALL)
def test_cgroups_have_their_parts_of_a_disk_with_very_many_queues(
    careful: Quiet, elevator: str
) -> None:
    names = [f"/g{i}" for i in range(8)]
    left = careful.run(
        "rmmod null_blk",
        f"insmod /run/isoblk/modules/null_blk.ko nr_devices=0 poll_queues={VERY_MANY - 1}",
        nullb("disk0", poll_queues=VERY_MANY - 1),
        "ls -d /sys/kernel/debug/block/disk0/hctx* | wc -l > /run/isoblk/queues",
        use(elevator),
        *map(group, names),
        *(tenant(name[1:], cgroup=name, rw="randrw", iodepth=16, number_ios=500) for name in names),
        run("results"),
        *(keep(f"{CGROUP}{name}/io.stat", name[1:]) for name in names),
        # Groups go with their cgroups, and with the elevator.
        f"rmdir {BLKLOAD}/g* {' '.join(CGROUP + name for name in names[::2])}",
        use("none"),
        UNLOAD,
    )
    assert int(left.read("queues")) == VERY_MANY
    for name, done in results(left, "results").items():
        (stat,) = io_stats(left.read(name)).values()
        assert stat["isoblk.used"] == sum(op.bytes for op in done.ops.values()) > 0


# More than the allocations of a cgroup's first request that may not wait for memory, those of
# the sanitizers included.
NEWCOMERS = 60
# A sanitizer allocates now and then, and takes the failure that was meant for us; another time
# not at the same place.
PASSES = 3


@pytest.mark.parametrize("elevator", EXACT)
def test_a_newcomer_without_memory_is_charged_to_its_parent_and_then_itself(
    careful: Quiet, elevator: str
) -> None:
    # Two reads each; the n-th allocation that may not wait fails, of the first that has so many.
    read = "dd if=/dev/disk0 of=/dev/null bs=4k iflag=direct status=none"
    left = careful.run(
        vdisk(),
        use(elevator),
        group("/a"),
        f"( echo 0 > {CGROUP}/a/cgroup.procs; exec {read} count=1 )",
        f"echo +io > {CGROUP}/a/cgroup.subtree_control; echo 0 > {FAILSLAB}/verbose",
        f"""
        for pass in $(seq {PASSES}); do
            for n in $(seq {NEWCOMERS}); do
                mkdir {CGROUP}/a/$pass-$n
                (
                    echo 0 > {CGROUP}/a/$pass-$n/cgroup.procs
                    echo $n > /proc/self/fail-nth
                    exec {read} count=2
                )
                cat {CGROUP}/a/$pass-$n/io.stat >> /run/isoblk/newcomers
            done
        done
        """,
        keep(f"{CGROUP}/a/io.stat", "parent"),
    )
    used = [int(each) for each in re.findall(r"isoblk\.used=(\d+)", left.read("newcomers"))]
    assert len(used) == PASSES * NEWCOMERS
    assert set(used) == {4096, 8192}
    assert used[-10:] == [8192] * 10, "NEWCOMERS is too small"
    (parent,) = io_stats(left.read("parent")).values()
    # Of the kernel's for a cgroup one is counted here, too: two at least are our own.
    assert parent["isoblk.used"] - 4096 == sum(8192 - each for each in used)
    hit = {at % NEWCOMERS for at, each in enumerate(used) if each == 4096}
    assert len(hit) >= 3
    assert parent["rbytes"] == 4096 + PASSES * NEWCOMERS * 8192


# -- nr_requests, and elevators that fail --

# Of a raised one the tags are new ones; of the others the kernel limits those that there are.
NR_REQUESTS = (1023, 4, 2048, 64, 1023)
# The least depth of asynchronous requests that the elevator reports to the kernel, which warns of
# less: of four tags.
SHALLOWEST = {"kyber-fair": 3, "cfq": 0}


@pytest.mark.parametrize("elevator", ALL)
def test_nr_requests_changes_under_load(every: Quiet, elevator: str) -> None:
    """The kernel has the same limits for the new tags as for the old ones, and does not warn."""
    tags = "/sys/kernel/debug/block/disk0/hctx0/sched_tags"
    left = every.run(
        vdisk(servers=8, store="memory"),
        use(elevator),
        group("/a"),
        group("/b"),
        tenant("reads", cgroup="/a", iodepth=64, numjobs=4, runtime="100s"),
        # No task waits for a trim, so it is asynchronous.
        tenant("trims", cgroup="/b", rw="randtrim", iodepth=64, numjobs=4, runtime="100s"),
        START,
        *(
            f"sleep 0.3; echo {number} > /sys/block/disk0/queue/nr_requests; sleep 0.3\n"
            f"cat {tags} > /run/isoblk/{place}"
            for place, number in enumerate(NR_REQUESTS)
        ),
        STOP,
        WAIT,
        save("results"),
    )
    for place, wanted in enumerate(NR_REQUESTS):
        said = dict(line.split("=") for line in left.read(str(place)).splitlines() if "=" in line)
        if elevator in SHALLOWEST:
            least = max(1, wanted * SHALLOWEST[elevator] // 4)
            assert int(said["min_shallow_depth"]) == least
        assert int(left.read(str(place)).split("depth=")[1].split()[0]) == wanted
    for name, done in results(left, "results").items():
        assert all(op.issued > 0 and op.errors == 0 for op in done.ops.values()), name


@pytest.mark.parametrize("elevator", ALL)
def test_the_next_elevator_is_given_nothing_of_ours_when_it_fails(
    every: Quiet, elevator: str
) -> None:
    """It would use and free what we have freed."""
    left = every.run(
        nullb(submit_queues=1),
        use(elevator, "nullb0"),
        "put refuse /sys/block/nullb0/queue/scheduler > /run/isoblk/said",
        "cat /sys/block/nullb0/queue/scheduler > /run/isoblk/left",
        "dd if=/dev/nullb0 of=/dev/null bs=4k count=100 iflag=direct 2> /dev/null",
        more=("refuse-iosched",),
    )
    assert "refuse: exited" in left.console
    assert left.read("said").strip() != "ok"
    assert "[none]" in left.read("left")

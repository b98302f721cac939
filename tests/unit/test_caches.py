# SPDX-License-Identifier: GPL-2.0-only
"""A cache in a study is set up as its documentation says, and its figures must agree."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.caches.base import Parts
from isoblk.caches.registry import CACHES
from isoblk.caches.setcache import PERSONALITIES, read_line
from isoblk.errors import UserError
from isoblk.plan import cached as caches
from isoblk.plan import target
from isoblk.plan.plan import check_queues, make_plan
from isoblk.run.options import OptionError
from isoblk.run.record import Identity
from isoblk.run.seeds import pass_seed
from isoblk.run.setting import Setting, took_effect
from isoblk.run.spec import Options, RunSpec
from isoblk.run.tier import QEMU, UML
from isoblk.study.expand import expand
from isoblk.study.load import parse_study

STUDIES = Path(__file__).parents[2] / "studies"

STUDY = """
name = "s"
cache = "{cache}"
scale = 64
[device]
driver = "vdisk"
model = "disk"
size = "100g/scale"
store = "memory"
[ssd]
driver = "vdisk"
size = "10g/scale"
store = "memory"
[caches.bcache]
bucket = "128k"
[caching]
{caching}
[[tenant]]
name = "t"
rw = "randread"
size = "64m"
number_ios = "64000/scale"
{more}
"""


def _spec(cache: str, caching: str = "", more: str = "") -> RunSpec:
    study = parse_study(STUDY.format(cache=cache, caching=caching, more=more), "s.toml")
    (planned,) = expand(study).runs
    return planned.spec


def _plan(cache: str, caching: str = "", more: str = "") -> str:
    return make_plan(_spec(cache, caching, more), UML).text


def test_sizes_and_counts_are_divided_by_one_number() -> None:
    spec = _spec("none")
    assert spec.device.size == (100 << 30) // 64
    assert spec.tenants[0].workload.number_ios == 1000


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("scale = 64", "scale = 0", "scale: 0 divides nothing"),
        ("64000/scale", "64001/scale", "64001/scale: 64 does not divide it"),
        ('cache = "bcache"', 'cache = "lvmcache"', "unknown value 'lvmcache'"),
        ('bucket = "128k"', 'bucket = "512k"', "the SSD has 320 buckets of 512k, bcache needs 513"),
        ('bucket = "128k"', "buckets = 1", "unknown option"),
        ("passes = 2", "passes = 0", "0 is out of range"),
        ("passes = 2", 'origin = "2g"', "2g are more than the device has"),
        ("passes = 2", 'placement = "scattered"', "0 is not a number of pieces"),
        ('size = "64m"', 'size = "2g"', "go beyond the device"),
        ("passes = 2", 'origin = "32m"', "goes beyond the cached device"),
        ("passes = 2", 'files = "read"\nplacement = "scattered"', "regions of a device as a whole"),
    ],
)
def test_a_study_with_a_cache_that_cannot_be_is_refused_in_one_line(
    old: str, new: str, why: str
) -> None:
    text = STUDY.format(cache="bcache", caching="passes = 2", more="")
    assert old in text
    with pytest.raises(UserError, match=why):
        parse_study(text.replace(old, new), "s.toml")


def test_without_an_ssd_there_is_no_cache() -> None:
    text = STUDY.format(cache="bcache", caching="", more="")
    begin, end = text.index("[ssd]"), text.index("[caches.bcache]")
    with pytest.raises(UserError, match="there is no SSD; add"):
        parse_study(text[:begin] + text[end:], "s.toml")


def test_files_are_made_before_the_ssd_is_there_or_by_way_of_the_cache() -> None:
    more = 'workload = "dd"\noptions = { direction = "read", count = 4 }\n[filesystem]\n'
    text = STUDY.format(cache="dm-cache", caching='files = "FILES"', more=more)
    for line in ('rw = "randread"', 'size = "64m"', 'number_ios = "64000/scale"'):
        text = text.replace(line, "")
    order = {}
    for files in ("origin", "cache"):
        study = parse_study(text.replace("FILES", files), "s.toml")
        plan = make_plan(expand(study).runs[0].spec, UML).text
        order[files] = plan.index("mkfs.ext4") < plan.index("dmsetup create cached")
        # Nothing of them is in memory when the run begins.
        assert plan.index("umount") < plan.index("## run")
    assert order == {"origin": True, "cache": False}


def test_a_region_is_made_on_the_origin_and_then_read_by_way_of_the_cache() -> None:
    lines = _plan("setcache", 'files = "read"').splitlines()
    size = f"count={64 << 20}"
    (made,) = (i for i, line in enumerate(lines) if size in line and "of=/dev/disk0p1" in line)
    (read,) = (i for i, line in enumerate(lines) if size in line and "if=/dev/mapper" in line)
    (cache,) = (i for i, line in enumerate(lines) if line.startswith("dmsetup create"))
    assert made < cache < read < lines.index("counters before")


def test_with_the_ssd_alone_tenants_use_it_and_are_charged_for_it() -> None:
    spec = _spec("ssd", 'files = "cache"')
    assert target.device(spec, UML.place) == "/dev/disk1p1"
    assert target.number_file(spec, UML.place) == "/sys/block/disk1/dev"
    assert "of=/dev/disk1p1 " in make_plan(spec, UML).text
    # It is smaller than the disk.
    with pytest.raises(UserError, match="goes beyond the cached device; it has 160m"):
        _spec("ssd", more='[[tenant]]\nname = "u"\nsize = "161m"')


def test_a_pass_does_the_same_however_many_follow() -> None:
    seeds = {passes: _spec("none", f"passes = {passes}").tenants[0].workload.randseed
             for passes in (1, 2, 3)}  # fmt: skip
    plan = _plan("none", "passes = 3")
    written = [int(line.split()[1]) for line in plan.splitlines() if line.endswith("/t/randseed")]
    # Once with the tenant's attributes, then before each pass.
    assert written == [seeds[3], seeds[1], seeds[2], seeds[3]]


@given(st.integers(1, (1 << 32) - 1), st.integers(0, 100))
def test_a_passes_seed_is_one_that_the_generator_takes(seed: int, passes: int) -> None:
    assert 1 <= pass_seed(seed, passes) < 1 << 32


def test_passes_before_the_measured_one_are_not_charged_to_the_tenant() -> None:
    lines = _plan("none", "passes = 2").splitlines()
    where = [line for line in lines if line.endswith("/t/cgroup")]
    assert where == [
        f"echo {path} > /sys/kernel/config/blkload/t/cgroup" for path in ("/t", "/", "/t")
    ]


def test_scattered_pieces_do_not_overlap_and_lie_on_the_origin() -> None:
    plan = _plan("none", 'placement = "scattered"\nworking_set = "64m"\npiece = "2m"')
    rows = [line.split() for line in plan.splitlines() if " linear " in line]
    assert len(rows) == 32
    assert [int(row[0]) for row in rows] == [4096 * n for n in range(32)]
    places = [int(row[4]) for row in rows]
    assert len(set(places)) == 32 and places != sorted(places)
    assert all(place % 4096 == 0 and place + 4096 <= (100 << 30) // 64 // 512 for place in places)


def test_the_scheduler_is_on_the_disk_that_was_named_and_the_other_has_none() -> None:
    more = '[matrix]\nscheduler = ["bfq"]\n'
    study = parse_study(
        STUDY.format(cache="none", caching='scheduler_on = "ssd"', more=more), "s.toml"
    )
    spec = next(run.spec for run in expand(study).runs if run.spec.scheduler.name == "bfq")
    plan = make_plan(spec, UML).text
    assert "echo bfq > /sys/block/disk1/queue/scheduler" in plan
    assert "echo none > /sys/block/disk0/queue/scheduler" in plan


PARTS = Parts("disk0p1", ("disk1p1",), 1 << 30, (1 << 27,), "/run/isoblk")


@pytest.mark.parametrize(
    ("cache", "options", "line"),
    [
        (
            "flashcache",
            {},
            "8 512 writeback fifo 8 set_low 20 age_ms 900000 clean_ios 4 clean_set 2",
        ),
        ("flashcache", {"mode": "thru"}, "8 512 writethrough fifo 8"),
        ("setcache", {}, "8 512 writeback lru 0"),
        ("setcache", {"set_high": 100, "set_low": 100}, "8 512 writeback lru 4 set_high 100"),
        ("enhanceio", {}, "8 512 writethrough fifo 0"),
        ("enhanceio", {"mode": "ro", "policy": "rand", "assoc": 256}, "8 256 readonly random 0"),
        ("dm-writecache", {"high_watermark": 60}, "4096 2 high_watermark 60"),
    ],
)
def test_a_table_has_the_requested_options(cache: str, options: Options, line: str) -> None:
    CACHES[cache].check(options, 1 << 27)
    (setting,) = CACHES[cache].tables(options, PARTS)
    assert f"/dev/disk1p1 {line}" in setting.text
    numbered = setting.text.replace("/dev/disk0p1", "259:2").replace("/dev/disk1p1", "259:4")
    assert took_effect(setting, numbered, "")
    assert not took_effect(setting, numbered.replace("8 512", "8 256").replace("60", "50"), "") or (
        "512" not in line and "60" not in line
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"mode": "wb"}, "mode: unknown value 'wb'"),
        ({"assoc": 100}, "assoc: 100 is not a power of two"),
        ({"set_high": 10}, "set_low: 20 is above set_high"),
        ({"clean_ios": 0}, "clean_ios: 0 is out of range"),
        ({"seq_kb": 1}, "seq_kb: unknown option"),
    ],
)
def test_options_that_a_personality_does_not_have_are_refused(options: Options, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        read_line(options, PERSONALITIES["flashcache"])


def test_a_personalitys_own_words_are_among_the_allowed_ones() -> None:
    with pytest.raises(OptionError) as caught:
        read_line({"mode": "back"}, PERSONALITIES["enhanceio"])
    assert caught.value.next.endswith(", readonly, writeonly, wb, wt, ro")


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0.0k"),
        (4 << 20, "4.0M"),
        (1 << 20, "1.0M"),
        (1000 << 10, "0.9M"),
        (999 << 10, "999.0k"),
    ],
)
def test_a_size_is_known_again_as_bcache_prints_it(size: int, shown: str) -> None:
    assert took_effect(Setting("f", str(size), "rounded"), shown, "")
    assert not took_effect(Setting("f", str(size), "rounded"), "7.7M", "")


@pytest.mark.parametrize(
    ("left", "right", "slack", "holds"),
    [(1000, 1000, 0, True), (10_000, 10_010, 0, True), (1000, 1002, 0, False), (5, 9, 4, True)],
)
def test_an_identity_may_be_off_by_one_in_a_thousand(
    left: int, right: int, slack: int, holds: bool
) -> None:
    assert Identity(text="", left=left, right=right, slack=slack).holds is holds


# The file of a guest, with 512 promotions of 256 KiB.
_STAT = "/sys/class/block/{}/stat: {} 0 {} 0 {} 0 {} 0 0 0 0"
_STATUS = (
    "status:0 3276800 cache 8 10/1024 512 {}/600 {} {} 0 0 0 {} 0 1 writeback 2 m 1 smq 0 rw -"
)


def _counted(reads: int, hits: int, promotions: int) -> str:
    misses = reads - hits
    rows = [
        _STAT.format("dm-0", reads, 8 * reads, 0, 0),
        _STAT.format("disk0p1", misses, 8 * misses + 512 * promotions, 0, 0),
        _STAT.format("disk1p1", 0, 0, 0, 0),
        _STAT.format("disk1p2", hits, 8 * hits, promotions, 512 * promotions),
        _STATUS.format(promotions, hits, misses, promotions),
    ]
    return "\n".join(rows) + "\n"


def test_figures_that_agree_are_believed_and_others_are_not() -> None:
    caching = _spec("dm-cache").caching
    assert caching is not None
    begin = "before:\n" + _counted(2, 0, 0) + "after:\n"
    report = caches.report(begin + _counted(32_770, 32_000, 512), caching, UML.place)
    assert all(one.holds for one in report.identities)
    assert report.figures["read_hit_ratio"] == pytest.approx(32_000 / 32_768)
    assert report.figures["ssd.write_bytes"] == 512 * 512 * 512
    lost = _counted(32_770, 32_000, 512).replace("600 32000", "600 31000")
    report = caches.report(begin + lost, caching, UML.place)
    assert [one.text for one in report.identities if not one.holds] == [
        "reads = read hits + read misses"
    ]


@pytest.mark.parametrize("mib", [0, 1, 33, 66, 127])
def test_bypassed_bytes_are_right_beyond_the_wrap_of_the_counter_of_bcache(mib: int) -> None:
    change = {
        "bypassed": (mib << 20) % (1 << 25),
        "cache_bypass_hits": 0,
        "cache_bypass_misses": mib,
        "top.reads": 128,
        "top.writes": 5,
        "origin.read_bytes": 100 << 20,
        "ssd.read_bytes": 28 << 20,
    }
    assert CACHES["bcache"].bypassed(change) == mib << 20
    assert CACHES["bcache"].bypassed(change | {"top.writes": 128}) is None


@pytest.mark.parametrize("text", ["", "before:\n", "before:\nafter:\n", "before:\nx\nafter:\nx\n"])
def test_text_that_is_not_an_account_of_a_cache_is_refused(text: str) -> None:
    caching = _spec("dm-cache").caching
    assert caching is not None
    with pytest.raises(ValueError):
        caches.report(text, caching, UML.place)


@pytest.mark.parametrize("cache", sorted(CACHES))
def test_every_cache_is_put_together_and_taken_apart(cache: str) -> None:
    lines = _plan(cache).splitlines()
    assert lines.count("counters before") == lines.count("counters after") == 1
    for made, gone in (("addpart", "delpart"), ("dmsetup create", "dmsetup remove")):
        assert sum(line.startswith(made) for line in lines) == sum(
            line.startswith(gone) for line in lines
        )


def test_only_the_uml_machine_has_caches() -> None:
    with pytest.raises(UserError, match="no caches on the qemu machine"):
        check_queues([_spec("bcache")], QEMU)
    check_queues([_spec("bcache")], UML)

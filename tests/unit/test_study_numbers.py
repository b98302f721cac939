# SPDX-License-Identifier: GPL-2.0-only
"""Numbers that no run could have are refused when a study is checked, in one line."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.study.expand import expand
from isoblk.study.load import parse_study
from tests.examples import at_most


def _study(more: str, tenant: str = "", scheduler: str = "none", device: str = "fast") -> str:
    head, _, tables = more.partition("\n[")
    text = f'name = "s"\nscheduler = "{scheduler}"\ndevice = "{device}"\n'
    body = f"[{tables}" if tables else ""
    if head.startswith("["):
        head, body = "", more
    return f'{text}{head}\n{body}\n[[tenant]]\nname = "t"\n{tenant}\n'


KNOBS = {
    "queue": ("nr_requests", "nomerges", "max_sectors_kb", "rq_affinity", "iostats", "some_other"),
    "iosched.isoblk": ("hold_us", "window", "gate"),
    "iosched.kyber-fair": ("round_us", "refill_ms"),
    "iosched.feedbac": ("alloc_us", "predict_ms"),
    "iosched.cfq": ("quantum", "slice_idle", "low_latency"),
    "iosched.bfq": ("slice_idle", "low_latency"),
}


@pytest.mark.parametrize("value", ["-3", "-9223372036854775808", '"-3"', "9223372036854775807"])
@pytest.mark.parametrize("table", KNOBS)
def test_no_knob_takes_a_negative_or_huge_number(table: str, value: str) -> None:
    for knob in KNOBS[table]:
        with pytest.raises(UserError, match=rf"{knob}: .* is out of range; allowed: ") as caught:
            parse_study(_study(f"[{table}]\n{knob} = {value}"), "s.toml")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "knob", "good", "bad"),
    [
        ("queue", "nr_requests", (4, 2048), (0, 3, 2049)),
        ("queue", "nomerges", (0, 2), (3,)),
        ("queue", "wbt_lat_usec", (-1, 0), (-2,)),
        ("iosched.kyber-fair", "round_us", (100, 1_000_000), (99, 1_000_001)),
        ("iosched.feedbac", "predict_ms", (10, 10_000), (9, 10_001)),
        ("iosched.cfq", "quantum", (1, 4096), (0, 4097)),
    ],
)
def test_ranges_are_the_kernels(
    table: str, knob: str, good: tuple[int, ...], bad: tuple[int, ...]
) -> None:
    for value in good:
        parse_study(_study(f"[{table}]\n{knob} = {value}"), "s.toml")
    for value in bad:
        with pytest.raises(UserError, match="out of range"):
            parse_study(_study(f"[{table}]\n{knob} = {value}"), "s.toml")


def test_words_go_to_knobs_as_they_are() -> None:
    parse_study(
        _study('[queue]\nwrite_cache = "write back"\n[iosched.isoblk]\nwindow = "off"'), "s"
    )


# Of every table with numbers: {} is where one comes to stand.
PLACES = [
    _study("[run]\nrepeats = {}"),
    _study("[run]\nseed = {}"),
    _study("[run]\nruntime = {}"),
    _study("[run]\nwarmup = {}"),
    _study("[run]\nwindow = {}"),
    _study("scale = {}"),
    _study("[io_max]\nscale = {}", scheduler="io.max"),
    _study("[io_latency]\ntarget = {}", scheduler="io.latency"),
    _study("", "latency_target = {}", scheduler="io.latency"),
    _study("[io_cost]\nqos = {{ rlat = {} }}", scheduler="io.cost"),
    _study("[io_cost]\nqos = {{ max = {} }}", scheduler="io.cost"),
    _study("[io_cost]\nmodel = {{ rbps = {} }}", scheduler="io.cost"),
    _study("[queue]\nnr_requests = {}"),
    _study("[queue]\nsomething = {}"),
    _study("[iosched.bfq]\nslice_idle = {}", scheduler="bfq"),
    _study('[[claim]]\ntext = "t"\nsource = "s"\nmetric = "total_iops"\nop = "<"\nvalue = {}'),
    _study('[[event]]\nat = {}\ntenant = "t"\nweight = 1'),
    _study('[[event]]\nat = 0\ntenant = "t"\nweight = {}'),
    _study('[matrix]\n"tenant.t.iodepth" = [1, {}]'),
    _study('[matrix]\n"queue.nr_requests" = [64, {}]'),
    *(
        _study("", f"{field} = {{}}")
        for field in (
            *("weight", "count", "iodepth", "numjobs", "rwmixread", "bs", "rate_iops"),
            *("thinktime", "thinktime_blocks", "cputime", "startdelay", "runtime", "number_ios"),
            *("offset", "offset_increment", "size", "fsync", "memory"),
        )
    ),
]
NUMBERS = st.one_of(
    st.sampled_from(
        [
            *("-3", "-1", "0", "1", "0.5", "-0.0", "1e308", "1e-308", "nan", "inf", "-inf"),
            *("2147483648", "4294967296", "9223372036854775807", "-9223372036854775808"),
        ]
    ),
    st.integers(-(1 << 63), (1 << 63) - 1).map(str),
    st.integers(1, 5000).map(str),
    st.floats().map(repr),
)


@pytest.mark.parametrize("place", PLACES)
@settings(
    max_examples=at_most(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(number=NUMBERS)
def test_any_number_is_taken_or_refused_in_one_line(place: str, number: str) -> None:
    text = place.replace("{}", number).replace("{{", "{").replace("}}", "}")
    try:
        study = parse_study(text, "s.toml")
    except UserError as error:
        assert "\n" not in str(error)
        assert str(error).startswith("s.toml")
        return
    if study.run.repeats < 10:
        assert expand(study).runs

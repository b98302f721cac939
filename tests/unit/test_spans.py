# SPDX-License-Identifier: GPL-2.0-only
"""A tenant that comes and goes wants something while it is there, and is one tenant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.analysis.timeline import phases
from isoblk.errors import UserError
from isoblk.run.spans import length, spans
from isoblk.run.spec import Workload
from isoblk.study.expand import expand
from isoblk.study.load import parse_study
from tests.unit.specs import MS, run_spec, tenant

STUDY = """
name = "s"
device = "fast"
[run]
runtime = "1s"
[[tenant]]
name = "a"
on = "300ms"
off = "200ms"
startdelay = "100ms"
iodepth = 4
[[tenant]]
name = "b"
iodepth = 4
"""


def test_on_and_off_are_of_a_study() -> None:
    runs = expand(parse_study(STUDY, "s.toml")).runs
    load = next(one.spec for one in runs if one.spec.kind == "share").tenants[0].workload
    assert (load.on_ns, load.off_ns) == (300 * MS, 200 * MS)
    # The rate a tenant could have is the one it reaches while it is on.
    alone = [one.spec.tenants[0].workload for one in runs if one.spec.kind == "alone"]
    assert [(one.on_ns, one.off_ns) for one in alone] == [(0, 0)]


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ('off = "200ms"\n', "", "tenant.on: there is no off"),
        ('on = "300ms"\n', "", "tenant.off: there is no on"),
        ('"300ms"', '"300us"', "allowed: 1ms.."),
        ('runtime = "1s"', 'runtime = "6000s"', "more than 10000 times"),
        ('off = "200ms"', 'off = "200ms"\nworkload = "fio"', "only blkload has it"),
    ],
)
def test_turns_that_cannot_be_are_refused(was: str, becomes: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_study(STUDY.replace(was, becomes), "s.toml")
    assert said in str(caught.value).replace("[1]", "").replace("[0]", "")


def test_one_that_comes_and_goes_has_a_phase_for_each_turn() -> None:
    spec = run_spec(
        tenants=(
            tenant("a", on_ns=300 * MS, off_ns=200 * MS, startdelay_ns=100 * MS),
            tenant("b"),
        ),
        warmup_ns=200 * MS,
        runtime_ns=1000 * MS,
    )
    found = [(one.start // MS, one.end // MS, "a" in one.active) for one in phases(spec, {})]
    assert found == [
        (200, 400, True),
        (400, 600, False),
        (600, 900, True),
        (900, 1100, False),
        (1100, 1200, True),
    ]
    assert all("b" in one.active for one in phases(spec, {}))


@given(
    st.integers(0, 50),
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(0, 60),
    st.integers(1, 99),
)
def test_spans_are_where_it_works(delay: int, on: int, off: int, runtime: int, end: int) -> None:
    load = Workload(startdelay_ns=delay, on_ns=on, off_ns=off, runtime_ns=runtime)
    found = spans(load, end)
    stop = min(end, delay + runtime) if runtime else end
    works = {at for at in range(delay, stop) if (at - delay) % (on + off) < on}
    assert {at for start, until in found for at in range(start, until)} == works
    assert length(found, 0, end) == len(works)
    assert length(found, 10, 20) == len(works & set(range(10, 20)))

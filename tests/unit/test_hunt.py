# SPDX-License-Identifier: GPL-2.0-only
"""A hunt finds the faults of a space, shrinks them as far as possible, and is repeatable."""

import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from isoblk import paths
from isoblk.errors import RunError, UserError
from isoblk.hunt.find import summary, with_seed, write
from isoblk.hunt.journal import FORMAT, Begun, Journal
from isoblk.hunt.judge import FAILED, Verdict
from isoblk.hunt.session import Find, Session, Spent
from isoblk.hunt.shrink import shrink
from isoblk.hunt.space import Candidate, Space, make_space
from isoblk.hunt.spec import Budget, Dimensions, HuntSpec, Objective, Rounds, SpaceTable, load_hunt
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.study.expand import expand
from isoblk.study.load import parse_study

Verdicts = Callable[[Mapping[str, Any], bool], Verdict]

TABLE = SpaceTable(
    tenants=(1, 4),
    region="4g",
    study={
        "disk": [{"device": "860pro-256g"}, {"device": "p4500-1t"}, {"device": "wd10ezex"}],
        "tags": [{}, {"queue": {"nr_requests": 32}}],
    },
    tenant={
        "weight": [100, 300, 1000],
        "rw": ["randread", "write", "randrw"],
        "bs": ["4k", "64k", "1m"],
        "iodepth": [1, 4, 16, 64],
        "kind": [{}, {"fsync": 1}, {"thinktime": 1000, "thinktime_blocks": 16}],
    },
    scheduler={
        "bfq": Dimensions(study={"latency": [{}, {"iosched": {"bfq": {"low_latency": 0}}}]}),
        "io.cost": Dimensions(tenant={"kind": [{}, {"fsync": 1}]}),
    },
)
BASE = {"run": {"warmup": "100ms", "runtime": 1}}
SPEC = HuntSpec(
    name="made-up", study=BASE, space=TABLE, round=Rounds(random=24, guided=8, batch=4), finds=3
)
SPACE = make_space(TABLE, BASE, "bfq")
LATE = (Objective(metric="late", beyond=5.0),)


def candidates(space: Space = SPACE) -> st.SearchStrategy[Candidate]:
    @st.composite
    def one(draw: st.DrawFn) -> Candidate:
        return space.draw(lambda name, of, ordered: draw(st.integers(0, of - 1)))

    return one()


def begun(scheduler: str = "bfq") -> Begun:
    return Begun(format=FORMAT, hunt="0", scheduler=scheduler, kernel_key="k", modules_key="m")


def judged(bad: Callable[[Mapping[str, Any]], Mapping[str, float]]) -> Verdicts:
    """A judge to whom a study is as bad as that, and which makes a run a tenant."""

    def judge(study: Mapping[str, Any], twice: bool) -> Verdict:
        ids = tuple(f"{hash_of(one)}" for one in study["tenant"])
        tenants = dict.fromkeys(bad(study), study["tenant"][0]["name"])
        return Verdict(scores=dict(bad(study)), tenants=tenants, ids=ids, cpu_s=(1.0,) * len(ids))

    return judge


def hash_of(tenant: Mapping[str, Any]) -> str:
    return repr(sorted((key, value) for key, value in tenant.items() if key != "name"))


def hunt(
    directory: Path,
    judge: Verdicts,
    budget: Budget,
    *,
    spec: HuntSpec = SPEC,
    threads: int = 4,
    journal: str = "journal",
) -> tuple[list[Find], Spent]:
    found: list[Find] = []
    with ThreadPoolExecutor(threads) as executor:
        session = Session(
            spec,
            make_space(spec.space, spec.study, "bfq"),
            "bfq",
            judge,
            lambda run_id: None,
            Journal(directory / journal, begun()),
            executor,
            lambda spent: None,
            found.append,
        )
        assert session.run(budget) == found
    return found, session.spent


def deep_sync_on_a_hard_disk(study: Mapping[str, Any]) -> dict[str, float]:
    """A made-up fault: a tenant that syncs, beside one of a depth of 16 or more."""
    syncs = [one for one in study["tenant"] if "fsync" in one]
    deep = [one for one in study["tenant"] if one["iodepth"] >= 16]
    if study["device"] == "wd10ezex" and syncs and any(one not in syncs for one in deep):
        return {"late": 10.0 * max(one["iodepth"] for one in deep)}
    return {"late": 0.1 * sum(one["iodepth"] for one in study["tenant"]) / 64}


def test_a_made_up_fault_is_found_and_shrunk_to_its_cause(tmp_path: Path) -> None:
    finds, spent = hunt(tmp_path, judged(deep_sync_on_a_hard_disk), Budget(runs=200))
    first = finds[0]
    study = SPACE.document(first.candidate, "bfq")
    assert first.kind == "late"
    assert study["device"] == "wd10ezex"
    assert "queue" not in study
    # Half of the found ratio to the limit is kept: 5.
    deep, sync = sorted(study["tenant"], key=lambda one: "fsync" in one)
    assert deep["iodepth"] == 16
    assert {"name", "iodepth", "rw", "bs", "weight"} == set(deep)
    assert (sync["fsync"], sync["iodepth"], sync["bs"], sync["rw"]) == (1, 1, "4k", "randread")
    assert first.runs <= 200
    assert spent.runs >= 200


def test_a_candidate_that_a_find_explains_is_not_found_again(tmp_path: Path) -> None:
    finds, _ = hunt(tmp_path, judged(deep_sync_on_a_hard_disk), Budget(runs=300))
    assert len({find.candidate for find in finds}) == len(finds)
    for at, find in enumerate(finds):
        assert not any(SPACE.explains(earlier.candidate, find.candidate) for earlier in finds[:at])


def test_the_same_seed_finds_the_same_however_many_machines(tmp_path: Path) -> None:
    judge = judged(deep_sync_on_a_hard_disk)
    finds = [
        hunt(tmp_path, judge, Budget(runs=300), threads=threads, journal=f"{threads}")[0]
        for threads in (1, 4)
    ]
    assert finds[0] == finds[1]
    assert (tmp_path / "1").read_bytes() == (tmp_path / "4").read_bytes()


def test_another_seed_looks_elsewhere(tmp_path: Path) -> None:
    judge = judged(deep_sync_on_a_hard_disk)
    other = HuntSpec(name="made-up", study=BASE, space=TABLE, round=SPEC.round, seed=2)
    hunt(tmp_path, judge, Budget(runs=50), journal="one")
    hunt(tmp_path, judge, Budget(runs=50), journal="two", spec=other)
    assert (tmp_path / "one").read_bytes() != (tmp_path / "two").read_bytes()


def test_a_killed_hunt_goes_on_from_its_journal(tmp_path: Path) -> None:
    judge = judged(deep_sync_on_a_hard_disk)
    whole, _ = hunt(tmp_path, judge, Budget(runs=300), journal="whole")
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    asked = 0

    def counting(study: Mapping[str, Any], twice: bool) -> Verdict:
        nonlocal asked
        asked += 1
        return judge(study, twice)

    # Killed while a line was being written.
    (tmp_path / "killed").write_bytes(b"".join(lines[:40]) + lines[40][:10])
    again, _ = hunt(tmp_path, counting, Budget(runs=300), journal="killed", threads=1)
    assert again == whole
    assert asked == len(lines) - 40
    assert (tmp_path / "killed").read_bytes() == b"".join(lines)


def test_a_larger_budget_goes_on_where_the_smaller_one_ended(tmp_path: Path) -> None:
    judge = judged(deep_sync_on_a_hard_disk)
    hunt(tmp_path, judge, Budget(runs=100))
    before = (tmp_path / "journal").read_bytes()
    _, spent = hunt(tmp_path, judge, Budget(runs=200))
    assert (tmp_path / "journal").read_bytes()[:1000] == before[:1000]
    assert spent.runs >= 200


def test_minutes_are_those_that_runs_took(tmp_path: Path) -> None:
    _, spent = hunt(tmp_path, judged(lambda study: {}), Budget(minutes=1))
    assert 60 <= spent.cpu_s < 60 + 4 * SPEC.round.batch


def test_a_run_that_fails_is_a_find_whatever_is_looked_for(tmp_path: Path) -> None:
    def judge(study: Mapping[str, Any], twice: bool) -> Verdict:
        if any(one["rw"] == "randrw" and one["bs"] == "1m" for one in study["tenant"]):
            return Verdict(trouble=FAILED, reason="the kernel warned", ids=("x",))
        return judged(lambda study: {})(study, twice)

    finds, _ = hunt(tmp_path, judge, Budget(runs=100))
    assert finds[0].kind == FAILED
    (tenant,) = SPACE.document(finds[0].candidate, "bfq")["tenant"]
    assert (tenant["rw"], tenant["bs"], tenant["iodepth"]) == ("randrw", "1m", 1)


def test_a_space_in_which_nothing_runs_ends_the_hunt(tmp_path: Path) -> None:
    def judge(study: Mapping[str, Any], twice: bool) -> Verdict:
        return Verdict(reason="no study: unknown field")

    with pytest.raises(UserError, match=r"none of the first 4 candidates can run.*unknown field"):
        hunt(tmp_path, judge, Budget(runs=100))


def test_trouble_that_no_study_is_to_blame_for_ends_the_hunt(tmp_path: Path) -> None:
    def judge(study: Mapping[str, Any], twice: bool) -> Verdict:
        raise RunError("the disk is full")

    with pytest.raises(RunError, match="the disk is full"):
        hunt(tmp_path, judge, Budget(runs=100))


@pytest.mark.parametrize("field", ["hunt", "scheduler", "kernel_key", "modules_key"])
def test_a_journal_of_another_hunt_is_refused(tmp_path: Path, field: str) -> None:
    Journal(tmp_path / "journal", begun())
    other = msgspec.structs.replace(begun(), **{field: "other"})
    with pytest.raises(UserError, match=f"a hunt with another {field.replace('_', ' ')}"):
        Journal(tmp_path / "journal", other)


def test_a_damaged_journal_is_refused_and_kept(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    Journal(journal, begun())
    journal.write_bytes(journal.read_bytes() + b"{}\n")
    before = journal.read_bytes()
    with pytest.raises(UserError, match="damaged"):
        Journal(journal, begun())
    assert journal.read_bytes() == before


@given(candidates())
def test_a_simpler_candidate_is_another_candidate_of_the_space(candidate: Candidate) -> None:
    for place in SPACE.places(candidate):
        for simpler in SPACE.simpler(candidate, place):
            assert simpler != candidate
            assert 1 <= len(simpler.tenants) <= len(candidate.tenants)
            assert all(
                0 <= choice < len(one.values)
                for tenant in simpler.tenants
                for one, choice in zip(SPACE.tenant, tenant, strict=True)
            )
            SPACE.document(simpler, "bfq")


@given(candidates())
def test_shrinking_ends_at_the_simplest_if_all_show_it(candidate: Candidate) -> None:
    simplest = shrink(candidate, SPACE, lambda one: True)
    assert simplest == Candidate((0,) * len(SPACE.study), ((0,) * len(SPACE.tenant),))


@given(candidates())
def test_nothing_is_shrunk_if_nothing_simpler_shows_it(candidate: Candidate) -> None:
    assert shrink(candidate, SPACE, lambda one: False) == candidate


@given(candidates(), candidates())
def test_a_candidate_explains_itself_and_candidates_that_contain_it(
    candidate: Candidate, other: Candidate
) -> None:
    assert SPACE.explains(candidate, candidate)
    more = Candidate(candidate.study, (*other.tenants, *candidate.tenants))
    assert SPACE.explains(candidate, more)


@given(candidates())
def test_choices_give_the_candidate_again(candidate: Candidate) -> None:
    choices = SPACE.choices(candidate)
    assert SPACE.draw(lambda name, of, ordered: choices[name][0]) == candidate


@given(candidates())
def test_every_candidate_of_the_made_up_space_is_a_study(candidate: Candidate) -> None:
    study = parse_study(tomli_w.dumps(SPACE.document(candidate, "bfq")), "candidate")
    assert len(study.tenant) == len(candidate.tenants)


@pytest.mark.parametrize("scheduler", sorted(set(SCHEDULERS) - {"none", "io.max", "io.latency"}))
def test_the_hunt_that_comes_with_isoblk_is_made_of_studies(scheduler: str) -> None:
    spec = load_hunt(paths.hunts_dir() / "anything.toml")
    space = make_space(spec.space, spec.study, scheduler)
    chance = random.Random(1)
    for _ in range(60):
        candidate = space.draw(lambda name, of, ordered: chance.randrange(of))
        text = tomli_w.dumps(space.document(candidate, scheduler))
        metrics = {one.described.name for one in spec.objective}
        assert expand(parse_study(text, "candidate"), metrics).runs


def test_tenants_in_sequence_have_regions_of_their_own() -> None:
    write_1m = (0, 1, 2, 0, 0)
    study = SPACE.document(Candidate((0, 0, 0), (write_1m, write_1m)), "bfq")
    assert [one["offset"] for one in study["tenant"]] == ["0", "2g"]
    assert [one["size"] for one in study["tenant"]] == ["2g", "2g"]


def test_a_dimension_of_one_scheduler_is_no_other_ones() -> None:
    assert [one.name for one in SPACE.study] == ["disk", "tags", "latency"]
    assert [one.name for one in make_space(TABLE, BASE, "kyber").study] == ["disk", "tags"]


def test_a_scheduler_has_its_own_values_of_a_dimension_that_all_have() -> None:
    def kinds(scheduler: str) -> list[int]:
        space = make_space(TABLE, BASE, scheduler)
        return [len(one.values) for one in space.tenant if one.name == "kind"]

    assert kinds("io.cost") == [2]
    assert kinds("kyber") == [3]


def test_the_study_of_a_find_says_that_it_is_there_still(tmp_path: Path) -> None:
    finds, _ = hunt(tmp_path, judged(deep_sync_on_a_hard_disk), Budget(runs=200))
    made = write(finds[0], SPEC, SPACE, "bfq")
    study = parse_study(made.text, "find.toml")
    (claim,) = study.claim
    assert made.name == study.name == "made-up-bfq-late-1"
    assert (claim.metric, claim.op) == ("late.a", ">=")
    assert 0.9 * finds[0].verdict.scores["late"] <= claim.value
    assert claim.value <= finds[0].verdict.scores["late"]
    assert study.matrix == {"scheduler": ["none", "bfq"]}
    assert f"candidate {finds[0].tried}" in study.description


def test_a_find_by_chance_is_told_by_other_seeds(tmp_path: Path) -> None:
    finds, _ = hunt(tmp_path, judged(deep_sync_on_a_hard_disk), Budget(runs=200))
    made = write(finds[0], SPEC, SPACE, "bfq")
    study, again = (parse_study(text, "f.toml") for text in (made.text, with_seed(made, 2)))
    assert (study.run.seed, again.run.seed) == (1, 2)
    assert msgspec.structs.replace(again, run=study.run) == study
    (_, _, row) = summary({made.name: (finds[0], made, [None, 0.5])}).splitlines()
    assert "| 160 | -, 0.5 |" in row


HUNT = """
name = "x"
[space.study]
disk = [{ device = "860pro-256g" }]
[space.tenant]
bs = ["4k"]
"""


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("name =", "nmae ="), "missing|unknown field"),
        (('"x"', '"a/b"'), "not a valid name"),
        (('bs = ["4k"]', "bs = []"), r"hunt.toml:6: space.tenant.bs: has no values"),
        (("[space.tenant]", "[space.tenants]"), "tenants"),
        (('name = "x"', 'name = "x"\nseed = -1'), "out of range"),
        (
            ('name = "x"', 'name = "x"\nround = { random = 0, guided = 0 }'),
            "there are no candidates",
        ),
        (('name = "x"', 'name = "x"\nround = { batch = 0 }'), "out of range"),
        (
            ('bs = ["4k"]', 'bs = ["4k"]\n[[objective]]\nmetric = "lat"\nbeyond = 1'),
            "unknown metric",
        ),
        (
            ('bs = ["4k"]', 'bs = ["4k"]\n[[objective]]\nmetric = "share"\nbeyond = 1'),
            "has no worse",
        ),
        (('"x"', "x"), "not TOML"),
    ],
)
def test_a_wrong_hunt_is_refused_in_one_line(
    tmp_path: Path, change: tuple[str, str], error: str
) -> None:
    file = tmp_path / "hunt.toml"
    file.write_text(HUNT.replace(*change))
    with pytest.raises(UserError, match=error) as caught:
        load_hunt(file)
    assert "\n" not in str(caught.value)


def test_a_hunt_for_all_is_read(tmp_path: Path) -> None:
    file = tmp_path / "hunt.toml"
    file.write_text(HUNT)
    assert [one.metric for one in load_hunt(file).objective] == [
        *("denied", "late", "starved", "all_slower")
    ]

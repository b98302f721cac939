# SPDX-License-Identifier: GPL-2.0-only
"""The answer is made of the figures, reads well, and claims nothing that was not measured."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_struct

from isoblk.analysis.claims import judge_all
from isoblk.analysis.metrics import analyse
from isoblk.report.answer import Answer, answer
from isoblk.report.divided import LINES
from isoblk.report.sources import OWN, by_source, tally
from isoblk.result.store import read_results
from isoblk.run import numbers
from isoblk.run.record import Figure, ProgramReport
from isoblk.run.spec import Scheduler, SchedulerEvent
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen
from tests.unit.resultgen import Made, four, tenant

EXACT = {"gold": 540.54, "silver": 270.27, "bronze": 135.14, "tin": 54.05}  # by weight, of 1,000
EVEN = dict.fromkeys(EXACT, 250.0)


def _answer(directory: Path) -> Answer:
    analysis = analyse(read_results(directory))
    return answer(analysis, judge_all(analysis))


def _divided(directory: Path, rates: dict[str, dict[str, float]], **of_all: object) -> Answer:
    """The answer of a run a scheduler; none comes first and is the reference."""
    runs = [
        Made(name, shares, tenants=four(), reference=None if name == "none" else 0)
        for name, shares in rates.items()
    ]
    runs = [replace(run, **of_all) for run in runs]  # type: ignore[arg-type]
    return _answer(resultgen.write(directory, runs))


def _times(rates: dict[str, float], factor: float) -> dict[str, float]:
    return {name: rate * factor for name, rate in rates.items()}


def test_schedulers_that_divide_come_first_and_the_fastest_of_them_leads(tmp_path: Path) -> None:
    # Rates are whole requests a window; a hundred times as many are exact enough.
    found = _divided(
        tmp_path,
        {
            "none": _times(EVEN, 100),
            "bfq": _times(EXACT, 60),
            "kyber": _times(EVEN, 100),
            "isoblk": _times(EXACT, 99),
        },
    )
    assert found.sentences == (
        "Two of three schedulers share the disk by weight to within 1 %: isoblk and bfq.",
        "They keep from 60.0 % (bfq) to 99.0 % (isoblk) of the bandwidth without a scheduler"
        " (none).",
    )
    names = [cells[0].text for _, cells in found.table.rows]
    assert names == ["isoblk", "bfq", "kyber", "none"]
    assert [state for state, _ in found.table.rows] == ["divides", "divides", "valid", "valid"]


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"bfq": EXACT}, "bfq shares the disk by weight to within 1 %."),
        (
            {"bfq": EVEN},
            "bfq does not share the disk by weight to within 1 %: it is 362 % off.",
        ),
        (
            {"bfq": EXACT, "isoblk": EXACT},
            "Both schedulers share the disk by weight to within 1 %: isoblk and bfq.",
        ),
        (
            {"bfq": EVEN, "isoblk": EXACT},
            "Of two schedulers only isoblk shares the disk by weight to within 1 %.",
        ),
        (
            {"bfq": EVEN, "kyber": EXACT | {"tin": 58.0}},
            "Neither of the two schedulers shares the disk by weight to within 1 %; the nearest,"
            " kyber, is 6.9 % off.",
        ),
        (
            {"bfq": EVEN, "kyber": EXACT | {"tin": 70.0}},
            "Neither of the two schedulers shares the disk by weight to within 1 %; the nearest,"
            " kyber, is 27.5 % off.",
        ),
    ],
)
def test_the_sentence_fits_how_many_divide(
    tmp_path: Path, rates: dict[str, dict[str, float]], sentence: str
) -> None:
    many = {name: _times(shares, 100) for name, shares in {"none": EVEN, **rates}.items()}
    assert _divided(tmp_path, many).sentences[0] == sentence


def test_without_a_run_under_none_no_cost_is_claimed(tmp_path: Path) -> None:
    run = Made("bfq", _times(EXACT, 100), tenants=four())
    found = _answer(resultgen.write(tmp_path, [run]))
    assert found.sentences == (
        "bfq shares the disk by weight to within 1 %.",
        "What that costs is not known: no valid run without a scheduler (none) was made.",
    )


def test_an_emulated_machine_says_nothing_of_speed(tmp_path: Path) -> None:
    many = {"none": _times(EVEN, 100), "bfq": _times(EXACT, 100)}
    found = _divided(tmp_path, many, tier="qemu")
    assert found.sentences == ("bfq shares the disk by weight to within 1 %.",)
    assert "an emulated machine" in " ".join(one.text for one in found.evidence)


def _beside_writers(reader_p99: dict[str, int]) -> list[Made]:
    reader, writer, other = (tenant(name, 100, iodepth=1) for name in ("reader", "w1", "w2"))
    tenants = [reader, writer, other]
    alone = [
        Made(
            "none",
            {one.name: rate},
            kind="alone",
            tenants=[one],
            point={"alone": one.name},
            latency={20_000: 1000},
        )
        for one, rate in ((reader, 1000.0), (writer, 90_000.0), (other, 90_000.0))
    ]
    return alone + [
        Made(
            name,
            {"reader": 1000.0, "w1": 40_000.0, "w2": 40_000.0},
            tenants=tenants,
            alone=[0, 1, 2],
            reference=None if name == "none" else 3,
            latency={p99: 1000},
        )
        for name, p99 in reader_p99.items()
    ]


def test_a_light_tenant_is_judged_by_how_long_it_waits(tmp_path: Path) -> None:
    runs = _beside_writers({"none": 800_000_000, "bfq": 5_000_000, "isoblk": 30_000})
    found = _answer(resultgen.write(tmp_path, runs))
    alone, here, there = (numbers.time(ns) for ns in (20_000, 30_000, 800_000_000))
    assert found.sentences[0] == (
        "Both schedulers share all but reader's part equally to within 1 %: isoblk and bfq."
    )
    assert found.sentences[2] == (
        f"Under isoblk 99 of 100 reads of reader end within {here} (alone {alone}); under bfq"
        f" within {numbers.time(5_000_000)}, without a scheduler within {there}."
    )
    assert [column.title for column in found.table.columns][-1] == "p99 of reader"


def test_the_longest_wait_is_told_with_its_place_and_those_of_others_are_of_the_same(
    tmp_path: Path,
) -> None:
    runs: list[Made] = []
    for rw, alone, waits in (
        ("randread", 10_000, {"none": 40_000, "isoblk": 30_000, "bfq": 900_000}),
        ("randwrite", 80_000, {"none": 200_000, "isoblk": 100_000, "bfq": 300_000}),
    ):
        first = len(runs)
        for run in _beside_writers(waits):
            lone = run.kind == "alone"
            runs.append(
                replace(
                    run,
                    point={"alone": f"{first} {run.point['alone']}"} if lone else {"rw": rw},
                    latency={alone: 1000} if lone else run.latency,
                    alone=[first + one for one in run.alone],
                    reference=None if run.reference is None else first + run.reference,
                )
            )
    found = _answer(resultgen.write(tmp_path, runs))
    of_one, here, bfq, there = (numbers.time(ns) for ns in (80_000, 100_000, 300_000, 200_000))
    # With randread it waits three times as long as alone under isoblk, and 900 µs under bfq.
    assert found.sentences[2] == (
        f"Under isoblk 99 of 100 reads of reader end within {here} at worst (randwrite; alone"
        f" {of_one}); under bfq within {bfq}, without a scheduler within {there} there."
    )


def test_none_alone_is_held_against_nothing(tmp_path: Path) -> None:
    found = _answer(resultgen.write(tmp_path, [Made("none", _times(EXACT, 100), tenants=four())]))
    assert found.sentences == ("none shares the disk by weight to within 1 %.",)


def test_a_run_that_changes_its_scheduler_is_not_said_to_be_of_the_first(tmp_path: Path) -> None:
    directory = resultgen.write(tmp_path, [Made("none", _times(EXACT, 100), tenants=four())])
    bfq = SchedulerEvent(at_ns=0, scheduler=Scheduler(name="bfq", elevator="bfq"), queue={})
    analysis = analyse(read_results(directory))
    (point,) = analysis.points
    (view,) = point.runs
    spec = replace_struct(view.spec, scheduler_events=(bfq,))
    runs = (replace(view, planned=replace_struct(view.planned, spec=spec)),)
    changed = replace(analysis, points=(replace(point, runs=runs),))
    assert answer(changed, []).sentences[0] == (
        "none then bfq shares the disk by weight to within 1 %."
    )


def test_division_without_a_scheduler_is_reported_if_no_scheduler_divides(tmp_path: Path) -> None:
    many = {"none": _times(EXACT, 100), "bfq": _times(EXACT | {"tin": 58.0}, 100)}
    assert _divided(tmp_path, many).sentences[0] == (
        "bfq does not share the disk by weight to within 1 %: it is 6.9 % off; without a scheduler"
        " (none) it is shared to within 1 %."
    )


def test_an_error_just_over_the_limit_is_not_written_as_the_limit(tmp_path: Path) -> None:
    many = {"none": EVEN, "bfq": EXACT | {"tin": EXACT["tin"] * 1.0108}}
    found = _divided(tmp_path, {name: _times(one, 1000) for name, one in many.items()})
    start = "bfq does not share the disk by weight to within 1 %: it is 1.0"
    assert found.sentences[0].startswith(start)
    assert "it is 1.0 % off" not in found.sentences[0]
    assert found.table.rows[0][1][1].text not in ("1.0 %", "1 %")


def test_of_one_scheduler_the_points_are_left_out(tmp_path: Path) -> None:
    runs = [
        Made("bfq", EXACT, tenants=four(), point={"run.depth": "1"}),
        Made("bfq", EXACT, tenants=four(), point={"run.depth": "2"}, status="failed", failure="x"),
    ]
    found = _answer(resultgen.write(tmp_path, runs))
    assert found.sentences[-1].startswith("depth 2 is left out: 1 of 2 runs is not valid")


def test_figures_of_a_program_are_compared_with_none_only_if_none_was_run(tmp_path: Path) -> None:
    says = {
        "gold": ProgramReport(
            program="fio",
            used=["fio"],
            status=0,
            end_ns=1,
            figures=[Figure(name="read.rate", value=123.0, unit="ops/s")],
        )
    }
    run = Made("bfq", EXACT, tenants=four(), says=says)
    found = _answer(resultgen.write(tmp_path, [run]))
    assert found.sentences[-1] == (
        "gold itself reports 123/s (read rate) under bfq; that is over its own run, tables count"
        " the measured time alone."
    )


def test_a_cost_is_reported_of_schedulers_with_a_reference_run(tmp_path: Path) -> None:
    runs = [
        Made("none", _times(EVEN, 100), tenants=four()),
        Made("bfq", _times(EXACT, 100), tenants=four(), reference=0),
        Made("isoblk", _times(EXACT, 100), tenants=four()),
    ]
    found = _answer(resultgen.write(tmp_path, runs))
    assert found.sentences[1].startswith("bfq keeps")
    runs.append(Made("kyber", _times(EXACT, 80), tenants=four(), reference=0))
    found = _answer(resultgen.write(tmp_path / "more", runs))
    assert found.sentences[1].startswith("bfq and kyber keep from")


def test_cases_that_are_equally_far_off_are_no_range(tmp_path: Path) -> None:
    runs = [
        Made("bfq", _times(EVEN, 100), tenants=four(), point={"run.depth": depth})
        for depth in ("1", "2")
    ]
    found = _answer(resultgen.write(tmp_path, runs))
    assert found.sentences[0] == (
        "bfq shares the disk by weight to within 1 % in none of two cases: it is 362 % off."
    )


def test_points_that_are_alike_are_no_range(tmp_path: Path) -> None:
    runs = [Made(name, {"a": 1e4}, tenants=[tenant("a", 100)]) for name in ("bfq", "kyber")]
    found = _answer(resultgen.write(tmp_path, runs))
    assert found.sentences == (
        "One tenant, so nothing is divided: the load reaches 41.0 MB/s in all cases.",
    )


def test_the_worst_point_is_named_with_its_place(tmp_path: Path) -> None:
    runs = [
        Made(
            name,
            _times(shares, 100),
            tenants=four(),
            point={"workload.rw": rw},
            reference=None if name == "none" else place,
        )
        for place, rw in enumerate(("randread", "randwrite"))
        for name, shares in (
            ("none", EVEN),
            ("bfq", EXACT if rw == "randread" else EXACT | {"tin": 58.0}),
        )
    ]
    runs[3] = replace(runs[3], reference=2)
    found = _answer(resultgen.write(tmp_path, runs))
    assert found.sentences[0] == (
        "bfq does not share the disk by weight to within 1 %: it is 6.9 % off at worst (randwrite)."
    )
    assert found.table.rows[0][1][1].spread == "randwrite"


def test_of_more_and_more_tenants_it_says_how_many_are_still_divided(tmp_path: Path) -> None:
    found = _answer(resultgen.count_study(tmp_path))
    assert found.sentences[0] == (
        "None of the three schedulers shares the disk by weight to within 1 % in all six cases,"
        " up to 128 tenants; bfq does up to 8 tenants."
    )
    assert found.sentences[1].startswith(
        "bfq keeps at worst 1.2 % (128 tenants) of the bandwidth without a scheduler (none)"
    )


def test_one_scheduler_is_told_by_its_points(tmp_path: Path) -> None:
    runs = [
        Made("bfq", _times(shares, 100), tenants=four(), point={"run.depth": depth})
        for depth, shares in (("1", EVEN), ("8", EXACT | {"tin": 58.0}), ("32", EXACT))
    ]
    found = _answer(resultgen.write(tmp_path, runs))
    assert found.sentences[0] == (
        "bfq shares the disk by weight to within 1 % in one of three cases: it is from 0.1 % off"
        " (depth 32) to 362 % (depth 1)."
    )
    assert [cells[0].text for _, cells in found.table.rows] == ["depth 32", "depth 8", "depth 1"]


def test_one_tenant_divides_nothing(tmp_path: Path) -> None:
    runs = [
        Made(name, {"a": rate}, tenants=[tenant("a", 100)], reference=None if at == 0 else 0)
        for at, (name, rate) in enumerate({"none": 1e5, "kyber": 99e3, "bfq": 4e4}.items())
    ]
    found = _answer(resultgen.write(tmp_path, runs))
    assert found.sentences == (
        "One tenant, so nothing is divided. Of two schedulers kyber keeps at least 99 % of the"
        " bandwidth without a scheduler (none); bfq keeps 40.0 %.",
    )
    assert all("error" not in column.title for column in found.table.columns)


def test_a_run_that_is_not_valid_is_left_out_and_reported(tmp_path: Path) -> None:
    found = _answer(resultgen.weights_study(tmp_path))
    assert found.sentences[-1] == (
        "kyber and io.latency are left out: 2 of 21 runs are not valid: kyber · rw randwrite:"
        " io.weight of gold did not take, and others."
    )
    names = [cells[0].text for _, cells in found.table.rows]
    assert "kyber" not in names
    assert len(names) <= LINES


def test_without_a_valid_run_there_is_no_answer(tmp_path: Path) -> None:
    run = Made("bfq", EXACT, tenants=four(), status="invalid", reasons=["it did not take"])
    found = _answer(resultgen.write(tmp_path, [run]))
    assert found.sentences == ("No answer yet: 1 of 1 run is not valid: bfq: it did not take.",)
    assert not found.table.rows


def test_of_a_study_under_way_it_says_that_it_is(tmp_path: Path) -> None:
    runs = [
        Made("none", EVEN, tenants=four()),
        Made("bfq", EXACT, tenants=four(), reference=0, missing=True),
        Made("isoblk", _times(EXACT, 100), tenants=four(), reference=0),
    ]
    found = _answer(resultgen.write(tmp_path, runs))
    assert found.sentences[0] == "Not yet all of the answer: 1 of 3 runs has not finished."
    assert found.sentences[1] == "isoblk shares the disk by weight to within 1 %."


def test_runs_that_have_not_finished_are_not_said_to_be_invalid(tmp_path: Path) -> None:
    runs = [
        Made("none", EVEN, tenants=four()),
        Made("bfq", EXACT, tenants=four(), reference=0, missing=True),
        Made("kyber", EVEN, tenants=four(), reference=0, status="invalid", reasons=["x"]),
    ]
    assert _answer(resultgen.write(tmp_path, runs)).sentences == (
        "No answer yet: 2 of 3 runs are not valid or not there yet: kyber: x.",
    )


def _claim(source: str) -> ClaimEntry:
    return ClaimEntry(text="x", source=source, metric="jain", op=">", value=0.0)


@pytest.mark.parametrize(
    ("sources", "groups"),
    [
        (["isoblk, what it promises", "ours", "the prototype"], [OWN]),
        (["P2, Figure 3; P3, Figure 3", "the same", "mine"], [OWN, "P2 and P3"]),
        (["Percona, 2010: 4,469 TpmC"], ["Percona"]),
        (["bfq_limit_depth() in block/bfq-iosched.c, Linux 6.12"], [OWN]),
        (["P1", "P0, section 4.3 (CFQ there)"], ["P1", "P0"]),
    ],
)
def test_claims_are_told_apart_by_whose_they_are(
    tmp_path: Path, sources: list[str], groups: list[str]
) -> None:
    runs = [Made("none", EXACT, tenants=four())]
    analysis = analyse(read_results(resultgen.write(tmp_path, runs, [*map(_claim, sources)])))
    found = by_source(judge_all(analysis))
    assert [group.source for group in found] == groups
    assert sum(len(group.results) for group in found) == len(sources)


def test_a_paper_is_refuted_where_an_own_claim_fails(tmp_path: Path) -> None:
    wrong = [
        ClaimEntry(text="x", source=source, metric="jain", op=">", value=2.0)
        for source in ("isoblk", "P2, Figure 3")
    ]
    runs = [Made("none", EXACT, tenants=four())]
    analysis = analyse(read_results(resultgen.write(tmp_path, runs, wrong)))
    assert [tally(group) for group in by_source(judge_all(analysis))] == ["1 fails", "1 refuted"]
    told = [one.text for one in answer(analysis, judge_all(analysis)).evidence]
    assert "the study's own claim: 1 fails" in told
    assert "claims of P2 (FeedBAC, 2020): 1 refuted" in told


def test_a_failed_claim_is_named_with_its_measured_value(tmp_path: Path) -> None:
    wrong = [
        ClaimEntry(text=words, source=source, metric="total_vs_none", op=">", value=2.0)
        for words, source in (
            ("isoblk is fast", "isoblk"),
            ("and is fair", "isoblk"),
            ("it is fast", "P2, Figure 3"),
        )
    ]
    runs = [
        Made("none", _times(EVEN, 100), tenants=four()),
        Made("isoblk", _times(EXACT, 99), tenants=four(), reference=0),
    ]
    found = _answer(resultgen.write(tmp_path, runs, wrong))
    assert [(one.verdict, one.source, one.text) for one in found.broken] == [
        ("fails", "", "isoblk is fast"),
        ("refuted", "P2", "it is fast"),
    ]
    # The furthest off of all that is claimed of, with its place.
    assert found.broken[0].measured.startswith("99.0 % (isoblk")
    assert found.more_broken == 1


def test_the_longest_wait_is_told_and_not_the_longest_against_alone(tmp_path: Path) -> None:
    runs: list[Made] = []
    # A slow disk, and one that is so fast alone that a short wait is a hundred times as long.
    for device, p99, alone in (("slow", 4_000_000, 1_000_000), ("fast", 1_000_000, 10_000)):
        first = len(runs)
        for run in _beside_writers({"none": 9_000_000, "isoblk": p99}):
            at = {**run.point, "device.preset": device} if run.kind != "alone" else run.point
            latency = {alone: 1000} if run.kind == "alone" else run.latency
            moved = [first + one for one in run.alone] if run.alone else run.alone
            reference = None if run.reference is None else run.reference + first
            runs.append(replace(run, point=at, latency=latency, alone=moved, reference=reference))
    found = _answer(resultgen.write(tmp_path, runs))
    assert f"within {numbers.time(4_000_000)} at worst (slow; alone" in found.sentences[2]


def test_equals_stand_in_one_order(tmp_path: Path) -> None:
    # The last has a little more of all; that is what the end of a run makes.
    rates = {"none": EVEN, "kyber": EXACT, "cfq": EXACT, "feedbac": EXACT, "isoblk": EXACT}
    many = {name: _times(shares, 100) for name, shares in rates.items()}
    many["kyber"] = _times(EXACT, 100.4)
    found = _divided(tmp_path, many)
    assert found.sentences[0].endswith(": isoblk, feedbac, cfq and kyber.")


def test_a_high_price_is_reported_with_schedulers_that_keep_more(tmp_path: Path) -> None:
    rates = {
        "none": _times(EVEN, 100),
        "bfq": _times(EXACT | {"tin": 58.0}, 40),
        "isoblk": _times(EXACT | {"tin": 70.0}, 98),
    }
    assert "; isoblk keeps 99" in _divided(tmp_path, rates).sentences[1]
    rates["isoblk"] = _times(EVEN, 99)
    assert (
        "only isoblk keeps more than 90 %, and is 362 % off"
        in (_divided(tmp_path / "even", rates).sentences[1])
    )

# SPDX-License-Identifier: GPL-2.0-only
"""The terminal's tables fit, are plain when piped, and hide nothing."""

from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from isoblk.analysis.metrics import analyse
from isoblk.cli import report as cli_report
from isoblk.cli import show as cli_show
from isoblk.errors import UserError
from isoblk.report import rows
from isoblk.report.tables import summary_table
from isoblk.result.store import read_results, write_study
from isoblk.run import numbers
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen
from tests.unit.resultgen import Made, tenant


def test_show_prints_runs_claims_and_troubles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = ClaimEntry(
        text="BFQ [divides]",
        source="P3",
        metric="share_error",
        op="<",
        value=0.05,
        where={"scheduler": "bfq"},
    )
    resultgen.weights_study(tmp_path, claims=[claim])
    cli_show.show(tmp_path)
    printed = capsys.readouterr().out
    assert "tier uml" in printed
    assert "54.1 27.0 13.6 5.3" in printed
    assert "36.7 %" in printed
    assert "invalid: kyber · rw randwrite: io.weight of gold did not take" in printed
    assert "failed: io.latency · rw randrw: kernel panic: <made up>" in printed
    assert "BFQ [divides]" in printed
    assert "1 claim holds, 0 fail, 0 undecided." in printed


def test_piped_output_is_plain_and_100_columns_at_most(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resultgen.weights_study(tmp_path, repeats=3)
    cli_show.show(tmp_path)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert max(map(len, printed.splitlines())) <= 100
    assert "median of 3 repeats" in printed
    assert "…" not in printed


def test_nothing_is_cut_at_80_columns(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path)
    console = Console(width=80, no_color=True, highlight=False)
    with console.capture() as capture:
        console.print(summary_table(read_results(tmp_path)))
    printed = capture.get()
    assert "mq-deadline" in printed
    assert "randwrite" in printed
    assert "…" not in printed


def test_a_tenant_that_cannot_use_its_share_is_named(tmp_path: Path) -> None:
    tenants = [tenant("deep", 100), tenant("shallow", 900)]
    alone = [
        Made("none", {"alone": rate}, kind="alone", tenants=[tenant("alone", 100)], point={"n": n})
        for n, rate in (("1", 1000.0), ("2", 200.0))
    ]
    made = Made("bfq", {"deep": 800.0, "shallow": 200.0}, tenants=tenants, alone=[0, 1])
    resultgen.write(tmp_path, [*alone, made])
    notes = rows.summary(analyse(read_results(tmp_path))).notes
    assert [note for note in notes if "cannot use its share" in note] == [
        "cannot use its share by weight at every point (its load alone reaches less): shallow"
    ]


def test_a_ratio_and_a_time_are_printed_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [
        ClaimEntry(
            text="BFQ is slower",
            source="us",
            metric="total_iops",
            op="<",
            value=1,
            where={"scheduler": "bfq"},
            than={"scheduler": "none"},
        ),
        ClaimEntry(text="soon", source="us", metric="converged_ms", op="<=", value=300),
    ]
    resultgen.event_study(tmp_path)
    study = read_results(tmp_path)
    record = msgspec.structs.replace(
        study.record, study=msgspec.structs.replace(study.record.study, claim=claims)
    )
    write_study(tmp_path, record)
    cli_show.show(tmp_path)
    printed = " ".join(capsys.readouterr().out.split())
    assert "bfq: 1 times" in printed
    assert "bfq: 300 ms" in printed


def test_an_invalid_run_shows_no_figures(tmp_path: Path) -> None:
    made = Made(
        "bfq", {"a": 123_000.0}, tenants=[tenant("a", 100)], status="invalid", reasons=["no"]
    )
    console = Console(width=100, no_color=True, highlight=False)
    with console.capture() as capture:
        console.print(summary_table(read_results(resultgen.write(tmp_path, [made]))))
    assert "invalid" in capture.get()
    assert "123" not in capture.get()


def test_no_finished_run_is_said(tmp_path: Path) -> None:
    made = Made("bfq", {"a": 1.0}, tenants=[tenant("a", 100)], failure="it broke")
    resultgen.write(tmp_path, [made])
    for command in (cli_show.show, cli_report.report):
        with pytest.raises(UserError, match="no finished run"):
            command(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_directory_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a result directory"):
        cli_show.show(tmp_path)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (numbers.count(785_432), "785 K"),
        (numbers.count(999_960), "1.00 M"),
        (numbers.count(0), "0"),
        (numbers.count(12.34), "12.3"),
        (numbers.rate(3.276e9), "3.28 GB/s"),
        (numbers.rate(12), "12.0 B/s"),
        (numbers.percent(0.0374), "3.7 %"),
        (numbers.percent(3.44), "344 %"),
        (numbers.time(81_234), "81.2 µs"),
        (numbers.time(999), "999 ns"),
        (numbers.time(2.5e9), "2.50 s"),
        (numbers.ratio(2.7182), "2.72x"),
    ],
)
def test_numbers_read_well(shown: str, expected: str) -> None:
    assert shown == expected

# SPDX-License-Identifier: GPL-2.0-only
"""Two machines' shares stand side by side, and a difference of more than 5 % is marked."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from isoblk.analysis.metrics import Analysis, analyse
from isoblk.cli import report as cli_report
from isoblk.errors import UserError
from isoblk.report.beside import Beside, beside
from isoblk.report.page import write_report
from isoblk.result.store import read_results
from tests.unit import resultgen
from tests.unit.resultgen import Made

NAMES = ("gold", "silver", "bronze", "tin")
Shares = Mapping[str, Sequence[Sequence[int]]]  # of each repeat, thousandths
UML: Shares = {"none": [(250, 250, 250, 250)] * 3, "bfq": [(540, 270, 135, 55)] * 3}
HOST: Shares = {
    "none": [(251, 249, 250, 250), (250, 250, 249, 251), (249, 251, 251, 249)],
    # bronze: 20 % more in every repeat; tin: more on the mean of repeats that scatter.
    "bfq": [(520, 260, 162, 58), (522, 266, 161, 51), (506, 256, 163, 75)],
}


def _write(directory: Path, shares: Shares, tier: str, **changed: object) -> Path:
    runs = [
        Made(
            name,
            {who: share * 10 for who, share in zip(NAMES, of, strict=True)},
            repeat=repeat,
            tenants=resultgen.four(),
            tier=tier,
            **changed,  # type: ignore[arg-type]
        )
        for name, repeats in shares.items()
        for repeat, of in enumerate(repeats)
    ]
    return resultgen.write(directory, runs)


def _analysis(directory: Path, shares: Shares, tier: str, **changed: object) -> Analysis:
    return analyse(read_results(_write(directory, shares, tier, **changed)))


def test_a_share_that_differs_by_more_than_five_percent_is_marked(tmp_path: Path) -> None:
    found = beside(_analysis(tmp_path / "h", HOST, "host"), _analysis(tmp_path / "u", UML, "uml"))
    assert (found.here, found.there) == ("host", "uml")
    marked = {share.who.split()[0]: share for share in found.shares if not share.agrees}
    assert set(marked) == {"bronze", "tin"}
    assert marked["bronze"].difference == pytest.approx(0.2, abs=1e-6)
    assert marked["bronze"].difference_text() == "+20.0 %"
    assert not marked["bronze"].noise
    assert marked["tin"].noise
    assert found.table.notes[0].startswith("6 of 8 shares agree within 5 %")
    states = [state for state, _ in found.table.rows]
    assert states.count("differs") == 2


def test_a_point_without_a_valid_run_is_named_and_not_compared(tmp_path: Path) -> None:
    bad = _analysis(tmp_path / "h", {"bfq": HOST["bfq"]}, "host", status="invalid")
    found = beside(bad, _analysis(tmp_path / "u", UML, "uml"))
    assert found.shares == ()
    assert "bfq: no valid run on host" in found.table.notes


def test_of_one_machine_directories_are_named(tmp_path: Path) -> None:
    found = beside(_analysis(tmp_path / "a", UML, "uml"), _analysis(tmp_path / "b", UML, "uml"))
    assert (found.here, found.there) == ("a", "b")
    assert {share.difference_text() for share in found.shares} == {"0.0 %"}


def test_many_tenants_are_set_side_by_side_by_weight(tmp_path: Path) -> None:
    a = analyse(read_results(resultgen.count_study(tmp_path / "a", counts=(64,))))
    b = analyse(read_results(resultgen.count_study(tmp_path / "b", counts=(64,))))
    found = beside(a, b)
    assert {share.who for share in found.shares} == {
        f"all of weight {weight}" for weight in (100, 200, 400, 800)
    }


def _two(tmp_path: Path, weight: int, name: str = "gold") -> Beside:
    sides = []
    for where, (who, of) in (("h", ("gold", 1000)), ("u", (name, weight))):
        tenants = [resultgen.tenant(who, of), *resultgen.four()[1:]]
        rates = {one.name: 10.0 * n for n, one in enumerate(tenants, 1)}
        tier = "host" if where == "h" else "uml"
        made = Made("bfq", rates, tenants=tenants, tier=tier)
        sides.append(analyse(read_results(resultgen.write(tmp_path / where, [made]))))
    return beside(*sides)


def test_a_tenant_whose_weight_differs_is_there_and_that_is_said(tmp_path: Path) -> None:
    found = _two(tmp_path, 500)
    assert [share.who for share in found.shares] == [
        *("gold (weight 1000)", "silver (weight 500)", "bronze (weight 250)", "tin (weight 100)")
    ]
    last = [cells[-1].text for _, cells in found.table.rows]
    assert last == ["weight 500 on uml", "", "", ""]
    notes = "\n".join(found.table.notes)
    assert "not the same: tenant gold: weight 1000 on host, weight 500 on uml" in notes
    assert found.load.startswith("not the same load")


def test_a_tenant_of_one_side_is_said(tmp_path: Path) -> None:
    found = _two(tmp_path, 1000, "new")
    assert len(found.shares) == 3
    assert "gold (weight 1000): only on host" in found.table.notes
    assert "new (weight 1000): only on uml" in found.table.notes
    assert found.load.startswith("not the same load")


def test_the_caption_says_the_same_load_only_of_the_same_load(tmp_path: Path) -> None:
    for where, weight, same in (("same", 1000, True), ("other", 500, False)):
        _two(tmp_path / where, weight)
        cli_report.report(tmp_path / where / "h", tmp_path / where / "u")
        drawn = (tmp_path / where / "h/figures/beside.svg").read_text()
        page = (tmp_path / where / "h/report.html").read_text()
        words = " ".join(re.sub(r"<[^>]*>", " ", drawn + page).split())
        assert ("uml, the same load and weights." in words) is same
        assert ("not the same load and weights" in words) is not same


def test_nothing_in_common_is_an_error(tmp_path: Path) -> None:
    a = _analysis(tmp_path / "a", {"none": UML["none"]}, "host")
    b = _analysis(tmp_path / "b", {"bfq": UML["bfq"]}, "uml")
    with pytest.raises(UserError, match="no study point in common"):
        beside(a, b)


def test_the_page_has_the_table_and_the_figure_and_loses_them_without(tmp_path: Path) -> None:
    host, uml = _write(tmp_path / "h", HOST, "host"), _write(tmp_path / "u", UML, "uml")
    cli_report.report(host, uml)
    page = (host / "report.html").read_text()
    assert "<h2>host beside uml</h2>" in page
    assert page.count('id="beside"') == 1
    assert "tier uml" in (host / "figures/beside.svg").read_text()
    write_report(analyse(read_results(host)))
    assert "host beside uml" not in (host / "report.html").read_text()
    assert not (host / "figures/beside.svg").exists()

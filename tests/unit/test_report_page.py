# SPDX-License-Identifier: GPL-2.0-only
"""The page is one file that opens offline, says everything, and is the same every time."""

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from isoblk.analysis.metrics import analyse
from isoblk.cli import compare as cli_compare
from isoblk.cli import report as cli_report
from isoblk.cli import show as cli_show
from isoblk.errors import UserError
from isoblk.report.figures.svg import width as svg_width
from isoblk.report.page import write_report
from isoblk.result.store import read_results, write_study
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen
from tests.unit.resultgen import Made, tenant

VOID = {"meta", "link", "br", "img", "hr", "input"}
CLAIMS = [
    ClaimEntry(
        text="BFQ divides <exactly>",
        source="P3, Figure 3",
        metric="share_error",
        op="<",
        value=0.05,
        where={"scheduler": "bfq"},
    ),
    ClaimEntry(
        text="BFQ costs nothing",
        source="made up",
        metric="total_vs_none",
        op=">=",
        value=0.95,
        where={"scheduler": "bfq"},
    ),
    ClaimEntry(
        text="Kyber writes",
        source="made up",
        metric="total_vs_none",
        op=">",
        value=0.9,
        where={"scheduler": "kyber", "workload.rw": "randwrite"},
    ),
]


class _Page(HTMLParser):
    """Collects what a browser would fetch, ids, and tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data", "action"):
                self.fetched.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = resultgen.weights_study(tmp_path_factory.mktemp("weights"), claims=CLAIMS)
    write_report(analyse(read_results(directory)))
    return directory


@pytest.fixture(scope="module")
def page(weights: Path) -> str:
    return (weights / "report.html").read_text()


def test_it_fetches_nothing(page: str) -> None:
    for target in _Page(page).fetched:
        assert target.startswith(("data:", "#")), target
    assert "@import" not in page
    for target in re.findall(r"url\(([^)]*)\)", page):
        assert target.startswith("#"), target
    # Its own, which a study's words never reach.
    assert page.count("<script>") == page.count("<script") == 2


def test_it_is_well_formed_and_its_ids_are_unique(page: str) -> None:
    found = _Page(page)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    for target in re.findall(r"url\(#([^)]*)\)", page):
        assert target in found.ids


def test_the_same_results_give_the_same_bytes(weights: Path, page: str) -> None:
    pictures = {path: path.read_bytes() for path in (weights / "figures").iterdir()}
    write_report(analyse(read_results(weights)))
    assert (weights / "report.html").read_text() == page
    assert {path: path.read_bytes() for path in (weights / "figures").iterdir()} == pictures


def test_svg_and_png_lie_beside_it(weights: Path) -> None:
    names = {path.name for path in (weights / "figures").iterdir()}
    for figure in ("shares", "totals", "slowdown", "over-time-1", "latency-3"):
        assert {f"{figure}.svg", f"{figure}.png"} <= names
    assert all(not name.startswith(".") for name in names)
    assert (weights / "figures" / "shares.png").read_bytes().startswith(b"\x89PNG")


def test_every_figure_names_tier_and_provenance(weights: Path) -> None:
    for path in (weights / "figures").glob("*.svg"):
        assert "tier uml · Linux 6.12.0 · isoblk 0.1.0" in path.read_text(), path.name


def test_claims_runs_and_scripts_are_there(page: str) -> None:
    text = " ".join(_Page(page).text.split())
    assert "This study's own1 fails, 1 undecided" in text
    assert "P31 confirmed" in text
    assert "BFQ divides <exactly>" in text
    assert "an invalid run" in text
    assert "io.weight of gold did not take" in text
    assert "kernel panic: <made up>" in text
    assert "echo bfq > /sys/block/disk0/queue/scheduler" in text
    assert "did NOT take" in text


def test_rows_are_sorted_by_their_figures(weights: Path, page: str) -> None:
    shown = re.findall(r'<td class="n"( data-v="([^"]*)")?>([^<]*)', page)
    by_text = {text: float(value) for given, value, text in shown if given}
    iops = [
        point.estimate("total_iops")
        for point in analyse(read_results(weights)).points
        if point.valid
    ]
    assert {one.median for one in iops if one} <= set(by_text.values())


def test_text_of_the_study_is_escaped(page: str) -> None:
    assert "test the &lt;report&gt;" in page
    assert "# made up &amp; &lt;escaped&gt;" in page
    assert "<escaped>" not in page


def test_an_invalid_run_is_not_drawn(weights: Path) -> None:
    assert "kyber" in (weights / "figures" / "over-time-1.svg").read_text()
    assert "kyber" not in (weights / "figures" / "over-time-2.svg").read_text()


def test_many_tenants_are_drawn_by_weight_and_a_numeric_key_gets_its_figure(
    tmp_path: Path,
) -> None:
    resultgen.count_study(tmp_path, counts=(4, 16, 64))
    write_report(analyse(read_results(tmp_path)))
    assert "all of weight 800" in (tmp_path / "figures" / "shares.svg").read_text()
    assert (tmp_path / "figures" / "scaling-tenant-t-count.svg").exists()


def test_the_ticks_of_a_numeric_key_are_its_values(tmp_path: Path) -> None:
    resultgen.count_study(tmp_path, counts=(80, 90, 100))
    write_report(analyse(read_results(tmp_path)))
    drawn = (tmp_path / "figures" / "scaling-tenant-t-count.svg").read_text()
    assert all(drawn.count(f">{count}</text>") >= 2 for count in (80, 90, 100))
    assert "e+" not in drawn


def test_figures_of_an_earlier_report_go(tmp_path: Path) -> None:
    resultgen.event_study(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "mine.svg").write_text("mine")
    write_report(analyse(read_results(tmp_path)))
    names = (tmp_path / ".figures").read_text()
    (tmp_path / ".figures").write_bytes(f"{names}\nold\n../report\n".encode() + b"\xff\n")
    for name in ("old.svg", "old.png"):
        (tmp_path / "figures" / name).write_text("old")
    write_report(analyse(read_results(tmp_path)))
    assert (tmp_path / "figures" / "mine.svg").exists()
    assert not (tmp_path / "figures" / "old.svg").exists()


def test_only_invalid_runs_still_make_a_page(tmp_path: Path) -> None:
    made = Made(
        "bfq",
        {"a": 100.0},
        tenants=[tenant("a", 100)],
        status="invalid",
        reasons=["io.bfq.weight did not take"],
    )
    resultgen.write(tmp_path, [made])
    cli_report.report(tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert "io.bfq.weight did not take" in text
    assert "<figure" not in text


def test_a_tenant_that_got_nothing_does_not_break_it(tmp_path: Path) -> None:
    tenants = [tenant("a", 100), tenant("b", 100)]
    made = Made("bfq", {"a": 1000.0, "b": 0.0}, tenants=tenants)
    resultgen.write(tmp_path, [made])
    cli_report.report(tmp_path)
    assert (tmp_path / "figures" / "shares.svg").exists()


def test_a_single_latency_still_has_a_labelled_axis(tmp_path: Path) -> None:
    made = Made("none", {"a": 1000.0}, tenants=[tenant("a", 100)], latency={81_920: 1000})
    resultgen.write(tmp_path, [made])
    cli_report.report(tmp_path)
    axis = re.findall(r">([\d.]+) µs<", (tmp_path / "figures" / "latency.svg").read_text())
    assert axis
    assert all(70 < float(label) < 95 for label in axis)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    resultgen.event_study(tmp_path)
    (tmp_path / "figures").write_text("in the way")
    with pytest.raises(UserError, match="cannot write the report"):
        cli_report.report(tmp_path)
    assert not (tmp_path / "report.html").exists()


HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[2J",
    "[/]x[red]",
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Results of another user, with tenants and points whose names no study may have."""
    tenants = [tenant(name, 100) for name in HOSTILE]
    runs = [
        Made("bfq", dict.fromkeys(HOSTILE, 100.0), tenants=tenants, point={name: name})
        for name in HOSTILE
    ]
    return resultgen.write(tmp_path / "r", runs, title=" ".join(HOSTILE))


def test_names_in_results_of_others_are_text(hostile: Path) -> None:
    write_report(analyse(read_results(hostile)))
    page = (hostile / "report.html").read_text()
    assert page.count("<script") == 2
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    for target in _Page(page).fetched:
        assert target.startswith(("data:", "#")), target
    pictures = {path.name for path in (hostile / "figures").iterdir()}
    assert all(re.fullmatch(r"[a-z0-9-]+\.(svg|png)", name) for name in pictures)


def test_names_in_results_of_others_say_nothing_to_the_terminal(
    hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli_show.show(hostile)
    others = [
        Made("bfq", dict.fromkeys(HOSTILE, 50.0), tenants=[tenant(name, 200) for name in HOSTILE],
             point={name: name})
        for name in HOSTILE
    ]  # fmt: skip
    cli_compare.compare(hostile, resultgen.write(hostile.parent / "others", others))
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "[/]x[red]" in said


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A small result directory."""
    runs = [Made("bfq", {"a": 100.0}, tenants=[tenant("a", 100)])]
    return resultgen.write(tmp_path / "r", runs)


def test_a_page_of_another_name_stands_alone(made: Path, tmp_path: Path) -> None:
    page = tmp_path / "mine.html"
    cli_report.report(made, output=page)
    first = page.read_text()
    assert first.startswith("<!doctype html>")
    assert "in figures/, as SVG" not in first
    assert not (made / "report.html").exists()
    assert not (made / "figures").exists()
    # It may be made anew, and is the same.
    cli_report.report(made, output=page)
    assert page.read_text() == first


@pytest.mark.parametrize("what", ["study.json", "notes", "link", "."])
def test_a_page_replaces_nothing_but_a_report(made: Path, tmp_path: Path, what: str) -> None:
    (made / "notes").write_text("mine, and it speaks of isoblk report")
    (made / "link").symlink_to(made / "study.json")
    before = (made / "study.json").read_bytes()
    with pytest.raises(UserError, match=r"not a report|a directory"):
        cli_report.report(made, output=made / what)
    assert (made / "study.json").read_bytes() == before
    assert (made / "notes").read_text().startswith("mine")
    assert {path.name for path in tmp_path.iterdir()} == {"r"}


def test_without_a_browser_the_page_is_named(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(address: str) -> bool:
        asked.append(address)
        return False

    monkeypatch.setattr("webbrowser.open", refuse)
    cli_report.report(made, show_it=True)
    said = capsys.readouterr()
    assert asked == [(made / "report.html").as_uri()]
    assert str(made / "report.html") in said.out
    assert "no browser" in said.err


def test_the_page_names_disk_and_day_and_reads_no_clock(made: Path) -> None:
    results = read_results(made)
    record = msgspec.structs.replace(
        results.record, presets={"fast": "A disk <of> 1 TB"}, made="2026-01-31"
    )
    write_study(made, record)
    cli_report.report(made)
    page = (made / "report.html").read_text()
    assert "A disk &lt;of&gt; 1 TB · 1 tenant · 2026-01-31" in page
    assert "A disk" in (made / "figures" / "totals.svg").read_text()


def test_every_text_of_a_figure_has_its_width(weights: Path) -> None:
    for path in (weights / "figures").glob("*.svg"):
        svg = path.read_text()
        texts = re.findall(r"<text[^>]*>[^<]*\S[^<]*</text>", svg)
        assert texts
        assert all("textLength=" in text for text in texts), path.name


@pytest.mark.parametrize(
    ("text", "bold", "wide"),
    [("0123456789", False, 66.7), ("iiii", False, 10.7), ("Ww", True, 20.7)],
)
def test_widths_are_those_of_arial(text: str, bold: bool, wide: float) -> None:
    assert svg_width(text, 12, bold=bold) == pytest.approx(wide, abs=0.1)

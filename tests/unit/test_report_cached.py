# SPDX-License-Identifier: GPL-2.0-only
"""A study of caches is reported as one: rates, hits, I/O of the disks, and why a claim fails."""

import re
from pathlib import Path

import pytest

from isoblk.analysis.claims import judge_all
from isoblk.analysis.metrics import Analysis, analyse
from isoblk.errors import UserError
from isoblk.report import cached, rows
from isoblk.report.figures.make import make_figures
from isoblk.report.page import render
from isoblk.report.tables import show
from isoblk.result.store import read_results
from isoblk.run.record import CacheReport, Figure, ProgramReport
from isoblk.study.load import parse_study
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen
from tests.unit.resultgen import BS, Made, tenant

MB = 1_000_000
# Requests a second, hits: by cache.
CACHES = {"none": (100, 0.0), "flashcache": (1000, 0.75), "bcache": (500, 0.5)}


def _report(ios: int, hits: float, bypassed: float | None) -> CacheReport:
    moved = {"ssd.read_bytes": ios * BS * hits, "origin.read_bytes": ios * BS * (1 - hits)}
    figures = {
        **{f"{at}.{op}_bytes": 0.0 for at in ("origin", "ssd") for op in ("read", "write")},
        **moved,
        "ssd.write_bytes": 8.0 * MB,
        "read_hit_ratio": hits,
    }
    if bypassed is not None:
        figures["bypassed_bytes"] = bypassed
    return CacheReport(before={}, after={}, figures=figures, identities=[])


def _claim(why: str) -> ClaimEntry:
    return ClaimEntry(
        text="it is fast",
        source="nobody",
        metric="iops.t",
        op=">",
        value=3.0,
        where={"cache": "flashcache"},
        than={"cache": "bcache"},
        why=why,
    )


def _analysis(
    directory: Path, tenants: int = 1, says: ProgramReport | None = None, passes: int = 1
) -> Analysis:
    who = tuple(tenant(f"t{n or ''}", 100, rw="randread") for n in range(tenants))
    made = [
        Made(
            scheduler="none",
            point={"cache": cache, "caching.passes": str(number)},
            rates={one.name: rate * number for one in who},
            tenants=who,
            cache=_report(rate, hits, None if cache == "none" else 2.0 * MB),
            says={"t": says} if says else {},
        )
        for cache, (rate, hits) in CACHES.items()
        for number in range(1, passes + 1)
    ]
    why = "hits {cache.read_hit_ratio}, {than.cache.read_hit_ratio}; {cache.ssd.write_bytes}"
    resultgen.write(directory, made, [_claim(why)], ssd="fast")
    return analyse(read_results(directory))


def _cells(table: rows.Table, title: str) -> list[str]:
    at = [column.title for column in table.columns].index(title)
    return [cells[at].text for _, cells in table.rows]


def test_a_bench_of_caches_shows_rates_and_hits_and_no_shares(tmp_path: Path) -> None:
    table = cached.summary(_analysis(tmp_path))
    assert _cells(table, "cache") == list(CACHES)
    assert _cells(table, "IOPS") == ["100", "1.00 K", "500"]
    assert _cells(table, "read hits") == ["0.0 %", "75.0 %", "50.0 %"]
    assert not any("share" in column.title for column in table.columns)


def test_the_counters_of_the_disks_stand_next_to_the_requested_bytes(tmp_path: Path) -> None:
    table = cached.counters(_analysis(tmp_path))
    assert _cells(table, "asked: read") == ["410 KB", "4.10 MB", "2.05 MB"]
    assert _cells(table, "disk: read") == ["410 KB", "1.02 MB", "1.02 MB"]
    assert _cells(table, "SSD: written") == ["8.00 MB"] * 3
    assert _cells(table, "SSD/asked: read") == ["0.00", "0.75", "0.50"]
    assert _cells(table, "SSD/asked: written") == ["19.53", "1.95", "3.91"]
    # The disk alone tells of no bypass.
    assert _cells(table, "bypassed") == ["–", "2.00 MB", "2.00 MB"]  # noqa: RUF001


def test_a_program_says_how_fast_it_was(tmp_path: Path) -> None:
    said = ProgramReport(
        program="sysbench",
        used=["sysbench"],
        status=0,
        end_ns=1,
        figures=[
            Figure(name="read.throughput", value=5.0 * MB, unit="B/s"),
            Figure(name="write.throughput", value=1.0 * MB, unit="B/s"),
        ],
    )
    table = cached.summary(_analysis(tmp_path, says=said))
    assert _cells(table, "throughput") == ["6.00 MB/s"] * 3
    # Of its requests only the pieces are counted.
    assert "IOPS" not in [column.title for column in table.columns]


@pytest.mark.parametrize("passes", [1, 4])
def test_figures_are_those_of_throughput_and_latency(tmp_path: Path, passes: int) -> None:
    figures = make_figures(_analysis(tmp_path, passes=passes))
    chosen, *own = figures
    assert chosen.name == "choice"
    assert [figure.name for figure in own] == ["cached-throughput", "cached-latency"]
    for figure in own:
        assert ("passes 1, 2, 3, 4" in figure.title) == (passes == 4)
    assert own[0].svg.count("MB/s</text>") == (3 * passes) + 1 - sum(
        rate * number * BS < MB for rate, _ in CACHES.values() for number in range(1, passes + 1)
    )


def test_a_claim_is_explained_with_the_runs_own_figures(tmp_path: Path) -> None:
    analysis = _analysis(tmp_path)
    (result,) = judge_all(analysis)
    assert result.verdict == "fails"
    assert rows.because(result, analysis) == ["hits 75.0 %, 50.0 %; 8.00 MB"]
    page = render(analysis, make_figures(analysis), None)
    assert "hits 75.0 %, 50.0 %; 8.00 MB" in page
    assert page.index("<h2>Figures") < page.index("What the disks did")
    assert ">share error</a>" not in page


def test_tenants_that_share_a_cached_disk_keep_their_tables(tmp_path: Path) -> None:
    analysis = _analysis(tmp_path, tenants=2)
    assert not cached.is_bench(analysis)
    page = render(analysis, make_figures(analysis), None)
    assert page.index("<h2>Figures") < page.index("What the disks did")
    assert ">share error</a>" in page
    assert show(analysis)


STUDY = """
name = "s"
device = "fast"
[[tenant]]
name = "t"
[matrix]
scheduler = ["none", "bfq"]
[[claim]]
text = "x"
source = "x"
metric = "jain"
op = "<"
value = 1
where = { scheduler = "bfq" }
"""


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("{jane}", "{jane}: unknown metric 'jane'"),
        ("{cache.hits}", "has no figure 'hits'"),
        ("{p99.web}", "no tenant is called 'web'"),
        ("{than.jain}", "{than.jain}: there is no other run; set than"),
    ],
)
def test_a_reason_with_a_figure_that_is_none_is_refused(why: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        parse_study(f'{STUDY}why = "{why}"\n', "s.toml")

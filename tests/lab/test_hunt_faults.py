# SPDX-License-Identifier: GPL-2.0-only
"""Known answers: faults that were planted, or that a state of the past has, are found within a
budget, shrunk, and are not there where the fault is not."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from isoblk.analysis.claims import judge_all
from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import Bench
from tests.lab.campaigns import run_file

EXAMPLE = Path(__file__).parents[2] / "docs/examples/fifo"

# Of an elevator that sends in order: large requests wait until nothing smaller does.
ELSE = "list_first_entry_or_null(&fifo->requests, struct request,\n\t\t\t\t      queuelist);\n"
FIRST = f"\trq = {ELSE}"
SMALL_FIRST = f"""\
\tlist_for_each_entry(rq, &fifo->requests, queuelist)
\t\tif (blk_rq_bytes(rq) < SZ_256K)
\t\t\tbreak;
\tif (list_entry_is_head(rq, &fifo->requests, queuelist))
\t\trq = {ELSE}"""

# Kyber Fairness as it was when its light readers waited for half a second (docs/findings/hunt.md).
OLD = "a2bf5e7"

SIZES = """
name = "sizes"
[round]
random = 24
guided = 24
batch = 4
[[objective]]
metric = "starved"
beyond = 3
[study]
run = { warmup = "200ms", runtime = "600ms", window = "10ms" }
workload = { cputime = "512ns" }
queue = { nr_requests = 1024 }          # enough for all: who lacks tags starves as well
[study.schedulers.fifo]
module = "fifo-iosched"
[study.device]
driver = "vdisk"
size = "8g"
queue_depth = 32
servers = 8
read_ns = "100us"
write_ns = "100us"
read_bps = 500_000_000
write_bps = 500_000_000
[space]
tenants = [1, 4]
[space.tenant]
rw = ["randread", "read", "randwrite", "write"]
bs = ["4k", "64k", "512k"]
iodepth = [1, 8, 64]
pace = [{}, { rate_iops = 200 }, { thinktime = 1000 }]
"""


def hunt(scheduler: str, words: Sequence[str | Path], runs: int, home: Path) -> list[Path]:
    """The studies of what a hunt finds."""
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "isoblk", "hunt", *words, "--scheduler", scheduler),
            *("--runs", str(runs), "-j", "2", "-o", home),
        ],
        text=True,
        capture_output=True,
        check=False,
        timeout=1800,
    )
    assert ended.returncode == 0, ended.stderr
    return sorted((home / scheduler).glob("*/*.toml"))


def verdicts(studies: Sequence[Path], bench: Bench, home: Path) -> list[str]:
    """Whether what each study shows is there on a bench: "holds" or "fails"."""
    return [
        judged.verdict
        for study in studies
        for judged in judge_all(analyse(run_file(study, bench, home / study.stem, jobs=2)))
    ]


@pytest.mark.long
def test_a_planted_fault_is_found_and_not_there_without_it(tmp_path: Path) -> None:
    """Large requests that starve: of two tenants, one large, one deep."""
    faulty = tmp_path / "fifo"
    shutil.copytree(EXAMPLE, faulty)
    source = faulty / "fifo-iosched.c"
    text = source.read_text()
    assert text.count(FIRST) == 1
    source.write_text(text.replace(FIRST, SMALL_FIRST))
    file = tmp_path / "sizes.toml"
    file.write_text(SIZES)
    (study,) = hunt("fifo", [file, "--module", faulty], 200, tmp_path / "with")
    text = study.read_text()
    assert text.count("rw = ") == 2
    assert 'bs = "512k"' in text
    assert hunt("fifo", [file, "--module", EXAMPLE], 200, tmp_path / "without") == []


@pytest.mark.long
@pytest.mark.night
def test_a_fault_of_the_past_is_found_and_not_there_today(
    default_bench: Bench, tmp_path: Path
) -> None:
    root = Path(__file__).parents[2]
    found = subprocess.run(
        ["git", "-C", root, "archive", "--prefix=old/", OLD, "kernel"],
        capture_output=True,
        check=False,
    )
    if found.returncode:
        pytest.skip("the history is not here")
    subprocess.run(["tar", "-x"], input=found.stdout, cwd=tmp_path, check=True)
    old = tmp_path / "old/kernel"
    studies = hunt("kyber-fair", ["streams", "--sources", old], 300, tmp_path / "hunt")
    late = [study for study in studies if "-late-" in study.name]
    assert late
    # kyber-fair has budgets since, and promises nothing to light readers: isoblk does.
    today = [tmp_path / f"isoblk-{study.name}" for study in late]
    for study, path in zip(late, today, strict=True):
        path.write_text(study.read_text().replace('"kyber-fair"', '"isoblk"'))
    assert "fails" in verdicts(today, default_bench, tmp_path / "today")
    assert min(study.read_text().count("rw = ") for study in late) <= 3

# SPDX-License-Identifier: GPL-2.0-only
"""`make test-blktests` runs a checkout of blktests as it should be, or reports missing parts.

The suite itself is not here: a directory with a program of the same name stands for it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench

ROOT = Path(__file__).resolve().parents[2]

# It does what the suite relies on: bash, a module by name, a disk that udev gives an elevator.
CHECK = """\
#!/bin/bash
[[ $1 == -o ]] || exit 3
mkdir -p "$2"
printf '%s\\n' "${@:3}" > "$2/called"
pwd > "$2/where"
modprobe null_blk nr_devices=0
mkdir /sys/kernel/config/nullb/n0
echo 1 > /sys/kernel/config/nullb/n0/power
udevadm settle -t 600
cat /sys/block/n0/queue/scheduler > "$2/scheduler"
mkdir -p "$2/nodev/block"
cat <(printf 'status\\tpass\\n') > "$2/nodev/block/001"
. ./verdict
"""


@pytest.mark.parametrize("place", [None, "nowhere", "empty"])
def test_without_the_suite_one_sentence_says_so(tmp_path: Path, place: str | None) -> None:
    (tmp_path / "empty").mkdir()
    # A make above this one would have the one below name its depth, as in "make[1]: ***".
    inherited = ("BLKTESTS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in inherited}
    if place is not None:
        environment["BLKTESTS"] = str(tmp_path / place)
    said = subprocess.run(
        ["make", "--no-print-directory", "test-blktests"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 2
    first, *others = said.stderr.splitlines()
    assert first.startswith("test-blktests: set BLKTESTS to a checkout of blktests")
    # The messages of make itself about a failure.
    assert all(line.startswith("make: ***") for line in others)
    assert said.stdout == ""


@pytest.mark.parametrize(("elevator", "verdict"), [("isoblk", 0), ("cfq", 1)])
def test_the_suite_runs_with_our_elevator_on_every_disk_and_its_verdict_counts(
    debug_bench: Bench, tmp_path: Path, elevator: str, verdict: int
) -> None:
    suite = tmp_path / "a suite"
    suite.mkdir()
    (suite / "check").write_text(CHECK)
    (suite / "verdict").write_text(f"exit {verdict}\n")
    found = tmp_path / "found"
    command = [
        sys.executable,
        str(ROOT / "scripts" / "blktests"),
        str(suite),
        "--elevator",
        elevator,
    ]
    done = subprocess.run([*command, "-o", str(found)], capture_output=True, text=True, check=False)
    assert done.returncode == verdict, done.stdout + done.stderr
    assert done.stdout.startswith(f"{elevator}: {'failed' if verdict else 'passed'}: 1 pass;")
    results = found / elevator / "results"
    assert (results / "called").read_text().split() == ["block", "throtl", "loop"]
    assert (results / "where").read_text() == f"/host{suite}\n"
    assert f"[{elevator}]" in (results / "scheduler").read_text()

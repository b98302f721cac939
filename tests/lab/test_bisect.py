# SPDX-License-Identifier: GPL-2.0-only
"""A bisection names the commit that broke a scheduler, and goes on from what it has measured."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isoblk.campaign.execute import Bench, execute, make_bench, make_job
from isoblk.errors import RunError
from isoblk.kernel.modules import sources_of
from isoblk.paths import kernel_tree
from tests.unit.specs import MS, run_spec, tenant

STUDY = """\
name = "planted"
device = "fast"

[run]
warmup = "100ms"
runtime = "300ms"

[workload]
rw = "randread"
bs = "4k"
iodepth = 32
cputime = "512ns"

[[tenant]]
name = "heavy"
weight = 800

[[tenant]]
name = "light"
weight = 100

[matrix]
scheduler = ["none", "isoblk"]
"""
VTIME = "kernel/sched/isoblk/vtime.h"
STEP = "mul_div(cost, ISOBLK_SHARE_ONE, share)"


class Repository:
    """A git repository with this one's modules."""

    def __init__(self, top: Path) -> None:
        self.top = top
        for path in [*sources_of(kernel_tree()), kernel_tree() / "README.md"]:
            copy = top / "kernel" / path.relative_to(kernel_tree())
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        self._git("init", "-q", "-b", "main")
        self._git("config", "user.name", "a")
        self._git("config", "user.email", "a@example.org")
        self.commit("begin")

    def commit(self, subject: str) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "-m", subject)

    def change(self, subject: str, path: str, old: str, new: str) -> None:
        """A commit that replaces a text of a file, or appends one."""
        file = self.top / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1) if old else text + new)
        self.commit(subject)

    def _git(self, *arguments: str) -> None:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        subprocess.run(["git", "-C", str(self.top), *arguments], check=True, env=env)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "isoblk")


def bisect(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "isoblk", "bisect", *arguments, "--own", "isoblk"]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_a_planted_regression_is_found(
    repository: Repository, default_bench: Bench, tmp_path: Path
) -> None:
    del default_bench  # only its kernel is needed
    notes = "kernel/sched/muldiv.h"
    repository.change("README: a word", "kernel/README.md", "", "\nA word.\n")
    repository.change("sched: a remark", notes, "", "/* One. */\n")
    repository.change("sched: a second remark", notes, "", "/* Two. */\n")
    repository.change("sched: a thinko", VTIME, STEP, "mul_div(cost")
    repository.change("sched: mended", VTIME, "mul_div(cost", STEP)
    repository.change("sched: a step needs no division", VTIME, STEP, "cost")
    repository.change("sched: a third remark", notes, "", "/* Three. */\n")
    (tmp_path / "planted.toml").write_text(STUDY)
    asked = ("HEAD~7", "HEAD", "--study", "planted.toml", "--metric", "share_error")
    done = bisect(tmp_path, *asked, "--only", "scheduler=isoblk")
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert last.startswith("the first commit with share_error above ")
    assert last.endswith(" sched: a step needs no division")
    # A commit that does not compile is reported as skipped.
    assert "skipped: does not build: building the schedulers failed" in done.stderr
    # A commit that touches no scheduler is not tried.
    assert "README" not in done.stdout
    again = bisect(tmp_path, *asked, "--only", "scheduler=isoblk", "--json")
    assert again.returncode == 0, again.stderr
    told: dict[str, Any] = json.loads(again.stdout)
    assert told["sentence"] == last
    tried = {one["about"]: one for one in told["tried"]}
    assert tried["begin"]["value"] < 0.01
    assert tried["sched: a step needs no division"]["value"] > 0.5
    assert {one["point"]["scheduler"] for one in told["tried"] if one["point"]} == {"isoblk"}
    assert Path(tried["begin"]["results"], "study.json").is_file()


@pytest.mark.long
def test_a_bench_has_the_schedulers_of_another_tree_and_says_so(
    repository: Repository, default_bench: Bench, tmp_path: Path
) -> None:
    kbuild = repository.top / "kernel/sched/Kbuild"
    kbuild.write_text(kbuild.read_text().replace(" feedbac-iosched.o", ""))
    ours = default_bench
    bench = make_bench(ours.machine, ours.kernel, None, repository.top / "kernel")
    assert bench.modules_key.startswith(f"{ours.modules_key}-sched-")
    assert bench.modules["isoblk-iosched"] != ours.modules["isoblk-iosched"]
    assert bench.modules["blkload"] == ours.modules["blkload"]
    times = {"warmup_ns": 50 * MS, "runtime_ns": 100 * MS}
    tenants = (tenant("a", 100, rw="randread", iodepth=8),)
    spec = run_spec("isoblk", tenants=tenants, **times)
    jobs = [make_job(spec, one.kernel.key, one.modules_key) for one in (ours, bench)]
    assert jobs[0].id != jobs[1].id
    assert execute(jobs[1], bench, tmp_path).record.reasons == []
    # One that the tree lacks is not today's.
    lacking = run_spec("feedbac", tenants=tenants, **times)
    job = make_job(lacking, bench.kernel.key, bench.modules_key)
    with pytest.raises(RunError, match="the module feedbac-iosched was not built"):
        execute(job, bench, tmp_path)

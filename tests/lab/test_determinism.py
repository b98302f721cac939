# SPDX-License-Identifier: GPL-2.0-only
"""Equal inputs give byte-identical tables, whatever else goes on."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from isoblk.campaign.execute import Bench, Job
from isoblk.kernel import host_library
from isoblk.machine import uml
from isoblk.machine.uml import Uml
from tests.lab.campaigns import STUDIES, easily_disturbed, run_file, tables

QUICK = STUDIES / "quick.toml"
NOBODY = 65534


@contextmanager
def _busy_machine() -> Iterator[None]:
    """Twice as many spinning processes as CPUs."""
    spinners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * (os.cpu_count() or 1))
    ]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def test_twice_beside_another_load_and_side_by_side(bench: Bench, tmp_path: Path) -> None:
    first = tables(run_file(QUICK, bench, tmp_path / "first"))
    assert first
    assert tables(run_file(QUICK, bench, tmp_path / "second")) == first
    assert tables(run_file(QUICK, bench, tmp_path / "side by side", jobs=2)) == first
    with _busy_machine():
        assert tables(run_file(QUICK, bench, tmp_path / "busy")) == first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_as_another_user_and_from_another_path(default_bench: Bench, tmp_path: Path) -> None:
    job = easily_disturbed()
    mine = tmp_path / "mine"
    theirs = Path(mkdtemp(prefix="isoblk-of-another-user-", dir="/var/tmp"))
    try:
        _run_plan(job, default_bench, mine)
        kernel = replace(default_bench.kernel, dir=theirs / "kernel")
        kernel.build.mkdir(parents=True)
        shutil.copy(default_bench.kernel.linux, kernel.linux)
        library = Path(shutil.copy(host_library(default_bench.kernel), theirs))
        modules = {
            name: Path(shutil.copy(default_bench.modules[name], theirs))
            for name in job.plan.modules
        }
        for path in (theirs, *theirs.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                machine = Uml(kernel, library, time_limit_s=600)
                _run_plan(job, Bench(machine, kernel, modules, ""), theirs / "run")
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (theirs / "run" / "results").stat().st_uid == NOBODY
        assert (theirs / "run" / "results").read_bytes() == (mine / "results").read_bytes()
    finally:
        shutil.rmtree(theirs)


def test_wherever_the_guests_memory_is_kept(
    default_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tables(run_file(QUICK, default_bench, tmp_path / "in memory"))
    monkeypatch.setattr(uml, "SHARED_MEMORY", tmp_path / "there is none")
    # Not a kept guest: the key does not have the place of the memory, and its console names it.
    library = host_library(default_bench.kernel)
    machine = Uml(default_bench.kernel, library, time_limit_s=600)
    assert tables(run_file(QUICK, replace(default_bench, machine=machine), tmp_path / "d")) == first


def _run_plan(job: Job, bench: Bench, directory: Path) -> None:
    directory.mkdir()
    (directory / "plan.sh").write_text(job.plan.text)
    modules = [bench.modules[name] for name in job.plan.modules]
    bench.machine.run(directory, modules, seed=1, memory_mib=512)

# SPDX-License-Identifier: GPL-2.0-only
"""The modules on kernels that are configured otherwise: with fewer options, or for 32 bits."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.kernel.modules import sources_of
from isoblk.paths import kernel_tree
from isoblk.run.record import RunRecord
from tests.lab.guest import Guest
from tests.lab.share import EXACT
from tests.lab.test_kunit import SUITES, passes
from tests.unit.specs import MS, run_spec, tenant

# Modules that need BFQ's io contexts.
WITH_BFQ = ("cfq_test",)


@pytest.mark.parametrize("suite", [name for name in SUITES if name not in WITH_BFQ])
def test_kunit_passes_without_options_of_others(lean_guest: Guest, suite: str) -> None:
    passes(lean_guest, suite)


@pytest.mark.parametrize("elevator", EXACT)
def test_a_device_is_learned_without_write_back_throttling(
    default_bench: Bench, lean_bench: Bench, tmp_path: Path, elevator: str
) -> None:
    with_it, without = (
        _total(_run(bench, tmp_path / bench.kernel.arch, elevator))
        for bench in (default_bench, lean_bench)
    )
    assert without == pytest.approx(with_it, rel=0.02)
    assert with_it > 0


def test_a_32_bit_kernel_is_refused_in_one_line(default_bench: Bench, tmp_path: Path) -> None:
    tree = tmp_path / "kernel"
    for path in sources_of(kernel_tree()):
        target = tree / path.relative_to(kernel_tree())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    make = ["make", "-C", str(default_bench.kernel.build), f"M={tree}", "ARCH=um", "CC=gcc"]
    done = subprocess.run(
        [*make, "CONFIG_64BIT=", "sched/"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert len(said) == 1, done.stderr
    assert "*** the schedulers need a 64-bit kernel: CONFIG_64BIT is not set.  Stop." in said[0]
    assert "error" not in done.stdout


def _run(bench: Bench, directory: Path, scheduler: str) -> RunRecord:
    """Two tenants of weights 2:1 that read much at once, from the fast device."""
    load: dict[str, Any] = {"rw": "randread", "bs": 128 << 10, "iodepth": 32, "cputime_ns": 512}
    spec = run_spec(
        scheduler,
        tenants=(tenant("a", 1000, randseed=1, **load), tenant("b", 500, randseed=2, **load)),
        warmup_ns=200 * MS,
        runtime_ns=300 * MS,
    )
    run = execute(make_job(spec, "", ""), bench, directory)
    assert run.record.reasons == []
    return run.record


def _total(record: RunRecord) -> int:
    """Requests that were served."""
    return sum(op.meas_ios for one in record.tenants for op in one.ops.values())

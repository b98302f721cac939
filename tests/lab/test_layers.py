# SPDX-License-Identifier: GPL-2.0-only
"""Weights through the layers between a program and its disk: the claims of the studies."""

from pathlib import Path

import pytest

from isoblk.analysis.claims import judge_all
from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.run.spec import Filesystem, VdiskDevice
from tests.lab.campaigns import STUDIES, run_file
from tests.unit.specs import MS, run_spec, tenant

MIB = 1 << 20


@pytest.mark.long
@pytest.mark.parametrize("name", ["layers", "zoned", "btrfs", "ioengines"])
def test_the_claims_of_the_study_hold(name: str, default_bench: Bench, tmp_path: Path) -> None:
    results = run_file(STUDIES / f"{name}.toml", default_bench, tmp_path / "r", jobs=2)
    judged = judge_all(analyse(results))
    assert judged
    assert [one.claim.text for one in judged if one.verdict != "holds"] == []


@pytest.mark.parametrize("memory", [32 * MIB, 64 * MIB])
def test_a_buffered_writer_with_little_memory_is_throttled_on_a_slow_disk(
    memory: int, default_bench: Bench, tmp_path: Path
) -> None:
    """No write of 1 MiB ends within 0.3 s, and memory.max alone would end the writer in 0.2."""
    writer = tenant(
        "dd",
        program="dd",
        memory=memory,
        options={"bs": "1m", "count": 2 * memory // MIB, "flag": ""},
    )
    seconds = 60
    spec = run_spec(
        device=VdiskDevice(size=256 * MIB, store="memory", write_bps=3_000_000),
        filesystem=Filesystem(type="ext4", offset=0, size=256 * MIB),
        tenants=(writer,),
        runtime_ns=seconds * 1000 * MS,
    )
    run = execute(make_job(spec, "", ""), default_bench, tmp_path)
    assert run.record.status == "valid", run.record.reasons

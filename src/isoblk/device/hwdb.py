# SPDX-License-Identifier: GPL-2.0-only
"""Convert io.cost's database of drives into figures for a preset."""

from collections.abc import Mapping
from typing import Literal

from isoblk.machine.iocost_hwdb import Known
from isoblk.run.spec import RwMode
from isoblk.study.model import ExpectEntry, ExpectMetric

# Loads of the kernel's iocost_coef_gen.py (tools/cgroup). Its block of 128 MiB reaches the drive as
# concurrent requests of about a MiB.
_LOADS: Mapping[str, tuple[RwMode, str, int]] = {
    "rbps": ("read", "1m", 32),
    "rseqiops": ("read", "4k", 64),
    "rrandiops": ("randread", "4k", 64),
    "wbps": ("write", "1m", 32),
    "wseqiops": ("write", "4k", 64),
    "wrandiops": ("randwrite", "4k", 64),
}
_SMALL = 4096
# Random writes at this fraction of sequential ones were measured on a drive with free blocks.
_NO_COLLECTION = 0.95


def expect_entries(known: Known, file: str) -> tuple[ExpectEntry, ...]:
    """Return the figures as rows of a preset: four for the fit, and two to judge it.

    Args:
        known: the drive's figures.
        file: name of the database, for the source.
    """
    steady = known.figures["wrandiops"] * _SMALL < _NO_COLLECTION * known.figures["wbps"]
    state: Literal["fresh", "steady"] = "steady" if steady else "fresh"
    rows = []
    for name, (rw, bs, iodepth) in _LOADS.items():
        metric: ExpectMetric = "bps" if name.endswith("bps") else "iops"
        rows.append(
            ExpectEntry(
                what=f"{name}: {rw} {bs}, iodepth {iodepth}",
                rw=rw,
                metric=metric,
                value=known.figures[name],
                source=f"{file}: {known.model}, {known.solution}",
                bs=bs,
                iodepth=iodepth,
                state=state if rw == "randwrite" else "fresh",
                # In the model, a small sequential request costs the same as a random one.
                fitted=not name.endswith("seqiops"),
            )
        )
    return tuple(rows)

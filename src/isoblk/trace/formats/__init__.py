# SPDX-License-Identifier: GPL-2.0-only
"""The trace formats, one module each, and which of them a file has."""

from pathlib import Path

from isoblk.errors import UserError
from isoblk.trace.batch import Format
from isoblk.trace.formats import (
    alibaba,
    blkparse,
    blktrace,
    columns,
    disksim,
    etw,
    iolog,
    mqsim,
    msr,
    oracle,
    spc,
    systor,
    tencent,
    tracereplay,
    vscsi,
)

FORMATS: dict[str, Format] = {
    module.FORMAT.name: module.FORMAT
    for module in (
        spc,
        msr,
        etw,
        systor,
        disksim,
        mqsim,
        blkparse,
        blktrace,
        iolog,
        tracereplay,
        columns,
        alibaba,
        tencent,
        vscsi,
        oracle,
    )
}
NAMES = " ".join(FORMATS)


def by_name(name: str) -> Format:
    """Raises UserError: no such format."""
    if name not in FORMATS:
        raise UserError(f"unknown trace format {name!r}", next=f"formats: {NAMES}")
    return FORMATS[name]


def detect(head: bytes, path: Path) -> Format:
    """The format of a file that begins with `head`. Raises UserError: none fits."""
    scores = {name: one.matches(head) for name, one in FORMATS.items()}
    best = max(scores, key=lambda name: scores[name])
    if scores[best] < 0.5:
        raise UserError(
            "no known trace format",
            where=str(path),
            next=f"name its --columns, or its --format: {NAMES}",
        )
    return FORMATS[best]

# SPDX-License-Identifier: GPL-2.0-only
"""The trace formats, a module each, and their detection."""

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
    """Return a format by its name. Raises UserError: it is unknown."""
    if name not in FORMATS:
        raise UserError(f"unknown trace format {name!r}", next=f"formats: {NAMES}")
    return FORMATS[name]


def detect(head: bytes, path: Path) -> Format:
    """Return the format of a file that begins with `head`. Raises UserError: it is unknown."""
    scores = {name: one.matches(head) for name, one in FORMATS.items()}
    best = max(scores, key=lambda name: scores[name])
    if scores[best] < 0.5:
        raise UserError(
            "unknown trace format",
            where=str(path),
            next=f"set --columns, or --format to one of: {NAMES}",
        )
    return FORMATS[best]

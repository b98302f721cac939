# SPDX-License-Identifier: GPL-2.0-only
"""blkparse's default text output.

    8,0    3   11   0.009507758   697  Q   W 223490 + 8 [kjournald]

Device, CPU, sequence, seconds, PID, action, operation, sector + sectors. The requests are the
queued ones (Q), as applications send them; if the first lines have none (blktrace -a issue), the
issued ones (D). Letters of the operation: R, W, D (discard) and, before them, F for a preceding
flush; F after W is FUA, a later S synchronous. Other actions, messages and the closing summary are
skipped. Source: blkparse(1).
"""

import re

import numpy as np

from isoblk.trace.batch import Batch, DamagedError, Format, make_batch, no_requests, sectors, ticks
from isoblk.trace.lines import Lines, Parser, groups, number, plain
from isoblk.trace.record import FLUSH, READ, SECOND, TRIM, WRITE, write_flags

_EVENT = r"^\d+, *\d+ +"
_NAMES = ("major", "minor", "s", "ns", "action", "op", "sector", "sectors")
_PATTERN = (
    r"^(\d+), *(\d+) +\d+ +\d+ +(\d+)\.(\d{9}) +\d+ +([A-Za-z]+) +([A-Z]+)"
    r"(?: +(\d+)(?: +\+ +(\d+))?)?"
)


def _parser() -> Parser:
    wanted = ""

    def parse(lines: bytes) -> Batch:
        nonlocal wanted
        text = plain(lines)
        events = text.filter(text.str.contains(_EVENT))
        if events.is_empty():
            return no_requests()
        found = groups(events, _PATTERN, _NAMES)
        message = events.str.contains(r"^(?:\S+ +){4}\S+ +m ")
        if (found["op"].is_null() & ~message).any():
            raise DamagedError
        action = wanted or ("Q" if (found["action"] == "Q").any() else "D")
        picked = found.filter(found["action"] == action)
        left_out = found.height - picked.height
        if picked.is_empty():
            return no_requests(left_out)
        letters = picked["op"]
        body = letters.str.strip_prefix("F")
        size = sectors(number(picked["sectors"].fill_null("0")))
        flush = letters.str.starts_with("F").to_numpy() & (size == 0)
        kinds = [body.str.starts_with(letter).to_numpy() for letter in "RWD"]
        known = flush | np.any(kinds, axis=0)
        op = np.select([flush, *kinds], [FLUSH, READ, WRITE, TRIM], READ)
        batch = make_batch(
            ticks(number(picked["s"]), SECOND) + number(picked["ns"]),
            sectors(number(picked["sector"].fill_null("0"))),
            np.where(known, size, 0),  # 0 bytes: left out
            op,
            volume=number(picked["major"]) << 20 | number(picked["minor"]),
            flags=write_flags(
                op,
                body.str.starts_with("WF").to_numpy(),
                letters.str.starts_with("F").to_numpy(),
                body.str.contains("S", literal=True).to_numpy(),
            ),
            left_out=left_out,
        )
        if len(batch):
            wanted = action
        return batch

    return parse


_LINES = Lines(
    shape="MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION OPERATION SECTOR + SECTORS [PROCESS]",
    pattern=re.compile(rb"\d+, *\d+\s+\d+\s+\d+\s+\d+\.\d{9}\s+\d+\s+[A-Za-z]+\s.*"),
    parser=_parser,
)
FORMAT = Format("blkparse", "blkparse text", _LINES.matches, _LINES.batches)

# SPDX-License-Identifier: GPL-2.0-only
"""The format of trace-replay's first versions: a fio log of version 2 without its first line.

    FILE read|write OFFSET BYTES

Offset and length in bytes. The tool skips the first line, and lines of other actions; here a first
line that is a request counts. There are no times: all requests are at 0, which suits a closed loop.
Later versions read DiskSim ASCII. Source: github.com/yongseokoh/trace-replay, trace_replay.c and
its README.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from isoblk.trace.batch import Bad, Batch, Format
from isoblk.trace.formats import iolog
from isoblk.trace.lines import Lines

_LINE = re.compile(rb"\S+\s+(read|write)\s+\d+\s+\d+\s*")
_MICROSECOND = 1000


def _lines(header: bytes = b"") -> Lines:
    return Lines(
        shape="FILE read|write OFFSET BYTES",
        pattern=_LINE,
        parser=iolog.lines(2, _MICROSECOND).parser,
        header=header,
    )


def _batches(blocks: Iterable[bytes], bad: Bad) -> Iterator[Batch]:
    rest = iter(blocks)
    first = next(rest, b"")
    line = first.partition(b"\n")[0]
    header = b"" if _LINE.fullmatch(line) else line
    return _lines(header).batches(chain([first], rest), bad)


FORMAT = Format("trace-replay", "trace-replay's lines", _lines().matches, _batches)

# SPDX-License-Identifier: GPL-2.0-only
"""fio's I/O logs, versions 2 and 3 (write_iolog, read_iolog).

    fio version 2 iolog                     fio version 3 iolog
    /dev/sda add                            15 /dev/sda add
    /dev/sda open                           20 /dev/sda open
    /dev/sda read 4096 8192                 120 /dev/sda read 4096 8192
    /dev/sda wait 100                       330 /dev/sda sync 0 0

Offset and length in bytes. Version 2 has no times: "wait" adds microseconds, and without it all
requests are at time 0. A line of version 3 starts with microseconds since the start. sync and
datasync are flushes. A file is a volume, numbered in order of appearance. Source: fio(1), "Trace
file format"; the time's unit from logs that fio 3.33 wrote.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

import numpy as np
import polars as pl

from isoblk.trace.batch import FURTHEST, Bad, Batch, DamagedError, Format, make_batch, ticks
from isoblk.trace.lines import Lines, Parser, groups, number, plain
from isoblk.trace.record import FLUSH, READ, TRIM, WRITE, Array

_OPS = {"read": READ, "write": WRITE, "trim": TRIM, "sync": FLUSH, "datasync": FLUSH}
_SIZED = ("read", "write", "trim")
_OTHER = ("add", "open", "close", "sync_file_range", "wait")
_NAMES = ("time", "file", "action", "offset", "size")
_ACTION = r"(\S+) +([a-z_]+)(?: +(\d+)(?: +(\d+))?)?$"
_PATTERNS = {2: r"^()" + _ACTION, 3: r"^(\d+) +" + _ACTION}
_VERSION = re.compile(rb"fio version ([23]) iolog\s*\n")


def _parser(version: int, ns: int) -> Parser:
    now = 0  # ns, version 2
    volumes: dict[str, int] = {}

    def parse(part: bytes) -> Batch:
        nonlocal now
        text = plain(part)
        found = groups(text.filter(text != ""), _PATTERNS[version], _NAMES)
        action = found["action"]
        known = action.is_in([*_OPS, *_OTHER]) & (
            ~action.is_in(_SIZED) | found["size"].is_not_null()
        )
        if not known.fill_null(False).all():
            raise DamagedError
        time = _waited(found, now, ns) if version == 2 else ticks(number(found["time"]), ns)
        ours = action.is_in(list(_OPS))
        requests = found.filter(ours)
        numbers = dict(volumes)
        for name in requests["file"].unique(maintain_order=True):
            numbers.setdefault(name, len(numbers))
        batch = make_batch(
            time[ours.to_numpy()],
            number(requests["offset"].fill_null("0")),
            number(requests["size"].fill_null("0")),
            number(requests["action"].replace_strict(_OPS, return_dtype=pl.Int64)),
            volume=number(requests["file"].replace_strict(numbers, return_dtype=pl.Int64)),
        )
        now = int(time[-1]) if len(time) else now
        volumes.update(numbers)
        return batch

    return parse


def _waited(found: pl.DataFrame, now: int, ns: int) -> Array:
    """Return the time of every line: `now` and the waits before it, in units of `ns`."""
    is_wait = (found["action"] == "wait").to_numpy()
    waits = number(found["offset"].fill_null("0"))
    gaps = ticks(np.where(is_wait, waits, 0), ns)
    if now + gaps.sum(dtype=np.float64) > FURTHEST:
        raise DamagedError("the time is out of range")
    time: Array = now + np.cumsum(gaps)
    return time


def _batches(blocks: Iterable[bytes], bad: Bad, ns: int = 1000) -> Iterator[Batch]:
    """As Lines.batches(); the first line has the version."""
    rest = iter(blocks)
    first = next(rest, b"")
    match = _VERSION.match(first)
    if match is None:
        bad.line(1, 'not "fio version 2 iolog" or "fio version 3 iolog"')
    return lines(int(match[1]) if match else 3, ns).batches(chain([first], rest), bad)


def lines(version: int, ns: int) -> Lines:
    """Return the format of a log after its first line, by version and unit of times."""
    return Lines(
        shape="MICROSECONDS " * (version == 3) + "FILE read|write|trim|sync|datasync OFFSET LENGTH",
        pattern=re.compile(_PATTERNS[version].encode()),
        parser=lambda: _parser(version, ns),
        header=b"fio version",
    )


FORMAT = Format(
    "iolog",
    "fio iolog",
    lambda head: float(bool(_VERSION.match(head))),
    _batches,
    lambda ns: partial(_batches, ns=ns),
)

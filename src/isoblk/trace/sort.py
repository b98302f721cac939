# SPDX-License-Identifier: GPL-2.0-only
"""Sort records by time in bounded memory.

Most traces are nearly sorted: requests that are recorded at their end, or by several CPUs, are
slightly out of order. The last WINDOW records are therefore held back and sorted with the next
ones. A record that is further out of order begins a new run in the file, and the runs are merged at
the end. Records with equal times keep their order, except across runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

from isoblk.trace.record import RECORD, Array, Records, empty

WINDOW = 1 << 17  # records: 3 MiB
MERGED_AT_ONCE = 1 << 20  # records of all runs together: 24 MiB


@dataclass
class Run:
    """Sorted records start..stop of the file. first, last: their times."""

    start: int
    stop: int
    first: int
    last: int


class Sorter:
    """Write records to a file in few sorted runs."""

    def __init__(self, file: IO[bytes], window: int = WINDOW) -> None:
        self._file = file
        self._window = window
        self._held = empty()
        self.runs: list[Run] = []

    def add(self, records: Records) -> None:
        """Add records."""
        together = by_time(np.concatenate([self._held, records]))
        out = max(0, len(together) - self._window)
        self._write(together[:out])
        self._held = together[out:]

    def finish(self) -> list[Run]:
        """Write all remaining records, and return the runs."""
        self._write(self._held)
        self._held = empty()
        return self.runs

    def _write(self, records: Records) -> None:
        if not len(records):
            return
        first, last = int(records["t"][0]), int(records["t"][-1])
        start = self.runs[-1].stop if self.runs else 0
        if self.runs and self.runs[-1].last <= first:
            self.runs[-1].stop += len(records)
            self.runs[-1].last = last
        else:
            self.runs.append(Run(start, start + len(records), first, last))
        records.tofile(self._file)


def by_time(records: Records) -> Records:
    """Sort by time; stable."""
    time: Array = records["t"]
    if np.all(time[1:] >= time[:-1]):
        return records
    return records[np.argsort(time, kind="stable")]


def merge(file: IO[bytes], runs: list[Run], at_once: int = MERGED_AT_ONCE) -> Iterator[Records]:
    """Yield all records of the runs, sorted.

    Args:
        file: written by a Sorter.
        runs: its runs.
        at_once: records in memory; at least 1024 per run.
    """
    waiting = sorted(runs, key=lambda run: run.first, reverse=True)
    # A run is in memory only from its first time to its last.
    block = max(1024, at_once // max(1, _most_overlapping(runs)))
    open_runs: list[_Reader] = []
    while waiting or open_runs:
        if not open_runs:
            open_runs.append(_Reader(file, waiting.pop(), block))
        # All records up to this time are in memory, or in a run that is not open yet.
        until = min(reader.last for reader in open_runs)
        while waiting and waiting[-1].first <= until:
            reader = _Reader(file, waiting.pop(), block)
            open_runs.append(reader)
            until = min(until, reader.last)
        open_runs.sort(key=lambda reader: reader.place)
        parts = [reader.take(until) for reader in open_runs]
        open_runs = [reader for reader in open_runs if not reader.empty]
        yield by_time(np.concatenate(parts))


def _most_overlapping(runs: list[Run]) -> int:
    """Return the largest number of runs that cover one time."""
    starts = sorted(run.first for run in runs)
    stops = sorted(run.last for run in runs)
    most = now = ended = 0
    for start in starts:
        while stops[ended] < start:
            ended += 1
            now -= 1
        now += 1
        most = max(most, now)
    return most


class _Reader:
    """The next records of a run."""

    def __init__(self, file: IO[bytes], run: Run, block: int) -> None:
        self._file, self._run, self._block = file, run, block
        self._next = self.place = run.start
        self._records = empty()
        self._fill()

    @property
    def last(self) -> int:
        return int(self._records["t"][-1])

    @property
    def empty(self) -> bool:
        return not len(self._records)

    def take(self, until: int) -> Records:
        """Return the records in memory whose time is at most `until`."""
        count = int(np.searchsorted(self._records["t"], np.uint64(until), side="right"))
        taken, self._records = self._records[:count], self._records[count:]
        if self.empty:
            self._fill()
        return taken

    def _fill(self) -> None:
        count = min(self._block, self._run.stop - self._next)
        self._file.seek(self._next * RECORD.itemsize)
        self._records = np.fromfile(self._file, RECORD, count)
        self._next += count

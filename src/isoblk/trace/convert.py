# SPDX-License-Identifier: GPL-2.0-only
"""Importing: from trace files of any format to one compact trace.

First pass: parse, and write records in the file's own times and addresses, in sorted runs.
Second pass: merge the runs, let time begin at 0, and lay the volumes after each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isoblk.errors import UserError
from isoblk.trace import formats
from isoblk.trace.batch import FURTHEST, Bad, Batch, Format
from isoblk.trace.compact import MAGIC, Header, Writer, scratch, writing
from isoblk.trace.decompress import open_trace
from isoblk.trace.formats.columns import Columns, table
from isoblk.trace.record import FLUSH, LARGEST, MOST_STREAMS, RECORD, Array, Records
from isoblk.trace.sort import Sorter, merge

ALIGNMENT = 1 << 20  # a volume begins at a multiple of this


@dataclass(frozen=True)
class Volume:
    """An address space of the source.

    number: the format's. stream: in the compact trace. base: where it begins there. size:
    highest byte + 1 that is used.
    """

    number: int
    stream: int
    base: int
    size: int
    records: int


@dataclass(frozen=True)
class Imported:
    """What an import did.

    formats: of the files. left_out: events that are no requests. skipped: places of damaged
    records. runs: sorted pieces that had to be merged, 1 for a trace sorted but for the
    window.
    """

    header: Header
    formats: tuple[str, ...]
    volumes: tuple[Volume, ...]
    left_out: int
    skipped: tuple[str, ...]
    runs: int


def import_trace(
    paths: Sequence[Path],
    output: Path,
    *,
    name: str | None = None,
    skip_bad: int = 0,
    time_unit: str | None = None,
    columns: Columns | None = None,
) -> Imported:
    """Make a compact trace of one or more files, whose times have one clock.

    Args:
        name: the format; None: told from each file's content.
        skip_bad: damaged records to pass over, of all files together.
        time_unit: of their times, one of TIME_UNITS; None: what the format says.
        columns: what the files' columns are, which are then of the format csv.

    Raises:
        UserError: a file cannot be read, its format is not known, more is damaged than
            allowed, nothing is left, or `output` cannot be written; nothing is written then.
    """
    volumes = _Volumes()
    left_out = 0
    found: list[str] = []
    skipped: list[str] = []
    with scratch(output) as raw:
        sorter = Sorter(raw)
        for path in paths:
            with open_trace(path) as (head, blocks):
                if head.startswith(MAGIC):
                    raise UserError("a compact trace already", where=str(path))
                one = _format(columns, name, head, path)
                found.append(one.name)
                volumes.are(one, path)
                bad = Bad(path, skip_bad - len(skipped))
                for batch in one.with_unit(time_unit, path)(blocks, bad):
                    left_out += batch.left_out
                    records = volumes.records(batch)
                    with writing(output):
                        sorter.add(records)
                skipped += bad.places
        with writing(output):
            runs = sorter.finish()
        if not runs:
            raise UserError(
                "no requests in it" if len(paths) == 1 else "no requests in them",
                where=", ".join(map(str, paths)),
                next=f"its format was taken to be {found[0]}; see --format",
            )
        layout = volumes.layout(paths[0])
        begin = min(run.first for run in runs)
        bases = np.array([volume.base for volume in layout], np.uint64)
        streams = np.array([volume.stream for volume in layout], np.uint16)
        with Writer(output) as writer:
            for records in merge(raw, runs):
                records["t"] -= begin
                records["offset"] += bases[records["stream"]] * (records["op"] != FLUSH)
                records["stream"] = streams[records["stream"]]
                writer.write(records)
    return Imported(
        writer.header, tuple(dict.fromkeys(found)), layout, left_out, tuple(skipped), len(runs)
    )


def _format(columns: Columns | None, name: str | None, head: bytes, path: Path) -> Format:
    if columns is not None:
        return table(columns)
    return formats.by_name(name) if name else formats.detect(head, path)


class _Volumes:
    """The volumes so far. Records hold a volume's place: which one it was to be found.

    one_space: they are streams of one address space; None: nothing is known yet.
    """

    def __init__(self) -> None:
        self.one_space: bool | None = None
        self._places: dict[int, int] = {}
        self._sizes = np.zeros(MOST_STREAMS, np.uint64)
        self._counts = np.zeros(MOST_STREAMS, np.int64)

    def are(self, one: Format, path: Path) -> None:
        """What comes is of that format. Raises UserError: it does not go with what was before."""
        if self.one_space not in (None, one.one_space):
            raise UserError(
                "streams of one disk here, volumes in the file before, or the other way round",
                where=str(path),
                next="import each by itself",
            )
        self.one_space = one.one_space

    def records(self, batch: Batch) -> Records:
        """The batch as records, with times from FURTHEST before the epoch."""
        place = self._place(batch.volume)
        records = np.empty(len(batch), RECORD)
        records["t"] = batch.time + FURTHEST
        records["offset"] = batch.offset
        records["bytes"] = batch.size
        records["op"] = batch.op
        records["flags"] = batch.flags
        records["stream"] = place
        np.maximum.at(self._sizes, place, batch.offset + batch.size)
        self._counts += np.bincount(place, minlength=MOST_STREAMS)
        return records

    def _place(self, numbers: Array) -> Array:
        if len(numbers) and numbers.min() == numbers.max():
            different, inverse = numbers[:1], np.zeros(len(numbers), np.intp)
        else:
            different, inverse = np.unique(numbers, return_inverse=True)
        for number in different.tolist():
            self._places.setdefault(number, len(self._places))
        if len(self._places) > MOST_STREAMS:
            raise UserError(
                f"more than {MOST_STREAMS} volumes", next="take those of interest out first"
            )
        return np.array([self._places[n] for n in different.tolist()], np.intp)[inverse]

    def layout(self, path: Path) -> tuple[Volume, ...]:
        """Where each goes, by place; they lie in the address space in the order of their numbers.

        A volume's stream is its number, if all numbers are fit for that, and else its place by
        number, from 1. Streams of one address space all begin at 0.
        """
        fit = all(0 <= number < MOST_STREAMS for number in self._places)
        layout: dict[int, Volume] = {}
        base = 0
        for rank, number in enumerate(sorted(self._places), 1):
            place = self._places[number]
            size = int(self._sizes[place])
            if base + size > LARGEST:
                raise UserError("the volumes together are above 2^63 bytes", where=str(path))
            stream = number if fit else rank
            layout[place] = Volume(number, stream, base, size, int(self._counts[place]))
            if not self.one_space:
                base = -(-(base + size) // ALIGNMENT) * ALIGNMENT
        return tuple(layout[place] for place in range(len(layout)))

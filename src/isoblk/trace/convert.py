# SPDX-License-Identifier: GPL-2.0-only
"""Import trace files of any format as one compact trace.

First pass: parse, and write records with the file's own times and addresses, in sorted runs. Second
pass: merge the runs, shift times to begin at 0, and concatenate the volumes.
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

    number: the format's. stream: in the compact trace. base: its first byte there. size: highest
    used byte + 1.
    """

    number: int
    stream: int
    base: int
    size: int
    records: int


@dataclass(frozen=True)
class Imported:
    """Result of an import.

    formats: of the files. left_out: events that are not requests. skipped: places of damaged
    records. runs: sorted pieces that were merged; 1 for a trace sorted within the window.
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
    """Import one or more files, whose times have one clock, as a compact trace.

    Args:
        paths: the files.
        output: the compact trace.
        name: the format; None to detect it from each file's content.
        skip_bad: damaged records to skip, of all files together.
        time_unit: of their times, one of TIME_UNITS; None for the format's own.
        columns: the files' columns, for the format csv.

    Raises:
        UserError: a file cannot be read, its format is unknown, more records are damaged than
            allowed, no request remains, or `output` cannot be written. Then nothing is written.
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
                    raise UserError("is already a compact trace", where=str(path))
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
                "has no requests" if len(paths) == 1 else "have no requests",
                where=", ".join(map(str, paths)),
                next=f"the detected format is {found[0]}; if it is wrong, set --format",
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
    """The volumes so far. Records have a volume's index in the order of detection.

    one_space: whether they are streams of one address space; None: not known yet.
    """

    def __init__(self) -> None:
        self.one_space: bool | None = None
        self._places: dict[int, int] = {}
        self._sizes = np.zeros(MOST_STREAMS, np.uint64)
        self._counts = np.zeros(MOST_STREAMS, np.int64)

    def are(self, one: Format, path: Path) -> None:
        """Check the format of the next file. Raises UserError: it does not fit the files before."""
        if self.one_space not in (None, one.one_space):
            raise UserError(
                "a file with streams of one disk cannot be combined with a file of volumes",
                where=str(path),
                next="import each by itself",
            )
        self.one_space = one.one_space

    def records(self, batch: Batch) -> Records:
        """Return the batch as records, with times from FURTHEST before the epoch."""
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
                f"more than {MOST_STREAMS} volumes", next="extract the volumes of interest first"
            )
        return np.array([self._places[n] for n in different.tolist()], np.intp)[inverse]

    def layout(self, path: Path) -> tuple[Volume, ...]:
        """Return the place of each volume, by index; the address space has them in the order of
        their numbers.

        A volume's stream is its number if all numbers fit, else its rank by number, from 1. Streams
        of one address space all begin at 0.
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

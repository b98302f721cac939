# SPDX-License-Identifier: GPL-2.0-only
"""Formats of binary records of one size."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from isoblk.trace.batch import Bad, Batch, DamagedError
from isoblk.trace.record import Array

# A parser is stateless: it parses a part of an array like a whole one.
ArrayParser = Callable[[Array], Batch]


def batches(
    blocks: Iterable[bytes], bad: Bad, record: np.dtype[np.void], parse: ArrayParser
) -> Iterator[Batch]:
    """Yield the requests of a file of records.

    Args:
        blocks: of the file.
        bad: counts damaged records.
        record: type of a record.
        parse: raises DamagedError for impossible records; the array is then halved until the
            damaged record is alone.

    Raises:
        UserError: more damaged records than allowed; an incomplete last one counts.
    """
    rest = b""
    number = 0  # of records read
    for block in blocks:
        data = rest + block
        count = len(data) // record.itemsize
        records = np.frombuffer(data, record, count)
        rest = data[count * record.itemsize :]
        yield from _parse(parse, records, number, bad)
        number += count
    if rest:
        bad.record(number + 1, number * record.itemsize, "is not complete")


def _parse(parse: ArrayParser, records: Array, number: int, bad: Bad) -> Iterator[Batch]:
    todo = [(records, number)]
    while todo:
        part, before = todo.pop()
        try:
            batch = parse(part)
        except DamagedError as error:
            middle = len(part) // 2
            if middle:
                todo += [(part[middle:], before + middle), (part[:middle], before)]
            else:
                bad.record(before + 1, before * records.itemsize, str(error))
            continue
        yield batch


def head_records(head: bytes, record: np.dtype[np.void]) -> Array:
    """Return the complete records of a file's first bytes."""
    return np.frombuffer(head, record, len(head) // record.itemsize)

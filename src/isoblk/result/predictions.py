# SPDX-License-Identifier: GPL-2.0-only
"""What feedbac predicted and what was used: its debugfs file `history`."""

import polars as pl

from isoblk.errors import RunError
from isoblk.result.store import PREDICTIONS_SCHEMA

_NAMES = ("at_ns", "predicted", "used", "error_permille", "a_permille")


def parse_predictions(text: str, barrier_ns: int) -> pl.DataFrame:
    """`history` to PREDICTIONS_SCHEMA, in the file's order, which is that of time.

    A period for which nothing had been predicted (the first) is left out.

    Args:
        text: lines of "at_ns N predicted N used N error_permille N a_permille N", numbers of
            sectors a period; at_ns is the period's end.
        barrier_ns: when the load began, by the same clock.

    Raises:
        RunError: a line is another.
    """
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        try:
            if tuple(words[::2]) != _NAMES:
                raise ValueError
            at_ns, predicted, used, permille, a = map(int, words[1::2])
        except ValueError:
            raise RunError(
                f"not a prediction of feedbac: {line[:80]!r}", where=f"predictions:{number}"
            ) from None
        # Without a prediction there is no error either.
        if predicted == permille == 0:
            continue
        # From the sectors: thousandths are too coarse.
        error = abs(predicted / used - 1) if used else float("inf")
        rows.append(((at_ns - barrier_ns) / 1e6, predicted, used, error, a / 1000))
    return pl.DataFrame(rows, schema=PREDICTIONS_SCHEMA, orient="row")

# SPDX-License-Identifier: GPL-2.0-only
"""Parse feedbac's predictions and the actual use, from its debugfs file `history`."""

import polars as pl

from isoblk.errors import RunError
from isoblk.result.store import PREDICTIONS_SCHEMA

_NAMES = ("at_ns", "predicted", "used", "error_permille", "a_permille")


def parse_predictions(text: str, barrier_ns: int) -> pl.DataFrame:
    """Parse `history` into PREDICTIONS_SCHEMA, in the file's order, which is by time.

    The first period, which has no prediction, is omitted.

    Args:
        text: lines of "at_ns N predicted N used N error_permille N a_permille N", in sectors per
            period; at_ns is the period's end.
        barrier_ns: start of the load, by the same clock.

    Raises:
        RunError: a line is malformed.
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
        # No prediction: error 0 has no meaning.
        if predicted == permille == 0:
            continue
        # Computed from the sectors, because thousandths are too coarse.
        error = abs(predicted / used - 1) if used else float("inf")
        rows.append(((at_ns - barrier_ns) / 1e6, predicted, used, error, a / 1000))
    return pl.DataFrame(rows, schema=PREDICTIONS_SCHEMA, orient="row")

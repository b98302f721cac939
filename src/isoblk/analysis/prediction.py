# SPDX-License-Identifier: GPL-2.0-only
"""How well feedbac predicted. Tables are PREDICTIONS_SCHEMA of isoblk.result.store."""

import math
from itertools import pairwise

import polars as pl

from isoblk.run.spec import RunSpec

SETTLED_BELOW = 0.01  # error of a prediction
_MS = 1_000_000


def worst_error(spec: RunSpec, predictions: pl.DataFrame) -> float | None:
    """The largest error of a period that ended in the measured time; None without one."""
    return max(_errors(spec, predictions), default=None)


def mean_error(spec: RunSpec, predictions: pl.DataFrame) -> float | None:
    """The mean of those errors."""
    errors = _errors(spec, predictions)
    return sum(errors) / len(errors) if errors else None


def _errors(spec: RunSpec, predictions: pl.DataFrame) -> list[float]:
    begin, end = spec.warmup_ns / _MS, (spec.warmup_ns + spec.runtime_ns) / _MS
    measured = predictions.filter((pl.col("t_ms") > begin) & (pl.col("t_ms") <= end))
    return measured["error"].to_list()


def settled_ms(spec: RunSpec, predictions: pl.DataFrame) -> float | None:
    """How long predictions took to be good again, the longest of all changes of the device: to
    the end of the last period before the next change, or the end, whose error is above
    SETTLED_BELOW. Infinite if no better one follows; None without a change."""
    end = (spec.warmup_ns + spec.runtime_ns) / _MS
    changes = sorted({event.at_ns / _MS for event in spec.device_events})
    longest = None
    for change, until in pairwise([*changes, end]):
        after = predictions.filter((pl.col("t_ms") > change) & (pl.col("t_ms") <= until))
        took = 0.0
        for at, error in after.select("t_ms", "error").iter_rows():
            if error > SETTLED_BELOW:
                took = at - change
        if not len(after) or after["error"][-1] > SETTLED_BELOW:
            took = math.inf
        longest = took if longest is None else max(longest, took)
    return longest

# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of feedbac's predictions. Tables are PREDICTIONS_SCHEMA of isoblk.result.store."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from isoblk.metrics.base import Metric
from isoblk.metrics.facts import RunMetrics

if TYPE_CHECKING:
    import polars as pl

SETTLED_BELOW = 0.01  # error of a prediction
_MS = 1_000_000


def _worst_error(run: RunMetrics) -> float | None:
    return max(_errors(run), default=None)


def _mean_error(run: RunMetrics) -> float | None:
    errors = _errors(run)
    return sum(errors) / len(errors) if errors else None


def _errors(run: RunMetrics) -> list[float]:
    """Return the errors of the periods that ended in the measured time."""
    if run.predictions is None:
        return []
    begin, end = run.spec.warmup_ns / _MS, (run.spec.warmup_ns + run.spec.runtime_ns) / _MS
    return _between(run.predictions, begin, end)["error"].to_list()


def _settled_ms(run: RunMetrics) -> float | None:
    """Return the longest time that predictions took to recover after a change of the device.

    It ends with the last period, before the next change or the end, whose error is above
    SETTLED_BELOW. Infinite if no better period follows; None without a change.
    """
    if run.predictions is None:
        return None
    end = (run.spec.warmup_ns + run.spec.runtime_ns) / _MS
    changes = sorted({event.at_ns / _MS for event in run.spec.device_events})
    longest = None
    for change, until in pairwise([*changes, end]):
        after = _between(run.predictions, change, until)
        took = 0.0
        for at, error in after.select("t_ms", "error").iter_rows():
            if error > SETTLED_BELOW:
                took = at - change
        if not len(after) or after["error"][-1] > SETTLED_BELOW:
            took = math.inf
        longest = took if longest is None else max(longest, took)
    return longest


def _between(predictions: "pl.DataFrame", begin: float, end: float) -> "pl.DataFrame":
    """Return the periods that ended after `begin`, and not after `end`, ms."""
    at = predictions["t_ms"]
    return predictions.filter((at > begin) & (at <= end))


METRICS = (
    Metric(
        "prediction_error",
        "feedbac: largest |predicted / used - 1| of the prediction periods in the measured time",
        "ratio",
        "down",
        of_run=_worst_error,
        compared=True,
        deviation=True,
    ),
    Metric(
        "prediction_error_mean",
        "feedbac: mean of |predicted / used - 1| over those periods",
        "ratio",
        "down",
        of_run=_mean_error,
        compared=True,
        deviation=True,
    ),
    Metric(
        "prediction_settled_ms",
        "feedbac: longest time from a change of the device to the end of the last prediction "
        "period with an error above 1 %; infinite if no better one follows",
        "ms",
        "down",
        of_run=_settled_ms,
        compared=True,
    ),
)

# SPDX-License-Identifier: GPL-2.0-only
"""Statistics for reports: means with intervals, Welch's test, Jain's index."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev, variance

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """Statistics of `n` repeats.

    Attributes:
        mean: their mean.
        low: lower end of the 95 % confidence interval of the mean; the mean if n is 1.
        high: its upper end.
        n: number of repeats.
        median: the middle repeat, or the mean of the two in the middle.
        least: the smallest.
        most: the largest.
    """

    mean: float
    low: float
    high: float
    n: int
    median: float
    least: float
    most: float


def estimate(values: Sequence[float]) -> Estimate:
    """Return mean and two-sided 95 % interval of at least one value: mean +- t s / sqrt(n), with
    Student's t of n - 1 degrees of freedom."""
    mean = fmean(values)
    n = len(values)
    if n == 1:
        return Estimate(mean, mean, mean, 1, mean, mean, mean)
    middle = median(values), min(values), max(values)
    if math.isinf(mean):  # a repeat did not end
        return Estimate(mean, min(values), math.inf, n, *middle)
    half = t_quantile(CONFIDENCE, n - 1) * stdev(values) / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, n, *middle)


def welch_p(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Welch's t test (B. L. Welch, Biometrika 34, 1947) that the
    means differ; None if either side has fewer than two values."""
    if len(a) < 2 or len(b) < 2:
        return None
    va, vb = variance(a) / len(a), variance(b) / len(b)
    difference = abs(fmean(a) - fmean(b))
    if va + vb == 0:
        return 1.0 if difference == 0 else 0.0
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return t_two_sided(difference / math.sqrt(va + vb), freedom)


def t_two_sided(t: float, freedom: float) -> float:
    """Return P(|T| >= t) of Student's t: I_x(v/2, 1/2) with x = v / (v + t^2) (Abramowitz and
    Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.5.27)."""
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@functools.lru_cache(maxsize=1024)
def t_quantile(confidence: float, freedom: float) -> float:
    """Return the t with P(|T| <= t) = confidence."""
    high = 1.0
    while t_two_sided(high, freedom) > 1 - confidence:
        high *= 2
    return _bisect(lambda t: t_two_sided(t, freedom) - (1 - confidence), 0.0, high)


def jain(values: Sequence[float]) -> float | None:
    """Return (sum x)^2 / (n sum x^2), 1/n..1: R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984. None if
    all values are 0."""
    largest = max(values, default=0.0)
    if largest <= 0:
        return None
    scaled = [value / largest for value in values]  # avoids underflow of the squares of tiny shares
    return math.fsum(scaled) ** 2 / (len(scaled) * math.fsum(x * x for x in scaled))


def _bisect(falling: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b) by its continued fraction (Abramowitz and Stegun 26.5.8), Lentz's method."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only on the other side
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d, fraction = 1.0, 0.0, 1.0
    for i in range(1000):
        m = i // 2
        if i == 0:
            numerator = 1.0
        elif i % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / ((1 + numerator * d) or tiny)
        c = (1 + numerator / c) or tiny
        fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(log_front) / a * (fraction - 1)

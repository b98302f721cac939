# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's credit predictor follows the paper's formulas, and the load.

kernel/sched/predict.c is compiled for user space. Its model is the paper's (IIBC 20(3), 2020, doi
10.7236/IIBC.2020.20.3.97) in floating point of 50 digits, so that all that differs is its rounding.
"""

import ctypes
import random
import subprocess
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.paths import kernel_tree

SHIM = Path(__file__).parent / "predictor_shim"

# Of predict.h.
ONE = 1 << 16
USED_MAX = 1 << 40
A_FLOOR = ONE // 64
A_CEILING = ONE * 9 // 10
A_MIN = ONE // 5
A_MAX = ONE * 4 // 5
ERROR_MAX = 10**6
BOUND = Decimal(1) / 2 + Decimal(1) / 256
BOUND_DEFAULT = Decimal(1) / 2 + Decimal(1) / 3276

LEVEL = 1_000_000


class CPredict(ctypes.Structure):
    """struct predict."""

    _fields_: ClassVar = [
        ("s1", ctypes.c_uint64),
        ("s2", ctypes.c_uint64),
        ("next", ctypes.c_uint64),
        ("a_min", ctypes.c_uint32),
        ("a_max", ctypes.c_uint32),
        ("a", ctypes.c_uint32),
        ("error", ctypes.c_uint32),
        ("large", ctypes.c_int8),
        ("started", ctypes.c_bool),
    ]


class Period(NamedTuple):
    """The state of a predictor after a period: ``expected`` is its prediction for the period."""

    used: int
    expected: int | None
    next: int
    a: int
    permille: int

    @property
    def error(self) -> float:
        """Distance of use and prediction, as a part of the use."""
        assert self.expected is not None
        return abs(self.expected - self.used) / self.used


Predict = Callable[..., list[Period]]


@pytest.fixture(scope="module")
def predict(tmp_path_factory: pytest.TempPathFactory) -> Predict:
    """Run a predictor over the uses of successive periods."""
    library = tmp_path_factory.mktemp("predictor") / "predict.so"
    source = kernel_tree() / "sched" / "predict.c"
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, f"-I{SHIM}", str(source), "-o", str(library)], check=True)
    code = ctypes.CDLL(str(library))
    code.predict_init.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32]
    code.predict_init.restype = None
    code.predict_next.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    code.predict_next.restype = ctypes.c_uint64

    def run(uses: Iterable[int], a_min: int = A_MIN, a_max: int = A_MAX) -> list[Period]:
        state = CPredict()
        code.predict_init(ctypes.byref(state), a_min, a_max)
        periods: list[Period] = []
        for used in uses:
            expected = periods[-1].next if periods else None
            c = code.predict_next(ctypes.byref(state), used)
            periods.append(Period(used, expected, c, state.a, state.error))
        return periods

    return run


def paper(uses: list[int], factors: list[int]) -> list[Decimal]:
    """Predictions of the paper's recurrences, given the factor a of each period in 1/65536."""
    with localcontext() as context:
        context.prec = 50
        s1 = s2 = Decimal(uses[0])
        predictions = [s1]
        for used, factor in zip(uses[1:], factors[1:], strict=True):
            a = Decimal(factor) / ONE
            s1 = s1 + a * (used - s1)
            s2 = s2 + a * (s1 - s2)
            predictions.append((2 * s1 - s2) + a / (1 - a) * (s1 - s2))
    return predictions


SIZES = st.one_of(
    st.integers(0, USED_MAX),
    st.integers(0, 100),
    st.integers(0, 40).map(lambda bits: 1 << bits),
    st.sampled_from([0, 1, USED_MAX - 1, USED_MAX]),
)
# Random sizes, and levels that hold for some periods so that a falls again.
LEVELS = st.lists(st.tuples(SIZES, st.integers(1, 12)), min_size=1, max_size=12).map(
    lambda levels: [used for used, periods in levels for _ in range(periods)]
)
LOADS = st.one_of(st.lists(SIZES, min_size=1, max_size=80), LEVELS)
FACTORS = st.integers(A_FLOOR, A_CEILING)
LIMITS = st.tuples(FACTORS, FACTORS).map(lambda pair: (min(pair), max(pair)))


def _off(predict: Predict, uses: list[int], limits: tuple[int, int]) -> Decimal:
    """How far predictions are off the paper's at most."""
    periods = predict(uses, *limits)
    exact = paper(uses, [period.a for period in periods])
    return max(abs(p.next - max(e, Decimal(0))) for p, e in zip(periods, exact, strict=True))


@given(LOADS, LIMITS)
def test_every_prediction_is_the_papers_within_the_stated_bound(
    predict: Predict, uses: list[int], limits: tuple[int, int]
) -> None:
    assert _off(predict, uses, limits) <= BOUND


@given(LOADS)
def test_the_bound_is_tighter_with_the_default_limits(predict: Predict, uses: list[int]) -> None:
    assert _off(predict, uses, (A_MIN, A_MAX)) <= BOUND_DEFAULT


@pytest.mark.parametrize("a", [A_FLOOR, A_MIN, A_MAX, A_CEILING])
def test_rounding_errors_do_not_add_up_over_thousands_of_periods(predict: Predict, a: int) -> None:
    draw = random.Random(a)
    uses = [draw.randrange(USED_MAX + 1) for _ in range(5000)]
    assert _off(predict, uses, (a, a)) <= BOUND


@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=60), LIMITS)
def test_a_use_that_is_too_large_counts_as_the_largest_use(
    predict: Predict, uses: list[int], limits: tuple[int, int]
) -> None:
    clamped = [min(used, USED_MAX) for used in uses]
    assert [p.next for p in predict(uses, *limits)] == [p.next for p in predict(clamped, *limits)]


@given(LOADS, LIMITS)
def test_a_prediction_is_at_most_twice_the_largest_use(
    predict: Predict, uses: list[int], limits: tuple[int, int]
) -> None:
    assert max(period.next for period in predict(uses, *limits)) <= 2 * max(uses)


@given(LOADS, st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1))
def test_a_stays_within_its_limits_whatever_they_were_set_to(
    predict: Predict, uses: list[int], a_min: int, a_max: int
) -> None:
    low = min(max(a_min, A_FLOOR), A_CEILING)
    high = min(max(a_max, low), A_CEILING)
    assert all(low <= period.a <= high for period in predict(uses, a_min, a_max))


@given(LOADS, LIMITS)
def test_a_rises_on_two_large_errors_in_one_direction_and_falls_on_small_ones(
    predict: Predict, uses: list[int], limits: tuple[int, int]
) -> None:
    periods = predict(uses, *limits)
    before = 0
    for last, period in pairwise(periods):
        assert period.expected is not None
        error = period.used - period.expected
        larger = max(period.used, period.expected)
        large = (error > 0) - (error < 0) if 16 * abs(error) > larger else 0
        if large and large == before:
            assert period.a == limits[1]
        elif 32 * abs(error) <= larger:
            assert period.a - limits[0] == (last.a - limits[0]) // 2
        else:
            assert period.a == last.a
        before = large


@given(LOADS)
def test_the_error_is_told_in_permille_of_the_use(predict: Predict, uses: list[int]) -> None:
    first, *others = predict(uses)
    assert first.permille == 0
    for period in others:
        assert period.expected is not None
        diff = abs(period.expected - period.used)
        if period.used:
            rounded = (2000 * diff + period.used) // (2 * period.used)
            assert period.permille == min(ERROR_MAX, rounded)
        else:
            assert period.permille == (ERROR_MAX if diff else 0)


@given(st.integers(0, USED_MAX), LIMITS)
def test_a_steady_load_is_predicted_exactly(
    predict: Predict, used: int, limits: tuple[int, int]
) -> None:
    assert all(period.next == used for period in predict([used] * 50, *limits))


@given(st.integers(10_000, USED_MAX // 2))
def test_a_device_at_half_or_double_speed_is_predicted_within_1_percent_after_6_periods(
    predict: Predict, level: int
) -> None:
    for before, after in [(2 * level, level), (level, 2 * level)]:
        periods = predict([before] * 20 + [after] * 100)
        assert periods[20].error >= 0.5
        assert all(period.error < 0.01 for period in periods[26:])


@pytest.mark.parametrize("height", [-500_000, 500_000, 2_000_000])
def test_the_overshoot_of_a_step_is_64_percent_for_one_period(
    predict: Predict, height: int
) -> None:
    periods = predict([LEVEL] * 20 + [LEVEL + height] * 40)
    beyond = [(p.next - LEVEL - height) / height for p in periods[20:]]
    assert max(beyond) == pytest.approx(0.64, abs=0.01)
    assert sorted(beyond)[-2] < 0.3


@given(FACTORS)
def test_a_constant_a_overshoots_a_step_by_twice_a_less_1_at_once(predict: Predict, a: int) -> None:
    periods = predict([LEVEL, 2 * LEVEL], a, a)
    assert periods[-1].next == pytest.approx(LEVEL + 2 * a / ONE * LEVEL, abs=1)


@pytest.mark.parametrize("slope", [-5000, 5000, 20_000])
def test_a_ramp_is_followed_without_lag(predict: Predict, slope: int) -> None:
    uses = [LEVEL + slope * period for period in range(150)]
    periods = predict(uses)
    lags = [abs(period.used - (period.expected or 0)) for period in periods[100:]]
    # Single smoothing stays behind by slope / a, 5 slopes with the smallest a.
    assert max(lags) <= abs(slope) / 1000 + 1


@given(st.integers(0, 1 << 32))
def test_noise_of_2_percent_costs_about_as_much_and_never_moves_a(
    predict: Predict, seed: int
) -> None:
    draw = random.Random(seed)
    periods = predict([int(LEVEL * (1 + draw.uniform(-0.02, 0.02))) for _ in range(400)])
    assert {period.a for period in periods} == {A_MIN}
    errors = [period.error for period in periods[20:]]
    # Its mean size is 1 %; the forecast's own noise makes it 1.14 times that at most.
    assert 0.008 < sum(errors) / len(errors) < 0.013
    assert max(errors) < 0.05


@given(st.integers(0, 1 << 32))
def test_a_comes_back_to_its_minimum_in_noise(predict: Predict, seed: int) -> None:
    draw = random.Random(seed)
    noise = [1 + draw.uniform(-0.02, 0.02) for _ in range(140)]
    periods = predict([int(LEVEL * n / (1 + (t >= 20))) for t, n in enumerate(noise)])
    assert max(period.a for period in periods) == A_MAX
    assert periods[-1].a - A_MIN < ONE / 100


def test_a_slow_period_in_seven_is_not_taken_for_a_new_level(predict: Predict) -> None:
    periods = predict([LEVEL * 2 // 5 if t % 7 == 6 else LEVEL for t in range(140)])
    # Were it, the period after it would be predicted to use nearly nothing.
    assert min(period.next for period in periods) > 0.7 * LEVEL
    assert max(period.next for period in periods) < 1.1 * LEVEL
    # The slow period itself is not foreseen; three more are wrong by 1/16 or more after it.
    for slow in range(13, 133, 7):
        assert sum(period.error > 1 / 16 for period in periods[slow + 1 : slow + 7]) <= 3


def test_after_a_long_time_without_use_nothing_is_predicted(predict: Predict) -> None:
    periods = predict([LEVEL] * 10 + [0] * 500)
    assert all(period.next == 0 for period in periods[100:])
    assert all(period.permille == 0 for period in periods[101:])
    assert periods[-1].a == A_MIN

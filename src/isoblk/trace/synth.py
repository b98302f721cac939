# SPDX-License-Identifier: GPL-2.0-only
"""Make traces with given statistics from a small TOML file; see docs/guides/traces.md.

The same file gives the same trace: all values are drawn, by inversion, from one generator's uniform
numbers (PCG64), CHUNK requests at a time.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from isoblk import toml
from isoblk.errors import UserError
from isoblk.files import read_text
from isoblk.run.units import parse_size, parse_time
from isoblk.trace.compact import Header, Writer
from isoblk.trace.record import (
    LARGEST_REQUEST,
    MOST_STREAMS,
    READ,
    RECORD,
    SECOND,
    SECTOR,
    WRITE,
    Array,
    Floats,
    Ints,
    Records,
)

VERSION = 1  # increment it if a change alters the traces of existing files
CHUNK = 1 << 18  # requests per draw; sequential runs end with one
MOST_REQUESTS = 10**10
MOST_LEAVES = 1 << 20  # of the b-model
MOST_PERIODS = 10**7
_SCATTER = 2_654_435_761  # a prime near 2^32 / golden ratio: spreads ranks over the blocks


class Arrival(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arrival process of requests.

    poisson: independent arrivals.
    bmodel: halves of every interval get `bias` and 1 - bias of its requests, down to `leaf` (Wang
    et al., ICDE 2002; 0.5 is even).
    onoff: periods of exponential length with means `on` and `off`; requests arrive only in the
    first.
    """

    model: Literal["poisson", "bmodel", "onoff"] = "poisson"
    bias: float = 0.7
    leaf: str = "1ms"
    on: str = "100ms"
    off: str = "100ms"


class Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes with their weights, as fio's bssplit: "4k/60:8k/40"."""

    read: str = "4k"
    write: str = "4k"


class Space(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses of requests.

    footprint: the address range. align: of a run's first byte.
    model: uniform; zipf, where block k is accessed in proportion to k^-theta; hot, where `hot` =
    [fraction of the blocks, fraction of the requests to them].
    sequential: probability that a request starts at the end of the preceding one of its stream.
    streams: their number, with equal probabilities.
    """

    footprint: str
    align: str = "4k"
    model: Literal["uniform", "zipf", "hot"] = "uniform"
    theta: float = 0.9
    hot: tuple[float, float] = (0.2, 0.8)
    sequential: float = 0.0
    streams: int = 1


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trace to make. rate: mean requests per second. read: fraction of the requests."""

    title: str
    duration: str
    rate: float
    read: float
    space: Space
    source: str = ""
    seed: int = 1
    size: Size = Size()
    arrival: Arrival = Arrival()


def load_recipe(path: Path) -> Recipe:
    """Read and check a recipe. Raises UserError: names file and field."""
    text = read_text(path, "the recipe")
    try:
        recipe = msgspec.convert(toml.parse(text), Recipe)
        _Plan(recipe)
    except ValueError as error:  # errors of tomllib and msgspec are ValueErrors
        cause = str(error)
        raise UserError(cause[:1].lower() + cause[1:], where=str(path)) from None
    return recipe


def synthesize(recipe: Recipe, output: Path) -> Header:
    """Write the recipe's trace. Raises UserError: `output` cannot be written."""
    plan = _Plan(recipe)
    with Writer(output) as writer:
        for records in plan.chunks():
            writer.write(records)
    return writer.header


class _Plan:
    """A recipe in numbers. Raises ValueError: names the field."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.duration = _time("duration", recipe.duration)
        requests = recipe.rate * self.duration / SECOND
        if not 1 <= requests <= MOST_REQUESTS:
            raise ValueError(f"rate: {requests:g} requests, not 1 to {MOST_REQUESTS:g}")
        self.requests = round(requests)
        if not 0 <= recipe.read <= 1:
            raise ValueError("read: not between 0 and 1")
        if not 0 <= recipe.seed < 1 << 64:
            raise ValueError("seed: not between 0 and 2^64 - 1")
        self.sizes = {
            READ: _split("size.read", recipe.size.read),
            WRITE: _split("size.write", recipe.size.write),
        }
        self._check_space(recipe.space)
        self._check_arrival(recipe.arrival)
        self.random = np.random.Generator(np.random.PCG64(recipe.seed))

    def _check_space(self, space: Space) -> None:
        self.footprint = _size("space.footprint", space.footprint)
        self.align = _size("space.align", space.align)
        largest = int(max(sizes.max() for sizes, _ in self.sizes.values()))
        if self.align < SECTOR or self.align % SECTOR:
            raise ValueError(f"space.align: not a multiple of {SECTOR} bytes")
        if self.footprint < max(largest, self.align):
            raise ValueError("space.footprint: smaller than a request")
        self.blocks = (self.footprint - largest) // self.align + 1
        if self.blocks >= 1 << 31:
            raise ValueError("space.footprint: more than 2^31 times space.align")
        if not 0 < space.theta < 10 or space.theta == 1:
            raise ValueError("space.theta: not between 0 and 10, or 1 (take 0.999)")
        if not all(0 < part < 1 for part in space.hot):
            raise ValueError("space.hot: not two parts between 0 and 1")
        if not 0 <= space.sequential < 1:
            raise ValueError("space.sequential: not at least 0 and below 1")
        if not 1 <= space.streams < MOST_STREAMS:
            raise ValueError(f"space.streams: not between 1 and {MOST_STREAMS - 1}")

    def _check_arrival(self, arrival: Arrival) -> None:
        self.leaf = _time("arrival.leaf", arrival.leaf)
        self.on = _time("arrival.on", arrival.on)
        self.off = _time("arrival.off", arrival.off)
        if not 0.5 <= arrival.bias < 1:
            raise ValueError("arrival.bias: not at least 0.5 and below 1")
        if arrival.model == "bmodel" and self.duration / self.leaf > MOST_LEAVES:
            raise ValueError(f"arrival.leaf: more than {MOST_LEAVES} in the duration")
        if arrival.model == "onoff" and self.duration / (self.on + self.off) > MOST_PERIODS:
            raise ValueError(f"arrival.on: more than {MOST_PERIODS} periods in the duration")

    def chunks(self) -> Iterator[Records]:
        """Yield the trace's records."""
        begin = None
        for time in self._times():
            if begin is None:
                begin = int(time[0])
            records = np.zeros(len(time), RECORD)
            records["t"] = time - begin
            self._fill(records)
            yield records

    def _times(self) -> Iterator[Ints]:
        """Yield sorted times in chunks, drawn as a Poisson process in its own time, which passes at
        a varying speed."""
        clock, there = self._clock()
        passed = 0.0
        mean = clock[-1] / self.requests
        for start in range(0, self.requests, CHUNK):
            count = min(CHUNK, self.requests - start)
            at = passed + np.cumsum(-np.log1p(-self.random.random(count)) * mean)
            passed = float(at[-1])
            # The last requests may be after the end of the clock: time then continues at the mean
            # speed.
            late = np.maximum(at - clock[-1], 0) * (there[-1] / clock[-1])
            yield (np.interp(at, clock, there) + late).astype(np.int64)

    def _clock(self) -> tuple[Floats, Floats]:
        """Return the process's own time, and the trace's in ns, at points between which the speed
        is constant."""
        model = self.recipe.arrival.model
        if model == "bmodel":
            weights = np.ones(1)
            for _ in range(max(0, math.ceil(math.log2(self.duration / self.leaf)))):
                left = np.where(
                    self.random.random(len(weights)) < 0.5,
                    self.recipe.arrival.bias,
                    1 - self.recipe.arrival.bias,
                )
                weights = np.stack([weights * left, weights * (1 - left)], axis=1).ravel()
            own = np.concatenate([[0.0], np.cumsum(weights)])
            return own, np.linspace(0, self.duration, len(own))
        if model == "onoff":
            periods = math.ceil(self.duration / (self.on + self.off))
            lengths = -np.log1p(-self.random.random(2 * periods))
            lengths[::2] *= self.on
            lengths[1::2] *= self.off
            there = np.concatenate([[0.0], np.cumsum(lengths)])
            lengths[1::2] = 0
            own = np.concatenate([[0.0], np.cumsum(lengths)])
            return own, there * (self.duration / there[-1])
        return np.array([0.0, 1.0]), np.array([0.0, float(self.duration)])

    def _fill(self, records: Records) -> None:
        """Set all fields except the times."""
        space, count = self.recipe.space, len(records)
        is_read = self.random.random(count) < self.recipe.read
        records["op"] = np.where(is_read, READ, WRITE)
        u = self.random.random(count)
        records["bytes"] = np.where(
            is_read, _drawn(self.sizes[READ], u), _drawn(self.sizes[WRITE], u)
        )
        stream = (self.random.random(count) * space.streams).astype(np.int64)
        # A single stream has number 0.
        records["stream"] = stream + 1 if space.streams > 1 else 0
        starts = self._placed(count) * self.align
        follows = self.random.random(count) < space.sequential
        if space.sequential:
            order = np.argsort(stream, kind="stable")
            offset = np.empty(count, np.int64)
            offset[order] = self._in_runs(
                starts[order],
                records["bytes"][order].astype(np.int64),
                follows[order],
                stream[order],
            )
        else:
            offset = starts
        records["offset"] = offset

    def _placed(self, count: int) -> Ints:
        """Return the blocks in which runs start."""
        space, u = self.recipe.space, self.random.random(count)
        n = self.blocks
        if space.model == "zipf":
            # The inverse of the continuous distribution with density x^-theta on 1..n+1.
            power = 1 - space.theta
            rank = (1 + u * ((n + 1.0) ** power - 1)) ** (1 / power) - 1
        elif space.model == "hot":
            part, chance = space.hot
            again = self.random.random(count)
            edge = max(1.0, part * n)
            rank = np.where(u < chance, again * edge, edge + again * (n - edge))
        else:
            rank = u * n
        ranks: Ints = np.clip(rank.astype(np.int64), 0, n - 1)
        if space.model == "uniform":
            return ranks
        # Neighbours in rank are far apart. The mapping is a permutation, because the factor is
        # coprime to n.
        factor = _SCATTER % n or 1
        while math.gcd(factor, n) != 1:
            factor += 1
        scattered: Ints = (ranks * factor + n // 3) % n
        return scattered

    def _in_runs(self, starts: Ints, sizes: Ints, follows: Array, stream: Ints) -> Ints:
        """Return addresses of requests ordered by stream, of which some continue the preceding
        one."""
        follows = follows.copy()
        follows[0] = False
        follows[1:] &= stream[1:] == stream[:-1]
        before = np.cumsum(sizes) - sizes
        heads = np.flatnonzero(~follows)
        run = np.cumsum(~follows) - 1
        offset = starts[heads][run] + before - before[heads][run]
        # A run that passes the end continues at the beginning.
        wrapped: Ints = np.where(
            offset + sizes > self.footprint, offset % (self.footprint - sizes), offset
        )
        return wrapped


def _drawn(split: tuple[Ints, Floats], u: Floats) -> Ints:
    sizes, bounds = split
    drawn: Ints = sizes[np.searchsorted(bounds, u, side="right")]
    return drawn


def _split(field: str, text: str) -> tuple[Ints, Floats]:
    """Return sizes, and the end of each one's part of 0..1, except the last."""
    sizes, weights = [], []
    for item in text.split(":"):
        size, _, weight = item.partition("/")
        sizes.append(_size(field, size))
        try:
            weights.append(float(weight or 1))
        except ValueError:
            raise ValueError(f"{field}: {weight!r} is not a number") from None
        if not 0 < weights[-1] < math.inf:
            raise ValueError(f"{field}: {weight!r} is not above 0")
        if not SECTOR <= sizes[-1] <= LARGEST_REQUEST or sizes[-1] % SECTOR:
            raise ValueError(f"{field}: {size!r} is not a multiple of {SECTOR} bytes below 4g")
    bounds = np.cumsum(weights) / sum(weights)
    return np.array(sizes, np.int64), bounds[:-1]


def _size(field: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def _time(field: str, text: str) -> int:
    try:
        found = parse_time(text, "s")
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    if not found:
        raise ValueError(f"{field}: 0")
    return found

# SPDX-License-Identifier: GPL-2.0-only
"""The answer of a study without a division: the fastest cache, or the speed of a disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.caches.base import SsdAlone
from isoblk.report import cached, published, text
from isoblk.report.choices import ALIKE, Choice, Choices
from isoblk.report.divided import LINES, OF_NONE, table, waits
from isoblk.report.rows import Cell, Column, Table, varying
from isoblk.report.words import counted, listed
from isoblk.run import numbers

_EMPTY: tuple[list[str], Table] = ([], Table((), (), ()))
_NO_CACHE = "none"
_ALONE = SsdAlone.name
_BESIDE = {_NO_CACHE: "the disk without a cache", _ALONE: "the SSD alone"}
_ALIKE = 0.02
"""Relative difference up to which caches are equal: the effect of a few misses."""


@dataclass(frozen=True)
class Ranking:
    """Caches, the fastest first, with the entries without a cache. of_best: throughput over that of
    the fastest at the same point, the geometric mean over all points. rates: bytes per second, by
    cache and by the rest of the point."""

    names: list[str]
    of_best: dict[str, float]
    rates: dict[str, dict["_At", float]]

    @property
    def caches(self) -> list[str]:
        """Return the entries that are caches."""
        return [name for name in self.names if name not in _BESIDE]


def ranking(analysis: Analysis) -> Ranking | None:
    """Return the caches by speed, if all of their runs are valid; None without several."""
    rates = _rates(analysis, cached.CACHE) if cached.CACHE in varying(analysis) else {}
    if len(rates) < 2:
        return None
    best = _fastest_by_point(rates)
    of_best = {
        name: geometric_mean([max(rate, 1.0) / best[at] for at, rate in found.items()])
        for name, found in rates.items()
    }
    return Ranking(sorted(of_best, key=lambda name: -of_best[name]), of_best, rates)


def cache_choice(analysis: Analysis) -> tuple[list[str], Table]:
    """Return which cache, or which option of the only one, is fastest under one load."""
    found = ranking(analysis)
    if found is None or not found.caches:
        return _one_cache(analysis)
    caches, rates = found.caches, found.rates
    sentences = [_first(caches, rates, found.of_best)]
    if beside := [_against(caches[0], other, rates) for other in _BESIDE if other in rates]:
        sentences.append(f"That is {' and '.join(beside)}.")
    if said := _published(analysis):
        sentences.append(said)
    return sentences, _cache_table(analysis, found.names, rates, found.of_best)


_At = tuple[tuple[str, str], ...]


def _rates(analysis: Analysis, across: str) -> dict[str, dict[_At, float]]:
    """Return bytes per second by cache and by the rest of the point, for caches with only valid
    runs. A cache whose own options vary has its best."""
    found: dict[str, dict[_At, float]] = {}
    incomplete = set()
    for point in analysis.points:
        name = point.point.get(across, "")
        rate = cached.of_first(point, cached.throughput)
        if rate is None or any(view.status != "valid" for view in point.runs):
            incomplete.add(name)
            continue
        others = tuple(
            (key, value)
            for key, value in point.point.items()
            if key != across and not key.startswith("caches.")
        )
        of = found.setdefault(name, {})
        of[others] = max(rate.mean, of.get(others, 0.0))
    return {name: of for name, of in found.items() if name not in incomplete}


def _fastest_by_point(rates: Mapping[str, Mapping[_At, float]]) -> dict[_At, float]:
    best: dict[_At, float] = {}
    for found in rates.values():
        for at, rate in found.items():
            best[at] = max(rate, best.get(at, 1.0))
    return best


def _first(
    caches: list[str], rates: Mapping[str, Mapping[_At, float]], of_best: Mapping[str, float]
) -> str:
    """Describe the fastest cache, or the equally fast ones, with their speed."""
    name = caches[0]
    alike = [cache for cache in caches if of_best[cache] >= of_best[name] * (1 - _ALIKE)]
    places = len(rates[name])
    over = f" on average over {counted(places)} cases" if places > 1 else ""
    if len(caches) == 1:
        return f"{name} reaches {_range(rates[name])}{over}."
    if len(alike) == 1:
        return (
            f"Of {counted(len(caches))} caches {name} is the fastest{over}: {_range(rates[name])}."
        )
    which = "All" if len(alike) == len(caches) else f"Of {counted(len(caches))} caches"
    return (
        f"{which} {counted(len(alike))} are alike within {_ALIKE * 100:g} %, and the fastest{over}:"
        f" {listed(alike)}, {_range(rates[name])}."
    )


def _range(found: Mapping[_At, float]) -> str:
    low, high = numbers.rate(min(found.values())), numbers.rate(max(found.values()))
    return low if low == high else f"{low} to {high}"


def _against(name: str, other: str, rates: Mapping[str, Mapping[_At, float]]) -> str:
    """Compare a cache with the disk, or the SSD, without one."""
    factors = [rate / rates[other][at] for at, rate in rates[name].items() if rates[other].get(at)]
    if not factors:
        return f"beside {_range(rates[other])} {_BESIDE[other]}"
    if other == _ALONE:
        low, high = (numbers.percent(factor) for factor in (min(factors), max(factors)))
        part = low if low == high else f"{low.removesuffix(' %')} to {high}"
        return f"{part} of what {_BESIDE[other]} gives"
    low, high = (_times(factor) for factor in (min(factors), max(factors)))
    times = low if low == high else f"{low} to {high}"
    return f"{times} times what {_BESIDE[other]} gives"


def _times(factor: float) -> str:
    return f"{factor:.2f}" if factor < 10 else f"{factor:,.0f}"


def _cache_table(
    analysis: Analysis,
    ranked: list[str],
    rates: Mapping[str, Mapping[_At, float]],
    of_best: Mapping[str, float],
) -> Table:
    room = ranked[:LINES]
    beside = [name for name in ranked if name in _BESIDE]
    if len(ranked) > LINES:
        caches = [name for name in ranked if name not in _BESIDE][: LINES - len(beside)]
        room = [name for name in ranked if name in (*caches, *beside)]
    several = len(next(iter(rates.values()))) > 1
    lines = []
    for name in room:
        cells = [
            Cell(name),
            Cell(numbers.rate(min(rates[name].values()))),
            *([Cell(numbers.rate(max(rates[name].values())))] if several else []),
            Cell(numbers.percent(of_best[name])),
            Cell(_hits(analysis, name)),
        ]
        lines.append(("valid", tuple(cells)))
    columns = (
        Column("cache", numeric=False),
        *([Column("slowest"), Column("fastest")] if several else [Column("throughput")]),
        Column("of the fastest"),
        Column("read hits"),
    )
    left = [
        f"{name} ({numbers.percent(of_best[name])} of the fastest)"
        for name in ranked
        if name not in room
    ]
    note = f"not shown: {listed(left)}" if left else ""
    return Table(columns, tuple(lines), (note,) if note else ())


def _hits(analysis: Analysis, name: str) -> str:
    found = [
        hits.mean
        for point in analysis.points
        if point.point.get(cached.CACHE, "") == name
        and (hits := point.estimate("cache.read_hit_ratio")) is not None
    ]
    if not found:
        return text.NOTHING
    low, high = numbers.percent(min(found)), numbers.percent(max(found))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _one_cache(analysis: Analysis) -> tuple[list[str], Table]:
    """Return the points of one cache, by throughput."""
    found = [
        (rate.mean, point)
        for point in analysis.points
        if (rate := cached.of_first(point, cached.throughput)) is not None
    ]
    return _by_rate(analysis, found, "Nothing is compared but its options")


def speeds(choices: Choices) -> tuple[list[str], Table]:
    """Describe the speed of an undivided disk: by scheduler relative to none, or by point."""
    analysis = choices.analysis
    begin = _undivided(choices)
    ranked = [choice for choice in choices.ranked if choice.speed is not None]
    if choices.by_scheduler and ranked:
        # The cost is stated for schedulers that have one, the wait for all others.
        keeping = [choice for choice in ranked if choice.speed and choice.speed.value >= 1 - ALIKE]
        them = "each" if len(keeping) == len(ranked) else f"each of those {counted(len(keeping))}"
        told = [
            f"{begin}. {_price(choices, ranked, keeping)}",
            *waits(choices, keeping or ranked, them),
        ]
        return [*told, *filter(None, [_published(analysis)])], _without_error(table(choices))
    found = [
        (rate.mean, point)
        for point in analysis.points
        if (rate := point.estimate("total_bps")) is not None
    ]
    return _by_rate(analysis, found, begin)


def _undivided(choices: Choices) -> str:
    """Return why nothing is divided."""
    if not choices.light:
        return "One tenant, so nothing is divided"
    return f"Beside {listed(choices.light)} there is one tenant, so nothing is divided by weight"


def _price(choices: Choices, ranked: Sequence[Choice], keeping: Sequence[Choice]) -> str:
    """Name the schedulers that cost bandwidth."""
    of = counted(len(ranked))
    if len(keeping) == len(ranked):
        low = min(choice.speed.value for choice in ranked if choice.speed)
        part = numbers.percent(low)
        if len(ranked) == 1:
            return f"{ranked[0].name} costs nothing: it keeps {part} {OF_NONE}."
        what = "100 %" if part == "100 %" else f"at least {part}"
        return f"No scheduler costs bandwidth: all {of} keep {what} {OF_NONE}."
    costly = [choice for choice in ranked if choice not in keeping]
    parts = []
    for one in costly:
        assert one.speed is not None
        place = f" ({choices.where(one.speed.point)})" if len(one.points) > 1 else ""
        parts.append(f"{one.name} keeps {numbers.percent(one.speed.value)}{place}")
    worst = "at worst " if any(len(choice.points) > 1 for choice in costly) else ""
    if not keeping:
        return f"{worst.capitalize()}{listed(parts)} {OF_NONE}."
    which = f"{counted(len(keeping)).capitalize()} of {of} schedulers keep"
    if len(keeping) == 1:
        which = f"Of {of} schedulers {keeping[0].name} keeps"
    least = 100 * (1 - ALIKE)
    return f"{which} at least {least:g} % {OF_NONE}; {worst}{listed(parts)}."


def _without_error(found: Table) -> Table:
    """Return the table without columns that a single tenant does not have."""
    kept = [at for at, column in enumerate(found.columns) if "error" not in column.title]
    lines = tuple(("valid", tuple(cells[at] for at in kept)) for _, cells in found.rows)
    return Table(tuple(found.columns[at] for at in kept), lines, found.notes)


def _by_rate(
    analysis: Analysis, found: list[tuple[float, PointView]], begin: str
) -> tuple[list[str], Table]:
    """Describe the fastest points and the slowest."""
    if not found:
        return _EMPTY
    keys = varying(analysis)
    short = text.short_keys(analysis.keys)
    found.sort(key=lambda one: -one[0])
    (high, fast), (low, slow) = found[0], found[-1]
    if len(found) == 1:
        sentence = f"{begin}: {numbers.rate(high)}."
    elif numbers.rate(low) == numbers.rate(high):
        sentence = f"{begin}: the load reaches {numbers.rate(high)} in all cases."
    else:
        sentence = (
            f"{begin}: the load reaches {numbers.rate(low)}"
            f" ({text.label(slow.point, keys, short)}) to {numbers.rate(high)}"
            f" ({text.label(fast.point, keys, short)})."
        )
    shown = found if len(found) <= LINES else [*found[: LINES - 1], found[-1]]
    lines = []
    for rate, point in shown:
        iops = point.estimate("total_iops")
        cells = (
            Cell(text.label(point.point, keys, short) or point.schedulers),
            Cell(numbers.rate(rate)),
            Cell(numbers.count(iops.mean) if iops else text.NOTHING),
        )
        lines.append(("valid", cells))
    columns = (Column("case", numeric=False), Column("bandwidth"), Column("IOPS"))
    note = () if shown is found else (f"the fastest of {len(found)} cases, and the slowest",)
    return [sentence, *filter(None, [_published(analysis)])], Table(columns, tuple(lines), note)


def _published(analysis: Analysis) -> str:
    """Describe the agreement with the source's own figures, if the study has them."""
    compare = analysis.results.record.study.compare
    if compare is None:
        return ""
    bars = [bar for bar in published.bars(analysis) if bar.error is not None]
    return (
        f"The figures that {compare.source} gives differ from those here: {published.errors(bars)}."
        if bars
        else ""
    )

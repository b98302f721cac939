# SPDX-License-Identifier: GPL-2.0-only
"""One result set's shares beside those of another, as of the same study on two machines."""

from collections.abc import Mapping
from dataclasses import dataclass

from isoblk.analysis.metrics import Analysis, PointView
from isoblk.errors import UserError
from isoblk.metrics.stats import Estimate, estimate, welch_p
from isoblk.report import text
from isoblk.report.lanes import lane_rule, lane_sum
from isoblk.report.rows import Cell, Column, Table
from isoblk.run import numbers

# Shares that differ by no more, relative to the other's, agree.
AGREE = 0.05
AGREE_TEXT = f"{AGREE * 100:g} %"
_NOISE = 0.05  # repeats that differ so much by chance with this probability prove nothing


@dataclass(frozen=True)
class Share:
    """What a tenant, or several as rows.few() has it, got at one point. here, there: fractions,
    over the valid repeats. p: of Welch's t test, None with single repeats."""

    point: Mapping[str, str]
    who: str
    here: Estimate
    there: Estimate
    p: float | None

    @property
    def difference(self) -> float | None:
        """here / there - 1; None if nothing is there."""
        return self.here.mean / self.there.mean - 1 if self.there.mean else None

    @property
    def agrees(self) -> bool:
        """Whether they differ by no more than AGREE."""
        if self.difference is None:
            return self.here.mean == 0
        return abs(self.difference) <= AGREE

    @property
    def noise(self) -> bool:
        """Whether repeats vary so much that the difference may be chance."""
        return self.p is not None and self.p >= _NOISE

    def difference_text(self, digits: int = 1) -> str:
        """The difference in per cent, with its sign."""
        if self.difference is None:
            return text.NOTHING
        # Without the sign of what is rounded to nothing.
        rounded = round(self.difference * 100, digits) or 0.0
        return f"{rounded:+.{digits}f} %" if rounded else f"{0:.{digits}f} %"


@dataclass(frozen=True)
class Beside:
    """here, there: what the two are called. shares: of points that have valid runs in both.
    left_out: points in common without, and why."""

    here: str
    there: str
    shares: tuple[Share, ...]
    left_out: tuple[tuple[Mapping[str, str], str], ...]
    table: Table
    provenance: str


def beside(a: Analysis, b: Analysis) -> Beside:
    """Set the shares of b beside those of a.

    Raises:
        UserError: they have no point in common.
    """
    here, there = _names(a, b)
    in_b = {point.key: point for point in b.points}
    shares: list[Share] = []
    left_out: list[tuple[Mapping[str, str], str]] = []
    totals: dict[tuple[tuple[str, str], ...], tuple[str, str]] = {}
    common = [(point, in_b[point.key]) for point in a.points if point.key in in_b]
    if not common:
        raise UserError("no study point in common", where=f"{a.results.dir} and {b.results.dir}")
    for mine, other in common:
        absent = [name for name, p in ((here, mine), (there, other)) if not p.valid]
        if absent:
            left_out.append((mine.point, f"no valid run on {' and '.join(absent)}"))
            continue
        totals[mine.key] = (_total(mine), _total(other))
        shares += _shares(a, b, mine, other)
    found = tuple(shares)
    table = _table(a, (here, there), found, left_out, totals)
    return Beside(here, there, found, tuple(left_out), table, text.footer(b))


def _names(a: Analysis, b: Analysis) -> tuple[str, str]:
    """By machine, or by directory where that is the same."""
    tiers = [
        "/".join(sorted({v.run.record.tier for v in one.views if v.run is not None}))
        for one in (a, b)
    ]
    if tiers[0] != tiers[1]:
        return tiers[0], tiers[1]
    names = [one.results.dir.resolve().name for one in (a, b)]
    return (names[0], names[1]) if names[0] != names[1] else ("this", "the other")


def _total(point: PointView) -> str:
    value = point.estimate("total_iops")
    return numbers.count(value.mean) if value else text.NOTHING


def _shares(a: Analysis, b: Analysis, mine: PointView, other: PointView) -> list[Share]:
    here, there = (
        {
            lane.label: [lane_sum(metrics, lane, "share") for metrics in point.valid]
            for lane in lane_rule(analysis)(point.valid[0])
        }
        for analysis, point in ((a, mine), (b, other))
    )
    return [
        Share(
            mine.point,
            who,
            estimate(values),
            estimate(there[who]),
            welch_p(values, there[who]),
        )
        for who, values in here.items()
        if who in there
    ]


def _table(
    a: Analysis,
    names: tuple[str, str],
    shares: tuple[Share, ...],
    left_out: list[tuple[Mapping[str, str], str]],
    totals: Mapping[tuple[tuple[str, str], ...], tuple[str, str]],
) -> Table:
    short = text.short_keys(a.keys)
    columns = [
        *(Column(short[key], numeric=False) for key in a.keys),
        *(Column(f"IOPS, {name}") for name in names),
        Column("tenant", numeric=False),
        *(Column(f"share, {name}") for name in names),
        Column("difference"),
        Column("", numeric=False),
    ]
    lines = []
    before = None
    for share in shares:
        key = tuple(sorted(share.point.items()))
        first = key != before
        before = key
        place = [share.point.get(name, "") if first else "" for name in a.keys]
        verdict = "" if share.agrees else f"over {AGREE_TEXT}"
        if verdict and share.noise:
            verdict += ", within the noise"
        cells = [
            *map(Cell, place),
            *(Cell(one if first else "") for one in totals[key]),
            Cell(share.who),
            *(
                Cell(numbers.percent(one.mean), text.spread(one, numbers.percent))
                for one in (share.here, share.there)
            ),
            Cell(share.difference_text()),
            Cell(verdict),
        ]
        lines.append(("valid" if share.agrees else "differs", tuple(cells)))
    agreeing = sum(share.agrees for share in shares)
    notes = [
        f"{agreeing} of {len(shares)} shares agree within {AGREE_TEXT}:"
        f" difference = share on {names[0]} / share on {names[1]} - 1"
    ]
    if any(share.here.n > 1 or share.there.n > 1 for share in shares):
        notes.append(
            "mean of the valid repeats, ± half the 95 % confidence interval; within the noise:"
            f" Welch's t test of the repeats gives p of {_NOISE:g} or more"
        )
    notes += [f"{' '.join(point.values()) or 'the only point'}: {why}" for point, why in left_out]
    return Table(tuple(columns), tuple(lines), tuple(notes))

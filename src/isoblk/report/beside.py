# SPDX-License-Identifier: GPL-2.0-only
"""Compare the shares of two result sets, as of the same study on two machines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from isoblk.analysis.compare import SIGNIFICANT
from isoblk.analysis.inputs import Input, differences, tenants
from isoblk.analysis.metrics import Analysis, PointView
from isoblk.errors import UserError
from isoblk.metrics.stats import Estimate, estimate, welch_p
from isoblk.report import disks, rows, text
from isoblk.report.lanes import lane_rule, lane_sum
from isoblk.report.rows import Cell, Column, Table
from isoblk.run import numbers

# Relative difference up to which shares agree.
AGREE = 0.05
AGREE_TEXT = f"{AGREE * 100:g} %"
_MOST_UNLIKE = 8


@dataclass(frozen=True)
class Share:
    """The share of a tenant, or of a group of tenants (rows.few()), at one point. here, there:
    fractions, over the valid repeats. p: of Welch's t test, None with single repeats. otherwise: a
    difference of the tenant itself: another weight."""

    point: Mapping[str, str]
    who: str
    here: Estimate
    there: Estimate
    p: float | None
    otherwise: str = ""

    @property
    def difference(self) -> float | None:
        """Return here / there - 1; None if there is 0."""
        return self.here.mean / self.there.mean - 1 if self.there.mean else None

    @property
    def agrees(self) -> bool:
        """Return whether the difference is at most AGREE."""
        if self.difference is None:
            return self.here.mean == 0
        return abs(self.difference) <= AGREE

    @property
    def noise(self) -> bool:
        """Return whether the difference may be chance, given the variation of repeats."""
        return self.p is not None and self.p >= SIGNIFICANT

    def difference_text(self, digits: int = 1) -> str:
        """Format the difference in per cent, with its sign."""
        if self.difference is None:
            return text.NOTHING
        # No sign for a difference that is rounded to zero.
        rounded = round(self.difference * 100, digits) or 0.0
        return f"{rounded:+.{digits}f} %" if rounded else f"{0:.{digits}f} %"


@dataclass(frozen=True)
class Beside:
    """here, there: names of the two result sets. shares: of points with valid runs in both.
    left_out: other common points, and why. load: whether the two had the same load and weights, as
    text for a caption."""

    here: str
    there: str
    shares: tuple[Share, ...]
    left_out: tuple[tuple[Mapping[str, str], str], ...]
    table: Table
    provenance: str
    load: str


def beside(a: Analysis, b: Analysis) -> Beside:
    """Compare the shares of b with those of a.

    Raises:
        UserError: they have no common point.
    """
    here, there = _names(a, b)
    in_b = {point.key: point for point in b.points}
    shares: list[Share] = []
    alone: list[tuple[Mapping[str, str], str, str]] = []
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
        both, of_one = _shares(a, b, mine, other, there)
        shares += both
        alone += [(mine.point, who, here if side == "here" else there) for side, who in of_one]
    found = tuple(shares)
    unlike = [one for one in differences(a, b, common) if _is_load(one)]
    table = _table(a, (here, there), found, left_out, totals)
    notes = (*table.notes, *_alone(alone), *_unlike(unlike, (here, there)))
    load = (
        "not the same load and weights (see the table)" if unlike else "the same load and weights"
    )
    return Beside(
        here, there, found, tuple(left_out), replace(table, notes=notes), disks.footer(b), load
    )


def _is_load(one: Input) -> bool:
    """Return whether a difference concerns the load, not the disk or the software."""
    apart = ("device", "seeds", "repeats", "cgroup", "caching.ssd")
    return one.points is not None and not one.what.startswith(apart)


def _alone(alone: Sequence[tuple[Mapping[str, str], str, str]]) -> list[str]:
    """Return a line for each tenant of one side only."""
    points: dict[tuple[str, str], int] = {}
    for _, who, where in alone:
        points[who, where] = points.get((who, where), 0) + 1
    return [f"{who}: only on {where}" for who, where in points]


def _unlike(unlike: Sequence[Input], names: tuple[str, str]) -> list[str]:
    lines = [
        f"not the same: {one.what}: {one.a} on {names[0]}, {one.b} on {names[1]}"
        for one in unlike[:_MOST_UNLIKE]
    ]
    if left := len(unlike) - len(lines):
        lines.append(f"and {left} more that are not the same: isoblk compare")
    return lines


def _names(a: Analysis, b: Analysis) -> tuple[str, str]:
    """Return the names of the two: the machine, or the directory if the machines are equal."""
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


def _lanes(analysis: Analysis, point: PointView) -> dict[str, tuple[str, list[float]]]:
    """Return the share of each tenant (or group of tenants) in each valid repeat, and its name,
    keyed by an identity that excludes the weight."""
    few = rows.few(analysis)
    first = point.valid[0]
    return {
        first.tenants[lane.members[0]].name if few else lane.label: (
            lane.label,
            [lane_sum(metrics, lane, "share") for metrics in point.valid],
        )
        for lane in lane_rule(analysis)(first)
    }


def _shares(
    a: Analysis, b: Analysis, mine: PointView, other: PointView, there: str
) -> tuple[list[Share], list[tuple[str, str]]]:
    """Return the shares of both sides, and the tenants of one side: "here" or "there", and their
    label."""
    ours, theirs = _lanes(a, mine), _lanes(b, other)
    weights = {who: weight for who, _, weight in tenants(mine, other) if who in ours}
    shares = [
        Share(
            mine.point,
            label,
            estimate(values),
            estimate(theirs[who][1]),
            welch_p(values, theirs[who][1]),
            f"{weights[who]} on {there}" if who in weights else "",
        )
        for who, (label, values) in ours.items()
        if who in theirs
    ]
    alone = [("here", label) for who, (label, _) in ours.items() if who not in theirs]
    alone += [("there", label) for who, (label, _) in theirs.items() if who not in ours]
    return shares, alone


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
        verdict = "; ".join(filter(None, (verdict, share.otherwise)))
        cells = [
            *map(Cell, place),
            *(Cell(one if first else "") for one in totals[key]),
            Cell(share.who),
            *(
                Cell(numbers.percent(one.median), text.spread(one, numbers.percent))
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
            "median of the valid repeats, and their range; within the noise:"
            f" Welch's t test of the repeats gives p of {SIGNIFICANT:g} or more"
        )
    notes += [f"{' '.join(point.values()) or 'the only point'}: {why}" for point, why in left_out]
    return Table(tuple(columns), tuple(lines), tuple(notes))

# SPDX-License-Identifier: GPL-2.0-only
"""The answer of a study that divides a disk among tenants."""

import math
from collections.abc import Callable, Iterator, Sequence

from isoblk.analysis.metrics import PointView
from isoblk.metrics.registry import SAYS
from isoblk.report import text
from isoblk.report.choices import DIVIDES, NEARLY, Choice, Choices, Wait, Worst
from isoblk.report.rows import Cell, Column, Table
from isoblk.report.words import counted, listed
from isoblk.run import numbers
from isoblk.run.record import Figure, ProgramReport

LINES = 5
"""Of the answer's table."""
_NAMED = 5  # so many are named in a sentence, of more the best
_EXACT = 0.0005  # an error below is written as less than 0.1 %
_FAR = 2  # times as long is worth a word
_ALL = 0.9995  # a speed above is written as 100 %
# Of a machine that is emulated, times mean nothing: isoblk.report.page says so.
_UNTIMED = "qemu"


def divided(choices: Choices) -> tuple[list[str], Table]:
    """The sentences and the table; none and an empty one if no choice is complete."""
    ranked = [one for one in choices.ranked if one.error is not None]
    if not ranked:
        return [], Table((), (), ())
    sentences = [*_predicted(choices), *_who(choices, ranked)]
    dividing = [one for one in ranked if one.divides] or _best_of_none(choices, ranked)
    if _timed(choices):
        sentences += [*_cost(choices, dividing), *_waits(choices, dividing)]
        sentences += _said(choices, dividing[0])
    return sentences[:3], table(choices)


def _timed(choices: Choices) -> bool:
    views = choices.analysis.views
    return all(view.run.record.tier != _UNTIMED for view in views if view.run is not None)


def _nearest(ranked: Sequence[Choice]) -> list[Choice]:
    return [min(ranked, key=lambda one: one.error.value if one.error else 0.0)]


def _best_of_none(choices: Choices, ranked: Sequence[Choice]) -> list[Choice]:
    """Where none divides: who gets furthest as tenants become more, else the nearest."""
    nearest = _nearest(ranked)
    error = nearest[0].error
    return (_furthest(choices, ranked) if error and error.value > NEARLY else []) or nearest


def _who(choices: Choices, ranked: Sequence[Choice]) -> Iterator[str]:
    """Which divide."""
    how = _how(choices)
    if not choices.by_scheduler:
        yield _one_scheduler(choices, ranked, how)
        return
    good = [one.name for one in ranked if one.divides]
    everywhere = _everywhere(ranked)
    of = counted(len(ranked))
    within = f"{how} within {numbers.percent(DIVIDES).replace('.0', '')}"
    if not good:
        yield _nobody(choices, ranked, how)
    elif len(ranked) == 1:
        yield f"{good[0]} divides {within}{everywhere}."
    elif len(good) == len(ranked):
        all_of_them = "Both" if len(good) == 2 else f"All {of}"
        yield f"{all_of_them} schedulers divide {within}{everywhere}: {_names(good)}."
    elif len(good) == 1:
        yield f"Of {of} schedulers only {good[0]} divides {within}{everywhere}."
    else:
        count = counted(len(good))
        yield f"Of {of} schedulers {count} divide {within}{everywhere}: {_names(good)}."


def _names(names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return listed(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def _nobody(choices: Choices, ranked: Sequence[Choice], how: str) -> str:
    (nearest,) = _nearest(ranked)
    assert nearest.error is not None
    limit = DIVIDES if nearest.error.value <= NEARLY else NEARLY
    within = f"{how} within {limit * 100:g} %"
    off = f"{_beyond(nearest.error.value, limit)} off{_worst_at(choices, nearest)}"
    so = ""
    if choices.none and choices.none.divides:
        so = f"; without a scheduler it is within {limit * 100:g} %"
    if len(ranked) == 1:
        return f"{nearest.name} does not divide {within}: it is {off}{so}."
    none = f"No scheduler of {counted(len(ranked))} divides {within}{_everywhere(ranked)}"
    if limit == NEARLY and (far := _furthest(choices, ranked)):
        verb = "do" if len(far) > 1 else "does"
        names = _names([one.name for one in far])
        return f"{none}; {names} {verb} up to {choices.reach(far[0]):,} tenants."
    return f"{none}; nearest is {nearest.name}, {off}{so}."


def _furthest(choices: Choices, ranked: Sequence[Choice]) -> list[Choice]:
    """Who follows the weights of the most tenants, if their number differs."""
    reach = [choices.reach(one) for one in ranked]
    most = max(reach)
    return [one for one, tenants in zip(ranked, reach, strict=True) if most and tenants == most]


def _one_scheduler(choices: Choices, ranked: Sequence[Choice], how: str) -> str:
    """Of the points of the only scheduler."""
    name = ranked[0].points[0].schedulers
    errors = [one.error.value for one in ranked if one.error]
    of = f"{counted(len(errors))} points"
    good = sum(error <= DIVIDES for error in errors)
    fair = sum(error <= NEARLY for error in errors)
    if len(errors) == 1:
        return (
            f"{name} divides {how} within {DIVIDES * 100:g} %."
            if good
            else f"{name} is {_beyond(errors[0], DIVIDES)} off an exact division {how}."
        )
    worst = max(ranked, key=lambda one: one.error.value if one.error else 0.0)
    best = _nearest(ranked)[0]
    if good == len(errors):
        return f"{name} divides {how} within {DIVIDES * 100:g} % at all {of}."
    ends = f"from {_error(min(errors))} off ({best.name}) to {_error(max(errors))} ({worst.name})"
    if not fair:
        return f"{name} divides {how} within {NEARLY * 100:g} % at none of {of}: {ends}."
    limit, count = (DIVIDES, good) if good else (NEARLY, fair)
    return f"{name} divides {how} within {limit * 100:g} % at {counted(count)} of {of}: {ends}."


def _how(choices: Choices) -> str:
    """ "by weight", "equally", of what."""
    heavy = [
        {t.weight for t in view.spec.tenants if t.name not in choices.light}
        for view in choices.analysis.views
    ]
    uneven = any(view.spec.groups or view.spec.events for view in choices.analysis.views)
    how = "equally" if not uneven and all(len(weights) == 1 for weights in heavy) else "by weight"
    if choices.error == "service_error":
        return f"the disk's time {how}"
    if choices.light:
        one = choices.light[0] if len(choices.light) == 1 else ""
        return f"what {f'the light tenant {one} leaves' if one else 'the light ones leave'} {how}"
    return how


def _everywhere(ranked: Sequence[Choice]) -> str:
    most = max(len(one.points) for one in ranked)
    if most == 1:
        return ""
    tenants = {len(view.spec.tenants) for one in ranked for p in one.points for view in p.runs}
    up_to = f", up to {max(tenants):,} tenants" if len(tenants) > 1 else ""
    return (" at both points" if most == 2 else f" at all {counted(most)} points") + up_to


def _worst_at(choices: Choices, one: Choice) -> str:
    if len(one.points) == 1 or one.error is None:
        return ""
    return f" at worst ({choices.where(one.error.point)})"


def _cost(choices: Choices, dividing: Sequence[Choice]) -> Iterator[str]:
    """What speed is kept."""
    if all(point.schedulers == "none" for one in dividing for point in one.points):
        return
    measured = [one for one in dividing if one.speed]
    some = choices.by_scheduler and 0 < len(measured) < len(dividing)
    dividing = measured or dividing
    speeds = [one.speed.value for one in dividing if one.speed]
    if not speeds:
        yield "What that costs is not known: there is no valid run under none to hold it against."
        return
    what = _speed_word(choices)
    low, high = numbers.percent(min(speeds)), numbers.percent(max(speeds))
    who = "They keep" if len(dividing) > 1 else "It keeps"
    if not choices.by_scheduler and len(dividing) > 1:
        who = "There it keeps"
    if some:
        who = f"{_names([one.name for one in dividing])} {'keep' if len(dividing) > 1 else 'keeps'}"
    if low == high:
        several = any(len(one.points) > 1 for one in dividing) and min(speeds) < _ALL
        yield f"{who} {'at least ' if several else ''}{low} of the {what} of none."
        return
    slow = min((one.speed.value, one.name) for one in dividing if one.speed)[1]
    yield f"{who} {low.removesuffix(' %')} to {high} of the {what} of none, {slow} least."


def _speed_word(choices: Choices) -> str:
    """Bytes say how fast only where all requests are of one size."""
    sizes = set()
    for view in choices.analysis.views:
        for tenant in view.spec.tenants:
            load = tenant.workload
            several = load.bsrange or load.bssplit or load.program != "blkload" or load.trace
            sizes.add(None if several else load.bs)
    per_view = all(
        len({tenant.workload.bs for tenant in view.spec.tenants}) == 1
        for view in choices.analysis.views
    )
    return "speed" if None not in sizes and per_view else "bandwidth"


def _waits(choices: Choices, dividing: Sequence[Choice]) -> Iterator[str]:
    """How long the light one waits under the best, and under whom far longer."""
    best = dividing[0]
    wait = best.wait
    if wait is None:
        return
    who = wait.tenant
    under = f"Under {best.name} " if choices.by_scheduler else f"With {best.name} "
    place = f" ({choices.where(wait.point)})" if len(best.points) > 1 else ""
    waits = f"waits {numbers.time(wait.p99)} (p99)"
    if math.isinf(wait.p99):
        waits = "is not answered at all"
    elif len(best.points) > 1:
        # Where a request alone takes longer, it may wait longer, and yet be kept waiting less.
        times = numbers.significant(wait.p99 / wait.alone)
        waits = f"waits at most {times} times as long as alone: {numbers.time(wait.p99)} (p99)"
    others = _others(choices, dividing, wait)
    yield f"{under}{who} {waits}, alone {numbers.time(wait.alone)}{place}{others}."


def _others(choices: Choices, dividing: Sequence[Choice], wait: Wait) -> str:
    """The same tenant's wait there under the worst of the others that divide, if it is far longer,
    and under none: there, or where that is longest if it is far longer."""
    there = [(choices.p99_at(one, wait), one.name) for one in dividing[1:]]
    known = [(p99, name) for p99, name in there if p99 is not None]
    told = []
    if known and max(known)[0] > _FAR * wait.p99:
        p99, name = max(known)
        told.append(f"{'under' if choices.by_scheduler else 'with'} {name} {_or_never(p99)}")
    longest = choices.none.wait if choices.none else None
    place = choices.where(longest.point) if longest else ""
    if longest and place != choices.where(wait.point) and longest.p99 > _FAR * wait.p99:
        told.append(f"under none {_or_never(longest.p99)} ({place})")
    elif wait.none is not None:
        told.append(f"under none {_or_never(wait.none)}")
    return f"; {', '.join(told)}" if told else ""


def _or_never(ns: float) -> str:
    return "it is not answered at all" if math.isinf(ns) else numbers.time(ns)


def _time(ns: float | None) -> str:
    if ns is None:
        return text.NOTHING
    return "never" if math.isinf(ns) else numbers.time(ns)


def _error(value: float) -> str:
    return "less than 0.1 %" if value < _EXACT else numbers.percent(value)


def _beyond(value: float, limit: float) -> str:
    """An error above a limit, in as many digits as show that it is."""
    short = numbers.percent(value)
    return short if short != numbers.percent(limit) else f"{value * 100:.3g} %"


def _predicted(choices: Choices) -> Iterator[str]:
    """How well a scheduler predicts, where claims are about that."""
    claims = choices.analysis.results.record.study.claim
    if not any(claim.metric.startswith("prediction") for claim in claims):
        return
    points = [point for point in choices.analysis.points if point.estimate("prediction_error")]
    if not points:
        return

    def over(metric: str) -> list[float]:
        return [found.mean for point in points if (found := point.estimate(metric))]

    mean = numbers.percent(max(over("prediction_error_mean")))
    worst = numbers.percent(max(over("prediction_error")))
    who = points[0].scheduler
    text_ = f"What {who} predicts is {mean} off on average and {worst} at most"
    if settled := over("prediction_settled_ms"):
        longest = max(settled)
        text_ += (
            "; after the disk changes it does not become right again"
            if longest == float("inf")
            else f"; after the disk changes it is right again in {numbers.time(longest * 1e6)}"
        )
    yield f"{text_}."


def _said(choices: Choices, best: Choice) -> Iterator[str]:
    """What the first program says that tells a rate, under the best and under none."""
    point = best.points[0]
    for metrics in point.valid[:1]:
        for tenant in metrics.tenants:
            figure = _rate(tenant.says)
            if figure is None:
                continue
            here = point.estimate(f"{SAYS}{tenant.name}.{figure.name}")
            none = _same_point(choices, point)
            there = none.estimate(f"{SAYS}{tenant.name}.{figure.name}") if none else None
            if here is None:
                continue
            beside = f", and {numbers.figure(there.mean, figure.unit)} under none" if there else ""
            place = f" ({choices.where(point)})" if len(best.points) > 1 else ""
            name = figure.name.replace(".", " ")
            yield (
                f"{tenant.name} itself says {numbers.figure(here.mean, figure.unit)} ({name})"
                f" {'under' if choices.by_scheduler else 'with'} {best.name}{beside}{place}."
            )
            return


def _rate(report: ProgramReport | None) -> Figure | None:
    figures = report.figures if report else ()
    return next((one for one in figures if one.unit in ("ops/s", "B/s") and one.value), None)


def _same_point(choices: Choices, point: PointView) -> PointView | None:
    """Under none, if there are others."""
    at = {**point.point, "scheduler": "none"}
    return next(
        (
            one
            for one in choices.analysis.points
            if choices.by_scheduler
            and one.schedulers == "none"
            and one.point.items() <= at.items()
            and one.valid
        ),
        None,
    )


def shown(choices: Choices) -> tuple[list[Choice], str]:
    """The choices of the table, the best first, and what is left out."""
    ranked = choices.ranked
    none = [choices.none] if choices.none else []
    room = LINES - len(none)
    if len(ranked) <= room:
        return [*ranked, *none], ""
    if choices.by_scheduler:
        left = f"the best {counted(room)} of {counted(len(ranked))}"
        return [*ranked[:room], *none], left + (", and none" if none else "")
    left = f"the best {counted(room - 1)} of {counted(len(ranked))} points, and the worst"
    return [*ranked[: room - 1], ranked[-1]], left


def table(choices: Choices) -> Table:
    """A line a choice: how exact, how fast, and how long the light one waits."""
    found, note = shown(choices)
    waits = any(one.wait for one in found)
    who = choices.light[0] if len(choices.light) == 1 else "the light"
    columns = [
        Column("scheduler" if choices.by_scheduler else "point", numeric=False),
        Column("time error" if choices.error == "service_error" else "share error"),
        Column("bandwidth, of none"),
    ]
    if waits:
        columns.append(Column(f"p99 of {who}"))
    lines = []
    for one in found:
        cells = [
            Cell(one.name),
            _cell(choices, one.error, _exact, one.divides),
            _cell(choices, one.speed, numbers.percent, one.speed is None or one.speed.value > _ALL),
        ]
        if waits:
            beside = f"alone {numbers.time(one.wait.alone)}" if one.wait else ""
            cells.append(Cell(_time(one.wait.p99 if one.wait else None), beside))
        state = "divides" if one.divides and one is not choices.none else "valid"
        lines.append((state, tuple(cells)))
    notes = []
    if any(len(one.points) > 1 for one in found):
        against = ", p99 against that alone" if waits else ""
        notes.append(f"each figure at the point where it is worst{against}")
    if note:
        notes.append(note)
    if choices.light:
        notes.append("share error: of the other tenants")
    return Table(tuple(columns), tuple(lines), ("; ".join(notes),) if notes else ())


def _cell(
    choices: Choices, worst: Worst | None, form: Callable[[float], str], everywhere: bool
) -> Cell:
    """A figure, and where it is so. everywhere: as good at every point."""
    if worst is None:
        return Cell(text.NOTHING)
    place = "" if everywhere or not choices.by_scheduler else choices.where(worst.point)
    return Cell(form(worst.value), place)


def _exact(error: float) -> str:
    return "< 0.1 %" if error < _EXACT else numbers.percent(error)

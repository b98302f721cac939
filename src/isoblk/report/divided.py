# SPDX-License-Identifier: GPL-2.0-only
"""The answer of a study that divides a disk among tenants."""

import math
from collections.abc import Callable, Iterator, Sequence

from isoblk.analysis.metrics import PointView
from isoblk.metrics.registry import SAYS
from isoblk.report import text
from isoblk.report.choices import ALIKE, ALIKE_WAIT, DIVIDES, Choice, Choices, Wait, Worst
from isoblk.report.rows import NEVER, Cell, Column, Table
from isoblk.report.words import counted, listed
from isoblk.run import numbers
from isoblk.run.record import Figure, ProgramReport
from isoblk.study.notes import notes as study_notes

LINES = 5
"""Number of lines in the answer's table."""
_NAMED = 5  # names in a sentence, the best ones of more
_EXACT = 0.0005  # a smaller error is written as less than 0.1 %
_FAR = 2  # ratio from which a wait is mentioned
_ALL = 0.9995  # a higher speed is written as 100 %
_CHEAP = 0.9  # retained bandwidth below which the cost is mentioned
_BETTER = 0.5  # of the error without a scheduler: an alternative has less
OF_NONE = "of the bandwidth without a scheduler (none)"
_WITHIN = f"to within {DIVIDES * 100:g} %"
# Times of an emulated machine have no meaning: see isoblk.report.page.
_UNTIMED = "qemu"
_MOST = 3  # sentences


def divided(choices: Choices) -> tuple[list[str], Table]:
    """Return the sentences and the table; both empty if no choice is complete."""
    ranked = [choice for choice in choices.ranked if choice.error is not None]
    if not ranked:
        return [], Table((), (), ())
    timed = _timed(choices)
    sentences = [*_predicted(choices), *_who(choices, ranked, timed=timed)]
    dividing = [choice for choice in ranked if choice.divides] or _best_of_none(choices, ranked)
    if timed:
        sentences += [*_cost(choices, ranked, dividing), *waits(choices, dividing)]
        sentences += _said(choices, dividing[0])
    return sentences[:_MOST], table(choices)


def _timed(choices: Choices) -> bool:
    views = choices.analysis.views
    return all(view.run.record.tier != _UNTIMED for view in views if view.run is not None)


def _nearest(ranked: Sequence[Choice]) -> list[Choice]:
    return [min(ranked, key=lambda one: one.error.value if one.error else 0.0)]


def _best_of_none(choices: Choices, ranked: Sequence[Choice]) -> list[Choice]:
    """Return the best choices if none divides: those that divide the most tenants, else the
    nearest."""
    return _furthest(choices, ranked) or _nearest(ranked)


def _who(choices: Choices, ranked: Sequence[Choice], *, timed: bool) -> Iterator[str]:
    """Yield sentences on the choices that divide."""
    how = _how(choices)
    if not choices.by_scheduler:
        yield from _one_scheduler(choices, ranked, how)
        return
    good = [choice.name for choice in ranked if choice.divides]
    cases = _cases(ranked)
    of = counted(len(ranked))
    if not good:
        yield _nobody(choices, ranked, how, timed=timed)
    elif len(ranked) == 1:
        yield f"{good[0]} shares {how} {_WITHIN}{cases}."
    elif len(good) == len(ranked):
        all_of_them = "Both" if len(good) == 2 else f"All {of}"
        yield f"{all_of_them} schedulers share {how} {_WITHIN}{cases}: {_names(good)}."
    elif len(good) == 1:
        yield f"Of {of} schedulers only {good[0]} shares {how} {_WITHIN}{cases}."
    else:
        count = counted(len(good)).capitalize()
        yield f"{count} of {of} schedulers share {how} {_WITHIN}{cases}: {_names(good)}."


def _names(names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return listed(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def _nobody(choices: Choices, ranked: Sequence[Choice], how: str, *, timed: bool) -> str:
    (nearest,) = _nearest(ranked)
    assert nearest.error is not None
    off = f"{_error(nearest.error.value)} off{_place(choices, nearest, nearest.error)}"
    so = ""
    if timed and choices.none and choices.none.divides:
        so = f"; without a scheduler (none) it is shared {_WITHIN}"
    if len(ranked) == 1:
        return f"{nearest.name} does not share {how} {_WITHIN}: it is {off}{so}."
    which = "Neither of the two" if len(ranked) == 2 else f"None of the {counted(len(ranked))}"
    none = f"{which} schedulers shares {how} {_WITHIN}{_cases(ranked)}"
    if far := _furthest(choices, ranked):
        verb = "do" if len(far) > 1 else "does"
        names = _names([one.name for one in far])
        return f"{none}; {names} {verb} up to {choices.reach(far[0]):,} tenants."
    worse = so
    if (
        not so
        and choices.none
        and choices.none.error
        and nearest.error.value >= choices.none.error.value
    ):
        worse = ", no nearer than without a scheduler (none)" if timed else ""
    return f"{none}; the nearest, {nearest.name}, is {off}{worse}."


def _furthest(choices: Choices, ranked: Sequence[Choice]) -> list[Choice]:
    """Return the choices that divide the most tenants, if their number varies."""
    reach = [choices.reach(choice) for choice in ranked]
    most = max(reach)
    return [one for one, tenants in zip(ranked, reach, strict=True) if most and tenants == most]


def _one_scheduler(choices: Choices, ranked: Sequence[Choice], how: str) -> Iterator[str]:
    """Yield sentences on the points of the only scheduler, and its cost if it depends on a
    setting."""
    name = ranked[0].points[0].schedulers
    good = sum(choice.divides for choice in ranked)
    count = len(ranked)
    if count == 1:
        off = _error(ranked[0].error.value) if ranked[0].error else ""
        does = f"shares {how} {_WITHIN}" if good else f"does not share {how} {_WITHIN}: it is {off}"
        yield f"{name} {does}{'' if good else ' off'}."
        return
    if good == count:
        yield f"{name} shares {how} {_WITHIN} in all {counted(count)} cases."
        return
    groups = choices.by_setting()
    where = (
        f"in {counted(good)} of {counted(count)} cases"
        if good
        else f"in none of {counted(count)} cases"
    )
    if groups:
        (first, of), *rest = groups.items()
        told = f"with {first} it is {_errors(of)}" + "".join(
            f", with {setting} {_errors(of)}" for setting, of in rest
        )
    else:
        told = f"it is {_errors(ranked, named=True)}"
    yield f"{name} shares {how} {_WITHIN} {where}: {told}."


def _errors(found: Sequence[Choice], *, named: bool = False) -> str:
    """Format errors as "1.9 to 2.8 % off". named: with the points."""
    errors = [(one.error.value, one.name) for one in found if one.error]
    (low, best), (high, worst) = min(errors), max(errors)
    if named and _error(low) != _error(high):
        return f"from {_error(low)} off ({best}) to {_error(high)} ({worst})"
    return f"{_span(low, high, _error)} off"


def _span(low: float, high: float, form: Callable[[float], str]) -> str:
    """Format a range: "10.8 to 66.1 %", or "10.8 %" for equal ends."""
    first, last = form(low), form(high)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


def _how(choices: Choices) -> str:
    """Describe the division: "the disk by weight"."""
    heavy = [
        {t.weight for t in view.spec.tenants if t.name not in choices.light}
        for view in choices.analysis.views
    ]
    uneven = any(view.spec.groups or view.spec.events for view in choices.analysis.views)
    how = "equally" if not uneven and all(len(weights) == 1 for weights in heavy) else "by weight"
    if choices.error == "service_error":
        return f"the disk's time {how}"
    if choices.light:
        part = f"{choices.light[0]}'s part" if len(choices.light) == 1 else "the light ones' parts"
        return f"all but {part} {how}"
    return f"the disk {how}"


def _cases(ranked: Sequence[Choice]) -> str:
    most = max(len(choice.points) for choice in ranked)
    if most == 1:
        return ""
    tenants = {
        len(view.spec.tenants) for choice in ranked for p in choice.points for view in p.runs
    }
    up_to = f", up to {max(tenants):,} tenants" if len(tenants) > 1 else ""
    return (" in both cases" if most == 2 else f" in all {counted(most)} cases") + up_to


def _place(choices: Choices, one: Choice, worst: Worst | None) -> str:
    """Return the point where a choice is worst; "" if it has a single point."""
    if len(one.points) == 1 or worst is None:
        return ""
    return f" at worst ({choices.where(worst.point)})"


def _cost(choices: Choices, ranked: Sequence[Choice], dividing: Sequence[Choice]) -> Iterator[str]:
    """Yield sentences on the retained bandwidth, and on choices that retain more if it is low."""
    if all(point.schedulers == "none" for choice in dividing for point in choice.points):
        return
    if not choices.by_scheduler:
        yield from _cost_by_point(choices, ranked, dividing)
        return
    found = [(choice.speed.value, choice) for choice in dividing if choice.speed]
    if not found:
        yield "What that costs is not known: no valid run without a scheduler (none) was made."
        return
    low, slow = min(found, key=lambda pair: pair[0])
    high, fast = max(found, key=lambda pair: pair[0])
    several = len(slow.points) > 1
    verb = "move" if low > 1 + ALIKE else "keep"
    who = f"They {verb}" if len(found) > 1 else f"{slow.name} {verb}s"
    if 1 < len(found) < len(dividing):
        who = f"{_names([one.name for _, one in found])} {verb}"
    if numbers.percent(low) == numbers.percent(high) and (low >= _ALL or not several):
        part = f"{_kept(low)} {OF_NONE}"
    elif len(found) == 1 or high - low < ALIKE:
        part = f"{_kept(low)} {OF_NONE}"
        if several and low < _CHEAP and slow.speed:
            part = f"at worst {_kept(low)} ({choices.where(slow.speed.point)}) {OF_NONE}"
        elif low < _ALL:
            part = f"at least {part}"
    else:
        worst = "at worst " if several else ""
        part = f"{worst}from {_kept(low)} ({slow.name}) to {_kept(high)} ({fast.name}) {OF_NONE}"
    other = _instead(choices, ranked, dividing) if high < _CHEAP else ""
    yield f"{who} {part}{other}."


_kept = numbers.percent


def _instead(choices: Choices, ranked: Sequence[Choice], dividing: Sequence[Choice]) -> str:
    """Describe the alternatives that retain more bandwidth, if the dividing choices retain
    little."""
    others = [
        choice for choice in ranked if choice not in dividing and choice.speed and choice.error
    ]
    more = [one for one in others if one.speed and one.speed.value >= _CHEAP]
    if not more:
        return ""
    limit = choices.none.error.value * _BETTER if choices.none and choices.none.error else math.inf
    near = [one for one in more if one.error and one.error.value <= limit]
    if near:
        one = min(near, key=lambda found: found.error.value if found.error else 0.0)
        assert one.speed is not None
        assert one.error is not None
        worst = "at worst " if len(one.points) > 1 else ""
        off = _error(one.error.value)
        return f"; {one.name} keeps {worst}{_kept(one.speed.value)}, but is {off} off"
    off = _error(min(one.error.value for one in more if one.error))
    price = f"more than {_CHEAP * 100:g} %"
    if len(more) == 1:
        only = "only " if all(choice.speed for choice in ranked) else ""
        return f"; {only}{more[0].name} keeps {price}, and is {off} off"
    return f"; those that keep {price} are {off} off or more"


def _cost_by_point(
    choices: Choices, ranked: Sequence[Choice], dividing: Sequence[Choice]
) -> Iterator[str]:
    """Yield a sentence on the bandwidth that the only scheduler retains: over all its points, or by
    a setting that distinguishes them."""
    parts = []
    all_of_them = all(choice.speed for choice in ranked)
    for name, group in (choices.by_setting() or {"": list(ranked)}).items():
        speeds = [one.speed.value for one in group if one.speed]
        if speeds:
            span = _span(min(speeds), max(speeds), numbers.percent)
            parts.append((name, span))
    if not parts:
        yield "What that costs is not known: no valid run without a scheduler (none) was made."
        return
    (name, span), *rest = parts
    more = "".join(f", with {other} {span}" for other, span in rest)
    who = "It keeps" if all_of_them else "Where that was measured it keeps"
    yield f"{who} {span} {OF_NONE}{f' with {name}' if name else ''}{more}."


def waits(
    choices: Choices, dividing: Sequence[Choice], them: str = "each of them"
) -> Iterator[str]:
    """Yield sentences on the light tenant's wait under the best choice, and on choices with a far
    longer one. them: name of the choices if all are equal."""
    if not choices.by_scheduler:
        return
    best = dividing[0]
    wait = best.wait
    if wait is None:
        return
    alike = [choice.wait for choice in dividing if choice.wait]
    longest, shortest = max(w.p99 for w in alike), min(w.p99 for w in alike)
    same = len(alike) == len(dividing) > 1 and longest <= shortest * ALIKE_WAIT**2
    under = f"Under {them}" if same else f"Under {best.name}"
    if same:
        wait = max(alike, key=lambda one: one.p99)
    who = wait.tenant
    requests = _requests(choices, who)
    several = len(best.points) > 1 or len(choices.watched) > 1
    place = f" ({choices.where(wait.point)})" if len(best.points) > 1 else ""
    others = _others(choices, [best] if same else dividing, wait) + _share(choices, wait)
    if math.isinf(wait.p99):
        ends = f"not one of the {requests} of {who} ends in the measured time"
        yield f"{under} {ends}{place}{others}."
        return
    place = f"{choices.where(wait.point)}; " if len(best.points) > 1 else ""
    yield (
        f"{under} 99 of 100 {requests} of {who} end within {numbers.time(wait.p99)}"
        f"{' at worst' if several else ''} ({place}alone {numbers.time(wait.alone)}){others}."
    )


def _share(choices: Choices, wait: Wait) -> str:
    """Describe the share of a watched tenant that is not light, by its weight."""
    if choices.light:
        return ""
    here = wait.point.estimate(f"share.{wait.tenant}")
    none = _same_point(choices, wait.point)
    there = none.estimate(f"share.{wait.tenant}") if none else None
    if here is None:
        return ""
    beside = f", without a scheduler {numbers.percent(there.mean)}" if there else ""
    return f". It gets {numbers.percent(here.mean)} of all bytes there{beside}"


def _requests(choices: Choices, name: str) -> str:
    """Return "reads" if the tenant sends nothing else, and the like."""
    loads = {
        tenant.workload.rw if tenant.workload.program == "blkload" else ""
        for view in choices.analysis.views
        for tenant in view.spec.tenants
        if tenant.name == name and not tenant.workload.trace
    }
    if loads and loads <= {"read", "randread"}:
        return "reads"
    return "writes" if loads and loads <= {"write", "randwrite"} else "requests"


def _others(choices: Choices, dividing: Sequence[Choice], wait: Wait) -> str:
    """Describe the tenant's shortest and longest wait at that point under the other dividing
    choices, if far from this, and under none: at that point, or its longest if that is far
    longer."""
    there_under = ((choices.p99_at(choice, wait), choice.name) for choice in dividing[1:])
    by_wait = sorted((p99, name) for p99, name in there_under if p99 is not None)
    told = []
    for p99, name in by_wait if len(by_wait) < 3 else (by_wait[0], by_wait[-1]):
        if p99 > _FAR * wait.p99 or p99 * _FAR < wait.p99:
            told.append(f"under {name} {_within(p99)}")
    longest = choices.none.wait if choices.none else None
    place = choices.where(longest.point) if longest else ""
    if longest and place != choices.where(wait.point) and longest.p99 > _FAR * wait.p99:
        told.append(f"without a scheduler {_within(longest.p99)} ({place})")
    elif wait.none is not None:
        there = " there" if place and len(choices.all[0].points) > 1 else ""
        already = "already " if _FAR * wait.none < wait.p99 else ""
        told.append(f"without a scheduler {already}{_within(wait.none)}{there}")
    return f"; {', '.join(told)}" if told else ""


def _within(ns: float) -> str:
    return "not one ends" if math.isinf(ns) else f"within {numbers.time(ns)}"


def _time(ns: float | None) -> str:
    if ns is None:
        return text.NOTHING
    return NEVER if math.isinf(ns) else numbers.time(ns)


def _error(value: float) -> str:
    return "less than 0.1 %" if value < _EXACT else _off(value)


def _off(error: float) -> str:
    """Format an error above DIVIDES with enough digits to show that it is."""
    short = numbers.percent(error)
    if error <= DIVIDES or short != numbers.percent(DIVIDES):
        return short
    return f"{max(error, DIVIDES * 1.001) * 100:.4g} %"


def _predicted(choices: Choices) -> Iterator[str]:
    """Yield a sentence on a scheduler's predictions, if claims are about them."""
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
    who = points[0].schedulers
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
    """Yield a sentence on the first rate that a program reports, under the best choice and under
    none."""
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
            beside = (
                f", without a scheduler {numbers.figure(there.mean, figure.unit)}" if there else ""
            )
            place = f" ({choices.where(point)})" if len(best.points) > 1 else ""
            name = figure.name.replace(".", " ")
            yield (
                f"{tenant.name} itself reports {numbers.figure(here.mean, figure.unit)} ({name})"
                f" {'under' if choices.by_scheduler else 'with'} {best.name}{beside}{place}; that"
                " is over its own run, tables count the measured time alone."
            )
            return


def _rate(report: ProgramReport | None) -> Figure | None:
    figures = report.figures if report else ()
    return next(
        (figure for figure in figures if figure.unit in ("ops/s", "B/s") and figure.value), None
    )


def _same_point(choices: Choices, point: PointView) -> PointView | None:
    """Return the point under none, if there are other choices."""
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
    """Return the choices of the table, the best first, and a note on the omitted ones."""
    ranked = choices.ranked
    none = [choices.none] if choices.none else []
    room = LINES - len(none)
    if len(ranked) <= room:
        return [*ranked, *none], ""
    if choices.by_scheduler:
        left = _names([choice.name for choice in ranked[room:]])
        return [*ranked[:room], *none], f"not shown: {left}"
    left = f"the best {counted(room - 1)} of {counted(len(ranked))} cases, and the worst"
    return [*ranked[: room - 1], ranked[-1]], left


def table(choices: Choices) -> Table:
    """Return a table with a line for each choice: error, speed, and the light tenant's wait."""
    found, note = shown(choices)
    found_waits = [one.wait for one in found if one.wait]
    who = listed(choices.watched) if choices.watched else ""
    error = f"share error without {listed(choices.light)}" if choices.light else "share error"
    columns = [
        Column("scheduler" if choices.by_scheduler else "case", numeric=False),
        Column("time error" if choices.error == "service_error" else error),
        Column("bandwidth, of none"),
    ]
    if found_waits:
        columns.append(Column(f"p99 of {who}"))
    # A value that is common to all lines is stated once, below the table.
    places = {(choices.where(wait.point), numbers.time(wait.alone)) for wait in found_waits}
    lines = []
    for one in found:
        cells = [
            Cell(one.name),
            _cell(choices, one.error, _exact, one.divides),
            _cell(choices, one.speed, numbers.percent, one.speed is None or one.speed.value > _ALL),
        ]
        if found_waits:
            beside = ""
            if one.wait and len(places) > 1:
                alone = f"alone {numbers.time(one.wait.alone)}"
                place = choices.where(one.wait.point) if choices.by_scheduler else ""
                beside = ", ".join(filter(None, [place, alone]))
            cells.append(Cell(_time(one.wait.p99 if one.wait else None), beside))
        state = "divides" if one.divides and one is not choices.none else "valid"
        lines.append((state, tuple(cells)))
    notes = []
    if any(len(one.points) > 1 for one in found):
        notes.append("each figure where it is worst")
    if len(places) == 1:
        ((place, alone),) = places
        notes.append(f"p99 of {who} alone on the disk: {alone}{f' ({place})' if place else ''}")
    if note:
        notes.append(note)
    if any(cells[0].text == "none" for _, cells in lines):
        notes.append("none: no scheduler")
    if any(view.spec.scheduler_events for view in choices.analysis.views):
        notes.append("the scheduler changes during the run")
    lines_below: tuple[str, ...] = ("; ".join(notes),) if notes else ()
    if not choices.by_scheduler:
        lines_below += tuple(study_notes(view.spec for view in choices.analysis.views)[:1])
    return Table(tuple(columns), tuple(lines), lines_below)


def _cell(
    choices: Choices, worst: Worst | None, form: Callable[[float], str], everywhere: bool
) -> Cell:
    """Return a figure, and its point. everywhere: equally good at every point."""
    if worst is None:
        return Cell(text.NOTHING)
    place = "" if everywhere or not choices.by_scheduler else choices.where(worst.point)
    return Cell(form(worst.value), place)


def _exact(error: float) -> str:
    return "< 0.1 %" if error < _EXACT else _off(error)

# SPDX-License-Identifier: GPL-2.0-only
"""Write a find: a study with a claim, its results, and a page."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomli_w

from isoblk import toml
from isoblk.analysis.metrics import Analysis
from isoblk.hunt.judge import DIFFERS, FAILED, TROUBLES, score
from isoblk.hunt.session import Find
from isoblk.hunt.space import Space
from isoblk.hunt.spec import HuntSpec, Objective
from isoblk.metrics.base import MetricUnit, show
from isoblk.metrics.facts import RunMetrics
from isoblk.metrics.latency import ALL
from isoblk.metrics.registry import described, metric_text
from isoblk.run import numbers

_SPDX = "# SPDX-License-Identifier: GPL-2.0-only\n"
_TROUBLE = {
    FAILED: "a run under {scheduler} fails",
    DIFFERS: "the same run under {scheduler} gives other figures each time",
}
_IMPOSSIBLE = "a run under {scheduler} has impossible figures"
_DIGITS = 2  # significant digits of a claim's value

OTHER_SEEDS = (2, 3)
"""Seeds for further runs of a find: the p99 of a hundred requests may be bad by chance."""


@dataclass(frozen=True)
class Written:
    """A find's study. name: of the study and of its directory. title: the find in one sentence."""

    name: str
    title: str
    text: str


def write(find: Find, spec: HuntSpec, space: Space, scheduler: str) -> Written:
    """Write the study of a find, with the claim that the find still holds.

    Under another scheduler than none, the study also runs `none` for comparison.
    """
    name = f"{spec.name}-{scheduler}-{find.kind.replace('_', '-')}-{find.number}"
    title = _sentence(find, spec).replace("{scheduler}", scheduler)
    document: dict[str, Any] = {
        "name": name,
        "title": title,
        "description": _how(find, spec, scheduler) + "\n",
    }
    study = space.document(find.candidate, scheduler)
    del study["scheduler"]
    document |= {key: value for key, value in study.items() if key not in document}
    document["matrix"] = {"scheduler": list(dict.fromkeys(["none", scheduler]))}
    if find.kind not in TROUBLES:
        document["claim"] = [_claim(find, spec, scheduler, title)]
    text = tomli_w.dumps(document, multiline_strings=True)
    return Written(name, document["title"], _SPDX + text)


def with_seed(written: Written, seed: int) -> str:
    """Return a find's study with another seed."""
    document = toml.parse(written.text)
    document.setdefault("run", {})["seed"] = seed
    return tomli_w.dumps(document, multiline_strings=True)


def how_bad(find: Find, spec: HuntSpec, scheduler: str, analysis: Analysis) -> float | None:
    """Return how bad a find is in the runs of its study, as a verdict's score; None without a
    value."""
    for view in analysis.views:
        if view.metrics is not None and view.metrics.spec.scheduler.name == scheduler:
            scores, _ = score(view.metrics, [_objective(find, spec)])
            return scores.get(find.kind)
    return None


def _sentence(find: Find, spec: HuntSpec) -> str:
    if find.kind in TROUBLES:
        return _TROUBLE.get(find.kind, _IMPOSSIBLE)
    objective = _objective(find, spec)
    return objective.text or f"{{scheduler}}: {objective.metric} is {objective.beyond:g} or worse"


def _objective(find: Find, spec: HuntSpec) -> Objective:
    return next(objective for objective in spec.objective if objective.metric == find.kind)


def _how(find: Find, spec: HuntSpec, scheduler: str) -> str:
    first, simplest = len(find.first.tenants), len(find.candidate.tenants)
    return (
        f"Found by isoblk hunt {spec.name} --scheduler {scheduler}, seed {spec.seed}: candidate"
        f" {find.tried}, after {find.runs} runs; shrunk from {first} to {simplest}"
        f" [[tenant]] in {find.shrunk_in} more."
    )


def _claim(find: Find, spec: HuntSpec, scheduler: str, title: str) -> dict[str, Any]:
    objective = _objective(find, spec)
    lowest = objective.described.better == "up"
    value = abs(find.verdict.scores[find.kind])
    metric = find.kind
    if tenant := find.verdict.tenants.get(find.kind):
        metric = f"{metric}.{tenant}"
    return {
        "text": title,
        "source": f"isoblk hunt {spec.name}, seed {spec.seed}",
        "metric": metric,
        "op": "<=" if lowest else ">=",
        "value": _rounded(value, up=lowest),
        "where": {"scheduler": scheduler},
    }


def _rounded(value: float, *, up: bool) -> float:
    """Round to two significant digits in the direction in which the claim holds."""
    if not value:
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - _DIGITS)
    steps = math.ceil(value / step) if up else math.floor(value / step)
    return float(f"{steps * step:.{_DIGITS}g}")


def page(
    find: Find,
    written: Written,
    analysis: Analysis,
    figures: Sequence[str],
    elsewhere: Sequence[float | None],
) -> str:
    """Format the page of a find, in Markdown.

    Args:
        find: the find.
        written: its study.
        analysis: metrics of the study's runs.
        figures: names of the files next to the page.
        elsewhere: its score with each of OTHER_SEEDS; empty for an error.
    """
    lines = [
        f"# {written.title}",
        "",
        *_worth(find, elsewhere),
        *_tenants(analysis),
        *(line for figure in figures for line in ("", f"![{written.title}]({figure})")),
        "",
        analysis.results.record.study.description.strip(),
        "",
        f"    isoblk run {written.name}.toml --check-claims",
        "",
        "```toml",
        written.text.removeprefix(_SPDX).rstrip(),
        "```",
        "",
    ]
    return "\n".join(lines)


def _worth(find: Find, elsewhere: Sequence[float | None]) -> Iterator[str]:
    if find.kind in TROUBLES:
        yield find.verdict.reason
    else:
        metric = described(find.kind)
        worth = abs(find.verdict.scores[find.kind])
        tenant = find.verdict.tenants.get(find.kind)
        who = f" of {tenant}" if tenant else ""
        yield f"`{find.kind}`{who} is {show(worth, metric.unit)}: {metric.text}."
        if elsewhere:
            yield ""
            yield f"With other seeds it is {_list(elsewhere, metric.unit)}."
    yield ""


def _list(worths: Sequence[float | None], unit: MetricUnit) -> str:
    return " and ".join("nothing" if one is None else show(abs(one), unit) for one in worths)


def _tenants(analysis: Analysis) -> Iterator[str]:
    yield "| scheduler | tenant | weight | bandwidth | share | p50 | p99 | longest pause |"
    yield "|---|---|---|---|---|---|---|---|"
    for view in analysis.views:
        if view.metrics is not None:
            yield from _rows(view.schedulers, view.metrics)


def _rows(scheduler: str, run: RunMetrics) -> Iterator[str]:
    for tenant in run.tenants:
        latency = tenant.latency.get(ALL)
        pause = tenant.longest_gap_ns
        cells = (
            scheduler,
            tenant.name,
            str(tenant.weight),
            metric_text(f"bps.{tenant.name}", tenant.own_bps),
            numbers.percent(tenant.share),
            numbers.time(latency.p50) if latency else "-",
            numbers.time(latency.p99) if latency else "-",
            "-" if pause is None else numbers.time(pause),
        )
        yield f"| {' | '.join(cells)} |"


def summary(finds: Mapping[str, tuple[Find, Written, Sequence[float | None]]]) -> str:
    """Format the list of all finds of a hunt, in Markdown.

    Args:
        finds: find, study and scores with OTHER_SEEDS, by name of the directory.
    """
    lines = [
        "| find | what | worth | with other seeds | found after | tenants |",
        "|---|---|---|---|---|---|",
    ]
    for name, (find, written, elsewhere) in finds.items():
        lines.append(
            f"| [{name}]({name}/{name}.md) | {written.title} |"
            f" {_short(find.verdict.scores.get(find.kind))} |"
            f" {', '.join(map(_short, elsewhere)) or '-'} |"
            f" {find.runs} runs | {len(find.candidate.tenants)} |"
        )
    return "\n".join([*lines, ""])


def _short(worth: float | None) -> str:
    return "-" if worth is None else f"{abs(worth):.3g}"

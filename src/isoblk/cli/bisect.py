# SPDX-License-Identifier: GPL-2.0-only
"""isoblk bisect: find the version that changed a metric."""

import json
import math
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from isoblk.bisect.candidate import Range
from isoblk.bisect.commits import KernelCommits, OwnCommits
from isoblk.bisect.measure import Question, Value, ask, lab_of, measure
from isoblk.bisect.session import Outcome, Session, Tried, announce, sentence
from isoblk.bisect.threshold import parse, text_of
from isoblk.bisect.versions import KernelVersions, available
from isoblk.cli import completing
from isoblk.cli.help import examples
from isoblk.cli.options import Jobs
from isoblk.cli.progress import building
from isoblk.cli.results import Json, Only
from isoblk.errors import INTERRUPTED, IsoblkError, RunError, UserError, printable
from isoblk.kernel import DEFAULT_VERSION, Progress, find, ready_kernels
from isoblk.kernel.apt import Offer, offers
from isoblk.report.tables import plain_or_rich
from isoblk.study.load import load_study
from isoblk.study.shipped import choose

# Wall-clock seconds until a run counts as hung.
_TIME_LIMIT_S = 600
# CPU minutes that a build of a lab kernel takes, for the estimate.
_BUILD_CPU_MIN = 5

app = typer.Typer()


@app.command(
    epilog=examples(
        "isoblk bisect 6.12 7.2 --study iocost-vrate --metric p99.reader",
        "isoblk bisect v6.12 v7.2 --source ~/linux --path block --study my.toml --metric p99.web",
        "isoblk bisect HEAD~9 HEAD --own ~/isoblk --study my.toml --metric share_error",
    )
)
def bisect(
    good: Annotated[
        str,
        typer.Argument(metavar="GOOD", help="Older version or revision. Its value defines good."),
    ],
    bad: Annotated[str, typer.Argument(metavar="BAD", help="Newer version or revision.")],
    study: Annotated[
        Path,
        typer.Option(
            metavar="STUDY",
            help="Study file (TOML), or the name of a shipped study.",
            autocompletion=completing.studies,
        ),
    ],
    metric: Annotated[
        str,
        typer.Option(metavar="NAME", help="Metric, such as p99.web or share_error."),
    ],
    only: Only = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="Value that divides good from bad.",
            show_default="the middle of the values of GOOD and BAD",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(metavar="TREE", help="Kernel git tree. GOOD and BAD are revisions of it."),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="With --source: only commits that touch this path, as block. May be repeated.",
        ),
    ] = None,
    own: Annotated[
        Path | None,
        typer.Option(
            metavar="REPOSITORY",
            help="Git tree of isoblk. GOOD and BAD are revisions of its schedulers.",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="With --own: version of the kernel under test.",
            show_default=DEFAULT_VERSION,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Directory for the results.",
            show_default="results/bisect-NAME",
        ),
    ] = None,
    jobs: Jobs = 1,
    as_json: Json = False,
) -> None:
    """Find the version of the kernel, or of isoblk's schedulers, that changed a metric.

    Without --source and --own, GOOD and BAD are kernel versions that are built or in Debian's
    suites. GOOD's value defines good, even if it is worse. The same command resumes an interrupted
    bisection.
    """
    if source is not None and own is not None:
        raise UserError("--source and --own exclude each other", next="remove one of them")
    if path and source is None:
        raise UserError("--path needs a git tree of the kernel", next="add --source TREE")
    if kernel is not None and own is None:
        raise UserError(
            "--kernel is for a bisection of isoblk's schedulers", next="add --own REPOSITORY"
        )
    chosen = choose(study)
    if chosen.note:
        typer.echo(f"note: {printable(chosen.note)}", err=True)
    parsed, text = load_study(chosen.path)
    results = (output or Path("results") / f"bisect-{parsed.name}").absolute()
    question = ask(parsed, text, metric, only or (), results, jobs, _TIME_LIMIT_S)
    asked = None if threshold is None else parse(threshold, metric)
    try:
        if own is not None:
            range_: Range = OwnCommits(own, good, bad, find(kernel or DEFAULT_VERSION))
        elif source is not None:
            range_ = KernelCommits(source, good, bad, path or (), ready_kernels())
        else:
            range_ = KernelVersions(available(ready_kernels(), _offers()), good, bad)
        outcome = _search(range_, question, asked)
    except KeyboardInterrupt:
        typer.echo(
            "isoblk: interrupted; measurements are kept, repeat the command to resume", err=True
        )
        raise typer.Exit(INTERRUPTED) from None
    told = sentence(range_, metric, outcome)
    if as_json:
        typer.echo(json.dumps(_document(range_, question, outcome, told), indent=1))
    else:
        plain_or_rich().print(_table(range_, question, outcome))
        typer.echo(printable(told))
    if outcome.found.open:
        raise RunError(
            f"undecided: {len(outcome.found.open)} candidates could not be measured",
            where=str(results),
        )


def _offers() -> list[Offer]:
    """Return Debian's kernel packages; an empty list if the archive cannot be reached."""
    with building() as progress, TemporaryDirectory(prefix="isoblk-bisect-") as temporary:
        progress.stage("reading the lists of Debian's suites")
        try:
            found = offers(Path(temporary))
        except IsoblkError as error:
            progress.note(f"note: only kernels that are already built are used: {error}")
            found = []
        progress.finish()
    return found


def _search(range_: Range, question: Question, asked: float | None) -> Outcome:
    _say(range_)
    metric = question.metric

    def tried(one: Tried) -> None:
        what = one.reason if one.value is None else text_of(metric, one.value.estimate.mean)
        typer.echo(printable(f"{one.candidate.name}: {one.verdict}: {what}"), err=True)

    def measured(name: str) -> tuple[Value, float, float]:
        begun = time.monotonic()
        with (
            building() as bar,
            range_.built(name, _Brief(bar)) as built,
            lab_of(question, built, _Brief(bar)) as lab,
        ):
            ready = time.monotonic()
            runs = len(question.expansion.runs)
            bar.stage(printable(f"measuring {range_.candidate(name).name}"), runs)
            value = measure(question, lab, bar.step)
            bar.finish()
            return value, ready - begun, time.monotonic() - ready

    return Session(range_, metric, measured, tried).run(asked)


class _Brief:
    """A build's progress without the end of its log: a failed candidate takes one line."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self.stage, self.step = bar.stage, bar.step

    def note(self, text: str) -> None:
        """Print a message if it is a single line."""
        if "\n" not in text:
            self._bar.note(text)


def _say(range_: Range) -> None:
    """Print the number of candidates and an estimate of the build time."""
    count, tried, builds = announce(range_)
    what = range_.what if count == 1 else f"{range_.what}s"
    text = f"{count} {what} between GOOD and BAD; at most {tried} are tried"
    if builds:
        minutes = builds * _BUILD_CPU_MIN / len(os.sched_getaffinity(0))
        kernels = "1 kernel" if builds == 1 else f"{builds} kernels"
        text += f", for which at most {kernels} must be built: some {minutes:.0f} minutes here"
    typer.echo(text, err=True)


def _table(range_: Range, question: Question, outcome: Outcome) -> Table:
    """Return a table of the candidates in the order of trials, each with its decisive point."""
    headings = [range_.what, question.metric, "verdict", "build", "runs", ""]
    if question.several:
        headings.insert(2, "worst at")
    rows = Table(box=None, pad_edge=False)
    for heading in headings:
        right = heading in (question.metric, "build", "runs")
        rows.add_column(heading, justify="right" if right else "left", overflow="fold")
    for trial in outcome.tried:
        value, point = "", ""
        if trial.value is not None:
            value = text_of(question.metric, trial.value.estimate.mean)
            point = " ".join(trial.value.point.values())
        cells = [
            trial.candidate.name,
            value,
            trial.verdict,
            _time(trial.build_s),
            _time(trial.runs_s),
        ]
        if question.several:
            cells.insert(2, point)
        cells.append(trial.reason or trial.candidate.about)
        rows.add_row(*(Text(printable(cell)) for cell in cells))
    return rows


def _time(seconds: float) -> str:
    """Format as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _document(range_: Range, question: Question, outcome: Outcome, told: str) -> dict[str, Any]:
    """Return the document that --json prints."""
    found = outcome.found
    return {
        "study": question.expansion.study.name,
        "metric": question.metric,
        "threshold": outcome.threshold.value,
        "bad": "above" if outcome.threshold.above else "below",
        "first_bad": found.bad,
        "last_good": found.good[-1],
        "undecided": list(found.open),
        "sentence": told,
        "tried": [
            {
                range_.what: trial.candidate.id,
                "about": trial.candidate.about,
                "verdict": trial.verdict,
                "reason": trial.reason,
                **_of_value(trial.value),
                "build_s": round(trial.build_s, 1),
                "runs_s": round(trial.runs_s, 1),
            }
            for trial in outcome.tried
        ],
    }


def _of_value(value: Value | None) -> dict[str, Any]:
    if value is None:
        return {"value": None, "low": None, "high": None, "point": None, "results": None}
    one = value.estimate
    # JSON has no infinity.
    figures = {
        name: figure if math.isfinite(figure) else None
        for name, figure in (("value", one.mean), ("low", one.low), ("high", one.high))
    }
    return {**figures, "point": dict(value.point), "results": str(value.results)}

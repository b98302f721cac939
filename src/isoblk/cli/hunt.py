# SPDX-License-Identifier: GPL-2.0-only
"""isoblk hunt: search for the workload that a scheduler handles worst."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from isoblk.analysis.metrics import Analysis, analyse
from isoblk.campaign.execute import Bench, Job, Submit, execute
from isoblk.cli import on_cluster
from isoblk.cli.help import examples
from isoblk.cli.options import Debug, Jobs, TestedKernel
from isoblk.cli.progress import building, progress_bar
from isoblk.errors import INTERRUPTED, UserError, printable
from isoblk.files import exclusive
from isoblk.hunt.find import OTHER_SEEDS, Written, how_bad, page, summary, with_seed, write
from isoblk.hunt.journal import FORMAT, Begun, Journal
from isoblk.hunt.judge import TROUBLES, Judge, Once
from isoblk.hunt.session import Find, Session, Spent
from isoblk.hunt.space import Space, make_space
from isoblk.hunt.spec import Budget, HuntSpec, load_hunt
from isoblk.kernel import DEFAULT_VERSION, host_library
from isoblk.lab.lab import Lab
from isoblk.paths import hunts_dir
from isoblk.report.tables import plain_or_rich
from isoblk.result.store import Run, read_results, run_dir
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.study.expand import expand
from isoblk.study.load import parse_study

# Wall-clock time after which a run counts as hung; the longest takes seconds.
_TIME_LIMIT_S = 300

app = typer.Typer()


@app.command(
    epilog=examples(
        "isoblk hunt anything --scheduler bfq --runs 500",
        "isoblk hunt my-hunt.toml -j 2 --minutes 60",
    )
)
def hunt(
    file: Annotated[
        Path,
        typer.Argument(metavar="HUNT", help="Hunt file (TOML), or the name of a shipped hunt."),
    ],
    scheduler: Annotated[
        str,
        typer.Option(metavar="NAME", help="Scheduler to hunt.", show_default="set by the hunt"),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Directory for the results.",
            show_default="results/hunt-NAME",
        ),
    ] = None,
    jobs: Jobs = 1,
    runs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Stop after N runs.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="N", min=0, help="Stop after N minutes of CPU time."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Random seed: the same seed gives the same finds.",
            show_default="set by the hunt",
        ),
    ] = None,
    kernel: TestedKernel = DEFAULT_VERSION,
    debug: Debug = False,
    module: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.ko|DIR",
            help="Module of a scheduler that the hunt defines, or its source directory."
            " Building it runs its Makefile with your privileges. May be repeated.",
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:8786|local",
            help="Run on the workers of this Dask cluster; local: on --jobs workers started here.",
        ),
    ] = None,
    sources: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Build isoblk's schedulers from the directory kernel/ of another checkout.",
        ),
    ] = None,
) -> None:
    """Search for the workload that a scheduler handles worst, and shrink it.

    Each find is a study with a claim, its results and a page. The same command resumes an
    interrupted hunt.
    """
    spec = load_hunt(_chosen(file))
    if seed is not None:
        spec = msgspec.structs.replace(spec, seed=seed)
    name = scheduler or spec.scheduler
    if not name:
        raise UserError("no scheduler to hunt", where=str(file), next="add --scheduler NAME")
    if name == "none":
        raise UserError("'none' is the reference of the comparison", next="name another scheduler")
    budget = spec.budget
    if runs is not None or minutes is not None:
        budget = Budget(runs=runs or 0, minutes=minutes or 0.0)
    if not budget.runs and not budget.minutes:
        raise UserError(
            "the hunt has no budget", where=str(file), next="add --runs N or --minutes N"
        )
    order = _Order(
        spec=_for(spec, name),
        scheduler=name,
        budget=budget,
        results=(output or Path("results") / f"hunt-{spec.name}").absolute(),
        jobs=jobs,
        on=on,
    )
    if on is not None:
        on_cluster.check(on, jobs, "uml")
    with ExitStack() as stack:
        with building() as progress:
            lab = stack.enter_context(
                Lab.open(
                    version=kernel,
                    debug=debug,
                    jobs=jobs,
                    time_limit_s=_TIME_LIMIT_S,
                    modules=module or [],
                    sources=sources,
                    progress=progress,
                )
            )
        stack.enter_context(_exclusive(order.results))
        _hunt(order, lab)


@dataclass(frozen=True)
class _Order:
    """The options of the command.

    Attributes:
        spec: the hunt, without objectives that the scheduler does not have.
        scheduler: the scheduler to hunt.
        budget: runs and CPU time after which the hunt stops.
        results: the result directory.
        jobs: number of runs in parallel.
        on: address of the cluster that makes the runs; None: this process.
    """

    spec: HuntSpec
    scheduler: str
    budget: Budget
    results: Path
    jobs: int
    on: str | None

    @property
    def finds(self) -> Path:
        """Directory of the finds."""
        return self.results / self.scheduler


def _chosen(file: Path) -> Path:
    """Return the hunt's file, which may be named by a shipped hunt."""
    shipped = hunts_dir() / f"{file}.toml"
    return shipped if file.name == str(file) and not file.exists() and shipped.is_file() else file


def _for(spec: HuntSpec, scheduler: str) -> HuntSpec:
    """Return the hunt, without objectives about weights if the scheduler has no weights.

    Raises:
        UserError: no objective is left.
    """
    kind = SCHEDULERS.get(scheduler)
    own = spec.study.get("schedulers", {}).get(scheduler, {})
    if kind.weight_files if kind else own.get("weight_file"):
        return spec
    kept = tuple(objective for objective in spec.objective if not objective.weights)
    if not kept:
        raise UserError(
            f"{scheduler} has no weights, and all objectives of the hunt are about weights",
            next="add another objective, or name another scheduler",
        )
    return msgspec.structs.replace(spec, objective=kept)


def _hunt(order: _Order, lab: Lab) -> None:
    console = plain_or_rich()
    space = make_space(order.spec.space, order.spec.study, order.scheduler)
    lab.prepare(order.results)
    written: dict[str, tuple[Find, Written, list[float | None]]] = {}
    journal = Journal(order.results / f"{order.scheduler}.jsonl", _begun(order, lab.bench))
    # A thread for each candidate of a batch, which mostly waits.
    threads = ThreadPoolExecutor(order.spec.round.batch)
    judge = Judge(
        bench=lab.bench,
        results=order.results,
        submit=lab.submit(order.results),
        again=_again(lab, order.results / ".again"),
        objectives=order.spec.objective,
        constraints=order.spec.constraint,
        modules=lab.foreign,
    )
    with progress_bar(console, counted=False) as bar:
        task = bar.add_task(f"{order.spec.name}: {order.scheduler}", total=1.0)

        def say(text: str) -> None:
            bar.console.print(printable(text), soft_wrap=True)

        def on_tried(spent: Spent) -> None:
            bar.update(
                task,
                completed=_part(spent, order.budget),
                description=f"{order.scheduler}: {spent.tried} candidates, {spent.runs} runs,"
                f" {spent.cpu_s / 60:.0f} min, {len(written)} finds",
            )

        def on_find(one: Find) -> None:
            made = write(one, order.spec, space, order.scheduler)
            elsewhere = _keep(order, one, made, lab)
            written[made.name] = (one, made, elsewhere)
            say(f"find: {made.name}: {made.title}")

        try:
            with _submitting(order, judge, space, say) as submit:
                session = Session(
                    order.spec,
                    space,
                    order.scheduler,
                    replace(judge, submit=Once(submit)).of,
                    lambda run_id: shutil.rmtree(
                        run_dir(order.results, run_id), ignore_errors=True
                    ),
                    journal,
                    threads,
                    on_tried,
                    on_find,
                )
                session.run(order.budget)
        except KeyboardInterrupt:
            bar.stop()
            typer.echo("isoblk: interrupted; repeat the command to resume", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            lab.stop()
            threads.shutdown(cancel_futures=True)
    spent = session.spent
    typer.echo(
        f"{spent.tried} candidates, {spent.runs} runs, {spent.cpu_s / 60:.0f} minutes of CPU time:"
        f" {len(written)} finds"
    )
    if written:
        index = order.finds / "finds.md"
        index.write_text(summary(written), encoding="utf-8")
        typer.echo(printable(f"see {index}"))


@contextmanager
def _submitting(
    order: _Order, judge: Judge, space: Space, say: Callable[[str], None]
) -> Iterator[Submit]:
    """Yield the function that submits runs: the judge's own, or that of a cluster."""
    if order.on is None:
        yield judge.submit
        return
    specs = []
    for candidate in space.samples():
        with suppress(UserError):
            expansion = judge.expansion(space.document(candidate, order.scheduler))
            specs += [planned.spec for planned in expansion.runs]
    library = host_library(judge.bench.kernel)
    needs = on_cluster.Needs(judge.bench, library, specs, _TIME_LIMIT_S)
    with on_cluster.cluster(order.on, order.jobs, needs, order.results, say) as cluster:
        cluster.prepare(order.results)
        yield cluster.submit


def _part(spent: Spent, budget: Budget) -> float:
    parts = []
    if budget.runs:
        parts.append(spent.runs / budget.runs)
    if budget.minutes:
        parts.append(spent.cpu_s / 60 / budget.minutes)
    return min(1.0, max(parts))


def _begun(order: _Order, bench: Bench) -> Begun:
    spec = msgspec.structs.replace(order.spec, budget=Budget())
    digest = hashlib.sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()
    return Begun(
        format=FORMAT,
        hunt=digest[:16],
        scheduler=order.scheduler,
        kernel_key=bench.kernel.key,
        modules_key=bench.modules_key,
    )


def _again(lab: Lab, place: Path) -> Submit:
    """Return a function that submits a repeat of a run, in a directory of its own."""

    def make(job: Job) -> Run:
        own = place / job.id
        shutil.rmtree(own, ignore_errors=True)
        (own / "runs").mkdir(parents=True)
        return execute(job, lab.bench, own)

    return lambda job: lab.executor.submit(make, job)


def _keep(order: _Order, one: Find, made: Written, lab: Lab) -> list[float | None]:
    """Write a find's study, results, report and page; return its badness with other seeds.

    Args:
        order: options of the command.
        one: the find.
        made: its study.
        lab: makes its runs.
    """
    # Imported here: figures take a second to import, and not every hunt has finds.
    from isoblk.report.page import write_report  # noqa: PLC0415

    home = order.finds / made.name
    home.mkdir(parents=True, exist_ok=True)
    study_file = home / f"{made.name}.toml"
    page_file = home / f"{made.name}.md"
    kept = page_file.is_file() and study_file.read_text("utf-8") == made.text
    elsewhere = []
    for seed in () if one.kind in TROUBLES else OTHER_SEEDS:
        results = home / "seeds" / str(seed)
        again = _run(with_seed(made, seed), study_file, lab, results)
        elsewhere.append(how_bad(one, order.spec, order.scheduler, again))
    if kept:
        return elsewhere
    study_file.write_text(made.text, encoding="utf-8")
    analysis = _run(made.text, study_file, lab, home / "results")
    write_report(analysis)
    figures = sorted((home / "results" / "figures").glob("*.svg"))
    names = [str(path.relative_to(home)) for path in figures[:1]]
    page_file.write_text(page(one, made, analysis, names, elsewhere), encoding="utf-8")
    return elsewhere


def _run(text: str, file: Path, lab: Lab, results: Path) -> Analysis:
    """Make the missing runs of a find's study, and analyse all. file: named in errors."""
    expansion = expand(parse_study(text, str(file)))
    lab.make(expansion, text, results)
    return analyse(read_results(results))


def _exclusive(results: Path) -> AbstractContextManager[None]:
    """Create the result directory, and lock it against other hunts."""
    return exclusive(
        results,
        lambda: (results / "runs").mkdir(parents=True, exist_ok=True),
        cannot="cannot write",
        holder="another hunt",
    )

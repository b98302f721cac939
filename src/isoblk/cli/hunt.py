# SPDX-License-Identifier: GPL-2.0-only
"""isoblk hunt: the workload that a scheduler handles worst."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from isoblk.analysis.metrics import Analysis, analyse
from isoblk.campaign.execute import Bench, Job, Submit, execute, here, make_bench
from isoblk.campaign.study import run_study
from isoblk.campaign.trial import try_out
from isoblk.cli import on_cluster
from isoblk.cli.help import examples
from isoblk.cli.progress import building, progress_bar
from isoblk.errors import INTERRUPTED, UserError, printable
from isoblk.files import exclusive
from isoblk.hunt.find import OTHER_SEEDS, Written, how_bad, page, summary, with_seed, write
from isoblk.hunt.journal import FORMAT, Begun, Journal
from isoblk.hunt.judge import TROUBLES, Judge, Once
from isoblk.hunt.session import Find, Session, Spent
from isoblk.hunt.space import Space, make_space
from isoblk.hunt.spec import Budget, HuntSpec, load_hunt
from isoblk.kernel import DEFAULT_VERSION, find, hold, host_library
from isoblk.kernel.others import find_modules
from isoblk.machine.uml import Uml
from isoblk.paths import hunts_dir
from isoblk.report.tables import plain_or_rich
from isoblk.result.store import Run, read_results, run_dir
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.study.expand import expand
from isoblk.study.load import parse_study

# Wall-clock seconds until a run counts as hung; the longest take some.
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
        typer.Argument(
            metavar="HUNT", help="Hunt (TOML), or the name of one that comes with isoblk."
        ),
    ],
    scheduler: Annotated[
        str, typer.Option(help="The scheduler to hunt.", show_default="the hunt's")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Directory.", show_default="results/hunt-NAME"),
    ] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Machines side by side.")] = 1,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Look until so many runs were made.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Look until runs have taken so many minutes of CPU time."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed, the same finds.", show_default="the hunt's")
    ] = None,
    kernel: Annotated[
        str, typer.Option(help="Version of the kernel under test.")
    ] = DEFAULT_VERSION,
    debug: Annotated[
        bool, typer.Option("--debug", help="Use the debug kernel (KASAN, lockdep).")
    ] = False,
    module: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.ko|DIR",
            help="A module of the hunt's own schedulers, or its sources. It runs as you.",
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:8786|local",
            help="Have the runs made by the workers of this Dask scheduler.",
        ),
    ] = None,
    sources: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Hunt isoblk's schedulers as this directory kernel/ of another checkout has them.",
        ),
    ] = None,
) -> None:
    """Look for the workload that a scheduler handles worst, and shrink it.

    Each find is a study with a claim, its results and a page. A hunt that was ended goes on.
    """
    spec = load_hunt(_chosen(file))
    if seed is not None:
        spec = msgspec.structs.replace(spec, seed=seed)
    name = scheduler or spec.scheduler
    if not name:
        raise UserError("no scheduler to hunt", where=str(file), next="add --scheduler NAME")
    if name == "none":
        raise UserError("none is what schedulers are compared with", next="name a scheduler")
    budget = spec.budget
    if runs is not None or minutes is not None:
        budget = Budget(runs=runs or 0, minutes=minutes or 0.0)
    if not budget.runs and not budget.minutes:
        raise UserError("no end to this hunt", where=str(file), next="add --runs N or --minutes N")
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
    chosen = find(kernel, debug)
    with hold(chosen), _exclusive(order.results):
        machine = Uml(chosen, host_library(chosen), time_limit_s=_TIME_LIMIT_S)
        with building() as progress:
            modules = find_modules(chosen, module, progress) if module else {}
            bench = make_bench(machine, chosen, modules, sources, progress)
        _hunt(order, bench, modules, machine)


@dataclass(frozen=True)
class _Order:
    """What the command line asks for.

    Attributes:
        spec: the hunt, with those objectives that the scheduler has.
        scheduler: to hunt.
        budget: when to stop.
        results: where all goes.
        jobs: machines side by side.
        on: the cluster that makes runs, if not this process.
    """

    spec: HuntSpec
    scheduler: str
    budget: Budget
    results: Path
    jobs: int
    on: str | None

    @property
    def finds(self) -> Path:
        """Where the finds go."""
        return self.results / self.scheduler


def _chosen(file: Path) -> Path:
    """The file, or that of the name."""
    shipped = hunts_dir() / f"{file}.toml"
    return shipped if file.name == str(file) and not file.exists() and shipped.is_file() else file


def _for(spec: HuntSpec, scheduler: str) -> HuntSpec:
    """The hunt without what a scheduler that knows no weights does not promise."""
    kind = SCHEDULERS.get(scheduler)
    own = spec.study.get("schedulers", {}).get(scheduler, {})
    if kind.weight_files if kind else own.get("weight_file"):
        return spec
    kept = tuple(one for one in spec.objective if not one.weights)
    if not kept:
        raise UserError(f"{scheduler} knows no weights, and the hunt is for nothing else")
    return msgspec.structs.replace(spec, objective=kept)


def _hunt(order: _Order, bench: Bench, modules: dict[str, Path], machine: Uml) -> None:
    console = plain_or_rich()
    space = make_space(order.spec.space, order.spec.study, order.scheduler)
    try_out(bench, order.results)
    written: dict[str, tuple[Find, Written, list[float | None]]] = {}
    journal = Journal(order.results / f"{order.scheduler}.jsonl", _begun(order, bench))
    # One thread for each candidate of a batch, which waits, and one for each machine.
    machines = ThreadPoolExecutor(order.jobs)
    threads = ThreadPoolExecutor(order.spec.round.batch)
    judge = Judge(
        bench=bench,
        results=order.results,
        submit=here(machines, bench, order.results),
        again=_again(machines, bench, order.results / ".again"),
        objectives=order.spec.objective,
        constraints=order.spec.constraint,
        modules=modules,
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
            elsewhere = _keep(
                order, one, made, bench, lambda results: here(machines, bench, results)
            )
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
            typer.echo("isoblk: interrupted; the same command goes on", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            machine.stop()
            machines.shutdown(cancel_futures=True)
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
    """What has runs made: the judge's own way, or a cluster."""
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


def _again(machines: Executor, bench: Bench, place: Path) -> Submit:
    """What makes a run anew, in a directory of its own."""

    def make(job: Job) -> Run:
        own = place / job.id
        shutil.rmtree(own, ignore_errors=True)
        (own / "runs").mkdir(parents=True)
        return execute(job, bench, own)

    return lambda job: machines.submit(make, job)


def _keep(
    order: _Order, one: Find, made: Written, bench: Bench, submit: Callable[[Path], Submit]
) -> list[float | None]:
    """Write a find's study, results, report and page. Returns how bad it is with other seeds.

    Args:
        submit: for a directory, what has runs made into it.
    """
    # Drawing takes a second to import, and not every hunt finds something.
    from isoblk.report.page import write_report  # noqa: PLC0415

    home = order.finds / made.name
    home.mkdir(parents=True, exist_ok=True)
    study_file = home / f"{made.name}.toml"
    page_file = home / f"{made.name}.md"
    kept = page_file.is_file() and study_file.read_text("utf-8") == made.text
    elsewhere = []
    for seed in () if one.kind in TROUBLES else OTHER_SEEDS:
        results = home / "seeds" / str(seed)
        again = _run(with_seed(made, seed), study_file, bench, results, submit)
        elsewhere.append(how_bad(one, order.spec, order.scheduler, again))
    if kept:
        return elsewhere
    study_file.write_text(made.text, encoding="utf-8")
    analysis = _run(made.text, study_file, bench, home / "results", submit)
    write_report(analysis)
    figures = sorted((home / "results" / "figures").glob("*.svg"))
    names = [str(path.relative_to(home)) for path in figures[:1]]
    page_file.write_text(page(one, made, analysis, names, elsewhere), encoding="utf-8")
    return elsewhere


def _run(
    text: str, file: Path, bench: Bench, results: Path, submit: Callable[[Path], Submit]
) -> Analysis:
    """The runs of a find's study, which are made unless they are there. file: what errors name."""
    expansion = expand(parse_study(text, str(file)))
    run_study(expansion, text, bench, results, submit(results), lambda index, run: None)
    return analyse(read_results(results))


def _exclusive(results: Path) -> AbstractContextManager[None]:
    """Make the directory, and keep other hunts out of it."""
    return exclusive(
        results,
        lambda: (results / "runs").mkdir(parents=True, exist_ok=True),
        cannot="cannot write",
        holder="another hunt",
    )

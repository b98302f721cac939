# SPDX-License-Identifier: GPL-2.0-only
"""isoblk run: run a study on a machine, show the progress and a summary."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from isoblk.analysis.claims import judge_all
from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import Bench, Submit, make_host_bench
from isoblk.campaign.installed import find_programs
from isoblk.campaign.others import others_wanted, with_modules
from isoblk.campaign.study import dry_run, run_study
from isoblk.cli import completing, on_cluster
from isoblk.cli import host as cli_host
from isoblk.cli.help import examples
from isoblk.cli.options import Debug, Jobs, TestedKernel
from isoblk.cli.progress import building, progress_bar
from isoblk.errors import INTERRUPTED, RunError, UserError, printable
from isoblk.kernel import DEFAULT_VERSION, host_library
from isoblk.lab.lab import TIME_LIMIT_S, Lab, expand_for, require_valid, tier_of
from isoblk.machine import host, system
from isoblk.machine import running as running_tenants
from isoblk.machine.trusted import refuse_shared_results
from isoblk.machine.uml import SHARED_MEMORY
from isoblk.report.tables import plain_or_rich, summary_table
from isoblk.result import earlier
from isoblk.result.store import ResultSet, Run, read_results
from isoblk.run.tier import ICOUNT, ICOUNT_CPUS_MAX, Tier
from isoblk.study.check import check_study
from isoblk.study.expand import expand
from isoblk.study.load import load_study
from isoblk.study.model import Expansion, Study
from isoblk.study.notes import notes
from isoblk.study.onhost import on_host
from isoblk.study.point import runs_already
from isoblk.study.shipped import choose
from isoblk.study.text import Source

app = typer.Typer()


@app.command(
    epilog=examples(
        "isoblk run quick",
        "isoblk run weights -j 2",
        "isoblk run weights --on tcp://10.0.0.1:8786",
        "isoblk run my.toml --dry-run",
        "isoblk run host-weights --machine host --loop 1g",
        "isoblk run my.toml -o results/second --check-claims",
    )
)
def run(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY",
            help="Study file (TOML), or the name of a shipped study.",
            autocompletion=completing.studies,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Result directory.",
            show_default="results/NAME, for host results/NAME-host",
        ),
    ] = None,
    jobs: Jobs = 1,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:8786|local",
            help="Run on the workers of this Dask cluster; local: on --jobs workers started here.",
        ),
    ] = None,
    machine_name: Annotated[
        Literal["uml", "smp", "qemu", "icount", "host"],
        typer.Option(
            "--machine",
            help="uml: virtual time, exact. smp: four CPUs, real time."
            " qemu: four emulated CPUs, real time."
            " icount: emulated, 1 ns for an instruction, exact."
            " host: this machine.",
        ),
    ] = "uml",
    cpus: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=ICOUNT_CPUS_MAX,
            metavar="N",
            help="icount: number of CPUs.",
            show_default=str(ICOUNT.cpus),
        ),
    ] = None,
    kernel: TestedKernel = DEFAULT_VERSION,
    debug: Debug = False,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=1, help="Wall-clock time after which a run counts as hung."
        ),
    ] = TIME_LIMIT_S,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Print the scripts without running them.")
    ] = False,
    check_claims: Annotated[
        bool, typer.Option("--check-claims", help="Exit 1 unless every claim holds.")
    ] = False,
    module: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.ko|DIR",
            help="Module of a scheduler that the study defines, or its source directory."
            " Building it runs its Makefile with your privileges. May be repeated.",
        ),
    ] = None,
    sources: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Build isoblk's schedulers from the directory kernel/ of another checkout.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="/dev/X", help="host: disk to run on. Its contents are lost."),
    ] = None,
    loop: Annotated[
        str | None, typer.Option(metavar="SIZE", help="host: run on a loop device of this size.")
    ] = None,
    loop_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="host: directory of the loop device's file.")
    ] = SHARED_MEMORY,
    wipe: Annotated[
        str | None,
        typer.Option(metavar="/dev/X", help="host: allow overwriting existing data on the disk."),
    ] = None,
) -> None:
    """Run a study: every point of its matrix, on the kernel under test.

    The qemu and icount machines boot Debian's kernel, with --debug the lab's. The smp machine
    boots the newest kernel built for it. For the host machine see docs/guides/host.md.

    Runs that the result directory already holds are not repeated.
    """
    chosen = choose(study)
    if chosen.note:
        typer.echo(f"note: {printable(chosen.note)}", err=True)
    study = chosen.path
    parsed, source = load_study(study)
    on_host = machine_name == "host"
    order = _Order(
        study=parsed,
        file=study,
        source=source,
        results=output or Path("results") / (f"{parsed.name}-host" if on_host else parsed.name),
        jobs=jobs,
        timeout_s=timeout,
        dry=dry,
        check_claims=check_claims,
    )
    if check_claims and not parsed.claim:
        raise UserError("has no claims to check", where=str(study), next="add a [[claim]]")
    if cpus is not None and machine_name != ICOUNT.name:
        raise UserError(
            f"the {machine_name} machine has a fixed number of CPUs",
            where="--cpus",
            next="add --machine icount, or remove --cpus",
        )
    if on is not None:
        on_cluster.check(on, jobs, machine_name)
    if on_host:
        if jobs != 1 or debug or kernel != DEFAULT_VERSION or module or sources:
            raise UserError(
                "the host machine has one disk and its own kernel",
                next="remove --jobs, --kernel, --debug, --module and --sources",
            )
        _run_on_host(order, cli_host.target(device, loop, loop_dir), wipe)
        return
    if device or loop or wipe:
        raise UserError(
            "--device, --loop and --wipe are for the host machine", next="add --machine host"
        )
    if runs_already(parsed):
        raise UserError(
            "the study has a running tenant, which is on this machine", next="add --machine host"
        )
    _run_in_guests(order, machine_name, cpus, kernel, debug, module or [], sources, on)


@dataclass(frozen=True)
class _Order:
    """The options that all machines share.

    Attributes:
        study: the checked study.
        file: the study's file.
        source: the file's text.
        results: the result directory.
        jobs: number of runs in parallel.
        timeout_s: wall-clock time after which a run counts as hung.
        dry: print the scripts without running them.
        check_claims: exit with status 1 unless every claim holds.
    """

    study: Study
    file: Path
    source: str
    results: Path
    jobs: int
    timeout_s: float
    dry: bool
    check_claims: bool


@dataclass(frozen=True)
class _Maker:
    """The arguments `prepare` and `submit` of run_study()."""

    prepare: Callable[[Path], object]
    submit: Submit


# Makes a context that yields the maker of runs and stops unfinished runs on exit. The argument
# prints a line for the user.
_Makers = Callable[[Callable[[str], None]], AbstractContextManager[_Maker]]


def _run_in_guests(
    order: _Order,
    machine: str,
    cpus: int | None,
    version: str,
    debug: bool,
    modules: list[Path],
    sources: Path | None,
    on: str | None,
) -> None:
    """Make the runs on a machine that boots a kernel of its own.

    Args:
        order: options of the command.
        machine: its name.
        cpus: of the icount machine; None: its default.
        version: of the kernel.
        debug: boot the debug kernel.
        modules: of schedulers that the study defines.
        sources: of isoblk's schedulers; None: the installed ones.
        on: the cluster that makes the runs; None: this process.
    """
    tier = tier_of(machine, cpus)
    expansion = expand_for(order.study, tier)
    if order.dry:
        _print_scripts(expansion, tier)
        return
    if modules and not others_wanted(expansion):
        raise UserError(
            "the study defines no scheduler with a module",
            where=str(modules[0]),
            next="name the module in [schedulers.NAME], or remove --module",
        )
    expansion = find_programs(expansion)
    for note in notes(planned.spec for planned in expansion.runs):
        typer.echo(f"note: {note}", err=True)
    with ExitStack() as stack:
        with building() as progress:
            lab = stack.enter_context(
                Lab.open(
                    machine,
                    version=version,
                    debug=debug,
                    cpus=cpus,
                    jobs=order.jobs,
                    time_limit_s=order.timeout_s,
                    modules=modules,
                    sources=sources,
                    progress=progress,
                )
            )
        expansion, _ = with_modules(expansion, lab.foreign)
        makers: _Makers
        if on is None:
            maker = _Maker(lab.prepare, lab.submit(order.results))
            makers = partial(_ready, maker)
        else:
            makers = _on_cluster(order, lab.bench, host_library(lab.bench.kernel), expansion, on)
        _campaign(order, expansion, lab.bench, makers)


def _run_on_host(order: _Order, disk: str | host.Loop, wipe: str | None) -> None:
    """Make the runs on this machine. disk: a path, or the loop device to create."""
    source = Source.of(str(order.file), order.source)
    study, running = running_tenants.found(order.study, *system.io_hierarchy())
    try:
        with host.session(
            disk,
            wipe,
            mounts=study.filesystem is not None,
            running=running,
            time_limit_s=order.timeout_s,
        ) as ready:
            adapted, told = on_host(study, source, ready.device, ready.cgroup, ready.elevators)
            check_study(adapted, source)
            expansion = expand(adapted)
            if order.dry:
                _print_scripts(expansion, ready.machine.tier)
                return
            expansion = find_programs(expansion)
            told += notes(planned.spec for planned in expansion.runs)
            if ready.signatures:
                told.append(f"{disk}: wiped: {', '.join(ready.signatures)}")
            for note in told:
                typer.echo(f"note: {note}", err=True)
            ready.wipe()
            with Lab.of(make_host_bench(ready), {}, jobs=order.jobs) as lab:
                maker = _Maker(refuse_shared_results, lab.submit(order.results))
                _campaign(order, expansion, lab.bench, partial(_ready, maker))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _print_scripts(expansion: Expansion, tier: Tier) -> None:
    for text in dry_run(expansion, tier):
        typer.echo(text)


def _ready(maker: _Maker, say: Callable[[str], None]) -> AbstractContextManager[_Maker]:
    return nullcontext(maker)


def _on_cluster(
    order: _Order, bench: Bench, library: Path, expansion: Expansion, on: str
) -> _Makers:
    """Return a maker of runs on a cluster's workers.

    Args:
        order: options of the command.
        bench: kernel and machine.
        library: the preloaded library.
        expansion: the study's runs.
        on: address of the cluster.
    """

    @contextmanager
    def makers(say: Callable[[str], None]) -> Iterator[_Maker]:
        specs = [planned.spec for planned in expansion.runs]
        needs = on_cluster.Needs(bench, library, specs, order.timeout_s)
        with on_cluster.cluster(on, order.jobs, needs, order.results.absolute(), say) as cluster:
            yield _Maker(cluster.prepare, cluster.submit)

    return makers


def _campaign(order: _Order, expansion: Expansion, bench: Bench, makers: _Makers) -> None:
    """Make the runs, show their progress and a summary.

    Raises:
        RunError: runs failed or are invalid, or claims are checked and do not hold.
    """
    console = plain_or_rich()
    with progress_bar(console) as bar:
        task = bar.add_task(expansion.study.name, total=len(expansion.runs))

        def on_end(index: int, ended: Run | None) -> None:
            bar.advance(task)
            if ended is None or ended.record.status == "invalid":
                point = expansion.runs[index].spec
                what = "failed" if ended is None else "invalid: " + ended.record.reasons[0]
                place = " ".join((point.kind, *point.point.values()))
                told = printable(f"{place}: {what}")
                bar.console.print(told, style="red")

        def say(text: str) -> None:
            bar.console.print(printable(f"note: {text}"), soft_wrap=True)

        try:
            with makers(say) as maker:
                run_study(
                    expansion,
                    order.source,
                    bench,
                    order.results.absolute(),
                    maker.submit,
                    on_end,
                    maker.prepare,
                )
        except KeyboardInterrupt:
            bar.stop()
            typer.echo(
                "isoblk: interrupted; finished runs are kept, repeat the command to resume",
                err=True,
            )
            raise typer.Exit(INTERRUPTED) from None
    results = order.results
    finished = read_results(results)
    if any(one is not None for one in finished.runs):
        console.print(summary_table(finished))
        text = f"results in {results}; next: isoblk report {results}"
        console.print(printable(text))
    for note in earlier.notes(results):
        typer.echo(f"note: {note}", err=True)
    require_valid(finished)
    if order.check_claims:
        require_claims(finished)


def require_claims(finished: ResultSet) -> None:
    """Raise RunError if a claim fails or is undecided."""
    judged = judge_all(analyse(finished))
    texts = {
        verdict: [
            repr(judgement.claim.text) + (f" ({judgement.reason})" if judgement.reason else "")
            for judgement in judged
            if judgement.verdict == verdict
        ]
        for verdict in ("fails", "undecided")
    }
    if told := [f"{verdict}: {', '.join(claims)}" for verdict, claims in texts.items() if claims]:
        count = sum(map(len, texts.values()))
        raise RunError(
            f"{count} of {len(judged)} claims do not hold; {'; '.join(told)}",
            where=str(finished.dir),
            next=f"see: isoblk show {finished.dir}",
        )

# SPDX-License-Identifier: GPL-2.0-only
"""The isoblk command: parse, call, print."""

import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from typer.exceptions import TyperException

from isoblk import __version__
from isoblk.analysis.claims import judge_all
from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import Bench, make_bench, make_host_bench
from isoblk.campaign.installed import find_programs
from isoblk.campaign.study import dry_run, run_study
from isoblk.campaign.trial import try_out
from isoblk.cli import cache as cli_cache
from isoblk.cli import capture as cli_capture
from isoblk.cli import device as cli_device
from isoblk.cli import host as cli_host
from isoblk.cli import kernel as cli_kernel
from isoblk.cli import report as cli_report
from isoblk.cli import study as cli_study
from isoblk.cli import trace as cli_trace
from isoblk.cli.doctor import doctor
from isoblk.cli.help import examples
from isoblk.errors import IsoblkError, RunError, UserError, printable
from isoblk.kernel import DEFAULT_VERSION, Kernel, find, hold, host_library, stock
from isoblk.machine import host, system
from isoblk.machine import running as running_tenants
from isoblk.machine.qemu import Qemu
from isoblk.machine.smp import Smp
from isoblk.machine.trusted import refuse_shared_results
from isoblk.machine.uml import SHARED_MEMORY, Uml
from isoblk.plan.plan import check_queues
from isoblk.report.tables import plain_or_rich, summary_table
from isoblk.result import earlier
from isoblk.result.store import ResultSet, Run, read_results
from isoblk.run.tier import QEMU, SMP, UML
from isoblk.study.check import check_study
from isoblk.study.expand import expand
from isoblk.study.load import load_study
from isoblk.study.model import Expansion, Study
from isoblk.study.notes import notes
from isoblk.study.onhost import on_host
from isoblk.study.point import runs_already
from isoblk.study.text import Source

# A shell's status for a program that an interrupt ended.
_INTERRUPTED = 130

app = typer.Typer(
    help="Divide one fast disk among containers by weight, and prove it.",
    epilog=examples(
        "isoblk doctor",
        "isoblk run studies/quick.toml",
        "isoblk report results/quick",
        "isoblk --install-completion",
    ),
    # The commands below inherit them.
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(cli_kernel.app, name="kernel")
app.add_typer(cli_study.app, name="study")
app.add_typer(cli_trace.app, name="trace")
app.add_typer(cli_device.app, name="device")
app.add_typer(cli_host.app, name="host")
app.command(
    "capture",
    epilog=examples(
        "isoblk capture /dev/nvme0n1 -o day.isotrace --seconds 60",
        "isoblk capture /dev/nvme0n1 -o db.isotrace -- ./my-load.sh",
    ),
)(cli_capture.command)
app.add_typer(cli_cache.app, name="cache")
app.command()(doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isoblk {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(
    epilog=examples(
        "isoblk run studies/weights.toml -j 2",
        "isoblk run studies/weights.toml --dry-run",
        "isoblk run studies/host-weights.toml --machine host --loop 1g",
        "isoblk run my.toml -o results/second --check-claims",
    )
)
def run(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Study file (TOML).")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Result directory.", show_default="results/NAME; NAME-host"
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Machines side by side.")] = 1,
    machine_name: Annotated[
        Literal["uml", "smp", "qemu", "host"],
        typer.Option(
            "--machine",
            help="uml: virtual time, exact. smp: four processors, real time."
            " qemu: the same, emulated. host: this machine.",
        ),
    ] = "uml",
    kernel: Annotated[
        str, typer.Option(help="Version of the kernel under test.")
    ] = DEFAULT_VERSION,
    debug: Annotated[
        bool, typer.Option("--debug", help="Use the debug kernel (KASAN, lockdep).")
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=1, help="Wall-clock seconds until a run counts as hung.")
    ] = 600,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print the scripts; run none.")] = False,
    check_claims: Annotated[
        bool, typer.Option("--check-claims", help="Exit 1 unless every claim holds.")
    ] = False,
    device: Annotated[
        str | None, typer.Option(metavar="/dev/X", help="host: the disk. Its contents are lost.")
    ] = None,
    loop: Annotated[
        str | None, typer.Option(metavar="SIZE", help="host: a loop device instead.")
    ] = None,
    loop_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="host: where the loop device's file lies.")
    ] = SHARED_MEMORY,
    wipe: Annotated[
        str | None,
        typer.Option(metavar="/dev/X", help="host: what the disk holds may be lost."),
    ] = None,
) -> None:
    """Run a study: every point of its matrix, on the kernel, in virtual time.

    On the qemu machine the kernel is Debian's own, unless --debug asks for the lab's; on the smp
    machine the newest that was built for it. The host machine is this one: docs/guides/host.md.

    Runs that the result directory already holds are not repeated.
    """
    parsed, source = load_study(study)
    if check_claims and not parsed.claim:
        raise UserError("has no claims to check", where=str(study), next="add a [[claim]]")
    if machine_name == "host":
        if jobs != 1 or debug or kernel != DEFAULT_VERSION:
            raise UserError(
                "the host machine has one disk and its own kernel",
                next="leave out --jobs, --kernel and --debug",
            )
        chosen_disk = cli_host.target(device, loop, loop_dir)
        results = output or Path("results") / f"{parsed.name}-host"
        _run_on_host(
            parsed, (str(study), source), chosen_disk, wipe, timeout, dry, results, check_claims
        )
        return
    if device or loop or wipe:
        raise UserError("names a disk of this machine", next="add --machine host")
    if runs_already(parsed):
        raise UserError("a tenant is running on this machine", next="add --machine host")
    expansion = expand(parsed)
    tier = {"uml": UML, "smp": SMP, "qemu": QEMU}[machine_name]
    check_queues((planned.spec for planned in expansion.runs), tier)
    if dry:
        for text in dry_run(expansion, tier):
            typer.echo(text)
        return
    expansion = find_programs(expansion)
    for note in notes(planned.spec for planned in expansion.runs):
        typer.echo(f"note: {note}", err=True)
    chosen = _kernel_for(machine_name, kernel, debug)
    results = output or Path("results") / parsed.name
    with hold(chosen):
        machine: Uml | Smp | Qemu
        if machine_name == "qemu":
            machine = Qemu(chosen, time_limit_s=timeout)
        elif machine_name == "smp":
            machine = Smp(chosen, host_library(chosen), time_limit_s=timeout)
        else:
            machine = Uml(chosen, host_library(chosen), time_limit_s=timeout)
        bench = make_bench(machine, chosen)
        prepare = partial(try_out, bench) if isinstance(machine, Uml) else lambda directory: None
        _campaign(expansion, source, bench, machine, results, jobs, check_claims, prepare)


def _run_on_host(
    study: Study,
    file: tuple[str, str],
    what: str | host.Loop,
    wipe: str | None,
    timeout: float,
    dry: bool,
    results: Path,
    check_claims: bool,
) -> None:
    """file: the study's name and text."""
    source = Source.of(*file)
    study, running = running_tenants.found(study, *system.io_hierarchy())
    try:
        with host.session(
            what,
            wipe,
            mounts=study.filesystem is not None,
            running=running,
            time_limit_s=timeout,
        ) as ready:
            adapted, told = on_host(study, source, ready.device, ready.cgroup, ready.elevators)
            check_study(adapted, source)
            expansion = expand(adapted)
            if dry:
                for text in dry_run(expansion, ready.machine.tier):
                    typer.echo(text)
                return
            expansion = find_programs(expansion)
            told += notes(planned.spec for planned in expansion.runs)
            if ready.signatures:
                told.append(f"{what}: wiped: {', '.join(ready.signatures)}")
            for note in told:
                typer.echo(f"note: {note}", err=True)
            ready.wipe()
            bench = make_host_bench(ready)
            _campaign(
                expansion, file[1], bench, ready.machine, results, 1, check_claims,
                refuse_shared_results,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None


def _campaign(
    expansion: Expansion,
    source: str,
    bench: Bench,
    machine: Uml | Smp | Qemu | host.Host,
    results: Path,
    jobs: int,
    check_claims: bool,
    prepare: Callable[[Path], object] = lambda directory: None,
) -> None:
    """Make the runs, show their progress, and what came of them.

    Args:
        prepare: as of run_study().

    Raises:
        RunError: runs failed or are invalid, or, if they are to be checked, claims do not hold.
    """
    console = plain_or_rich()
    executor = ThreadPoolExecutor(max_workers=jobs)
    with _progress_bar(console) as bar:
        task = bar.add_task(expansion.study.name, total=len(expansion.runs))

        def on_end(index: int, ended: Run | None) -> None:
            bar.advance(task)
            if ended is None or ended.record.status == "invalid":
                point = expansion.runs[index].spec
                what = "failed" if ended is None else "invalid: " + ended.record.reasons[0]
                place = " ".join((point.kind, *point.point.values()))
                told = printable(f"{place}: {what}")
                bar.console.print(told, style="red", markup=False, highlight=False)

        try:
            record = run_study(
                expansion, source, bench, results.absolute(), executor, on_end, prepare
            )
        except KeyboardInterrupt:
            bar.stop()
            typer.echo(
                "isoblk: interrupted; finished runs are kept, the same command goes on", err=True
            )
            raise typer.Exit(_INTERRUPTED) from None
        finally:
            machine.stop()
            executor.shutdown(cancel_futures=True)
    finished = read_results(results)
    if any(one is not None for one in finished.runs):
        console.print(summary_table(finished))
        text = f"results in {results}; next: isoblk report {results}"
        console.print(printable(text), markup=False, highlight=False)
    for note in earlier.notes(results):
        typer.echo(f"note: {note}", err=True)
    if failures := [one.failure for one in record.runs if one.failure]:
        raise RunError(
            f"{len(failures)} of {len(record.runs)} runs failed; the first: {failures[0]}"
        )
    if invalid := [one for one in finished.runs if one and one.record.status == "invalid"]:
        raise RunError(
            f"{len(invalid)} of {len(record.runs)} runs are invalid; the first:"
            f" {invalid[0].record.reasons[0]}"
        )
    if check_claims:
        require_claims(finished)


def require_claims(finished: ResultSet) -> None:
    """Raises RunError: a claim fails, or the runs do not decide it."""
    judged = judge_all(analyse(finished))
    texts = {
        verdict: [repr(one.claim.text) for one in judged if one.verdict == verdict]
        for verdict in ("fails", "undecided")
    }
    if told := [f"{verdict}: {', '.join(claims)}" for verdict, claims in texts.items() if claims]:
        count = sum(map(len, texts.values()))
        raise RunError(
            f"{count} of {len(judged)} claims do not hold; {'; '.join(told)}",
            where=str(finished.dir),
            next=f"see: isoblk show {finished.dir}",
        )


def _kernel_for(machine: str, version: str, debug: bool) -> Kernel:
    """The kernel that a machine boots."""
    if machine == "qemu":
        return pc_kernel(version, debug)
    if machine == "smp":
        # The default version has no User Mode Linux for several processors.
        return find(None if version == DEFAULT_VERSION else version, debug, "um-smp")
    return find(version, debug)


def pc_kernel(version: str, debug: bool) -> Kernel:
    """Debian's own kernel, else the lab's of that version; for --debug always the lab's."""
    if debug:
        return find(version, debug=True, arch="x86_64")
    try:
        return stock.find(version)
    except UserError as missing:
        try:
            return find(version, arch="x86_64")
        except UserError:
            raise missing from None


app.command(epilog=examples("isoblk show results/weights"))(cli_report.show)
app.command(
    epilog=examples(
        "isoblk report results/weights", "isoblk report results/my-host --beside results/my"
    )
)(cli_report.report)
app.command(epilog=examples("isoblk compare results/before results/after"))(cli_report.compare)


def _progress_bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def main() -> None:
    """Entry point: errors become one line and an exit status."""
    # Whoever ends us wants the machines ended too, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    # Polars has put a handler of its own before Python's, after which a system call goes on: who
    # waits for a run would notice Ctrl-C at the run's end.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        # Not standalone: a wrong option shall be one line as well, not a box of four.
        status = app(args=sys.argv[1:] or ["--help"], prog_name="isoblk", standalone_mode=False)
    except TyperException as error:
        print(f"isoblk: {_usage_error(error)}", file=sys.stderr)
        sys.exit(UserError.exit_status)
    except IsoblkError as error:
        print(f"isoblk: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    except BrokenPipeError:
        # The reader has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        # The machine's trouble (a full disk, say) where nothing closer knew what to say of it.
        where = f"{error.filename}: " if error.filename else ""
        print(f"isoblk: {where}{error.strerror}", file=sys.stderr)
        sys.exit(RunError.exit_status)
    sys.exit(status if isinstance(status, int) else 0)


def _usage_error(error: TyperException) -> UserError:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "isoblk"
    return UserError(error.format_message().rstrip("."), next=f"see: {command} --help")

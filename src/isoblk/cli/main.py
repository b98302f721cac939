# SPDX-License-Identifier: GPL-2.0-only
"""The isoblk command: parse, call, print."""

import os
import signal
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from isoblk import __version__
from isoblk.cli import cache as cli_cache
from isoblk.cli import capture as cli_capture
from isoblk.cli import device as cli_device
from isoblk.cli import host as cli_host
from isoblk.cli import kernel as cli_kernel
from isoblk.cli import report as cli_report
from isoblk.cli import run as cli_run
from isoblk.cli import study as cli_study
from isoblk.cli import trace as cli_trace
from isoblk.cli.doctor import doctor
from isoblk.cli.help import examples
from isoblk.errors import IsoblkError, RunError, UserError

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


app.command(
    epilog=examples(
        "isoblk run studies/weights.toml -j 2",
        "isoblk run studies/weights.toml --dry-run",
        "isoblk run studies/host-weights.toml --machine host --loop 1g",
        "isoblk run my.toml -o results/second --check-claims",
    )
)(cli_run.run)
app.command(epilog=examples("isoblk show results/weights"))(cli_report.show)
app.command(
    epilog=examples(
        "isoblk report results/weights", "isoblk report results/my-host --beside results/my"
    )
)(cli_report.report)
app.command(epilog=examples("isoblk compare results/before results/after"))(cli_report.compare)


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

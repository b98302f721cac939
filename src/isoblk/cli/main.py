# SPDX-License-Identifier: GPL-2.0-only
"""The isoblk command: parse, call, print."""

import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from isoblk import __version__
from isoblk.cli.completing import join_assignments, mend_zsh
from isoblk.cli.help import examples
from isoblk.cli.lab import has_lab
from isoblk.cli.later import Later
from isoblk.errors import IsoblkError, RunError, UserError

# Commands by name, with the first sentence of their help. A command's module, isoblk.cli.NAME, has
# it as `app` and is loaded when the command is called.
COMMANDS: Final = {
    "doctor": "Check that everything isoblk needs is installed.",
    "kernel": "Build kernels for the lab, and modules for an installed kernel.",
    "study": "List, check, describe and import studies.",
    "run": "Run a study: every point of its matrix, on the kernel under test.",
    "show": "Print the runs and claims of a result directory as tables.",
    "report": "Write a result directory's report: one page that opens offline, and figures.",
    "compare": "Compare the inputs and the metrics of two result directories.",
    "hunt": "Search for the workload that a scheduler handles worst, and shrink it.",
    "bisect": "Find the version of the kernel, or of isoblk's schedulers, that changed a metric.",
    "trace": "Describe, import, export, cut and make traces of block I/O.",
    "device": "List, check and make device presets.",
    "cache": "Cache a slow disk of this machine on an SSD, by dm-setcache.",
    "capture": "Record the block trace of a device, with the cgroup of each request.",
    "weights": "Show the share that each cgroup's weight promises, and the share it gets.",
    "disk": "Show or persistently set the I/O scheduler of a disk.",
    "host": "Restore settings of this machine that a killed run left changed.",
}

# Packages that only some commands need, and the extra of isoblk that installs each.
_EXTRAS: Final = {"optuna": "hunt", "tomli_w": "hunt"}

# Commands of the package of host tools; all other commands need the lab.
WITHOUT_LAB: Final = ("kernel", "cache", "weights", "disk")

# Messages of pydantic, which checks options, and replacements.
_MESSAGES: Final = {
    "Input should be a valid integer.*": "not a whole number",
    "Input should be a valid number.*": "not a number",
    "Input should be greater than or equal to ": "less than ",
    "Input should be less than or equal to ": "more than ",
    "Value error, ": "",
}

app = typer.Typer(
    help="Divide one fast disk among containers by weight, and measure the result.",
    epilog=examples(
        "isoblk doctor",
        "isoblk run quick",
        "isoblk report results/quick",
        "isoblk --install-completion",
    ),
    # All commands inherit these settings.
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def command(*, lab: bool | None = None) -> TyperGroup:
    """Build the group of all commands.

    Args:
        lab: show the lab's commands in the help; None: if the lab is installed. Hidden commands
            can be called, and fail with the hint that the lab is missing.
    """
    shown = has_lab() if lab is None else lab
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, summary in COMMANDS.items():
        later = Later(name, f"isoblk.cli.{name}", summary)
        later.hidden = not shown and name not in WITHOUT_LAB
        group.add_command(later)
    if not shown:
        group.epilog = examples(
            "isoblk disk use isoblk nvme0n1",
            "isoblk weights",
            "isoblk weights --disk nvme0n1 --watch",
        )
    return group


def every_command(
    *, lab: bool = True
) -> Iterator[tuple[tuple[str, ...], TyperCommand | TyperGroup]]:
    """Yield each command and group, loaded, with the words that call it."""
    waiting: list[tuple[tuple[str, ...], TyperCommand | TyperGroup]] = [((), command(lab=lab))]
    while waiting:
        words, one = waiting.pop(0)
        if isinstance(one, Later):
            one = one.loaded()
        yield words, one
        if isinstance(one, TyperGroup):
            for name, below in one.commands.items():
                assert isinstance(below, TyperCommand | TyperGroup)
                waiting.append(((*words, name), below))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isoblk {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: errors become one line and an exit status."""
    # SIGTERM and SIGHUP end the machines too, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    join_assignments(os.environ)
    # Escape characters that the locale lacks, such as in the name of a cgroup, instead of failing.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        # Not standalone: a wrong option is reported in one line, not in a box of four.
        status = command().main(
            args=sys.argv[1:] or ["--help"], prog_name="isoblk", standalone_mode=False
        )
    except TyperException as error:
        print(f"isoblk: {_usage_error(error)}", file=sys.stderr)
        sys.exit(UserError.exit_status)
    except IsoblkError as error:
        for line in error.lines:
            print(f"isoblk: {line}", file=sys.stderr)
        sys.exit(error.exit_status)
    except BrokenPipeError:
        # The reader closed the pipe; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ImportError as error:
        lacking = _lacking_extra(error) or _lacking_library(error)
        if lacking is None:
            raise
        print(f"isoblk: {lacking}", file=sys.stderr)
        sys.exit(lacking.exit_status)
    except OSError as error:
        # A system error, such as a full disk, that no caller has turned into an error of isoblk.
        where = f"{error.filename}: " if error.filename else ""
        print(f"isoblk: {where}{error.strerror}", file=sys.stderr)
        sys.exit(RunError.exit_status)
    finally:
        if "--install-completion" in sys.argv:
            mend_zsh(Path.home())
    sys.exit(status if isinstance(status, int) else 0)


def _lacking_extra(error: ImportError) -> UserError | None:
    """Return the error for a missing package of an extra; None for other packages."""
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        return None
    return UserError(f"{error.name} is not installed", next=f"run: pip install 'isoblk[{extra}]'")


def _lacking_library(error: BaseException | None) -> UserError | None:
    """Return the error for a missing C library of a Python package; None for other errors.

    The smallest systems lack libstdc++, which numpy needs.
    """
    while error is not None:
        if found := re.match(r"(lib[^:/ ]+\.so[.\d]*): cannot open shared object file", str(error)):
            name = found[1]
            package = {"libstdc++.so.6": "libstdc++6"}.get(name, f"the package that holds {name}")
            return UserError(f"{name} is missing", next=f"run: apt install {package}")
        error = error.__cause__ or error.__context__
    return None


def _usage_error(error: TyperException) -> UserError:
    context = getattr(error, "ctx", None)
    # The error of an option without a value has no context.
    first = [word for word in sys.argv[1:2] if word in COMMANDS]
    command = context.command_path if context else " ".join(("isoblk", *first))
    message = error.format_message().rstrip(".")
    for pydantic, own in _MESSAGES.items():
        message = re.sub(pydantic, own, message)
    if command == "isoblk weights" and message.startswith("No such command"):
        return UserError(message, next="for one disk: isoblk weights --disk NAME")
    return UserError(message, next=f"see: {command} --help")

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

# Each is loaded when it is called: its module, which has it as `app`, and the first sentence of its
# help.
COMMANDS: Final = {
    "doctor": "Check that everything isoblk needs is here; status 1 if not.",
    "kernel": "Kernels for the lab, and modules for this machine's.",
    "study": "List, check, describe and import studies.",
    "run": "Run a study: every point of its matrix, on the kernel, in virtual time.",
    "show": "Print a result directory's tables: runs, and claims with their verdicts.",
    "report": "Write DIR/report.html, one page that opens offline, and DIR/figures/ (SVG and PNG).",
    "compare": "Say what differs between two result directories, and what that changed.",
    "hunt": "Look for the workload that a scheduler handles worst, and shrink it.",
    "bisect": "Say which version changed a metric: of the kernel, or of isoblk's schedulers.",
    "trace": "Look at traces of block I/O, import, export, cut and make them.",
    "device": "List, check and make device presets.",
    "cache": "An SSD in front of a slow disk of this machine: dm-setcache.",
    "capture": "Record the block trace of a device, with the cgroup of every request.",
    "weights": "Weights of cgroups: what each is promised, and what it gets.",
    "disk": "The scheduler of a disk of this machine, for good.",
    "host": "This machine as the lab: change back what a killed run left.",
}

# What only some commands need, and what pip is asked for to have it.
_EXTRAS: Final = {"optuna": "hunt", "tomli_w": "hunt"}

# Those that the package for a machine has; the others need the lab.
WITHOUT_LAB: Final = ("kernel", "cache", "weights", "disk")

app = typer.Typer(
    help="Divide one fast disk among containers by weight, and prove it.",
    epilog=examples(
        "isoblk doctor",
        "isoblk run quick",
        "isoblk report results/quick",
        "isoblk --install-completion",
    ),
    # The commands below inherit them.
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def command(*, lab: bool | None = None) -> TyperGroup:
    """The whole command line.

    Args:
        lab: whether to show the lab's commands, None: if the lab is here. They are there anyway,
            and say that it is not.
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
    """Each command and group of commands with the words that call it, all loaded."""
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
    # Whoever ends us wants the machines ended too, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    join_assignments(os.environ)
    # What a locale has no character for, in the name of a cgroup or a file, is escaped, not an end.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        # Not standalone: a wrong option shall be one line as well, not a box of four.
        status = command().main(
            args=sys.argv[1:] or ["--help"], prog_name="isoblk", standalone_mode=False
        )
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
    except ImportError as error:
        lacking = _lacking_extra(error) or _lacking_library(error)
        if lacking is None:
            raise
        print(f"isoblk: {lacking}", file=sys.stderr)
        sys.exit(lacking.exit_status)
    except OSError as error:
        # The machine's trouble (a full disk, say) where nothing closer knew what to say of it.
        where = f"{error.filename}: " if error.filename else ""
        print(f"isoblk: {where}{error.strerror}", file=sys.stderr)
        sys.exit(RunError.exit_status)
    finally:
        if "--install-completion" in sys.argv:
            mend_zsh(Path.home())
    sys.exit(status if isinstance(status, int) else 0)


def _lacking_extra(error: ImportError) -> UserError | None:
    """What to say if a package is missing that only some commands need."""
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        return None
    return UserError(f"{error.name} is not installed", next=f"run: pip install 'isoblk[{extra}]'")


def _lacking_library(error: BaseException | None) -> UserError | None:
    """What to say if a Python package was built for a C library that is not here; numpy's lack
    libstdc++ on the smallest systems."""
    while error is not None:
        if found := re.match(r"(lib[^:/ ]+\.so[.\d]*): cannot open shared object file", str(error)):
            name = found[1]
            package = {"libstdc++.so.6": "libstdc++6"}.get(name, f"the package that holds {name}")
            return UserError(f"{name} is missing", next=f"run: apt install {package}")
        error = error.__cause__ or error.__context__
    return None


def _usage_error(error: TyperException) -> UserError:
    context = getattr(error, "ctx", None)
    # An option without its value is found before there is a context.
    first = [word for word in sys.argv[1:2] if word in COMMANDS]
    command = context.command_path if context else " ".join(("isoblk", *first))
    return UserError(error.format_message().rstrip("."), next=f"see: {command} --help")

# SPDX-License-Identifier: GPL-2.0-only
"""Run a few lines of shell in a guest, and read what they left."""

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isoblk.campaign.execute import Bench
from isoblk.errors import RunError
from isoblk.plan.plan import prologue
from isoblk.run.shell import render
from isoblk.run.spec import CgroupVersion

# The host's files once more, where no guest mounts anything over them: the repository may lie in
# /tmp or below /run.
_HOST_FILES = "/run/host"
SEE_HOST = (
    f"mkdir {_HOST_FILES}; LIBMOUNT_FORCE_MOUNT2=always mount -t hostfs -r -o / host {_HOST_FILES}"
)


def on_host(path: Path) -> str:
    """The word of a script that names a file of the host, wherever that lies."""
    return shlex.quote(f"{_HOST_FILES}{path.absolute()}")


ROOT = Path(__file__).resolve().parents[2]
# The kernel's line before the script; and enough for a trace of each processor in a stall.
_BOOTED = " as init process\n"
_CONSOLE_LINES = 150

# With its packages, and without any.
PYTHON = on_host(Path(sys.executable))
BARE_PYTHON = f"{on_host(Path(sys.executable).resolve())} -BSE"


@dataclass(frozen=True)
class Left:
    """The output of a script: its console, and the files it wrote to /run/isoblk."""

    dir: Path

    @property
    def console(self) -> str:
        return (self.dir / "console.log").read_text(errors="replace")

    def read(self, name: str) -> str:
        return (self.dir / name).read_text()


@contextmanager
def console_noted(directory: Path) -> Iterator[None]:
    """Add the end of the guest's console to a RunError: a test report may be all that is kept."""
    try:
        yield
    except RunError as error:
        said = Left(directory).console.rpartition(_BOOTED)[2]
        error.add_note("\n".join(said.splitlines()[-_CONSOLE_LINES:]))
        raise


def program(name: str, *arguments: str, to: str) -> str:
    """A line of a script that runs a program of tests/guests, whatever its outcome.

    It has the standard library and this repository's tests, and `to` gets what it says.
    """
    command = f"{BARE_PYTHON} -m tests.guests.{name} {shlex.join(arguments)}"
    return f"(cd {on_host(ROOT)}; {command} > {to} || true)"


@dataclass(frozen=True)
class Guest:
    """A bench, and where its runs are kept."""

    bench: Bench
    tmp: Path

    def run(
        self,
        script: str,
        *,
        modules: Sequence[str] = ("isoblk_vdisk", "blkload"),
        cgroup: CgroupVersion = "v2",
        memory_mib: int = 512,
        seed: int = 1,
    ) -> Left:
        """Run `script` after the usual prologue, with `set -e` in force. It finds files of the host
        by on_host().

        Raises:
            RunError: a line failed, the kernel failed, or it hung.
        """
        directory = self.tmp / "guest"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        lines = [render(prologue(tuple(modules), cgroup)), SEE_HOST, script]
        (directory / "plan.sh").write_text("\n".join(lines) + "\n")
        with console_noted(directory):
            self.bench.machine.run(
                directory,
                [self.bench.modules[name] for name in modules],
                seed=seed,
                memory_mib=memory_mib,
            )
        return Left(directory)

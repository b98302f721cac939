# SPDX-License-Identifier: GPL-2.0-only
"""Run a few lines of shell in a guest, and read what they left."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isoblk.campaign.execute import Bench
from isoblk.guest.plan import prologue
from isoblk.guest.shell import render
from isoblk.study.model import CgroupVersion


@dataclass(frozen=True)
class Left:
    """What a script left: its console, and the files it wrote to /run/isoblk."""

    dir: Path

    @property
    def console(self) -> str:
        return (self.dir / "console.log").read_text(errors="replace")

    def read(self, name: str) -> str:
        return (self.dir / name).read_text()


def program(name: str, *arguments: str, to: str) -> str:
    """A line of a script that runs a program of this directory, whatever its outcome.

    It has the standard library and this repository's tests, and `to` gets what it says.
    """
    python = Path(sys.executable).resolve()
    root = Path(__file__).parents[2]
    command = [str(python), "-BSE", "-m", f"tests.lab.{name}", *arguments]
    return f"(cd {shlex.quote(str(root))}; {shlex.join(command)} > {to} || true)"


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
        """Run `script` after the usual prologue, with `set -e` in force.

        Raises:
            RunError: a line failed, the kernel failed, or it hung.
        """
        directory = self.tmp / "guest"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        lines = [render(prologue(tuple(modules), cgroup)), script]
        (directory / "plan.sh").write_text("\n".join(lines) + "\n")
        self.bench.machine.run(
            directory,
            [self.bench.modules[name] for name in modules],
            seed=seed,
            memory_mib=memory_mib,
        )
        return Left(directory)

# SPDX-License-Identifier: GPL-2.0-only
"""Tests on this machine itself: only where it may be changed, and each changes it back."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from isoblk.errors import UserError
from isoblk.machine import system
from isoblk.machine.journal import restore
from isoblk.machine.uml import SHARED_MEMORY

_PROGRAMS = ("fio", "losetup", "wipefs", "setpriv")


def _why_not() -> str:
    absent = [name for name in _PROGRAMS if not shutil.which(name)]
    try:
        hierarchy, _ = system.io_hierarchy()
    except UserError as error:
        return error.cause
    obstacles = {
        "not root": os.geteuid() != 0,
        f"no {', '.join(absent)}": bool(absent),
        "no loop devices": not os.access("/dev/loop-control", os.W_OK),
        "/sys is read-only": _read_only("/sys"),
        f"{hierarchy} is read-only": not os.access(hierarchy, os.W_OK),
    }
    return ", ".join(why for why, true in obstacles.items() if true)


def _read_only(mount: str) -> bool:
    return bool(os.statvfs(mount).f_flag & os.ST_RDONLY)


@dataclass(frozen=True)
class Machine:
    """This one. state: where isoblk keeps its journal. work: a directory for results."""

    state: Path
    work: Path
    hierarchy: Path
    started: list[subprocess.Popen[bytes]]

    def isoblk(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run isoblk to its end."""
        return subprocess.run(
            [sys.executable, "-m", "isoblk", *arguments],
            cwd=self.work,
            env=os.environ | {"ISOBLK_STATE": str(self.state)},
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start isoblk, which ends with the test at the latest."""
        process = subprocess.Popen(
            [sys.executable, "-m", "isoblk", *arguments],
            cwd=self.work,
            env=os.environ | {"ISOBLK_STATE": str(self.state)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def condition(self) -> dict[str, object]:
        """All of this machine that a run may change, and must not leave changed."""
        queues = {}
        for queue in sorted(Path("/sys/block").glob("*/queue")):
            for name in ("scheduler", "nr_requests", "wbt_lat_usec", "nomerges"):
                try:
                    queues[f"{queue}/{name}"] = (queue / name).read_text()
                except OSError:
                    continue
        control = self.hierarchy / "cgroup.subtree_control"
        return {
            "queues": queues,
            "cgroups": sorted(str(path) for path in self.hierarchy.glob("isoblk*")),
            "loops": sorted(
                path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")
            ),
            "files": sorted(str(path) for path in SHARED_MEMORY.glob("isoblk*")),
            "mounts": Path("/proc/self/mountinfo").read_text(),
            "control": control.read_text() if control.exists() else "",
        }


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """This machine; the test is skipped where it may not be changed."""
    if why := _why_not():
        pytest.skip(f"the host machine may not be changed: {why}")
    hierarchy, _ = system.io_hierarchy()
    made = Machine(tmp_path / "state", tmp_path, hierarchy, [])
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stderr is not None:
            process.stderr.close()
    if made.state.exists():
        restore(made.state)


@pytest.fixture
def loop(machine: Machine) -> Iterator[Callable[[], str]]:
    """Makes a loop device of 16 MiB, as a user would; it is gone after the test."""
    made: list[str] = []
    with TemporaryDirectory(dir=SHARED_MEMORY) as directory:

        def make() -> str:
            file = Path(directory) / f"user{len(made)}.img"
            with file.open("wb") as out:
                out.truncate(16 << 20)
            made.append(system.run_tool("losetup", "--find", "--show", str(file)).strip())
            return made[-1]

        yield make
        for device in made:
            system.run_tool("losetup", "--detach", device)

# SPDX-License-Identifier: GPL-2.0-only
"""A Dask scheduler and workers as processes, as a user starts them; and what a campaign left."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

# Mounts that only a worker sees.
ALONE = ("unshare", "--map-root-user", "--mount")
MAY_MOUNT = subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
# Nothing that takes part may wait longer for another; the slowest machine needs a part of it.
_PATIENCE_S = 300
_DASK = (sys.executable, "-m", "dask")


@dataclass
class Cluster:
    """A scheduler's address, and the processes that were started in `directory`."""

    directory: Path
    port: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def scheduler(self) -> subprocess.Popen[bytes]:
        return self._start(
            "scheduler", [*_DASK, "scheduler", "--host", "127.0.0.1", "--port", str(self.port)]
        )

    def worker(self, name: str, mounts: str = "", **environment: str) -> subprocess.Popen[bytes]:
        """A worker with a cache of its own. mounts: shell commands that give it others."""
        command = [*_DASK, "worker", self.address, "--nthreads", "1", "--no-nanny"]
        command += ["--local-directory", str(self.disk(name))]
        if mounts:
            command = [*ALONE, "sh", "-c", f'{mounts} && exec "$0" "$@"', *command]
        self.disk(name).mkdir(exist_ok=True)
        cache = {"ISOBLK_CACHE": str(self.directory / f"cache of {name}")}
        return self._start(name, command, cache | environment)

    def disk(self, name: str) -> Path:
        """A worker's directory for runs."""
        return self.directory / name

    def _start(
        self, name: str, command: list[str], environment: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, "--no-dashboard"],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={**os.environ, **(environment or {})},
            )
        self.processes.append(process)
        return process


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    """Ends all processes that were started."""
    directory.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        made = Cluster(directory, free.getsockname()[1])
    try:
        yield made
    finally:
        for process in reversed(made.processes):
            process.kill()
            process.wait()


def isoblk_run(study: Path, results: Path, *options: str) -> subprocess.Popen[str]:
    """The command."""
    command = [sys.executable, "-m", "isoblk", "run", str(study), "-o", str(results), *options]
    environment = {**os.environ, "COLUMNS": "400", "SOURCE_DATE_EPOCH": "1"}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def finished(results: Path) -> int:
    """How many runs have been made."""
    return len(list(results.glob("runs/*/run.json")))


def until(condition: Callable[[], object], campaign: subprocess.Popen[str]) -> None:
    """Wait for something to become true before the campaign ends."""

    def is_so() -> bool:
        assert campaign.poll() is None, campaign.communicate()
        return bool(condition())

    eventually(is_so)


def eventually(condition: Callable[[], object]) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def end_of(campaign: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its status, what it said, and its errors."""
    said, errors = campaign.communicate(timeout=_PATIENCE_S)
    return campaign.returncode, said, errors


def everything(results: Path) -> dict[str, tuple[bytes, int]]:
    """All files of a result directory and their modes, but for what the runs took."""
    times = re.compile(rb'"(wall_s|cpu_s)":\s*[0-9.e-]+')
    return {
        str(path.relative_to(results)): (times.sub(b"", path.read_bytes()), path.stat().st_mode)
        for path in results.rglob("*")
        if path.is_file()
    }


def fill(worker: subprocess.Popen[bytes], disk: Path) -> None:
    """Leave no space on a disk that a worker alone sees."""
    with suppress(OSError), Path(f"/proc/{worker.pid}/root{disk}/rubbish").open("wb") as file:
        while True:
            file.write(bytes(1 << 16))
            file.flush()

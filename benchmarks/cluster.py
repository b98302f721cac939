# SPDX-License-Identifier: GPL-2.0-only
"""Measure what a campaign on a Dask cluster costs more than one of -j: the figures of
docs/guides/cluster.md.

    .venv/bin/python benchmarks/cluster.py --points 100
    .venv/bin/python benchmarks/cluster.py --points 1000 --only cluster

A scheduler and two workers are started here, as processes; the runs are as small as runs can be.
The bytes are those of the scheduler's connections, by ss.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

WORKERS = 2
_WAYS = ("sent", "received")
STUDY = """\
name = "many"
device = "fast"

[run]
warmup = 0
runtime = "50ms"
window = "50ms"

[[tenant]]
name = "t"
iodepth = 1

[matrix]
scheduler = ["none"]
"device.read_ns" = {reads}
"""


class Watch:
    """A scheduler's memory in MiB, at `first` and at `most`, and what the connections to its port
    have carried."""

    def __init__(self, pid: int, port: int) -> None:
        self._pid = pid
        self._port = port
        self._carried: dict[str, tuple[int, int]] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.first = self.most = self._memory()

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _memory(self) -> int:
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) >> 10

    def _look(self) -> None:
        while not self._end.wait(0.5):
            self.most = max(self.most, self._memory())
            listed = subprocess.run(
                ["ss", "-tinHO", "state", "established", f"( sport = :{self._port} )"],
                capture_output=True,
                text=True,
                check=True,
            )
            for line in listed.stdout.splitlines():
                sent, received = (re.search(rf"\bbytes_{way}:(\d+)", line) for way in _WAYS)
                self._carried[line.split()[3]] = (
                    int(sent[1]) if sent else 0,
                    int(received[1]) if received else 0,
                )

    @property
    def carried(self) -> tuple[int, int]:
        """Bytes sent and received."""
        counts = self._carried.values()
        return sum(sent for sent, _ in counts), sum(received for _, received in counts)


@contextmanager
def _cluster(directory: Path) -> Iterator[tuple[str, int, int]]:
    """Address, port and process of a scheduler with workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    dask = [sys.executable, "-m", "dask"]
    commands = [[*dask, "scheduler", "--host", "127.0.0.1", "--port", f"{port}"]]
    commands += [
        [*dask, "worker", address, "--nthreads", "1", "--local-directory", str(directory / f"w{i}")]
        for i in range(WORKERS)
    ]
    processes = [
        subprocess.Popen([*command, "--no-dashboard"], stderr=subprocess.DEVNULL)
        for command in commands
    ]
    try:
        # Until all are there.
        time.sleep(5)
        yield address, port, processes[0].pid
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def _campaign(study: Path, results: Path, *options: str) -> float:
    """Seconds that the command took."""
    began = time.monotonic()
    command = [sys.executable, "-m", "isoblk", "run", str(study), "-o", str(results), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def _rows(points: int, only: str, directory: Path) -> Iterator[str]:
    study = directory / "many.toml"
    study.write_text(STUDY.format(reads=[20_000 + i for i in range(points)]))
    took: dict[str, float] = {}

    def row(what: str, results: Path) -> str:
        runs = len(list(results.glob("runs/*/run.json")))
        seconds = took[results.name]
        return f"| {runs:,} runs, {what} | {seconds:.0f} s, {seconds / runs:.3f} s a run |"

    if only != "cluster":
        results = directory / "here"
        took["here"] = _campaign(study, results, "-j", f"{WORKERS}")
        yield row(f"`-j {WORKERS}`", results)
    if only != "here":
        results = directory / "cluster"
        with _cluster(directory) as (address, port, pid), Watch(pid, port) as watch:
            took["cluster"] = _campaign(study, results, "--on", address)
        yield row(f"{WORKERS} workers", results)
        sent, received = (count / 1e6 for count in watch.carried)
        yield f"| the scheduler's memory, before and at most | {watch.first} and {watch.most} MiB |"
        yield f"| it sent and received | {sent:.1f} and {received:.1f} MB |"


def main() -> None:
    """Measure, and print the rows of a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--only", choices=("", "here", "cluster"), default="")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    with TemporaryDirectory(dir="/var/tmp") as directory:
        for row in _rows(asked.points, asked.only, Path(directory)):
            print(row, flush=True)


if __name__ == "__main__":
    main()

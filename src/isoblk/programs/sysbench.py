# SPDX-License-Identifier: GPL-2.0-only
"""sysbench fileio: random or sequential requests of one size to a few files."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from isoblk.programs.base import Program, Task, read_options, size_of
from isoblk.run.options import OptionError, said
from isoblk.run.record import Figure, Unit
from isoblk.run.shell import Statement, To, run
from isoblk.run.spec import Options

_MIB = 1 << 20
_MODES = Literal["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"]
# Pattern before a number, the figure's name, its unit, and the factor to the unit.
_FIGURES: tuple[tuple[str, str, Unit, float], ...] = (
    (r"reads/s", "read.rate", "ops/s", 1),
    (r"writes/s", "write.rate", "ops/s", 1),
    (r"fsyncs/s", "fsync.rate", "ops/s", 1),
    (r"read, MiB/s", "read.throughput", "B/s", _MIB),
    (r"written, MiB/s", "write.throughput", "B/s", _MIB),
    (r"total time", "time", "ns", 1e9),
    (r"total number of events", "events", "ops", 1),
    (r"min", "latency.min", "ns", 1e6),
    (r"avg", "latency.mean", "ns", 1e6),
    (r"max", "latency.max", "ns", 1e6),
)
_LINE = re.compile(r"^ +([a-z][^:\n]*): +([\d.]+)s?$", re.MULTILINE)
_PERCENTILE = re.compile(r"^ +(\d+)th percentile: +([\d.]+)$", re.MULTILINE)


class SysbenchOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """sysbench's own options, without their prefix "file-"."""

    mode: Annotated[_MODES, said("Test to run.")]
    size: Annotated[int | str, said("Size of all files together.")]
    bs: Annotated[int | str, said("Size of a request.")] = "16k"
    num: Annotated[int, said("Number of files.")] = 1
    threads: Annotated[int, said("Number of threads.")] = 1
    flags: Annotated[
        Literal["direct", "sync", "dsync", ""],
        said('sysbench\'s extra-flags; "": through the page cache.'),
    ] = "direct"
    io_mode: Annotated[Literal["sync", "async", "mmap"], said("Type of system calls.")] = "sync"
    rw_ratio: Annotated[float, said("Reads per write, for rndrw.")] = 1.5
    fsync_freq: Annotated[int, said("Requests between two fsyncs; 0: one at the end.")] = 100
    percentile: Annotated[int, said("Percentile of latency to report.")] = 99
    rate: Annotated[int, said("Mean requests per second; 0: a closed loop.")] = 0
    amount: Annotated[int | str, said("Bytes after which it ends; 0: at the end of its time.")] = 0


class Sysbench(Program):
    """sysbench 1.0."""

    name = "sysbench"
    own_options = SysbenchOptions

    def needs(self, options: Options) -> Mapping[str, str]:  # noqa: D102
        return {"sysbench": "sysbench"}

    def check(self, options: Options) -> None:  # noqa: D102
        asked = read_options(options, SysbenchOptions)
        size, block = size_of("size", asked.size), size_of("bs", asked.bs)
        for name in ("num", "threads"):
            if getattr(asked, name) < 1:
                raise OptionError(name, f"{getattr(asked, name)}", next="allowed: 1 and more")
        if size // asked.num < block:
            raise OptionError("size", "files of less than one block", next="give more, or less num")
        if asked.amount and not _events(asked):
            raise OptionError("amount", "less than one block", next="give more, or a smaller bs")
        if not 1 <= asked.percentile <= 100:
            raise OptionError("percentile", f"{asked.percentile}", next="allowed: 1..100")

    def timed(self, options: Options) -> bool:  # noqa: D102
        return not _events(read_options(options, SysbenchOptions))

    def prepare(self, task: Task) -> list[Statement]:  # noqa: D102
        asked = read_options(task.options, SysbenchOptions)
        if asked.mode == "seqwr":
            return []
        return [run("sysbench", "fileio", *_files(asked), "prepare", To("/dev/null"))]

    def command(self, task: Task) -> Statement:  # noqa: D102
        asked = read_options(task.options, SysbenchOptions)
        events = _events(asked)
        return run(
            *("sysbench", "fileio", *_files(asked)),
            f"--file-test-mode={asked.mode}",
            f"--file-block-size={size_of('bs', asked.bs)}",
            f"--file-io-mode={asked.io_mode}",
            f"--file-rw-ratio={asked.rw_ratio}",
            f"--file-fsync-freq={asked.fsync_freq}",
            *([f"--file-extra-flags={asked.flags}"] if asked.flags else []),
            f"--threads={asked.threads}",
            *([f"--rate={asked.rate}"] if asked.rate else []),
            f"--percentile={asked.percentile}",
            f"--rand-seed={task.seed}",
            f"--time={0 if events else task.whole_seconds}",
            f"--events={events}",
            "run",
        )

    def parse(self, text: str, task: Task) -> list[Figure]:  # noqa: D102
        said = dict(_LINE.findall(text))
        if "total number of events" not in said:
            raise ValueError("no total number of events")
        figures = [
            Figure(name=name, value=float(said[words]) * scale, unit=unit)
            for words, name, unit, scale in _FIGURES
            if words in said
        ]
        figures += [
            Figure(name=f"latency.p{place}", value=float(value) * 1e6, unit="ns")
            for place, value in _PERCENTILE.findall(text)
        ]
        return figures


def _events(asked: SysbenchOptions) -> int:
    """Return the number of requests after which it ends; 0 for its time."""
    return size_of("amount", asked.amount) // size_of("bs", asked.bs) if asked.amount else 0


def _files(asked: SysbenchOptions) -> list[str]:
    return [f"--file-num={asked.num}", f"--file-total-size={size_of('size', asked.size)}"]

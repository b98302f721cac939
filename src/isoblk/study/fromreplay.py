# SPDX-License-Identifier: GPL-2.0-only
"""Convert a config.cfg of trace-replay-with-cgroup to a study: a tenant for each line.

    WEIGHT TRACEFILE

The tool gives each line a cgroup with that weight and a process of trace-replay, which replays the
file as fast as the disk allows, repeatedly, for 600 s: 4 threads with 32 requests in flight each.
Names of files are relative to the directory of config.cfg. Source:
github.com/BlaCkinkGJ/trace-replay-with-cgroup, main.c and the README.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from isoblk.errors import UserError, printable
from isoblk.files import read_text
from isoblk.run import limits
from isoblk.run.units import format_size
from isoblk.schedulers.bfq import Bfq
from isoblk.study.traces import find_trace
from isoblk.toml import written

_DEVICE = "fast"
# Constants of the tool.
_THREADS = 4
_DEPTH = 32
_TASKS = 4
_SECONDS = 600
_SCHEDULERS = ("none", "kyber", "bfq", "kyber-fair", "feedbac", "isoblk")
_LINE = re.compile(r"(\S+)\s+(\S+)")


@dataclass(frozen=True)
class _Task:
    weight: int
    trace: Path


def from_replay(config: Path) -> tuple[str, list[str], list[Path]]:
    """Return the study of a config.cfg.

    Returns:
        The study as TOML, with the warnings as comments on top; the warnings; the trace files.

    Raises:
        UserError: a line is not a weight and a file, a weight is out of range, or a file is
            missing, not a trace, or outside the directory; names FILE:LINE.
    """
    text = read_text(config, "the configuration", next="name a config.cfg")
    tasks: list[_Task] = []
    end = limits.MEBIBYTE
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            task = _task(config, number, line.strip())
            end = max(end, _end_of(task, f"{config}:{number}"))
            tasks.append(task)
    if not tasks:
        raise UserError(
            "the file has no lines", where=str(config), next="write lines of WEIGHT TRACEFILE"
        )
    warnings = []
    if len(tasks) > _TASKS:
        warnings.append(f"{len(tasks)} lines, of which the tool as published reads {_TASKS}")
    return _write(config, tasks, end, warnings), warnings, [task.trace for task in tasks]


def _task(config: Path, number: int, line: str) -> _Task:
    where = f"{config}:{number}"
    match = _LINE.fullmatch(line)
    if match is None:
        raise UserError(
            "not WEIGHT TRACEFILE", where=where, next="write for example 500 traces/a.dat"
        )
    word, name = match.groups()
    weights = Bfq.weights
    if not (word.isascii() and word.isdecimal() and len(word) < 10 and int(word) in weights):
        raise UserError(f"weight {printable(word)}", where=where, next=f"allowed: {weights}")
    directory = config.parent.resolve()
    path = config.parent / name
    if not path.resolve().is_relative_to(directory):
        raise UserError(
            f"{name} is outside of the directory of {config.name}",
            where=where,
            next="put the trace below it",
        )
    if not path.is_file():
        raise UserError(f"no such trace: {name}", where=where)
    return _Task(int(word), path)


def _end_of(task: _Task, where: str) -> int:
    """Return the trace's last byte + 1. Raises UserError: it is not a trace."""
    try:
        return find_trace(str(task.trace)).trace.max_end
    except UserError as error:
        raise UserError(f"{task.trace}: {error.cause}", where=where, next=error.next) from None


def _write(config: Path, tasks: list[_Task], end: int, warnings: list[str]) -> str:
    size = -(-end // limits.MEBIBYTE) * limits.MEBIBYTE
    lines = [
        f"# Made of {printable(config.name)}: the runs of trace-replay-with-cgroup.",
        *(f"# {warning}" for warning in warnings),
        "",
        'name = "replay"',
        f"title = {written(f'{len(tasks)} traces in parallel, as fast as the disk allows')}",
        "",
        "[device]                # the lab's: choose the preset that is most like yours",
        f"preset = {written(_DEVICE)}",
        f"size = {written(format_size(size))}",
        "",
        "[run]",
        f'runtime = "10s"         # the tool: {_SECONDS} s',
        "",
        "[workload]",
        'replay = "closed"       # the next request when another ends',
        f"iodepth = {_THREADS * _DEPTH}           # {_THREADS} threads, {_DEPTH} in flight each",
        "trace_loop = true",
    ]
    for number, task in enumerate(tasks, start=1):
        lines += [
            "",
            "[[tenant]]",
            f'name = "task{number}"',
            f"weight = {task.weight}",
            f"trace = {written(str(task.trace))}",
        ]
    schedulers = ", ".join(written(one) for one in _SCHEDULERS)
    return "\n".join([*lines, "", "[matrix]", f"scheduler = [{schedulers}]", ""])

# SPDX-License-Identifier: GPL-2.0-only
"""Convert fio's JSON output for a drive into figures for a preset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from isoblk.errors import UserError
from isoblk.run.limits import IODEPTH, NUMJOBS
from isoblk.run.spec import RwMode
from isoblk.run.units import format_size, parse_size
from isoblk.study.model import ExpectEntry, ExpectMetric

State = Literal["fresh", "steady"]

_MODES = ("read", "write", "randread", "randwrite")
# Engines with one request in flight, whatever iodepth is.
_SYNCHRONOUS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2"})
# Options with which the result is not the drive's alone, or not of one size.
_LIMITING = (
    *("rate", "rate_iops", "rate_min", "rate_iops_min", "thinktime", "latency_target"),
    *("bsrange", "bssplit", "bs_unaligned", "zonemode", "flow", "fsync", "fdatasync"),
)
# From this size on, sequential throughput is in bytes, not in requests.
_LARGE = 64 << 10
_DIGITS = 18  # most digits of a number
_SHOWN = 40  # characters of a malformed number that a message shows


class NotUsableError(Exception):
    """Why a job cannot be used."""


@dataclass(frozen=True)
class FioResults:
    """figures: of all usable jobs. left_out: a line for each other job."""

    figures: tuple[ExpectEntry, ...]
    left_out: tuple[str, ...]


def read_fio(path: Path, state: State) -> FioResults:
    """Read the figures of a file that fio wrote with --output-format=json or json+.

    A usable job reads or writes alone, with direct I/O, in blocks of one size, without a rate. It
    gives its throughput, or its mean latency if it has one request in flight.

    Args:
        path: the file.
        state: state of the drive for random writes. All other jobs count as measured on a drive
            that was written sequentially, as is usual.

    Raises:
        UserError: the file cannot be read, or is not fio's JSON.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read: {error.strerror}", where=str(path)) from None
    try:
        # fio may print warnings before the JSON.
        document = msgspec.json.decode(data[max(0, data.find(b"{")) :])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(
            f"not JSON: {error}", where=str(path), next="run fio with --output-format=json"
        ) from None
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise UserError(
            "not fio's JSON: it has no list of jobs",
            where=str(path),
            next="run fio with --output-format=json, without --client",
        )
    shared = document.get("global options")
    figures: list[ExpectEntry] = []
    left_out: list[str] = []
    for name, together in _by_job(jobs).items():
        try:
            if _group(together[0]) in _shared_groups(jobs):
                raise NotUsableError("ran at the same time as another job; add stonewall")
            figures.append(_figure(together, shared, path, state))
        except NotUsableError as error:
            left_out.append(f"{path}: job {name!r}: {error}")
    return FioResults(tuple(figures), tuple(left_out))


def _group(job: Mapping[str, Any]) -> str:
    return str(job.get("groupid"))


def _shared_groups(jobs: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the groups of more than one job, whose jobs run at the same time."""
    names: dict[str, set[str]] = {}
    for job in jobs:
        names.setdefault(_group(job), set()).add(str(job.get("jobname")))
    return {group for group, found in names.items() if len(found) > 1}


def _by_job(jobs: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Group the sections by job: without group_reporting each clone (numjobs) has its own
    section."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for job in jobs:
        found.setdefault((_group(job), str(job.get("jobname"))), []).append(job)
    named: dict[str, list[dict[str, Any]]] = {}
    for (_, name), together in found.items():
        unique = name if name not in named else f"{name} ({len(named) + 1})"
        named[unique] = together
    return named


def _figure(
    jobs: Sequence[dict[str, Any]], shared: object, path: Path, state: State
) -> ExpectEntry:
    options = _options(jobs[0], shared)
    mode = options.get("rw", options.get("readwrite", "read"))
    if mode not in _MODES:
        raise NotUsableError(f"rw={mode} is not one of {', '.join(_MODES)}")
    if any(job.get("error") for job in jobs):
        raise NotUsableError("ended with an error")
    if options.get("direct") != "1" and options.get("buffered") != "0":
        raise NotUsableError("used the page cache; add direct=1")
    for name in _LIMITING:
        if options.get(name) not in (None, "0"):
            raise NotUsableError(f"{name} is set")
    iodepth, numjobs = _number(options, "iodepth", 1), _number(options, "numjobs", 1)
    if options.get("ioengine", "psync") in _SYNCHRONOUS:
        iodepth = 1
    if iodepth not in IODEPTH or numjobs not in NUMJOBS:
        raise NotUsableError(f"iodepth {iodepth} and numjobs {numjobs} exceed the lab's limits")
    block = _block_size(options)
    op = mode.removeprefix("rand")
    iops, bps, mean_ns = _sums([job.get(op) for job in jobs])
    metric: ExpectMetric = "iops"
    value = iops
    if iodepth * numjobs == 1 and block < _LARGE:
        metric, value = "lat_mean_ns", mean_ns
    elif mode == op and block >= _LARGE:
        metric, value = "bps", bps
    depth = f", {numjobs} jobs" if numjobs > 1 else ""
    return ExpectEntry(
        what=f"{mode} {format_size(block)}, iodepth {iodepth}{depth}",
        rw=cast(RwMode, mode),
        metric=metric,
        value=round(value),
        source=f"{path.name}: {jobs[0].get('jobname')}",
        bs=block,
        iodepth=iodepth,
        numjobs=numjobs,
        state=state if mode == "randwrite" else "fresh",
    )


def _options(job: Mapping[str, Any], shared: object) -> dict[str, str]:
    """Return the job's options over the file's. An option without a value is "1"."""
    both: dict[str, str] = {}
    for table in (shared, job.get("job options")):
        if isinstance(table, dict):
            both |= {name: str(value) or "1" for name, value in table.items()}
    return both


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise NotUsableError(f"{name}={text[:_SHOWN]} is not a number")
    return int(text)


def _block_size(options: Mapping[str, str]) -> int:
    text = options.get("bs", options.get("blocksize", "4k"))
    sizes = set(text.split(","))
    if len(sizes) > 1:
        raise NotUsableError(f"bs={text} has several sizes")
    try:
        block = parse_size(sizes.pop())
    except ValueError as error:
        raise NotUsableError(f"bs: {error}") from None
    if not block or block % 512:
        raise NotUsableError(f"bs={text} is not a multiple of a sector")
    return block


def _sums(sections: Sequence[object]) -> tuple[float, float, float]:
    """Return requests per second, bytes per second and mean latency in ns of all clones."""
    iops = bps = weighted = 0.0
    for section in sections:
        if not isinstance(section, dict):
            raise NotUsableError("has no results")
        latency = section.get("lat_ns", section.get("clat_ns"))
        try:
            rate = float(section["iops"])
            bps += float(section.get("bw_bytes", section["bw"] * 1024))
            weighted += rate * float(latency["mean"])  # type: ignore[index]
        except (KeyError, TypeError, ValueError):
            raise NotUsableError("lacks iops, bw or lat_ns; fio 3 writes them") from None
        iops += rate
    if iops <= 0:
        raise NotUsableError("made no request")
    mean_ns = weighted / iops
    if not all(isfinite(value) and value > 0 for value in (iops, bps, mean_ns)):
        raise NotUsableError("has impossible figures")
    return iops, bps, mean_ns

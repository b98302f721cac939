# SPDX-License-Identifier: GPL-2.0-only
"""Convert a captured trace to a study: a tenant for each cgroup, with its captured weight."""

import os
import re
from pathlib import Path

from isoblk.errors import UserError
from isoblk.run import limits
from isoblk.run.units import format_size, format_time
from isoblk.schedulers.bfq import Bfq
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.toml import written
from isoblk.trace.compact import Header, read_header
from isoblk.trace.names import Names, StreamName, read_names
from isoblk.trace.record import MOST_STREAMS

_DEVICE = "fast"
_SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "isoblk")
# Weight files in order of preference, for a cgroup with several, by the scheduler in use.
_WEIGHTS = {
    name: (f".{kind.blkio_policy}.weight",)
    for name, kind in SCHEDULERS.items()
    if kind.blkio_policy
}
_ANY = (".isoblk.weight", ".bfq.weight", ".weight")
_WINDOW_NS = 100_000_000


def from_capture(trace: Path) -> tuple[str, list[str]]:
    """Return the study of a captured trace.

    Returns:
        The study as TOML, with the warnings as comments on top; and the warnings.

    Raises:
        UserError: the file is not a captured trace.
    """
    header = read_header(trace)
    names = read_names(trace)
    if names is None:
        raise UserError(
            "is not a captured trace: there is no file with the names of its streams",
            where=str(trace),
            next="for other traces write `trace` and `trace_stream` into a study:"
            " docs/reference/studies.md",
        )
    try:
        os.fspath(trace.absolute()).encode()
    except UnicodeEncodeError:
        raise UserError(
            "the file's name is not UTF-8, as a study must be", where=str(trace), next="rename it"
        ) from None
    if not names.streams or max(stream.stream for stream in names.streams) >= MOST_STREAMS:
        raise UserError("damaged names of streams", where=str(trace), next="capture again")
    warnings: list[str] = []
    if names.lost:
        warnings.append(f"{names.lost:,} events were lost: the trace has gaps")
    return _write(trace, header, names, warnings), warnings


def weight_of(weights: dict[str, int], scheduler: str) -> int:
    """Return a cgroup's weight: that of the scheduler in use, else the first that is not 100."""
    for endings in (_WEIGHTS.get(scheduler, ()), _ANY):
        for ending in endings:
            for file in sorted(weights):
                if file.endswith(ending) and (
                    endings is not _ANY or weights[file] != limits.DEFAULT_WEIGHT
                ):
                    return weights[file]
    return limits.DEFAULT_WEIGHT


def _write(trace: Path, header: Header, names: Names, warnings: list[str]) -> str:
    runtime = max(1, -(-(header.span_ns + 1) // _WINDOW_NS)) * _WINDOW_NS
    if runtime > limits.RUN_SECONDS * 10**9:
        runtime = limits.RUN_SECONDS * 10**9
        warnings.append(f"only the first {format_time(runtime)} are replayed")
    cgroups = _Cgroups()
    tenants = [(cgroups.of(stream), stream) for stream in names.streams]
    size = -(-max(header.max_end, limits.MEBIBYTE) // limits.MEBIBYTE) * limits.MEBIBYTE
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", trace.stem).lstrip("-.")[: limits.NAME_MAX]
    lines = [
        f"name = {written(name or 'capture')}",
        f"title = {written(f'{_plain(names.device)}, captured {_plain(names.begun[:16])}')}",
        "",
        "[device]                # the lab's: choose the preset that is most like yours",
        f"preset = {written(_DEVICE)}",
        f"size = {written(format_size(size))}",
        f"logical_block_size = {names.logical_block_size}",
        "",
        "[run]",
        f"runtime = {written(format_time(runtime))}",
        "",
        "[workload]",
        f"trace = {written(str(trace.absolute()))}",
        'replay = "timed"        # "closed": each tenant as fast as the disk allows',
        "# speed = 2             # twice the recorded rate",
    ]
    weights: dict[str, int] = {}
    for cgroup, one in tenants:
        weight = _weight(one.cgroup, weight_of(one.weights, names.scheduler), warnings)
        weights[cgroup] = weight
        busiest = ", ".join(_plain(process.name) for process in one.processes[:3])
        what = f"{_plain(one.cgroup)}: {one.requests:,} requests of {busiest}"
        lines += [
            "",
            f"[[tenant]]              # {what}",
            f"name = {written(cgroups.name(cgroup))}",
            f"cgroup = {written(cgroup)}",
            f"weight = {weight}",
            f"trace_stream = {one.stream}",
        ]
    for path, held in names.parents.items():
        inner = cgroups.path(path)
        if inner in weights or not any(cgroup.startswith(f"{inner}/") for cgroup in weights):
            continue
        weight = _weight(path, weight_of(held, names.scheduler), warnings)
        if weight != limits.DEFAULT_WEIGHT:
            lines += ["", "[[group]]", f"path = {written(inner)}", f"weight = {weight}"]
    schedulers = ", ".join(written(one) for one in _SCHEDULERS)
    lines += ["", "[matrix]", f"scheduler = [{schedulers}]", ""]
    head = [
        f"# Made of {_plain(trace.name)}: {header.records:,} requests of {_plain(names.device)},"
        f" captured under {_plain(names.scheduler)}.",
        *(f"# {_plain(warning)}" for warning in warnings),
        "",
    ]
    return "\n".join([*head, *lines])


def _weight(path: str, weight: int, warnings: list[str]) -> int:
    allowed = min(max(weight, Bfq.weights.low), Bfq.weights.high)
    if allowed != weight:
        warnings.append(f"{_plain(path)}: weight {weight} is above the maximum of BFQ: {allowed}")
    return allowed


class _Cgroups:
    """Map captured paths to unique names of letters, digits, "_", "." and "-"."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._names: set[str] = set()

    def of(self, one: StreamName) -> str:
        """Return the cgroup of a stream."""
        return _unique(self.path(one.cgroup), self._taken)

    def path(self, path: str) -> str:
        """Return a path below the root; requests of the root itself get a sibling of the other
        cgroups."""
        parts = [_word(part) for part in path.split("/") if part]
        return "/".join(parts)[: limits.PATH_MAX // 2].rstrip("/") or "root"

    def name(self, cgroup: str) -> str:
        """Return a tenant's name: the last component of its cgroup's path."""
        last = cgroup.rpartition("/")[2][: limits.NAME_MAX - 6]
        if last in limits.TENANT_RESERVED:
            last += "_"
        return _unique(last, self._names)


def _unique(wanted: str, taken: set[str]) -> str:
    found, number = wanted, 2
    while found in taken:
        found = f"{wanted}_{number}"
        number += 1
    taken.add(found)
    return found


def _word(text: str) -> str:
    """Return an allowed path component, distinct from the names of the kernel's own files."""
    word = re.sub(r"[^A-Za-z0-9_.-]", "_", text)
    if not word[0].isalnum() and word[0] != "_":
        word = f"_{word}"
    if word.partition(".")[0] in limits.CGROUP_PREFIXES or word in limits.CGROUP_FILES:
        word = f"_{word}"
    return word[: limits.NAME_MAX]


def _plain(text: str) -> str:
    """Replace control characters, which TOML allows in no comment."""
    return "".join(char if char.isprintable() else "?" for char in text)

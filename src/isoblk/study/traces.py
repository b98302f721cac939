# SPDX-License-Identifier: GPL-2.0-only
"""The trace that a tenant replays: its file, and its header."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from isoblk.errors import UserError
from isoblk.run.spec import Trace, Workload

# Number of traces of one study to remember; each is read once for its hash.
_KEPT = 256


@dataclass(frozen=True)
class Found:
    """A trace and its compact file."""

    trace: Trace
    path: Path


@lru_cache(maxsize=_KEPT)
def find_trace(name: str, stream: int | None = None) -> Found:
    """Return the trace `name`, or one stream of it: a file, or a stand-in's name.

    A file of another format is imported, and a stand-in is made. The result is cached, because a
    study has the same trace at every point: a file must not change while isoblk runs.

    Raises:
        UserError: the trace does not exist, cannot be read, or is damaged.
    """
    # Imported late: it takes time, and most studies have no trace.
    from isoblk.trace.compact import read_header  # noqa: PLC0415
    from isoblk.trace.resolve import is_stand_in, one_stream, resolve  # noqa: PLC0415

    if _is_empty(Path(name)):
        # Files of procfs and sysfs also have size 0, and reading some of them never ends.
        raise UserError("the trace is empty", where=name)
    path = resolve(name)
    if stream is not None:
        path = one_stream(path, stream)
    header = read_header(path)
    if not header.records:
        raise UserError("the trace has no requests", where=str(path))
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read: {error.strerror}", where=str(path)) from None
    trace = Trace(
        name=name,
        sha256=sha256,
        records=header.records,
        span_ns=header.span_ns,
        max_end=header.max_end,
        stand_in=is_stand_in(name),
        stream=stream,
    )
    return Found(trace, path)


def _is_empty(path: Path) -> bool:
    return path.is_file() and not path.stat().st_size


def file_of(trace: Trace) -> Path:
    """Return the compact file of a planned run's trace.

    Raises:
        UserError: it is gone, or has changed.
    """
    found = find_trace(trace.name, trace.stream)
    if found.trace.sha256 != trace.sha256:
        raise UserError(
            "the trace has changed since the run was planned",
            where=trace.name,
            next="run the study again",
        )
    return found.path


def ends_ns(load: Workload) -> int | None:
    """Return when a timed replay starts its last request, in ns after the barrier; None if the load
    does not end by itself, or the end is unknown."""
    if load.trace is None or load.replay != "timed" or load.trace_loop:
        return None
    return load.startdelay_ns + load.trace.span_ns * 1000 // load.speed

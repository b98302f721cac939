# SPDX-License-Identifier: GPL-2.0-only
"""The trace that a tenant replays: which file it is, and what is known of it."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from isoblk.errors import UserError
from isoblk.run.spec import Trace, Workload

# Distinct traces of one study; each is read once, to know its content.
_KEPT = 256


@dataclass(frozen=True)
class Found:
    """A trace and its compact file."""

    trace: Trace
    path: Path


@lru_cache(maxsize=_KEPT)
def find_trace(name: str, stream: int | None = None) -> Found:
    """The trace that a study calls `name`: a file, or a stand-in's name; or one stream of it.

    A file of another format is imported first, a stand-in made. A study asks for the same
    trace at every point, so the answer is kept: a file is taken not to change meanwhile.

    Raises:
        UserError: there is none, it cannot be read, or it is damaged.
    """
    # What reads traces takes a moment to import, and most studies have none.
    from isoblk.trace.compact import read_header  # noqa: PLC0415
    from isoblk.trace.resolve import is_stand_in, one_stream, resolve  # noqa: PLC0415

    if _is_empty(Path(name)):
        # So are files that the kernel makes up, of which reading may have no end.
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
    """The compact file of a trace that a run was planned with.

    Raises:
        UserError: it is gone, or is another one now.
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
    """When a timed replay starts its last request, in ns after the barrier; None if the load
    does not end by itself, or nobody can tell when."""
    if load.trace is None or load.replay != "timed" or load.trace_loop:
        return None
    return load.startdelay_ns + load.trace.span_ns * 1000 // load.speed

# SPDX-License-Identifier: GPL-2.0-only
"""The names of a captured trace's streams, in a file FILE.json next to it.

The trace itself has room for numbers only, which suffice for a replay.
"""

from collections.abc import Collection
from pathlib import Path

import msgspec

from isoblk.errors import UserError
from isoblk.files import write_atomically
from isoblk.trace.compact import writing

VERSION = 1


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A submitter of requests. name: the kernel's, at most 15 characters."""

    pid: int
    name: str
    requests: int


class StreamName(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of a captured trace: a cgroup. weights: file -> its value."""

    stream: int
    cgroup: str
    requests: int
    weights: dict[str, int] = {}
    processes: tuple[Process, ...] = ()


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Origin of a captured trace, and the names of its streams.

    begun: ISO 8601. first_ns: time of the first request after that. size, logical_block_size: of
    the device, bytes. cgroups: version of the hierarchy. lost: events that were not recorded.
    parents: weights of the ancestors of the streams' cgroups.
    """

    version: int
    device: str
    size: int
    logical_block_size: int
    scheduler: str
    kernel: str
    backend: str
    begun: str
    seconds: float
    first_ns: int
    lost: int
    left_out: int
    cgroups: str
    streams: tuple[StreamName, ...]
    parents: dict[str, dict[str, int]] = {}


def names_file(trace: Path) -> Path:
    """Return the path of the names of a trace's streams."""
    return trace.parent / f"{trace.name}.json"


def read_names(trace: Path) -> Names | None:
    """Read the names of a trace's streams; None if it was not captured.

    Raises:
        UserError: the file is damaged, or cannot be read.
    """
    path = names_file(trace)
    try:
        names = msgspec.json.decode(path.read_bytes(), type=Names)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read: {error.strerror}", where=str(path)) from None
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise UserError(
            f"damaged names of a trace's streams: {error}",
            where=str(path),
            next="capture again, or remove the file",
        ) from None
    if names.version != VERSION:
        raise UserError(
            f"names of streams of version {names.version}, not {VERSION}",
            where=str(path),
            next="capture again, or remove the file",
        )
    return names


def write_names(trace: Path, names: Names) -> None:
    """Write the names. Raises UserError: the file cannot be written."""
    path = names_file(trace)
    with writing(path):
        write_atomically(path, msgspec.json.format(msgspec.json.encode(names)) + b"\n")


def keep_names(source: Path, output: Path, streams: Collection[int]) -> None:
    """Copy the names of a trace to a part of it. streams: those to keep, all if empty.

    Raises:
        UserError: the names are damaged, or cannot be written.
    """
    names = read_names(source)
    if names is None or source == output:
        return
    kept = tuple(stream for stream in names.streams if not streams or stream.stream in streams)
    write_names(output, msgspec.structs.replace(names, streams=kept))

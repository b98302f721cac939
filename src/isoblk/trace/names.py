# SPDX-License-Identifier: GPL-2.0-only
"""What a trace's streams are called: a file beside a captured trace, FILE.json.

The trace itself has room for numbers only, and the kernel that replays it needs no more.
"""

from collections.abc import Collection
from pathlib import Path

import msgspec

from isoblk.errors import UserError
from isoblk.files import write_atomically
from isoblk.trace.compact import writing

VERSION = 1


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """Who submitted requests. name: as the kernel has it, at most 15 characters."""

    pid: int
    name: str
    requests: int


class StreamName(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of a captured trace: a cgroup. weights: file -> what it said."""

    stream: int
    cgroup: str
    requests: int
    weights: dict[str, int] = {}
    processes: tuple[Process, ...] = ()


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """A captured trace: where it is from, and whose its streams are.

    begun: ISO 8601. first_ns: when the first request came, after that. size, logical_block_size:
    of the device, bytes. cgroups: version of the hierarchy. lost: events that were not recorded.
    parents: weights of the cgroups above those of the streams.
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
    """Where the names of a trace's streams are."""
    return trace.parent / f"{trace.name}.json"


def read_names(trace: Path) -> Names | None:
    """The names of a trace's streams; None if it was not captured.

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
    except (ValueError, RecursionError) as error:  # msgspec's are ValueErrors
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
    """Raises UserError: it cannot be written."""
    path = names_file(trace)
    with writing(path):
        write_atomically(path, msgspec.json.format(msgspec.json.encode(names)) + b"\n")


def keep_names(source: Path, output: Path, streams: Collection[int]) -> None:
    """Give a part of a trace the names that the whole has. streams: those to keep, all if empty.

    Raises:
        UserError: the whole's are damaged, or the part's cannot be written.
    """
    names = read_names(source)
    if names is None or source == output:
        return
    kept = tuple(one for one in names.streams if not streams or one.stream in streams)
    write_names(output, msgspec.structs.replace(names, streams=kept))

# SPDX-License-Identifier: GPL-2.0-only
"""Resolve a user's name of a trace to a compact file, which is made once and kept in the cache."""

import hashlib
import os
from pathlib import Path

from isoblk import paths
from isoblk.errors import UserError, printable
from isoblk.trace import compact, synth
from isoblk.trace.convert import import_trace
from isoblk.trace.cut import Part, cut
from isoblk.trace.decompress import refuse_empty
from isoblk.trace.names import read_names

TRACES_VARIABLE = "ISOBLK_TRACES"
# Part of the cache's keys: increment it if a change to the importers changes their output.
IMPORT_VERSION = 4
STREAM_VERSION = 1
_FEW = 8  # streams that are named in an error


def stand_ins() -> list[str]:
    """Return the names of all stand-ins, which a user's own file may replace."""
    return sorted(path.stem for path in paths.stand_ins_dir().glob("*.toml"))


def resolve(name_or_path: str | Path, time_unit: str | None = None) -> Path:
    """Return the compact file of a trace.

    Args:
        name_or_path: a compact file, which is returned; a file of any known format, which is
            imported; a recipe (.toml), from which a trace is made; or a stand-in's name: the file
            NAME.* in $ISOBLK_TRACES if there is one, else the stand-in.
        time_unit: as of import_trace().

    Raises:
        UserError: no such file or name, several files NAME.*, or the import failed.
    """
    path = source_file(name_or_path)
    if not path.is_file():
        raise UserError(
            "no such trace", where=str(path), next=f"name a file, or one of: {_names()}"
        )
    return _of_file(path, time_unit)


def source_file(name_or_path: str | Path) -> Path:
    """Return the source of a trace: the given file, or that of a stand-in's name. Raises as
    resolve(), except for a missing file."""
    if isinstance(name_or_path, str) and name_or_path in stand_ins():
        return own_file(name_or_path) or _recipe(name_or_path)
    return Path(name_or_path)


def one_stream(trace: Path, stream: int) -> Path:
    """Return the compact file of one stream of a compact file, whose requests keep their times.

    Raises:
        UserError: the trace has no such stream, or cannot be read.
    """
    cached = _cached(_content(trace), f"stream-{stream}-{STREAM_VERSION}")
    if not cached.is_file():
        try:
            cut(trace, cached, Part(streams=(stream,), keep_times=True))
        except UserError as error:
            names = read_names(trace)
            few = [f"{one.stream} {one.cgroup}" for one in names.streams[:_FEW]] if names else []
            raise UserError(
                f"no stream {stream}: {error.cause}",
                where=str(trace),
                next=f"streams: {', '.join(few)}" if few else f"see: isoblk trace info {trace}",
            ) from None
    return cached


def is_stand_in(name_or_path: str | Path) -> bool:
    """Return whether the name means a stand-in, not the user's own file. Raises as resolve()."""
    return name_or_path in stand_ins() and own_file(str(name_or_path)) is None


def title(name_or_path: str | Path) -> str:
    """Return the trace's name for print, which states that a stand-in is one. Raises as
    resolve()."""
    if is_stand_in(name_or_path):
        return f"{name_or_path} (stand-in)"
    return printable(Path(name_or_path).name)


def own_file(name: str) -> Path | None:
    """Return the user's file for a stand-in's name. Raises UserError: there are several."""
    directory = os.environ.get(TRACES_VARIABLE)
    if not directory:
        return None
    found = sorted(path for path in Path(directory).glob(f"{name}.*") if path.is_file())
    if len(found) > 1:
        raise UserError(
            f"several traces are named {name}: {', '.join(path.name for path in found)}",
            where=directory,
            next=f"keep one; isoblk trace import FILE... -o {name}{compact.SUFFIX} joins them",
        )
    return found[0] if found else None


def _recipe(name: str) -> Path:
    return paths.stand_ins_dir() / f"{name}.toml"


def _names() -> str:
    return " ".join(stand_ins())


def _of_file(path: Path, time_unit: str | None) -> Path:
    made = path.suffix == ".toml"
    try:
        refuse_empty(path)
        is_compact = compact.is_compact(path)
        if time_unit and (made or is_compact):
            raise UserError(
                "the times of a compact trace are in ns",
                where=str(path),
                next="import the original with --time-unit",
            )
        if is_compact:
            compact.read_header(path)
            return path.absolute()
    except OSError as error:
        raise UserError(f"cannot read: {error.strerror}", where=str(path)) from None
    how = f"synth-{synth.VERSION}" if made else f"import-{IMPORT_VERSION}"
    cached = _cached(_content(path), f"{how}-{time_unit}" if time_unit else how)
    if cached.is_file():
        return cached
    if made:
        synth.synthesize(synth.load_recipe(path), cached)
    else:
        import_trace([path], cached, time_unit=time_unit)
    return cached


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read: {error.strerror}", where=str(path)) from None


def _cached(content: str, how: str) -> Path:
    """Return the path in the cache of a trace that was made in a certain way from a file with that
    content."""
    directory = paths.cache_dir() / "traces"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot keep the trace: {error.strerror}",
            where=str(directory),
            next="set ISOBLK_CACHE to a directory that can be written",
        ) from None
    return directory / f"{content[:32]}-{how}{compact.SUFFIX}"

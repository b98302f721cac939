# SPDX-License-Identifier: GPL-2.0-only
"""From what a user calls a trace to a compact file, made once and kept in the cache."""

import hashlib
import os
from pathlib import Path

from isoblk import paths
from isoblk.errors import UserError
from isoblk.trace import compact, synth
from isoblk.trace.convert import import_trace

TRACES_VARIABLE = "ISOBLK_TRACES"
# Part of the cache's keys: to be raised when the importers make other traces of the same files.
IMPORT_VERSION = 1


def stand_ins() -> list[str]:
    """Names that a stand-in, or the user's own file of that name, answers to."""
    return sorted(path.stem for path in paths.stand_ins_dir().glob("*.toml"))


def resolve(name_or_path: str | Path) -> Path:
    """The compact file of a trace.

    Args:
        name_or_path: a compact file, which is the answer; a file of any known format, which
            is imported; a recipe (.toml), from which a trace is made; or a stand-in's name:
            the file NAME.* in $ISOBLK_TRACES if there is one, else the stand-in.

    Raises:
        UserError: no such file or name, several files NAME.*, or it cannot be imported.
    """
    if isinstance(name_or_path, str) and name_or_path in stand_ins():
        return _of_file(own_file(name_or_path) or _recipe(name_or_path))
    path = Path(name_or_path)
    if not path.is_file():
        raise UserError(
            "no such trace", where=str(path), next=f"name a file, or one of: {_names()}"
        )
    return _of_file(path)


def is_stand_in(name_or_path: str | Path) -> bool:
    """Whether that is a stand-in, and not the user's own file. Raises as resolve()."""
    return name_or_path in stand_ins() and own_file(str(name_or_path)) is None


def title(name_or_path: str | Path) -> str:
    """What to call the trace in print: a stand-in is said to be one. Raises as resolve()."""
    if is_stand_in(name_or_path):
        return f"{name_or_path} (stand-in)"
    return Path(name_or_path).name


def own_file(name: str) -> Path | None:
    """The user's file for a stand-in's name. Raises UserError: several."""
    directory = os.environ.get(TRACES_VARIABLE)
    if not directory:
        return None
    found = sorted(path for path in Path(directory).glob(f"{name}.*") if path.is_file())
    if len(found) > 1:
        raise UserError(
            f"several traces called {name}: {', '.join(path.name for path in found)}",
            where=directory,
            next=f"keep one; isoblk trace import FILE... -o {name}{compact.SUFFIX} joins them",
        )
    return found[0] if found else None


def _recipe(name: str) -> Path:
    return paths.stand_ins_dir() / f"{name}.toml"


def _names() -> str:
    return " ".join(stand_ins())


def _of_file(path: Path) -> Path:
    try:
        if compact.is_compact(path):
            compact.read_header(path)
            return path.absolute()
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read: {error.strerror}", where=str(path)) from None
    made = path.suffix == ".toml"
    version = f"synth-{synth.VERSION}" if made else f"import-{IMPORT_VERSION}"
    directory = paths.cache_dir() / "traces"
    cached = directory / f"{content[:32]}-{version}{compact.SUFFIX}"
    if cached.is_file():
        return cached
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write: {error.strerror}", where=str(directory)) from None
    if made:
        synth.synthesize(synth.load_recipe(path)[0], cached)
    else:
        import_trace([path], cached)
    return cached

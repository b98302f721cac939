# SPDX-License-Identifier: GPL-2.0-only
"""The studies that come with isoblk, and the lookup of a study's name on the command line."""

from dataclasses import dataclass
from pathlib import Path

from isoblk import paths, toml
from isoblk.errors import UserError, printable
from isoblk.run.field import nearest

_SUFFIX = ".toml"


@dataclass(frozen=True)
class Chosen:
    """A study's file, and a note on the lookup, "" if the path was unambiguous."""

    path: Path
    note: str = ""


@dataclass(frozen=True)
class Shipped:
    """A study that comes with isoblk."""

    name: str
    title: str


def names() -> list[str]:
    """Return the names of the studies that come with isoblk, sorted."""
    return sorted(path.stem for path in paths.studies_dir().glob(f"*{_SUFFIX}"))


def shipped() -> list[Shipped]:
    """Return the studies that come with isoblk, by name."""
    return [
        Shipped(name, str(toml.parse(_file(name).read_text("utf-8")).get("title", "")))
        for name in names()
    ]


def choose(given: Path) -> Chosen:
    """Return the file of a study on the command line.

    A path, and any existing file, is taken as it is. A bare name without a suffix also means
    NAME.toml in the current directory or, if that does not exist, the study of that name that comes
    with isoblk; the note names the one that was taken.

    Raises:
        UserError: a bare name that is none of these.
    """
    name = str(given)
    if given.name != name or given.suffix == _SUFFIX or (given.exists() and not given.is_dir()):
        return Chosen(given)
    ours = name in names()
    own = given.with_name(name + _SUFFIX)
    if own.is_file():
        return Chosen(
            own, f"study {own}" + (", not the one that comes with isoblk" if ours else "")
        )
    if ours:
        beside = f", not the directory {name}" if given.is_dir() else ""
        return Chosen(_file(name), f"study {_file(name)}, which comes with isoblk{beside}")
    near = nearest(name, names())
    raise UserError(
        "is a directory, not a study"
        if given.is_dir()
        else "neither a file, nor a study that comes with isoblk",
        where=printable(name),
        next=f"did you mean {near}?" if near else "name a TOML file; see: isoblk study list",
    )


def _file(name: str) -> Path:
    return paths.studies_dir() / f"{name}{_SUFFIX}"

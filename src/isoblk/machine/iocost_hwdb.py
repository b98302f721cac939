# SPDX-License-Identifier: GPL-2.0-only
"""Read io.cost's models of drives from udev's database: six figures for each drive model.

The database is a file of udev's hwdb (hwdb(7)) that github.com/iocost-benchmark/iocost-benchmarks
makes from users' measurements. systemd has the program that looks up a drive in it, but not the
file. A record is

    block:*:name:MODEL:fwver:*:
      IOCOST_SOLUTIONS=isolation naive
      IOCOST_MODEL_NAIVE=rbps=N rseqiops=N rrandiops=N wbps=N wseqiops=N wrandiops=N
      IOCOST_QOS_NAIVE=rpct=99.00 rlat=8807 wpct=99.00 wlat=59023 min=75.00 max=100.00

The latencies are not figures of the drive: they are limits for io.cost under a load that no job
repeats, and most solutions disable them (rpct=0.00).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isoblk.errors import UserError
from isoblk.files import read_text
from isoblk.run.field import suggest

DIRECTORIES = tuple(
    Path(name) for name in ("/etc/udev/hwdb.d", "/run/udev/hwdb.d", "/usr/lib/udev/hwdb.d")
)
"""Directories of udev's databases."""

FIGURES = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
"""A model's figures in the kernel's order: bytes per second, and requests of 4 KiB per second."""

# In other solutions the figures are scaled by the admitted fraction.
_MEASURED = "naive"
_MATCH = re.compile(r"block:[^:]*:name:(?P<model>[^:]+):")
_MOST = (1 << 53) - 1
_SHOWN = 40  # characters of a malformed value that a message shows


@dataclass(frozen=True)
class Known:
    """A drive model of the database.

    solution: the solution of the figures. figures: by the names of FIGURES.
    """

    model: str
    solution: str
    figures: Mapping[str, int]


@dataclass(frozen=True)
class Database:
    """known: the models, sorted, the last record of each. left_out: a line per damaged record."""

    known: tuple[Known, ...]
    left_out: tuple[str, ...]

    def model(self, name: str) -> Known:
        """Return the drive model of that name. Raises UserError: it is unknown."""
        for one in self.known:
            if one.model == name:
                return one
        raise UserError(
            f"no drive model {name!r} in the database",
            next=suggest(name, [one.model for one in self.known]),
        )


def databases() -> list[Path]:
    """Return udev's own files of io.cost; a name in an earlier directory hides one in a later.

    Raises:
        UserError: there is none.
    """
    found: dict[str, Path] = {}
    for directory in DIRECTORIES:
        for path in sorted(directory.glob("*iocost*.hwdb")):
            found.setdefault(path.name, path)
    if not found:
        raise UserError(
            "udev has no database of io.cost here (*iocost*.hwdb)",
            next="name the file: 90-iocost-tune.hwdb of"
            " https://github.com/iocost-benchmark/iocost-benchmarks",
        )
    return [found[name] for name in sorted(found)]


def read_hwdb(paths: Sequence[Path]) -> Database:
    """Return the drive models of all files.

    Raises:
        UserError: a file cannot be read, or no file has a model of io.cost.
    """
    known: dict[str, Known] = {}
    left_out: list[str] = []
    for path in paths:
        models: list[str] = []
        values: dict[str, str] = {}
        # The blank line at the end closes the last record.
        for number, line in enumerate([*read_text(path, "the database").splitlines(), ""], 1):
            text = line.split("#", 1)[0].rstrip()
            if text and not text[0].isspace():
                if values:  # the record ended without a blank line
                    _close(models, values, f"{path}, before line {number}", known, left_out)
                models += [match["model"] for match in [_MATCH.match(text)] if match]
            elif text:
                name, _, value = text.strip().partition("=")
                values[name] = value
            elif not line.strip():
                _close(models, values, f"{path}, before line {number}", known, left_out)
    if not known and not left_out:
        raise UserError(
            "no drive model with figures of io.cost",
            where=", ".join(map(str, paths)),
            next="name a file of udev's hwdb that has IOCOST_MODEL_...",
        )
    return Database(tuple(known[name] for name in sorted(known)), tuple(left_out))


def _close(
    models: list[str],
    values: dict[str, str],
    where: str,
    known: dict[str, Known],
    left_out: list[str],
) -> None:
    """End a record: store its models, and empty both for the next."""
    try:
        if models and any(name.startswith("IOCOST_") for name in values):
            solution, figures = _figures(values)
            known |= {model: Known(model, solution, figures) for model in models}
    except ValueError as error:
        left_out.append(f"{where}: {models[0]}: {error}")
    models.clear()
    values.clear()


def _figures(values: Mapping[str, str]) -> tuple[str, dict[str, int]]:
    """Return the solution nearest to the measurements, and its figures.

    Raises:
        ValueError: there are no figures, or they are damaged.
    """
    solutions = values.get("IOCOST_SOLUTIONS", "").split()
    for solution in [_MEASURED, *reversed(solutions)]:
        text = values.get("IOCOST_MODEL_" + solution.upper().replace("-", "_"))
        if text is not None:
            return solution, _parsed(text)
    raise ValueError("has no IOCOST_MODEL_... of a solution")


def _parsed(text: str) -> dict[str, int]:
    pairs = dict(part.split("=", 1) for part in text.split() if "=" in part)
    figures = {}
    for name in FIGURES:
        value = pairs.get(name, "")
        digits = value.isascii() and value.isdigit() and len(value) <= len(str(_MOST))
        if not digits or not 0 < int(value) <= _MOST:
            raise ValueError(f"{name}={value[:_SHOWN]} is not a figure")
        figures[name] = int(value)
    return figures

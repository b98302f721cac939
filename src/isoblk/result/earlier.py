# SPDX-License-Identifier: GPL-2.0-only
"""Runs that are in a result directory and no longer part of its study.

A study was edited, or runs under another kernel, and was run again into the same directory. What
study.json was before then lies in earlier/N, as a result directory of its own, whose runs are the
same ones. One that has no run which the study lacks is removed.
"""

from pathlib import Path

from isoblk.errors import UserError
from isoblk.result.store import ResultSet, read_results, write_study
from isoblk.result.study import StudyRecord

DIRECTORY = "earlier"
_OWN = {"study.json", "runs"}


def set_aside(results: Path, record: StudyRecord) -> None:
    """Keep what study.json is before it becomes another.

    Raises:
        UserError: it cannot be written.
    """
    numbers = [int(path.name) for path in _all(results)]
    directory = results / DIRECTORY / str(max(numbers, default=0) + 1)
    try:
        directory.mkdir(parents=True)
        (directory / "runs").symlink_to("../../runs")
    except OSError as error:
        raise UserError(f"cannot write results: {error.strerror}", where=str(directory)) from None
    write_study(directory, record)


def forget_what_is_here(results: Path) -> None:
    """Remove what was set aside, and has no run that the study lacks; but not what a user added."""
    here = finished(read_results(results))
    for directory in _all(results):
        if (
            finished(read_results(directory)) <= here
            and {path.name for path in directory.iterdir()} <= _OWN
        ):
            for name in _OWN:
                (directory / name).unlink(missing_ok=True)
            directory.rmdir()
    if not _all(results) and (results / DIRECTORY).is_dir():
        (results / DIRECTORY).rmdir()


def notes(results: Path) -> list[str]:
    """A line for each version that was set aside: how many runs it has of its own, and where."""
    here = finished(read_results(results))
    told = []
    for directory in _all(results):
        if count := len(finished(read_results(directory)) - here):
            runs = "1 run" if count == 1 else f"{count} runs"
            told.append(
                f"{runs} of the study as it was before: not shown here; isoblk show {directory}"
            )
    return told


def finished(found: ResultSet) -> set[str]:
    """The ids of the runs that are there."""
    return {run.record.id for run in found.runs if run is not None}


def _all(results: Path) -> list[Path]:
    """What was set aside, the oldest first."""
    there = [path for path in (results / DIRECTORY).glob("*") if path.name.isdecimal()]
    return sorted((path for path in there if (path / "study.json").is_file()), key=_number)


def _number(path: Path) -> int:
    return int(path.name)

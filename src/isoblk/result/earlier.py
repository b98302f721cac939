# SPDX-License-Identifier: GPL-2.0-only
"""Keep the runs in a result directory that are no longer part of its study.

When a study was edited, or runs under another kernel, the former study.json is moved to earlier/N,
a result directory with links to the same runs. It is removed when all of its runs are in the study
again.
"""

from pathlib import Path

from isoblk.errors import UserError
from isoblk.result.store import ResultSet, read_results, write_study
from isoblk.result.study import StudyRecord

DIRECTORY = "earlier"
_OWN = {"study.json", "runs"}


def set_aside(results: Path, record: StudyRecord) -> None:
    """Keep the current study.json before it is replaced.

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
    """Remove earlier versions whose runs are all in the study, but no files that a user added."""
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
    """Return a line for each earlier version: the number of its own runs, and its path."""
    here = finished(read_results(results))
    told = []
    for directory in _all(results):
        if count := len(finished(read_results(directory)) - here):
            runs = "1 run" if count == 1 else f"{count} runs"
            told.append(
                f"{runs} of an earlier version of the study: not shown here;"
                f" see: isoblk show {directory}"
            )
    return told


def finished(found: ResultSet) -> set[str]:
    """Return the ids of the finished runs."""
    return {run.record.id for run in found.runs if run is not None}


def _all(results: Path) -> list[Path]:
    """Return the earlier versions, the oldest first."""
    there = [path for path in (results / DIRECTORY).glob("*") if path.name.isdecimal()]
    return sorted((path for path in there if (path / "study.json").is_file()), key=_number)


def _number(path: Path) -> int:
    return int(path.name)

# SPDX-License-Identifier: GPL-2.0-only
"""Read and write result directories. Files appear whole, by rename."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from isoblk.errors import UserError, printable
from isoblk.files import write_atomically
from isoblk.result.sound import wrong_in_run, wrong_in_study
from isoblk.result.study import StudyRecord
from isoblk.run.record import RunRecord
from isoblk.run.typed import build, decode

FORMAT = 1
PREDICTIONS = "predictions.parquet"

RecordT = TypeVar("RecordT", RunRecord, StudyRecord)

# Characters that control a terminal, in JSON: escaped, and literal.
_OBEYED = re.compile(
    rb"\\u00(?:[0189][0-9a-fA-F]|7[fF])|\\u20(?:2[89a-eA-E]|6[6-9])"
    rb"|\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)

SERIES_SCHEMA = pl.Schema(
    {"tenant": pl.String, "t_ms": pl.UInt32, "op": pl.String, "ios": pl.UInt64, "bytes": pl.UInt64}
)
LATENCY_SCHEMA = pl.Schema(
    {"tenant": pl.String, "op": pl.String, "upper_ns": pl.UInt64, "count": pl.UInt64}
)
PREDICTIONS_SCHEMA = pl.Schema(
    {
        "t_ms": pl.Float64,
        "predicted": pl.UInt64,
        "used": pl.UInt64,
        "error": pl.Float64,
        "a": pl.Float64,
    }
)


@dataclass(frozen=True)
class Run:
    """A finished run on disk; its tables are read on demand."""

    record: RunRecord
    dir: Path

    def series(self) -> pl.DataFrame:
        """Return the time series, SERIES_SCHEMA."""
        return _read_table(self.dir / "series.parquet")

    def latency(self) -> pl.DataFrame:
        """Return latency buckets of the measured time, LATENCY_SCHEMA."""
        return _read_table(self.dir / "latency.parquet")

    def predictions(self) -> pl.DataFrame:
        """Return feedbac's predictions, PREDICTIONS_SCHEMA."""
        return _read_table(self.dir / PREDICTIONS)


@dataclass(frozen=True)
class ResultSet:
    """A study's result directory. runs: in the study's order, None for an unfinished run."""

    dir: Path
    record: StudyRecord
    runs: list[Run | None]


def _read_table(path: Path) -> pl.DataFrame:
    # Polars takes a path for a pattern, and for UTF-8.
    with path.open("rb") as file:
        return pl.read_parquet(file)


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Write one of a run's tables. Raises OSError."""
    with path.open("wb") as file:
        table.write_parquet(file, statistics=False)


def run_dir(results: Path, run_id: str) -> Path:
    """Return the directory of a finished run."""
    return results / "runs" / run_id


def read_run(directory: Path) -> Run | None:
    """Return the finished run in `directory`, None if there is none.

    Raises:
        UserError: run.json cannot be read, is damaged or of another format.
    """
    path = directory / "run.json"
    try:
        return Run(_decode(path, RunRecord), directory)
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_study(results: Path, record: StudyRecord) -> None:
    """Write study.json.

    Raises:
        UserError: the directory cannot be written, or the disk is full.
    """
    data = msgspec.json.format(msgspec.json.encode(record), indent=1)
    try:
        write_atomically(results / "study.json", data)
    except OSError as error:
        raise UserError(f"cannot write results: {error.strerror}", where=str(results)) from None


def read_results(results: Path) -> ResultSet:
    """Load a result directory.

    Raises:
        UserError: it is not a result directory, or is damaged.
    """
    path = results / "study.json"
    try:
        record = _decode(path, StudyRecord)
    except (FileNotFoundError, NotADirectoryError):
        usual = Path("results") / results
        raise UserError(
            "not a result directory (no study.json)",
            where=str(results),
            next=f"did you mean {usual}?"
            if (usual / "study.json").exists()
            else "isoblk show lists those in results/",
        ) from None
    if wrong := wrong_in_study(record):
        raise _damaged(path, wrong)
    runs = [read_run(run_dir(results, run.id)) if run.id else None for run in record.runs]
    for entry, run in zip(record.runs, runs, strict=True):
        if run and (wrong := wrong_in_run(run.record, entry.planned.spec)):
            raise _damaged(run.dir / "run.json", wrong)
    return ResultSet(results, record, runs)


def _damaged(path: Path, why: object) -> UserError:
    return UserError(
        f"damaged: {why}", where=str(path), next="remove its directory and run the study again"
    )


def _decode(path: Path, kind: type[RecordT]) -> RecordT:
    try:
        data = path.read_bytes()
        if _OBEYED.search(data):
            # Results of other people may contain terminal control characters.
            shown = _shown(msgspec.json.decode(data))
            record = build(shown, kind, str_keys=True)
        else:
            record = decode(data, kind)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise UserError(f"cannot read: {error.strerror}", where=str(path)) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path, error) from None
    if record.format != FORMAT:
        raise UserError(
            f"format {record.format}, this isoblk reads {FORMAT}",
            where=str(path),
            next="run the study again",
        )
    return record


def _shown(value: Any) -> Any:
    """Escape the terminal control characters in a decoded document."""
    if isinstance(value, dict):
        return {_shown(key): _shown(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shown(inner) for inner in value]
    if isinstance(value, str):
        return "\n".join("\t".join(map(printable, line.split("\t"))) for line in value.split("\n"))
    return value

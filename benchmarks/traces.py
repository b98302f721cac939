# SPDX-License-Identifier: GPL-2.0-only
"""How fast traces are imported, and in how much memory: docs/guides/traces.md, Speed and memory.

Files of the CSV formats are made first, of a few GB in all. Each is imported by a process of
its own, whose peak memory is taken; the page cache holds the file.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from backports import zstd

MILLION = 1_000_000
PIECE = MILLION  # records written at once

_IMPORT = (
    "import sys; from pathlib import Path; from isoblk.trace.convert import import_trace;"
    "import_trace([Path(sys.argv[1])], Path(sys.argv[2]))"
)

Columns = dict[str, pl.Series]


def msr(numbers: pl.Series, random: np.random.Generator) -> Columns:
    """One file of MSR Cambridge: 47 bytes a line."""
    return {
        "time": 128_166_372_003_061_629 + numbers * 1000,
        "host": pl.Series(["usr"] * len(numbers)),
        "disk": numbers * 0 + 1,
        "op": pl.Series(np.where(random.random(len(numbers)) < 0.6, "Read", "Write")),
        "offset": pl.Series(random.integers(0, 1 << 28, len(numbers)) * 512),
        "size": pl.Series(random.integers(1, 32, len(numbers)) * 512),
        "response": pl.Series(random.integers(100, 99_999, len(numbers))),
    }


def alibaba(numbers: pl.Series, random: np.random.Generator) -> Columns:
    """1,000 devices."""
    return {
        "device": pl.Series(random.integers(0, 1000, len(numbers))),
        "op": pl.Series(np.where(random.random(len(numbers)) < 0.3, "R", "W")),
        "offset": pl.Series(random.integers(0, 1 << 26, len(numbers)) * 4096),
        "size": pl.Series(random.integers(1, 32, len(numbers)) * 4096),
        "time": 1_577_808_000_000_046 + numbers,
    }


def spc(numbers: pl.Series, random: np.random.Generator) -> Columns:
    """24 units."""
    return {
        "asu": pl.Series(random.integers(0, 24, len(numbers))),
        "lba": pl.Series(random.integers(0, 1 << 24, len(numbers))),
        "size": pl.Series(random.integers(1, 32, len(numbers)) * 512),
        "op": pl.Series(np.where(random.random(len(numbers)) < 0.2, "R", "W")),
        "time": (numbers / 1e4).round(6),
    }


def write(
    path: Path,
    columns: Callable[[pl.Series, np.random.Generator], Columns],
    records: int,
    shuffled: bool = False,
) -> None:
    """A trace file; shuffled: pieces of a million in any order, and any order in a piece."""
    random = np.random.default_rng(1)
    starts = np.arange(0, records, PIECE)
    # Every piece then reaches over the whole time, so that all are merged.
    step = len(starts) if shuffled else 1
    with path.open("wb") as file:
        for index, start in enumerate(starts.tolist()):
            numbers = np.arange(PIECE) * step + (index if shuffled else start)
            if shuffled:
                random.shuffle(numbers)
            pl.DataFrame(columns(pl.Series(numbers), random)).write_csv(file, include_header=False)


def measure(source: Path, output: Path) -> tuple[float, float]:
    """Seconds and peak memory in MiB of one import."""
    began = time.perf_counter()
    process = Popen([sys.executable, "-c", _IMPORT, source, output])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return seconds, usage.ru_maxrss / 1024


def rows(directory: Path) -> Iterator[str]:
    """Lines of the table."""
    source, output = directory / "trace.csv", directory / "out.isotrace"
    for name, columns, millions, shuffled in (
        ("SPC", spc, 10, False),
        ("Alibaba, 1,000 volumes", alibaba, 10, False),
        ("MSR Cambridge", msr, 10, False),
        ("MSR Cambridge", msr, 40, False),
        ("MSR Cambridge, in no order at all", msr, 40, True),
    ):
        write(source, columns, millions * MILLION, shuffled)
        yield _row(name, millions, source, output)
    write(source, msr, 10 * MILLION)
    packed = directory / "trace.csv.zst"
    with source.open("rb") as plain, zstd.open(packed, "wb") as file:
        while block := plain.read(1 << 24):
            file.write(block)
    yield _row("MSR Cambridge, zstd", 10, packed, output)


def _row(name: str, millions: int, source: Path, output: Path) -> str:
    seconds, memory = measure(source, output)
    cells = (name, f"{millions} M", f"{millions / seconds:.1f} M", f"{memory:.0f} MiB")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure and print."""
    print(f"{os.cpu_count()} CPUs, {platform.machine()}")
    print("| file | records | records a second | peak memory |", "|---|---|---|---|", sep="\n")
    with TemporaryDirectory() as directory:
        for row in rows(Path(directory)):
            print(row, flush=True)


if __name__ == "__main__":
    main()

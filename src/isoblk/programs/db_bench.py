# SPDX-License-Identifier: GPL-2.0-only
"""db_bench, RocksDB's own benchmark."""

import re
from collections.abc import Iterator, Mapping

from isoblk.programs.base import Program, Task
from isoblk.run.field import suggest
from isoblk.run.options import OptionError
from isoblk.run.record import Figure
from isoblk.run.shell import Statement, To, Word, run
from isoblk.run.spec import Options, OptionValue

_MIB = 1 << 20
# Not an option of db_bench: benchmarks that make the database before the run; "" for none.
_LOAD = "load"
_LOAD_DEFAULT = "fillseq"
_BENCHMARKS = "benchmarks"
# Options that the run sets, and that must not change the loading of a database.
_SET = frozenset({"db", "wal_dir", "use_existing_db", "histogram", "progress_reports"})
# Keeps files in a place that a study may not name, else in /tmp.
_ELSEWHERE = "use_secondary_db"
_OF_THE_RUN = frozenset({_BENCHMARKS, "threads", "duration", "reads", "writes"})

_NAME = re.compile(r"[a-z][A-Za-z0-9_]*", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|true|false", re.ASCII)
# Text options that name no file, no environment and no other options.
_WORDS = frozenset(
    (
        *("blob_compression_type", "blob_db_compression_type", "bottommost_compression_type"),
        *("cache_type", "compaction_fadvice", "compressed_secondary_cache_compression_type"),
        *("compression_type", "expire_style", "max_bytes_for_level_multiplier_additional"),
        *("memtablerep", "merge_operator", "value_size_distribution_type", "wal_compression"),
    )
)
_WORD = re.compile(r"[A-Za-z0-9_,.-]+", re.ASCII)
# Benchmarks on the database alone: excludes "replay" of a file, and "verify" against one.
_NAMES = (
    "acquireload appendrandom approximatesizerandom compact compact0 compact1 compactall "
    "crc32c deleterandom deleteseq fill100K fillbatch fillrandom fillseekseq fillseq "
    "fillseqdeterministic filluniquerandom filluniquerandomdeterministic fillsync flush "
    "getmergeoperands levelstats memstats mergerandom mixgraph multireadrandom "
    "multireadwhilewriting newiterator newiteratorwhilewriting overwrite randomreplacekeys "
    "randomtransaction readmissing readrandom readrandomfast readrandommergerandom "
    "readrandomoperands readrandomsmall readrandomwriterandom readreverse readseq readtocache "
    "readwhilemerging readwhilescanning readwhilewriting resetstats seekrandom "
    "seekrandomwhilemerging seekrandomwhilewriting sstables stats timeseries updaterandom "
    "verifychecksum verifyfilechecksums waitforcompaction xorupdaterandom xxh3 xxhash "
    "xxhash64"
)
_KNOWN = frozenset(_NAMES.split())
# "readrandom : 7.581 micros/op 263832 ops/sec 1.001 seconds 263998 operations; 162.1 MB/s (...)"
_RESULT = re.compile(
    r"(?:^|[\r\n])(?P<name>[a-z]\w*) *: +[\d.]+ micros/op (?P<rate>[\d.]+) ops/sec"
    r"(?:[^;\n]*?(?P<count>\d+) operations)?;?(?: +(?P<mib>[\d.]+) MB/s)?"
)
_HISTOGRAM = re.compile(
    r"^Microseconds per (?P<op>\w+):\nCount: (?P<count>\d+) +Average: (?P<mean>[\d.]+)"
    r".*\nMin: \d+ +Median: [\d.]+ +Max: (?P<max>\d+)\nPercentiles: (?P<places>.*)$",
    re.MULTILINE,
)
_PERCENTILE = re.compile(r"P([\d.]+): ([\d.]+)")


class DbBench(Program):
    """db_bench of RocksDB 7 or newer. Its options are accepted if they are numbers, true or false,
    because text may name a file."""

    name = "db_bench"

    def needs(self, options: Options) -> Mapping[str, str]:  # noqa: D102
        return {"db_bench": "rocksdb-tools"}

    def check(self, options: Options) -> None:  # noqa: D102
        if not options.get(_BENCHMARKS):
            raise OptionError(_BENCHMARKS, "missing", next='as in benchmarks = "readrandom"')
        for name, value in options.items():
            if not _NAME.fullmatch(name):
                raise OptionError(name, "is not the name of an option of db_bench")
            if name in _SET:
                raise OptionError(name, "is set by the run itself", next="remove it")
            if name == _ELSEWHERE:
                raise OptionError(name, "has files outside of the run's", next="remove it")
            if name in (_BENCHMARKS, _LOAD):
                _check_benchmarks(name, value)
            elif not _NUMBER.fullmatch(_text(value)):
                _check_word(name, value)

    def timed(self, options: Options) -> bool:  # noqa: D102
        return "duration" not in options

    def prepare(self, task: Task) -> list[Statement]:  # noqa: D102
        load = _text(task.options.get(_LOAD, _LOAD_DEFAULT))
        if not load:
            return []
        options = {k: v for k, v in task.options.items() if k not in _OF_THE_RUN and k != _LOAD}
        # Otherwise the run would begin with the background work of the loading.
        load = f"{load},flush"
        return [run(*_command(task, {_BENCHMARKS: load, **options}), To("/dev/null"))]

    def command(self, task: Task) -> Statement:  # noqa: D102
        options = {k: v for k, v in task.options.items() if k != _LOAD}
        if self.timed(options):
            # Without the other option, each thread checks the time only every 1,000 operations.
            options["duration"] = task.whole_seconds
            options.setdefault("ops_between_duration_checks", 1)
        if task.options.get(_LOAD, _LOAD_DEFAULT):
            options["use_existing_db"] = 1
        return run(*_command(task, options))

    def parse(self, text: str, task: Task) -> list[Figure]:  # noqa: D102
        figures = list(_figures(text))
        if not figures:
            raise ValueError("no line with micros/op")
        return figures


def _check_benchmarks(name: str, value: OptionValue) -> None:
    if name == _LOAD and value == "":
        return
    for one in _text(value).split(","):
        if one not in _KNOWN:
            raise OptionError(
                name,
                f"{one!r} is not an allowed benchmark of db_bench",
                next=suggest(one, _KNOWN),
            )


def _check_word(name: str, value: OptionValue) -> None:
    if name not in _WORDS:
        raise OptionError(
            name,
            f"takes a number, true or false here, not {value!r}",
            next="text is for: " + ", ".join(sorted(_WORDS)),
        )
    if not _WORD.fullmatch(_text(value)):
        raise OptionError(name, f"{value!r} is not a word")


def _text(value: OptionValue) -> str:
    """Format a value for gflags."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _command(task: Task, options: Options) -> list[Word]:
    given = {"seed": task.seed, **options, "histogram": 1, "progress_reports": 0}
    return ["db_bench", "--db=db", *(f"--{name}={_text(value)}" for name, value in given.items())]


def _figures(text: str) -> Iterator[Figure]:
    """Yield each benchmark's rate, and its latencies by operation from the lines below."""
    results = list(_RESULT.finditer(text))
    ends = [result.start() for result in results[1:]] + [len(text)]
    for result, end in zip(results, ends, strict=True):
        name = result["name"]
        yield Figure(name=f"{name}.rate", value=float(result["rate"]), unit="ops/s")
        if result["mib"]:
            yield Figure(name=f"{name}.throughput", value=float(result["mib"]) * _MIB, unit="B/s")
        if result["count"]:
            yield Figure(name=f"{name}.operations", value=int(result["count"]), unit="ops")
        for histogram in _HISTOGRAM.finditer(text, result.end(), end):
            of = f"{name}.{histogram['op']}.latency"
            yield Figure(name=f"{of}.mean", value=float(histogram["mean"]) * 1e3, unit="ns")
            for place, value in _PERCENTILE.findall(histogram["places"]):
                yield Figure(name=f"{of}.p{place}", value=float(value) * 1e3, unit="ns")
            yield Figure(name=f"{of}.max", value=float(histogram["max"]) * 1e3, unit="ns")

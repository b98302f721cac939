# SPDX-License-Identifier: GPL-2.0-only
"""iozone in its throughput mode: a file per process, written and read in records of one size.

Debian has iozone only in non-free. If it is missing, fio does the same tests: files of the same
size, in the same order, each process with one request in flight. In iozone's mixed workload,
processes with even index read at random and those with odd index write; a single process reads at
random.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

import msgspec

from isoblk.programs.base import Program, Task, read_options, size_of
from isoblk.run.options import OptionError, said
from isoblk.run.record import Figure
from isoblk.run.shell import Statement, Syntax, To, Word, run
from isoblk.run.spec import Options

_KB = 1024
_MIB = 1 << 20
_THREADS = 64
_RECORD = (4 * _KB, 16 * _MIB)  # iozone's own limits

_Test = Literal["write", "read", "random", "mixed"]
# iozone's number of a test; and its figures, by the words of its report, in its order.
_TESTS: dict[str, tuple[int, dict[str, str]]] = {
    "write": (0, {"initial writers": "write", "rewriters": "rewrite"}),
    "read": (1, {"readers": "read", "re-readers": "reread"}),
    "random": (2, {"random readers": "random_read", "random writers": "random_write"}),
    "mixed": (8, {"mixed workload": "mixed"}),
}
_NAMES = {words: name for _, names in _TESTS.values() for words, name in names.items()}
# In iozone's order of tests; fio's rw of an even and of an odd process.
_BY_FIO = {
    "write": ("write", "write"),
    "rewrite": ("write", "write"),
    "read": ("read", "read"),
    "reread": ("read", "read"),
    "random_read": ("randread", "randread"),
    "mixed": ("randread", "randwrite"),
    "random_write": ("randwrite", "randwrite"),
}
_LINE = re.compile(r"^\tChildren see throughput for +\d+ ([a-z -]+?)\s*=\s*([\d.]+) kB/sec", re.M)


class IozoneOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of iozone."""

    record: Annotated[int | str, said("Size of a request.")]
    size: Annotated[int | str, said("Size of each file.")]
    tests: Annotated[tuple[_Test, ...], said("Tests to run.")] = (
        "write",
        "read",
        "random",
        "mixed",
    )
    threads: Annotated[int, said("Number of processes, each with its own file.")] = 1
    direct: Annotated[bool, said("Direct I/O (iozone's -I).")] = True


class Iozone(Program):
    """iozone 3."""

    name = "iozone"
    own_options = IozoneOptions

    def needs(self, options: Options) -> Mapping[str, str]:  # noqa: D102
        return {"iozone": "iozone3"}

    def instead(self, options: Options) -> Mapping[str, str]:  # noqa: D102
        return {"fio": "fio"}

    def check(self, options: Options) -> None:  # noqa: D102
        asked = read_options(options, IozoneOptions)
        record, size = size_of("record", asked.record), size_of("size", asked.size)
        if not _RECORD[0] <= record <= _RECORD[1] or record & (record - 1):
            raise OptionError(
                "record", f"{asked.record!r}", next="allowed: powers of two from 4k to 16m"
            )
        if size % record:
            raise OptionError("size", "not a whole number of records")
        if not 1 <= asked.threads <= _THREADS:
            raise OptionError("threads", f"{asked.threads}", next=f"allowed: 1..{_THREADS}")
        if not asked.tests:
            raise OptionError("tests", "none", next="allowed: " + ", ".join(_TESTS))

    def timed(self, options: Options) -> bool:  # noqa: D102
        return False

    def prepare(self, task: Task) -> list[Statement]:  # noqa: D102
        asked = read_options(task.options, IozoneOptions)
        if "write" in asked.tests:
            return []
        if "fio" in task.found:
            return [run(*_fio(asked, ["write"]), To("/dev/null"))]
        return [run(*_iozone(asked), "-i", 0, To("/dev/null"))]

    def command(self, task: Task) -> Statement:  # noqa: D102
        asked = read_options(task.options, IozoneOptions)
        if "fio" in task.found:
            return run(*_fio(asked, [name for name in _BY_FIO if name in _figures_of(asked)]))
        return run(*_iozone(asked), *(w for test in asked.tests for w in ("-i", _TESTS[test][0])))

    def parse(self, text: str, task: Task) -> list[Figure]:  # noqa: D102
        rates = dict(_fio_rates(text)) if "fio" in task.found else dict(_iozone_rates(text))
        wanted = _figures_of(read_options(task.options, IozoneOptions))
        if missing := [name for name in wanted if name not in rates]:
            raise ValueError(f"no throughput of {', '.join(missing)}")
        return [Figure(name=f"{name}.throughput", value=rates[name], unit="B/s") for name in wanted]


def _figures_of(asked: IozoneOptions) -> list[str]:
    return [name for test in _TESTS if test in asked.tests for name in _TESTS[test][1].values()]


def _iozone(asked: IozoneOptions) -> list[Word]:
    direct = ["-I"] if asked.direct else []
    record, size = (size_of("", value) // _KB for value in (asked.record, asked.size))
    # -w: keep the files for a test of another call.
    return ["iozone", *direct, "-w", "-t", asked.threads, "-s", size, "-r", record]


def _iozone_rates(text: str) -> Iterator[tuple[str, float]]:
    for words, rate in _LINE.findall(text):
        if words in _NAMES:
            yield _NAMES[words], float(rate) * _KB


def _fio(asked: IozoneOptions, tests: Iterable[str]) -> list[Word]:
    """Return one fio command for all tests, because in virtual time each call costs seconds."""
    common = {
        "output-format": "json",
        "clocksource": "clock_gettime",
        "ioengine": "psync",
        "thread": 1,
        "direct": int(asked.direct),
        "bs": size_of("", asked.record),
        "size": size_of("", asked.size),
        # The first test makes the files, not fio before it.
        "create_on_open": 1,
        "fallocate": "none",
    }
    words: list[Word] = ["fio", *(f"--{name}={value}" for name, value in common.items())]
    for test in tests:
        for i in range(asked.threads):
            words += [Syntax.BREAK, f"--name={test}.{i}", f"--filename=iozone.DUMMY.{i}"]
            words += [f"--rw={_BY_FIO[test][i % 2]}", *(["--stonewall"] if i == 0 else [])]
    return words


def _fio_rates(text: str) -> Iterator[tuple[str, float]]:
    """Yield bytes per second of each test, all processes together.

    fio reports a job's time in milliseconds, which is too coarse. The sum of the latencies of its
    sequential requests is used instead.
    """
    # fio may print warnings before the JSON.
    decoded = msgspec.json.decode(text[max(0, text.find("{\n")) :])
    rates: dict[str, float] = {}
    try:
        for job in decoded["jobs"]:
            ops = [job[op] for op in ("read", "write") if job[op]["total_ios"]]
            taken = sum(op["lat_ns"]["mean"] * op["lat_ns"]["N"] for op in ops)
            test = job["jobname"].partition(".")[0]
            rates[test] = rates.get(test, 0) + sum(op["io_bytes"] for op in ops) * 1e9 / taken
    except (KeyError, TypeError, AttributeError, ZeroDivisionError):
        raise ValueError("JSON, but not fio's") from None
    yield from rates.items()

# SPDX-License-Identifier: GPL-2.0-only
"""YCSB on RocksDB. The binding between them is in the repository's java/.

The database is loaded, and its background work is finished, before the run. YCSB has no seed: its
random numbers come from the machine's, which are reproducible in a guest.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from isoblk.programs import ycsb_jars
from isoblk.programs.base import Program, Task, read_options, size_of
from isoblk.run.options import OptionError, said
from isoblk.run.record import Figure, Unit
from isoblk.run.shell import Command, Form, Statement, fill, run
from isoblk.run.spec import Options

# The core workloads of YCSB, and P0's two: A with reads only, or updates only.
_ZIPFIAN = {"requestdistribution": "zipfian"}
_WORKLOADS: dict[str, dict[str, str | float]] = {
    "a": {"readproportion": 0.5, "updateproportion": 0.5, **_ZIPFIAN},
    "b": {"readproportion": 0.95, "updateproportion": 0.05, **_ZIPFIAN},
    "c": {"readproportion": 1, **_ZIPFIAN},
    "d": {"readproportion": 0.95, "insertproportion": 0.05, "requestdistribution": "latest"},
    "e": {"scanproportion": 0.95, "insertproportion": 0.05, "maxscanlength": 100, **_ZIPFIAN},
    "f": {"readproportion": 0.5, "readmodifywriteproportion": 0.5, **_ZIPFIAN},
    "all-read": {"readproportion": 1, **_ZIPFIAN},
    "all-update": {"updateproportion": 1, **_ZIPFIAN},
}
# YCSB's defaults are not 0.
_NOTHING = dict.fromkeys(
    (
        f"{operation}proportion"
        for operation in ("read", "update", "insert", "scan", "readmodifywrite")
    ),
    0,
)

# One thread for garbage collection and one for compilation, both short: in virtual time, a busy
# program costs real time without any gain.
_JAVA = ("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
# RocksDB orders lists by a hash of an address: with randomised addresses no two runs are equal.
_SAME_ADDRESSES = ("setarch", "--addr-no-randomize")
_PERCENTILES = ("50", "95", "99", "99.9", "99.99")
# More operations than it can do in a second. For inserts, YCSB draws keys from the range that so
# many operations would reach, until it finds an existing one, so it must not be much larger.
_MOST_A_SECOND = 1_000_000
_LARGEST = (1 << 31) - 1  # Java's int

_LINE = re.compile(r"^\[([A-Z][A-Z_-]*)\], ([^,\n]+), (\d[\d.E+-]*|NaN)$", re.MULTILINE)
_CLOSING = "CLEANUP"
_LATENCIES = {
    "AverageLatency(us)": "mean",
    **{
        f"{p}{'' if '.' in p else 'th'}PercentileLatency(us)": f"p{p.replace('.', '_')}"
        for p in _PERCENTILES
    },
    "MaxLatency(us)": "max",
}


class _Line(Form):
    # YCSB exits with status 0 even if operations failed.
    LOAD = (
        "{client} > {said} 2>&1 \\\n"
        "  && grep -q {loaded} {said} \\\n"
        "  || { grep Exception {said} >&2; false; }"
    )


class YcsbOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """YCSB's own options, by its names, and RocksDB's."""

    workload: Annotated[
        Literal["a", "b", "c", "d", "e", "f", "all-read", "all-update"],
        said("Letter of a core workload, or a workload of reads only or updates only."),
    ]
    recordcount: Annotated[int, said("Number of loaded records.")] = 100_000
    operationcount: Annotated[
        int, said("Number of operations; 0: as many as fit into the run.")
    ] = 0
    threads: Annotated[int, said("Number of threads.")] = 1
    fieldcount: Annotated[int, said("Fields of a record.")] = 10
    fieldlength: Annotated[int, said("Bytes of a field.")] = 100
    requestdistribution: Annotated[
        Literal["", "uniform", "zipfian", "latest", "hotspot", "sequential"],
        said('Distribution of the keys; "": that of the workload.'),
    ] = ""
    cache: Annotated[int | str, said("Size of RocksDB's block cache.")] = "32m"
    buffer: Annotated[int | str, said("Size of a memtable, and of the files written from it.")] = (
        "64m"
    )
    direct: Annotated[bool, said("Direct I/O for data, but not for the log.")] = True
    sync: Annotated[bool, said("Complete a write when the log is on the disk.")] = False
    jobs: Annotated[int, said("Number of threads for flush and compaction.")] = 2


class Ycsb(Program):
    """YCSB 0.17 on RocksDB 9."""

    name = "ycsb"
    own_options = YcsbOptions

    def needs(self, options: Options) -> Mapping[str, str]:  # noqa: D102
        return {"java": ycsb_jars.PACKAGES["java"], "setarch": "util-linux"}

    def files(self, options: Options) -> Mapping[str, Path]:  # noqa: D102
        return ycsb_jars.files()

    def check(self, options: Options) -> None:  # noqa: D102
        asked = read_options(options, YcsbOptions)
        lowest = {"operationcount": 0}
        for name in asked.__struct_fields__:
            value = getattr(asked, name)
            low = lowest.get(name, 1)
            if type(value) is int and not low <= value <= _LARGEST:
                raise OptionError(name, f"{value}", next=f"allowed: {low}..{_LARGEST}")
        for name in ("cache", "buffer"):
            size_of(name, getattr(asked, name))
        if asked.recordcount < asked.threads:
            raise OptionError("threads", f"{asked.threads}", next="allowed: as many as records")

    def timed(self, options: Options) -> bool:  # noqa: D102
        return not read_options(options, YcsbOptions).operationcount

    def prepare(self, task: Task) -> list[Statement]:  # noqa: D102
        asked = read_options(task.options, YcsbOptions)
        said = f"{task.run}/{task.tenant.name}.load"
        # YCSB needs the number of operations in advance.
        properties: dict[str, str | int] = {
            "operationcount": asked.recordcount,
            "isoblk.settle": "true",
        }
        loaded = f"^.INSERT., Return=OK, {asked.recordcount}$"
        client = _client(task, "-load", properties)
        return [fill(_Line.LOAD, client=client, said=said, loaded=loaded)]

    def command(self, task: Task) -> Statement:  # noqa: D102
        asked = read_options(task.options, YcsbOptions)
        if asked.operationcount:
            return _client(task, "-t", {"operationcount": asked.operationcount})
        seconds = task.whole_seconds
        operations = min(seconds * _MOST_A_SECOND, _LARGEST)
        return _client(task, "-t", {"operationcount": operations, "maxexecutiontime": seconds})

    def parse(self, text: str, task: Task) -> list[Figure]:  # noqa: D102
        return parse(text)


def _client(task: Task, phase: str, properties: Mapping[str, str | int]) -> Command:
    """Return the command of YCSB's client."""
    asked = read_options(task.options, YcsbOptions)
    named = _NOTHING | _WORKLOADS[asked.workload]
    if asked.requestdistribution:
        named["requestdistribution"] = asked.requestdistribution
    named |= {
        "workload": "site.ycsb.workloads.CoreWorkload",
        "recordcount": asked.recordcount,
        "fieldcount": asked.fieldcount,
        "fieldlength": asked.fieldlength,
        "measurementtype": "hdrhistogram",
        "hdrhistogram.percentiles": ",".join(_PERCENTILES),
        # The default looks for the machine's address, and a guest has no network.
        "htrace.tracer.id": "ycsb",
        "isoblk.dir": "db",
        "isoblk.cache": size_of("cache", asked.cache),
        "isoblk.buffer": size_of("buffer", asked.buffer),
        "isoblk.direct": str(asked.direct).lower(),
        "isoblk.sync": str(asked.sync).lower(),
        "isoblk.jobs": asked.jobs,
        **properties,
    }
    files = f"{task.run}/files"
    jars = [f"{files}/{name}" for name in sorted(ycsb_jars.names()) if name.endswith(".jar")]
    return run(
        *(*_SAME_ADDRESSES, *_JAVA, "-Djava.util.secureRandomSeed=true"),
        *(f"-Djava.library.path={files}", "-cp", ":".join(jars), "site.ycsb.Client", phase),
        *("-db", "isoblk.RocksDb", "-threads", asked.threads),
        *(word for name, value in named.items() for word in ("-p", f"{name}={value}")),
    )


def parse(text: str) -> list[Figure]:
    """Parse the output of YCSB's client, with HdrHistogram measurements.

    Figures are "throughput", then for each operation its count and its latencies: "READ.ops",
    "READ.mean", "READ.p99".

    Raises:
        ValueError: no operation was done, or operations failed; with YCSB's reason.
    """
    said: dict[str, dict[str, float]] = {}
    for operation, name, value in _LINE.findall(text):
        said.setdefault(operation, {})[name] = float(value)
    overall = said.pop("OVERALL", {})
    # Closing the database is counted as an operation.
    operations = {name: of for name, of in said.items() if "Operations" in of and name != _CLOSING}
    for operation, of in operations.items():
        for name, count in of.items():
            if name.startswith("Return=") and name != "Return=OK":
                raise ValueError(
                    f"{count:.0f} of {operation} ended with {name.removeprefix('Return=')}"
                    f"{_reason(text)}"
                )
    # For a read-modify-write only the parts have a return code.
    ended = any("Return=OK" in of for of in operations.values())
    if not ended or "Throughput(ops/sec)" not in overall:
        raise ValueError(f"no operation completed{_reason(text)}")
    figures = [_figure("throughput", overall["Throughput(ops/sec)"], "ops/s")]
    for operation, of in sorted(operations.items()):
        try:
            figures.append(_figure(f"{operation}.ops", of["Operations"], "ops"))
            figures += [
                _figure(f"{operation}.{name}", of[key] * 1000, "ns")
                for key, name in _LATENCIES.items()
            ]
        except KeyError as error:
            raise ValueError(f"{operation} without {error.args[0]}") from None
    return figures


def _figure(name: str, value: float, unit: Unit) -> Figure:
    return Figure(name=name, value=value, unit=unit)


def _reason(text: str) -> str:
    """Return the first line about an error, if there is one."""
    match = re.search(r"^.*(?:Exception|Error|RocksDB): .*$", text, re.MULTILINE)
    return f": {match[0].strip()}" if match else ""

# SPDX-License-Identifier: GPL-2.0-only
"""Measure what programs cost in virtual time: CPU time of User Mode Linux, alone on a disk.

A program is run twice, for a short and for a longer time or amount of work; the difference is what
requests cost, the rest its start. Nothing here passes or fails.

    python benchmarks/programs.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from common import SECOND, requests, spec, uml_bench

from isoblk.campaign.execute import Bench, execute, make_job
from isoblk.campaign.installed import find_programs
from isoblk.result.store import Run
from isoblk.run.limits import DEFAULT_WEIGHT
from isoblk.run.spec import (
    Filesystem,
    Options,
    PlannedRun,
    Program,
    RunSpec,
    Tenant,
    VdiskDevice,
    Workload,
)
from isoblk.study.model import Expansion, Study

SIZE = 1 << 30
DEVICE = VdiskDevice(size=SIZE, store="memory", read_ns=100_000, write_ns=100_000)
UNCACHED: Options = {
    "benchmarks": "readrandom",
    "num": 20_000,
    "use_direct_reads": True,
    "cache_size": 65_536,
}
# What a program does, less of it and more: seconds, and options.
LOADS: dict[str, tuple[Program, tuple[int, Options], tuple[int, Options]]] = {
    "dd, 4 KiB direct writes": (
        "dd",
        (1, {"bs": "4k", "count": 1_000}),
        (3, {"bs": "4k", "count": 21_000}),
    ),
    "sysbench, 4 KiB random reads": (
        "sysbench",
        (1, {"mode": "rndrd", "size": "64m", "bs": "4k"}),
        (3, {"mode": "rndrd", "size": "64m", "bs": "4k"}),
    ),
    "db_bench, readrandom": (
        "db_bench",
        (1, UNCACHED),
        (3, UNCACHED),
    ),
    "iozone (or fio in its place), 4 KiB": (
        "iozone",
        (60, {"record": "4k", "size": "1m", "tests": ["write"]}),
        (60, {"record": "4k", "size": "41m", "tests": ["write"]}),
    ),
    "fio, 4 KiB random reads, iodepth 1": ("fio", (1, {}), (3, {})),
    "blkload, the same": ("blkload", (1, {}), (30, {})),
}


def main() -> None:
    """Print the table."""
    with uml_bench() as bench:
        print("| load | to start and end | a request |")
        print("|---|---|---|")
        for name, (program, less, more) in LOADS.items():
            short, long = _run(program, less, bench), _run(program, more, bench)
            cost = (long.record.cpu_s - short.record.cpu_s) / (requests(long) - requests(short))
            start = short.record.cpu_s - cost * requests(short)
            print(f"| {name} | {start:.1f} s | {cost * 1e6:.1f} us |")


def _run(program: Program, how_much: tuple[int, Options], bench: Bench) -> Run:
    seconds, options = how_much
    load = Workload(program=program, options=options)
    of: RunSpec = msgspec.structs.replace(
        spec("none", DEVICE, 1),
        tenants=(Tenant(name="t", cgroup="t", weight=DEFAULT_WEIGHT, workload=load),),
        runtime_ns=seconds * SECOND,
        window_ms=1000,
        filesystem=None
        if program in ("fio", "blkload")
        else Filesystem(type="ext4", offset=0, size=SIZE),
    )
    study = Study(name="programs", device="fast", tenant=[])
    (planned,) = find_programs(Expansion(study=study, runs=(PlannedRun(spec=of),))).runs
    job = make_job(planned.spec, bench.kernel.key, bench.modules_key)
    with TemporaryDirectory() as results:
        return execute(job, bench, Path(results))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only
"""Count what BFQ decides in the runs of studies/bfq-idling.toml: Table 2 of P2.

BFQ says what bfq_select_queue() does in messages to blktrace, which ftrace's `blk` tracer takes.
The runs last 0.1 s, without warm-up. The tracer's clock is a counter, for reading the kernel's
would take virtual time.

    python benchmarks/bfq_decisions.py

Decisions, by their messages:
    served  "returned this queue": a queue with a request to send
    waited  "no queue returned": the queue in service is kept, or there is none at all, and
            nothing is sent
    new     "checking new queue": another queue is put in service

P2 counts the labels new_queue and keep_queue of the same function; each decision passes
keep_queue, so its "keep queue" is served and waited together.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from common import uml_bench

from isoblk.campaign.execute import Bench
from isoblk.plan.plan import RUN_DIR, make_plan
from isoblk.programs import blkload
from isoblk.run.spec import RunSpec
from isoblk.study.expand import expand
from isoblk.study.load import load_study

STUDY = Path(__file__).resolve().parents[1] / "studies" / "bfq-idling.toml"
RUNTIME_NS = 100_000_000
BUFFER_KB = 300_000  # of messages, for RUNTIME_NS
MEMORY_MIB = 1024
JOBS = 4  # of a run, as in P2
MESSAGES = {
    "served": "select_queue: returned this queue",
    "waited": "select_queue: no queue returned",
    "new": "select_queue: checking new queue",
}

_TRACING = "/sys/kernel/tracing"
_TRACE = "/sys/block/disk0/trace"
_BEFORE = f"""\
mount -t tracefs tracefs {_TRACING}
echo counter > {_TRACING}/trace_clock
echo {BUFFER_KB} > {_TRACING}/buffer_size_kb
echo blk > {_TRACING}/current_tracer
echo 1 > {_TRACE}/enable
echo notify > {_TRACE}/act_mask
"""
_AFTER = f"""
echo 0 > {_TRACING}/tracing_on
grep overrun: {_TRACING}/per_cpu/cpu0/stats > {RUN_DIR}/lost
""" + "".join(
    f"grep -c '{message}' {_TRACING}/trace > {RUN_DIR}/{name} || true\n"
    for name, message in MESSAGES.items()
)


@dataclass(frozen=True)
class Decisions:
    """What BFQ decided, and how many requests ended meanwhile."""

    served: int
    waited: int
    new: int
    requests: int


def count(spec: RunSpec, bench: Bench) -> Decisions:
    """Make a run with BFQ's messages counted."""
    short = msgspec.structs.replace(spec, warmup_ns=0, runtime_ns=RUNTIME_NS)
    plan = make_plan(short)
    start = f"echo 1 > {blkload.ROOT}/start"
    wait = f"cat {blkload.ROOT}/wait > /dev/null"
    text = plan.text.replace(start, _BEFORE + start).replace(wait, wait + _AFTER)
    with TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "plan.sh").write_text(text)
        modules = [bench.modules[module] for module in plan.modules]
        bench.machine.run(directory, modules, seed=short.seed, memory_mib=MEMORY_MIB)
        if any(int(lost.split(":")[1]) for lost in (directory / "lost").read_text().splitlines()):
            raise RuntimeError(f"{BUFFER_KB} KiB are too few for the messages")
        counts = {name: int((directory / name).read_text()) for name in MESSAGES}
        results = (directory / "results").read_text()
    return Decisions(
        **counts, requests=sum(map(int, re.findall(r"^op .* ios (\d+)", results, re.MULTILINE)))
    )


def table(bench: Bench) -> Iterator[str]:
    """A line for each point of the study under BFQ."""
    keys = ("device", "tenant.t.count", "tenant.t.numjobs", "iosched.bfq.slice_idle")
    heads = ("device", "cgroups", "jobs in each", "`slice_idle`", "requests", *MESSAGES)
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for planned in expand(load_study(STUDY)[0]).runs:
        spec = planned.spec
        jobs = sum(tenant.workload.numjobs for tenant in spec.tenants)
        if spec.kind == "share" and spec.scheduler.name == "bfq" and jobs == JOBS:
            found = count(spec, bench)
            numbers = (found.requests, found.served, found.waited, found.new)
            cells = (*(spec.point[key] for key in keys), *(f"{number:,}" for number in numbers))
            yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    with uml_bench() as bench:
        for line in table(bench):
            print(line, flush=True)


if __name__ == "__main__":
    main()

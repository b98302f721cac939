# SPDX-License-Identifier: GPL-2.0-only
"""Count the instructions that a request costs under each scheduler.

The icount machine with Debian's kernel: an instruction takes a nanosecond, so the measured time
divided by the requests is the instructions of one request, as long as a processor always has work.
Counted are the load generator, block layer, scheduler, null_blk and interrupts. The figures are
equal on every machine that has the same QEMU, kernel and compiler.

Two loads, both of 4 KiB random reads:
- saturated: four tenants of iodepth 32; the disk takes 100 us for a request and ends each by an
  interrupt of its own. The processors are the limit.
- alone: one tenant of iodepth 1; the disk takes no time, so that no processor is ever idle.

    python benchmarks/instructions.py                the table of docs/findings/speed.md
    python benchmarks/instructions.py --only TEXT    the tables whose name has this; not written
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from common import write_table
from smp import OURS

from isoblk.campaign.execute import Bench, make_bench
from isoblk.kernel import DEFAULT_VERSION, hold, stock
from isoblk.machine.icount import Icount
from isoblk.plan.plan import prologue
from isoblk.programs.blkload import RESULTS, parse_results
from isoblk.run.shell import render

BASE = "none"
# io.cost last: once a disk had it, it stays in every request's way, even switched off.
SCHEDULERS = (BASE, "mq-deadline", "kyber", "bfq", *OURS, "io.cost")
LOADS = ("saturated", "alone")
CPUS = (1, 4)
QUEUES = (1, 16)
MEMORY_MIB = 512
TIME_LIMIT_S = 3600
# Of io.cost's model: of a disk so fast that requests are charged, and none is throttled.
MODEL = " ".join(
    f"{name}={10**12 if name.endswith('bps') else 10**9}"
    for name in ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
)
# The figures of a saturated load follow the decisions of a scheduler, which the least change moves.
# Of 0.3 s those of kyber-fair differ by 3 %, of 1 s by 1 %.
SCRIPT = """
cd /sys/kernel/config
echo +io > /sys/fs/cgroup/cgroup.subtree_control
for load in {loads}; do
	case $load in
	saturated) tenants="1 2 3 4" iodepth=32 irqmode=2 ramp=300ms runtime=1s ;;
	alone) tenants=1 iodepth=1 irqmode=0 ramp=100ms runtime=300ms ;;
	esac
	mkdir nullb/$load
	for setting in size=4096 queue_mode=2 irqmode=$irqmode completion_nsec=100000 \\
		hw_queue_depth=256 submit_queues={queues} poll_queues=0 power=1
	do
		echo ${{setting#*=}} > nullb/$load/${{setting%%=*}}
	done
	[ "$(ls /sys/block/$load/mq | wc -l)" = {queues} ]
	disk=$(cat /sys/block/$load/dev)
	for scheduler in {schedulers}; do
		elevator=$scheduler
		if [ $scheduler = io.cost ]; then
			elevator=none
			echo "$disk ctrl=user model=linear {model}" > /sys/fs/cgroup/io.cost.model
			echo "$disk enable=1 ctrl=user min=100 max=100" > /sys/fs/cgroup/io.cost.qos
		fi
		echo $elevator > /sys/block/$load/queue/scheduler
		for i in $tenants; do
			mkdir /sys/fs/cgroup/t$i blkload/t$i
			for setting in device=/dev/$load cgroup=/t$i rw=randread bs=4096 randseed=$i \\
				iodepth=$iodepth ramp_time=$ramp runtime=$runtime window=100
			do
				echo ${{setting#*=}} > blkload/t$i/${{setting%%=*}}
			done
		done
		left=/run/isoblk/$load-$scheduler
		echo 1 > blkload/start
		grep -E '^now|idle_sleeptime' /proc/timer_list > $left-began
		cat blkload/wait > /dev/null
		grep idle_sleeptime /proc/timer_list > $left-ended
		cat {results} > $left
		for i in $tenants; do
			rmdir blkload/t$i /sys/fs/cgroup/t$i
		done
		[ $scheduler != io.cost ] || echo "$disk enable=0" > /sys/fs/cgroup/io.cost.qos
	done
done
"""


@dataclass(frozen=True)
class Shape:
    """A guest and its disk. queues: hardware queues."""

    cpus: int
    queues: int

    @property
    def text(self) -> str:
        """How the table calls it."""
        named = ((self.cpus, "CPU"), (self.queues, "queue"))
        return ", ".join(f"{number} {what}{'s' * (number > 1)}" for number, what in named)


@dataclass(frozen=True)
class Cost:
    """What a request cost. instructions: of one. idle: the part of the time in which the first
    processor was idle; the figure of one processor counts it as instructions."""

    instructions: float
    idle: float


def run(shape: Shape, bench: Bench, files: Path) -> None:
    """Make all runs in one boot. Each leaves LOAD-SCHEDULER, -began and -ended in `files`."""
    modules = ("null_blk", "blkload", "isoblk_share", *(f"{name}-iosched" for name in OURS))
    # null_blk has no more hardware queues than the kernel may ever have processors.
    possible = max(shape.cpus, shape.queues)
    machine = Icount(bench.kernel, time_limit_s=TIME_LIMIT_S, cpus=shape.cpus, possible=possible)
    script = SCRIPT.format(
        loads=" ".join(LOADS),
        queues=shape.queues,
        schedulers=" ".join(SCHEDULERS),
        model=MODEL,
        results=RESULTS,
    )
    (files / "plan.sh").write_text(render(prologue(modules, "v2", machine.tier)) + script)
    machine.run(files, bench.module_files(modules), seed=1, memory_mib=MEMORY_MIB)


def cost(files: Path, load: str, scheduler: str) -> Cost:
    """What a run left, counted."""
    left = files / f"{load}-{scheduler}"
    tenants = list(parse_results(left.read_text()).values())
    begin, end = tenants[0].measured_ns
    requests = sum(op.meas_ios for tenant in tenants for op in tenant.ops.values())
    began = Path(f"{left}-began").read_text()
    idle_ns = _idle_ns(Path(f"{left}-ended").read_text()) - _idle_ns(began)
    # The load begins some time after it is started, and the processor is idle until then.
    now = re.search(r"^now at (\d+)", began, re.MULTILINE)
    assert now is not None
    assert tenants[0].start_ns is not None
    idle_ns -= tenants[0].start_ns - int(now[1])
    return Cost((end - begin) / requests, idle_ns / end)


def _idle_ns(timer_list: str) -> int:
    """How long the first processor was idle since it booted."""
    found = re.search(r"idle_sleeptime *: (\d+)", timer_list)
    assert found is not None
    return int(found[1])


def rows(bench: Bench, only: str) -> Iterator[str]:
    """The tables, a row for each scheduler. only: of shapes whose text has this in it."""
    for shape in (Shape(cpus, queues) for cpus in CPUS for queues in QUEUES):
        if only not in shape.text:
            continue
        with TemporaryDirectory() as files:
            run(shape, bench, Path(files))
            costs = {
                (load, name): cost(Path(files), load, name) for load in LOADS for name in SCHEDULERS
            }
        idle = shape.cpus == 1
        yield f"| {shape.text} | saturated | above none |{' idle |' * idle} alone | above none |"
        yield "|---|---|---|---|---|" + "---|" * idle
        for name in SCHEDULERS:
            cells = []
            for load in LOADS:
                found = costs[load, name]
                more = found.instructions - costs[load, BASE].instructions
                cells += [f"{found.instructions:,.0f}", f"{more:,.0f}" if name != BASE else ""]
                if idle and load == LOADS[0]:
                    cells.append(f"{found.idle:.0%}")
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""


def main() -> None:
    """Measure, print, and put the tables into docs/findings/speed.md."""
    parser = argparse.ArgumentParser(description="instructions a request, by scheduler")
    parser.add_argument("--only", default="", help="tables whose name has this; not written")
    given = parser.parse_args()
    lines = []
    kernel = stock.find(DEFAULT_VERSION)
    with hold(kernel):
        bench = make_bench(Icount(kernel, time_limit_s=TIME_LIMIT_S), kernel)
        for line in rows(bench, given.only):
            lines.append(line)
            print(line, flush=True)
        if not given.only:
            write_table("instructions", bench, lines[:-1])


if __name__ == "__main__":
    main()

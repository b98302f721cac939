# SPDX-License-Identifier: GPL-2.0-only
"""Measure what a request costs under each scheduler on several real processors.

A guest of User Mode Linux with several processors, in real time, and a disk that takes no time
(null_blk, irqmode 0): what remains is the work of the block layer and of the scheduler, and their
locks. Last a disk that takes 100 us, for as many requests at once as there are (irqmode 2): what a
request takes longer it waits for a processor, and nobody should be held back for that. In one boot
the schedulers are run in turn, ROUNDS times, and each is compared with kyber of the same round:
what else the machine does then weighs on all. Nothing here passes or fails.

    python benchmarks/smp.py            the table of docs/findings/speed.md
    python benchmarks/smp.py --locks    the locks that were waited for, on the debug kernel
"""

import argparse
import os
import re
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from common import write_table

from isoblk.campaign.execute import Bench, make_bench
from isoblk.kernel import find, hold, host_library
from isoblk.machine.smp import Smp
from isoblk.plan.plan import prologue
from isoblk.run.shell import render
from isoblk.run.tier import SMP

ROUNDS = 5
BASE = "kyber"
OURS = ("isoblk", "kyber-fair", "feedbac")
SCHEDULERS = ("none", "mq-deadline", "bfq", BASE, *OURS)
WANTED = {"isoblk": 0.95, "kyber-fair": 0.9, "feedbac": 0.9}
WANTED_CROWDED = {"isoblk": 0.9, "kyber-fair": 0.8, "feedbac": 0.8}
CORES = os.cpu_count() or 1
MOST_CPUS = 16
MEMORY_MIB = 512
# Of a fast SSD; below it is what a processor that is woken takes.
TAKES_US = 100
# Cgroups count from the first request on, so ramp_time is measured too.
SCRIPT = """
cd /sys/kernel/config
mkdir nullb/disk0
for setting in size=4096 queue_mode=2 irqmode={irqmode} completion_nsec={ns} hw_queue_depth=256 \\
	submit_queues={queues} power=1
do
	echo ${{setting#*=}} > nullb/disk0/${{setting%%=*}}
done
echo +io > /sys/fs/cgroup/cgroup.subtree_control
for round in $(seq {rounds}); do
	for scheduler in {schedulers}; do
		echo $scheduler > /sys/block/disk0/queue/scheduler
		for i in $(seq {tenants}); do
			mkdir /sys/fs/cgroup/t$i blkload/t$i
			for setting in device=/dev/disk0 cgroup=/t$i rw=randread bs=4096 iodepth=32 \\
				randseed=$i ramp_time=200ms runtime=500ms window=100
			do
				echo ${{setting#*=}} > blkload/t$i/${{setting%%=*}}
			done
		done
		{before}
		echo 1 > blkload/start
		cat blkload/wait > /dev/null
		{after}
		for i in $(seq {tenants}); do
			read -r counted < /sys/fs/cgroup/t$i/io.stat
			echo "$round $scheduler $counted" >> /run/isoblk/counted
			rmdir blkload/t$i /sys/fs/cgroup/t$i
		done
	done
done
"""
LOCKS_BEFORE = "echo 0 > /proc/lock_stat; echo 1 > /proc/sys/kernel/lock_stat"
LOCKS_AFTER = "echo 0 > /proc/sys/kernel/lock_stat; cat /proc/lock_stat > /run/isoblk/$scheduler"
MEASURED_S = 0.7


@dataclass(frozen=True)
class Shape:
    """A guest and its load. queues: hardware queues of the disk. takes_us: a request, 0: no
    time."""

    cpus: int
    tenants: int
    queues: int
    takes_us: int = 0

    @property
    def text(self) -> str:
        """How the table calls it."""
        many = f"{self.cpus} CPU{'s' * (self.cpus > 1)}"
        load = f"{self.tenants} tenant{'s' * (self.tenants > 1)}"
        disk = f"{self.queues} queue{'s' * (self.queues > 1)}"
        return f"{many}, {load}, {disk}" + f", {self.takes_us} us" * (self.takes_us > 0)


def shapes() -> Iterator[Shape]:
    """From one processor to all that the host has, from one hardware queue to 16; then twice as
    many processors as the host has cores; last a disk that takes time, with as many and with
    twice as many."""
    cpus = 1
    while cpus <= min(CORES, MOST_CPUS):
        yield Shape(cpus, cpus, 1)
        if cpus > 1:
            yield Shape(cpus, 2 * cpus, 1)
            yield Shape(cpus, cpus, cpus)
        yield Shape(cpus, cpus, 16)
        cpus *= 2
    crowded = min(2 * CORES, MOST_CPUS)
    yield Shape(crowded, crowded, 1)
    yield Shape(crowded, crowded, crowded)
    for cpus in (min(CORES, MOST_CPUS), crowded):
        yield Shape(cpus, cpus, cpus, TAKES_US)


def run(shape: Shape, bench: Bench, files: Path, *, rounds: int, locks: bool = False) -> None:
    """One boot; `counted` and, for locks, one file a scheduler are left in `files`."""
    modules = ("null_blk", "blkload", "isoblk_share", *(f"{name}-iosched" for name in OURS))
    script = SCRIPT.format(
        queues=shape.queues,
        irqmode=2 if shape.takes_us else 0,
        ns=shape.takes_us * 1000,
        tenants=shape.tenants,
        rounds=rounds,
        schedulers=" ".join(SCHEDULERS),
        before=LOCKS_BEFORE if locks else "",
        after=LOCKS_AFTER if locks else "",
    )
    (files / "plan.sh").write_text(render(prologue(modules, "v2", SMP)) + script)
    library = host_library(bench.kernel)
    Smp(bench.kernel, library, time_limit_s=1800, cpus=shape.cpus).run(
        files, [bench.modules[name] for name in modules], seed=1, memory_mib=MEMORY_MIB
    )


def rates(files: Path) -> dict[str, list[float]]:
    """Requests a second by scheduler, one a round."""
    found: dict[tuple[int, str], int] = {}
    for line in (files / "counted").read_text().splitlines():
        number, scheduler, *_ = line.split()
        ios = re.search(r"\brios=(\d+)", line)
        at = (int(number), scheduler)
        found[at] = found.get(at, 0) + (int(ios[1]) if ios else 0)
    return {
        name: [found[at] / MEASURED_S for at in sorted(found) if at[1] == name]
        for name in SCHEDULERS
    }


def rows(bench: Bench, rounds: int, only: str) -> Iterator[str]:
    """The table, a row a shape and scheduler. only: of shapes whose text has this in it."""
    for shape in shapes():
        if only not in shape.text:
            continue
        with TemporaryDirectory() as files:
            run(shape, bench, Path(files), rounds=rounds)
            found = rates(Path(files))
        busy = min(shape.cpus, CORES, shape.tenants)
        wanted = WANTED_CROWDED if shape.cpus > CORES else WANTED
        yield f"| {shape.text} | requests/s | CPU a request | beside kyber | rounds | wanted |"
        yield "|---|---|---|---|---|---|"
        for name, each in found.items():
            ratios = [one / base for one, base in zip(each, found[BASE], strict=True)]
            rate = statistics.median(each)
            least = f"at least {wanted[name]}" if name in wanted else ""
            yield (
                f"| {name} | {rate / 1000:,.0f} K | {busy / rate * 1e9:,.0f} ns "
                f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} "
                f"| {least} |"
            )
        yield ""


# Of a line of /proc/lock_stat: the lock, how often it bounced while waited for, how often it was
# waited for, and after four times (of a clock that ticks too rarely here) how often it was taken.
_LOCK = re.compile(r"^ *(\S.*): +\d+ +(\d+) +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +\d+ +(\d+) ", re.M)


def contended(text: str, most: int) -> Sequence[tuple[str, int, int]]:
    """The locks that were waited for most: name, waits, how often taken."""
    found = [(name, int(waits), int(taken)) for name, waits, taken in _LOCK.findall(text)]
    return sorted((one for one in found if one[1]), key=lambda one: -one[1])[:most]


def lock_rows(bench: Bench) -> Iterator[str]:
    """The three locks that each scheduler waits for most."""
    shape = Shape(min(CORES, MOST_CPUS), 2 * min(CORES, MOST_CPUS), 1)
    with TemporaryDirectory() as files:
        run(shape, bench, Path(files), rounds=1, locks=True)
        total = {name: sum(each) * MEASURED_S for name, each in rates(Path(files)).items()}
        yield f"| {shape.text} | lock | taken per request | waits per 1,000 requests |"
        yield "|---|---|---|---|"
        for name in SCHEDULERS:
            for lock, waits, taken in contended((Path(files) / name).read_text(), 3):
                each = total[name]
                yield f"| {name} | `{lock}` | {taken / each:.2f} | {waits / each * 1000:.1f} |"


@contextmanager
def smp_bench(debug: bool) -> Iterator[Bench]:
    """The smp machine with its newest kernel."""
    kernel = find(None, debug, "um-smp")
    with hold(kernel):
        yield make_bench(Smp(kernel, host_library(kernel), time_limit_s=1800), kernel)


def main() -> None:
    """Measure, print, and put the tables into docs/findings/speed.md."""
    parser = argparse.ArgumentParser(description="requests a second on real processors")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--locks", action="store_true", help="the contended locks instead")
    parser.add_argument("--only", default="", help="tables whose name has this; not written")
    given = parser.parse_args()
    lines = []
    with smp_bench(given.locks) as bench:
        for line in lock_rows(bench) if given.locks else rows(bench, given.rounds, given.only):
            lines.append(line)
            print(line, flush=True)
        # Each table ends with an empty line; the page has one of its own.
        if given.only:
            return
        write_table("locks" if given.locks else "smp", bench, lines if lines[-1] else lines[:-1])


if __name__ == "__main__":
    main()

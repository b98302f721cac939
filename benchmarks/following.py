# SPDX-License-Identifier: GPL-2.0-only
"""What follow.py runs where the cgroups are: changes them, and looks when the mirror has it."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from isoblk.weights import cgroup, follow, mirror

PARENTS = 50
IDLE_SECONDS = 10.0
CHURN_SECONDS = 10.0
CHURN_A_SECOND = 200
# Cgroups are taken in an order that jumps about; who comes again has another weight.
_PRIME = 7919


@dataclass(frozen=True)
class Measured:
    """What was found.

    Attributes:
        cgroups: that there were. changes: that were made.
        began_s: wall seconds from the start of the process until it had looked at all.
        median_us, p99_us, worst_us: from a write's beginning until its mirror can be read.
        cpu_us: CPU time for each change. idle: CPUs, with nothing changed.
        churn_a_second: cgroups that came and went. churn: CPUs meanwhile.
        resident_mib: memory of the process.
    """

    cgroups: int
    changes: int
    began_s: float
    median_us: float
    p99_us: float
    worst_us: float
    cpu_us: float
    idle: float
    churn_a_second: float
    churn: float
    resident_mib: float


def measure(
    root: Path, count: int, changes: int, *, stands: bool, hierarchy: Path | None = None
) -> Measured:
    """Make cgroups below root, follow them, change and remove them.

    Args:
        hierarchy: where it is mounted, if not at root.
    """
    source = "cgroup.max.depth" if stands else cgroup.IO_WEIGHT
    mirror_of = "cgroup.max.descendants" if stands else cgroup.OUR_WEIGHT
    places = list(_make(root, count, stands))
    began = time.monotonic()
    command = ["-m", "isoblk", "weights", "follow"]
    if stands:
        command = [__file__, str(hierarchy or root), "--agent"]
    agent = subprocess.Popen(
        [sys.executable, "-B", *command], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert agent.stdout is not None
        assert agent.stdout.readline().startswith("following")
        began_s = time.monotonic() - began
        before = _cpu(agent.pid)
        late = sorted(
            _change(places[number * _PRIME % len(places)], source, mirror_of, 101 + number % 997)
            for number in range(changes)
        )
        each = (_cpu(agent.pid) - before) / changes
        idle = _during(agent.pid, lambda: time.sleep(IDLE_SECONDS))
        came = 0
        start = time.monotonic()
        before = _cpu(agent.pid)
        while (passed := time.monotonic() - start) < CHURN_SECONDS:
            _come_and_go(root / "p0" / f"n{came}", source)
            came += 1
            time.sleep(max(0.0, came / CHURN_A_SECOND - passed))
        churn = (_cpu(agent.pid) - before) / passed
        return Measured(
            count,
            changes,
            began_s,
            median(late) * 1e6,
            late[int(len(late) * 0.99)] * 1e6,
            late[-1] * 1e6,
            each * 1e6,
            idle / IDLE_SECONDS,
            came / passed,
            churn,
            _resident(agent.pid),
        )
    finally:
        agent.send_signal(signal.SIGTERM)
        agent.wait()


def _make(root: Path, count: int, stands: bool) -> Iterator[Path]:
    for number in range(PARENTS):
        parent = root / f"p{number}"
        parent.mkdir()
        if not stands:
            (parent / cgroup.CHILDREN).write_text("+io")
        for child in range(count // PARENTS):
            place = parent / f"c{child}"
            place.mkdir()
            yield place


def _change(place: Path, source: str, mirror_of: str, weight: int) -> float:
    """Seconds from the write to its mirror."""
    target = os.open(place / mirror_of, os.O_RDONLY)
    file = os.open(place / source, os.O_WRONLY)
    try:
        wanted = str(weight).encode()
        start = time.monotonic()
        os.write(file, wanted)
        while os.pread(target, 64, 0).split()[-1] != wanted:
            if time.monotonic() - start > 60:
                raise SystemExit(f"follow: {place}: {weight} was not mirrored within a minute")
            time.sleep(0)
        return time.monotonic() - start
    finally:
        os.close(file)
        os.close(target)


def _come_and_go(place: Path, source: str) -> None:
    """What a container runtime does with a cgroup, as far as the agent sees it."""
    place.mkdir()
    (place / source).write_text("300")
    (place / "cgroup.freeze").write_text("0")
    (place / "cgroup.max.depth").write_text("7")
    place.rmdir()


def _cpu(pid: int) -> float:
    """CPU seconds of a process."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _during(pid: int, what: Callable[[], None]) -> float:
    before = _cpu(pid)
    what()
    return _cpu(pid) - before


def _resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def _agent(root: Path) -> None:
    """Follow, as the command does, with the other files."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    names = (b"cgroup.max.depth", b"cgroup.max.descendants")
    for module, name, value in (
        (cgroup, "IO_WEIGHT", names[0].decode()),
        (cgroup, "OUR_WEIGHT", names[1].decode()),
        (follow, "_WEIGHTS", names),
        (mirror.Change, "text", property(lambda change: str(change.weight or "max"))),
    ):
        setattr(module, name, value)
    with suppress(KeyboardInterrupt):
        follow.run(root, print, lambda count: print(f"following {count}", flush=True))


def main() -> None:
    """Follow below a mount, with the other files; or measure, and print it as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--agent", action="store_true")
    parser.add_argument("--cgroups", type=int, default=0)
    parser.add_argument("--changes", type=int, default=0)
    options = parser.parse_args()
    if options.agent:
        _agent(options.root)
    else:
        found = measure(options.root, options.cgroups, options.changes, stands=False)
        print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only
"""Tenants that were running before: isoblk weighs and measures them, and leaves them as they were,
their disk in use all the while."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isoblk.analysis.metrics import analyse
from isoblk.machine import system
from isoblk.result.store import read_results
from tests.host.conftest import Machine

STUDY = """\
name = "running"
device = "fast"

[run]
warmup = "300ms"
runtime = "1500ms"

[[tenant]]
name = "web"
workload = "running"
cgroup = "/isoblktest/web"
weight = 300

[[tenant]]
name = "db"
workload = "running"
cgroup = "pid:{pid}"

[matrix]
scheduler = ["{scheduler}"]

[iosched.bfq]
low_latency = 0
"""
DEADLINE_S = 60


class Running:
    """Two programs that read a disk, each in a cgroup of its own."""

    def __init__(self, top: Path, device: str) -> None:
        self.device = device
        self.top = top
        self.programs = {name: self._start(top / name) for name in ("web", "db")}

    def _start(self, group: Path) -> subprocess.Popen[bytes]:
        group.mkdir(parents=True)
        words = (
            f"fio --name=load --filename={self.device} --direct=1 --ioengine=libaio --thread"
            " --rw=randread --bs=256k --iodepth=8 --time_based --runtime=1h --output=/dev/null"
        )
        return subprocess.Popen(
            ["sh", "-c", f"echo 0 > {group}/cgroup.procs && exec {words}"],
            stdout=subprocess.DEVNULL,
        )

    def weights(self) -> dict[str, str]:
        """Of all their cgroups: file -> content."""
        return {str(path): path.read_text() for path in self.top.rglob("*.weight")}

    def stop(self) -> None:
        for program in self.programs.values():
            program.kill()
            program.wait()
        for group in (*(self.top / name for name in self.programs), self.top):
            group.rmdir()


@pytest.fixture
def running(machine: Machine, loop: Callable[[], str]) -> Iterator[Running]:
    if "bfq" not in system.run_tool("sh", "-c", "cat /sys/block/*/queue/scheduler"):
        pytest.skip("the kernel has no BFQ")
    made = Running(machine.hierarchy / "isoblktest", loop())
    yield made
    made.stop()


def _words(machine: Machine, running: Running, scheduler: str) -> tuple[str, ...]:
    path = machine.work / "study.toml"
    path.write_text(STUDY.format(pid=running.programs["db"].pid, scheduler=scheduler))
    return ("run", str(path), "--machine", "host", "--device", running.device)


def test_running_tenants_are_weighed_measured_and_left_as_they_were(
    machine: Machine, running: Running
) -> None:
    queue = Path("/sys/block") / Path(running.device).name / "queue/scheduler"
    before = (machine.condition(), queue.read_text(), running.weights())
    done = machine.isoblk(*_words(machine, running, "bfq"))
    assert done.returncode == 0, done.stderr
    assert (machine.condition(), queue.read_text(), running.weights()) == before
    assert all(program.poll() is None for program in running.programs.values())
    results = read_results(machine.work / "results/running-host")
    (share,) = analyse(results).points
    (view,) = share.runs
    assert view.run is not None
    assert view.run.record.status == "valid"
    weights = {
        knob.path.split("/")[-2]: knob.got
        for knob in view.run.record.knobs
        if "weight" in knob.path
    }
    assert weights["web"].split()[-1] == "300"
    assert weights["db"].split()[-1] == "100"
    (metrics,) = share.valid
    assert [tenant.weight_share for tenant in metrics.tenants] == pytest.approx([0.75, 0.25])
    assert all(tenant.share > 0 for tenant in metrics.tenants)
    assert metrics.windows.count == 15
    assert sum(total > 0 for total in metrics.windows.totals()) >= 10


@pytest.mark.long
def test_without_a_policy_that_counts_they_are_counted_all_the_same(
    machine: Machine, running: Running
) -> None:
    before = machine.condition()
    done = machine.isoblk(*_words(machine, running, "mq-deadline"))
    assert done.returncode == 0, done.stderr
    assert machine.condition() == before
    limits = [path.read_text() for path in running.top.rglob("*throttle.read_bps_device")]
    assert set(limits) <= {""}


@pytest.mark.long
def test_killed_it_leaves_their_weights_as_they_were_after_restore(
    machine: Machine, running: Running
) -> None:
    before = (machine.condition(), running.weights())
    words = _words(machine, running, "bfq")
    study = machine.work / "study.toml"
    study.write_text(study.read_text().replace("1500ms", "5s"))
    process = machine.start(*words)
    deadline = time.monotonic() + DEADLINE_S
    while running.weights() == before[1]:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    restored = machine.isoblk("host", "restore")
    assert restored.returncode == 0, restored.stderr
    assert "weights of cgroups: as they were" in restored.stdout
    assert (machine.condition(), running.weights()) == before
    assert all(program.poll() is None for program in running.programs.values())

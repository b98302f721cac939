# SPDX-License-Identifier: GPL-2.0-only
"""The host machine divides as the lab says, and leaves this machine as it was: after a run, after
an interrupt, and after isoblk host restore if it was killed. No disk in use is touched."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import polars as pl
import pytest

from isoblk.analysis.metrics import analyse
from isoblk.machine import system
from isoblk.result.store import ResultSet, read_results
from tests.host.conftest import Machine

# Large requests: the disk is the limit, and not this machine's processors.
STUDY = """\
name = "host"
device = "fast"

[run]
warmup = "300ms"
runtime = "1500ms"

[workload]
rw = "randread"
bs = "1m"
iodepth = 16

[[tenant]]
name = "t"
count = 4
weight = [1000, 500, 250, 100]

[matrix]
scheduler = ["none", "mq-deadline", "kyber", "bfq"]

[queue]
nomerges = 1

[iosched.bfq]
low_latency = 0
"""
ONE = STUDY.replace('["none", "mq-deadline", "kyber", "bfq"]', '["mq-deadline"]')
LONG = ONE.replace("1500ms", "300s")
# Writes for longer than the test takes.
FILES = """\
name = "host"
device = { preset = "fast", store = "memory" }
scheduler = "mq-deadline"

[filesystem]
size = "32m"

[[tenant]]
name = "t"
workload = "dd"
options = { bs = "4k", count = 4_000, flag = "dsync" }
runtime = 1

[[tenant]]
name = "u"
offset = "32m"

[run]
runtime = 300
"""
FILES_NEED = ("mkfs.ext4", "addpart", "delpart")
IODEPTH = 16
TUNABLES = ("scheduler", "iosched/read_expire", "nr_requests")
DEADLINE_S = 60


def _study(machine: Machine, text: str) -> str:
    path = machine.work / "study.toml"
    path.write_text(text)
    return str(path)


def _available() -> set[str]:
    listed = system.run_tool("sh", "-c", "cat /sys/block/*/queue/scheduler").split()
    return {word.strip("[]") for word in listed}


def _shares(results: ResultSet) -> dict[str, list[float]]:
    found = {}
    for point in analyse(results).points:
        names = [f"share.{tenant.name}" for tenant in point.runs[0].spec.tenants]
        found[point.point["scheduler"]] = [point.values(name)[0] for name in names]
    return found


@pytest.mark.long
def test_weights_on_a_loop_device(machine: Machine) -> None:
    before = machine.condition()
    done = machine.isoblk("run", _study(machine, STUDY), "--machine", "host", "--loop", "256m")
    assert done.returncode == 0, done.stderr
    assert machine.condition() == before
    results = read_results(machine.work / "results/host-host")
    runs = [run for run in results.runs if run is not None]
    assert {run.record.tier for run in runs} == {"host"}
    assert [run.record.reasons for run in runs if run.record.status != "valid"] == []
    windows = [view.metrics.windows for view in analyse(results).views if view.metrics]
    assert all(at.count == 15 and all(total > 0 for total in at.totals()) for at in windows)
    shares = _shares(results)
    assert set(shares) == _available() & {"none", "mq-deadline", "kyber", "bfq"}
    for scheduler, found in shares.items():
        if scheduler == "bfq":
            # The heaviest far ahead, but on a busy machine BFQ gives one of the others, any of
            # them, more than its weight says, up to a third of the disk (docs/guides/host.md). How
            # exactly it divides, the lab says.
            assert found[0] > 1.2 * median(found[1:])
        else:
            # How the others divide is the processors' doing, and those are shared with other tests.
            assert all(share > 0 for share in found)


def test_no_script_is_run_where_others_can_change_it(machine: Machine) -> None:
    before = machine.condition()
    shared = machine.work / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    command = ("run", _study(machine, ONE), "--machine", "host", "--loop", "64m")
    done = machine.isoblk(*command, "-o", str(shared / "results"))
    assert done.returncode == 2
    assert "shared: other users may write to it (mode 777)" in done.stderr
    assert not list((shared / "results/runs").iterdir())
    assert machine.condition() == before


def test_the_tables_agree_with_the_counts_of_fio(machine: Machine) -> None:
    done = machine.isoblk("run", _study(machine, ONE), "--machine", "host", "--loop", "64m")
    assert done.returncode == 0, done.stderr
    for run in read_results(machine.work / "results/host-host").runs:
        assert run is not None
        series, latency = run.series(), run.latency()
        for tenant in run.record.tenants:
            mine = pl.col("tenant") == tenant.name
            totals = tenant.ops["read"]
            assert series.filter(mine)["ios"].sum() == totals.meas_ios
            assert series.filter(mine)["bytes"].sum() == totals.meas_bytes
            # fio records the latency of requests in flight at the end, and does not count them.
            more = latency.filter(mine)["count"].sum() - totals.meas_ios
            assert 0 <= more <= IODEPTH
        assert not (run.dir / "fio").exists()
        # Of 15 windows of 100 ms: more than one line of the log was read.
        assert series["t_ms"].n_unique() >= 10
        assert series.filter(pl.col("tenant") == run.record.tenants[0].name)["ios"].n_unique() > 1


@pytest.mark.long
def test_the_bytes_agree_with_the_charge_of_bfq(machine: Machine) -> None:
    if "bfq" not in _available():
        pytest.skip("the kernel has no BFQ")
    text = ONE.replace('"mq-deadline"', '"bfq"').replace('warmup = "300ms"', "warmup = 0")
    done = machine.isoblk("run", _study(machine, text), "--machine", "host", "--loop", "64m")
    assert done.returncode == 0, done.stderr
    (share,) = [
        run.record
        for run in read_results(machine.work / "results/host-host").runs
        if run and run.record.spec.kind == "share"
    ]
    assert share.status == "valid"
    for tenant in share.tenants:
        assert tenant.io_stat is not None
        assert tenant.io_stat.rbytes == pytest.approx(tenant.ops["read"].bytes, rel=0.01)


def _until(true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert process.poll() is None, "isoblk ended early"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _loaded(machine: Machine) -> bool:
    """Whether all tenants' fios have been let go."""
    return any(machine.work.glob("results/host-host/runs/.*/programs/start"))


@pytest.mark.parametrize("what", ["fio", "dd on a file system"])
def test_killed_under_load_it_leaves_nothing_after_restore(machine: Machine, what: str) -> None:
    before = machine.condition()
    study = LONG if what == "fio" else FILES
    if study is FILES and (absent := [x for x in FILES_NEED if not shutil.which(x)]):
        pytest.skip(f"no {', '.join(absent)}")
    process = machine.start("run", _study(machine, study), "--machine", "host", "--loop", "64m")
    _until(lambda: _loaded(machine), process)
    assert machine.condition() != before
    process.send_signal(signal.SIGKILL)
    process.wait()
    again = machine.isoblk("run", _study(machine, ONE), "--machine", "host", "--loop", "64m")
    assert again.returncode == 2
    assert "isoblk host restore" in again.stderr
    restored = machine.isoblk("host", "restore")
    assert restored.returncode == 0, restored.stderr
    assert machine.condition() == before
    assert machine.isoblk("host", "restore").stdout == "nothing to restore\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_under_load_it_changes_everything_back(
    machine: Machine, how: signal.Signals
) -> None:
    before = machine.condition()
    process = machine.start("run", _study(machine, LONG), "--machine", "host", "--loop", "64m")
    _until(lambda: _loaded(machine), process)
    process.send_signal(how)
    assert process.wait(DEADLINE_S) == 130
    assert machine.condition() == before
    assert list(machine.state.iterdir()) == []


def test_a_users_tunables_survive_a_run_under_another_scheduler(
    machine: Machine, loop: Callable[[], str]
) -> None:
    device = loop()
    queue = Path("/sys/block") / Path(device).name / "queue"
    original = system.chosen((queue / "scheduler").read_text())
    try:
        (queue / "scheduler").write_text("mq-deadline")
        (queue / "iosched/read_expire").write_text("123")
        (queue / "nr_requests").write_text("77")
        before = {name: (queue / name).read_text() for name in TUNABLES}
        text = ONE.replace('"mq-deadline"', '"kyber"').replace("1500ms", "200ms")
        done = machine.isoblk("run", _study(machine, text), "--machine", "host", "--device", device)
        assert done.returncode == 0, done.stderr
        assert {name: (queue / name).read_text() for name in TUNABLES} == before
    finally:
        (queue / "scheduler").write_text(original)


def test_a_signature_is_kept_until_its_disk_is_named(
    machine: Machine, loop: Callable[[], str]
) -> None:
    device, other = loop(), loop()
    system.run_tool("mkswap", device)
    study = _study(machine, ONE.replace("1500ms", "200ms"))
    base = ("run", study, "--machine", "host", "--device", device)
    for words in (base, (*base, "--wipe", other)):
        refused = machine.isoblk(*words)
        assert refused.returncode == 2, refused.stderr
        assert "swap" in system.run_tool("wipefs", device)
    assert f"--wipe {device}" in machine.isoblk(*base).stderr
    wrong = _study(machine, ONE.replace('"1m"', '"1x"'))
    assert machine.isoblk(*base[:1], wrong, *base[2:], "--wipe", device).returncode == 2
    assert "swap" in system.run_tool("wipefs", device), "wiped for a study that cannot run"
    _study(machine, ONE.replace("1500ms", "200ms"))
    done = machine.isoblk(*base, "--wipe", device)
    assert done.returncode == 0, done.stderr
    assert f"{device}: wiped: swap" in done.stderr
    assert system.run_tool("wipefs", device) == ""


def test_a_disk_that_is_mounted_or_open_is_refused_even_with_wipe(
    machine: Machine, loop: Callable[[], str]
) -> None:
    device = loop()
    study = _study(machine, ONE)
    words = ("run", study, "--machine", "host", "--device", device, "--wipe", device)
    with Path(device).open("rb"):
        refused = machine.isoblk(*words)
    assert refused.returncode == 2
    assert "is open in process" in refused.stderr
    system.run_tool("mkfs.ext4", "-q", device)
    place = machine.work / "mounted"
    place.mkdir()
    system.run_tool("mount", device, str(place))
    try:
        refused = machine.isoblk(*words)
    finally:
        system.run_tool("umount", str(place))
    assert refused.returncode == 2
    assert f"is mounted on {place}" in refused.stderr


def test_the_machines_own_root_disk_is_refused(machine: Machine) -> None:
    root = system.run_tool("findmnt", "--noheadings", "--output", "SOURCE", "/").strip()
    if not root.startswith("/dev/"):
        pytest.skip("the root is not on a disk")
    refused = machine.isoblk(
        "run", _study(machine, ONE), "--machine", "host", "--device", root, "--wipe", root
    )
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    why = ("is mounted on /", "is a partition", "has no request queue")
    assert any(one in refused.stderr for one in why)


def test_a_dry_run_changes_nothing(machine: Machine) -> None:
    before = machine.condition()
    done = machine.isoblk(
        "run", _study(machine, ONE), "--machine", "host", "--loop", "16m", "--dry-run"
    )
    assert done.returncode == 0, done.stderr
    assert "--exec_prerun" in done.stdout
    assert machine.condition() == before

# SPDX-License-Identifier: GPL-2.0-only
"""Blkload's tenants may be stopped, removed and failed at any time.

Each test runs on the default kernel and on the one that notices bad memory accesses and bad
locking. None leaves a warning on the console, and lockdep is at work to the end.
"""

from dataclasses import dataclass

import pytest

from isoblk.campaign.execute import Bench
from isoblk.run.spec import CgroupVersion
from tests.kernels import On
from tests.lab.guest import Guest, Left
from tests.lab.load import (
    BLKLOAD,
    CGROUP,
    MS,
    RESULTS,
    SECOND,
    START,
    STATS,
    STOP,
    TICK,
    VDISK,
    WAIT,
    Load,
    Tenant,
    cgroup,
    io_stat,
    nullb,
    numbers,
    requests,
    results,
    run,
    save,
    script,
    tenant,
    trace_on,
    trace_save,
    vdisk,
)

MODULES = ("isoblk_vdisk", "blkload", "null_blk")
ENODEV = -19
EIO = -5

# After it, the tenants' first requests have just been issued.
START_AND_GO = f"cat {BLKLOAD}/align > /dev/null; {START}; cat {BLKLOAD}/align > /dev/null"

DEVICE = "$(cat /sys/block/disk0/dev)"


@dataclass(frozen=True)
class Careful:
    """A guest whose console must be clean."""

    guest: Guest
    debug: bool

    def run(self, *parts: str, cgroup: CgroupVersion = "v2") -> Left:
        locks = "grep debug_locks: /proc/lockdep_stats > /run/isoblk/locks" if self.debug else ""
        left = self.guest.run(
            script(*parts, locks), modules=MODULES, cgroup=cgroup, memory_mib=1024
        )
        complaints = [
            line
            for line in left.console.splitlines()
            if any(word in line for word in ("WARNING", "BUG", "UBSAN", "INFO:", "stack-trace"))
        ]
        assert complaints == [], left.console
        if self.debug:
            assert left.read("locks").split()[-1] == "1", "lockdep gave up"
        return left


@pytest.fixture(params=[On.DEFAULT, On.DEBUG])
def careful(request: pytest.FixtureRequest) -> Careful:
    """Each of the two kernels."""
    name = "guest" if request.param is On.DEFAULT else "debug_guest"
    guest = request.getfixturevalue(name)
    assert isinstance(guest, Guest)
    return Careful(guest, request.param is On.DEBUG)


def _total(done: Tenant) -> int:
    return sum(op.issued for op in done.ops.values())


# -- stop and wait --


def test_stop_in_the_middle_keeps_the_figures_so_far(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        tenant("a", rw="randrw", iodepth=32, numjobs=2, runtime=100),
        tenant("late", startdelay=50, runtime=100),
        tenant("slow", rate_iops=1, runtime=100, iodepth=4),
        tenant("thinks", number_ios=100, thinktime="10s"),
        f"{START_AND_GO}; sleep 0.2; {STOP}; {STOP}; {WAIT}; cat /proc/uptime > /run/isoblk/uptime",
        save("results"),
        f"cat {STATS}/disk0/stats > /run/isoblk/stats",
    )
    done = results(left, "results")
    assert 200 * MS <= done["a"].end_ns <= 205 * MS
    assert done["a"].measure_to_ns == done["a"].end_ns
    assert _total(done["a"]) > 1000
    assert done["late"].ops == {}
    assert (done["late"].measure_from_ns, done["late"].measure_to_ns) == (50 * SECOND, 50 * SECOND)
    assert done["slow"].op.issued == done["thinks"].op.issued == 1
    assert [tenant.error for tenant in done.values()] == [0, 0, 0, 0]
    assert float(left.read("uptime").split()[0]) < 10  # no tenant slept to its own end
    stats = numbers(left.read("stats"))
    assert stats["in_service"] == stats["waiting"] == 0


def test_stop_before_the_barrier_starts_nothing(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        tenant("a", runtime=1),
        tenant("b", runtime=1, rate_iops=100),
        f"cat {BLKLOAD}/align > /dev/null",
        f"{START}; {STOP}; {WAIT}",
        save("results"),
        run("again"),
    )
    done = results(left, "results")
    assert [(d.ops, d.end_ns, d.error) for d in done.values()] == [({}, 0, 0), ({}, 0, 0)]
    assert _total(results(left, "again")["b"]) == 100


def test_stop_waits_for_throttled_requests_and_loses_none(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        cgroup("/a"),
        f'echo "{DEVICE} riops=10" > {CGROUP}/a/io.max',
        tenant("a", rw="randread", cgroup="/a", iodepth=8, runtime=100),
        f"{START_AND_GO}; sleep 0.55; {STOP}; cat {BLKLOAD}/state > /run/isoblk/state; {WAIT}",
        save("results"),
        f"cat {CGROUP}/a/io.stat > /run/isoblk/io.stat",
    )
    assert left.read("state") == "running\n"
    done = results(left, "results")["a"]
    # Some 5 were let through until then; those in flight pass at 10 a second.
    assert 8 <= done.op.ios <= 16
    assert SECOND <= done.end_ns <= 2 * SECOND
    assert io_stat(left.read("io.stat"))["rios"] == done.op.ios


def test_wait_and_align_can_be_interrupted_and_the_run_goes_on(careful: Careful) -> None:
    status = ' && echo "0" >> /run/isoblk/status || echo "$?" >> /run/isoblk/status'
    left = careful.run(
        vdisk(),
        tenant("a", runtime=3, rate_iops=1000, iodepth=4),
        START_AND_GO,
        # timeout gives 124.
        f"timeout -s INT 0.25 cat {BLKLOAD}/wait{status}",
        f"timeout -s TERM 0.25 cat {BLKLOAD}/align{status}",
        f"timeout -s KILL 0.25 cat {BLKLOAD}/wait{status}",
        f"cat {BLKLOAD}/state > /run/isoblk/state",
        f"cat {BLKLOAD}/wait > /run/isoblk/waited",
        save("results"),
    )
    assert left.read("status").split() == ["124", "124", "137"]
    assert left.read("state") == "running\n"
    assert left.read("waited") == "done\n"
    assert _total(results(left, "results")["a"]) == 3000


def test_many_may_wait_at_once(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        tenant("a", runtime=1, rate_iops=10),
        START,
        *(f"cat {BLKLOAD}/wait > /run/w{i} & w{i}=$!" for i in range(5)),
        *(f"wait $w{i}; cat /run/w{i} >> /run/isoblk/said" for i in range(5)),
    )
    assert left.read("said") == 5 * "done\n"


# -- removal --


def test_the_module_cannot_be_unloaded_while_a_tenant_exists(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        tenant("a", runtime=1),
        "try rmmod blkload >> /run/said",
        START_AND_GO,
        "try rmmod blkload >> /run/said",
        # The device is open, and the directory exists.
        "try rmmod isoblk_vdisk >> /run/said",
        WAIT,
        f"rmdir {BLKLOAD}/a; rmmod blkload",
        "try ls /sys/kernel/config/blkload /sys/kernel/debug/blkload >> /run/said",
        "insmod /run/isoblk/modules/blkload.ko",
        tenant("a", number_ios=10),
        run("results"),
        f"rmdir {BLKLOAD}/a; rmmod blkload; rmdir {VDISK}/disk0; rmmod isoblk_vdisk",
        "cat /run/said > /run/isoblk/said",
    )
    assert left.read("said").splitlines() == [
        "Module blkload is in use",
        "Module blkload is in use",
        "Module isoblk_vdisk is in use",
        "No such file or directory",
    ]
    assert results(left, "results")["a"].op.ios == 10


def test_unloading_by_force_of_the_system_call_is_refused_too(careful: Careful) -> None:
    # Not the tool's opinion but the kernel's: delete_module() itself.
    left = careful.run(
        vdisk(),
        tenant("a", runtime=1),
        START_AND_GO,
        "python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True);"
        ' print(c.delete_module(b"blkload", 0o4000), ctypes.get_errno())\' > /run/isoblk/said',
        WAIT,
        save("results"),
    )
    assert left.read("said").split() == ["-1", "11"]  # EWOULDBLOCK: it is in use
    assert _total(results(left, "results")["a"]) > 1000


def test_rmdir_while_running_ends_that_tenant_and_no_other(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        vdisk("disk1"),
        tenant("a", device="/dev/disk1", rw="randrw", iodepth=32, numjobs=4, runtime=100),
        tenant("b", runtime=1, rate_iops=1000, iodepth=4),
        START_AND_GO,
        f"sleep 0.1; rmdir {BLKLOAD}/a",
        # Closed: no process has the device open.
        f"rmdir {VDISK}/disk1",
        f"cat {BLKLOAD}/state > /run/isoblk/state",
        WAIT,
        save("results"),
    )
    assert left.read("state") == "running\n"
    done = results(left, "results")
    assert list(done) == ["b"]
    assert done["b"].op.ios == 1000


def test_tenants_are_removed_before_the_barrier_and_while_they_sleep(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        tenant("before", runtime=100),
        tenant("delay", startdelay=100, runtime=100),
        tenant("thinks", runtime=100, thinktime="100s"),
        f"cat {BLKLOAD}/align > /dev/null",
        f"{START}; rmdir {BLKLOAD}/before",
        f"cat {BLKLOAD}/align > /dev/null; sleep 0.1; rmdir {BLKLOAD}/delay {BLKLOAD}/thinks",
        f"cat {BLKLOAD}/state /proc/uptime > /run/isoblk/state",
    )
    state, uptime = left.read("state").splitlines()
    assert state == "idle"
    assert float(uptime.split()[0]) < 10


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_rmdir_while_throttled_waits_for_the_requests_in_flight(
    careful: Careful, version: CgroupVersion
) -> None:
    limit = (
        f'mkdir {CGROUP}/a; echo "{DEVICE} 10" > {CGROUP}/a/blkio.throttle.read_iops_device'
        if version == "v1"
        else f'{cgroup("/a")}; echo "{DEVICE} riops=10" > {CGROUP}/a/io.max'
    )
    left = careful.run(
        vdisk(),
        limit,
        tenant("a", rw="randread", cgroup="/a", iodepth=8, numjobs=2, runtime=100),
        START_AND_GO,
        f"sleep 0.35; rmdir {BLKLOAD}/a",
        f"cat {STATS}/disk0/stats > /run/isoblk/stats",
        # Nothing holds the cgroup or the disk.
        f"rmdir {CGROUP}/a {VDISK}/disk0",
        cgroup=version,
    )
    assert 16 <= numbers(left.read("stats"))["read_requests"] <= 24


@pytest.mark.parametrize("controller", ["latency", "cost"])
def test_a_tenant_that_sleeps_in_a_controller_can_be_removed(
    careful: Careful, controller: str
) -> None:
    if controller == "latency":
        limits = [f'echo "{DEVICE} target=1" > {CGROUP}/a/io.latency']
    else:
        limits = [
            f'echo "{DEVICE} ctrl=user model=linear rbps=1000000000 rseqiops=1000 rrandiops=1000'
            f' wbps=1000000000 wseqiops=1000 wrandiops=1000" > {CGROUP}/io.cost.model',
            f'echo "{DEVICE} enable=1 ctrl=user min=100 max=100" > {CGROUP}/io.cost.qos',
        ]
    left = careful.run(
        vdisk(servers=1),
        cgroup("/a"),
        cgroup("/b"),
        *limits,
        tenant("a", rw="randread", cgroup="/a", iodepth=64, runtime=100),
        tenant("b", rw="randread", cgroup="/b", iodepth=64, runtime=1),
        START_AND_GO,
        f"sleep 0.8; rmdir {BLKLOAD}/a; {WAIT}",
        save("results"),
        f"cat {CGROUP}/b/io.stat > /run/isoblk/io.stat",
    )
    done = results(left, "results")
    assert list(done) == ["b"]
    assert done["b"].op.ios > 100
    assert f"rios={done['b'].op.ios} " in left.read("io.stat")


@pytest.mark.parametrize("removal", ["power", "rmdir"])
def test_a_device_that_is_removed_ends_its_tenants_with_enodev(
    careful: Careful, removal: str
) -> None:
    remove = f"echo 0 > {VDISK}/disk0/power" if removal == "power" else f"rmdir {VDISK}/disk0"
    left = careful.run(
        vdisk(),
        vdisk("disk1"),
        tenant("a", rw="randrw", iodepth=32, numjobs=2, runtime=100),
        tenant("b", rate_iops=1000, runtime=100, iodepth=4),
        tenant("other", device="/dev/disk1", rate_iops=1000, runtime=1, iodepth=4),
        START_AND_GO,
        f"sleep 0.2; {remove}; {WAIT}",
        save("results"),
    )
    done = results(left, "results")
    assert {name: tenant.error for name, tenant in done.items()} == {
        "a": ENODEV,
        "b": ENODEV,
        "other": 0,
    }
    # They end at once, not after 8,192 failures.
    assert 1 <= sum(op.errors for op in done["a"].ops.values()) <= 2 * 64
    assert 1 <= done["b"].op.errors <= 4
    assert sum(op.ios for op in done["a"].ops.values()) > 1000
    assert done["a"].end_ns < 250 * MS
    assert done["other"].op.ios == 1000


def test_a_device_that_is_removed_under_a_throttled_tenant(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        cgroup("/a"),
        f'echo "{DEVICE} riops=10" > {CGROUP}/a/io.max',
        tenant("a", rw="randread", cgroup="/a", iodepth=8, runtime=100),
        START_AND_GO,
        f"sleep 0.35; echo 0 > {VDISK}/disk0/power; {WAIT}",
        save("results"),
    )
    done = results(left, "results")["a"]
    assert done.error == ENODEV
    assert done.op.issued >= 8


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_removing_the_cgroup_of_a_running_tenant_causes_no_error(
    careful: Careful, version: CgroupVersion
) -> None:
    make = f"mkdir {CGROUP}/a" if version == "v1" else cgroup("/a")
    left = careful.run(
        vdisk(),
        make,
        tenant("a", cgroup="/a", rw="randrw", rate_iops=1000, iodepth=32, numjobs=2, runtime=1),
        START_AND_GO,
        f"sleep 0.3; rmdir {CGROUP}/a; {WAIT}",
        save("results"),
        # Now it cannot be found, until there is a new one.
        f"put 1 {BLKLOAD}/start > /run/isoblk/said",
        make,
        run("again"),
        cgroup=version,
    )
    for label in ("results", "again"):
        done = results(left, label)["a"]
        assert done.error == 0
        assert _total(done) == 2000
        assert sum(op.errors for op in done.ops.values()) == 0
    assert left.read("said") == "No such file or directory\n"


def test_a_throttled_cgroup_that_is_removed_loses_no_request(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        cgroup("/a"),
        f'echo "{DEVICE} riops=10" > {CGROUP}/a/io.max',
        tenant("a", cgroup="/a", rw="randread", iodepth=8, number_ios=40),
        f"{START_AND_GO}; sleep 0.35; rmdir {CGROUP}/a; {WAIT}",
        save("results"),
    )
    assert results(left, "results")["a"].op.ios == 40


# -- errors --


def test_errors_are_counted_once_each_and_never_retried(careful: Careful) -> None:
    load: Load = {"device": "/dev/nullb0", "rw": "read", "size": "1m", "number_ios": 256}
    left = careful.run(
        # Sectors 80..159 are bad: ten requests of 4 KiB.
        nullb(badblocks="+80-159"),
        trace_on(),
        tenant("one", **load),
        tenant("deep", **load, iodepth=32),
        run("results"),
        trace_save("t"),
    )
    trace = requests(left, "t")
    for name in ("one", "deep"):
        done = results(left, "results")[name]
        assert done.error == 0
        assert done.op.issued == 256
        asked = [request.sector for request in trace if request.thread == f"blkload/{name}.0"]
        assert sorted(asked) == [8 * i for i in range(256)], name
    one = results(left, "results")["one"]
    assert one.op.errors == 10
    # Failures are no completions: not in the series, not in the latencies.
    assert sum(one.op.lat.values()) == sum(ios for ios, _ in one.op.win.values()) == 246
    # Requests side by side are merged, and fail together.
    assert results(left, "results")["deep"].op.errors >= 10


@pytest.mark.parametrize("rw", ["randread", "randwrite", "randtrim"])
def test_injected_errors_are_counted_exactly(careful: Careful, rw: str) -> None:
    fault = "/sys/kernel/debug/fail_make_request"
    left = careful.run(
        vdisk(),
        f"echo 100 > {fault}/probability; echo 7 > {fault}/times; echo 0 > {fault}/verbose",
        "echo 1 > /sys/block/disk0/make-it-fail",
        tenant("a", rw=rw, iodepth=4, number_ios=100),
        run("results"),
    )
    done = results(left, "results")["a"]
    assert (done.op.issued, done.op.errors, done.op.ios, done.error) == (100, 7, 93, 0)


def test_a_write_that_failed_is_not_taken_for_corruption(careful: Careful) -> None:
    fault = "/sys/kernel/debug/fail_make_request"
    left = careful.run(
        nullb(),
        f"echo 20 > {fault}/probability; echo -1 > {fault}/times; echo 0 > {fault}/verbose",
        "echo 1 > /sys/block/nullb0/make-it-fail",
        tenant(
            "a",
            device="/dev/nullb0",
            rw="randrw",
            size="1m",
            iodepth=16,
            number_ios=5000,
            verify=1,
        ),
        run("results"),
    )
    ops = results(left, "results")["a"].ops
    for kind, op in ops.items():
        assert op.errors / op.issued == pytest.approx(0.2, abs=0.03), kind
        assert op.verify_errors == 0, kind


def test_a_device_that_only_fails_ends_the_job_with_its_error(careful: Careful) -> None:
    load: Load = {"device": "/dev/nullb0", "rw": "randread", "number_ios": 100_000}
    left = careful.run(
        nullb(badblocks="+0-131071"),
        tenant("a", **load),
        tenant("b", **load, iodepth=64, numjobs=2),
        tenant("c", **load, rate_iops=1_000_000, iodepth=8),
        run("results"),
    )
    done = results(left, "results")
    assert {name: tenant.error for name, tenant in done.items()} == {"a": EIO, "b": EIO, "c": EIO}
    assert done["a"].op.issued == done["a"].op.errors == 8192
    assert 2 * 8192 <= done["b"].op.errors <= 2 * (8192 + 64)
    assert all(tenant.op.ios == 0 for tenant in done.values())


def test_a_device_that_fails_often_but_not_always_goes_on(careful: Careful) -> None:
    fault = "/sys/kernel/debug/fail_make_request"
    left = careful.run(
        vdisk(),
        f"echo 60 > {fault}/probability; echo -1 > {fault}/times; echo 0 > {fault}/verbose",
        "echo 1 > /sys/block/disk0/make-it-fail",
        tenant("a", rw="randread", iodepth=32, number_ios=20_000),
        run("results"),
    )
    done = results(left, "results")["a"]
    assert done.error == 0
    assert done.op.issued == 20_000
    assert done.op.errors > 8192  # more than would end it in a row


def test_a_flush_that_fails_is_counted(careful: Careful) -> None:
    fault = "/sys/kernel/debug/fail_make_request"
    left = careful.run(
        nullb(cache_size=1),
        f"echo 100 > {fault}/probability; echo -1 > {fault}/times; echo 0 > {fault}/verbose",
        tenant("a", device="/dev/nullb0", rw="write", fsync=1, number_ios=10),
        "echo 1 > /sys/block/nullb0/make-it-fail",
        run("results"),
    )
    ops = results(left, "results")["a"].ops
    assert (ops["write"].errors, ops["flush"].errors) == (10, 10)


# -- what disks have completed --


def test_completed_requests_are_counted_by_cgroup_until_the_module_is_removed(
    careful: Careful,
) -> None:
    counted = "/sys/kernel/debug/blkload/completed"
    left = careful.run(
        vdisk(write_cache=1),
        cgroup("/a"),
        cgroup("/b"),
        tenant("a", cgroup="/a", rw="randrw", fsync=2, fua=1, iodepth=4, number_ios=200),
        tenant("b", cgroup="/b", rw="randtrim", number_ios=20),
        run("unseen"),
        f"echo 1 > {counted}",
        run("results"),
        f"cat {counted} > /run/isoblk/first",
        f"echo 0 > {counted}",
        run("unseen"),
        f"cat {counted} > /run/isoblk/ended",
        f"echo 1 > {counted}; cat {counted} > /run/isoblk/anew",
        run("again"),
        # A cgroup that is gone is still in the list, and the probe is on.
        f"rmdir {BLKLOAD}/a {BLKLOAD}/b; rmdir {CGROUP}/a {CGROUP}/b",
        f"cat {counted} > /run/isoblk/gone",
        f"rmdir {VDISK}/disk0; rmmod blkload isoblk_vdisk",
    )
    a, b = (results(left, "results")[name].ops for name in ("a", "b"))
    assert a["flush"].ios > 0
    moved = {"dbytes": 0, "dios": 0} | {
        f"{op[0]}{what}": getattr(a[op], what)
        for op in ("read", "write")
        for what in ("bytes", "ios")
    }
    trimmed = dict.fromkeys(moved, 0) | {"dbytes": b["trim"].bytes, "dios": b["trim"].ios}
    lines = dict(line.split(" ", 1) for line in left.read("first").splitlines())
    assert {path: _pairs(line) for path, line in lines.items()} == {"/a": moved, "/b": trimmed}
    assert left.read("ended") == left.read("first")
    assert left.read("anew") == ""
    assert "/a " in left.read("gone")


def _pairs(line: str) -> dict[str, int]:
    return {name: int(value) for name, value in (one.split("=") for one in line.split())}


# -- many, and often --


def test_1024_tenants_each_charged_with_its_own(careful: Careful) -> None:
    left = careful.run(
        vdisk(servers=1024, queue_depth=4096),
        f"echo +io > {CGROUP}/cgroup.subtree_control",
        "names=$(seq -f t%04g 0 1023)",
        f"cd {CGROUP}; mkdir $names; cd {BLKLOAD}; mkdir $names",
        "for t in $names; do echo /dev/disk0 > $t/device; echo /$t > $t/cgroup;"
        " echo randrw > $t/rw; echo 2 > $t/iodepth; echo 3 > $t/number_ios; done; cd /",
        run("results"),
        f"cd {CGROUP}; grep '' t*/io.stat > /run/isoblk/io.stat; cd /",
        run("again"),
        f"rmdir {BLKLOAD}/t*; rmdir {CGROUP}/t*; rmdir {VDISK}/disk0; rmmod blkload isoblk_vdisk",
    )
    done = results(left, "results")
    assert list(done) == [f"t{i:04}" for i in range(1024)]
    assert {_total(tenant) for tenant in done.values()} == {3}
    charged = dict(line.split("/io.stat:") for line in left.read("io.stat").splitlines())
    assert list(charged) == list(done)
    for name, line in charged.items():
        stat = io_stat(line)
        assert (stat["rios"], stat["wios"]) == tuple(
            done[name].ops[op].ios if op in done[name].ops else 0 for op in ("read", "write")
        ), name
    assert len(results(left, "again")) == 1024


def test_a_repeated_start_repeats_the_run(careful: Careful) -> None:
    times = 20
    left = careful.run(
        vdisk(servers=4),
        trace_on(),
        tenant("a", rw="randrw", bsrange="4k-64k", iodepth=8, number_ios=200, numjobs=2),
        tenant("b", rw="randread", rate_iops=10_000, rate_process="poisson", runtime="20ms"),
        *(line for i in range(times) for line in (run(f"r{i}"), trace_save(f"r{i}"))),
    )
    first = [results(left, "r0")[name] for name in "ab"]
    assert _total(first[0]) == 400
    for i in range(1, times):
        for name, then in zip("ab", first, strict=True):
            now = results(left, f"r{i}")[name]
            assert _sequence(left, f"r{i}", name) == _sequence(left, "r0", name), (name, i)
            assert now.start_ns > then.start_ns
            # The kernel's own timers may come in between; they cost a tick.
            assert now.end_ns == pytest.approx(then.end_ns, abs=20 * TICK), (name, i)


def _sequence(left: Left, label: str, name: str) -> dict[str, list[tuple[str, int, int]]]:
    """The requests of each thread of a tenant."""
    by_thread: dict[str, list[tuple[str, int, int]]] = {}
    for request in requests(left, label):
        if request.thread.startswith(f"blkload/{name}."):
            asked = (request.flags, request.sector, request.sectors)
            by_thread.setdefault(request.thread, []).append(asked)
    return by_thread


def test_no_request_is_lost_between_generator_cgroup_and_device(careful: Careful) -> None:
    left = careful.run(
        vdisk(servers=4, read_ns=30_000, write_ns=50_000, trim_ns=70_000),
        "echo 64 > /sys/block/disk0/queue/nr_requests",
        "echo none > /sys/block/disk0/queue/scheduler",
        cgroup("/a"),
        cgroup("/b"),
        # Random, and no two side by side: the device sees the requests as they are issued.
        tenant("mix", cgroup="/a", rw="randrw", iodepth=64, numjobs=3, runtime="100ms", bs="8k"),
        tenant("trim", cgroup="/a", rw="randtrim", iodepth=8, runtime="70ms", ramp_time="20ms"),
        tenant("open", cgroup="/b", rw="randwrite", rate_iops=30_000, iodepth=99, runtime="90ms"),
        "echo 2 > /sys/block/disk0/queue/nomerges",
        run("results"),
        f"cat {CGROUP}/a/io.stat > /run/isoblk/a; cat {CGROUP}/b/io.stat > /run/isoblk/b",
        f"cat {STATS}/disk0/stats > /run/isoblk/stats",
    )
    done = results(left, "results")
    reads, writes = (done["mix"].ops[op].issued for op in ("read", "write"))
    trims, more = done["trim"].op.issued, done["open"].op.issued
    a, b = io_stat(left.read("a")), io_stat(left.read("b"))
    assert (a["rios"], a["wios"], a["dios"]) == (reads, writes, trims)
    assert (a["rbytes"], a["wbytes"], a["dbytes"]) == (8192 * reads, 8192 * writes, 4096 * trims)
    assert (b["rios"], b["wios"], b["wbytes"]) == (0, more, 4096 * more)
    stats = numbers(left.read("stats"))
    assert (stats["read_requests"], stats["write_requests"], stats["trim_requests"]) == (
        reads,
        writes + more,
        trims,
    )
    assert stats["in_service"] == stats["waiting"] == 0


def test_results_may_be_read_while_tenants_come_and_go(careful: Careful) -> None:
    left = careful.run(
        vdisk(),
        tenant("a", number_ios=2000, iodepth=4, rw="randrw", window=1),
        tenant("b", number_ios=2000, iodepth=4, rw="randrw", window=1),
        run("before"),
        # Opened and read in part; then its tenant is started anew and removed.
        f"exec 3< {RESULTS}; read line <&3; echo $line > /run/isoblk/line",
        f"{START}; {WAIT}; rmdir {BLKLOAD}/a",
        "cat <&3 > /run/isoblk/rest; exec 3<&-",
        save("after"),
    )
    assert list(results(left, "before")) == ["a", "b"]
    assert list(results(left, "after")) == ["b"]
    assert left.read("line").startswith("tenant a jobs 1")
    assert "tenant b" in left.read("rest")


def test_nothing_is_leaked(debug_bench: Bench, debug_guest: Guest) -> None:
    careful = Careful(debug_guest, True)
    scan = "echo scan > /sys/kernel/debug/kmemleak"
    left = careful.run(
        vdisk(),
        cgroup("/a"),
        tenant("a", cgroup="/a", rw="randrw", iodepth=8, numjobs=2, number_ios=100, fsync=3),
        tenant("b", rw="randread", random_distribution="zipf:1.1", number_ios=100, bs="256k"),
        tenant("v", rw="randrw", verify=1, size="1m", number_ios=100, window=1),
        *3 * [run("results")],
        # A start that fails when half is done.
        tenant("z", device="/dev/none", number_ios=1),
        f"put 1 {BLKLOAD}/start > /dev/null",
        f"rmdir {BLKLOAD}/z; {START_AND_GO}; echo 0 > {VDISK}/disk0/power; {WAIT}",
        f"rmdir {BLKLOAD}/*/; rmdir {CGROUP}/a; rmdir {VDISK}/disk0",
        # The second scan finds what the first one did, if it was not just on its way out.
        f"sleep 1; {scan}; sleep 10; {scan}; cat /sys/kernel/debug/kmemleak > /run/isoblk/leaks",
        f"grep nr_dying {CGROUP}/cgroup.stat > /run/isoblk/dying",
    )
    # A cgroup with a leaked reference is dying for ever.
    dying = numbers(left.read("dying"))
    assert dying["nr_dying_descendants"] == 0, dying
    leaks = left.read("leaks")
    assert "blkload" not in leaks, leaks
    assert "vdisk" not in leaks, leaks


def test_memory_that_cannot_be_had_fails_the_start_and_nothing_else(careful: Careful) -> None:
    # The kernel fails the n-th allocation of a task: of the one that writes to start.
    fail = "/sys/kernel/debug/failslab"
    tries = 120
    left = careful.run(
        vdisk(),
        tenant("a", rw="randwrite", number_ios=5, iodepth=4, numjobs=2, fsync=2),
        tenant("b", rw="randread", number_ios=5, random_distribution="zipf:1"),
        tenant("c", rw="randread", number_ios=5, iodepth=4, size="1m", verify=1),
        f"echo 0 > {fail}/verbose; echo N > {fail}/ignore-gfp-wait",
        f"for n in $(seq {tries}); do"
        f" if (echo $n > /proc/self/fail-nth; echo 1 > {BLKLOAD}/start) 2> /dev/null;"
        f" then echo started; else echo failed; fi >> /run/said; {WAIT}; done",
        run("results"),
        f"cat {STATS}/disk0/stats > /run/isoblk/stats; cat /run/said > /run/isoblk/said",
    )
    said = left.read("said").split()
    assert said.count("failed") >= 20, said
    assert said[-1] == "started", said
    assert "blkload: a: not enough memory" in left.console
    assert "blkload: c: not enough memory" in left.console
    assert [_total(done) for done in results(left, "results").values()] == [10 + 4, 5, 5]

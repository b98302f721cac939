# SPDX-License-Identifier: GPL-2.0-only
"""A capture holds the requests of a load and their cgroups, the lab replays exactly these, and
nothing of it stays on this machine, however it ends."""

import ctypes
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from isoblk.campaign.execute import make_bench
from isoblk.capture import events
from isoblk.capture.btf import read_types
from isoblk.capture.target import find_target
from isoblk.capture.tracepoint import PROGRAM, TYPES, UnavailableError, bpf_source
from isoblk.errors import UserError
from isoblk.kernel import DEFAULT_VERSION, find, host_library
from isoblk.machine import system
from isoblk.machine.uml import Uml
from isoblk.trace.compact import read_blocks
from isoblk.trace.names import read_names
from isoblk.trace.record import Records
from isoblk.trace.resolve import one_stream
from tests.host.conftest import Machine
from tests.lab.conftest import TIME_LIMIT_S
from tests.lab.guest import Guest
from tests.lab.load import requests, results, run, script, tenant, trace_on, trace_save, vdisk

DEADLINE_S = 60
RING_EVENTS = 1024  # of the smallest buffer
# Requests of different tenants that were so close may change places: each takes the lab's one
# processor some ticks to issue.
CLOSE_NS = 50_000

# Two loads that fio itself starts at its own pace: rates, sizes, flushes.
FIO = """\
job() {
    (echo 0 > $1/cgroup.procs; shift
     exec fio --filename=$disk --direct=1 --ioengine=libaio --output-format=json "$@")
}
job GROUPS/a --output=a.json --name=a --rw=randread --bs=4k --iodepth=4 --rate_iops=2000 \\
    --runtime=1500ms --time_based &
job GROUPS/b --output=b.json --name=b --rw=randrw --rwmixread=30 --bssplit=4k/60:64k/40 \\
    --norandommap --iodepth=2 --number_ios=500 --thinktime=2ms --fsync=50 &
wait
"""


@pytest.fixture
def device(loop: Callable[[], str]) -> str:
    """A loop device whose requests may be captured by BPF."""
    path = loop()
    if shutil.which("udevadm"):
        # It looks at new devices.
        subprocess.run(["udevadm", "settle"], check=False)
    try:
        with bpf_source(find_target(path), 1 << 16):
            pass
    except (UnavailableError, UserError) as error:
        pytest.skip(f"no capture by BPF: {error}")
    _until(lambda: not _programs())
    return path


@pytest.fixture
def groups(machine: Machine) -> Iterator[Path]:
    """A cgroup with two others, a and b, whose requests are charged to them."""
    top = machine.hierarchy / "isoblk-capture-test"
    control = machine.hierarchy / "cgroup.subtree_control"
    had = not control.exists() or "io" in control.read_text().split()
    try:
        if not had:
            control.write_text("+io")
        for path in (top, top / "a", top / "b"):
            path.mkdir()
        if control.exists():
            (top / "cgroup.subtree_control").write_text("+io")
        yield top
    finally:
        for path in (top / "a", top / "b", top):
            with suppress(FileNotFoundError):
                path.rmdir()
        if not had:
            control.write_text("-io")


def _all(path: Path) -> Records:
    return np.concatenate(list(read_blocks(path)))


def _programs() -> int:
    """How many of our programs the kernel holds: BPF_PROG_GET_NEXT_ID and its like."""
    libc = ctypes.CDLL(None, use_errno=True)
    count = number = 0

    def call(command: int, attributes: bytearray) -> int:
        held = (ctypes.c_char * len(attributes)).from_buffer(attributes)
        return int(libc.syscall(321, command, held, len(attributes)))

    while True:
        attributes = bytearray(struct.pack("<III", number, 0, 0))
        if call(11, attributes) < 0:
            return count
        number = struct.unpack_from("<I", attributes, 4)[0]
        descriptor = call(13, bytearray(struct.pack("<III", number, 0, 0)))
        if descriptor < 0:
            continue
        info = (ctypes.c_char * 128)()
        call(15, bytearray(struct.pack("<IIQ", descriptor, 128, ctypes.addressof(info))))
        os.close(descriptor)
        count += info.raw[64:80].rstrip(b"\0") == PROGRAM


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _capture(machine: Machine, device: str, name: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a capture, and wait until it is under way."""
    process = machine.start("capture", device, "-o", name, *words)
    assert process.stderr is not None
    assert process.stderr.readline() == f"capturing {device} until Ctrl-C\n".encode()
    return process


def _read(device: str, count: int) -> None:
    page = mmap.mmap(-1, 4096)  # aligned
    disk = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        assert all(os.preadv(disk, [page], 4096 * i) == 4096 for i in range(count))
    finally:
        os.close(disk)


def test_a_capture_of_fio_replays_with_the_same_mix_sizes_and_order(
    machine: Machine, device: str, groups: Path, tmp_path: Path
) -> None:
    try:
        kernel = find(DEFAULT_VERSION)
    except UserError as error:
        pytest.skip(str(error))
    load = machine.work / "load.sh"
    load.write_text(f"disk={device}\n" + FIO.replace("GROUPS", str(groups)))
    done = machine.isoblk("capture", device, "-o", "fio.isotrace", "--", "sh", str(load))
    assert done.returncode == 0, done.stderr
    path = machine.work / "fio.isotrace"
    names = read_names(path)
    assert names is not None
    assert names.lost == 0
    streams = {Path(one.cgroup).name: one for one in names.streams}
    captured = {name: _all(one_stream(path, streams[name].stream)) for name in "ab"}

    # The capture against fio's own count.
    for name, records in captured.items():
        (job,) = json.loads((machine.work / f"{name}.json").read_text())["jobs"]
        for op, kind in enumerate(("read", "write")):
            mine = records[records["op"] == op]
            assert len(mine) == job[kind]["total_ios"]
            assert int(mine["bytes"].sum(dtype=np.int64)) == job[kind]["io_bytes"]
        assert {one.name for one in streams[name].processes} == {"fio"}
    assert {0, 1, 3} == set(captured["b"]["op"].tolist())
    assert {4096, 65536} <= set(captured["b"]["bytes"].tolist())

    # The lab's kernel against the capture: what its own tracer saw at the same place.
    machine_in_time = Uml(kernel, host_library(kernel), time_limit_s=TIME_LIMIT_S)
    guest = Guest(make_bench(machine_in_time, kernel), tmp_path)
    left = guest.run(
        script(
            vdisk(size="16m", queue_depth=1023, servers=64, write_cache=1),
            "echo none > /sys/block/disk0/queue/scheduler",
            trace_on(),
            *(
                tenant(name, trace=str(one_stream(path, streams[name].stream)), iodepth=512)
                for name in "ab"
            ),
            run("r"),
            trace_save("r"),
        )
    )
    assert {one.late["above_1ms"] for one in results(left, "r").values()} == {0}
    replayed = requests(left, "r")
    marks = {0: "R", 1: "WS", 3: "FWS"}
    for name, records in captured.items():
        assert [(r.flags, r.sector, r.sectors) for r in replayed if f"/{name}." in r.thread] == [
            (marks[op], 0 if op == 3 else offset // 512, size // 512)
            for op, offset, size in records[["op", "offset", "bytes"]].tolist()
        ]
    # Across the tenants: when each was captured, in the order in which they were replayed.
    times = {name: iter(records["t"].tolist()) for name, records in captured.items()}
    order = np.array([next(times["a" if "/a." in r.thread else "b"]) for r in replayed])
    assert (np.maximum.accumulate(order) - order).max() < CLOSE_NS
    assert len(order) == sum(map(len, captured.values())) > 2000


def test_the_study_of_a_capture_can_run(machine: Machine, device: str, groups: Path) -> None:
    command = (
        f"echo 0 > {groups}/a/cgroup.procs; exec dd if={device} of=/dev/null bs=64k iflag=direct"
    )
    done = machine.isoblk("capture", device, "-o", "t.isotrace", "--", "sh", "-c", command)
    assert done.returncode == 0, done.stderr
    made = machine.isoblk("study", "from-capture", "t.isotrace", "-o", "t.toml")
    assert made.returncode == 0, made.stderr
    checked = machine.isoblk("study", "check", "t.toml")
    assert checked.returncode == 0, checked.stderr
    assert 'name = "a"' in (machine.work / "t.toml").read_text()
    told = machine.isoblk("trace", "info", "t.isotrace").stdout
    assert "/isoblk-capture-test/a" in told


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_capture_and_keeps_it(
    machine: Machine, device: str, how: signal.Signals
) -> None:
    before = machine.condition()
    process = _capture(machine, device, "t.isotrace")
    _read(device, 100)
    process.send_signal(how)
    assert process.wait(DEADLINE_S) == 0
    records = _all(machine.work / "t.isotrace")
    mine = records[records["bytes"] == 4096]
    assert mine["offset"].tolist() == [4096 * i for i in range(100)]
    assert machine.condition() == before
    _until(lambda: not _programs())


def test_a_killed_capture_leaves_nothing(machine: Machine, device: str) -> None:
    before = machine.condition()
    process = _capture(machine, device, "t.isotrace")
    _read(device, 100)
    process.kill()
    process.wait()
    _until(lambda: not _programs())  # freed after a grace period
    assert machine.condition() == before
    assert list(machine.work.glob("*t.isotrace*")) == []


def test_lost_events_are_counted_and_told(machine: Machine, device: str) -> None:
    process = _capture(machine, device, "t.isotrace", "--buffer", "64k")
    process.send_signal(signal.SIGSTOP)
    # The content of the ring at the stop is unknown; the disk is idle, so it is empty.
    _read(device, RING_EVENTS + 500)
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE_S) == 1
    names = read_names(machine.work / "t.isotrace")
    assert names is not None
    kept = sum(one.requests for one in names.streams)
    assert RING_EVENTS - 1 <= kept <= RING_EVENTS
    assert kept + names.lost == RING_EVENTS + 500


def test_a_partition_is_captured_alone_and_from_its_first_byte(
    machine: Machine, device: str
) -> None:
    if not shutil.which("addpart"):
        pytest.skip("no addpart")
    file = machine.work / "parts.img"
    with file.open("wb") as out:
        out.truncate(16 << 20)
    disk = system.run_tool("losetup", "--find", "--show", "--partscan", str(file)).strip()
    try:
        system.run_tool("addpart", disk, "1", "4096", "8192")
        system.run_tool("addpart", disk, "2", "16384", "8192")
        read = "dd if={} of=/dev/null bs=4k count={} skip={} iflag=direct 2> /dev/null"
        command = "; ".join(
            (
                read.format(disk, 8, 0),
                read.format(f"{disk}p1", 4, 0),
                read.format(f"{disk}p2", 5, 3),
            )
        )
        words = ("-o", "p.isotrace", "--", "sh", "-c", command)
        done = machine.isoblk("capture", f"{disk}p2", *words)
    finally:
        system.run_tool("losetup", "--detach", disk)
    assert done.returncode == 0, done.stderr
    records = _all(machine.work / "p.isotrace")
    assert records["offset"].tolist() == [4096 * i for i in range(3, 8)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("/dev/none", "-o", "t.isotrace"), "/dev/none: no such device"),
        (("/dev/null", "-o", "t.isotrace"), "/dev/null: is not a block device"),
        (("{device}", "-o", "there"), "there: exists; choose another name, or add --force"),
        (("{device}", "-o", "no/t.isotrace"), "no: no such directory"),
        (("{device}", "-o", "t.isotrace", "--buffer", "100k"), "--buffer: 100k is not a power"),
        (("{device}", "-o", "t.isotrace", "--", "no-such-program"), "no-such-program: cannot run"),
    ],
)
def test_a_capture_that_is_not_possible_is_a_one_line_error(
    machine: Machine, device: str, words: tuple[str, ...], told: str
) -> None:
    (machine.work / "there").write_text("mine")
    done = machine.isoblk("capture", *(word.format(device=device) for word in words))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert told in done.stderr
    assert (machine.work / "there").read_text() == "mine"
    assert not (machine.work / "t.isotrace").exists()


def test_a_capture_is_kept_under_another_name_if_its_own_is_taken_meanwhile(
    machine: Machine, device: str
) -> None:
    command = f"echo mine > t.isotrace; dd if={device} of=/dev/null bs=4k count=3 iflag=direct"
    done = machine.isoblk("capture", device, "-o", "t.isotrace", "--", "sh", "-c", command)
    assert done.returncode == 0, done.stderr
    told = "note: t.isotrace was created during the capture; the capture is in t-2.isotrace"
    assert told in done.stderr
    assert done.stdout.startswith("t-2.isotrace: 3 requests")
    assert (machine.work / "t.isotrace").read_text() == "mine\n"
    assert len(_all(machine.work / "t-2.isotrace")) == 3
    assert (machine.work / "t-2.isotrace.json").exists()


def test_nothing_captured_and_a_failed_command_are_told(machine: Machine, device: str) -> None:
    idle = machine.isoblk("capture", device, "-o", "t.isotrace", "--seconds", "0.1")
    assert idle.returncode == 1
    begun, told = idle.stderr.splitlines()
    assert begun.startswith(f"capturing {device} for")
    assert "no request reached the device" in told
    assert not (machine.work / "t.isotrace").exists()
    command = f"dd if={device} of=/dev/null bs=4k count=3 iflag=direct 2> /dev/null; exit 7"
    failed = machine.isoblk("capture", device, "-o", "t.isotrace", "--", "sh", "-c", command)
    assert failed.returncode == 1
    assert "ended with status 7" in failed.stderr
    assert len(_all(machine.work / "t.isotrace")) == 3


def test_one_capture_of_a_device_at_a_time(machine: Machine, device: str) -> None:
    process = _capture(machine, device, "t.isotrace")
    second = machine.isoblk("capture", device, "-o", "u.isotrace")
    assert second.returncode == 2
    assert "is already being captured" in second.stderr
    assert process.poll() is None


def test_a_missing_right_is_named(machine: Machine, device: str) -> None:
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv")
    done = subprocess.run(
        [
            *("setpriv", "--bounding-set=-sys_admin,-bpf,-perfmon", "--inh-caps=-all"),
            *(sys.executable, "-m", "isoblk", "capture", device, "-o", machine.work / "t.isotrace"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "CAP_BPF" in done.stderr
    assert done.stderr.count("\n") == 1


def test_this_kernels_types_make_a_program(device: str) -> None:
    types = read_types(TYPES.read_bytes(), events.STRUCTS, events.ENUMS, events.TYPEDEFS)
    code = events.program(types, find_target(device).range, 3, 4)
    assert len(code) % 8 == 0

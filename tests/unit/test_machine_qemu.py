# SPDX-License-Identifier: GPL-2.0-only
"""The qemu machine's pure parts: its command line, its first file system, its verdicts."""

import dataclasses
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.campaign.execute import execute, make_job
from isoblk.errors import UserError
from isoblk.kernel import Kernel
from isoblk.machine import initramfs, qemu
from isoblk.machine.process import failure, hang
from isoblk.plan.plan import check_queues, make_plan
from isoblk.report.text import device
from isoblk.run.tier import QEMU, SMP, UML, Tier
from tests.unit.fakes import FakeMachine, fake_bench
from tests.unit.specs import NullBlkDevice, VdiskDevice, run_spec

OURS = Kernel("key", "6.12.1", "source", "gcc", True, Path("/cache/k"), arch="x86_64")
STOCK = dataclasses.replace(OURS, debug=False, stock=True)

HEADER = 110
ENTRIES = st.lists(
    st.builds(
        initramfs.program,
        st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1),
        st.binary(),
    )
)


def unpack(archive: bytes) -> list[tuple[str, int, bytes]]:
    """Path, mode and data of each record, by the format's description."""
    found: list[tuple[str, int, bytes]] = []
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[i : i + 8], 16) for i in range(at + 6, at + HEADER, 8)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = archive[at + HEADER : at + HEADER + name_size]
        assert name[-1:] == b"\0"
        at = -(-(at + HEADER + name_size) // 4) * 4
        data = archive[at : at + size]
        at = -(-(at + size) // 4) * 4
        if name == b"TRAILER!!!\0":
            assert at == len(archive)
            return found
        found.append((name[:-1].decode(), mode, data))


@given(ENTRIES)
def test_a_packed_initramfs_unpacks_to_the_same_entries(entries: list[initramfs.Entry]) -> None:
    assert unpack(initramfs.archive(entries)) == [(e.path, e.mode, e.data) for e in entries]


def test_a_guest_has_the_files_that_its_init_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "busybox", lambda: b"program")
    (tmp_path / "01-b.ko").write_bytes(b"module")
    files = {e.path: e for e in qemu.contents(b"plan", [tmp_path / "01-b.ko"])}
    assert files["plan.sh"].data == b"plan"
    assert files["bin/busybox"].data == b"program"
    assert files["modules/00-01-b.ko"].data == b"module"
    assert files["usr"].data == b"host/usr"
    init = files["init"].data.decode()
    assert init.startswith("#!/bin/busybox sh\n")
    assert "exec sh /plan.sh" in init
    # A directory stands before its content.
    assert list(files).index("bin") < list(files).index("bin/busybox")


def test_the_command_has_four_processors_and_no_path_but_the_kernels() -> None:
    words = qemu.arguments(OURS, 512)
    assert words[words.index("-smp") + 1] == "4"
    assert words[words.index("-accel") + 1] == "tcg,thread=multi"
    assert [w for w in words if w.startswith("/")] == ["/cache/k/build/arch/x86/boot/bzImage"]
    parameters = words[words.index("-append") + 1].split()
    assert {"console=ttyS0", "panic=-1", "oops=panic"} <= set(parameters)


def test_only_a_stock_kernel_boots_on_one_processor() -> None:
    ours, stock = (" ".join(qemu.arguments(kernel, 512)) for kernel in (OURS, STOCK))
    assert "maxcpus" not in ours
    assert "maxcpus=1" in stock
    assert "/cache/k/vmlinuz" in stock


def elf(segment: int) -> bytes:
    """A 64-bit program with one segment of that type."""
    header = bytearray(64)
    header[0x20] = 64
    header[0x36], header[0x38] = 56, 1
    return bytes(header) + segment.to_bytes(4, "little") + bytes(52)


def test_only_a_static_busybox_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "PATH", str(tmp_path))
    missing = pytest.raises(UserError, match=r"statically linked.*apt install busybox-static")
    with missing:
        qemu.busybox()
    program = tmp_path / "busybox"
    program.write_bytes(elf(3))
    program.chmod(0o755)
    with missing:
        qemu.busybox()
    program.write_bytes(elf(1))
    assert qemu.busybox() == elf(1)


def test_no_emulator_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "PATH", str(tmp_path))
    with pytest.raises(UserError, match="QEMU is missing; run: apt install qemu-system-x86"):
        qemu.Qemu(OURS, time_limit_s=1).run(tmp_path, [], seed=1, memory_mib=512)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: CPU: 2 PID: 1 at block/blk-mq.c:1 x+0x1/0x2",
        "WARNING: possible circular locking dependency detected",
        "[ BUG: Invalid wait context ]",
        "BUG: KASAN: slab-use-after-free in x+0x1/0x2",
        "BUG: sleeping function called from invalid context at x.c:1",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 26s!",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "INFO: task sh:1 blocked for more than 122 seconds.",
        "UBSAN: shift-out-of-bounds in x.c:1:2",
        "Oops: general protection fault, probably for non-canonical address",
        "half a line of a programWARNING: CPU: 0 PID: 1 at x.c:1",
    ],
)
def test_a_kernel_complaint_fails_a_run_that_ended_well(tmp_path: Path, line: str) -> None:
    console = tmp_path / "console.log"
    console.write_text(f"booted\r\n{line}\r\nplan: exit status 0\r\n")
    assert failure(console, 0).startswith(f"the kernel failed: {line}; ")


@pytest.mark.parametrize(
    "line", ["DEBUG: x", "tainting kernel", "1 BUGS", "INFO: lockdep is turned on"]
)
def test_a_line_that_is_not_a_complaint_does_not_fail_a_run(tmp_path: Path, line: str) -> None:
    console = tmp_path / "console.log"
    console.write_text(f"{line}\r\nplan: exit status 0\r\n")
    assert failure(console, 0) == ""


@pytest.mark.parametrize("shell", ["plan.sh: 2: x", "/plan.sh: line 2: x"])
def test_the_step_that_failed_is_found_in_either_shells_words(tmp_path: Path, shell: str) -> None:
    (tmp_path / "plan.sh").write_text("#!/bin/sh\nfalse or so\n")
    console = tmp_path / "console.log"
    console.write_text(f"{shell}\nplan: exit status 1\n")
    assert failure(console, 0).startswith("a step of the plan failed: plan.sh:2: false or so;")


def test_the_kernel_may_write_the_end_in_the_middle_of_the_shells_line(tmp_path: Path) -> None:
    (tmp_path / "plan.sh").write_text("#!/bin/sh\nfalse or so\n")
    console = tmp_path / "console.log"
    console.write_text("/plan.sh: plan: exit status 1\nsysrq: Power Off\nline 2: no such file\n")
    assert failure(console, 0).startswith("a step of the plan failed: plan.sh:2: false or so;")


def test_a_guest_that_said_nothing_ended_early(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    console.write_text("qemu: no such image\n")
    assert failure(console, 1) == "ended early (exit 1); console: qemu: no such image"


def test_of_a_guest_that_hung_the_kernels_first_complaint_is_told(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    stall = "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"
    console.write_text(f"booted\n{stall}\nBUG: later\nRBP: 1\nR12: 2\nR15: 3\n")
    assert hang(console, 1200.0) == (
        f"hung: no end after 1200 s; the kernel reported: {stall};"
        " console: RBP: 1 | R12: 2 | R15: 3"
    )
    console.write_text("booted\n")
    assert hang(console, 2.0) == "hung: no end after 2 s; console: booted"


def test_a_plan_for_qemu_uses_its_processors_and_waits_for_no_virtual_second() -> None:
    spec = run_spec(device=NullBlkDevice())
    plan = make_plan(spec, QEMU)
    assert plan.tier == "qemu"
    assert "echo 4 > /sys/kernel/config/nullb/disk0/submit_queues" in plan.text
    assert "mount -t 9p" in plan.text
    for word in ("hostfs", "align", "$RUN/"):
        assert word not in plan.text
    assert "align" in make_plan(spec, UML).text


def test_a_plan_for_smp_has_the_hosts_files_and_a_queue_for_each_processor() -> None:
    spec = run_spec(device=NullBlkDevice())
    plan = make_plan(spec, SMP)
    assert plan.tier == "smp"
    assert "echo 4 > /sys/kernel/config/nullb/disk0/submit_queues" in plan.text
    assert "mount -t hostfs" in plan.text
    assert "align" not in plan.text


@pytest.mark.parametrize("tier", [SMP, QEMU], ids=lambda tier: tier.name)
def test_a_record_has_the_processors_and_a_page_the_queues(tmp_path: Path, tier: Tier) -> None:
    bench = fake_bench(FakeMachine(tier=tier))
    bench = dataclasses.replace(bench, modules={**bench.modules, "null_blk": Path("/x.ko")})
    job = make_job(run_spec(device=NullBlkDevice()), "kernel", "modules", tier)
    record = execute(job, bench, tmp_path).record
    assert record.cpus == 4
    assert record.busy == pytest.approx(0.35)
    assert device(record) == "null_blk, 80.0 µs, 4 queues of 64 tags"
    # Results of a time when processors were not recorded.
    older = msgspec.structs.replace(record, cpus=None)
    assert device(older) == device(record)


def test_a_run_is_named_by_its_tier_and_its_record_says_it(tmp_path: Path) -> None:
    jobs = [make_job(run_spec(), "kernel", "modules", tier) for tier in (UML, QEMU)]
    assert jobs[0].id != jobs[1].id
    bench = fake_bench(FakeMachine(tier=QEMU))
    assert execute(jobs[1], bench, tmp_path).record.tier == "qemu"


def test_more_hardware_queues_than_processors_are_refused_with_the_remedy() -> None:
    spec = run_spec(device=VdiskDevice(hw_queues=4))
    with pytest.raises(
        UserError, match=r"4 hardware queues, the uml machine 1 CPU.*--machine icount --cpus 4"
    ):
        check_queues([spec], UML)
    check_queues([spec], QEMU)

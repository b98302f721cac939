# SPDX-License-Identifier: GPL-2.0-only
"""The icount machine's pure parts: QEMU's arguments, the guest's files, the plan, and mistakes."""

import dataclasses
from pathlib import Path

import pytest

from isoblk.campaign.execute import execute, make_job
from isoblk.errors import UserError
from isoblk.kernel import Kernel
from isoblk.machine import icount, initramfs, qemu
from isoblk.plan.plan import check_programs, make_plan
from isoblk.report.text import device, machine
from isoblk.run.spec import Filesystem, RunSpec
from isoblk.run.tier import ICOUNT, QEMU, Tier
from tests.unit.fakes import FakeMachine, fake_bench
from tests.unit.specs import NullBlkDevice, run_spec, tenant

KERNEL = Kernel(
    "key", "6.12.1", "source", "gcc", False, Path("/cache/k"), arch="x86_64", stock=True
)
DISK = Filesystem(type="ext4", offset=0, size=1 << 30)


def of(cpus: int) -> Tier:
    return dataclasses.replace(ICOUNT, cpus=cpus)


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_the_clock_counts_instructions_and_nothing_is_the_hosts() -> None:
    words = icount.arguments(KERNEL, 512, cpus=2, possible=16, seed=7)
    assert after(words, "-accel") == "tcg,thread=single"
    assert after(words, "-icount") == "shift=0,sleep=off,align=off"
    assert after(words, "-rtc") == "base=2026-01-01,clock=vm"
    assert after(words, "-seed") == "7"
    # QEMU gives a PC's kernel no random numbers; the kernel draws from its command line.
    assert "isoblk.seed=7" in after(words, "-append").split()
    assert after(words, "-smp") == "16"
    # A stock kernel, too, boots with all processors that are to be online.
    assert "maxcpus=2" in after(words, "-append").split()
    assert words.count("-fsdev") == 1
    assert [word for word in words if word.startswith("/")] == ["/cache/k/vmlinuz"]


def test_the_guest_has_a_copy_of_the_runs_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "busybox", lambda: b"program")
    run, module, base = tmp_path / "run", tmp_path / "b.ko", tmp_path / "01-a.ko"
    (run / "traces").mkdir(parents=True)
    (run / "plan.sh").write_bytes(b"plan")
    (run / "traces" / "t.bin").write_bytes(b"trace")
    module.write_bytes(b"module")
    base.write_bytes(b"base")
    entries = icount.contents(run, [module], [base])
    files = {entry.path: entry for entry in entries}
    assert len(files) == len(entries)
    assert files["isoblk/plan.sh"].data == b"plan"
    assert files["isoblk/traces/t.bin"].data == b"trace"
    assert files["isoblk/modules/b.ko"].data == b"module"
    assert files["modules/00-01-a.ko"].data == b"base"
    # All that is not to be copied back.
    assert files["inputs"].data.split() == [b"plan.sh", b"traces", b"modules"]
    # Nothing leads to the host.
    assert all(initramfs.link(path, "").mode != entry.mode for path, entry in files.items())
    # A directory stands before its content.
    order = list(files)
    for path in order:
        if "/" in path:
            assert order.index(path.rpartition("/")[0]) < order.index(path)


def test_no_emulator_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "PATH", str(tmp_path))
    with pytest.raises(UserError, match="QEMU is missing; run: apt install qemu-system-x86"):
        icount.Icount(KERNEL, time_limit_s=1).run(tmp_path, [], seed=1, memory_mib=512)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cpus", [1, 3])
def test_a_plan_has_every_processor_and_a_queue_for_each(cpus: int) -> None:
    plan = make_plan(run_spec(device=NullBlkDevice()), of(cpus))
    online = [line for line in plan.text.splitlines() if line.endswith("/online")]
    assert online == [f"echo 1 > /sys/devices/system/cpu/cpu{i}/online" for i in range(1, cpus)]
    # They are read back.
    assert sum(setting.path.endswith("/online") for setting in plan.settings) == cpus - 1
    assert f"echo {cpus} > /sys/kernel/config/nullb/disk0/submit_queues" in plan.text
    for word in ("9p", "hostfs", "align", "sysrq"):
        assert word not in plan.text


def test_a_run_is_named_by_its_processors_and_its_record_has_them(tmp_path: Path) -> None:
    spec = run_spec(device=NullBlkDevice())
    jobs = [make_job(spec, "kernel", "modules", of(cpus)) for cpus in (1, 4)]
    assert jobs[0].id != jobs[1].id
    bench = fake_bench(FakeMachine(tier=of(4)))
    bench = dataclasses.replace(bench, modules={**bench.modules, "null_blk": Path("/x.ko")})
    record = execute(jobs[1], bench, tmp_path).record
    assert (record.tier, record.cpus, record.status) == ("icount", 4, "valid")
    assert machine(record) == "icount, 4 CPU"
    assert device(record) == "null_blk, 80.0 µs, 4 queues of 64 tags"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (run_spec(tenants=(tenant("a"), tenant("b", program="fio"))), "fio"),
        (run_spec(filesystem=DISK), "ext4"),
    ],
)
def test_a_program_that_is_read_from_the_host_is_refused(spec: RunSpec, told: str) -> None:
    with pytest.raises(UserError, match=f"icount machine has blkload only, not {told}; choose"):
        check_programs([spec], ICOUNT)
    check_programs([spec], QEMU)

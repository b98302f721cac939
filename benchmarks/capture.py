# SPDX-License-Identifier: GPL-2.0-only
"""What a capture costs the load that is captured: prints a table; docs/guides/capture.md.

As root: PYTHONPATH=src python benchmarks/capture.py. Pairs of fio runs on a loop device in memory,
one with a capture and one without, in turns. CPU time is fio's own, a request: the program in the
kernel runs in the task that submits. It is told apart from what isoblk itself takes meanwhile.
"""

import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import numpy as np

from isoblk.capture.btf import Types
from isoblk.capture.convert import convert, decoder
from isoblk.capture.events import EVENT

PAIRS = 5
SECONDS = 2
SHARED_MEMORY = "/dev/shm"
NUMBERS = {"REQ_OP_READ": 0, "__REQ_SYNC": 11, "__REQ_FUA": 17, "__REQ_PREFLUSH": 18}
CASES = {
    "4 KiB random reads, iodepth 32, as fast as can be": ["--rw=randread", "--bs=4k"],
    "64 KiB random reads, iodepth 32, as fast as can be": ["--rw=randread", "--bs=64k"],
    "4 KiB random reads, 20,000 a second": ["--rw=randread", "--bs=4k", "--rate_iops=20000"],
}


@dataclass(frozen=True)
class Load:
    """A fio run. cpu_ns: of fio, a request. reader_ns: of isoblk, a request, while it captures.
    program_ns: of the program in the kernel, a run, as the kernel counts it. lost: events."""

    iops: float
    cpu_ns: float
    reader_ns: float = 0
    program_ns: float = 0
    lost: int = 0


@contextmanager
def loop_device(directory: Path) -> Iterator[str]:
    """Of 256 MiB, written in full."""
    file = directory / "disk"
    file.write_bytes(os.urandom(1 << 20) * 256)
    command = ["losetup", "--find", "--show", str(file)]
    device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def fio(device: str, options: list[str]) -> Load:
    """Run it to its end."""
    words = ["fio", "--name=a", f"--filename={device}", "--direct=1", "--ioengine=libaio"]
    words += ["--iodepth=32", f"--runtime={SECONDS}", "--time_based", "--output-format=json"]
    done = subprocess.run([*words, *options], capture_output=True, text=True, check=True)
    (job,) = json.loads(done.stdout)["jobs"]
    ios = job["read"]["total_ios"]
    busy = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e6
    return Load(job["read"]["iops"], busy / ios)


def _cpu_ns(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1e9


def _attached(pid: int) -> bool:
    with suppress(OSError):
        return any("bpf" in str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir())
    return False


def captured(device: str, options: list[str], output: Path) -> Load:
    """The same, while it is captured."""
    words = [sys.executable, "-m", "isoblk", "capture", device, "-o", str(output), "--force"]
    capture = subprocess.Popen(
        ["env", "--default-signal=INT", *words, "--allow-loss"], stdout=subprocess.DEVNULL
    )
    while not _attached(capture.pid):
        if capture.poll() is not None:
            raise SystemExit(capture.returncode)
        time.sleep(0.05)
    time.sleep(0.5)
    before = _cpu_ns(capture.pid)
    load = fio(device, options)
    reader = _cpu_ns(capture.pid) - before
    program = _program_ns(capture.pid)
    capture.send_signal(signal.SIGINT)
    if capture.wait():
        raise SystemExit(capture.returncode)
    names = json.loads(Path(f"{output}.json").read_text())
    ios = sum(stream["requests"] for stream in names["streams"])
    return Load(load.iops, load.cpu_ns, reader / ios, program, int(names["lost"]))


def _program_ns(pid: int) -> float:
    """Of the process's BPF program, if the kernel counts."""
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        values = dict(
            line.split(":\t", 1) for line in info.read_text().splitlines() if ":\t" in line
        )
        if int(values.get("run_cnt", 0)):
            return int(values["run_time_ns"]) / int(values["run_cnt"])
    return 0


@contextmanager
def counted() -> Iterator[None]:
    """Let the kernel count how long BPF programs run."""
    switch = Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switch.read_text()
    switch.write_text("1")
    try:
        yield
    finally:
        switch.write_text(before)


def conversion_ns() -> float:
    """CPU time to make a trace of a million events, an event."""
    events = np.zeros(1_000_000, EVENT)
    events["t"] = np.arange(len(events))
    events["bytes"], events["comm"] = 4096, b"fio"
    events["cgroup"] = np.arange(len(events)) % 8
    with TemporaryDirectory(dir=SHARED_MEMORY) as directory, TemporaryFile(dir=directory) as raw:
        events.tofile(raw)
        began = time.process_time_ns()
        convert(raw, decoder(Types({}, NUMBERS, {})), Path(directory) / "t", base=0, path_of=str)
        return (time.process_time_ns() - began) / len(events)


def row(name: str, options: list[str], device: str, output: Path) -> str:
    """A line of the table: medians, and the median of the pairs' ratios."""
    pairs = []
    for i in range(PAIRS):
        if i % 2:
            with_ = captured(device, options, output)
            pairs.append((fio(device, options), with_))
        else:
            without = fio(device, options)
            pairs.append((without, captured(device, options, output)))
    ratios = sorted(with_.iops / without.iops - 1 for without, with_ in pairs)
    cpu = sorted(with_.cpu_ns - without.cpu_ns for without, with_ in pairs)
    middle = statistics.median
    quarter = len(pairs) // 4
    cells = (
        name,
        f"{middle(one.iops for one, _ in pairs):,.0f}",
        f"{middle(ratios):+.1%} ({ratios[quarter]:+.1%} to {ratios[-1 - quarter]:+.1%})",
        f"{middle(one.cpu_ns for one, _ in pairs):,.0f} ns",
        f"{middle(cpu):+,.0f} ns ({cpu[quarter]:+,.0f} to {cpu[-1 - quarter]:+,.0f})",
        f"{middle(one.reader_ns for _, one in pairs):,.0f} ns",
        f"{sum(one.lost for _, one in pairs):,}",
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure and print."""
    busy, release = os.getloadavg()[0], platform.release().partition("-")[0]
    print(
        f"Linux {release}, {os.cpu_count()} CPUs, {platform.machine()}; load of the machine"
        f" before: {busy:.1f}. {PAIRS} pairs of {SECONDS} s; medians, and quartiles.",
        "",
        "| load on a loop device | requests/s | with capture | fio's CPU time a request"
        " | with capture | isoblk's meanwhile | lost |",
        "|---|---|---|---|---|---|---|",
        sep="\n",
    )
    with TemporaryDirectory(dir=SHARED_MEMORY) as directory, loop_device(Path(directory)) as disk:
        for name, options in CASES.items():
            print(row(name, options, disk, Path(directory) / "t.isotrace"), flush=True)
        with counted():
            load = captured(disk, next(iter(CASES.values())), Path(directory) / "t.isotrace")
    print(
        f"\nThe program in the kernel takes {load.program_ns:,.0f} ns a request by the kernel's own"
        f" count; writing the trace afterwards {conversion_ns():,.0f} ns of CPU time."
    )


if __name__ == "__main__":
    main()

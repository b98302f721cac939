# SPDX-License-Identifier: GPL-2.0-only
"""A machine that runs no kernel: it answers a plan as a guest would whose tenants all do
the same number of reads."""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from isoblk.campaign.execute import Bench
from isoblk.kernel import Kernel
from isoblk.lab import Lab
from isoblk.machine import Ran
from isoblk.run.tier import UML, Tier

IOS = 1000


@dataclass
class FakeMachine:
    """before: called with the plan's text; what it raises, the run raises. altered: a file
    that reads back other than written. charged_bytes: what io.stat says, if not the truth.
    unmeasured: a tenant that ended in the warm-up."""

    before: Callable[[str], None] = lambda text: None
    altered: Mapping[str, str] = field(default_factory=dict)
    charged_bytes: int | None = None
    unmeasured: str = ""
    plans: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    tier: Tier = UML

    def stop(self) -> None:
        """Nothing runs between two runs."""

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        text = (directory / "plan.sh").read_text()
        with self.lock:
            self.plans.append(text)
        self.before(text)
        written = re.findall(r"^echo (.*) > (/sys/\S+)$", text, re.MULTILINE)
        knobs = {path: value.strip("\"'") for value, path in written} | dict(self.altered)
        (directory / "knobs").write_text("".join(f"{p}:{v}\n" for p, v in knobs.items()))
        tenants = [(k.split("/")[-2], v) for k, v in knobs.items() if k.endswith("/cgroup")]
        results, charged = "", ""
        size = 4096 * IOS
        for name, cgroup in tenants:
            end_ns = 0 if name == self.unmeasured else 10**9
            results += (
                f"tenant {name} jobs 1 start_ns 1 measure_from_ns 0 measure_to_ns {end_ns}"
                f" end_ns 1 error 0\n"
                f"op {name} read issued {IOS} ios {IOS} bytes {size} errors 0 verify_errors 0"
                f" meas_ios {IOS} meas_bytes {size} lat_sum_ns 1 lat_min_ns 1 lat_max_ns 1\n"
                f"lat {name} read 2 {IOS}\nwin {name} read 0 {IOS} {size}\n"
            )
            bytes_charged = size if self.charged_bytes is None else self.charged_bytes
            charged += (
                f"/sys/fs/cgroup{cgroup}/io.stat:254:0 rbytes={bytes_charged} wbytes=0"
                f" rios={IOS} wios=0 dbytes=0 dios=0\n"
            )
        (directory / "results").write_text(results)
        (directory / "charged").write_text(charged)
        if not self.tier.virtual_time:
            (directory / "processors-begin").write_text("cpu  0 0 0 0 0 0 0 0 0 0\n")
            (directory / "processors-end").write_text("cpu  20 5 5 60 5 0 5 0 10 0\n")
        (directory / "console.log").write_text("booted\n")
        return Ran(0.1, 0.1)


def fake_lab(machine: FakeMachine, jobs: int = 1) -> Lab:
    return Lab(fake_bench(machine), {}, ThreadPoolExecutor(jobs))


def fake_bench(machine: FakeMachine) -> Bench:
    kernel = Kernel(
        key="kernel-key",
        version="6.12.0",
        source="a tarball",
        compiler="gcc",
        debug=False,
        dir=Path("/nonexistent"),
    )
    modules = {name: Path(f"/nonexistent/{name}.ko") for name in ("isoblk_vdisk", "blkload")}
    return Bench(machine, kernel, modules, "modules-key")

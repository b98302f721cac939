# SPDX-License-Identifier: GPL-2.0-only
"""What the benchmarks share: the load, the kernel it runs on, and docs/findings/speed.md."""

import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from isoblk.campaign.execute import Bench, execute, make_bench, make_job
from isoblk.kernel import DEFAULT_VERSION, find, hold, host_library
from isoblk.machine.uml import Uml
from isoblk.result.store import Run
from isoblk.run.limits import DEFAULT_WEIGHT
from isoblk.run.spec import Device, RunSpec, Scheduler, Tenant, VdiskDevice, Workload

PAGE = Path(__file__).resolve().parents[1] / "docs" / "findings" / "speed.md"
SECOND = 1_000_000_000
FAST = VdiskDevice()
LOAD = Workload(iodepth=32)


def spec(
    scheduler: str,
    device: Device,
    tenants: int,
    *,
    virtual_s: int = 0,
    nr_requests: int | None = None,
    load: Workload = LOAD,
) -> RunSpec:
    """4 KiB random reads, iodepth 32 each; without virtual_s, one request each."""
    load = msgspec.structs.replace(load, number_ios=0 if virtual_s else 1)
    return RunSpec(
        kind="share",
        point={"scheduler": scheduler},
        repeat=0,
        device=device,
        scheduler=Scheduler(name=scheduler, elevator=scheduler),
        cgroup="v2",
        queue={} if nr_requests is None else {"nr_requests": nr_requests},
        groups=(),
        tenants=tuple(
            Tenant(
                name=f"t{i}",
                cgroup=f"t{i}",
                weight=DEFAULT_WEIGHT,
                workload=msgspec.structs.replace(load, randseed=i + 1),
            )
            for i in range(tenants)
        ),
        events=(),
        warmup_ns=0,
        runtime_ns=virtual_s * SECOND,
        window_ms=100,
        seed=1,
    )


def run(of: RunSpec, bench: Bench) -> Run:
    """Make a run, anew each time."""
    with TemporaryDirectory() as results:
        return execute(make_job(of, bench.kernel.key, bench.modules_key), bench, Path(results))


def requests(of: Run) -> int:
    """How many requests it made."""
    return sum(op.ios for tenant in of.record.tenants for op in tenant.ops.values())


@contextmanager
def uml_bench() -> Iterator[Bench]:
    """A uml machine with the default kernel."""
    kernel = find(DEFAULT_VERSION)
    with hold(kernel):
        yield make_bench(Uml(kernel, host_library(kernel), time_limit_s=600), kernel)


def write_table(name: str, bench: Bench, lines: Sequence[str]) -> None:
    """Put a table, and what it was measured on, between the page's two marks of that name."""
    begin, end = f"<!-- {name}: written by make bench -->", f"<!-- end of {name} -->"
    where = f"Linux {bench.kernel.version} as the guest, {os.cpu_count()} CPUs, "
    table = "\n".join([begin, "", f"{where}{platform.machine()}.", "", *lines, "", end])
    marked = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    PAGE.write_text(marked.sub(lambda _: table, PAGE.read_text()))

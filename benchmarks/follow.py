# SPDX-License-Identifier: GPL-2.0-only
"""How late `isoblk weights follow` is, and what it costs: the table of docs/guides/weights.md.

    python benchmarks/follow.py             in an emulated PC, and on this machine; root
    python benchmarks/follow.py --cgroups 500 --changes 1000

In the PC it is as a user has it, but slow: the processors are emulated. On this machine it is as
fast as a user has it; where the io controller is on cgroup v1, two files of the cgroup core take
the place of io.weight and io.isoblk.weight (cgroup.max.depth and cgroup.max.descendants), which are
read and written alike. The agent is the same in both.
"""

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import asdict
from pathlib import Path

from following import Measured, measure

from isoblk.campaign.execute import make_bench
from isoblk.kernel import DEFAULT_VERSION, stock
from isoblk.machine.qemu import Qemu
from isoblk.plan.plan import prologue
from isoblk.run.shell import render
from isoblk.run.tier import QEMU

ROOT = Path(__file__).resolve().parents[1]
PC_SECONDS = 3600.0


def here(count: int, changes: int) -> Measured:
    """On this machine, in a mount of the hierarchy that is removed again."""
    with tempfile.TemporaryDirectory() as name:
        mount = Path(name)
        subprocess.run(["mount", "-t", "cgroup2", "none", name], check=True)
        try:
            top = mount / "isoblk-follow"
            top.mkdir()
            try:
                return measure(top, count, changes, stands=True, hierarchy=mount)
            finally:
                _remove(top)
        finally:
            subprocess.run(["umount", name], check=True)


def _remove(top: Path) -> None:
    for place in [*top.glob("*/*/"), *top.glob("*/"), top]:
        place.rmdir()


def in_a_pc(count: int, changes: int) -> Measured:
    """In the emulated PC with Debian's kernel."""
    kernel = stock.find(DEFAULT_VERSION)
    bench = make_bench(Qemu(kernel, time_limit_s=PC_SECONDS), kernel)
    # The host's files are below /host there, to which no link of theirs leads.
    python = f"/host{Path(sys.executable).resolve()}"
    packages = sysconfig.get_path("purelib")
    script = [
        f"export PYTHONPATH=/host{ROOT / 'src'}:/host{packages}",
        "echo +io > /sys/fs/cgroup/cgroup.subtree_control",
        f"{python} -B /host{ROOT}/benchmarks/following.py /sys/fs/cgroup"
        f" --cgroups {count} --changes {changes} > /run/isoblk/measured",
    ]
    modules = ("isoblk_share", "isoblk-iosched")
    with tempfile.TemporaryDirectory() as name:
        run = Path(name)
        (run / "plan.sh").write_text(
            "\n".join([render(prologue(modules, "v2", QEMU)), *script, ""])
        )
        bench.machine.run(run, [bench.modules[one] for one in modules], seed=1, memory_mib=2048)
        return Measured(**json.loads((run / "measured").read_text()))


def main() -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cgroups", type=int, default=5000)
    parser.add_argument("--changes", type=int, default=10000)
    options = parser.parse_args()
    print(f"| {' | '.join(['', *Measured.__annotations__])} |")
    for name, measured in (("this machine", here), ("emulated PC", in_a_pc)):
        found = asdict(measured(options.cgroups, options.changes)).values()
        print(f"| {' | '.join([name, *(f'{value:,.4g}' for value in found)])} |", flush=True)


if __name__ == "__main__":
    main()

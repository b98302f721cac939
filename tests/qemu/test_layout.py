# SPDX-License-Identifier: GPL-2.0-only
"""Modules that were built with the private headers of another kernel do not load."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from isoblk.kernel import Kernel
from isoblk.paths import kernel_tree
from tests.lab.load import script
from tests.qemu.guest import Guest

# A change that a stable release may contain: 6.12.115 did.
LONGER = (r"(struct blkg_policy_data \{[^}]*)\}", r"\1\tvoid *more;\n}")


def build(kernel: Kernel, headers: Path, place: Path) -> Path:
    """The module isoblk_share, made with these private headers."""
    for part in ("include", "sched"):
        shutil.copytree(kernel_tree() / part, place / part)
    (place / "Kbuild").write_text("subdir-ccflags-y += -I$(src)/include\nobj-m += sched/\n")
    subprocess.run(
        ["make", "-C", kernel.build, f"M={place}", f"KSRC={headers}", "CC=gcc", "-j2", "modules"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return place / "sched/isoblk_share.ko"


def test_a_module_of_another_layout_than_the_kernels_is_refused(
    stock_guest: Guest, tmp_path: Path
) -> None:
    headers = tmp_path / "headers"
    shutil.copytree(stock_guest.kernel.tree / "block", headers / "block")
    changed = headers / "block/blk-cgroup.h"
    text, count = re.subn(*LONGER, changed.read_text(), count=1)
    assert count == 1
    changed.write_text(text)
    module = build(stock_guest.kernel, headers, tmp_path / "modules")
    bench = stock_guest.bench
    guest = replace(
        stock_guest,
        bench=replace(bench, modules={**bench.modules, "isoblk_share": module}),
    )
    left = guest.run(
        script(
            "insmod /run/isoblk/modules/isoblk_share.ko 2> /run/isoblk/said && exit 1",
            "dmesg | grep isoblk_share: > /run/isoblk/told",
            "ls /sys/module > /run/isoblk/modules-loaded",
        ),
        modules=("isoblk_share",),
        load=False,
    )
    assert "built with another struct blkg_policy_data than this kernel has" in left.read("told")
    assert "isoblk_share" not in left.read("modules-loaded").split()

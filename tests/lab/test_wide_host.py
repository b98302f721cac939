# SPDX-License-Identifier: GPL-2.0-only
"""Processors with more registers than UML 6.12 knows of (AMX): guests run on them as anywhere, to
the byte. Where the processor has none, a build of the preloaded library plays such a host."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from isoblk.errors import UserError
from isoblk.kernel import host_library
from isoblk.kernel.modules import library_sources
from isoblk.machine.uml import Uml
from isoblk.paths import kernel_tree
from tests.lab.campaigns import easily_disturbed

_WIDE = Path(__file__).parent / "wide_host.c"
_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
# Programs of the guest that keep fractions in vector registers while others run.
_FRACTIONS = """
sum() { awk 'BEGIN { for (i = 1; i < 20000; i++) { x += sin(i) / i; if (i % 2000 == 0)
    system("") } printf "%.17g\\n", x }'; }
sum > "$RESULTS/a" & sum > "$RESULTS/b"; wait
"""


def _on(library: Path, bench: Bench) -> Bench:
    return replace(bench, machine=Uml(bench.kernel, library, time_limit_s=600))


def _run(bench: Bench, directory: Path) -> dict[str, bytes]:
    """The files of a run, except the console, which shows the host's processor."""
    job = easily_disturbed()
    directory.mkdir()
    fractions = _FRACTIONS.replace("$RESULTS", "/run/isoblk")
    (directory / "plan.sh").write_text(job.plan.text + fractions)
    modules = [bench.modules[name] for name in job.plan.modules]
    bench.machine.run(directory, modules, seed=1, memory_mib=512)
    assert (directory / "a").read_text() == (directory / "b").read_text() != ""
    return {
        path.name: path.read_bytes() for path in directory.iterdir() if path.name != "console.log"
    }


def test_a_larger_area_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    library = tmp_path / "wide.so"
    sources = [*library_sources("um", kernel_tree()), _WIDE]
    subprocess.run(["gcc", *_FLAGS, "-Wl,--wrap=syscall", "-o", library, *sources], check=True)
    expected = _run(bench, tmp_path / "as it is")
    assert "results" in expected
    assert _run(_on(library, bench), tmp_path / "wide") == expected


def test_without_the_library_such_a_host_runs_nothing(default_bench: Bench, tmp_path: Path) -> None:
    library = tmp_path / "uncured.so"
    subprocess.run(["gcc", *_FLAGS, "-DWITHOUT_CURE", "-o", library, _WIDE], check=True)
    with pytest.raises(UserError, match="register area is larger than this kernel knows"):
        _run(_on(library, default_bench), tmp_path / "uncured")


def test_the_guests_are_run_with_the_library(default_bench: Bench) -> None:
    names = subprocess.run(
        ["nm", "-D", "--defined-only", host_library(default_bench.kernel)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert {line.split()[-1] for line in names.splitlines()} >= {"getrandom", "ptrace"}

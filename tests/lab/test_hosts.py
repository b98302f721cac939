# SPDX-License-Identifier: GPL-2.0-only
"""Machines differ in what they allow. Each lets guests run, with equal figures, or one line reports
the obstacle and a remedy."""

import errno
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from isoblk.campaign.trial import try_out
from isoblk.cli import doctor
from isoblk.errors import UserError
from isoblk.kernel import host_library
from isoblk.machine import uml
from isoblk.machine.process import DIE_WITH_PARENT
from isoblk.machine.uml import Uml
from tests.lab.campaigns import STUDIES, run_file, tables
from tests.lab.guest import Guest

# System calls, by number.
_CLONE, _PTRACE, _PERSONALITY = "56", "101", "135"
_EPERM, _ENOSYS = str(errno.EPERM), str(errno.ENOSYS)
_ALONE = ("unshare", "--map-root-user", "--mount")
_FIRST_PROCESS = ("--pid", "--fork", "--kill-child")
_MAY_MOUNT = subprocess.run([*_ALONE, "true"], capture_output=True, check=False).returncode == 0


def _mounted(what: str, *also: str) -> tuple[str, ...]:
    """Mounts that only this command sees."""
    return (*_ALONE, *also, "sh", "-c", f'{what} && exec "$0" "$@"')


def _forbid(call: str, answer: str) -> tuple[str, ...]:
    return (sys.executable, "-SI", str(Path(__file__).parent / "forbid.py"), call, answer)


_MOUNT = 'mount -t tmpfs -o {options} tmpfs "$TMPDIR"'
_MACHINES = {
    # A restriction of the machine: its wrapper, whether /dev/shm is of use, the expected message.
    "ptrace is refused": (_forbid(_PTRACE, _EPERM), True, "ptrace is forbidden here"),
    "ptrace is unknown": (_forbid(_PTRACE, _ENOSYS), True, "ptrace is forbidden here"),
    "ptrace is the end": (_forbid(_PTRACE, "kill"), True, "ptrace is forbidden here"),
    "no new processes": (_forbid(_CLONE, _EPERM), True, "no more processes may be started"),
    "personality is refused": (_forbid(_PERSONALITY, _EPERM), True, "works"),
    "ulimit -v": (("prlimit", "--as=400000000"), True, "ulimit -v unlimited"),
    "ulimit -f": (("prlimit", "--fsize=100000000"), True, "ulimit -f unlimited"),
    "ulimit -n": (("prlimit", "--nofile=40"), True, "works"),
    "ulimit -s": (("prlimit", "--stack=unlimited"), True, "works"),
}
_MACHINES_BY_MOUNTS = {
    "no shared memory": (_mounted("true"), False, "works"),
    "little space": (_mounted(_MOUNT.format(options="size=2m")), False, "no space for the guest"),
    "no execution": (_mounted(_MOUNT.format(options="noexec")), False, "without noexec"),
    "no /proc": (_mounted("mount -t tmpfs tmpfs /proc"), True, "mount /proc"),
    "hidepid": (_mounted("mount -t proc -o hidepid=2 proc /proc", *_FIRST_PROCESS), True, "works"),
}


def _told(
    bench: Bench,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrapper: tuple[str, ...],
    in_memory: bool,
) -> str:
    """Try a guest on a machine that a command makes of this one; what the user is told."""
    # Behind what makes other programs of the run's own: setarch might be forbidden.
    monkeypatch.setattr(uml, "DIE_WITH_PARENT", (*DIE_WITH_PARENT, *wrapper))
    monkeypatch.setattr(uml, "_launcher", lambda: [uml.LOADER])
    if not in_memory:
        monkeypatch.setattr(uml, "SHARED_MEMORY", directory / "none")
    machine = Uml(bench.kernel, host_library(bench.kernel), time_limit_s=120)
    try:
        try_out(replace(bench, machine=machine), directory)
    except UserError as error:
        assert "\n" not in str(error)
        assert error.next
        return str(error)
    finally:
        assert list(directory.iterdir()) == []
    return "works"


@pytest.mark.parametrize("machine", _MACHINES)
def test_an_operation_that_the_machine_forbids_is_reported(
    default_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    wrapper, in_memory, expected = _MACHINES[machine]
    assert expected in _told(default_bench, tmp_path, monkeypatch, wrapper, in_memory)


@pytest.mark.skipif(not _MAY_MOUNT, reason="may not make namespaces")
@pytest.mark.parametrize("machine", _MACHINES_BY_MOUNTS)
def test_a_mount_of_the_machine_that_prevents_runs_is_reported(
    default_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    wrapper, in_memory, expected = _MACHINES_BY_MOUNTS[machine]
    assert expected in _told(default_bench, tmp_path, monkeypatch, wrapper, in_memory)


def test_where_addresses_are_random_every_run_is_the_same(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def memory(of: Bench) -> str:
        left = Guest(of, tmp_path / "memory").run("head -n 1 /proc/meminfo > /run/isoblk/memory")
        return left.read("memory")

    expected = memory(bench), tables(run_file(STUDIES / "quick.toml", bench, tmp_path / "a"))
    # As in a container that may not switch that off.
    monkeypatch.setattr(uml, "NO_ASLR", ("false",))
    refused = _forbid(_PERSONALITY, _EPERM)
    monkeypatch.setattr(uml, "DIE_WITH_PARENT", (*DIE_WITH_PARENT, *refused))
    machine = Uml(bench.kernel, host_library(bench.kernel), time_limit_s=900)
    random = replace(bench, machine=machine)
    found = memory(random), tables(run_file(STUDIES / "quick.toml", random, tmp_path / "b"))
    assert found == expected


@pytest.mark.skipif(not _MAY_MOUNT, reason="may not make namespaces")
def test_a_host_with_a_run_mount_gives_the_same_random_numbers(
    default_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long the guest's first programs run is mixed into them.
    script = "sleep 3; od -N 16 -t x1 /dev/urandom > /run/isoblk/random"
    found = set()
    for name in ("nothing", "mount"):
        host = _mounted(f"mount -t tmpfs tmpfs /run && mkdir /run/{name}")
        monkeypatch.setattr(uml, "DIE_WITH_PARENT", (*DIE_WITH_PARENT, *host))
        machine = Uml(default_bench.kernel, host_library(default_bench.kernel), time_limit_s=120)
        guest = Guest(replace(default_bench, machine=machine), tmp_path / name)
        found.add(guest.run(script).read("random"))
    assert len(found) == 1


def _isoblk_without_ptrace(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*_forbid(_PTRACE, _EPERM), sys.executable, "-m", "isoblk", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "400"}, check=False
    )


def test_a_study_that_cannot_run_fails_once_before_its_first_run(
    default_bench: Bench, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    ran = _isoblk_without_ptrace("run", str(STUDIES / "quick.toml"), "-o", str(results))
    assert ran.returncode == 2
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("isoblk: ptrace is forbidden here")
    assert ran.stderr.count("isoblk: ") == 1
    assert "failed" not in ran.stdout
    assert list((results / "runs").iterdir()) == []
    # Which the same directory takes once it can.
    tables(run_file(STUDIES / "quick.toml", default_bench, results))
    # A finished run needs no guest.
    again = _isoblk_without_ptrace("run", str(STUDIES / "quick.toml"), "-o", str(results))
    assert again.returncode == 0, again.stderr


def test_the_doctor_boots_a_guest_and_says_why_not(default_bench: Bench) -> None:
    sick = _isoblk_without_ptrace("doctor")
    assert sick.returncode == 1
    (line,) = re.findall("^guest +missing .*", sick.stdout, re.MULTILINE)
    assert "ptrace is forbidden here" in line
    assert "--cap-add SYS_PTRACE" in line
    check = doctor.check_guest()
    assert (check.name, check.state) == ("guest", doctor.State.OK)
    assert default_bench.kernel.version in check.found

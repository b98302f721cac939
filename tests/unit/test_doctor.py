# SPDX-License-Identifier: GPL-2.0-only
"""The doctor separates requirements from options, and names a remedy."""

from pathlib import Path

import pytest
from rich.console import Console

from isoblk import kernel
from isoblk.cli import doctor
from isoblk.cli.doctor import Check, State
from isoblk.kernel import Kernel, tools
from isoblk.machine import qemu, uml


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_only_a_missing_requirement_is_unhealthy() -> None:
    fine = Check("a", State.OK, "")
    optional = Check("b", State.OPTIONAL, "", "do")
    missing = Check("c", State.MISSING, "", "do")
    assert doctor.healthy([fine, optional])
    assert not doctor.healthy([fine, missing])


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    check = doctor.check_build_tools()
    assert check.state is State.MISSING
    assert "bison" in check.found
    assert "apt install gcc binutils make" in check.todo
    assert doctor.check_fio() == Check("fio", State.OPTIONAL, "not found", "run: apt install fio")


def test_one_command_installs_all_that_is_required() -> None:
    def missing(todo: str, state: State = State.MISSING) -> Check:
        return Check("x", state, "", todo)

    tools, kmod = missing("run: apt install gcc make"), missing("run: apt install kmod make")
    other = missing("run: apt install fio", State.OPTIONAL)
    assert doctor.install_all([tools, missing("use another"), kmod, other]) == (
        "run: apt install gcc make kmod"
    )
    # One check alone has said it.
    assert doctor.install_all([tools, other]) == ""


def test_build_tools_are_no_must_where_all_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "find", lambda: None)
    monkeypatch.setattr(kernel, "ready_modules", lambda found: Path("/modules"))
    monkeypatch.setenv("PATH", "")
    assert doctor.check_build_tools().state is State.OPTIONAL


def test_missing_programs_of_ssd_caches_are_named_with_their_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = {"dmsetup"}
    monkeypatch.setattr("shutil.which", lambda name, path=None: name in there)
    check = doctor.check_caches()
    assert check.state is State.OPTIONAL
    assert check.found.endswith("not found: programs of bcache")
    assert "dm-cache" in check.found
    assert check.todo == "run: apt install bcache-tools"
    there.add("make-bcache")
    assert doctor.check_caches().state is State.OK
    there.clear()
    assert doctor.check_caches().todo == "run: apt install bcache-tools dmsetup"


def test_checking_leaves_nothing_behind(cache: Path) -> None:
    doctor.check_all()
    assert not cache.exists()


def test_every_check_that_is_not_ok_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    checks = doctor.check_all()
    assert {check.name for check in checks} >= {"build tools", "kmod", "ptrace", "cache", "kernels"}
    assert all(bool(check.todo) == (check.state is not State.OK) for check in checks)


def test_unwritable_cache_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "file" / "cache"))
    check = doctor.check_cache()
    assert (check.state, check.todo) == (State.MISSING, "set ISOBLK_CACHE to a writable directory")


def test_a_cache_that_may_only_be_read_will_do_if_all_is_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(kernel, "find", lambda: None)
    monkeypatch.setattr(kernel, "ready_modules", lambda found: Path("/modules"))
    check = doctor.check_cache()
    assert check.state is State.OPTIONAL
    assert "its contents are used" in check.found


def test_too_little_space_is_missing_while_there_is_no_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "_CACHE_BYTES", 1 << 60)
    assert doctor.check_cache().state is State.MISSING


def test_no_shared_memory_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(uml, "SHARED_MEMORY", tmp_path / "none")
    check = doctor.check_memory()
    assert check.state is State.OPTIONAL
    assert "slower" in check.found
    assert "--shm-size" in check.todo


def test_table_shows_every_check() -> None:
    checks = [Check("a", State.OK, "x"), Check("b", State.MISSING, "y [z]", "do [this]")]
    console = Console(width=100, record=True)
    with console.capture() as capture:
        console.print(doctor.table(checks))
    text = capture.get()
    assert "missing" in text
    assert "y [z]" in text
    assert "do [this]" in text


def test_without_a_kernel_no_guest_is_tried() -> None:
    check = doctor.check_guest()
    assert (check.state, check.todo) == (State.OPTIONAL, "run: isoblk kernel build")


def test_a_cache_that_no_kernel_can_be_built_in_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "a home"))
    check = doctor.check_cache()
    assert (check.state, check.todo) == (State.MISSING, "set ISOBLK_CACHE to another directory")
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "\N{GREEK SMALL LETTER ALPHA}"))
    assert doctor.check_cache().state is State.OK


def test_the_emulated_machines_need_a_pcs_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "program", lambda: "/usr/bin/qemu")
    monkeypatch.setattr(qemu, "busybox", lambda: b"program")
    monkeypatch.setattr(tools, "has_libelf", lambda: True)
    check = doctor.check_qemu()
    assert (check.name, check.state) == ("qemu, icount", State.OPTIONAL)
    assert check.found.startswith("/usr/bin/qemu, no stock kernel")
    assert check.todo == "run: isoblk kernel build --stock --version 6.12"
    built = Kernel("key", "6.12.1", "source", "gcc", False, Path("/k"), arch="x86_64", stock=True)
    monkeypatch.setattr(doctor, "kernel_for", lambda tier: built)
    assert doctor.check_qemu() == Check("qemu, icount", State.OK, "/usr/bin/qemu, Linux 6.12.1")

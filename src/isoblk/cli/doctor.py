# SPDX-License-Identifier: GPL-2.0-only
"""isoblk doctor: check everything isoblk needs; one line per check, with the remedy."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import typer
from rich.table import Table
from rich.text import Text

from isoblk import kernel
from isoblk.caches.registry import CACHES
from isoblk.campaign import trial
from isoblk.cli.help import examples
from isoblk.console import new_console
from isoblk.errors import IsoblkError, UserError
from isoblk.kernel import tools
from isoblk.kernel.store import require_one_word
from isoblk.lab.lab import Lab, kernel_for
from isoblk.machine import qemu
from isoblk.machine.uml import SHARED_MEMORY, memory_mib, shared_memory_problem
from isoblk.paths import cache_dir
from isoblk.programs import ycsb_jars
from isoblk.programs.registry import PROGRAMS
from isoblk.run.tier import QEMU, UML

# Space for one kernel: 0.3 GB package, 0.7 GB unpacked source, 0.15 GB of build.
_CACHE_BYTES = 1_200_000_000

# Seconds after which a guest counts as hung; it boots in less than a second.
_GUEST_LIMIT_S = 120


class State(Enum):
    """Result of a check."""

    OK = "ok"
    MISSING = "missing"
    OPTIONAL = "optional"


@dataclass(frozen=True)
class Check:
    """One check's result.

    Attributes:
        name: subject of the check.
        state: MISSING only if isoblk cannot work without it.
        found: the version, path or problem found.
        todo: the remedy; empty if ok.
    """

    name: str
    state: State
    found: str
    todo: str = ""


app = typer.Typer()


@app.command(epilog=examples("isoblk doctor"))
def doctor() -> None:
    """Check that everything isoblk needs is installed.

    Exit status: 0; 1 if something required is missing.
    """
    checks = check_all()
    new_console().print(table(checks))
    if command := install_all(checks):
        typer.echo(f"\nto install everything missing: {command}")
    if not healthy(checks):
        raise typer.Exit(1)


def check_all() -> list[Check]:
    """Run every check."""
    checks: Sequence[Callable[[], Check]] = (
        check_machine,
        check_build_tools,
        check_kmod,
        check_libraries,
        check_tracing,
        check_memory,
        check_cache,
        check_kernels,
        check_guest,
        check_fio,
        check_programs,
        check_ycsb,
        check_caches,
        check_qemu,
    )
    return [check() for check in checks]


def healthy(checks: Sequence[Check]) -> bool:
    """Return whether nothing required is missing."""
    return all(check.state is not State.MISSING for check in checks)


def install_all(checks: Sequence[Check]) -> str:
    """Return one command that installs everything required; "" unless two checks ask for it."""
    asked = [
        check.todo.removeprefix(tools.INSTALL)
        for check in checks
        if check.state is State.MISSING and check.todo.startswith(tools.INSTALL)
    ]
    return tools.install_command(" ".join(asked).split()) if len(asked) > 1 else ""


def table(checks: Sequence[Check]) -> Table:
    """Return a table of the checks for a terminal."""
    colours = {State.OK: "green", State.MISSING: "red", State.OPTIONAL: "yellow"}
    result = Table(box=None, pad_edge=False)
    for heading in ("check", "state", "found", "what to do"):
        result.add_column(heading, overflow="fold")
    for check in checks:
        colour = colours[check.state]
        # Text, since results may contain brackets, which would be markup.
        result.add_row(
            check.name,
            Text(check.state.value, style=colour),
            Text(check.found),
            Text(check.todo),
        )
    return result


def check_machine() -> Check:
    """Check for x86-64 Linux, which User Mode Linux needs."""
    found = f"{platform.system()} {platform.machine()}"
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        return Check("machine", State.OK, found)
    return Check("machine", State.MISSING, found, "use an x86-64 Linux machine")


def check_build_tools() -> Check:
    """Check for the compiler and other programs that a kernel build runs."""
    name = "build tools"
    if absent := tools.lacking():
        return Check(
            name,
            State.OPTIONAL if _runs_already() else State.MISSING,
            "not found: " + ", ".join(absent),
            tools.install_command(list(absent.values())),
        )
    return Check(name, State.OK, tools.compiler())


def _runs_already() -> bool:
    """Return whether a kernel and its modules are ready, so that nothing must be built."""
    try:
        return kernel.ready_modules(kernel.find()) is not None
    except IsoblkError:
        return False


def check_kmod() -> Check:
    """Check for insmod: guests load modules with the host's."""
    path = shutil.which("insmod", path=f"{os.environ.get('PATH', '')}:{tools.SBIN}")
    if path:
        return Check("kmod", State.OK, path)
    return Check("kmod", State.MISSING, "no insmod", tools.install_command(["kmod"]))


def check_libraries() -> Check:
    """Check for the Python libraries that isoblk declares."""
    try:
        declared = importlib.metadata.requires("isoblk") or []
    except importlib.metadata.PackageNotFoundError:
        declared = []
    names = [
        match[0]
        for text in declared
        if "extra ==" not in text and (match := re.match(r"[\w.-]+", text))
    ]
    absent = [name for name in names if not _installed(name)]
    version = "Python " + platform.python_version()
    if absent:
        return Check(
            "Python",
            State.MISSING,
            "no " + ", ".join(absent),
            "run: pip install " + " ".join(absent),
        )
    return Check("Python", State.OK, ", ".join([version, *names]))


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


# PTRACE_TRACEME is 0. UML traces its user processes.
_TRACE_ME = "import ctypes,sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)"


def check_tracing() -> Check:
    """Check for ptrace, which User Mode Linux needs and containers may forbid."""
    result = subprocess.run([sys.executable, "-c", _TRACE_ME], capture_output=True, check=False)
    if result.returncode == 0:
        return Check("ptrace", State.OK, "permitted")
    return Check(
        "ptrace",
        State.MISSING,
        "forbidden",
        "allow ptrace (containers: --cap-add SYS_PTRACE; sysctl kernel.yama.ptrace_scope below 3)",
    )


def check_memory() -> Check:
    """Check for shared memory that holds a guest's memory and permits execution."""
    problem = shared_memory_problem(memory_mib(tenants=1))
    if not problem:
        free = shutil.disk_usage(SHARED_MEMORY).free
        return Check("guest memory", State.OK, f"{free / 1e6:,.0f} MB free in {SHARED_MEMORY}")
    return Check(
        "guest memory",
        State.OPTIONAL,
        f"{SHARED_MEMORY}: {problem}; guests use the result directory, which is slower",
        f"give {SHARED_MEMORY} 1 GB, without noexec (containers: --shm-size=2g)",
    )


def check_cache() -> Check:
    """Check that the cache is writable and has room for a kernel."""
    try:
        directory = cache_dir()
    except UserError as error:
        return Check("cache", State.MISSING, error.cause, error.next)
    existing = next(path for path in [directory, *directory.parents] if path.exists())
    free = shutil.disk_usage(existing).free
    found = f"{free / 1e9:,.1f} GB free in {directory}"
    if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
        if _runs_already():
            return Check(
                "cache",
                State.OPTIONAL,
                f"{directory} is not writable: its contents are used, nothing is added",
                "for other kernels, own modules, traces and ycsb set ISOBLK_CACHE to a writable"
                " directory",
            )
        return Check(
            "cache",
            State.MISSING,
            f"{directory} is not writable",
            "set ISOBLK_CACHE to a writable directory",
        )
    try:
        require_one_word()
    except UserError as error:
        return Check("cache", State.MISSING, f"{directory}: {error.cause}", error.next)
    if free < _CACHE_BYTES:
        return Check(
            "cache",
            State.OPTIONAL if kernel.list_kernels() else State.MISSING,
            found,
            "a kernel needs 1.2 GB: run isoblk kernel clean --all, or set ISOBLK_CACHE",
        )
    return Check("cache", State.OK, found)


def check_kernels() -> Check:
    """Check for a kernel. Optional, since building it is the next step after the installation."""
    command = "run: isoblk kernel build"
    try:
        kernel.find()
    except IsoblkError as error:
        return Check("kernels", State.OPTIONAL, error.cause, error.next or command)
    names = ", ".join(_describe(item) for item in kernel.list_kernels())
    return Check("kernels", State.OK, names)


def check_guest() -> Check:
    """Check that a guest boots, loads the modules, and writes and reads a disk."""
    name = "guest"
    command = "run: isoblk kernel build"
    try:
        chosen = kernel.find()
    except IsoblkError:
        return Check(name, State.OPTIONAL, "not tried: there is no kernel yet", command)
    if kernel.ready_modules(chosen) is None:
        return Check(name, State.OPTIONAL, "not tried: the modules are not built yet", command)
    try:
        with Lab.open(kernel=chosen, time_limit_s=_GUEST_LIMIT_S) as lab:
            ran = trial.try_out(lab.bench)
    except IsoblkError as error:
        todo = error.next or "run isoblk doctor outside of any container to compare"
        return Check(name, State.MISSING, error.cause, todo)
    return Check(
        name,
        State.OK,
        f"Linux {chosen.version} boots, loads {len(trial.MODULES)} modules, writes and reads a"
        f" disk: {ran.wall_s:.1f} s",
    )


def _describe(item: kernel.Kernel) -> str:
    arch = "" if item.arch == "um" or item.stock else item.arch
    words = [word for word in (arch, "debug" if item.debug else "") if word]
    return item.version + (f" ({', '.join(words)})" if words else "")


def check_fio() -> Check:
    """Check for fio, which tenants with workload = "fio" and the host machine need."""
    path = shutil.which("fio")
    if path:
        return Check("fio", State.OK, path)
    return Check("fio", State.OPTIONAL, "not found", tools.install_command(["fio"]))


def _found(
    needs: Mapping[str, Mapping[str, str]],
) -> tuple[str, dict[str, Mapping[str, str]]]:
    """Return the names whose programs are all installed, and the needs of the other names."""
    absent = {name: wanted for name, wanted in needs.items() if tools.missing(wanted, UML.path)}
    return ", ".join(name for name in needs if name not in absent), absent


def check_programs() -> Check:
    """Check for programs that tenants may run."""
    needs = {name: program.needs({}) for name, program in PROGRAMS.items()}
    found, absent = _found(needs)
    if not absent:
        return Check("programs", State.OK, found)
    packages = [package for wanted in absent.values() for package in wanted.values()]
    instead = [name for name in absent if PROGRAMS[name].instead({})]
    hint = f" (fio replaces {', '.join(instead)})" if instead else ""
    return Check(
        "programs",
        State.OPTIONAL,
        f"{found}; not found: {', '.join(absent)}",
        tools.install_command(packages) + hint,
    )


def check_ycsb() -> Check:
    """Check for Java and Maven, which tenants with workload = "ycsb" need."""
    if absent := ycsb_jars.missing():
        return Check(
            "ycsb",
            State.OPTIONAL,
            "not found: " + ", ".join(absent),
            tools.install_command(list(absent.values())),
        )
    made = "made" if ycsb_jars.made() else "Maven will fetch it at its first use"
    return Check("ycsb", State.OK, made)


def check_caches() -> Check:
    """Check for programs that studies with an SSD and isoblk cache need."""
    needs = {name: one.needs() for name, one in CACHES.items() if one.needs()}
    found, absent = _found(needs)
    if not absent:
        return Check("SSD caches", State.OK, found)
    packages = {package: None for wanted in absent.values() for package in wanted.values()}
    return Check(
        "SSD caches",
        State.OPTIONAL,
        f"{found}; not found: programs of {', '.join(absent)}" if found else "no program found",
        tools.install_command(list(packages)),
    )


def check_qemu() -> Check:
    """Check for QEMU and BusyBox, which the qemu and icount machines need.

    The lab's own kernels for these machines also need libelf.
    """
    name = "qemu, icount"
    absent = []
    if qemu.program() is None:
        absent.append(("QEMU", "qemu-system-x86"))
    try:
        qemu.busybox()
    except UserError:
        absent.append(("a statically linked BusyBox", "busybox-static"))
    if not tools.missing(tools.BUILD_TOOLS) and not tools.has_libelf():
        absent.append(("libelf's headers", "libelf-dev"))
    if absent:
        return Check(
            name,
            State.OPTIONAL,
            "not found: " + ", ".join(name for name, _ in absent),
            tools.install_command([package for _, package in absent]),
        )
    try:
        chosen = kernel_for(QEMU)
    except UserError as error:
        return Check(name, State.OPTIONAL, f"{qemu.program()}, {error.cause}", error.next)
    return Check(name, State.OK, f"{qemu.program()}, Linux {chosen.version}")

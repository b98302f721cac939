# SPDX-License-Identifier: GPL-2.0-only
"""Is everything here that isoblk needs? One check a line, each with what to do about it."""

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
from isoblk.campaign.execute import make_bench
from isoblk.cli.help import examples
from isoblk.cli.run import pc_kernel
from isoblk.console import new_console
from isoblk.errors import IsoblkError, UserError
from isoblk.kernel import tools
from isoblk.kernel.store import require_one_word
from isoblk.machine import qemu
from isoblk.machine.uml import SHARED_MEMORY, Uml, memory_mib, shared_memory_problem
from isoblk.paths import cache_dir
from isoblk.programs import ycsb_jars
from isoblk.programs.registry import PROGRAMS
from isoblk.run.tier import UML

# Space for one kernel: 0.7 GB of source while its 0.3 GB package is unpacked, 0.15 GB of build.
_CACHE_BYTES = 1_200_000_000

# Seconds after which a guest hangs; it boots in a fraction of one.
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
        name: what was looked at.
        state: MISSING only for what isoblk cannot do without.
        found: what was found, or is wrong.
        todo: what to do about it; empty if ok.
    """

    name: str
    state: State
    found: str
    todo: str = ""


app = typer.Typer()


@app.command(epilog=examples("isoblk doctor"))
def doctor() -> None:
    """Check that everything isoblk needs is here; status 1 if not."""
    checks = check_all()
    new_console().print(table(checks))
    if command := install_all(checks):
        typer.echo(f"\nall that is missing: {command}")
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
    """Whether nothing that is required is missing."""
    return all(check.state is not State.MISSING for check in checks)


def install_all(checks: Sequence[Check]) -> str:
    """The one command that installs what is required; empty if one check or none asks for it."""
    asked = [
        check.todo.removeprefix(tools.INSTALL)
        for check in checks
        if check.state is State.MISSING and check.todo.startswith(tools.INSTALL)
    ]
    return tools.install_command(" ".join(asked).split()) if len(asked) > 1 else ""


def table(checks: Sequence[Check]) -> Table:
    """The checks for a terminal."""
    colours = {State.OK: "green", State.MISSING: "red", State.OPTIONAL: "yellow"}
    result = Table(box=None, pad_edge=False)
    for heading in ("check", "state", "found", "what to do"):
        result.add_column(heading, overflow="fold")
    for check in checks:
        colour = colours[check.state]
        # What was found is no markup, whatever brackets it has.
        result.add_row(
            check.name,
            Text(check.state.value, style=colour),
            Text(check.found),
            Text(check.todo),
        )
    return result


def check_machine() -> Check:
    """User Mode Linux runs on x86-64 Linux."""
    found = f"{platform.system()} {platform.machine()}"
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        return Check("machine", State.OK, found)
    return Check("machine", State.MISSING, found, "use an x86-64 Linux machine")


def check_build_tools() -> Check:
    """Compiler and what else a kernel build runs."""
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
    """Whether there is a kernel with its modules, for which nothing need be built."""
    try:
        return kernel.ready_modules(kernel.find()) is not None
    except IsoblkError:
        return False


def check_kmod() -> Check:
    """Guests load modules with insmod, from the host's file system."""
    path = shutil.which("insmod", path=f"{os.environ.get('PATH', '')}:{tools.SBIN}")
    if path:
        return Check("kmod", State.OK, path)
    return Check("kmod", State.MISSING, "no insmod", tools.install_command(["kmod"]))


def check_libraries() -> Check:
    """The Python libraries that isoblk declares."""
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


# PTRACE_TRACEME is 0; UML's user processes are traced by it.
_TRACE_ME = "import ctypes,sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)"


def check_tracing() -> Check:
    """User Mode Linux runs its processes under ptrace; containers may forbid it."""
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
    """Room for a guest's memory in the host's, and the right to execute from it."""
    problem = shared_memory_problem(memory_mib(tenants=1))
    if not problem:
        free = shutil.disk_usage(SHARED_MEMORY).free
        return Check("guest memory", State.OK, f"{free / 1e6:,.0f} MB free in {SHARED_MEMORY}")
    return Check(
        "guest memory",
        State.OPTIONAL,
        f"{SHARED_MEMORY}: {problem}: it goes to the result directory, which is slower",
        "give it 1 GB, without noexec (containers: --shm-size=2g)",
    )


def check_cache() -> Check:
    """The cache is writable and has room for a kernel."""
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
                f"{directory} is not writable: what is in it is used, nothing new is kept",
                "set ISOBLK_CACHE elsewhere for other kernels, modules of yours, traces and ycsb",
            )
        return Check(
            "cache", State.MISSING, f"{directory} is not writable", "set ISOBLK_CACHE elsewhere"
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
    """A kernel is ready. Not required: building one is the next step, not a fault."""
    command = "run: isoblk kernel build"
    try:
        kernel.find()
    except IsoblkError as error:
        return Check("kernels", State.OPTIONAL, error.cause, error.next or command)
    names = ", ".join(_describe(item) for item in kernel.list_kernels())
    return Check("kernels", State.OK, names)


def check_guest() -> Check:
    """A guest boots, loads the modules, and writes and reads a disk."""
    name = "guest"
    command = "run: isoblk kernel build"
    try:
        chosen = kernel.find()
    except IsoblkError:
        return Check(name, State.OPTIONAL, "not tried: there is no kernel yet", command)
    if kernel.ready_modules(chosen) is None:
        return Check(name, State.OPTIONAL, "not tried: the modules are not built yet", command)
    try:
        with kernel.hold(chosen):
            machine = Uml(chosen, kernel.host_library(chosen), time_limit_s=_GUEST_LIMIT_S)
            ran = trial.try_out(make_bench(machine, chosen))
    except IsoblkError as error:
        todo = error.next or "the same in a shell outside of any container may tell more"
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
    """Fio is only for tenants with workload = "fio", and for the host machine."""
    path = shutil.which("fio")
    if path:
        return Check("fio", State.OK, path)
    return Check("fio", State.OPTIONAL, "not found", tools.install_command(["fio"]))


def _found(
    needs: Mapping[str, Mapping[str, str]],
) -> tuple[str, dict[str, Mapping[str, str]]]:
    """Of what needs programs: the names of those that have them all, and the others' needs."""
    absent = {name: wanted for name, wanted in needs.items() if tools.missing(wanted, UML.path)}
    return ", ".join(name for name in needs if name not in absent), absent


def check_programs() -> Check:
    """Programs are only for tenants that run them."""
    needs = {name: program.needs({}) for name, program in PROGRAMS.items()}
    found, absent = _found(needs)
    if not absent:
        return Check("programs", State.OK, found)
    packages = [package for wanted in absent.values() for package in wanted.values()]
    instead = [name for name in absent if PROGRAMS[name].instead({})]
    hint = f" (fio does what {', '.join(instead)} would)" if instead else ""
    return Check(
        "programs",
        State.OPTIONAL,
        f"{found}; not found: {', '.join(absent)}",
        tools.install_command(packages) + hint,
    )


def check_ycsb() -> Check:
    """Java and Maven are only for tenants with workload = "ycsb"."""
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
    """Only for studies with an SSD, and for isoblk cache."""
    needs = {name: one.needs() for name, one in CACHES.items() if one.needs()}
    found, absent = _found(needs)
    if not absent:
        return Check("SSD caches", State.OK, found)
    packages = {package: None for wanted in absent.values() for package in wanted.values()}
    return Check(
        "SSD caches",
        State.OPTIONAL,
        f"{found}; not found: what {', '.join(absent)} need" if found else "no program of theirs",
        tools.install_command(list(packages)),
    )


def check_qemu() -> Check:
    """QEMU and BusyBox are only for the qemu and icount machines, libelf for kernels of our own
    for them."""
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
        chosen = pc_kernel(kernel.DEFAULT_VERSION, debug=False)
    except UserError as error:
        return Check(name, State.OPTIONAL, f"{qemu.program()}, {error.cause}", error.next)
    return Check(name, State.OK, f"{qemu.program()}, Linux {chosen.version}")

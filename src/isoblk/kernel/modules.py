# SPDX-License-Identifier: GPL-2.0-only
"""Build the repository's kernel modules for a kernel of the store, and the library that the uml
machine preloads."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from isoblk.errors import RunError, UserError
from isoblk.kernel import store, tools
from isoblk.kernel.builder import Make, failure
from isoblk.kernel.progress import Progress, Silent
from isoblk.kernel.store import Kernel
from isoblk.paths import kernel_tree

_SOURCES = (".c", ".h")
_MAKEFILES = ("Kbuild", "Makefile", "Kconfig")

# Directories of the tree without modules.
_APART = ("config", "uml")

# Part of the hash: increment it if a change in this file changes the modules.
_RECIPE = 1

# Sources of the library that User Mode Linux preloads, by target of the kernel, and its file name,
# next to the modules.
_IN_VIRTUAL_TIME = ("uml/host.c", "uml/replace.c")
_HOST_SOURCES: Mapping[store.Arch, Sequence[str]] = {
    "um": _IN_VIRTUAL_TIME,
    "um-lean": _IN_VIRTUAL_TIME,
    "um-smp": ("uml/threads.c",),
}
_HOST_LIBRARY = "host.so"

# Directories of the schedulers, and a makefile that builds only them: the lab's other modules are
# not needed from another state of the repository, and may not compile.
_OF_SCHEDULERS = ("include", "sched")
_SCHEDULERS_KBUILD = "subdir-ccflags-y += -I$(src)/include\nobj-m += sched/\n"


def module_sources(tree: Path) -> list[Path]:
    """Return the files that determine this repository's modules, sorted."""
    return [path for path in sources_of(tree) if path.relative_to(tree).parts[0] not in _APART]


def sources_of(tree: Path, suffixes: Collection[str] = _SOURCES) -> list[Path]:
    """Return the files that a build of a tree reads, sorted, without build products.

    Args:
        tree: the tree.
        suffixes: of the files that are not makefiles.
    """
    return sorted(
        path
        for path in tree.rglob("*")
        if path.is_file()
        and (
            path.name in _MAKEFILES
            or (path.suffix in suffixes and not path.name.endswith(".mod.c"))
        )
    )


def _sources(kernel: Kernel, tree: Path) -> list[Path]:
    return [*module_sources(tree), *library_sources(kernel.arch, tree)]


def library_sources(arch: store.Arch, tree: Path) -> list[Path]:
    """Return the sources of host_library(); none for a kernel that is not User Mode Linux."""
    return [tree / name for name in _HOST_SOURCES.get(arch, ())]


def modules_key(kernel: Kernel, tree: Path) -> str:
    """Return the name of a kernel's modules in the store: the kernel's key, and a hash of all other
    inputs."""
    # Without a compiler, modules that the kernel's own compiler built remain valid.
    compiler = kernel.compiler if tools.missing(tools.BUILD_TOOLS) else tools.compiler()
    return f"{kernel.key}-{hash_of(_sources(kernel, tree), tree, f'{_RECIPE}', compiler)}"


def hash_of(files: Iterable[Path], tree: Path, *besides: str) -> str:
    """Return twelve digits that depend on the files' contents, their paths in the tree, and
    `besides`."""
    whole = hashlib.sha256("".join(f"{word}\0" for word in besides).encode())
    for path in files:
        whole.update(f"{path.relative_to(tree)}\0".encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:12]


def ready_modules(kernel: Kernel) -> Path | None:
    """Return the directory of build_modules() if it is ready, else None."""
    home = store.modules_dir() / modules_key(kernel, kernel_tree())
    return home if (home / "ready").exists() else None


def build_modules(kernel: Kernel, progress: Progress | None = None) -> Path:
    """Build the repository's modules for a kernel, or return the ready ones.

    Returns:
        Their directory: blkload.ko, isoblk_vdisk.ko and their tests; for a User Mode Linux kernel
            also host_library().

    Raises:
        UserError: the kernel was removed, or the disk is full.
        RunError: the modules do not compile.
    """
    listener = progress or Silent()
    if found := ready_modules(kernel):
        return found
    tree = kernel_tree()
    key = modules_key(kernel, tree)
    home = store.modules_dir() / key
    with store.hold(kernel), store.disk_errors():
        home.parent.mkdir(parents=True, exist_ok=True)
        with store.lock(
            f"modules-{key}",
            wait=lambda: listener.note("waiting: another process is building the modules"),
        ) as descriptor:
            if not (home / "ready").exists():
                _build(kernel, tree, home, listener, descriptor)
    return home


def schedulers_hash(tree: Path) -> str:
    """Return twelve digits that depend on the sources of the schedulers' modules.

    Args:
        tree: a directory kernel/, of any state of this repository.

    Raises:
        UserError: it is not such a directory.
    """
    return hash_of(_scheduler_sources(tree), tree)


def build_schedulers(kernel: Kernel, tree: Path, progress: Progress | None = None) -> Path:
    """Build the schedulers' modules of another state of this repository, or return the ready ones.

    Args:
        kernel: the kernel to build for.
        tree: a directory kernel/, with sched/ and include/.
        progress: listener for the stages.

    Returns:
        The directory of the modules.

    Raises:
        UserError: it is not such a tree, the kernel was removed, or the disk is full.
        RunError: the modules do not compile.
    """
    listener = progress or Silent()
    sources = _scheduler_sources(tree)
    key = f"{kernel.key}-sched-{hash_of(sources, tree, f'{_RECIPE}', tools.compiler())}"
    home = store.modules_dir() / key
    with (
        store.hold(kernel),
        store.disk_errors(),
        store.lock(
            f"modules-{key}",
            wait=lambda: listener.note("waiting: another process is building the schedulers"),
        ) as descriptor,
    ):
        if not (home / "ready").exists():
            store.require_one_word()
            home.parent.mkdir(parents=True, exist_ok=True)
            make_modules(
                kernel,
                tree,
                sources,
                home,
                kernel.dir / "schedulers.log",
                listener,
                descriptor,
                what="the schedulers",
                kbuild=_SCHEDULERS_KBUILD,
            )
    return home


def _scheduler_sources(tree: Path) -> list[Path]:
    if not (tree / "sched" / "Kbuild").is_file():
        raise UserError(
            "has no schedulers of isoblk (no sched/Kbuild)",
            where=str(tree),
            next="name the directory kernel/ of an isoblk source tree",
        )
    return [path for name in _OF_SCHEDULERS for path in sources_of(tree / name)]


def host_library(kernel: Kernel) -> Path:
    """Return the LD_PRELOAD library that replaces host functions of a User Mode Linux kernel, built
    with the modules if it is not ready.

    The library of the uml machine seeds its random numbers from $ISOBLK_SEED, an integer.

    Raises:
        UserError, RunError: as build_modules().
    """
    return build_modules(kernel) / _HOST_LIBRARY


def _build(kernel: Kernel, tree: Path, home: Path, progress: Progress, lock: int) -> None:
    store.require_one_word()
    log = kernel.dir / "modules.log"

    def library(part: Path) -> None:
        if of_library := library_sources(kernel.arch, tree):
            _compile_library(of_library, part / _HOST_LIBRARY, log)

    make_modules(kernel, tree, module_sources(tree), home, log, progress, lock, finish=library)


def make_modules(
    kernel: Kernel,
    tree: Path,
    sources: Sequence[Path],
    home: Path,
    log: Path,
    progress: Progress,
    lock: int,
    *,
    what: str = "the modules",
    kbuild: str = "",
    finish: Callable[[Path], None] = lambda part: None,
) -> None:
    """Build the modules of a tree with kbuild for a kernel.

    Args:
        kernel: the kernel to build for.
        tree: directory of the sources, with a Kbuild; not written to.
        sources: all files that the build reads.
        home: directory for the modules, renamed into place.
        log: file for the output of make, outside the directory that is removed on failure, because
            the error names it.
        progress: listener for the stages.
        lock: file descriptor that make's processes inherit.
        what: name of the modules, for messages.
        kbuild: text of the first makefile, "" for the tree's own.
        finish: puts further files into the directory.

    Raises:
        UserError: there is no Kbuild, or a tool is missing.
        RunError: the modules do not compile.
    """
    tools.require_build_tools(kernel.arch)
    part = home.with_name(f".{home.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)
    try:
        copy = part / "sources"
        for path in sources:
            target = copy / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        if kbuild:
            (copy / "Kbuild").write_text(kbuild)
        if not (copy / "Kbuild").is_file():
            raise UserError("the modules' sources are missing", where=str(tree))
        progress.stage(f"building {what} for Linux {kernel.version}")
        log.write_bytes(b"")
        make = Make(log, what, progress, keep=(lock,), copied=(copy, tree))
        make.run(_arguments(kernel, copy))
        modules = sorted(copy.rglob("*.ko"))
        if not modules:
            raise RunError("make built no module", next=f"the log is {log}")
        for path in modules:
            path.rename(part / path.name)
        shutil.rmtree(copy)
        finish(part)
        (part / "ready").touch()
        part.rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _arguments(kernel: Kernel, sources: Path) -> list[str]:
    """Return the arguments of make."""
    return [
        "-C",
        str(kernel.build),
        f"M={sources}",
        f"ARCH={store.make_arch(kernel.arch)}",
        "CC=gcc",
        f"ISOBLK={kernel_tree()}",
        # A distribution's headers lack those of block/, which elevators need.
        *([f"KSRC={kernel.tree}"] if kernel.stock else []),
        f"-j{len(os.sched_getaffinity(0))}",
        f"KCFLAGS=-ffile-prefix-map={sources}=/isoblk",
        "modules",
    ]


def _compile_library(sources: Sequence[Path], target: Path, log: Path) -> None:
    result = subprocess.run(
        ["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", target, *sources],
        text=True,
        capture_output=True,
        check=False,
    )
    if result.returncode:
        lines = result.stderr.splitlines()
        log.write_text(result.stderr)
        raise failure(target.name, lines, log)

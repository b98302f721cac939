# SPDX-License-Identifier: GPL-2.0-only
"""Configure and compile a kernel, once for each set of inputs that determine it."""

import os
import platform
import re
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from isoblk.errors import IsoblkError, RunError, UserError
from isoblk.files import write_atomically
from isoblk.kernel import apt, config, pins, source, store, tools
from isoblk.kernel.progress import Progress
from isoblk.kernel.source import Given
from isoblk.kernel.store import Arch, Kernel
from isoblk.paths import kernel_tree

# Part of every key: increment it if a change in this file changes the kernel.
_RECIPE = 1

# Lines that make prints for the lab's configuration. The progress bar uses them until a kernel has
# been built on this machine.
_TYPICAL_STEPS: dict[Arch, int] = {
    "um": 1350,
    "um-smp": 1400,
    "um-lean": 1330,
    "x86_64": 1750,
}

# Targets of make.
_TARGETS: dict[Arch, str] = {
    "um": "linux",
    "um-smp": "linux",
    "um-lean": "linux",
    "x86_64": "bzImage",
}

# Configuration fragments in order, and the additional ones of a debug kernel.
_FRAGMENTS: dict[Arch, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "um": (("uml",), ("debug",)),
    "um-smp": (("uml", "smp"), ("debug", "smp-debug")),
    "um-lean": (("uml", "lean"), ("debug",)),
    "x86_64": (("qemu",), ("debug", "qemu-debug")),
}

# A line of make for a finished command: two spaces, its short name, its object.
_STEP = re.compile(r"  [A-Z][A-Z0-9]+(?: \[M\])? +\S")

# Settings that keep the time, host and user of the build out of the kernel.
_REPRODUCIBLE = (
    "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER=isoblk",
    "KBUILD_BUILD_HOST=isoblk",
    "KBUILD_BUILD_VERSION=1",
    "LOCALVERSION=",
)

# Number of log lines to show when a build fails.
_TAIL = 15


class ConfigError(UserError):
    """Some symbols of the lab's configuration did not take effect."""


@dataclass(frozen=True)
class Request:
    """A kernel to build.

    Attributes:
        version: N.M, newest, or None for the version of `source`, else the default; for um-smp,
            which the default does not support, the newest pinned series.
        source: directory, tarball or linux-source package to use instead of Debian's archive, or
            the address of one; a package of Debian's; or a revision of a git repository.
        suite: Debian suite on the mirror that apt is configured with.
        debug: with sanitizers and lock checking.
        jobs: number of parallel processes; None for the number of CPUs.
        arch: User Mode Linux; the same with several processors or with fewer options; or a PC for
            the qemu machine.
        apart: built only for comparison, as by a bisection: find() does not return it.
    """

    version: str | None = None
    source: Given | None = None
    suite: str | None = None
    debug: bool = False
    jobs: int | None = None
    arch: Arch = "um"
    apart: bool = False


def fragments(debug: bool, arch: Arch = "um") -> list[Path]:
    """Return the configuration fragments of a kernel, in order."""
    base, besides = _FRAGMENTS[arch]
    names = (*base, *besides) if debug else base
    return [kernel_tree() / "config" / f"{name}.config" for name in names]


def recipe(debug: bool, arch: Arch = "um") -> str:
    """Hash all inputs of a kernel except its source and compiler."""
    wanted = config.render(config.load(fragments(debug, arch)))
    return store.digest(str(_RECIPE), platform.machine(), wanted, arch)


def key_of(
    version: str,
    identity: str,
    compiler: str,
    recipe_hash: str,
    debug: bool,
    arch: Arch = "um",
) -> str:
    """Return the name of a kernel in the store: readable, and distinct for distinct inputs."""
    middle = ("" if arch == "um" else f"-{arch}") + ("-debug" if debug else "")
    return f"{version}{middle}-{store.digest(identity, compiler, recipe_hash)}"


def ready_kernels(debug: bool = False, arch: Arch = "um") -> list[Kernel]:
    """Return the ready kernels that match the current recipe, the newest build first.

    Includes those that find() skips; excludes stock kernels.
    """
    current = recipe(debug, arch)
    return [kernel for kernel, facts in _of_the_lab(debug, arch) if facts.recipe == current]


def _of_the_lab(debug: bool, arch: Arch) -> list[tuple[Kernel, store.Ready]]:
    """Return the lab's own kernels."""
    return [
        (kernel, facts)
        for kernel, facts in store.all_ready()
        if (kernel.debug, kernel.arch, kernel.stock) == (debug, arch, False)
    ]


def find(version: str | None = None, debug: bool = False, arch: Arch = "um") -> Kernel:
    """Return a ready kernel that matches the current recipe.

    Args:
        version: such as 6.12 or 6.12.117; None for the default or, if it is not built, the latest
            build.
        debug: the variant with sanitizers and lock checking.
        arch: target of the kernel. For stock kernels see isoblk.kernel.stock.

    Raises:
        UserError: there is no such kernel.
    """
    current = recipe(debug, arch)
    every = [pair for pair in _of_the_lab(debug, arch) if not pair[1].apart]
    ready = [kernel for kernel, facts in every if facts.recipe == current]
    wanted = version or store.DEFAULT_VERSION
    chosen = [kernel for kernel in ready if store.matches(kernel.version, wanted)]
    if version is None:
        chosen += ready
    if chosen:
        return chosen[0]
    command = "isoblk kernel build"
    if arch != "um":
        command += f" --arch {arch}"
    if version is not None:
        # Debian's packages are named by series, not by full release.
        command += " --version " + ".".join(version.split(".")[:2])
    if debug:
        command += " --debug"
    name = "kernel" if arch == "um" else f"{arch} kernel"
    name += (f" {version}" if version else "") + (" (debug)" if debug else "")
    outdated = any(store.matches(kernel.version, wanted) for kernel, _ in every)
    raise UserError(
        f"the {name} was built with another configuration than the current one"
        if outdated
        else f"no {name} has been built",
        next=f"run: {command}",
    )


def build(request: Request, progress: Progress) -> Kernel:
    """Build a kernel, or return the ready one.

    Raises:
        UserError: a tool is missing, an input is wrong, or the disk is full; the message has the
            next step.
        RunError: the download or the compilation failed.
    """
    with store.disk_errors():
        store.require_one_word()
        tools.require_build_tools(request.arch, _lacking(request))
        current = recipe(request.debug, request.arch)
        version = request.version
        if version is None and request.source is None and request.arch == "um-smp":
            version = pins.newest_series()
        origin = source.resolve(version, request.source, request.suite, progress)
        compiler = tools.compiler()
        key = key_of(
            origin.version, origin.identity, compiler, current, request.debug, request.arch
        )
        home = store.kernels_dir() / key
        ready = store.read_ready(home)
        if ready and (request.apart or not ready.apart):
            return store.kernel_of(home, ready)
        home.mkdir(parents=True, exist_ok=True)
        with (
            store.lock(origin.lock_name, shared=True, wait=lambda: None),
            store.lock(
                f"kernel-{key}",
                wait=lambda: progress.note(f"waiting: another process is building kernel {key}"),
            ) as descriptor,
        ):
            # Another process may have built it before this one got the lock.
            ready = store.read_ready(home)
            if ready is None:
                home.mkdir(parents=True, exist_ok=True)
                steps = _compile(home, origin, request, progress, descriptor)
                release = (home / "build/include/config/kernel.release").read_text().strip()
                ready = store.Ready(
                    version=release,
                    source=origin.identity,
                    tree=str(origin.tree),
                    compiler=compiler,
                    debug=request.debug,
                    recipe=current,
                    steps=steps,
                    built_at=time.time(),
                    arch=request.arch,
                    apart=request.apart,
                )
                _prune(home / "build")
                store.write_ready(home, ready)
            elif ready.apart and not request.apart:
                ready = msgspec.structs.replace(ready, built_at=time.time(), apart=False)
                store.write_ready(home, ready)
            return store.kernel_of(home, ready)


def _lacking(request: Request) -> list[str]:
    """Return the missing packages that fetching the source, or a run on the kernel, needs."""
    absent = apt.lacking_packages() if request.source is None else []
    return absent + list(tools.lacking_guest_tools().values())


def _compile(
    home: Path, origin: source.Source, request: Request, progress: Progress, lock: int
) -> int:
    """Configure and build a kernel in `home`. Returns the number of lines that make printed."""
    target = home / "build"
    target.mkdir(exist_ok=True)
    log = home / "build.log"
    log.write_bytes(b"")
    name = f"Linux {origin.version}"
    progress.stage(f"configuring {name}")
    used = fragments(request.debug, request.arch)
    wanted = config.load(used)
    fragment = home / "fragment.config"
    write_atomically(fragment, config.render(wanted).encode())
    make = Make(log, name, progress, keep=(lock,))
    arch = f"ARCH={store.make_arch(request.arch)}"
    base = ["-C", str(origin.tree), f"O={target}", arch, "CC=gcc", *_REPRODUCIBLE]
    make.run([*base, "allnoconfig", f"KCONFIG_ALLCONFIG={fragment}"])
    if failed := config.unapplied(wanted, (target / ".config").read_text(), origin.tree):
        raise ConfigError(
            f"{name} did not accept: {', '.join(failed)}",
            where=" + ".join(path.name for path in used),
            next="see its Kconfig for the dependencies of each symbol",
        )
    known = [
        facts.steps
        for _, facts in store.all_ready()
        if (facts.debug, facts.arch, facts.stock) == (request.debug, request.arch, False)
    ]
    progress.stage(f"compiling {name}", known[0] if known else _TYPICAL_STEPS[request.arch])
    jobs = request.jobs or len(os.sched_getaffinity(0))
    return make.run(
        [
            *base,
            f"-j{jobs}",
            f"KCFLAGS=-ffile-prefix-map={origin.tree}=/linux -ffile-prefix-map={target}=/build",
            f"KAFLAGS=-ffile-prefix-map={origin.tree}=/linux -ffile-prefix-map={target}=/build",
            _TARGETS[request.arch],
            "modules",
        ]
    )


class Make:
    """Run make with a log and count its steps.

    Args:
        log: file to which the output of make is appended.
        name: name of the target, for errors.
        progress: gets a step for each command that make reports, and the end of the log if make
            fails.
        keep: file descriptors of locks. make inherits them, so that the locks are held until make
            has ended even if this process is killed.
        copied: a directory of copied sources, and the user's: the output names the user's files.
    """

    def __init__(
        self,
        log: Path,
        name: str,
        progress: Progress,
        *,
        keep: Sequence[int] = (),
        copied: tuple[Path, Path] | None = None,
    ) -> None:
        self._log = log
        self._name = name
        self._progress = progress
        self._keep = tuple(keep)
        self._copied = copied

    def run(self, arguments: Sequence[str]) -> int:
        """Run make. Returns the number of its steps.

        Raises:
            UserError: the disk is full.
            RunError: make failed for another reason.
        """
        # A private directory: modules of two states of the repository may be built in parallel.
        scratch = mkdtemp(prefix="tmp.", dir=self._log.parent)
        # No other variable (MAKEFLAGS, KCFLAGS) may change the kernel.
        env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        env |= {"LC_ALL": "C", "TMPDIR": scratch}
        tail: deque[str] = deque(maxlen=400)
        steps = 0
        process = subprocess.Popen(
            ["make", *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=self._keep,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            with self._log.open("a") as log:
                for line in map(self._renamed, process.stdout):
                    log.write(line)
                    tail.append(line.rstrip("\n"))
                    if _STEP.match(line):
                        steps += 1
                        self._progress.step()
            status = process.wait()
        finally:
            # Ctrl-C or an exception: kill make and all its children.
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait()
            shutil.rmtree(scratch, ignore_errors=True)
        if status:
            error = failure(self._name, list(tail), self._log)
            if isinstance(error, RunError):
                self._progress.note("\n".join(list(tail)[-_TAIL:]))
            raise error
        return steps

    def _renamed(self, line: str) -> str:
        """Return a line of the output that names the user's files."""
        if self._copied is None:
            return line
        copy, tree = self._copied
        return line.replace(f"{copy}/", f"{tree}/")


def failure(name: str, lines: list[str], log: Path) -> IsoblkError:
    """Return the error for a failed compilation, from the last lines of its output."""
    if any("No space left on device" in line or "Disk quota exceeded" in line for line in lines):
        return store.disk_full(log.parent)
    causes = [
        *(line for line in lines if re.search(r"\b(fatal )?error:", line)),
        *(line for line in lines if line.startswith("ERROR:") or "***" in line),
        *lines[-1:],
        "make printed nothing",
    ]
    cause = re.sub(r"^make(\[\d+\])?: \*\*\* ", "", causes[0].strip())
    return RunError(f"building {name} failed: {cause}", next=f"the log is {log}")


def _prune(target: Path) -> None:
    """Delete files that neither booting nor building external modules needs: most of the space."""
    # scripts/ and tools/ (objtool) contain programs that module builds run.
    kept = ("scripts", "include", "tools")
    for top in target.iterdir():
        if top.name.startswith("vmlinux") or top.name in ("built-in.a", "tmp"):
            top.unlink()
        elif top.is_dir() and not top.is_symlink() and top.name not in kept:
            for pattern in ("vmlinux*", "*.o", "*.a", ".*.cmd", "*.mod.c", "*.mod"):
                for path in top.rglob(pattern):
                    path.unlink()

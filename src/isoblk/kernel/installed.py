# SPDX-License-Identifier: GPL-2.0-only
"""Build the schedulers and the cache as modules for an installed kernel of this machine.

Its headers package has what most modules need. An elevator also needs the private headers of
block/, which no distribution packages: they are taken from the source of the same version.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp

from isoblk.errors import RunError, UserError
from isoblk.kernel import apt, source, store, tools
from isoblk.kernel.builder import Make
from isoblk.kernel.modules import module_sources
from isoblk.kernel.progress import Progress
from isoblk.paths import kernel_tree

MODULES_ROOT = Path("/lib/modules")
OLDEST = (6, 12)  # the oldest kernel that kernel/include/compat.h supports

_DELIVERED = ("sched", "cache")  # directories of modules for installed kernels

_TOOLS = {"make": "make", "gcc": "gcc"}
_PRIVATE = Path("block/elevator.h")  # its directory has all private headers


@dataclass(frozen=True)
class Installed:
    """An installed kernel that modules can be built for.

    Attributes:
        release: as in uname -r.
        version: version of its source, such as 6.12.117. May differ from the release: Debian's
            6.1.0-44 was 6.1.164.
        build: directory of its headers package, or of its own build.
    """

    release: str
    version: str
    build: Path


@dataclass(frozen=True)
class Built:
    """Modules that were built: `names`, sorted, in `directory`."""

    directory: Path
    names: tuple[str, ...]


def find_installed(release: str, root: Path = MODULES_ROOT) -> Installed:
    """Return the kernel with headers in `root`/RELEASE/build.

    Raises:
        UserError: there is no such kernel, it has no headers, or it is too old.
    """
    if not re.fullmatch(r"[\w.+~-]+", release, re.ASCII) or release in (".", ".."):
        raise UserError(f"not a kernel release: {release!r}", next="such as $(uname -r)")
    build = root / release / "build"
    if not (build / "Makefile").is_file():
        raise UserError(
            f"the headers of Linux {release} are not installed",
            where=str(build),
            next=tools.install_command([f"linux-headers-{release}"]),
        )
    if absent := tools.missing(_TOOLS):
        raise UserError(
            f"needed to build modules and not found: {', '.join(absent)}",
            next=tools.install_command(list(absent.values())),
        )
    done = subprocess.run(
        ["make", "-s", "-C", build, "kernelversion"],
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
    )
    version = done.stdout.strip()
    if done.returncode or not re.match(r"\d+\.\d+", version):
        complaint = (done.stderr.strip().splitlines() or ["no version in it"])[-1]
        raise UserError(
            f"the headers of Linux {release} are damaged: {complaint}",
            where=str(build),
            next=f"run: apt install --reinstall linux-headers-{release}",
        )
    if _minor(version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise UserError(
            f"Linux {version} is too old for the modules", next=f"use Linux {oldest} or newer"
        )
    return Installed(release, version, build)


def build_installed(
    kernel: Installed, output: Path, given: Path | None, progress: Progress
) -> Built:
    """Build the modules into `output`, which is renamed into place.

    Args:
        kernel: the kernel to build for.
        output: directory to make; one that contains only these modules is replaced.
        given: the kernel's source (directory, tarball, package); None to fetch Debian's.
        progress: listener for the stages.

    Raises:
        UserError: `output` has other contents, or no source of the kernel's version is available.
        RunError: the source cannot be fetched, or the modules do not compile.
    """
    if output.exists() and not _only_modules(output):
        raise UserError("the directory has other contents", where=str(output), next="choose -o DIR")
    with _block_headers(kernel, given, progress) as tree:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as name:
                return _build(kernel, tree, Path(name), output, progress)
        except OSError as error:
            raise UserError(
                f"cannot write: {error.strerror}",
                where=str(error.filename or output),
                next="choose -o DIR",
            ) from None


def _minor(version: str) -> tuple[int, int]:
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def _only_modules(directory: Path) -> bool:
    """Return whether the directory contains only files that this module creates."""
    named = re.compile(r"\b([a-z0-9_-]+)\.o\b")
    own = {
        f"{name}.ko"
        for part in _DELIVERED
        for name in named.findall((kernel_tree() / part / "Kbuild").read_text())
    }
    return directory.is_dir() and all(path.name in own for path in directory.iterdir())


@contextmanager
def _block_headers(kernel: Installed, given: Path | None, progress: Progress) -> Iterator[Path]:
    """Yield a source tree of the kernel's version, locked while it is in use."""
    if given is None:
        # A kernel that was built on this machine has links to its source.
        for own in (kernel.build / "source", kernel.build):
            if (own / _PRIVATE).is_file():
                yield own.resolve()
                return
    if given is not None and given.is_dir():
        _require_version(source.tree_version(given), kernel, given)
        yield given.absolute()
        return
    with store.disk_errors():
        found = _fetched(kernel, progress) if given is None else _given(kernel, given, progress)
    with store.lock(found.lock_name, shared=True, wait=lambda: None):
        yield found.tree


def _given(kernel: Installed, given: Path, progress: Progress) -> source.Source:
    found = source.resolve(None, given, None, progress)
    _require_version(found.version, kernel, given)
    return found


def _require_version(version: str, kernel: Installed, where: Path) -> None:
    if version != kernel.version:
        raise UserError(
            f"the source is Linux {version}, the kernel {kernel.release} is Linux {kernel.version}",
            where=str(where),
            next=f"give the source of {kernel.version} with --source",
        )


def _fetched(kernel: Installed, progress: Progress) -> source.Source:
    """Fetch Debian's source of the kernel's version."""
    package = "linux-source-{}.{}".format(*_minor(kernel.version))
    found = source.resolve(package.removeprefix("linux-source-"), None, None, progress)
    if found.version == kernel.version:
        return found
    # The kernel is not of the newest package, or the store has an older one.
    for version in _versions(package):
        if version.startswith(f"{kernel.version}-"):
            progress.stage(f"fetching {package} {version}")
            with TemporaryDirectory(prefix=".fetch.", dir=store.sources_dir()) as directory:
                deb = apt.Apt().download(package, version, Path(directory))
                return source.resolve(None, deb.path, None, progress)
    raise UserError(
        f"{package} is Linux {found.version}, the kernel {kernel.release} is Linux"
        f" {kernel.version}",
        next=f"boot the newest kernel, or give the source of {kernel.version} with --source",
    )


def _versions(package: str) -> list[str]:
    """Return all versions of a package that this machine's apt can download."""
    done = subprocess.run(
        ["apt-cache", "madison", package], text=True, capture_output=True, check=False
    )
    return [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.count("|") == 2]


def _build(kernel: Installed, tree: Path, part: Path, output: Path, progress: Progress) -> Built:
    copy = part / "sources"
    for path in module_sources(kernel_tree()):
        target = copy / path.relative_to(kernel_tree())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    progress.stage(f"building the modules for Linux {kernel.release}")
    # Outside the directory that is removed on failure, because the error names the log.
    descriptor, name = mkstemp(prefix=f"{output.name}.", suffix=".log", dir=output.parent)
    os.close(descriptor)
    log = Path(name)
    Make(log, "the modules", progress).run(
        [
            "-C",
            str(kernel.build),
            f"M={copy}",
            f"KSRC={tree}",
            # Type data for BPF would need pahole; modules load without it.
            "CONFIG_DEBUG_INFO_BTF_MODULES=",
            f"-j{len(os.sched_getaffinity(0))}",
            "modules",
        ]
    )
    # The remaining directories are for the lab.
    modules = [path for name in _DELIVERED for path in (copy / name).glob("*.ko")]
    if not modules:
        raise RunError("make built no module", next=f"the log is {log}")
    ready = part / "ready"
    ready.mkdir()
    for path in modules:
        path.rename(ready / path.name)
    if output.exists():
        shutil.rmtree(output)
    ready.rename(output)
    log.unlink()
    return Built(output, tuple(sorted(path.name for path in modules)))

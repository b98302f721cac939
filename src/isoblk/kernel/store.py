# SPDX-License-Identifier: GPL-2.0-only
"""The store of sources, kernels and modules in the user's cache directory.

    sources/NAME/tree      an unpacked kernel source, with sources/NAME/source.json
    kernels/KEY/           ready.json (written last), build.log, build/ (make's O=)
    modules/KEY-HASH/      the repository's modules for a kernel, with ready
    locks/                 one file a name, never removed

A lock is a flock on a file in locks/: exclusive to make or remove an entry, shared to use it. An
entry without ready.json or source.json does not exist for users.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from isoblk.errors import UserError
from isoblk.files import write_atomically
from isoblk.paths import cache_dir

DEFAULT_VERSION = "6.12"

# Target of a kernel: User Mode Linux in virtual time, the same with several processors in real time
# or without options that the modules do not need, or a PC.
Arch = Literal["um", "um-smp", "um-lean", "x86_64"]

# The bootable file, relative to the build's top directory.
_IMAGE: dict[Arch, str] = {
    "um": "linux",
    "um-smp": "linux",
    "um-lean": "linux",
    "x86_64": "arch/x86/boot/bzImage",
}

# Errors of a read-only store.
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


def make_arch(arch: Arch) -> str:
    """Return the value of make's ARCH."""
    return arch.partition("-")[0]


# A path that the kernel's make, and the compiler options in it, take as one word.
_ONE_WORD = re.compile(r"[\w./+@~-]+")


class Ready(msgspec.Struct, frozen=True):
    """Contents of a kernel's ready.json.

    Attributes:
        version: full release, such as 6.12.117.
        source: identity of the source: package and version, or hash of its contents.
        tree: directory of the source, which building modules needs.
        compiler: first line of gcc --version, and of ld --version.
        recipe: hash of the configuration and of the build's commands.
        steps: number of lines that make printed, the estimate for the next build.
        built_at: seconds since 1970.
        stock: from a distribution's packages, not compiled on this machine.
        apart: built only for comparison; a request for its version does not get it.
    """

    version: str
    source: str
    tree: str
    compiler: str
    debug: bool
    recipe: str
    steps: int
    built_at: float
    arch: Arch = "um"
    stock: bool = False
    apart: bool = False


@dataclass(frozen=True)
class Kernel:
    """A kernel that is ready to boot.

    Attributes:
        key: name of all inputs of the build; also that of the directory.
        version: full release, such as 6.12.117.
        source: identity of the source: package and version, or hash of its contents.
        compiler: the compiler and the linker.
        debug: built with the sanitizers and lock checking.
        dir: directory in the store.
        tree: directory of the source.
        stock: from a distribution's packages, not compiled on this machine.
    """

    key: str
    version: str
    source: str
    compiler: str
    debug: bool
    dir: Path
    tree: Path = Path()
    arch: Arch = "um"
    stock: bool = False

    @property
    def build(self) -> Path:
        """Return make's build directory, against which external modules are built."""
        return self.dir / "build"

    @property
    def linux(self) -> Path:
        """Return the bootable file: the UML executable, or the image that a PC loads."""
        return _image(self.dir, self.arch, self.stock)

    def module(self, name: str) -> Path:
        """Return the file of one of the kernel's own modules, such as null_blk.

        Raises:
            UserError: it was not built as a module.
        """
        wanted = name.removesuffix(".ko").replace("-", "_")
        path = self.modules().get(wanted)
        if path is None:
            raise UserError(f"Linux {self.version} was built without the module {name}")
        return path

    def modules(self) -> dict[str, Path]:
        """Return all of the kernel's own modules in the store, by name with underscores."""
        if self.stock:
            paths = sorted(self.stock_modules.glob("*.ko"))
        else:
            order = (self.build / "modules.order").read_text().splitlines()
            paths = [self.build / Path(line).with_suffix(".ko") for line in order]
        return {path.stem.replace("-", "_"): path for path in paths}

    @property
    def stock_modules(self) -> Path:
        """Return the directory of a stock kernel's modules that a run may request."""
        return self.dir / "modules"

    @property
    def base_modules(self) -> Path:
        """Return the directory of a stock kernel's modules that every guest needs, in order of
        name."""
        return self.dir / "base"


def _image(directory: Path, arch: Arch, stock: bool) -> Path:
    return directory / "vmlinuz" if stock else directory / "build" / _IMAGE[arch]


def sources_dir() -> Path:
    """Return the directory of unpacked kernel sources."""
    return cache_dir() / "sources"


def kernels_dir() -> Path:
    """Return the directory of kernel builds."""
    return cache_dir() / "kernels"


def modules_dir() -> Path:
    """Return the directory of the repository's modules."""
    return cache_dir() / "modules"


def require_one_word() -> None:
    """Check that kernels and modules can be built in the store.

    Raises:
        UserError: its path has a blank or a similar character.
    """
    if not _ONE_WORD.fullmatch(str(cache_dir())):
        raise UserError(
            "no kernel can be built in a directory with blanks, colons or the like in its name",
            where=str(cache_dir()),
            next="set ISOBLK_CACHE to another directory",
        )


class BusyError(Exception):
    """Another process holds the lock."""


@contextmanager
def lock(
    name: str, *, shared: bool = False, wait: Callable[[], None] | None = None
) -> Iterator[int]:
    """Hold a lock of the store. Yields its file descriptor.

    Args:
        name: name of the lock.
        shared: for using the entry, not for making or removing it.
        wait: called before waiting for another holder; None to fail instead of waiting.

    Raises:
        BusyError: the lock is held and wait is None.
    """
    descriptor = _open_lock(name, shared=shared)
    try:
        operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if wait is None:
                raise BusyError(name) from None
            wait()
            fcntl.flock(descriptor, operation)
        yield descriptor
    finally:
        os.close(descriptor)


def _open_lock(name: str, *, shared: bool) -> int:
    """Open a lock's file. In a read-only store (of an image, or of another user) only an existing
    file can be locked, and only shared: the store's owner made a file for each entry."""
    path = cache_dir() / "locks" / f"{name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if not shared or error.errno not in _READ_ONLY or not path.is_file():
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def hold(kernel: Kernel) -> Iterator[None]:
    """Keep a kernel and its modules from being removed while they are used.

    Raises:
        UserError: the kernel has already been removed.
    """
    with ExitStack() as stack:
        with disk_errors():  # not around the caller's use of the kernel
            stack.enter_context(lock(f"kernel-{kernel.key}", shared=True, wait=lambda: None))
        if read_ready(kernel.dir) is None:
            raise UserError(
                f"kernel {kernel.key} is no longer in the cache", next="run: isoblk kernel build"
            )
        yield


def disk_full(directory: Path) -> UserError:
    """Return the error for a file system without space."""
    existing = next(path for path in [directory, *directory.parents] if path.exists())
    free = shutil.disk_usage(existing).free
    return UserError(
        f"disk full ({free / 1e6:.0f} MB free)",
        where=str(directory),
        next="free some space (isoblk kernel clean --all) or set ISOBLK_CACHE",
    )


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn errors of a full or unwritable file system below the store into a UserError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(cache_dir()) from None
        if error.errno in (*_READ_ONLY, errno.ENOTDIR, errno.EEXIST):
            raise UserError(
                f"cannot write the cache: {error.strerror}",
                where=str(error.filename or cache_dir()),
                next="set ISOBLK_CACHE to a directory of yours",
            ) from None
        raise


def digest(*parts: str) -> str:
    """Hash texts to 12 hexadecimal digits, unique in the store for practical purposes."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode()
        whole.update(f"{len(data)}:".encode() + data)
    return whole.hexdigest()[:12]


def read_ready(directory: Path) -> Ready | None:
    """Read a kernel directory's ready.json; None if the build is incomplete or its source is
    gone."""
    try:
        ready = msgspec.json.decode((directory / "ready.json").read_bytes(), type=Ready)
    except (OSError, msgspec.DecodeError):
        return None
    image = _image(directory, ready.arch, ready.stock)
    whole = image.is_file() and (Path(ready.tree) / "Makefile").is_file()
    return ready if whole else None


def write_ready(directory: Path, ready: Ready) -> None:
    """Mark a kernel directory as finished."""
    write_atomically(directory / "ready.json", msgspec.json.encode(ready))


def kernel_of(directory: Path, ready: Ready) -> Kernel:
    """Return the kernel in a directory."""
    return Kernel(
        key=directory.name,
        version=ready.version,
        source=ready.source,
        compiler=ready.compiler,
        debug=ready.debug,
        dir=directory,
        tree=Path(ready.tree),
        arch=ready.arch,
        stock=ready.stock,
    )


def all_ready() -> list[tuple[Kernel, Ready]]:
    """Return every ready kernel, the newest build first.

    Raises:
        UserError: the cache cannot be read.
    """
    root = kernels_dir()
    try:
        found = [
            (kernel_of(directory, ready), ready)
            for directory in (root.iterdir() if root.is_dir() else ())
            if (ready := read_ready(directory)) is not None
        ]
    except PermissionError as error:
        raise UserError(
            f"cannot read the cache: {error.strerror}",
            where=str(error.filename or root),
            next="set ISOBLK_CACHE to a directory of yours",
        ) from None
    return sorted(found, key=lambda pair: (-pair[1].built_at, pair[0].key))


def list_kernels() -> list[Kernel]:
    """Return every ready kernel, the newest build first."""
    return [kernel for kernel, _ in all_ready()]


def matches(release: str, version: str) -> bool:
    """Return whether a full release (6.12.117) is of a version (6.12, or the full release)."""
    return release == version or release.startswith((f"{version}.", f"{version}-", f"{version}+"))


@dataclass(frozen=True)
class Cleaned:
    """Result of clean().

    Attributes:
        removed: names of removed entries.
        busy: names of entries in use, which are kept.
        freed: bytes.
    """

    removed: tuple[str, ...]
    busy: tuple[str, ...]
    freed: int


def clean(keys: Sequence[str] = (), *, sources: bool = False) -> Cleaned:
    """Remove kernels and their modules that are not in use.

    Args:
        keys: prefixes of the keys to remove, none for all of them.
        sources: also remove sources that no remaining kernel was built from.

    Raises:
        UserError: a key matches no kernel.
    """
    with disk_errors():
        return _clean(keys, sources)


def _clean(keys: Sequence[str], sources: bool) -> Cleaned:
    names = _names(kernels_dir())
    for key in keys:
        if not any(name.startswith(key) for name in names):
            raise UserError(f"no kernel {key} in the cache", next="see: isoblk kernel list")
    removed: list[str] = []
    busy: list[str] = []
    freed = 0
    for name in names:
        if keys and not name.startswith(tuple(keys)):
            continue
        modules = [path for path in _names(modules_dir()) if path.startswith(f"{name}-")]
        paths = [kernels_dir() / name, *(modules_dir() / path for path in modules)]
        freed += _remove(name, f"kernel-{name}", paths, removed, busy)
    if sources:
        needed = {
            Path(ready.tree)
            for name in _names(kernels_dir())
            if (ready := read_ready(kernels_dir() / name))
        }
        for name in _names(sources_dir()):
            path = sources_dir() / name
            if path / "tree" not in needed:
                freed += _remove(name, f"source-{name}", [path], removed, busy)
    _sweep()
    return Cleaned(tuple(removed), tuple(busy), freed)


def _names(directory: Path) -> list[str]:
    if not directory.is_dir():
        return []
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))


def _sweep() -> None:
    """Remove files that killed processes left."""
    for root in (sources_dir(), kernels_dir(), modules_dir()):
        for path in root.glob(".*") if root.is_dir() else ():
            owner = path.name.removeprefix(".").rpartition(".")[0]
            with suppress(BusyError), lock(f"{_LOCK_PREFIX[root.name]}-{owner}"):
                shutil.rmtree(path, ignore_errors=True)


# Prefix of the lock for the directories below each root.
_LOCK_PREFIX = {"sources": "source", "kernels": "kernel", "modules": "modules"}


def _remove(
    name: str, lock_name: str, paths: list[Path], removed: list[str], busy: list[str]
) -> int:
    freed = 0
    with ExitStack() as stack:
        try:
            stack.enter_context(lock(lock_name))
        except BusyError:
            busy.append(name)
            return 0
        for path in paths:
            freed += sum(
                entry.lstat().st_blocks * 512 for entry in path.rglob("*") if not entry.is_dir()
            )
            # Rename first: an interrupted removal must not leave an entry that looks ready.
            rubbish = path.with_name(f".{path.name}.removed")
            shutil.rmtree(rubbish, ignore_errors=True)
            path.rename(rubbish)
            shutil.rmtree(rubbish)
        removed.append(name)
    return freed

# SPDX-License-Identifier: GPL-2.0-only
"""The store of sources, kernels and modules, in the user's cache directory: names, locks, what is
ready, cleaning.

    sources/NAME/tree      an unpacked kernel source, with sources/NAME/source.json
    kernels/KEY/           ready.json (written last), build.log, build/ (make's O=)
    modules/KEY-HASH/      the repository's modules for a kernel, with ready
    locks/                 one file a name, never removed

A lock is a flock on a file in locks/: whoever makes or removes a thing holds it
exclusively, whoever uses it holds it shared. What is not named by a ready.json or
source.json is not there as far as users are concerned.
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

# What a kernel is compiled for: User Mode Linux in virtual time, the same with several processors
# in real time or without options that the modules do not need, or a PC.
Arch = Literal["um", "um-smp", "um-lean", "x86_64"]

# From a build's top directory: what is booted.
_IMAGE: dict[Arch, str] = {
    "um": "linux",
    "um-smp": "linux",
    "um-lean": "linux",
    "x86_64": "arch/x86/boot/bzImage",
}

# What says that a store may only be read.
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


def make_arch(arch: Arch) -> str:
    """What make's ARCH is to be."""
    return arch.partition("-")[0]


# Of a path that the kernel's make, and the compiler's options in it, take for one word.
_ONE_WORD = re.compile(r"[\w./+@~-]+")


class Ready(msgspec.Struct, frozen=True):
    """Contents of a kernel's ready.json.

    Attributes:
        version: full release, such as 6.12.117.
        source: identity of the source: package and version, or hash of its contents.
        tree: directory of the source, which building modules needs.
        compiler: first line of gcc --version, and of ld --version.
        recipe: hash of the configuration and of how it is built.
        steps: lines that make printed, which estimates the next build's.
        built_at: seconds since 1970.
        stock: taken out of a distribution's packages, not compiled here.
        apart: only to be held against others: nobody who asks for a kernel by its version gets it.
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
        key: names everything that determines the build; the directory's name.
        version: full release, such as 6.12.117.
        source: identity of the source: package and version, or hash of its contents.
        compiler: the compiler and the linker.
        debug: built with the sanitizers and lock checking.
        dir: directory in the store.
        tree: the source.
        stock: taken out of a distribution's packages, not compiled here.
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
        """make's build directory, against which external modules are built."""
        return self.dir / "build"

    @property
    def linux(self) -> Path:
        """What is booted: the UML executable, or the image that a PC loads."""
        return _image(self.dir, self.arch, self.stock)

    def module(self, name: str) -> Path:
        """One of the kernel's own modules, such as null_blk.

        Raises:
            UserError: it was not built as a module.
        """
        wanted = name.removesuffix(".ko").replace("-", "_")
        path = self.modules().get(wanted)
        if path is None:
            raise UserError(f"Linux {self.version} was built without a module {name}")
        return path

    def modules(self) -> dict[str, Path]:
        """All of the kernel's own modules that are kept, by name with underscores."""
        if self.stock:
            paths = sorted(self.stock_modules.glob("*.ko"))
        else:
            order = (self.build / "modules.order").read_text().splitlines()
            paths = [self.build / Path(line).with_suffix(".ko") for line in order]
        return {path.stem.replace("-", "_"): path for path in paths}

    @property
    def stock_modules(self) -> Path:
        """Directory of those modules of a stock kernel that a run may ask for."""
        return self.dir / "modules"

    @property
    def base_modules(self) -> Path:
        """Directory of a stock kernel's modules that every guest needs, in order of name."""
        return self.dir / "base"


def _image(directory: Path, arch: Arch, stock: bool) -> Path:
    return directory / "vmlinuz" if stock else directory / "build" / _IMAGE[arch]


def sources_dir() -> Path:
    """Unpacked kernel sources."""
    return cache_dir() / "sources"


def kernels_dir() -> Path:
    """Kernel builds."""
    return cache_dir() / "kernels"


def modules_dir() -> Path:
    """The repository's modules."""
    return cache_dir() / "modules"


def require_one_word() -> None:
    """Check that kernels and modules can be built in the store.

    Raises:
        UserError: its name has a blank or the like.
    """
    if not _ONE_WORD.fullmatch(str(cache_dir())):
        raise UserError(
            "no kernel can be built in a directory with blanks, colons or the like in its name",
            where=str(cache_dir()),
            next="set ISOBLK_CACHE to another",
        )


class BusyError(Exception):
    """Somebody else holds the lock."""


@contextmanager
def lock(
    name: str, *, shared: bool = False, wait: Callable[[], None] | None = None
) -> Iterator[int]:
    """Hold a lock of the store; gives its file descriptor.

    Args:
        name: what is locked.
        shared: for using it, not for making or removing it.
        wait: called before waiting for another holder; without it nobody waits.

    Raises:
        BusyError: it is held and wait is None.
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
    """Descriptor of a lock's file. A store that may only be read (in an image, or another user's)
    has one for all that is there to be used: whoever made that has locked it."""
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
    """Keep a kernel and its modules from being cleaned while it is used.

    Raises:
        UserError: it has been cleaned in the meantime.
    """
    with ExitStack() as stack:
        with disk_errors():  # not around what the kernel is used for
            stack.enter_context(lock(f"kernel-{kernel.key}", shared=True, wait=lambda: None))
        if read_ready(kernel.dir) is None:
            raise UserError(
                f"kernel {kernel.key} is no longer in the cache", next="run: isoblk kernel build"
            )
        yield


def disk_full(directory: Path) -> UserError:
    """The error for a file system without space."""
    existing = next(path for path in [directory, *directory.parents] if path.exists())
    free = shutil.disk_usage(existing).free
    return UserError(
        f"disk full ({free / 1e6:.0f} MB free)",
        where=str(directory),
        next="free some space (isoblk kernel clean --all) or set ISOBLK_CACHE",
    )


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn a full or unwritable file system under the store into the user's error."""
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
    """A short hash of texts: 12 hexadecimal digits, as good as unique in the store."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode()
        whole.update(f"{len(data)}:".encode() + data)
    return whole.hexdigest()[:12]


def read_ready(directory: Path) -> Ready | None:
    """A kernel directory's ready.json; None if the build never finished or its source is gone."""
    try:
        ready = msgspec.json.decode((directory / "ready.json").read_bytes(), type=Ready)
    except (OSError, msgspec.DecodeError):
        return None
    image = _image(directory, ready.arch, ready.stock)
    whole = image.is_file() and (Path(ready.tree) / "Makefile").is_file()
    return ready if whole else None


def write_ready(directory: Path, ready: Ready) -> None:
    """Declare a kernel directory finished."""
    write_atomically(directory / "ready.json", msgspec.json.encode(ready))


def kernel_of(directory: Path, ready: Ready) -> Kernel:
    """The kernel in a directory."""
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
    """Every kernel that is ready, the newest build first.

    Raises:
        UserError: nobody lets us look.
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
    """Every kernel that is ready, the newest build first."""
    return [kernel for kernel, _ in all_ready()]


def matches(release: str, version: str) -> bool:
    """Whether a full release (6.12.117) is of a version (6.12, or all of it)."""
    return release == version or release.startswith((f"{version}.", f"{version}-", f"{version}+"))


@dataclass(frozen=True)
class Cleaned:
    """What cleaning did.

    Attributes:
        removed: names of what is gone.
        busy: names of what is in use and stays.
        freed: bytes.
    """

    removed: tuple[str, ...]
    busy: tuple[str, ...]
    freed: int


def clean(keys: Sequence[str] = (), *, sources: bool = False) -> Cleaned:
    """Remove kernels with their modules; nothing that is in use.

    Args:
        keys: beginnings of the keys to remove, none for all of them.
        sources: also remove the sources that no remaining kernel was built from.

    Raises:
        UserError: a key names no kernel.
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
    """Remove what killed processes left behind."""
    for root in (sources_dir(), kernels_dir(), modules_dir()):
        for path in root.glob(".*") if root.is_dir() else ():
            owner = path.name.removeprefix(".").rpartition(".")[0]
            with suppress(BusyError), lock(f"{_LOCK_PREFIX[root.name]}-{owner}"):
                shutil.rmtree(path, ignore_errors=True)


# What locks the directories under each root.
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
            # Renamed first: a removal that is cut short leaves nothing that looks ready.
            rubbish = path.with_name(f".{path.name}.removed")
            shutil.rmtree(rubbish, ignore_errors=True)
            path.rename(rubbish)
            shutil.rmtree(rubbish)
        removed.append(name)
    return freed

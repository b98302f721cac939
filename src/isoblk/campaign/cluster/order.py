# SPDX-License-Identifier: GPL-2.0-only
"""The messages between a campaign and the workers of a cluster.

Both sides are checked to run the same isoblk (difference()) before a message is decoded: no version
has to understand another.
"""

import hashlib
import platform
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import msgspec

import isoblk
from isoblk import __version__
from isoblk.campaign.execute import Bench, files_of
from isoblk.campaign.installed import tools_of
from isoblk.run.spec import Installed, RunSpec

ANY_NAME = "file"
"""Name of an item whose file may have any name."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A file, by its content.

    Attributes:
        sha256: of the content.
        size: bytes.
        name: that it must have, below a directory of its own.
        here: its path on the campaign's machine, where the worker looks first.
    """

    sha256: str
    size: int
    name: str
    here: str


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Files and software that the runs of a campaign need; corresponds to a Bench.

    Attributes:
        token: unique to the campaign.
        kernel: key, version, source and compiler.
        debug: whether it is a debug kernel.
        image: the kernel.
        library: the preloaded library.
        modules: by name.
        modules_key: key of the repository's modules.
        files: of traces and programs.
        programs: that must be installed, as found by the campaign.
        tools: that must be installed, with their packages.
        time_limit_s: time after which a run counts as hung.
    """

    token: str
    kernel: tuple[str, str, str, str]
    debug: bool
    image: Item
    library: Item
    modules: dict[str, Item]
    modules_key: str
    files: tuple[Item, ...]
    programs: tuple[Installed, ...]
    tools: dict[str, str]
    time_limit_s: float

    @property
    def items(self) -> list[Item]:
        """Return all files."""
        return [self.image, self.library, *self.modules.values(), *self.files]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker can make runs."""


class Lacking(msgspec.Struct, frozen=True, tag=True):
    """The worker lacks files. sha256: of each."""

    sha256: list[str]


class Unfit(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The worker cannot make runs. cause, next: as of an IsoblkError. mistake: whether something
    must be installed or set up there; else it has failed, as with a full disk."""

    cause: str
    next: str = ""
    mistake: bool = True


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """The campaign stopped the run, which has not failed."""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The run failed. cause, where, next: as of the RunError. left: the files that it left,
    packed."""

    cause: str
    where: str
    next: str
    left: bytes


class Done(msgspec.Struct, frozen=True, tag=True):
    """The run's directory, packed."""

    packed: bytes


Answer = Ready | Lacking | Unfit | Stopped | Failed | Done


class Reply(msgspec.Struct, frozen=True):
    """An answer, and the address of the worker that sent it."""

    worker: str
    answer: Answer


def encode(what: Order | RunSpec | Reply) -> bytes:
    """Encode a message as bytes, which Dask passes on unchanged."""
    return msgspec.msgpack.encode(what)


def decode_reply(data: bytes) -> Reply:
    """Decode a reply. Raises msgspec.MsgspecError."""
    return msgspec.msgpack.decode(data, type=Reply)


def make_order(
    bench: Bench, library: Path, specs: Iterable[RunSpec], token: str, time_limit_s: float
) -> Order:
    """Return the order for a bench with a uml machine, and for its runs."""
    kernel = bench.kernel
    files: dict[str, Item] = {}
    programs: dict[Installed, None] = {}
    tools: dict[str, str] = {}
    for spec in specs:
        needed = [item_of(path, ANY_NAME) for path in set(files_of(spec).values())]
        files |= {item.sha256: item for item in needed}
        for tenant in spec.tenants:
            programs |= dict.fromkeys(tenant.workload.installed)
        for _, needs in tools_of(spec):
            tools |= needs
    return Order(
        token=token,
        kernel=(kernel.key, kernel.version, kernel.source, kernel.compiler),
        debug=kernel.debug,
        # The path that Kernel.linux expects.
        image=item_of(kernel.linux, "build/linux"),
        library=item_of(library, library.name),
        modules={name: item_of(path, path.name) for name, path in bench.modules.items()},
        modules_key=bench.modules_key,
        files=tuple(files.values()),
        programs=tuple(program for program in programs if program.sha256 not in files),
        tools=tools,
        time_limit_s=time_limit_s,
    )


def item_of(path: Path, name: str) -> Item:
    """Return a file of this machine as an Item."""
    found = path.resolve()
    status = found.stat()
    sha256 = digest_of(found, status.st_size, status.st_mtime_ns)
    return Item(sha256=sha256, size=status.st_size, name=name, here=str(found))


@lru_cache(maxsize=1024)
def digest_of(path: Path, size: int, mtime_ns: int) -> str:
    """Return the SHA-256 of a file's content, cached by size and time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def difference(theirs: Mapping[str, str]) -> str:
    """Describe the software of this process that differs from `theirs`; "" if none does."""
    for name, own in software().items():
        other = theirs.get(name, "")
        if own != other:
            if name == "sources":
                return f"another state of the sources of isoblk {__version__}"
            return f"{name} {own}, not {other}"
    return ""


@lru_cache(maxsize=1)
def software() -> Mapping[str, str]:
    """Return the software that a campaign and its workers must have in common for identical
    results, in types that any version of isoblk decodes.

    Checkouts of the same version may differ, so it has a hash of the Python code. Polars writes the
    tables.
    """
    package = Path(isoblk.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        # Excludes a wheel's data.
        if name.parts[0] != "data":
            whole.update(f"{name}\0".encode())
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    return {
        "isoblk": __version__,
        "sources": whole.hexdigest()[:12],
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "polars": version("polars"),
        "distributed": version("distributed").partition(".")[0],
    }

# SPDX-License-Identifier: GPL-2.0-only
"""What a campaign and the workers of a cluster tell each other.

Before any of it is read both sides are known to be of one isoblk (difference()): no version has to
understand another.
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
"""Of an item that may have any name where it is found."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A file, by its content.

    Attributes:
        sha256: of the content.
        size: bytes.
        name: that it must have, below a directory of its own.
        here: where the campaign has it; the worker looks there first.
    """

    sha256: str
    size: int
    name: str
    here: str


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of a campaign need, whichever they are: a bench, as of the campaign's own.

    Attributes:
        token: of the campaign; no two have the same.
        kernel: key, version, source and compiler.
        debug: the kernel's.
        image: the kernel.
        library: that is preloaded.
        modules: by name.
        modules_key: the key of those that are the repository's.
        files: of traces and programs.
        programs: that must be installed, as they were found by the campaign.
        tools: that must be installed, with their packages.
        time_limit_s: until a run counts as hung.
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
        """All files."""
        return [self.image, self.library, *self.modules.values(), *self.files]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker can make runs."""


class Lacking(msgspec.Struct, frozen=True, tag=True):
    """The worker lacks files. sha256: of each."""

    sha256: list[str]


class Unfit(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The worker can make no run. cause, next: as of an IsoblkError. mistake: something is to be
    installed or set up there; else it has failed, as with a full disk."""

    cause: str
    next: str = ""
    mistake: bool = True


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """The run was ended by a campaign, and has not failed."""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The run failed. cause, where, next: as of the RunError. left: what it left, packed."""

    cause: str
    where: str
    next: str
    left: bytes


class Done(msgspec.Struct, frozen=True, tag=True):
    """The run's directory, packed."""

    packed: bytes


Answer = Ready | Lacking | Unfit | Stopped | Failed | Done


class Reply(msgspec.Struct, frozen=True):
    """An answer, and the address of the worker that gave it."""

    worker: str
    answer: Answer


def encode(what: Order | RunSpec | Reply) -> bytes:
    """As bytes, which Dask takes as they are."""
    return msgspec.msgpack.encode(what)


def decode_reply(data: bytes) -> Reply:
    """Raises msgspec.MsgspecError."""
    return msgspec.msgpack.decode(data, type=Reply)


def make_order(
    bench: Bench, library: Path, specs: Iterable[RunSpec], token: str, time_limit_s: float
) -> Order:
    """What a bench with a uml machine is made of, and its runs need."""
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
        # Where Kernel.linux looks for it.
        image=item_of(kernel.linux, "build/linux"),
        library=item_of(library, library.name),
        modules={name: item_of(path, path.name) for name, path in bench.modules.items()},
        modules_key=bench.modules_key,
        files=tuple(files.values()),
        programs=tuple(one for one in programs if one.sha256 not in files),
        tools=tools,
        time_limit_s=time_limit_s,
    )


def item_of(path: Path, name: str) -> Item:
    """A file of this machine."""
    found = path.resolve()
    status = found.stat()
    sha256 = digest_of(found, status.st_size, status.st_mtime_ns)
    return Item(sha256=sha256, size=status.st_size, name=name, here=str(found))


@lru_cache(maxsize=1024)
def digest_of(path: Path, size: int, mtime_ns: int) -> str:
    """The SHA-256 of a file's content, which is read once while size and time stay the same."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def difference(theirs: Mapping[str, str]) -> str:
    """What software of this process is other than theirs, in words; "" if none is."""
    for name, own in software().items():
        other = theirs.get(name, "")
        if own != other:
            if name == "sources":
                return f"another state of the sources of isoblk {__version__}"
            return f"{name} {own}, not {other}"
    return ""


@lru_cache(maxsize=1)
def software() -> Mapping[str, str]:
    """What a campaign and its workers must have alike for the same bytes to come out, in types
    that any version of isoblk understands. A checkout may differ and have the same version, so
    there is a hash of the Python code. Polars writes the tables."""
    package = Path(isoblk.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        # Of a wheel what is no code.
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

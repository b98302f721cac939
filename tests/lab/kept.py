# SPDX-License-Identifier: GPL-2.0-only
"""Run a guest of the uml machine once for all that determines it, and keep its files.

A guest in virtual time is a pure function of its inputs: the kernel, the preloaded library, the
modules it loads, the files that lie in its directory before it begins (the script among them), the
seed, the memory, and the host files it reads. The first six make the key of an entry. The last are
known only when the guest has ended: `opened.c` records them, and an entry is used only if each
of them still has its content.

    $CACHE/guests/KEY/N/   one entry: a run under this key, with certain host files
        inputs.json        the host files and links that it read, and digests of their contents
        ran.json           what Machine.run() returned
        left/              the files it left in its directory

A test that runs one guest twice compares two runs: the second has an entry of its own.
A guest that failed is not kept. A host file that was absent and has appeared is not noticed, nor
are directory listings: therefore CI runs a random tenth of the kept guests again and compares.
"""

import difflib
import hashlib
import itertools
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

import msgspec

from isoblk.kernel import Kernel
from isoblk.kernel.modules import library_sources
from isoblk.machine import Ran
from isoblk.machine.uml import Uml
from isoblk.paths import cache_dir, kernel_tree
from isoblk.run.tier import UML

_RECORDER = Path(__file__).parent / "opened.c"
_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
# Entries of one key: as many sets of host files as a machine's branches have in use.
_ENTRIES_MAX = 4
# One in so many kept guests is run again with ISOBLK_GUESTS=sample.
_SAMPLE = 10
_KEY_DIGITS = 32
# Of each file that differs.
_DIFF_LINES = 20
# Where Python keeps the compiled form of a module: the module itself is the input.
_COMPILED = re.compile(r"(.*/)__pycache__/([^/.]+)\.cpython-[^/]*\.pyc$")


class Guests(StrEnum):
    """$ISOBLK_GUESTS: the use of kept guests."""

    KEPT = "kept"
    """They are not run."""
    SAMPLE = "sample"
    """A random tenth is run and compared with the kept guests."""
    FRESH = "fresh"
    """All are run, and compared."""


class StaleError(AssertionError):
    """A guest left other files than the kept run of equal inputs."""


class _Inputs(msgspec.Struct, frozen=True):
    """Contents of inputs.json: digests of files and targets of links, by path; "" where gone."""

    files: dict[str, str]
    links: dict[str, str]


def chosen() -> Guests:
    """The value of $ISOBLK_GUESTS."""
    return Guests(os.environ.get("ISOBLK_GUESTS", Guests.KEPT))


def recording_library(store: Path) -> Path:
    """Build the product's host library with the recorder linked in, once for its sources."""
    sources = (*library_sources("um", kernel_tree()), _RECORDER)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    library = store / f"library-{digest}.so"
    if not library.exists():
        store.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=store, prefix=".new.") as scratch:
            made = Path(scratch) / library.name
            subprocess.run(["gcc", *_FLAGS, "-o", made, *sources], check=True)
            made.replace(library)
    return library


@dataclass
class KeptUml:
    """The uml machine, with kept runs.

    Attributes:
        kernel: the kernel to boot.
        time_limit_s: wall-clock seconds after which a run counts as hung.
        store: the directory of entries.
        library: what the guest preloads; by default the product's with the recorder.
        guests: the use of kept runs.
        counts: how many runs were kept, new, and run again and found equal.
    """

    kernel: Kernel
    time_limit_s: float
    store: Path = field(default_factory=lambda: cache_dir() / "guests")
    library: Path | None = None
    guests: Guests = field(default_factory=chosen)
    counts: Counter[str] = field(default_factory=Counter)
    tier = UML

    def __post_init__(self) -> None:
        self._library = self.library or recording_library(self.store)
        self._uml = Uml(self.kernel, self._library, time_limit_s=self.time_limit_s)
        self._asked: Counter[str] = Counter()

    def begin_test(self) -> None:
        """Count the runs of each guest from one again."""
        self._asked.clear()

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        """Run as Uml.run(), or lay out what a run of equal inputs left.

        Raises:
            RunError, UserError: as Uml.run().
            StaleError: a repeated run left other files than the kept one.
        """
        began = time.time()
        before = _tree(directory)
        key = self._numbered(self._key(before, modules, seed, memory_mib))
        entry = self._find(key)
        again = self.guests is Guests.FRESH or (
            self.guests is Guests.SAMPLE and random.randrange(_SAMPLE) == 0
        )
        if entry is not None and not again:
            self.counts["kept"] += 1
            shutil.copytree(entry / "left", directory, dirs_exist_ok=True, symlinks=True)
            return msgspec.json.decode((entry / "ran.json").read_bytes(), type=Ran)
        record = directory.with_name(directory.name + ".opened")
        record.unlink(missing_ok=True)
        try:
            ran = self._uml.run(directory, modules, seed=seed, memory_mib=memory_mib)
            inputs = _inputs(record, directory, began)
        finally:
            record.unlink(missing_ok=True)
        if entry is not None:
            _compare(entry, _left(directory, before), directory)
            self.counts["again"] += 1
        else:
            self.counts["new"] += 1
            if inputs is not None:
                self._keep(key, inputs, directory, before, ran)
        return ran

    def stop(self) -> None:
        """End all machines, and let none begin. Their run() raises."""
        self._uml.stop()

    def _key(
        self, before: Mapping[str, str], modules: Sequence[Path], seed: int, memory_mib: int
    ) -> str:
        inputs = [
            digest_of(self.kernel.linux),
            str(self.kernel.debug),
            digest_of(self._library),
            *(f"{path.name} {digest_of(path)}" for path in modules),
            *(f"{name} {digest}" for name, digest in sorted(before.items())),
            str(seed),
            str(memory_mib),
        ]
        return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:_KEY_DIGITS]

    def _numbered(self, key: str) -> str:
        """The key of this run: a test's second run of equal inputs has another than its first."""
        self._asked[key] += 1
        number = self._asked[key]
        return key if number == 1 else f"{key[:-4]}-{number:03}"

    def _find(self, key: str) -> Path | None:
        """The newest entry of a key whose host files are what they were."""
        for entry in reversed(_oldest_first(self.store / key)):
            inputs = msgspec.json.decode((entry / "inputs.json").read_bytes(), type=_Inputs)
            if inputs == _digests(inputs.files, inputs.links):
                os.utime(entry)
                return entry
        return None

    def _keep(
        self,
        key: str,
        inputs: _Inputs,
        directory: Path,
        before: Mapping[str, str],
        ran: Ran,
    ) -> None:
        """Add an entry; of a key with many the oldest goes."""
        home = self.store / key
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.store, prefix=".new.") as name:
            made = Path(name) / "entry"
            left = made / "left"
            left.mkdir(parents=True)
            (made / "inputs.json").write_bytes(msgspec.json.encode(inputs))
            (made / "ran.json").write_bytes(msgspec.json.encode(asdict(ran)))
            for file in _left(directory, before):
                (left / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(directory / file, left / file, follow_symlinks=False)
            taken = _oldest_first(home)
            for old in taken[: len(taken) - _ENTRIES_MAX + 1]:
                shutil.rmtree(old, ignore_errors=True)
            # Another process may have kept the same run just now.
            with suppress(OSError):
                made.rename(home / str(max((int(path.name) for path in taken), default=0) + 1))


def prune(store: Path, days: float = 14) -> None:
    """Remove the entries that were not used for so many days."""
    limit = time.time() - days * 86400
    for home in store.glob("?" * _KEY_DIGITS):
        for entry in _oldest_first(home):
            if entry.stat().st_mtime < limit:
                shutil.rmtree(entry, ignore_errors=True)
        with suppress(OSError):
            home.rmdir()


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content; "" if it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return _digest(str(path), status.st_mtime_ns, status.st_size, status.st_ino)


@cache
def _digest(path: str, mtime_ns: int, size: int, inode: int) -> str:
    """SHA-256 of a file that has these properties; "" if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _oldest_first(home: Path) -> list[Path]:
    """The entries of a key, by the time of their last use."""
    return sorted(home.glob("[0-9]*"), key=lambda path: path.stat().st_mtime)


def _tree(directory: Path) -> dict[str, str]:
    """Digests of all files below a directory, and targets of its links, by relative name."""
    return {
        str(path.relative_to(directory)): (
            f"-> {path.readlink()}" if path.is_symlink() else digest_of(path)
        )
        for path in sorted(directory.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def _left(directory: Path, before: Mapping[str, str]) -> dict[str, str]:
    """Digests of the files that a guest made or changed."""
    return {name: digest for name, digest in _tree(directory).items() if before.get(name) != digest}


def _inputs(record: Path, directory: Path, began: float) -> _Inputs | None:
    """The host files that the guest read, from its record; None if they are unknown, because there
    is no record or a file has changed after the guest began."""
    if not record.exists():
        return None
    entries = {os.fsdecode(entry) for entry in record.read_bytes().split(b"\0") if entry}
    # hostfs puts its own root in front: several slashes.
    named = {(entry[0], "/" + entry[1:].lstrip("/")) for entry in entries}
    own = f"{directory.resolve()}/"
    files = {
        _COMPILED.sub(r"\1\2.py", name)
        for kind, name in named
        if kind == "f" and not name.startswith(own)
    }
    links = {name for kind, name in named if kind == "l" and not name.startswith(own)}
    if any(Path(name).exists() and Path(name).stat().st_mtime >= began for name in files):
        return None
    return _digests(files, links)


def _digests(files: Iterable[str], links: Iterable[str]) -> _Inputs:
    """Today's contents of host files, and targets of links."""
    return _Inputs(
        files={name: digest_of(Path(name)) for name in sorted(files)},
        links={name: _target(name) for name in sorted(links)},
    )


def _target(link: str) -> str:
    try:
        return str(Path(link).readlink())
    except OSError:
        return ""


def _compare(entry: Path, left: Mapping[str, str], directory: Path) -> None:
    """Raise StaleError unless a guest left what the entry holds.

    The error shows the first lines that differ: what a guest left is gone once its test has ended.
    """
    kept = _tree(entry / "left")
    differing = [name for name in sorted(kept.keys() | left) if kept.get(name) != left.get(name)]
    if differing:
        text = "\n".join(
            line
            for name in differing
            for line in _difference(entry / "left" / name, directory / name)
        )
        raise StaleError(f"{', '.join(differing)}: not what {entry} holds, of equal inputs\n{text}")


def _difference(kept: Path, new: Path) -> list[str]:
    """The beginning of a diff of two files; either may be missing, or hold anything."""
    old, now = (
        path.read_text(errors="replace").splitlines() if path.is_file() else []
        for path in (kept, new)
    )
    diff = difflib.unified_diff(old, now, str(kept), str(new), n=1, lineterm="")
    return list(itertools.islice(diff, _DIFF_LINES))

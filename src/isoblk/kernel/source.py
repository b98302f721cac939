# SPDX-License-Identifier: GPL-2.0-only
"""Find and verify kernel sources, and unpack each into the store once."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from isoblk.errors import IsoblkError, RunError, UserError, printable
from isoblk.files import write_atomically
from isoblk.kernel import apt, git, pins, store
from isoblk.kernel.apt import Offer
from isoblk.kernel.progress import Progress

# Versions that mean the newest package of the suite.
NEWEST = ("newest", "testing")

# Driver code that no kernel of the lab contains: more than half of the source. The build reads its
# Kconfig files and Makefiles, so they are kept.
_EXCLUDED = (
    "*/Documentation/*/*",
    "*/drivers/gpu/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/sound/*.[ch]",
    "*/tools/perf/*",
    "*/tools/testing/*",
)


# A URL with the checksum of its content.
_CHECKED_URL = re.compile(r"(https?://[^#]+)#sha256=([0-9a-fA-F]{64})")

# Digits of a checksum in a source's identity.
_DIGITS = 16

# Suite of a package that was fetched by its full version: a request for a series does not get it.
_APART = "-"

# Time for which a pinned package that the archive lacked is not requested again: a day.
_ABSENT_S = 86_400

# Time without data after which a download fails.
_NETWORK_LIMIT_S = 60


@dataclass(frozen=True)
class Download:
    """A kernel source at a URL: a tarball or a linux-source package, and its SHA-256."""

    url: str
    sha256: str


@dataclass(frozen=True)
class Revision:
    """A kernel source in a git repository. tree: hash of its tree, which identifies the
    contents."""

    repository: Path
    tree: str

    @property
    def identity(self) -> str:
        """Return the source's directory name in the store."""
        return f"git-{self.tree[:_DIGITS]}"


Given = Path | Download | Offer | Revision
"""A source: a local directory, tarball or package, or one to fetch first."""


@dataclass(frozen=True)
class Source:
    """A kernel source that can be built from.

    Attributes:
        identity: package_version of a Debian package, or tarball-, deb-, git- or tree- and a hash.
        version: full version in its Makefile, such as 6.12.117.
        tree: its top directory; not written to.
        owned: whether the tree is in the store, not the user's own.
    """

    identity: str
    version: str
    tree: Path
    owned: bool

    @property
    def lock_name(self) -> str:
        """Return the name of the lock that is held shared while the tree is read."""
        return f"source-{self.identity}"


def named(text: str) -> Path | Download:
    """Parse the user's source: a file or directory, or URL#sha256=SUM.

    Raises:
        UserError: a URL without the checksum.
    """
    if "://" not in text:
        return Path(text)
    if found := _CHECKED_URL.fullmatch(text):
        return Download(found[1], found[2].lower())
    raise UserError(
        "not http(s)://...#sha256= and 64 hexadecimal digits",
        where=printable(text),
        next="append #sha256= and the publisher's signed checksum",
    )


def resolve(
    version: str | None, given: Given | None, suite: str | None, progress: Progress
) -> Source:
    """Find a source, and unpack it if it is not in the store.

    Args:
        version: N.M, one of NEWEST, or None for any (given) or the default.
        given: the user's directory, tarball or linux-source package, or the address of one; a
            package of Debian's; or a revision of a git repository.
        suite: Debian suite on the mirror that apt is configured with.
        progress: listener for the stages.

    Raises:
        UserError: the source does not exist, is damaged, dirty, of another version or not Linux.
        RunError: the download failed.
    """
    check_request(version, suite)
    if given is None:
        source = _packaged(version or store.DEFAULT_VERSION, suite, progress)
    elif isinstance(given, Download):
        source = _downloaded(given, progress)
    elif isinstance(given, Offer):
        source = _offered(given, progress)
    elif isinstance(given, Revision):
        source = _revision(given, progress)
    elif given.is_dir():
        source = _directory(given.absolute(), progress)
    elif given.is_file():
        source = _file(given, progress)
    else:
        raise UserError("no such file or directory", where=str(given))
    if version and version not in NEWEST and not store.matches(source.version, version):
        where = given.url if isinstance(given, Download) else str(given or "")
        raise UserError(f"the source is Linux {source.version}, not {version}", where=where)
    return source


def check_request(version: str | None, suite: str | None) -> None:
    """Check the format of a version and a suite.

    Raises:
        UserError: the version or the suite is malformed.
    """
    if version is not None and version not in NEWEST and not re.fullmatch(r"\d+\.\d+", version):
        raise UserError(
            f"not a kernel version: {version!r}", where="--version", next="such as 6.12, or newest"
        )
    if suite is not None and not re.fullmatch(r"[a-z][\w./-]*", suite):
        raise UserError(f"not a suite: {suite!r}", where="--suite", next="such as forky")


def tree_version(tree: Path) -> str:
    """Return the full version of a source tree.

    Raises:
        UserError: it is not a Linux source with UML.
    """
    makefile = tree / "Makefile"
    text = makefile.read_text(errors="replace") if makefile.is_file() else ""
    fields = dict(
        re.findall(
            r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", text, re.MULTILINE
        )
    )
    parts = ("Kconfig", "arch/um/Makefile", "block/blk-core.c", "scripts/Makefile.build")
    if not all(fields.get(name) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")) or not all(
        (tree / part).is_file() for part in parts
    ):
        raise UserError("not a kernel source", where=str(tree))
    return "{VERSION}.{PATCHLEVEL}.{SUBLEVEL}{EXTRAVERSION}".format(
        **{"EXTRAVERSION": "", **fields}
    )


def _packaged(version: str, suite: str | None, progress: Progress) -> Source:
    newest = version in NEWEST
    package = f"linux-source-{version}"
    if not newest and suite is None and (installed := _installed(package)):
        archive, package_version = installed
        return _unpacked(f"{package}_{package_version}", archive, "", progress)
    if not newest and suite is None and (pinned := _pinned(package, progress)):
        return pinned
    if not newest and (kept := _kept(package, suite)):
        return kept
    with scratch_dir(progress) as scratch:
        progress.stage(f"fetching {'the newest kernel source' if newest else package}")
        directory = scratch / "deb"
        directory.mkdir()
        deb = apt.fetch(None if newest else version, suite, directory)
        identity = f"{deb.package}_{deb.version}"
        origin = apt.DEFAULT_SUITE if newest and suite is None else suite or ""
        return unpacked_deb(identity, deb.path, scratch, origin, progress)


def _pinned(package: str, progress: Progress) -> Source | None:
    """Return the pinned source of a package; None without a pin, or if the archive lacks the
    package."""
    wanted = pins.of_package(package)
    for pin in wanted:
        if kept := _read(store.sources_dir() / pin.offer.identity):
            return kept
    for pin in wanted:
        absent = store.sources_dir() / f".absent.{pin.offer.identity}"
        if absent.exists() and time.time() - absent.stat().st_mtime < _ABSENT_S:
            continue
        with scratch_dir(progress) as scratch:
            progress.stage(f"fetching {package} {pin.offer.version}")
            directory = scratch / "deb"
            directory.mkdir()
            try:
                deb = pins.fetch(pin, directory)
            except IsoblkError as error:
                progress.note(f"the pinned {pin.offer.identity} cannot be fetched: {error}")
                absent.touch()
                continue
            return unpacked_deb(pin.offer.identity, deb, scratch, "", progress)
    return None


@contextmanager
def scratch_dir(progress: Progress) -> Iterator[Path]:
    """Make a temporary directory for packages. One process at a time.

    store.clean takes the same lock before it removes files of a killed process.
    """
    root = store.sources_dir()
    root.mkdir(parents=True, exist_ok=True)
    with (
        store.lock("source-fetch", wait=lambda: progress.note("waiting for another download")),
        TemporaryDirectory(prefix=".fetch.", dir=root) as name,
    ):
        yield Path(name)


def _installed(package: str) -> tuple[Path, str] | None:
    """Return archive and version of an installed linux-source package."""
    archives = sorted(Path("/usr/src").glob(f"{package}.tar.*"))
    if not archives or not shutil.which("dpkg-query"):
        return None
    query = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package],
        text=True,
        capture_output=True,
        check=False,
    )
    status, _, version = query.stdout.partition(" ")
    return (archives[0], version) if query.returncode == 0 and status == "installed" else None


def _kept(package: str, suite: str | None) -> Source | None:
    """Return the latest unpacked source of a package."""
    candidates = sorted(
        store.sources_dir().glob(f"{package}_*/source.json"),
        key=lambda path: path.stat().st_mtime,
        reverse=True,
    )
    for path in candidates:
        source = _read(path.parent)
        found = _suite(path.parent) if source else _APART
        if found != _APART and suite in (None, found):
            return source
    return None


def _directory(tree: Path, progress: Progress) -> Source:
    version = tree_version(tree)
    for remnant in (".config", "include/config", "arch/um/include/generated"):
        if (tree / remnant).exists():
            raise UserError(
                f"the source tree is not clean (it has {remnant})",
                where=str(tree),
                next=f"run: make -C {tree} ARCH=um mrproper",
            )
    progress.stage(f"reading {tree}")
    return Source(f"tree-{_hash_tree(tree)}", version, tree, owned=False)


def _hash_tree(tree: Path) -> str:
    """Hash all names and contents of a tree, without git's own files."""
    whole = hashlib.sha256()
    for parent, directories, names in os.walk(tree):
        directories[:] = sorted(name for name in directories if name != ".git")
        for name in sorted(names):
            path = Path(parent, name)
            try:
                data = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            except OSError as error:
                raise UserError(
                    f"cannot read the source: {error.strerror}", where=str(path)
                ) from None
            whole.update(f"{path.relative_to(tree)}\0".encode(errors="surrogateescape"))
            whole.update(hashlib.sha256(data).digest())
    return whole.hexdigest()[:_DIGITS]


def _downloaded(given: Download, progress: Progress) -> Source:
    """Return the source at a URL, whose content must match its checksum."""
    for kind in ("tarball", "deb"):
        if kept := _read(store.sources_dir() / f"{kind}-{given.sha256[:_DIGITS]}"):
            return kept
    with scratch_dir(progress) as scratch:
        name = PurePosixPath(urlsplit(given.url).path).name or "source"
        progress.stage(f"fetching {name}")
        path = scratch / "download"
        try:
            with (
                urlopen(given.url, timeout=_NETWORK_LIMIT_S) as response,  # http(s): see named()
                path.open("wb") as file,
            ):
                shutil.copyfileobj(response, file)
        except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
            raise RunError(
                f"cannot fetch: {_reason(error)}",
                where=given.url,
                next="check that the address is correct and reachable",
            ) from None
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != given.sha256:
            raise UserError(
                f"the SHA-256 is {found}, not {given.sha256}",
                where=given.url,
                next="compare it with the published checksum",
            )
        if _is_deb(path):
            identity = f"deb-{found[:_DIGITS]}"
            return unpacked_deb(identity, path, scratch, "", progress)
        return _unpacked(f"tarball-{found[:_DIGITS]}", path, "", progress)


def _offered(given: Offer, progress: Progress) -> Source:
    """Return the source in a Debian package of an exact version."""
    if kept := _read(store.sources_dir() / given.identity):
        return kept
    with scratch_dir(progress) as scratch:
        progress.stage(f"fetching {given.package} {given.version}")
        directory = scratch / "deb"
        directory.mkdir()
        deb = apt.download(given, directory)
        return unpacked_deb(given.identity, deb.path, scratch, _APART, progress)


def _revision(given: Revision, progress: Progress) -> Source:
    """Return the source in a git tree. The repository is only read."""
    if kept := _read(store.sources_dir() / given.identity):
        return kept
    with scratch_dir(progress) as scratch:
        progress.stage(f"reading {given.tree[:_DIGITS]} of {given.repository}")
        archive = scratch / "tree.tar"
        # In a directory, as in a tarball, so that the patterns of _EXCLUDED match.
        git.archive(given.repository, given.tree, archive, top="linux/")
        return _unpacked(given.identity, archive, "", progress)


def _reason(error: Exception) -> object:
    """Return why a download failed. The text of HTTPError has the status, its reason has not."""
    if isinstance(error, URLError) and not isinstance(error, HTTPError):
        return error.reason
    return error


def _is_deb(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(8) == b"!<arch>\n"


def _file(path: Path, progress: Progress) -> Source:
    progress.stage(f"reading {path.name}")
    try:
        is_deb = _is_deb(path)
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()[:_DIGITS]
    except OSError as error:
        raise UserError(f"cannot read the source: {error.strerror}", where=str(path)) from None
    if is_deb:
        with scratch_dir(progress) as scratch:
            return unpacked_deb(f"deb-{content}", path, scratch, "", progress)
    return _unpacked(f"tarball-{content}", path, "", progress)


def unpacked_deb(identity: str, deb: Path, scratch: Path, suite: str, progress: Progress) -> Source:
    """Return the source in a linux-source package, unpacked if it is not in the store."""
    home = store.sources_dir() / identity
    if kept := _read(home):
        if suite != _APART and _suite(home) == _APART:
            _write_facts(home, kept.version, suite)
        return kept
    extract(["dpkg-deb", "-x", str(deb), str(scratch / "files")], deb)
    archives = sorted(scratch.glob("files/usr/src/linux-source-*.tar.*"))
    if not archives:
        raise UserError("the package holds no kernel source", where=str(deb))
    return _unpacked(identity, archives[0], suite, progress)


def _unpacked(identity: str, archive: Path, suite: str, progress: Progress) -> Source:
    """Return the source in a tar archive, unpacked under its identity if it is not in the store."""
    home = store.sources_dir() / identity
    home.parent.mkdir(parents=True, exist_ok=True)
    with store.lock(
        f"source-{identity}",
        wait=lambda: progress.note(f"waiting: another process is unpacking {identity}"),
    ):
        if kept := _read(home):
            return kept
        progress.stage(f"unpacking {identity}")
        part = home.with_name(f".{identity}.part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)
        try:
            files = part / "files"
            files.mkdir(parents=True)
            excludes = [f"--exclude={pattern}" for pattern in _EXCLUDED]
            extract(
                ["tar", "-x", "-f", str(archive.absolute()), "-C", str(files), *excludes], archive
            )
            children = list(files.iterdir())
            top = children[0] if len(children) == 1 and children[0].is_dir() else files
            try:
                version = tree_version(top)
            except UserError as error:
                raise UserError(error.cause, where=str(archive)) from None
            top.rename(part / "tree")
            _write_facts(part, version, suite, identity)
            part.rename(home)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return Source(identity, version, home / "tree", owned=True)


def _suite(home: Path) -> str:
    """Return the suite of an unpacked source."""
    return str(json.loads((home / "source.json").read_text()).get("suite", ""))


def _write_facts(home: Path, version: str, suite: str, identity: str = "") -> None:
    """Mark a source as unpacked. identity: name of its directory, if not that of home."""
    facts = {"identity": identity or home.name, "version": version, "suite": suite}
    write_atomically(home / "source.json", json.dumps(facts).encode())


def kept(identity: str) -> Source | None:
    """Return the unpacked source of package_version, None if it is not in the store."""
    return _read(store.sources_dir() / identity)


def _read(home: Path) -> Source | None:
    """Return an unpacked source, None if it is absent or incomplete."""
    try:
        meta = json.loads((home / "source.json").read_text())
        return Source(home.name, meta["version"], home / "tree", owned=True)
    except (OSError, ValueError, KeyError):
        return None


def extract(command: list[str], archive: Path) -> None:
    """Run an unpacking command.

    Raises:
        UserError: the archive is damaged, the disk is full, or the command is not installed.
    """
    try:
        result = subprocess.run(
            command,
            text=True,
            errors="replace",
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        package = {"dpkg-deb": "dpkg"}.get(command[0], command[0])
        raise UserError(f"{command[0]} is missing", next=f"run: apt install {package}") from None
    if result.returncode:
        raise unpack_error(result.stderr, archive)


def unpack_error(stderr: str, archive: Path) -> IsoblkError:
    """Return the error for a failed tar or dpkg-deb."""
    if "No space left on device" in stderr or "Disk quota exceeded" in stderr:
        return store.disk_full(store.sources_dir())
    lines = [line for line in stderr.splitlines() if "Exiting with failure" not in line]
    detail = lines[0].strip() if lines else "unpacking failed"
    if "xz: Cannot exec" in stderr:
        return UserError("xz is missing", next="run: apt install xz-utils")
    return UserError(f"damaged kernel source ({detail})", where=str(archive))

# SPDX-License-Identifier: GPL-2.0-only
"""The private headers of block/ that elevators need, by a kernel's series.

No headers package has them. They are the kernel's text, so git does not keep them: each series'
are taken out of a distribution's linux-source package once, and kept in isoblk's cache.
"""

import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from isoblk.errors import IsoblkError, RunError, UserError
from isoblk.kernel import apt, source, store
from isoblk.paths import cache_dir

# What kernel/include/compat.h includes; what these include in turn is found in them.
WANTED: Final = (
    "blk.h",
    "blk-cgroup.h",
    "blk-mq.h",
    "blk-mq-debugfs.h",
    "blk-mq-sched.h",
    "blk-wbt.h",
    "elevator.h",
)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([\w.-]+\.h)"', re.MULTILINE)
_ORIGIN: Final = "ORIGIN"

_UBUNTU: Final = "http://archive.ubuntu.com/ubuntu"
# Debian has Ubuntu's key in a package, so that Debian's key vouches for it.
_UBUNTU_KEYRING: Final = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
_UBUNTU_KEYRING_PACKAGE: Final = "ubuntu-keyring"
_UBUNTU_KEYRING_SUITE: Final = "trixie"


@dataclass(frozen=True)
class Variant:
    """Versions of a series that have the same headers, and where to take these from.

    Attributes:
        since: the first of them that was looked at: N.M.P, or N.M.0-A of Ubuntu's A.
        until: the last P or A; None: the headers did not change since.
        distribution, suites, package: of the source.
        version: of the package; None: the newest.
    """

    since: str
    until: int | None
    distribution: str
    suites: tuple[str, ...]
    package: str
    version: str | None = None

    @property
    def name(self) -> str:
        """In words."""
        end = " on" if self.until is None else f" to {self.until}"
        return f"{self.since}{end}"


_PLUCKY = ("Ubuntu", ("plucky", "plucky-updates"), "linux-source-6.14.0")
_QUESTING = ("Ubuntu", ("questing", "questing-updates"), "linux-source-6.17.0")
_RESOLUTE = ("Ubuntu", ("resolute", "resolute-updates"), "linux-source-7.0.0")

# A stable release may change the headers, so those of the versions that archives have were
# compared. What lies between two that differ is not known, and refused.
SERIES: Final = {
    "6.12": (
        # Without rcu_head at the end of struct blkg_policy_data, with which ours begins.
        Variant("6.12.95", 113, "Debian", ("trixie",), "linux-source-6.12", "6.12.107-1"),
        Variant("6.12.115", None, "Debian", ("trixie",), "linux-source-6.12"),
    ),
    "6.14": (Variant("6.14.0-15", None, *_PLUCKY),),
    "6.17": (
        # Before, depth_updated() was of a hardware queue; after, struct elevator_mq_ops is larger.
        Variant("6.17.0-19", 19, *_QUESTING, "6.17.0-19.19"),
        Variant("6.17.0-29", None, *_QUESTING),
    ),
    "7.0": (
        Variant("7.0.0-14", 38, *_RESOLUTE, "7.0.0-34.34"),
        # As 6.12.115.
        Variant("7.0.0-44", None, *_RESOLUTE),
    ),
    "7.2": (Variant("7.2.6", None, "Debian", ("forky",), "linux-source-7.2"),),
    "7.3": (Variant("7.3.4", None, "Debian", ("trixie-backports",), "linux-source-7.3"),),
}


@dataclass(frozen=True)
class Headers:
    """A variant's headers, in a directory block/ of `directory`; `origin`: package and version."""

    series: str
    variant: Variant
    directory: Path
    origin: str


def home() -> Path:
    """Where they are kept."""
    return cache_dir() / "block-headers"


def gather(wanted: Sequence[str], *, insist: bool, refresh: bool = False) -> list[Headers]:
    """The headers of several series; those that are not here are fetched, by one at a time.

    Args:
        wanted: the series, such as 6.12.
        insist: one that cannot be had is an error, else it is left out and said.
        refresh: fetch also those that are here.

    Raises:
        UserError, RunError: one is unknown, or cannot be had.
    """
    with store.lock(
        "block-headers", wait=lambda: print("waiting for the headers", file=sys.stderr)
    ):
        return _gather(wanted, insist=insist, refresh=refresh)


def _gather(wanted: Sequence[str], *, insist: bool, refresh: bool) -> list[Headers]:
    found = []
    for series in wanted:
        if series not in SERIES:
            raise UserError(
                f"no source of Linux {series} is known", next=f"known: {' '.join(SERIES)}"
            )
        for variant in SERIES[series]:
            try:
                one = None if refresh else _kept(series, variant)
                found.append(one or _fetched(series, variant))
            except IsoblkError as error:
                # The newest of a series is what matters.
                if insist and variant.until is None:
                    raise
                print(f"Linux {variant.since} is left out: {error}", file=sys.stderr)
    return found


def _kept(series: str, variant: Variant) -> Headers | None:
    directory = home() / variant.since
    try:
        origin = (directory / _ORIGIN).read_text().strip()
    except OSError:
        return None
    return Headers(series, variant, directory, origin)


def _fetched(series: str, variant: Variant) -> Headers:
    # A source that the lab has unpacked will do.
    trees = store.sources_dir().glob(f"{variant.package}_*/source.json")
    for path in sorted(trees, key=lambda path: path.stat().st_mtime, reverse=True):
        identity: str = json.loads(path.read_text())["identity"]
        origin = identity.replace("_", " ", 1)
        if variant.version is None or origin == f"{variant.package} {variant.version}":
            return _keep(series, variant, path.parent / "tree/block", origin)
    home().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".fetch.", dir=home()) as name:
        scratch = Path(name)
        deb = _download(_repos(variant, scratch), variant.package, variant.version, scratch)
        return _keep(series, variant, _block_of(deb, scratch), f"{deb.package} {deb.version}")


def _download(repos: list[apt.Repo], package: str, wanted: str | None, scratch: Path) -> apt.Deb:
    directory = scratch / package
    directory.mkdir()
    with apt.private(repos, scratch) as (state, trouble):
        version = wanted or state.candidate(package)
        if version is None:
            raise RunError(
                f"no package {package} could be fetched" + f": {trouble}" * bool(trouble)
            )
        print(f"fetching {package} {version}", file=sys.stderr)
        return state.download(package, version, directory)


def _repos(variant: Variant, scratch: Path) -> list[apt.Repo]:
    if variant.distribution == "Debian":
        return [repo for suite in variant.suites for repo in _debian(suite)]
    keyring = Path("/", _UBUNTU_KEYRING)
    if not keyring.is_file():
        deb = _download(_debian(_UBUNTU_KEYRING_SUITE), _UBUNTU_KEYRING_PACKAGE, None, scratch)
        source.extract(["dpkg-deb", "-x", str(deb.path), str(scratch / "keyring")], deb.path)
        keyring = scratch / "keyring" / _UBUNTU_KEYRING
    return [apt.Repo((_UBUNTU,), variant.suites, ("main",), {"signed-by": str(keyring)})]


def _debian(suite: str) -> list[apt.Repo]:
    """This machine's mirrors, or Debian's own where apt knows none."""
    return apt.mirrors_with_suite(list(apt.mirrors().repos), suite, apt.archive_keyring())


def _block_of(deb: apt.Deb, scratch: Path) -> Path:
    """The headers of block/ alone: of a gigabyte that the whole source has."""
    files = scratch / "files"
    source.extract(["dpkg-deb", "-x", str(deb.path), str(files)], deb.path)
    archives = sorted(files.glob("usr/src/**/linux-source-*.tar.*"))
    archives = [path for path in archives if path.is_file() and not path.is_symlink()]
    if not archives:
        raise RunError("the package holds no kernel source", where=deb.package)
    tree = scratch / "tree"
    tree.mkdir()
    source.extract(
        [
            *("tar", "-x", "-f", str(archives[0]), "-C", str(tree), "--strip-components=1"),
            *("--wildcards", "--no-wildcards-match-slash", "*/block/*.h"),
        ],
        archives[0],
    )
    return tree / "block"


def _keep(series: str, variant: Variant, block: Path, origin: str) -> Headers:
    final = home() / variant.since
    home().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".keep.", dir=home()) as name:
        part = Path(name, variant.since)
        (part / "block").mkdir(parents=True)
        for header in closure(block):
            shutil.copyfile(header, part / "block" / header.name)
        (part / _ORIGIN).write_text(f"{origin}\n")
        shutil.rmtree(final, ignore_errors=True)
        part.rename(final)
    return Headers(series, variant, final, origin)


def closure(block: Path) -> list[Path]:
    """The headers that are wanted, and what these include of block/ in turn.

    Raises:
        RunError: one is not there.
    """
    found: dict[str, Path] = {}
    waiting = [*WANTED]
    while waiting:
        path = block / waiting.pop()
        if path.name in found:
            continue
        if not path.is_file():
            raise RunError("the kernel source lacks a header", where=f"block/{path.name}")
        found[path.name] = path
        names = _INCLUDE.findall(path.read_text())
        waiting += [name for name in names if (block / name).is_file()]
    return [found[name] for name in sorted(found)]

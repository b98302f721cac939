# SPDX-License-Identifier: GPL-2.0-only
"""Debian's own kernels, unpacked into the store: to boot, and to build modules for.

The packages are only unpacked, never installed. They are those of one version: the image, the
headers, what builds modules, and the source, whose private headers of block/ the schedulers
need.
"""

import lzma
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from isoblk.errors import RunError, UserError
from isoblk.kernel import apt, source, store, tools
from isoblk.kernel.progress import Progress
from isoblk.kernel.store import Kernel

# Part of every key: count up when a change here would give other files.
_RECIPE = 1

_ARCH = "amd64"

# What the lab's own kernels have built in and Debian's as modules: file systems over 9p, the
# schedulers, ext4, device mapper and what dm-setcache uses. In an order that suits their
# dependencies; what is built in is passed over.
_BASE = (
    *("netfs", "9pnet", "9p", "9pnet_virtio", "configfs", "kyber-iosched", "bfq"),
    *("crc16", "crc32c_generic", "mbcache", "jbd2", "ext4", "libcrc32c", "dm-mod"),
)
# What a run may ask for.
_MODULES = ("null_blk",)


def recipe() -> str:
    """Hash of all that determines the unpacked kernel besides its packages."""
    return store.digest(str(_RECIPE), *_BASE, *_MODULES)


def find(version: str | None = None) -> Kernel:
    """A stock kernel that is ready, and that gcc here can build modules for.

    Args:
        version: such as 6.12; None for the default.

    Raises:
        UserError: there is none.
    """
    wanted = version or store.DEFAULT_VERSION
    for kernel, facts in store.all_ready():
        same = facts.stock and facts.recipe == recipe()
        if not same or not store.matches(kernel.version, wanted):
            continue
        # A cache may be shared by systems of several releases.
        if not tools.compiler_is_older(kernel.compiler):
            return kernel
    command = "isoblk kernel build --stock"
    if version is not None:
        command += " --version " + ".".join(version.split(".")[:2])
    raise UserError(f"no stock kernel {wanted} is here", next=f"run: {command}")


def build(version: str | None, suite: str | None, progress: Progress) -> Kernel:
    """Fetch and unpack a stock kernel, unless one of that version is ready.

    Args:
        version: N.M, one of source.NEWEST, or None for the default.
        suite: Debian suite to look in; None for those apt is configured with.
        progress: is told the stages.

    Raises:
        UserError: there is no such kernel, or something is missing here.
        RunError: the download failed.
    """
    source.check_request(version, suite)
    newest = version in source.NEWEST
    if not newest and suite is None:
        try:
            return find(version)
        except UserError:
            pass
    with store.disk_errors(), source.scratch_dir(progress) as scratch:
        progress.stage(f"fetching the stock kernel {version or store.DEFAULT_VERSION}")
        directory = scratch / "debs"
        directory.mkdir()
        series = None if newest else version or store.DEFAULT_VERSION
        debs = apt.fetch_all(
            lambda state: packages(state, series),
            f"linux-image-{series or '*'}-{_ARCH}-unsigned",
            suite,
            directory,
            configured=not newest,
        )
        origin = _source(debs, scratch, suite or "", progress)
        return _unpacked(debs, origin, scratch, progress)


def packages(state: apt.Apt, series: str | None) -> Sequence[tuple[str, str]]:
    """Names and versions of a stock kernel's packages, all of one version.

    Args:
        series: N.M; None for the newest of the suite.

    Returns:
        The image first; the source last, left out if the store has it. Nothing if one of them
        is not there.
    """
    name = f"linux-source-{series}" if series else apt.newest_source(state.names("linux-source-"))
    version = state.candidate(name) if name else None
    if name is None or version is None:
        return []
    upstream = version.partition("-")[0]
    # Not the flavours for clouds, which lack 9p, or for real time.
    image = re.compile(rf"linux-image-({re.escape(upstream)}(?:\+\w+)?)-{_ARCH}-unsigned")
    releases = [found[1] for one in state.names("linux-image-") if (found := image.fullmatch(one))]
    for release in releases:
        wanted = [
            f"linux-image-{release}-{_ARCH}-unsigned",
            f"linux-headers-{release}-{_ARCH}",
            f"linux-headers-{release}-common",
            f"linux-kbuild-{release}",
        ]
        if all(state.candidate(one) == version for one in wanted):
            kept = source.kept(f"{name}_{version}") is not None
            return [(one, version) for one in [*wanted, *([] if kept else [name])]]
    return []


def _source(
    debs: Sequence[apt.Deb], scratch: Path, suite: str, progress: Progress
) -> source.Source:
    """The source that the packages were built from, unpacked if the store lacks it."""
    last = debs[-1]
    if last.package.startswith("linux-source-"):
        identity = f"{last.package}_{last.version}"
        return source.unpacked_deb(identity, last.path, scratch, suite, progress)
    series = ".".join(last.version.split(".")[:2])
    found = source.kept(f"linux-source-{series}_{last.version}")
    if found is None:
        raise RunError("the kernel source was removed from the cache meanwhile")
    return found


def _unpacked(
    debs: Sequence[apt.Deb], origin: source.Source, scratch: Path, progress: Progress
) -> Kernel:
    image = debs[0]
    release = image.package.removeprefix("linux-image-").removesuffix("-unsigned")
    identity = f"{image.package}_{image.version}"
    key = f"{release}-{store.digest(identity, recipe())}"
    home = store.kernels_dir() / key
    home.parent.mkdir(parents=True, exist_ok=True)
    with store.lock(f"kernel-{key}", wait=lambda: progress.note(f"waiting: {key} is in use")):
        if ready := store.read_ready(home):
            return store.kernel_of(home, ready)
        progress.stage(f"unpacking {image.package} {image.version}")
        part = home.with_name(f".{key}.part")
        for leftover in (part, home):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            for deb in debs[1:4]:
                source.extract(["dpkg-deb", "-x", str(deb.path), str(part)], deb.path)
            _make_usable(part, release)
            files = scratch / "image"
            source.extract(["dpkg-deb", "-x", str(image.path), str(files)], image.path)
            shutil.move(files / "boot" / f"vmlinuz-{release}", part / "vmlinuz")
            # /lib itself may be a link to /usr/lib, in the package as on the system.
            (own,) = (path for path in files.glob(f"**/modules/{release}") if path.is_dir())
            _keep_modules(own, part)
            ready = store.Ready(
                version=release,
                source=identity,
                tree=str(origin.tree),
                compiler=_compiler(part / "build" / ".config"),
                debug=False,
                recipe=recipe(),
                steps=0,
                built_at=time.time(),
                arch="x86_64",
                stock=True,
            )
            store.write_ready(part, ready)
            part.rename(home)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return store.kernel_of(home, ready)


def _compiler(dotconfig: Path) -> str:
    """What compiled the kernel, as its configuration tells."""
    text = dotconfig.read_text() if dotconfig.is_file() else ""
    found = re.search(r'^CONFIG_CC_VERSION_TEXT="(.*)"$', text, re.MULTILINE)
    return found[1] if found else "unknown"


def _make_usable(root: Path, release: str) -> None:
    """Make the headers work where they are unpacked, and not in /usr/src."""
    headers = root / "usr" / "src" / f"linux-headers-{release}"
    common = headers.with_name(f"linux-headers-{release.removesuffix(f'-{_ARCH}')}-common")
    # The directory stands in for the place of the Makefile, whatever it will be renamed to.
    makefile = "include $(dir $(realpath $(lastword $(MAKEFILE_LIST))))../{}/Makefile\n"
    # Of it there is only the type information, to add which pahole would be needed.
    (headers / "vmlinux").unlink(missing_ok=True)
    (headers / "Makefile").write_text(makefile.format(common.name))
    for other in (common / "arch").iterdir():
        if other.name != "x86" and other.is_dir():
            shutil.rmtree(other)
    (root / "build").symlink_to(headers.relative_to(root))


def _keep_modules(own: Path, home: Path) -> None:
    """Unpack those of the kernel's modules that the lab needs."""
    found = {path.name.partition(".ko")[0]: path for path in own.rglob("*.ko*")}
    for place, names in (("base", _BASE), ("modules", _MODULES)):
        (home / place).mkdir()
        for number, name in enumerate(names):
            if path := found.get(name):
                data = path.read_bytes()
                plain = lzma.decompress(data) if path.suffix == ".xz" else data
                # Those of base/ are loaded in order of name.
                prefix = f"{number:02}-" if place == "base" else ""
                (home / place / f"{prefix}{name}.ko").write_bytes(plain)

# SPDX-License-Identifier: GPL-2.0-only
"""Debian's own kernels, unpacked into the store to boot them and to build modules for them.

The packages are unpacked, not installed. All are of one version: the image, the headers, the tools
that build modules, and the source, whose private headers of block/ the schedulers need.
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

# Part of every key: increment it if a change in this file changes the files.
_RECIPE = 1

_ARCH = "amd64"

# Code that the lab's own kernels have built in and Debian's have as modules: file systems over 9p,
# the schedulers, ext4, device mapper and the modules that dm-setcache uses. Ordered by dependency;
# a built-in is skipped.
_BASE = (
    *("netfs", "9pnet", "9p", "9pnet_virtio", "configfs", "kyber-iosched", "bfq"),
    *("crc16", "crc32c_generic", "mbcache", "jbd2", "ext4", "libcrc32c", "dm-mod"),
)
# Modules that a run may request.
_MODULES = ("null_blk",)


def recipe() -> str:
    """Hash all inputs of the unpacked kernel except its packages."""
    return store.digest(str(_RECIPE), *_BASE, *_MODULES)


def find(version: str | None = None) -> Kernel:
    """Return a ready stock kernel for which the installed gcc can build modules.

    Args:
        version: such as 6.12; None for the default.

    Raises:
        UserError: there is no such kernel.
    """
    wanted = version or store.DEFAULT_VERSION
    for kernel, facts in store.all_ready():
        same = facts.stock and facts.recipe == recipe()
        if not same or not store.matches(kernel.version, wanted):
            continue
        # Systems of several releases may share a cache directory.
        if not tools.compiler_is_older(kernel.compiler):
            return kernel
    command = "isoblk kernel build --stock"
    if version is not None:
        command += " --version " + ".".join(version.split(".")[:2])
    raise UserError(f"no stock kernel {wanted} in the cache", next=f"run: {command}")


def build(version: str | None, suite: str | None, progress: Progress) -> Kernel:
    """Fetch and unpack a stock kernel, unless one of that version is ready.

    Args:
        version: N.M, one of source.NEWEST, or None for the default.
        suite: Debian suite; None for those that apt is configured with.
        progress: listener for the stages.

    Raises:
        UserError: there is no such kernel, or a tool is missing.
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
    """Return names and versions of a stock kernel's packages, all of one version.

    Args:
        state: the apt state to look in.
        series: N.M; None for the newest of the suite.

    Returns:
        The image first; the source last, omitted if the store has it. Empty if a package is
            missing.
    """
    name = f"linux-source-{series}" if series else apt.newest_source(state.names("linux-source-"))
    version = state.candidate(name) if name else None
    if name is None or version is None:
        return []
    upstream = version.partition("-")[0]
    # Excludes the flavours for clouds, which lack 9p, and for real time.
    image = re.compile(rf"linux-image-({re.escape(upstream)}(?:\+\w+)?)-{_ARCH}-unsigned")
    releases = [
        found[1] for name in state.names("linux-image-") if (found := image.fullmatch(name))
    ]
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
    """Return the source of the packages, unpacked if the store lacks it."""
    last = debs[-1]
    if last.package.startswith("linux-source-"):
        identity = f"{last.package}_{last.version}"
        return source.unpacked_deb(identity, last.path, scratch, suite, progress)
    series = ".".join(last.version.split(".")[:2])
    found = source.kept(f"linux-source-{series}_{last.version}")
    if found is None:
        raise RunError("the kernel source was removed from the cache during the build")
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
    with store.lock(
        f"kernel-{key}", wait=lambda: progress.note(f"waiting: another process uses {key}")
    ):
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
            # /lib may be a link to /usr/lib, in the package as on the system.
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
    """Return the compiler of the kernel, from its configuration."""
    text = dotconfig.read_text() if dotconfig.is_file() else ""
    found = re.search(r'^CONFIG_CC_VERSION_TEXT="(.*)"$', text, re.MULTILINE)
    return found[1] if found else "unknown"


def _make_usable(root: Path, release: str) -> None:
    """Make the headers usable outside /usr/src."""
    headers = root / "usr" / "src" / f"linux-headers-{release}"
    common = headers.with_name(f"linux-headers-{release.removesuffix(f'-{_ARCH}')}-common")
    # The path is relative to the Makefile, so that it holds after the directory is renamed.
    makefile = "include $(dir $(realpath $(lastword $(MAKEFILE_LIST))))../{}/Makefile\n"
    # vmlinux has only type information, and pahole would be needed to use it.
    (headers / "vmlinux").unlink(missing_ok=True)
    (headers / "Makefile").write_text(makefile.format(common.name))
    for other in (common / "arch").iterdir():
        if other.name != "x86" and other.is_dir():
            shutil.rmtree(other)
    (root / "build").symlink_to(headers.relative_to(root))


def _keep_modules(own: Path, home: Path) -> None:
    """Unpack the kernel's modules that the lab needs."""
    found = {path.name.partition(".ko")[0]: path for path in own.rglob("*.ko*")}
    for place, names in (("base", _BASE), ("modules", _MODULES)):
        (home / place).mkdir()
        for number, name in enumerate(names):
            if path := found.get(name):
                data = path.read_bytes()
                plain = lzma.decompress(data) if path.suffix == ".xz" else data
                # Modules of base/ are loaded in order of name.
                prefix = f"{number:02}-" if place == "base" else ""
                (home / place / f"{prefix}{name}.ko").write_bytes(plain)

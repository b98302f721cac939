# SPDX-License-Identifier: GPL-2.0-only
"""Kernel modules that are not of this repository: an elevator that a study brings along.

Whoever builds and loads code names it on the command line; a study only says what it is called.
What is loaded is a copy, so that all runs of a campaign have the same module, whatever becomes of
the file meanwhile.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from isoblk.errors import UserError
from isoblk.kernel import store, tools
from isoblk.kernel.modules import hash_of, make_modules, sources_of
from isoblk.kernel.progress import Progress, Silent
from isoblk.kernel.store import Kernel
from isoblk.paths import kernel_tree

# Part of the hash: count up when a change here would give other modules.
_RECIPE = "1"
_SUFFIXES = (".c", ".h", ".S")


def find_modules(
    kernel: Kernel, places: Sequence[Path], progress: Progress | None = None
) -> dict[str, Path]:
    """Modules by their names.

    Args:
        kernel: that they are for.
        places: a .ko file each, or the directory of a module's sources with their Kbuild, which is
            built for the kernel if it was not yet. In its Kbuild $(ISOBLK)/include has compat.h.
        progress: hears of a build.

    Raises:
        UserError: a place is neither, or two modules have one name.
        RunError: one does not compile.
    """
    found: dict[str, Path] = {}
    for place in places:
        if place.suffix == ".ko":
            modules = [_copied(kernel, place)]
        else:
            modules = _built(kernel, place, progress or Silent())
        for module in modules:
            if module.stem in found:
                raise UserError(f"there are two modules {module.stem}", where=str(place))
            found[module.stem] = module
    return found


def _copied(kernel: Kernel, module: Path) -> Path:
    """A copy, by its content."""
    try:
        content = module.read_bytes()
    except OSError:
        raise UserError("no such module", where=str(module)) from None
    digest = hashlib.sha256(content).hexdigest()[:12]
    home = store.modules_dir() / f"{kernel.key}-other-{digest}"
    copy = home / module.name
    with store.hold(kernel), store.disk_errors(), store.lock(f"modules-{home.name}", wait=_wait):
        if not copy.exists():
            home.mkdir(parents=True, exist_ok=True)
            part = home / f".{module.name}.part"
            part.write_bytes(content)
            part.rename(copy)
    return copy


def _built(kernel: Kernel, tree: Path, progress: Progress) -> list[Path]:
    if not (tree / "Kbuild").is_file():
        raise UserError(
            "is neither a .ko file nor a directory with a Kbuild",
            where=str(tree),
            next="see docs/guides/own-scheduler.md",
        )
    tools.require_build_tools(kernel.arch)
    sources = sources_of(tree, _SUFFIXES)
    headers = sorted((kernel_tree() / "include").glob("*.h"))
    of_ours = hash_of(headers, kernel_tree())
    key = f"{kernel.key}-other-{hash_of(sources, tree, _RECIPE, tools.compiler(), of_ours)}"
    home = store.modules_dir() / key
    log = kernel.dir / "other-modules.log"

    def wait() -> None:
        progress.note("waiting: the module is being built already")

    with (
        store.hold(kernel),
        store.disk_errors(),
        store.lock(f"modules-{key}", wait=wait) as descriptor,
    ):
        if not (home / "ready").exists():
            home.parent.mkdir(parents=True, exist_ok=True)
            make_modules(kernel, tree, sources, home, log, progress, descriptor, what=str(tree))
    return sorted(home.glob("*.ko"))


def _wait() -> None:
    """A copy takes no time that is worth a word."""

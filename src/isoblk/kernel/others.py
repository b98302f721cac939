# SPDX-License-Identifier: GPL-2.0-only
"""Kernel modules from outside this repository: an elevator that a study uses.

The command line names the code to build and load; a study has only the elevator's name. A copy is
loaded, so that all runs of a campaign use the same module even if the file changes.
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

# Part of the hash: increment it if a change in this file changes the modules.
_RECIPE = "1"
_SUFFIXES = (".c", ".h", ".S")


def find_modules(
    kernel: Kernel, places: Sequence[Path], progress: Progress | None = None
) -> dict[str, Path]:
    """Return modules by their names.

    Args:
        kernel: the kernel to build for.
        places: .ko files, or directories of a module's sources with a Kbuild, which are built for
            the kernel if they are not ready. In the Kbuild, $(ISOBLK)/include has compat.h.
        progress: listener for a build.

    Raises:
        UserError: a place is neither, or two modules have the same name.
        RunError: a module does not compile.
    """
    found: dict[str, Path] = {}
    for place in places:
        if place.suffix == ".ko":
            modules = [_copied(kernel, place)]
        else:
            modules = _built(kernel, place, progress or Silent())
        for module in modules:
            if module.stem in found:
                raise UserError(f"two modules are named {module.stem}", where=str(place))
            found[module.stem] = module
    return found


def _copied(kernel: Kernel, module: Path) -> Path:
    """Copy a module into the store, named by its content."""
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
        progress.note("waiting: another process is building the module")

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
    """Do nothing: copying takes too little time for a message."""

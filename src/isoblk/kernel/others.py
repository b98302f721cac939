# SPDX-License-Identifier: GPL-2.0-only
"""Kernel modules that are not of this repository: an elevator that a study brings along.

Whoever builds and loads code names it on the command line; a study only says what it is called.
"""

import hashlib
import shutil
from pathlib import Path

from isoblk.errors import RunError, UserError
from isoblk.kernel import store, tools
from isoblk.kernel.modules import make_modules, module_sources
from isoblk.kernel.progress import Progress, Silent
from isoblk.kernel.store import Kernel
from isoblk.paths import kernel_tree

# Part of the hash: count up when a change here would give other modules.
_RECIPE = 1


def find_modules(
    kernel: Kernel, places: list[Path], progress: Progress | None = None
) -> dict[str, Path]:
    """Modules by their names.

    Args:
        kernel: that they are for.
        places: a .ko file each, or the directory of a module's sources with their Kbuild, which is
            built for the kernel if it was not yet. In its Kbuild $(ISOBLK)/include has compat.h.

    Raises:
        UserError: a place is neither, or two modules have one name.
        RunError: one does not compile.
    """
    found: dict[str, Path] = {}
    for place in places:
        modules = [place] if place.suffix == ".ko" else _built(kernel, place, progress or Silent())
        for module in modules:
            if not module.is_file():
                raise UserError("no such module", where=str(module))
            if module.stem in found:
                raise UserError(f"there are two modules {module.stem}", where=str(place))
            found[module.stem] = module.absolute()
    return found


def _built(kernel: Kernel, tree: Path, progress: Progress) -> list[Path]:
    if not (tree / "Kbuild").is_file():
        raise UserError(
            "is neither a .ko file nor a directory with a Kbuild",
            where=str(tree),
            next="see docs/guides/own-scheduler.md",
        )
    sources = module_sources(tree)
    headers = sorted((kernel_tree() / "include").glob("*.h"))
    whole = hashlib.sha256(f"{_RECIPE}\0{tools.compiler()}\0".encode())
    for path in (*sources, *headers):
        whole.update(f"{path.name}\0".encode())
        whole.update(path.read_bytes())
    key = f"{kernel.key}-other-{whole.hexdigest()[:12]}"
    home = store.modules_dir() / key
    with store.hold(kernel), store.disk_errors(), store.lock(f"modules-{key}", wait=lambda: None):
        if not (home / "ready").exists():
            _build(kernel, tree, sources, home, progress)
    return sorted(home.glob("*.ko"))


def _build(kernel: Kernel, tree: Path, sources: list[Path], home: Path, progress: Progress) -> None:
    part = home.with_name(f".{home.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)
    try:
        copy = part / "sources"
        for path in sources:
            target = copy / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        progress.stage(f"building {tree} for Linux {kernel.version}")
        log = kernel.dir / "other-modules.log"
        log.write_bytes(b"")
        modules = make_modules(kernel, copy, log, progress, str(tree))
        if not modules:
            raise RunError(f"{tree}: make built no module", next=f"the log is {log}")
        for path in modules:
            path.rename(part / path.name)
        shutil.rmtree(copy)
        (part / "ready").touch()
        part.rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)

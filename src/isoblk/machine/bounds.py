# SPDX-License-Identifier: GPL-2.0-only
"""The bounds of the changes that a run makes. A journal's change outside of them is not undone."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from isoblk.machine import system
from isoblk.schedulers import io_cost
from isoblk.schedulers.registry import WEIGHT_FILES

LOOP_FILE = re.compile(r"isoblk-[0-9a-f]{16}\.img")
_NAME = re.compile(r"[A-Za-z0-9_!:.-]+")
_NUMBER = re.compile(r"\d{1,10}:\d{1,10}", re.ASCII)
_TUNABLE = re.compile(r"(iosched/)?[a-z0-9_]+")
_VALUE = re.compile(r"\d{0,10}", re.ASCII)
_LINE = re.compile(r"[ -~]{0,4000}")
_TEXT = re.compile(r"[\t\n -~]{0,4000}")
_CONTROLLERS = {"io", "memory"}


def is_number(number: str) -> bool:
    """Return whether the text is MAJ:MIN."""
    return bool(_NUMBER.fullmatch(number))


def is_queue(directory: str, values: Mapping[str, str]) -> bool:
    """Return whether these are a disk's request queue, and its tunables."""
    name = Path(directory).parent.name
    return (
        _is_name(name)
        and directory == str(system.SYS / "block" / name / "queue")
        and all(_TUNABLE.fullmatch(one) and _TEXT.fullmatch(values[one]) for one in values)
    )


def is_loop_file(file: str) -> bool:
    """Return whether the file has the name of a loop device's file that isoblk makes."""
    path = Path(file)
    return _is_plain(path) and bool(LOOP_FILE.fullmatch(path.name))


def is_own_file(path: Path) -> bool:
    """Return whether it is a file of this user or root."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_uid in (0, os.geteuid())


def is_mount(disk: str, partition: str, directory: str) -> bool:
    """Return whether it is the first partition of a disk, mounted in the directory of a run."""
    path = Path(directory)
    own = partition in (f"{disk}p1", f"{disk}1")
    return _is_name(disk) and own and _is_plain(path) and path.name == "fs"


def is_own_cgroup(directory: str) -> bool:
    """Return whether it is a cgroup that isoblk makes; all processes in it are killed."""
    root, path = _root(), Path(directory)
    return _is_plain(path) and path.parent == root and path.name.startswith("isoblk-")


def is_io_cost(device: str, lines: Mapping[str, str]) -> bool:
    """Return whether these are the files of io.cost, and a device's lines in them."""
    root = _root()
    allowed = {str(root / name) for name in io_cost.FILES}
    told = all(_LINE.fullmatch(one) and one.split()[:1] in ([], [device]) for one in lines.values())
    return is_number(device) and lines.keys() <= allowed and told


def is_subtree_control(file: str, controllers: tuple[str, ...]) -> bool:
    """Return whether these are controllers that a run enables, in the file for them."""
    path = Path(file)
    here = _is_below(path, _root()) and path.name == "cgroup.subtree_control"
    return here and set(controllers) <= _CONTROLLERS


def is_weights(device: str, weights: Mapping[str, str], limits: list[str]) -> bool:
    """Return whether these are weights of cgroups, and files of read limits."""
    root = _root()
    files = [*map(Path, weights), *map(Path, limits)]
    return (
        is_number(device)
        and all(_is_below(path, root) for path in files)
        and all(Path(one).name in WEIGHT_FILES for one in weights)
        and all(_VALUE.fullmatch(one) for one in weights.values())
        and all(Path(one).name == "blkio.throttle.read_bps_device" for one in limits)
    )


def _root() -> Path:
    return system.io_hierarchy()[0]


def _is_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and name not in (".", "..")


def _is_plain(path: Path) -> bool:
    return path.is_absolute() and ".." not in path.parts and "\0" not in str(path)


def _is_below(path: Path, root: Path) -> bool:
    return _is_plain(path) and root in path.parents

# SPDX-License-Identifier: GPL-2.0-only
"""A cgroup of the unified hierarchy, by a descriptor of its directory."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

from isoblk.weights import lines, mirror
from isoblk.weights.lines import Several, Weights

IO_WEIGHT: Final = "io.weight"
BFQ_WEIGHT: Final = "io.bfq.weight"
OUR_WEIGHT: Final = "io.isoblk.weight"
CHILDREN: Final = "cgroup.subtree_control"
# Goes with the cgroup, and stays if this process ends in whatever way.
_OURS: Final = b"trusted.isoblk.weight"
# A weight that systemd does not know of, given by Docker, say: at each daemon-reload, and so with
# many packages that are installed, systemd sets the scope of a container back to 100.
_FOREIGN: Final = b"trusted.isoblk.foreign"
_PIECE: Final = 1 << 16
_TOO_LONG: Final = "a cgroup with a long path"
# crun puts a container's processes into a cgroup of this name below the scope that systemd makes
# for it, and writes the weight there, where it has nobody to count against.
_INNER: Final = "container"
_OUTER: Final = ".scope"
# What a file of a cgroup says that is no longer there.
GONE: Final = (errno.ENOENT, errno.ENODEV)


class By(Enum):
    """Who has just written io.weight or io.bfq.weight, as far as it is known."""

    SYSTEMD = auto()
    OTHER = auto()
    UNKNOWN = auto()


@dataclass(frozen=True)
class Left:
    """A line that could not be written: the disk's scheduler has no weights now."""

    key: str
    why: OSError


def text(directory: int, name: str) -> str:
    """What a file of the cgroup holds; "" if there is none, or the cgroup is gone."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return ""
    try:
        return _whole(file)
    except OSError:
        return ""
    finally:
        os.close(file)


def _whole(file: int) -> str:
    parts = []
    while part := os.read(file, _PIECE):
        parts.append(part)
    return b"".join(parts).decode()


def read(directory: int, name: str) -> Weights | None:
    """The weights in a file of the cgroup; None: it has no such file, or is gone."""
    # A weight file is never empty.
    found = text(directory, name)
    return lines.parse(found) if found else None


def has_io(directory: int) -> bool:
    """Whether the cgroup has the files of the io controller."""
    try:
        os.stat("io.stat", dir_fd=directory)
    except OSError:
        return False
    return True


def ours(directory: int) -> Several:
    """What of io.isoblk.weight here may be follow()'s writing."""
    return _noted(directory, _OURS)


def _noted(directory: int, note: bytes) -> Several:
    try:
        return lines.parse_several(os.getxattr(_path(directory), note).decode())
    except (OSError, ValueError):
        # There is none, or it is nobody's that we know.
        return {}


def wanted(directory: int) -> Weights:
    """The weights that somebody has set: in the cgroup's own files, or for a scope in those of the
    container in it."""
    return _with_container(directory, *_set(directory))


def _with_container(directory: int, io: Weights, bfq: Weights) -> Weights:
    own = mirror.wanted(io, bfq)
    if not where(directory).name.endswith(_OUTER):
        return own
    try:
        child = os.open(_INNER, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return own
    try:
        # The scope itself may be root's, and what is in it somebody's to whom that was given, who
        # is not to say what the scope has.
        trusted = _owner(child) in (0, _owner(directory))
        inner = mirror.wanted(*_set(child)) if trusted else {}
    finally:
        os.close(child)
    # crun 1.21 has systemd give the scope an IOWeight= from which systemd makes the container's
    # weight for BFQ again: 3400 for 400, 1200 for 200.
    for_bfq = bfq.get(lines.DEFAULT)
    if for_bfq is not None and for_bfq == inner.get(lines.DEFAULT):
        return own | inner
    return inner | own


def _owner(directory: int) -> int:
    """Who has made the cgroup's weight files; -1: it has none."""
    for name in (IO_WEIGHT, BFQ_WEIGHT):
        try:
            return os.stat(name, dir_fd=directory).st_uid
        except OSError:
            continue
    return -1


def _set(directory: int) -> tuple[Weights, Weights]:
    """What is set in io.weight, and in io.bfq.weight."""
    return read(directory, IO_WEIGHT) or {}, read(directory, BFQ_WEIGHT) or {}


@contextmanager
def scope_of(directory: int) -> Iterator[int | None]:
    """The scope that has the weight of this cgroup, a container's, too; None: there is none."""
    path = where(directory)
    if path.name != _INNER or not path.parent.name.endswith(_OUTER):
        yield None
        return
    outer = os.open("..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield outer
    finally:
        os.close(outer)


def follow(directory: int, by: By = By.UNKNOWN) -> list[Left]:
    """Make io.isoblk.weight what io.weight and io.bfq.weight say.

    Args:
        by: who has just written one of these.

    Returns:
        What could not be written.

    Raises:
        OSError: the cgroup is gone, or may not be written to.
    """
    io, bfq = _set(directory)
    kept = _foreign(directory, io.get(lines.DEFAULT), bfq.get(lines.DEFAULT), by)
    return _write(directory, kept | _with_container(directory, io, bfq))


def _foreign(directory: int, io: int | None, bfq: int | None, by: By) -> Weights:
    """The default weight that somebody gave of whom systemd does not know, also if systemd has
    taken it away since. Notes it at the cgroup."""
    known = _noted(directory, _FOREIGN)
    given = bfq if io is None else io
    now: Several = {}
    if given is None:
        now = {} if by is By.OTHER else known
    # What systemd gives it writes to both files.
    elif by is By.OTHER or io is None or (by is By.UNKNOWN and known == {lines.DEFAULT: (io,)}):
        now = {lines.DEFAULT: (given,)}
    if now != known:
        _remember(directory, now, _FOREIGN)
    return {key: weights[0] for key, weights in now.items()}


def give_back(directory: int) -> list[Left]:
    """Take out of io.isoblk.weight what follow() has written there."""
    _remember(directory, {}, _FOREIGN)
    try:
        os.stat(OUR_WEIGHT, dir_fd=directory)
    except FileNotFoundError:
        # It went with the modules, or with the io controller, and what was written with it.
        _remember(directory, {})
        return []
    return _write(directory, {})


def _write(directory: int, want: Weights) -> list[Left]:
    known = ours(directory)
    if not want and not known:
        return []
    have = read(directory, OUR_WEIGHT)
    if have is None:
        return []
    plan = mirror.plan(want, have, known)
    if plan.ahead != known:
        _remember(directory, plan.ahead)
    after = dict(plan.ours)
    left = []
    for change in plan.changes:
        try:
            _put(directory, change.text)
        except OSError as error:
            # Of a disk's line it may be the disk that is gone.
            if error.errno in GONE and change.key == lines.DEFAULT:
                raise
            left.append(Left(change.key, error))
            after.pop(change.key, None)
            if change.key in have:
                # It is as it was, and ours as it was.
                after[change.key] = known[change.key]
    if after != plan.ahead:
        _remember(directory, after)
    return left


def _put(directory: int, text: str) -> None:
    file = os.open(OUR_WEIGHT, os.O_WRONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _remember(directory: int, weights: Several, note: bytes = _OURS) -> None:
    if weights:
        os.setxattr(_path(directory), note, lines.written(weights).encode())
        return
    try:
        os.removexattr(_path(directory), note)
    except OSError:
        # There is none.
        return


def where(directory: int) -> Path:
    """The cgroup's path, for people; of one that is too deep for the kernel to tell, that it is."""
    try:
        return Path(_path(directory)).readlink()
    except OSError:
        return Path(_TOO_LONG)


def _path(directory: int) -> str:
    """A path that leads to an O_PATH descriptor's directory: there are no calls for those."""
    return f"/proc/self/fd/{directory}"


def named(directory: int) -> Iterator[tuple[str, int]]:
    """Each cgroup directly below: its name, and a descriptor that is open until the next one."""
    for name in _names(directory):
        try:
            child = _open(name, directory)
        except FileNotFoundError:
            # Gone meanwhile.
            continue
        try:
            yield name, child
        finally:
            os.close(child)


def walk(directory: int) -> Iterator[tuple[int, str, int]]:
    """Each cgroup below, each before those below it: how deep, its name, and a descriptor that is
    open until the next one.

    Whoever has a cgroup may make more below it, each in the other, than a process may call
    functions or open files: there is one descriptor, and ".." leads back.
    """
    here = os.dup(directory)
    levels = [_names(here)[::-1]]
    try:
        while levels:
            if not levels[-1]:
                levels.pop()
                if levels:
                    above = _open("..", here)
                    os.close(here)
                    here = above
                continue
            name = levels[-1].pop()
            try:
                other = _open(name, here)
            except FileNotFoundError:
                continue
            try:
                yield len(levels), name, other
                if names := _names(other):
                    levels.append(names[::-1])
                    here, other = other, here
            finally:
                os.close(other)
    finally:
        os.close(here)


def below(directory: int) -> Iterator[int]:
    """Each cgroup below, however deep, likewise."""
    for _, _, child in walk(directory):
        yield child


def _names(directory: int) -> list[str]:
    try:
        # Whoever has a cgroup may close it to others, who are not root.
        os.stat("..", dir_fd=directory)
        with os.scandir(_path(directory)) as found:
            return sorted(entry.name for entry in found if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, PermissionError):
        return []


def _open(name: str, directory: int) -> int:
    return os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)

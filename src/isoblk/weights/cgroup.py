# SPDX-License-Identifier: GPL-2.0-only
"""Functions on a cgroup of the unified hierarchy, named by a descriptor of its directory."""

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
# Recorded weights that we wrote. Deleted with the cgroup; survives the end of this process.
_OURS: Final = b"trusted.isoblk.weight"
# A weight that systemd does not know, such as Docker's. At each daemon-reload, which installing a
# package may cause, systemd resets the weight of a container's scope to 100.
_FOREIGN: Final = b"trusted.isoblk.foreign"
_PIECE: Final = 1 << 16
_TOO_LONG: Final = "a cgroup with a long path"
# crun puts a container's processes into a cgroup of this name below the scope that systemd makes
# for it, and writes the weight there, where it has no siblings and thus no effect.
_INNER: Final = "container"
_OUTER: Final = ".scope"
# Errors of files of a cgroup that no longer exists.
GONE: Final = (errno.ENOENT, errno.ENODEV)


class By(Enum):
    """The latest writer of io.weight or io.bfq.weight."""

    SYSTEMD = auto()
    OTHER = auto()
    UNKNOWN = auto()


@dataclass(frozen=True)
class Left:
    """A line that could not be written, because the disk's scheduler has no weights now."""

    key: str
    why: OSError


def text(directory: int, name: str) -> str:
    """Return the contents of a cgroup's file; "" if the file or the cgroup does not exist."""
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
    """Return the weights in a cgroup's file; None if the file or the cgroup does not exist."""
    # A weight file is never empty.
    found = text(directory, name)
    return lines.parse(found) if found else None


def has_io(directory: int) -> bool:
    """Return whether the cgroup has the files of the io controller."""
    try:
        os.stat("io.stat", dir_fd=directory)
    except OSError:
        return False
    return True


def ours(directory: int) -> Several:
    """Return the weights in io.isoblk.weight that follow() may have written."""
    return _noted(directory, _OURS)


def _noted(directory: int, note: bytes) -> Several:
    try:
        return lines.parse_several(os.getxattr(_path(directory), note).decode())
    except (OSError, ValueError):
        # No attribute, or not in our format.
        return {}


def wanted(directory: int) -> Weights:
    """Return the weights set in the cgroup's files, or for a scope in those of its container."""
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
        # root may own the scope while a user owns the inner cgroup, by delegation: the weight of
        # such a cgroup must not become the scope's.
        trusted = _owner(child) in (0, _owner(directory))
        inner = mirror.wanted(*_set(child)) if trusted else {}
    finally:
        os.close(child)
    # crun 1.21 sets the scope's IOWeight= so that systemd derives the container's weight for BFQ
    # from it: 3400 for 400, 1200 for 200.
    for_bfq = bfq.get(lines.DEFAULT)
    if for_bfq is not None and for_bfq == inner.get(lines.DEFAULT):
        return own | inner
    return inner | own


def _owner(directory: int) -> int:
    """Return the user id that owns the cgroup's weight files; -1 if it has none."""
    for name in (IO_WEIGHT, BFQ_WEIGHT):
        try:
            return os.stat(name, dir_fd=directory).st_uid
        except OSError:
            continue
    return -1


def _set(directory: int) -> tuple[Weights, Weights]:
    """Return the weights set in io.weight, and in io.bfq.weight."""
    return read(directory, IO_WEIGHT) or {}, read(directory, BFQ_WEIGHT) or {}


@contextmanager
def scope_of(directory: int) -> Iterator[int | None]:
    """Open the scope to which this cgroup's weight also applies, if the cgroup is a container's.

    Yields a descriptor; None if there is no such scope.
    """
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
    """Mirror io.weight and io.bfq.weight to io.isoblk.weight.

    Args:
        directory: of the cgroup.
        by: the latest writer of io.weight or io.bfq.weight.

    Returns:
        Lines that could not be written.

    Raises:
        OSError: the cgroup does not exist any more, or may not be written to.
    """
    io, bfq = _set(directory)
    kept = _foreign(directory, io.get(lines.DEFAULT), bfq.get(lines.DEFAULT), by)
    return _write(directory, kept | _with_container(directory, io, bfq))


def _foreign(directory: int, io: int | None, bfq: int | None, by: By) -> Weights:
    """Return a default weight that systemd does not know, also if systemd has reset it since.

    Records it at the cgroup.
    """
    known = _noted(directory, _FOREIGN)
    given = bfq if io is None else io
    now: Several = {}
    if given is None:
        now = {} if by is By.OTHER else known
    # systemd writes its weight to both files.
    elif by is By.OTHER or io is None or (by is By.UNKNOWN and known == {lines.DEFAULT: (io,)}):
        now = {lines.DEFAULT: (given,)}
    if now != known:
        _remember(directory, now, _FOREIGN)
    return {key: weights[0] for key, weights in now.items()}


def give_back(directory: int) -> list[Left]:
    """Remove from io.isoblk.weight the weights that follow() has written."""
    _remember(directory, {}, _FOREIGN)
    try:
        os.stat(OUR_WEIGHT, dir_fd=directory)
    except FileNotFoundError:
        # The file vanished with the modules or the io controller, and its weights with it.
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
            # The errors of a disk's line may mean that the disk is gone.
            if error.errno in GONE and change.key == lines.DEFAULT:
                raise
            left.append(Left(change.key, error))
            after.pop(change.key, None)
            if change.key in have:
                # The line is unchanged: keep its record.
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
        # No attribute.
        return


def where(directory: int) -> Path:
    """Return the cgroup's path for messages; a fixed text if it is too long for the kernel."""
    try:
        return Path(_path(directory)).readlink()
    except OSError:
        return Path(_TOO_LONG)


def _path(directory: int) -> str:
    """Return a path to the directory of an O_PATH descriptor, which some calls do not accept."""
    return f"/proc/self/fd/{directory}"


def named(directory: int) -> Iterator[tuple[str, int]]:
    """Yield name and descriptor of each child cgroup. A descriptor is closed at the next step."""
    for name in _names(directory):
        try:
            child = _open(name, directory)
        except FileNotFoundError:
            # Removed since it was listed.
            continue
        try:
            yield name, child
        finally:
            os.close(child)


def walk(directory: int) -> Iterator[tuple[int, str, int]]:
    """Yield depth, name and descriptor of each descendant, parents before children.

    A descriptor is closed at the next step. The owner of a cgroup may nest more cgroups than a
    process may nest calls or open files: so there is one descriptor, and ".." leads back.
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
    """Yield a descriptor of each descendant, closed at the next step."""
    for _, _, child in walk(directory):
        yield child


def _names(directory: int) -> list[str]:
    try:
        # The owner of a cgroup may deny access to users other than root.
        os.stat("..", dir_fd=directory)
        with os.scandir(_path(directory)) as found:
            return sorted(entry.name for entry in found if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, PermissionError):
        return []


def _open(name: str, directory: int) -> int:
    return os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)

# SPDX-License-Identifier: GPL-2.0-only
"""Directories and files of which nobody but this user and root can say what is in them."""

import errno
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from isoblk.errors import UserError

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ELSEWHERE = "set ISOBLK_STATE to a directory of your own"
_SUDO = "SUDO_UID"


def make_directory(directory: Path) -> None:
    """Make a directory, and those above it, unless they are there, for this user alone.

    Raises:
        UserError: others could change what is in it. OSError: it cannot be made.
    """
    missing = [one for one in (directory, *directory.parents) if not os.path.lexists(one)]
    above = missing[-1].parent if missing else directory
    refuse_shared(above, alone=not missing)
    for one in reversed(missing):
        # One that began at the same time may have made it; the check below holds for both.
        one.mkdir(mode=0o700, exist_ok=True)
    refuse_shared(directory)


def refuse_shared_results(directory: Path) -> None:
    """Check that nobody else can change what root executes in a directory of runs. Who has become
    root by sudo is nobody else.

    Args:
        directory: an absolute path.

    Raises:
        UserError: somebody can. OSError: it cannot be looked at.
    """
    behind = os.environ.get(_SUDO, "") if os.geteuid() == 0 else ""
    also = {int(behind)} if behind.isascii() and behind.isdigit() else set()
    refuse_shared(directory, also=also, elsewhere="choose -o DIR, a directory of your own")


def refuse_shared(
    directory: Path,
    *,
    alone: bool = True,
    also: Collection[int] = (),
    elsewhere: str = _ELSEWHERE,
) -> None:
    """Check that nobody else can change which files a directory has, or lead to another one.

    Args:
        directory: an absolute path.
        alone: nobody else may add files, either; otherwise it may be one such as /tmp.
        also: users who may, besides this one and root.
        elsewhere: what to do if somebody can.

    Raises:
        UserError: somebody can. OSError: it cannot be looked at.
    """
    # What is trusted from the root on stays what it is: nobody else can rename a part of it.
    real = Path(os.path.realpath(directory, strict=True))
    for path in dict.fromkeys(reversed([directory, *directory.parents, real, *real.parents])):
        found = path.lstat()
        last = path in (directory, real)
        if stat.S_ISLNK(found.st_mode) and last and alone:
            raise UserError("is a symbolic link", where=str(path), next=f"name {real} itself")
        if stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode):
            # A sticky directory lets everybody change what is his.
            sticky = bool(found.st_mode & stat.S_ISVTX) and not (last and alone)
            shared = sticky or stat.S_ISLNK(found.st_mode)
            refuse_foreign(path, found, shared=shared, also=also, elsewhere=elsewhere)
        else:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def refuse_foreign(
    path: Path,
    found: os.stat_result,
    *,
    shared: bool = False,
    also: Collection[int] = (),
    elsewhere: str = _ELSEWHERE,
) -> None:
    """Check that a file is this user's or root's. shared: others may write to it. also, elsewhere:
    as refuse_shared() has them.

    Raises:
        UserError: it is not.
    """
    if found.st_uid not in (0, os.geteuid(), *also):
        raise UserError(
            f"belongs to user {found.st_uid}, who could have isoblk change anything",
            where=str(path),
            next=elsewhere,
        )
    if found.st_mode & _OTHERS and not shared:
        meant = found.st_mode & stat.S_ISVTX  # for all, as /tmp is
        raise UserError(
            f"others may write to it (mode {stat.S_IMODE(found.st_mode):o})",
            where=str(path),
            next=elsewhere if meant else f"look at what is in it, then: chmod go-w {path}",
        )


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file of a directory that is not shared, for reading; not waited for, whatever it is.

    Raises:
        UserError: it is no file of this user's or root's. OSError: it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _no_file(path) from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _no_file(path)
        refuse_foreign(path, found)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def _no_file(path: Path) -> UserError:
    return UserError(
        "is not a file of isoblk's, but a link or a device", where=str(path), next="remove it"
    )

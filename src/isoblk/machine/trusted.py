# SPDX-License-Identifier: GPL-2.0-only
"""Check that only this user and root can change certain directories and files."""

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
    """Make a directory and its parents, unless they exist, for this user only.

    Raises:
        UserError: other users could change its contents.
        OSError: it cannot be made.
    """
    missing = [one for one in (directory, *directory.parents) if not os.path.lexists(one)]
    above = missing[-1].parent if missing else directory
    refuse_shared(above, alone=not missing)
    for one in reversed(missing):
        # A concurrent process may have made it; the check below covers both.
        one.mkdir(mode=0o700, exist_ok=True)
    refuse_shared(directory)


def refuse_shared_results(directory: Path) -> None:
    """Check that no other user can change what root executes in a directory of runs. The user
    of sudo (SUDO_UID) is trusted.

    Args:
        directory: an absolute path.

    Raises:
        UserError: another user can.
        OSError: it cannot be inspected.
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
    """Check that no other user can change a directory's entries, or redirect its path.

    Args:
        directory: an absolute path.
        alone: whether no other user may add files, either; if False, it may be a directory such as
            /tmp.
        also: further trusted users, besides this one and root.
        elsewhere: next step for the error.

    Raises:
        UserError: another user can.
        OSError: it cannot be inspected.
    """
    # A path that is trusted from the root on stays valid: no other user can rename a part of it.
    real = Path(os.path.realpath(directory, strict=True))
    for path in dict.fromkeys(reversed([directory, *directory.parents, real, *real.parents])):
        found = path.lstat()
        last = path in (directory, real)
        if stat.S_ISLNK(found.st_mode) and last and alone:
            raise UserError("is a symbolic link", where=str(path), next=f"name {real} itself")
        if stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode):
            # In a sticky directory, users can change only their own files.
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
    """Check that a file belongs to this user or root. shared: whether others may write to it. also,
    elsewhere: as for refuse_shared().

    Raises:
        UserError: it does not.
    """
    if found.st_uid not in (0, os.geteuid(), *also):
        raise UserError(
            f"belongs to user {found.st_uid}; its contents could make isoblk change anything",
            where=str(path),
            next=elsewhere,
        )
    if found.st_mode & _OTHERS and not shared:
        meant = found.st_mode & stat.S_ISVTX  # for all users, as /tmp
        raise UserError(
            f"other users may write to it (mode {stat.S_IMODE(found.st_mode):o})",
            where=str(path),
            next=elsewhere if meant else f"check its contents, then run: chmod go-w {path}",
        )


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open for reading a file of a directory that is not shared, without blocking.

    Raises:
        UserError: it is not a file of this user or root.
        OSError: it cannot be read.
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
        "is a link or a device, not a file of isoblk", where=str(path), next="remove it"
    )
